"""Heights, counts and ranks compared, not absolute: so that what only grows can come round.

Some variables grow or fall for ever. Then no state would come again, no cycle could be found,
and repeated requests would never be explored to the end. But nobody looks at them
except to compare them with one another, so of all states in which these comparisons come
out alike, now and ever after, one is kept. Every step from one of them has its like from the
other, so nothing is gained or lost by this. An algorithm says which of its variables and
message fields hold such values (``heights``, ``counts`` and ``ranks`` of nodes and messages).

**Heights.** In Reverse Link and its kin a height is (h1, h2, id), and h2 falls with every hop
of the token. On a network whose links stay, the only new heights are one below that of the
token's last holder, which is below all others. So the different (h1, h2) are numbered 0, 1, 2
... from the lowest: the lowest minus one is again the lowest. Where links change, a raised
height is computed from its neighbours' and may fall between two others; then the distance
matters, and nothing is compared here.

**Counts** are copies of one number, which only grows, each as old as its place's knowledge of
it. A place takes over a larger one that it hears of, and the largest alone is ever added to. So,
where nothing else depends on them, they too are numbered from the lowest.

**Ranks** that are stamped: priority * patience - the count when the holder heard of the request. A
rank is compared with other ranks, and divided by the patience and then compared. On the axis of
ranks, a request not yet made is an interval: from a count c can come any rank from lowest *
patience - c to (highest + 1) * patience - 1 - c, and no other, with the priorities that are asked
for and the age that is allowed to what is fresh. What is still fresh ranks in the interval of the
count that it goes by, and will be in that of a larger one. The largest count is the lower end of
all; what grows is the distance from there to the older ones.

1. If all counts fall by a multiple of the patience and all ranks rise by it, every
   comparison comes out as before, and quotients differ by what they differed by. So the
   largest count is taken modulo the patience.
2. If nothing lies in a stretch of the axis, neither a rank nor an interval, nothing ever will:
   ranks are copied or come from intervals, and an interval is replaced by another, or is
   that of the largest count and falls. So whatever is above the stretch stays above whatever
   is below. If the stretch is as long as the patience, quotients across it differ, too. So all
   that is above may come down by a multiple of the patience that leaves it as long as that.

Where priorities change, a rank may pass over a stretch, and how long that is matters: then
nothing is compared.

What is left has no long stretches, and at most as many parts as there are nodes, requests
and messages on their way. A count that is far behind (a node that has not heard for long, whose
next request will be above all others) differs no more from one that is a little less behind.

A way that was found is told as it happens, with heights, counts and ranks as they are:
the steps are the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from meshlock.algorithms.actor import Frozen, Message, Reductions
from meshlock.check.explorer import Violation
from meshlock.check.plain import Plain
from meshlock.check.quotient import Quotient

Level = tuple[int, int]
"""A height without its node's number."""
Ranks = dict[str, tuple[int, ...]]
"""Which variables hold ranks, and where in each row of them."""


def applies(system: Plain) -> bool:
    """Are there heights or counts, do the links stay, keep steps their order, and ranks theirs?"""
    node = system.handlers.nodes[0]
    if system.setup.raises and node.patience() > 0:
        return False
    return (
        bool(node.reductions.heights or node.reductions.counts)
        and not system.changing
        and system.fifo
    )


class Scale:
    """What each height, count and rank becomes. ``noting``: what it was, and those that are met are
    noted."""

    __slots__ = ("counts", "heights", "noting", "ranks")

    def __init__(self, noting: bool) -> None:
        self.noting = noting
        self.heights: dict[Level, int] = {}
        self.counts: dict[int, int] = {}
        self.ranks: dict[int, int] = {}

    def add(self, other: Scale) -> None:
        self.heights.update(other.heights)
        self.counts.update(other.counts)
        self.ranks.update(other.ranks)

    def changes_nothing(self) -> bool:
        return (
            all(height[1] == level for height, level in self.heights.items())
            and all(old == new for old, new in self.counts.items())
            and all(old == new for old, new in self.ranks.items())
        )

    def of(self, met: Scale) -> tuple[int, ...]:
        """What these become, in one row: all that their owner has to do with the scale."""
        return (
            *[self.heights[height] for height in met.heights],
            *[self.counts[count] for count in met.counts],
            *[self.ranks[rank] for rank in met.ranks],
        )

    # -- what becomes of a value --------------------------------------------------------------

    def count(self, count: int) -> int:
        return self.counts.setdefault(count, count) if self.noting else self.counts[count]

    def rank(self, rank: int) -> int:
        return self.ranks.setdefault(rank, rank) if self.noting else self.ranks[rank]

    def with_heights(self, value: object) -> object:
        """All heights in a value, however deep."""
        if not isinstance(value, tuple):
            return value
        if len(value) == 3 and is_row(value):
            level = (value[0], value[1])
            if self.noting:
                self.heights[level] = value[1]
            return (value[0], self.heights[level], value[2])
        return tuple([self.with_heights(part) for part in value])

    def with_ranks(self, value: object, at: tuple[int, ...]) -> object:
        """A rank, or those at these positions of each row in a value."""
        if isinstance(value, int):
            return self.rank(value)
        if not isinstance(value, tuple) or not value:
            return value
        if is_row(value):
            return tuple([self.rank(part) if k in at else part for k, part in enumerate(value)])
        return tuple([self.with_ranks(row, at) for row in value])

    def on(self, names: Iterable[str], values: Frozen, about: Reductions, ranks: Ranks) -> Frozen:
        """What becomes of the values of these variables or fields."""
        found: list[object] = []
        for name, value in zip(names, values, strict=True):
            if name in about.heights:
                value = self.with_heights(value)
            elif name in about.counts and isinstance(value, int):
                value = self.count(value)
            elif name in ranks:
                value = self.with_ranks(value, ranks[name])
            found.append(value)
        return tuple(found)


class Compared(Quotient):
    """Those are alike whose values compare alike."""

    def __init__(self, system: Plain) -> None:
        super().__init__(system)
        self.patience = system.handlers.nodes[0].patience()
        priorities = system.standings.priorities[1:]
        unit = self.patience // system.setup.units
        self.lowest = min(priorities) * unit
        self.highest = max(priorities) * unit + self.patience - 1
        self.in_locals: list[dict[int, Scale]] = [{} for _ in range(system.size)]
        self.in_messages: dict[int, Scale] = {}
        self.scaled_locals: list[dict[tuple[int, tuple[int, ...]], int]] = [
            {} for _ in range(system.size)
        ]
        self.scaled_messages: dict[tuple[int, tuple[int, ...]], int] = {}

    def as_it_is(self, found: Violation) -> Violation:
        """The way to a violation through the states of the system itself."""
        system = self.system
        states = [system.initial()]
        for label in found.labels[: len(found.states) - 1]:
            system.expand(states[-1])
            states.append(system.successors[system.labels.index(label)])
        system.faults.clear()
        told = Violation(found.name, found.text, states, found.labels)
        told.loop = found.loop
        return told

    # -- values ---------------------------------------------------------------------------------

    def alike(self, state: int) -> int:
        system = self.system
        tree = system.tree
        row = tree.unpack(state)[tree.leaves :]
        scale = self.scale(self.values(row))
        if scale.changes_nothing():
            return state
        for i in range(system.size):
            row[i] = self.place(i, row[i], scale)
        return tree.pack(row)

    def values(self, row: list[int]) -> Scale:
        """All that there are in a state."""
        found = Scale(True)
        for i in range(self.system.size):
            place = self.system.places.look(i, row[i])
            found.add(self.in_local(i, place.local))
            for _, line in place.inbox:
                for number in line:
                    found.add(self.in_message(number))
        return found

    def in_local(self, i: int, local: int) -> Scale:
        found = self.in_locals[i].get(local)
        if found is None:
            found = self.in_locals[i][local] = Scale(True)
            self.scaled(i, local, found)
        return found

    def in_message(self, number: int) -> Scale:
        found = self.in_messages.get(number)
        if found is None:
            found = self.in_messages[number] = Scale(True)
            self.scaled_message(self.system.handlers.messages[number], found)
        return found

    def scale(self, found: Scale) -> Scale:
        scale = Scale(False)
        for height in sorted(found.heights):
            scale.heights[height] = len(scale.heights)
        if self.patience > 0:
            self.close_gaps(found, scale)
        else:
            for count in sorted(found.counts):
                scale.counts[count] = len(scale.counts)
            for rank in found.ranks:
                scale.ranks[rank] = rank
        return scale

    def close_gaps(self, found: Scale, scale: Scale) -> None:
        """Stamped ranks: see above, 1 and 2."""
        patience = self.patience
        intervals = [(self.lowest - count, self.highest - count, True) for count in found.counts]
        parts = sorted([*intervals, *[(rank, rank, False) for rank in found.ranks]])
        rise = max(found.counts) // patience * patience
        end = parts[0][1]
        for first, last, ahead in parts:
            if first - end >= 2 * patience:
                rise -= (first - end - patience) // patience * patience
            end = max(end, last)
            if ahead:
                count = self.lowest - first
                scale.counts[count] = count - rise
            else:
                scale.ranks[first] = first + rise

    # -- putting them in ------------------------------------------------------------------------

    def place(self, i: int, number: int, scale: Scale) -> int:
        system = self.system
        place = system.places.look(i, number)
        inbox = tuple(
            [
                (source, tuple([self.message(message, scale) for message in line]))
                for source, line in place.inbox
            ]
        )
        local = self.local(i, place.local, scale)
        return system.places.number(i, local, place.asked, place.inside, place.waiting, inbox)

    def local(self, i: int, local: int, scale: Scale) -> int:
        key = (local, scale.of(self.in_local(i, local)))
        known = self.scaled_locals[i].get(key, -1)
        if known < 0:
            known = self.system.handlers.local(i, self.scaled(i, local, scale))
            self.scaled_locals[i][key] = known
        return known

    def scaled(self, i: int, local: int, scale: Scale) -> Frozen:
        node, values = self.system.handlers.nodes[i], self.system.handlers.locals[i][local]
        return scale.on(node.variables, values, node.reductions, node.reductions.ranks)

    def message(self, number: int, scale: Scale) -> int:
        key = (number, scale.of(self.in_message(number)))
        known = self.scaled_messages.get(key, -1)
        if known < 0:
            message = self.system.handlers.messages[number]
            values = self.scaled_message(message, scale)
            known = self.twin(message, message.sender, message.receiver, values)
            self.scaled_messages[key] = known
        return known

    def scaled_message(self, message: Message, scale: Scale) -> Frozen:
        ranks: Ranks = dict.fromkeys(message.ranks(), ())
        return scale.on(message.fields, message.freeze()[1:], message.reductions, ranks)


def is_row(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(part, int) for part in value)
