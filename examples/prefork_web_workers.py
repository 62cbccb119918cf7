"""A pre-fork web server whose workers share two licence seats, through the agent of their machine.

    python examples/prefork_web_workers.py

The client of the agent is made once, before forking, as pre-fork servers load their application;
every worker has a connection of its own all the same. One worker is killed while it has a seat: the
seat comes back at once. With an agent on each machine, the workers of all of them share the seats.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import urlopen

import meshlock

WORKERS, SEATS, VISITORS = 4, 2, 8
AGENT = [sys.executable, "-c", "from meshlock.cli.main import run; run()", "agent"]


def say(line: str) -> None:
    """In one piece, whatever other processes say meanwhile."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


class Application(BaseHTTPRequestHandler):
    seats: meshlock.BlockingClientPool

    def do_GET(self) -> None:
        with self.seats.acquire(timeout=30) as seat:
            say(f"worker {os.getpid()} begins, fence {seat.fence}")
            if self.path == "/never":
                self.answer()
                signal.pause()
            time.sleep(0.1)  # the licensed work
            say(f"worker {os.getpid()} ends")
        self.answer()

    def answer(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{os.getpid()}\n".encode())

    def log_message(self, *_: object) -> None:
        pass


class Shared(HTTPServer):
    """On a socket that all workers have inherited."""

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(listener.getsockname(), Application, bind_and_activate=False)
        self.socket.close()
        self.socket = listener


def fork(listener: socket.socket) -> int:
    worker = os.fork()
    if worker == 0:
        Shared(listener).serve_forever()
    return worker


def main(place: str) -> None:
    agent = meshlock.connect(place)
    Application.seats = agent.pool("seats")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        workers = [fork(listener) for _ in range(WORKERS)]
        try:
            visitors = [
                threading.Thread(target=lambda: urlopen(address).read()) for _ in range(VISITORS)
            ]
            for visitor in visitors:
                visitor.start()
            for visitor in visitors:
                visitor.join()

            with urlopen(f"{address}/never") as answer:
                os.kill(int(answer.readline()), signal.SIGKILL)
            with Application.seats.acquire(SEATS, timeout=30):
                say("all seats are back")
        finally:
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
                os.waitpid(worker, 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/agent.sock"
        given = ["--socket", place, "--pool", f"seats={SEATS}", "--state", f"{folder}/state"]
        given += ["--log-level", "warning"]
        process = subprocess.Popen([*AGENT, *given])
        try:
            while not Path(place).is_socket():
                time.sleep(0.05)
            main(place)
        finally:
            process.terminate()
            process.wait()
