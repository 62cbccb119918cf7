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

from meshlock.algorithms.actor import Frozen, Message
from meshlock.check.explorer import Violation
from meshlock.check.model import Act, Model
from meshlock.check.system import System

Level = tuple[int, int]
"""A height without its node's number."""


def applies(system: System) -> bool:
    """Are there heights or counts, do the links stay, keep steps their order, and ranks theirs?"""
    node = system.handlers.nodes[0]
    if system.setup.raises and node.patience() > 0:
        return False
    return (
        bool(node.reductions.heights or node.reductions.counts)
        and not system.changing
        and system.fifo
    )


class Values:
    """The heights, counts and ranks in something: in a node, a message or a whole state."""

    __slots__ = ("counts", "heights", "ranks")

    def __init__(self) -> None:
        self.heights: set[Level] = set()
        self.counts: set[int] = set()
        self.ranks: set[int] = set()

    def add(self, other: Values) -> None:
        self.heights |= other.heights
        self.counts |= other.counts
        self.ranks |= other.ranks


class Scale:
    """What each value becomes."""

    __slots__ = ("counts", "heights", "ranks")

    def __init__(self) -> None:
        self.heights: dict[Level, int] = {}
        self.counts: dict[int, int] = {}
        self.ranks: dict[int, int] = {}

    def changes_nothing(self) -> bool:
        return (
            all(height[1] == level for height, level in self.heights.items())
            and all(old == new for old, new in self.counts.items())
            and all(old == new for old, new in self.ranks.items())
        )

    def of(self, values: Values) -> tuple[int, ...]:
        """What these become, in one row: all that their owner has to do with the scale."""
        return (
            *[self.heights[height] for height in values.heights],
            *[self.counts[count] for count in values.counts],
            *[self.ranks[rank] for rank in values.ranks],
        )


class Compared(Model):
    """The same system with one state for all whose values compare alike."""

    def __init__(self, system: System) -> None:
        super().__init__()
        self.system = system
        self.labels = system.labels
        self.faults = system.faults
        self.patience = system.handlers.nodes[0].patience()
        priorities = system.standings.priorities[1:]
        unit = self.patience // system.setup.units
        self.lowest = min(priorities) * unit
        self.highest = max(priorities) * unit + self.patience - 1
        self.in_locals: list[dict[int, Values]] = [{} for _ in range(system.size)]
        self.in_messages: dict[int, Values] = {}
        self.scaled_locals: list[dict[tuple[int, tuple[int, ...]], int]] = [
            {} for _ in range(system.size)
        ]
        self.scaled_messages: dict[tuple[int, tuple[int, ...]], int] = {}

    def initial(self) -> int:
        return self.alike(self.system.initial())

    def expand(self, state: int) -> None:
        self.system.expand(state)
        self.successors.clear()
        for successor in self.system.successors:
            self.successors.append(self.alike(successor))

    def explain(self, state: int, label: int) -> list[Act]:
        return self.system.explain(state, label)

    def waiting(self, state: int) -> list[int]:
        return self.system.waiting(state)

    def owed(self, state: int) -> list[int]:
        return self.system.owed(state)

    def pays(self, state: int, label: int) -> int:
        return self.system.pays(state, label)

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
        """The state that stands for all that compare like this one."""
        system = self.system
        tree = system.tree
        row = tree.unpack(state)[tree.leaves :]
        scale = self.scale(self.values(row))
        if scale.changes_nothing():
            return state
        for i in range(system.size):
            row[i] = self.place(i, row[i], scale)
        return tree.pack(row)

    def values(self, row: list[int]) -> Values:
        system = self.system
        found = Values()
        for i in range(system.size):
            place = system.places.look(i, row[i])
            found.add(self.values_of_local(i, place.local))
            for _, line in place.inbox:
                for number in line:
                    found.add(self.values_of_message(number))
        return found

    def values_of_local(self, i: int, local: int) -> Values:
        found = self.in_locals[i].get(local)
        if found is None:
            found = Values()
            self.in_locals[i][local] = found
            node = self.system.handlers.nodes[i]
            for name, value in zip(
                node.variables, self.system.handlers.locals[i][local], strict=True
            ):
                if name in node.reductions.heights:
                    collect(value, found.heights)
                elif name in node.reductions.counts and isinstance(value, int):
                    found.counts.add(value)
                elif name in node.reductions.ranks:
                    collect_ranks(value, node.reductions.ranks[name], found.ranks)
        return found

    def values_of_message(self, number: int) -> Values:
        found = self.in_messages.get(number)
        if found is None:
            found = Values()
            self.in_messages[number] = found
            message = self.system.handlers.messages[number]
            ranks = message.ranks()
            for name, value in zip(message.fields, message.freeze()[1:], strict=True):
                if name in message.reductions.heights:
                    collect(value, found.heights)
                elif name in message.reductions.counts and isinstance(value, int):
                    found.counts.add(value)
                elif name in ranks:
                    collect_ranks(value, (), found.ranks)
        return found

    def scale(self, found: Values) -> Scale:
        scale = Scale()
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

    def close_gaps(self, found: Values, scale: Scale) -> None:
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
        key = (local, scale.of(self.values_of_local(i, local)))
        known = self.scaled_locals[i].get(key, -1)
        if known < 0:
            known = self.system.handlers.local(
                i, self.scaled(i, self.system.handlers.locals[i][local], scale)
            )
            self.scaled_locals[i][key] = known
        return known

    def scaled(self, i: int, frozen: Frozen, scale: Scale) -> Frozen:
        node = self.system.handlers.nodes[i]
        values: list[object] = []
        for name, value in zip(node.variables, frozen, strict=True):
            if name in node.reductions.heights:
                value = put(value, scale.heights)
            elif name in node.reductions.counts and isinstance(value, int):
                value = scale.counts[value]
            elif name in node.reductions.ranks:
                value = put_ranks(value, node.reductions.ranks[name], scale.ranks)
            values.append(value)
        return tuple(values)

    def message(self, number: int, scale: Scale) -> int:
        key = (number, scale.of(self.values_of_message(number)))
        known = self.scaled_messages.get(key, -1)
        if known < 0:
            known = self.system.handlers.message(
                self.scaled_message(self.system.handlers.messages[number], scale)
            )
            self.scaled_messages[key] = known
        return known

    def scaled_message(self, message: Message, scale: Scale) -> Message:
        ranks = message.ranks()
        values: list[object] = []
        for name, value in zip(message.fields, message.freeze()[1:], strict=True):
            if name in message.reductions.heights:
                value = put(value, scale.heights)
            elif name in message.reductions.counts and isinstance(value, int):
                value = scale.counts[value]
            elif name in ranks:
                value = put_ranks(value, (), scale.ranks)
            values.append(value)
        twin: Message = type(message)(message.receiver, *values)
        twin.sender = message.sender
        return twin


def is_row(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(part, int) for part in value)


def is_height(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 3 and is_row(value)


def collect(value: object, found: set[Level]) -> None:
    """All heights in a value, however deep."""
    if isinstance(value, tuple):
        if is_height(value):
            found.add((value[0], value[1]))
        else:
            for part in value:
                collect(part, found)


def put(value: object, levels: dict[Level, int]) -> object:
    """The value with its heights as they become."""
    if isinstance(value, tuple):
        if is_height(value):
            return (value[0], levels[value[0], value[1]], value[2])
        return tuple([put(part, levels) for part in value])
    return value


def collect_ranks(value: object, at: tuple[int, ...], found: set[int]) -> None:
    """A rank, or those at these positions of each row in a value."""
    if isinstance(value, int):
        found.add(value)
    elif isinstance(value, tuple) and value:
        if is_row(value):
            found.update([value[place] for place in at])
        else:
            for row in value:
                collect_ranks(row, at, found)


def put_ranks(value: object, at: tuple[int, ...], ranks: dict[int, int]) -> object:
    """The value with its ranks as they become."""
    if isinstance(value, int):
        return ranks[value]
    if isinstance(value, tuple) and value:
        if is_row(value):
            return tuple([ranks[part] if place in at else part for place, part in enumerate(value)])
        return tuple([put_ranks(row, at, ranks) for row in value])
    return value
