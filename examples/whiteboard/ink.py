"""What is drawn and who holds pens, told from board to board.

Every board tells its neighbours every new thing it hears, so all hear of it while they are
connected by any way at all; a node that comes later receives everything from the start. Lines
of JSON over TCP; nothing here decides who may draw, meshlock does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

LONGEST = 256 * 1024
MOST_STROKES = 20_000

Told = dict[str, Any]


class Ink:
    def __init__(self, hears: Callable[[Told], None]) -> None:
        self.hears = hears  # is called with everything new
        self.strokes: dict[tuple[str, int], Told] = {}  # by board and number
        self.people: dict[str, Told] = {}  # by board: the newest it said of its people
        self.neighbours: set[asyncio.StreamWriter] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.address = ("", 0)

    async def listen(self, host: str, port: int) -> None:
        server = await asyncio.start_server(self.meet, host, port, limit=LONGEST)
        self.address = server.sockets[0].getsockname()[:2]

    def dial(self, host: str, port: int) -> None:
        task = asyncio.create_task(self.keep(host, port))
        self.tasks.add(task)

    async def keep(self, host: str, port: int) -> None:
        """Stay connected to a neighbour, whatever happens to it."""
        while True:
            with contextlib.suppress(OSError):
                await self.meet(*await asyncio.open_connection(host, port, limit=LONGEST))
            await asyncio.sleep(0.5)

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.neighbours.add(writer)
        try:
            for told in [*self.people.values(), *self.strokes.values()]:
                writer.write(line(told))
            while text := await reader.readline():
                told = json.loads(text)
                if isinstance(told, dict):
                    self.tell(told)
        except (OSError, ValueError):
            pass  # gone, or not one of us
        finally:
            self.neighbours.discard(writer)
            writer.close()

    def tell(self, told: Told) -> None:
        """Something new, from here or from a neighbour; what is known already stops here."""
        board, number = str(told.get("board")), told.get("number")
        if not isinstance(number, int):
            return
        if "people" in told:
            if number <= self.people.get(board, {}).get("number", -1):
                return
            self.people[board] = told
        else:
            if (board, number) in self.strokes or len(self.strokes) >= MOST_STROKES:
                return
            self.strokes[board, number] = told
        self.hears(told)
        for writer in self.neighbours:
            writer.write(line(told))


def line(told: Told) -> bytes:
    return json.dumps(told).encode() + b"\n"
