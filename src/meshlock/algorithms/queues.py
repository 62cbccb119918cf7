"""Waiting queues of nodes' numbers."""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import StatePart


@mypyc_attr(allow_interpreted_subclasses=True)
class Fifo(StatePart):
    """First in, first out, in constant time however many wait.

    A list with a moving head: ``list.pop(0)`` would cost as much as the queue is
    long, and ``collections.deque`` 600 bytes per node even when none waits.
    """

    __slots__ = ("items", "head")

    def __init__(self) -> None:
        self.items: list[int] = []
        self.head = 0

    def __len__(self) -> int:
        return len(self.items) - self.head

    def push(self, item: int) -> None:
        if self.head == 1 and len(self.items) == 1:  # none waits: use the place again
            self.items[0] = item
            self.head = 0
        else:
            self.items.append(item)

    def pop(self) -> int:
        item = self.items[self.head]
        self.head += 1
        if self.head == len(self.items):
            if self.head > 1:
                self.items = []
                self.head = 0
        elif self.head >= 64 and self.head * 2 >= len(self.items):
            self.items = self.items[self.head :]
            self.head = 0
        return item

    def remove(self, item: int) -> bool:
        """Take out the first occurrence; False if there is none."""
        for place in range(self.head, len(self.items)):
            if self.items[place] == item:
                del self.items[place]
                return True
        return False

    def others(self) -> list[int]:
        """Who waits, in order of arrival, but for an own request that is kept apart."""
        return self.items[self.head :]

    def freeze(self) -> tuple[int, ...]:
        return tuple(self.items[self.head :])

    def thaw(self, frozen: tuple[Any, ...]) -> None:
        self.items = list(frozen)
        self.head = 0


class Lift(Fifo):
    """Own request first.

    That is fair: a node serves one of its clients at a time, and the next one asks when the one
    before has left, after another node's request was taken up. So each of these is overtaken once.
    """

    __slots__ = ("me", "own")

    def __init__(self, me: int) -> None:
        super().__init__()
        self.me = me
        self.own = False

    def __len__(self) -> int:
        return len(self.items) - self.head + (1 if self.own else 0)

    def push(self, item: int) -> None:
        if item == self.me:
            self.own = True
        else:
            super().push(item)

    def pop(self) -> int:
        if self.own:
            self.own = False
            return self.me
        return super().pop()

    def remove(self, item: int) -> bool:
        if item != self.me:
            return super().remove(item)
        was = self.own
        self.own = False
        return was

    def freeze(self) -> tuple[int, ...]:
        return (1 if self.own else 0, *super().freeze())

    def thaw(self, frozen: tuple[Any, ...]) -> None:
        super().thaw(frozen[1:])
        self.own = frozen[0] == 1
