"""One state of a world in which nodes crash, taken apart: what a step changes a copy of."""

from __future__ import annotations

from array import array
from typing import Any

from meshlock.algorithms.recovery.records import Config, Epoch, Fence
from meshlock.check import kinds
from meshlock.check.packing import SPREAD

Step = tuple[int, int]
"""A kind and a subject: a node, a client, a message or a link; of MEET and CHANGE two in one."""
Running = tuple[Fence, int, int, tuple[int, ...]]
"""A grant: its fence, how many permits, what is left of its lease, its slots."""
Orphan = tuple[int, Fence, int, int, tuple[int, ...]]
"""The grant of a node that crashed: the node, and as above."""
Disk = tuple[Epoch, Config] | None
"""What it remembers: the promise, and the members."""
Writes = tuple[tuple[Disk, tuple[int, ...]], ...]
"""What a disk is to write, and the messages behind it: what is being written, and what comes next,
for the latest promise stands for all before it."""
Hanging = tuple[int, Writes]
"""A node whose disk hangs."""
Around = tuple[Any, ...]
"""What is neither of one node nor on its way, in this order: orphans, what is left of the bounds,
the highest fence so far, links that are cut, the priority that is due, k of the last token that
could be used, disks that hang."""
ORPHANS, LEFT, FENCE, CUTS, DUE, SIZE, HANGING = range(7)


class Rest:
    """What is around; equal ones are one object, with a number."""

    __slots__ = (
        "cuts",
        "due",
        "fence",
        "hanging",
        "known",
        "left",
        "number",
        "orphans",
        "own",
        "rests",
        "size",
        "spent",
    )

    def __init__(self, rests: Rests, known: Around) -> None:
        self.rests = rests
        self.number = len(rests.all)
        self.known = known
        self.orphans: tuple[Orphan, ...]
        self.left: tuple[int, ...]
        self.fence: Fence
        self.cuts: tuple[int, ...]
        self.hanging: tuple[Hanging, ...]
        self.due: int
        self.size: int
        self.orphans, self.left, self.fence, self.cuts, self.due, self.size, self.hanging = known
        self.own = rests.own.setdefault(self.left, {})
        self.spent: dict[int, Rest] = {}

    def but(self, item: int, value: object) -> Rest:
        """The same with this instead of one item."""
        return self.rests.find((*self.known[:item], value, *self.known[item + 1 :]))

    def spend(self, budget: int) -> Rest:
        spent = self.spent.get(budget)
        if spent is None:
            left = list(self.left)
            left[budget] -= 1
            spent = self.spent[budget] = self.but(LEFT, tuple(left))
        return spent


class Rests:
    def __init__(self) -> None:
        self.all: list[Rest] = []
        self.known: dict[Around, Rest] = {}
        self.own: dict[tuple[int, ...], dict[Step, list[Step]]] = {}
        """By what is left of the bounds, then by node and place: what that node can do of itself"""

    def find(self, known: Around) -> Rest:
        rest = self.known.get(known)
        if rest is None:
            rest = self.known[known] = Rest(self, known)
            self.all.append(rest)
        return rest


class World:
    __slots__ = (
        "box",
        "failure",
        "fence_repeated",
        "limit",
        "places",
        "rest",
        "size_forgotten",
    )

    def __init__(self, places: list[int], box: int, rest: Rest) -> None:
        self.places = places  # the number of each node's place
        self.box = box  # the number of the mailbox
        self.rest = rest
        self.fence_repeated = False  # by the step that led here
        self.limit = 0  # k of what that step granted, where k may change
        self.size_forgotten = False  # a token of that step has a k that nobody asked for
        self.failure = ""  # of a handler in that step

    def copy(self) -> World:
        return World(self.places[:], self.box, self.rest)

    def spend(self, budget: int) -> None:
        self.rest = self.rest.spend(budget)

    def standing(self, client: int) -> int:
        """As it asked or changed it, whatever its node believes."""
        changed = self.rest.left[kinds.LEFT_REQUESTS + client - 1]
        return -changed if changed < 0 else client

    def changes(self, client: int, standing: int) -> None:
        """Its request has another priority from now on; standing 0: no matter which."""
        left = list(self.rest.left)
        left[kinds.LEFT_REQUESTS + client - 1] = -standing
        self.rest = self.rest.but(LEFT, tuple(left))

    def writes(self, i: int) -> Writes | None:
        """What the disk of this node is to write; None if it does not hang."""
        for node, writes in self.rest.hanging:
            if node == i:
                return writes
        return None

    def set_writes(self, i: int, writes: Writes | None) -> None:
        if writes == self.writes(i):
            return
        hanging = [one for one in self.rest.hanging if one[0] != i]
        if writes is not None:
            hanging.append((i, writes))
            hanging.sort(key=node_of)
        self.rest = self.rest.but(HANGING, tuple(hanging))


class Worlds:
    """Worlds as numbers: that of the row of places, and that of the mailbox with the rest, as a
    pair. A step changes most of them, so that a tree of pairs would be slower."""

    def __init__(self) -> None:
        self.rests = Rests()
        self.rows: list[tuple[int, ...]] = []  # of the nodes' places
        self.row_numbers: dict[tuple[int, ...], int] = {}
        self.arounds = array("q")  # mailbox and rest, as a pair
        self.around_numbers: dict[int, int] = {}

    def number(self, world: World) -> int:
        places = tuple(world.places)
        row = self.row_numbers.get(places, -1)
        if row < 0:
            row = self.row_numbers[places] = len(self.rows)
            self.rows.append(places)
        around = world.box * SPREAD + world.rest.number
        other = self.around_numbers.get(around, -1)
        if other < 0:
            other = self.around_numbers[around] = len(self.arounds)
            self.arounds.append(around)
        return row * SPREAD + other

    def parts(self, state: int) -> list[int]:
        """The places, the mailbox and the rest."""
        around = self.arounds[state % SPREAD]
        return [*self.rows[state // SPREAD], around // SPREAD, around % SPREAD]

    def joined(self, parts: list[int]) -> World:
        return World(parts[:-2], parts[-2], self.rests.all[parts[-1]])


def node_of(hanging: Hanging) -> int:
    return hanging[0]


def without(row: tuple[int, ...], number: int) -> tuple[int, ...]:
    return tuple([other for other in row if other != number])
