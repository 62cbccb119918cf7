"""What is to happen, in order of time; at one time, in the order in which it was put here.

Sorted, with the next event last: taking it moves nothing, and finding the place of another takes
few comparisons of plain numbers, where a heap would compare many tuples. In blocks, so that never
much has to make room for an event.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

MOST: Final = 256
"""Events in a block; then it is parted."""

FIND: Final = bisect_left
"""Compiled code looks up by name, at every call, what it imports; but not what is Final."""


class Block:
    """Events, and beside them their times: negative, so that they ascend to the next event's."""

    def __init__(self, times: list[float], events: list[object]) -> None:
        self.times = times
        self.events = events


class Agenda(Block):
    """It is its own first block. Who takes an event, takes the last of ``times`` and ``events``,
    after a :meth:`refill` if there is none."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.later: list[Block] = []  # the latest first
        self.bounds: list[float] = []  # of each of these, its last time

    def __len__(self) -> int:
        return len(self.times) + sum([len(block.times) for block in self.later])

    def put(self, time: float, event: object) -> None:
        time = -time
        if self.bounds and time <= self.bounds[-1]:
            self.put_later(time, event)
            return
        place = FIND(self.times, time)  # before its equals, which were here first
        self.times.insert(place, time)
        self.events.insert(place, event)
        if len(self.times) > MOST:
            self.part(self, len(self.later))

    def put_later(self, time: float, event: object) -> None:
        number = FIND(self.bounds, time)
        block = self.later[number]
        place = FIND(block.times, time)
        block.times.insert(place, time)
        block.events.insert(place, event)
        if len(block.times) > MOST:
            self.part(block, number)

    def part(self, block: Block, number: int) -> None:
        """Make a block of its later half, which is to have this number."""
        half = MOST // 2
        self.later.insert(number, Block(block.times[:half], block.events[:half]))
        self.bounds.insert(number, block.times[half - 1])
        del block.times[:half]
        del block.events[:half]

    def refill(self) -> bool:
        """The first block is empty: have the next one be the first. False if there is none."""
        if not self.later:
            return False
        block = self.later.pop()
        self.bounds.pop()
        self.times, self.events = block.times, block.events
        return True

    def clear(self) -> None:
        self.times, self.events = [], []
        self.later.clear()
        self.bounds.clear()
