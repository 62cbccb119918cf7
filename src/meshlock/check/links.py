"""What is known of the links in one state: numbers, so that a state can hold it."""

from __future__ import annotations

from meshlock.properties.remembered import NOTHING, Memory

Pair = tuple[int, int]  # a link, the smaller node first
Step = tuple[int, int, int]  # what happens to a link: the kind, one end, the other
FrozenWire = tuple[int, int, bool, tuple[bool, ...], tuple[tuple[int, ...], ...]]


class Wire:
    """A link whose two ends learn by themselves what becomes of it.

    Lists have an item for each end, that of the smaller node first. Messages are those that
    are for this end.
    """

    def __init__(self, pair: Pair, alive: bool) -> None:
        self.pair = pair
        self.alive = alive  # the connection that the ends see, or one of them, still stands
        self.sees = [alive, alive]  # takes the link to be up
        self.custody: list[tuple[int, ...]] = [(), ()]  # neither arrived nor lost
        self.ahead: list[tuple[int, ...]] = [(), ()]  # sent to an end that is not up yet

    def side(self, node: int) -> int:
        return 0 if node == self.pair[0] else 1

    def agreed(self) -> bool:
        """Do both ends take it to be the same, with nothing left over?"""
        nothing = not (self.custody[0] or self.custody[1] or self.ahead[0] or self.ahead[1])
        return self.sees[0] == self.sees[1] and nothing

    def freeze(self) -> FrozenWire:
        one, other = self.pair
        return one, other, self.alive, tuple(self.sees), (*self.custody, *self.ahead)


def thaw(frozen: FrozenWire) -> Wire:
    one, other, alive, sees, messages = frozen
    wire = Wire((one, other), alive)
    wire.sees = list(sees)
    wire.custody = list(messages[:2])
    wire.ahead = list(messages[2:])
    return wire


class Links:
    """Which links there are, how many changes have been, what entry is due, and, where ties are
    judged, what there is to remember of the way here.

    ``wires`` has those links about which there is more to say than that they are there or
    not; they are only there where the ends learn of changes by themselves.
    """

    def __init__(
        self,
        links: frozenset[Pair],
        changed: int,
        due: int,
        wires: tuple[FrozenWire, ...] = (),
        memory: Memory = NOTHING,
    ) -> None:
        self.links = links
        self.changed = changed
        self.due = due
        self.wires = wires
        self.memory = memory
        self.steps: list[Step] | None = None  # possible now; found when they are first wanted

    def key(self) -> tuple[object, ...]:
        return self.links, self.changed, self.due, self.wires, self.memory

    def but(self, due: int, memory: Memory | None = None) -> Links:
        """The same with another entry due, and with this memory if there is one."""
        kept = self.memory if memory is None else memory
        return Links(self.links, self.changed, due, self.wires, kept)

    def wire(self, pair: Pair) -> Wire:
        for frozen in self.wires:
            if (frozen[0], frozen[1]) == pair:
                return thaw(frozen)
        return Wire(pair, pair in self.links)

    def put(self, wire: Wire) -> Links:
        """The same with this link as it is now."""
        others = [frozen for frozen in self.wires if (frozen[0], frozen[1]) != wire.pair]
        there = wire.pair in self.links
        if not (wire.agreed() and wire.sees[0] == wire.alive == there):
            others.append(wire.freeze())
            others.sort()
        return Links(self.links, self.changed, self.due, tuple(others), self.memory)


def pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)


def parts(size: int, links: frozenset[Pair]) -> list[int]:
    """For each node the lowest that it can reach: equal for nodes of one part."""
    part = list(range(size))
    grown = True
    while grown:
        grown = False
        for one, other in links:
            if part[one] != part[other]:
                part[one] = part[other] = min(part[one], part[other])
                grown = True
    return part


def connected(size: int, links: frozenset[Pair]) -> bool:
    return max(parts(size, links)) == 0
