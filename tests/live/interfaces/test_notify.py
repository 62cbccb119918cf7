"""What an agent tells systemd, seen from the other end of the socket."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meshlock.live.interfaces.notify import Service, watchdog
from waiting import LIMIT

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]


@contextmanager
def systemd(place: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + place[1:] if place.startswith("@") else place)
        listener.settimeout(LIMIT)
        yield listener


def heard(listener: socket.socket, line: str) -> list[str]:
    """All lines up to the datagram with this one."""
    lines: list[str] = []
    while line not in lines:
        lines += listener.recv(4096).decode().splitlines()
    return lines


def test_a_real_agent_is_ready_feeds_the_watchdog_and_says_that_it_stops(tmp_path: Path) -> None:
    place = str(tmp_path / "notify")
    with systemd(place) as listener:
        given = ["--name", "ann", "--socket", str(tmp_path / "socket"), "--pool", "docks=3"]
        agent = subprocess.Popen(
            [*PROGRAM, "agent", *given],
            env={**os.environ, "NOTIFY_SOCKET": place, "WATCHDOG_USEC": "100000"},
            stderr=subprocess.DEVNULL,
        )
        try:
            heard(listener, "READY=1")
            assert (tmp_path / "socket").exists()  # it listens
            for _ in range(3):
                heard(listener, "WATCHDOG=1")
            agent.send_signal(signal.SIGTERM)
            heard(listener, "STOPPING=1")
            assert agent.wait(LIMIT) == 0
        finally:
            agent.kill()
            agent.wait()


def test_no_watchdog_is_fed_unasked() -> None:
    place = f"@meshlock-test-{os.getpid()}"

    async def serve() -> None:
        with Service({"NOTIFY_SOCKET": place}) as service:
            service.ready()
            assert service.timer is None

    with systemd(place) as listener:
        asyncio.run(serve())
        assert listener.recv(4096) == b"READY=1"


def test_an_agent_without_systemd_says_nothing_and_one_without_its_socket_works(
    tmp_path: Path,
) -> None:
    async def serve(environment: dict[str, str]) -> Service:
        with Service(environment) as service:
            service.ready()
            service.stopping()
        return service

    assert not asyncio.run(serve({})).failed
    assert asyncio.run(serve({"NOTIFY_SOCKET": str(tmp_path / "nobody")})).failed


def test_the_watchdog_of_another_process_is_not_ours() -> None:
    assert watchdog({}) is None
    assert watchdog({"WATCHDOG_USEC": "0"}) is None
    assert watchdog({"WATCHDOG_USEC": "3000000"}) == 3.0
    assert watchdog({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}) == 3.0
    assert watchdog({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}) is None
