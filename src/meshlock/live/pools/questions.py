"""Questions to other nodes about a pool, routed best effort and matched with their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Questions(Generic[Answer]):
    """Each has a number. Only the node that was asked may answer it, and only once."""

    def __init__(self) -> None:
        self.last = 0
        self.asked: dict[int, tuple[str, asyncio.Future[Answer]]] = {}  # whom, and what it says

    @contextmanager
    def ask(self, node: str) -> Iterator[tuple[int, asyncio.Future[Answer]]]:
        """The question is open while this block runs; the caller sends it."""
        self.last = number = self.last + 1
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.asked[number] = (node, future)
        try:
            yield number, future
        finally:
            del self.asked[number]

    def answered(self, sender: str, number: int, answer: Answer) -> None:
        node, future = self.asked.get(number, ("", None))
        if future is not None and node == sender and not future.done():
            future.set_result(answer)
