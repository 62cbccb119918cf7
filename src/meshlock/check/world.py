"""One state of a world in which nodes crash, taken apart: what a step changes a copy of."""

from __future__ import annotations

from meshlock.algorithms.recovery.records import Fence
from meshlock.check.links import Pair

Orphan = tuple[int, Fence, int, int]
"""A client whose node crashed: the node, the fence, how many permits, what is left of its lease."""
Mailbox = tuple[tuple[int, ...], tuple[tuple[Pair, tuple[int, ...]], ...]]
"""The loose messages, and the lines: sender and receiver, and the messages in their order."""
Rest = tuple[tuple[Orphan, ...], tuple[int, ...], Fence, tuple[int, ...], int]
"""Orphans, what is left of the bounds, the highest fence so far, links that are cut, the priority
that is due."""


class World:
    __slots__ = (
        "cuts",
        "due",
        "failure",
        "fence",
        "fence_repeated",
        "left",
        "lines",
        "loose",
        "orphans",
        "places",
    )

    def __init__(self, places: list[int], mailbox: Mailbox, rest: Rest) -> None:
        self.places = places  # the number of each node's place
        self.loose = mailbox[0]
        self.lines = dict(mailbox[1])
        self.orphans, left, self.fence, self.cuts, self.due = rest
        self.left = list(left)
        self.fence_repeated = False  # by the step that led here
        self.failure = ""  # of a handler in that step

    def copy(self) -> World:
        twin = World.__new__(World)
        twin.places = self.places[:]
        twin.loose = self.loose
        twin.lines = self.lines.copy()
        twin.orphans = self.orphans
        twin.left = self.left[:]
        twin.fence = self.fence
        twin.cuts = self.cuts
        twin.due = self.due
        twin.fence_repeated = False
        twin.failure = ""
        return twin

    def mailbox(self) -> Mailbox:
        return self.loose, tuple(sorted(self.lines.items())) if self.lines else ()

    def rest(self) -> Rest:
        return self.orphans, tuple(self.left), self.fence, self.cuts, self.due

    # -- messages ------------------------------------------------------------------------------

    def add_loose(self, message: int) -> None:
        if message not in self.loose:
            self.loose = tuple(sorted([*self.loose, message]))

    def push(self, pair: Pair, message: int) -> None:
        self.lines[pair] = (*self.lines.get(pair, ()), message)

    def pop(self, pair: Pair) -> int:
        """The first of this line, which is taken off it."""
        line = self.lines[pair]
        if len(line) == 1:
            del self.lines[pair]
        else:
            self.lines[pair] = line[1:]
        return line[0]


def without(row: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple([other for other in row if other != number])
