"""One state of a world in which nodes crash, taken apart: what a step changes a copy of."""

from __future__ import annotations

from meshlock.algorithms.recovery.records import Fence

Running = tuple[Fence, int, int, tuple[int, ...]]
"""A grant: its fence, how many permits, what is left of its lease, its slots."""
Orphan = tuple[int, Fence, int, int, tuple[int, ...]]
"""The grant of a node that crashed: the node, and as above."""
Rest = tuple[tuple[Orphan, ...], tuple[int, ...], Fence, tuple[int, ...], int, int]
"""Orphans, what is left of the bounds, the highest fence so far, links that are cut, the priority
that is due, k of the last token that could be used."""


class World:
    __slots__ = (
        "box",
        "cuts",
        "due",
        "failure",
        "fence",
        "fence_repeated",
        "left",
        "limit",
        "orphans",
        "places",
        "size",
        "size_forgotten",
    )

    def __init__(self, places: list[int], box: int, rest: Rest) -> None:
        self.places = places  # the number of each node's place
        self.box = box  # the number of the mailbox
        self.orphans, self.left, self.fence, self.cuts, self.due, self.size = rest
        self.fence_repeated = False  # by the step that led here
        self.limit = 0  # k of what that step granted, where k may change
        self.size_forgotten = False  # a token of that step has a k that nobody asked for
        self.failure = ""  # of a handler in that step

    def rest(self) -> Rest:
        return self.orphans, self.left, self.fence, self.cuts, self.due, self.size

    def copy(self) -> World:
        return World(self.places[:], self.box, self.rest())

    def spend(self, budget: int) -> None:
        left = list(self.left)
        left[budget] -= 1
        self.left = tuple(left)


def without(row: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple([other for other in row if other != number])
