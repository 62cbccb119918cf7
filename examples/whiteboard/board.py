"""A drawing board in the browser, shared by several machines, with three pens.

    python examples/whiteboard/board.py

starts three boards on this machine, each a process with a meshlock node of its own; open
each address in a browser of its own. On several machines start one board on each and tell it
its neighbours and the names of all boards (see README.md).

Anyone may draw who holds a pen. There are three pens: one is enough to draw, and somebody
who takes all three draws alone. Who is more urgent waits less. A pen whose holder has closed
the browser comes back by itself, and so do the pens on a board that is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvicorn
from ink import Ink, Told
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import meshlock

PAGE = Path(__file__).parent / "page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
PENS = 3
VANISHED = 2.0
"""Seconds without its browser after which a drawer's pens are taken back."""

SAFE = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Drawer:
    """Somebody with a browser on this board."""

    def __init__(self, name: str, colour: str) -> None:
        self.name = name
        self.colour = colour
        self.browsers: set[asyncio.Queue[Told]] = set()
        self.asking: asyncio.Task[None] | None = None
        self.want = 0
        self.priority = 0
        self.grant: meshlock.Grant | None = None
        self.seen = time.monotonic()

    def shown(self) -> Told:
        return {
            "name": self.name,
            "colour": self.colour,
            "want": self.want,
            "priority": self.priority,
            "pens": self.grant.want if self.grant else 0,
            "fence": self.grant.fence if self.grant else None,
        }


class Board:
    def __init__(self, name: str, node: meshlock.Node, pens: meshlock.Pool) -> None:
        self.name = name
        self.node = node
        self.pens = pens
        self.ink = Ink(self.hears)
        self.drawers: dict[str, Drawer] = {}  # by the secret that only their browser knows
        self.number = int(time.time() * 1000)  # grows over restarts too

    # -- news -----------------------------------------------------------------------------

    def hears(self, told: Told) -> None:
        for drawer in self.drawers.values():
            for browser in drawer.browsers:
                browser.put_nowait(told)

    def tell(self, told: Told) -> None:
        self.number += 1
        self.ink.tell({"board": self.name, "number": self.number, **told})

    def tell_people(self) -> None:
        self.tell({"people": [drawer.shown() for drawer in self.drawers.values()]})

    # -- pens -----------------------------------------------------------------------------

    async def take(self, drawer: Drawer, want: int, priority: int) -> None:
        drawer.want, drawer.priority = want, priority
        self.tell_people()
        try:
            drawer.grant = await self.pens.acquire(want, priority=priority)
        finally:
            drawer.want = 0
            self.tell_people()

    def put_back(self, drawer: Drawer) -> None:
        if drawer.asking is not None:
            drawer.asking.cancel()
            drawer.asking = None
        if drawer.grant is not None:
            drawer.grant.release()
            drawer.grant = None
        self.tell_people()

    async def watch(self) -> None:
        """Pens come back from those whose browser is gone, and from those who lost them."""
        while True:
            await asyncio.sleep(0.25)
            now = time.monotonic()
            for key, drawer in list(self.drawers.items()):
                if drawer.browsers:
                    drawer.seen = now
                elif now - drawer.seen > VANISHED:
                    del self.drawers[key]
                    self.put_back(drawer)
                if drawer.grant is not None and not drawer.grant.held:
                    self.put_back(drawer)
            self.forget_boards()

    def forget_boards(self) -> None:
        """Nobody draws on a board that is gone."""
        known = self.node.status()["map"]
        for name, told in list(self.ink.people.items()):
            if told["people"] and known.get(name, {}).get("distance") is None:
                self.ink.people[name] = {**told, "people": []}
                self.hears(self.ink.people[name])

    # -- for browsers ---------------------------------------------------------------------

    def drawer(self, said: Told) -> Drawer:
        drawer = self.drawers.get(str(said.get("key")))
        if drawer is None:
            raise LookupError("This board does not know you: load the page again.")
        return drawer

    async def page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        files = {path.name: path for path in PAGE.iterdir()}
        if name not in files:
            return Response("There is no such file.", 404)
        path = files[name]
        return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=SAFE)

    async def news(self, request: Request) -> Response:
        """Everything so far, then everything new, for as long as the browser listens."""
        asked = request.query_params
        key = asked.get("key", "")
        if len(key) < 16:
            return Response("A key has 16 letters or more.", 400)
        if key not in self.drawers:
            self.drawers[key] = Drawer(asked.get("name", "")[:24], asked.get("colour", "")[:9])
            self.tell_people()
        drawer = self.drawers[key]
        browser: asyncio.Queue[Told] = asyncio.Queue()
        drawer.browsers.add(browser)
        known = [*self.ink.people.values(), *self.ink.strokes.values()]

        async def stream() -> AsyncIterator[bytes]:
            try:
                yield event({"hello": self.name, "pens": PENS})
                for told in known:
                    yield event(told)
                while True:
                    try:
                        yield event(await asyncio.wait_for(browser.get(), 1.0))
                    except TimeoutError:
                        yield b": still here\n\n"
            finally:
                drawer.browsers.discard(browser)
                drawer.seen = time.monotonic()

        return StreamingResponse(stream(), media_type="text/event-stream", headers=SAFE)

    async def act(self, request: Request) -> Response:
        if request.headers.get("content-type") != "application/json":
            return JSONResponse({"error": "Send JSON."}, 415)
        try:
            said = json.loads((await request.body())[:200_000])
            drawer = self.drawer(said)
            verb = said.get("do")
            if verb == "take":
                want, priority = int(said.get("want", 1)), int(said.get("priority", 0))
                if not 1 <= want <= PENS or drawer.grant is not None or drawer.want:
                    raise LookupError("You have pens, or wait for some: put them back first.")
                drawer.asking = asyncio.create_task(self.take(drawer, want, priority))
            elif verb == "put":
                self.put_back(drawer)
            elif verb == "draw":
                self.draw(drawer, said)
            else:
                raise LookupError("One can take, put and draw.")
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            return JSONResponse({"error": str(error)}, 409)
        return JSONResponse({}, headers=SAFE)

    def draw(self, drawer: Drawer, said: Told) -> None:
        """Only a holder of a pen draws; the fence shows that it is still the same pen."""
        grant = drawer.grant
        if grant is None or not grant.held or said.get("fence") != grant.fence:
            raise LookupError("You hold no pen.")
        points = [[round(float(x), 1), round(float(y), 1)] for x, y in said["points"][:2000]]
        self.tell({"points": points, "colour": drawer.colour, "fence": grant.fence})

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self.page),
                Route("/page/{name}", self.page),
                Route("/news", self.news),
                Route("/act", self.act, methods=["POST"]),
            ],
            middleware=[
                Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
            ],
        )


def event(told: Any) -> bytes:
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host or "127.0.0.1", int(port)


async def serve(asked: argparse.Namespace, tell: Connection | None = None) -> None:
    """One board, until interrupted."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", asked.port))
    except OSError as error:
        sys.exit(f"No board at port {asked.port} ({error.strerror}): choose another with --port.")
    peers = [f"{host}:{port}" for host, port in map(address, asked.peer)]
    secret = asked.secret_file.read_text().strip() if asked.secret_file else None
    node = meshlock.Node(asked.name, listen=asked.listen, peers=peers, secret=secret, state=None)
    async with node:
        if asked.member:
            pens = node.pool(
                "pens", PENS, members=asked.member, lease=asked.lease, algorithm=asked.algorithm
            )
        else:
            pens = node.pool("pens", PENS, lease=asked.lease, algorithm=asked.algorithm)
        board = Board(asked.name, node, pens)
        host = address(asked.listen)[0]
        await board.ink.listen(host, asked.ink)
        for neighbour in asked.ink_peer:
            board.ink.dial(*address(neighbour))
        web = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        ink = "{}:{}".format(*board.ink.address)
        print(
            f"{asked.name}: {web} (process {os.getpid()}, node {node.address}, ink {ink})",
            flush=True,
        )
        if tell is not None:
            tell.send((node.address, ink))
        watching = asyncio.create_task(board.watch())
        config = uvicorn.Config(
            board.application(),
            log_level="warning",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        try:
            await uvicorn.Server(config).serve(sockets=[listener])
        finally:
            watching.cancel()


def one(asked: argparse.Namespace, tell: Connection | None = None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    with contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(serve(asked, tell))
        except meshlock.Refused as error:
            sys.exit(str(error))


def three(asked: argparse.Namespace) -> None:
    """Three boards on this machine, each linked to both others; they end with us."""
    boards: list[multiprocessing.Process] = []
    asked.member = ["ann", "bob", "cleo"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        for place, name in enumerate(asked.member):
            ours, theirs = multiprocessing.Pipe()
            mine = argparse.Namespace(**vars(asked))
            mine.name, mine.port = name, asked.port and asked.port + place
            board = multiprocessing.Process(target=one, args=(mine, theirs))
            boards.append(board)
            # A signal that comes while a process is forked may be lost, here or in the child.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            board.start()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            theirs.close()
            node, ink = ours.recv()
            asked.peer, asked.ink_peer = [*asked.peer, node], [*asked.ink_peer, ink]
        for board in boards:
            board.join()
    except EOFError:  # it has said why it did not start
        sys.exit(1)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for board in boards:
            if board.pid is not None:
                board.terminate()
                board.join()


def main() -> None:
    parser = argparse.ArgumentParser(description="A shared drawing board with three pens.")
    parser.add_argument("--name", help="of one board; without it three are started")
    parser.add_argument("--port", type=int, default=8801, help="where browsers find it")
    parser.add_argument("--listen", default="127.0.0.1:0", help="where other nodes find it")
    parser.add_argument("--peer", action="append", default=[], help="a node's address")
    parser.add_argument("--ink", type=int, default=0, help="port for what is drawn")
    parser.add_argument("--ink-peer", action="append", default=[], help="a board's ink address")
    parser.add_argument("--member", action="append", default=[], help="a board's name; say all")
    parser.add_argument("--secret-file", type=Path, help="needed beyond this machine")
    parser.add_argument(
        "--lease", type=float, default=1.0, help="seconds; then the pens of a killed board are back"
    )
    parser.add_argument("--algorithm", default="jiang", help="which one decides who has pens")
    asked = parser.parse_args()
    if asked.name:
        one(asked)
    else:
        three(asked)


if __name__ == "__main__":
    main()
