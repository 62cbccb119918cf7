"""What is to happen, in order of time; at one time, in the order in which it was put here.

Sorted, with the next event last: taking it moves nothing, and finding the place of another takes
few comparisons of plain numbers, where a heap would compare many tuples. In blocks, so that never
much has to make room for an event.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

FLOOR: Final = 8
"""Places at the end of time, with None for an event, under those of the first block. Without them
a list of two or three would give memory back, and ask for it again, with almost every event."""

MOST: Final = 256
"""Places in a block; then it is parted."""

NEVER: Final = float("-inf")

NO_BOUND: Final = float("nan")  # no time is at or below it

FIND: Final = bisect_left
"""Compiled code looks up by name, at every call, what it imports; but not what is Final."""


class Block:
    """Events, and beside them their times: negative, so that they ascend to the next event's."""

    def __init__(self, times: list[float], events: list[object]) -> None:
        self.times = times
        self.events = events


class Agenda(Block):
    """It is its own first block. Who takes an event, takes the last of ``times`` and ``events``,
    which stay the same lists, after a :meth:`refill` if that is None."""

    def __init__(self) -> None:
        super().__init__([NEVER] * FLOOR, [None] * FLOOR)
        self.later: list[Block] = []  # the latest first
        self.bounds: list[float] = []  # of each of these, its last time
        self.bound = NO_BOUND  # the last of these: what is not above it belongs to a later block

    def __len__(self) -> int:
        return len(self.times) - FLOOR + sum([len(block.times) for block in self.later])

    def add(self, time: float, event: object) -> None:
        time = -time
        if time <= self.bound:
            self.add_later(time, event)
            return
        times = self.times
        if time > times[-1]:
            times.append(time)
            self.events.append(event)
        else:
            place = FIND(times, time, FLOOR)  # before its equals, which were here first
            times.insert(place, time)
            self.events.insert(place, event)
        if len(times) > MOST:
            self.part(self, len(self.later), FLOOR)

    def add_later(self, time: float, event: object) -> None:
        number = FIND(self.bounds, time)
        block = self.later[number]
        place = FIND(block.times, time)
        block.times.insert(place, time)
        block.events.insert(place, event)
        if len(block.times) > MOST:
            self.part(block, number, 0)

    def part(self, block: Block, number: int, start: int) -> None:
        """Make a block of its later half, which starts here, and is to have this number."""
        half = MOST // 2
        self.later.insert(number, Block(block.times[start:half], block.events[start:half]))
        self.bounds.insert(number, block.times[half - 1])
        self.bound = self.bounds[-1]
        del block.times[start:half]
        del block.events[start:half]

    def refill(self) -> bool:
        """The first block is empty: put the next one into it. False if there is none."""
        if not self.later:
            return False
        block = self.later.pop()
        self.bounds.pop()
        self.bound = self.bounds[-1] if self.bounds else NO_BOUND
        self.times += block.times
        self.events += block.events
        return True

    def clear(self) -> None:
        del self.times[FLOOR:]
        del self.events[FLOOR:]
        self.later.clear()
        self.bounds.clear()
        self.bound = NO_BOUND
