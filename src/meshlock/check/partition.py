"""By what several processes share the states of a search.

An *aspect* of a state is an item of what is in one of its places, or an item of that item: whom a
node takes for the holder, how often it has asked, which links are up. A state belongs to the
process that its aspects say. Steps should seldom change them, because a state that changes hands
costs both sides; and at every depth everybody should have as many states, because a level is over
when the last one is done with it.

Both are estimated from states that the search has met, and from random walks that go on from there,
to the end if they come so far: most states lie in the middle of the way. Walks do not meet all
states alike, though. So whose a state is should hang on no aspect alone: then a value that is more
frequent than it seemed is so with everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, pi, sin
from random import Random
from typing import Any, Final, cast

from meshlock.check.model import Part
from meshlock.check.packing import SPREAD
from meshlock.check.system import System

WALKS: Final = 16
WALKED: Final = 400
"""States of all walks together."""
MET: Final = 150
"""States that the search has met."""
BANDS: Final = 7
"""The states that were met, and parts of the way from where the walks begin to where they end."""
SENDING: Final = 0.8
RECEIVING: Final = 0.6
"""What it costs to send a state on, and to receive one, in steps."""
INTRODUCING: Final = 4.0
"""What it costs each side besides if half of the state is new to the receiver."""
NESTED: Final = 24
"""Longer items are not looked into: they are rows of things, not variables."""
DOUBT: Final = 0.22
"""How much more frequent a value may be than it seems."""
FREQUENT: Final = 0.9
"""A value that is more frequent says little about whose a state should be."""
MOST: Final = 4
GAIN: Final = 0.99
"""Another aspect must make the search at least so much shorter."""


class Aspect:
    """An item of what is in a place of states, or item ``within`` of that item if not -1."""

    def __init__(self, slot: int, item: int, within: int) -> None:
        self.slot = slot
        self.item = item
        self.within = within
        self.shares: dict[Any, int] = {}  # what the values that are known add to the owner

    def value(self, part: Part) -> Any:
        items = cast("tuple[Any, ...]", part)
        found = items[self.item] if self.item < len(items) else ()
        if self.within < 0:
            return found
        nested = isinstance(found, tuple) and self.within < len(found)
        return found[self.within] if nested else ()

    def share(self, part: Part, count: int) -> int:
        """What it adds to the number of the owner: the same in all processes."""
        return self.share_of(self.value(part), count)

    def share_of(self, value: Any, count: int) -> int:
        known = self.shares.get(value, -1)
        return known if known >= 0 else hash((self.slot, self.item, value)) % count


class Sample:
    """Some states, each followed by its successors, in one row. ``met``: those of the search."""

    def __init__(self, model: System, met: Sequence[int]) -> None:
        self.model = model
        late = met[len(met) // 2 :]
        self.introducing = INTRODUCING * (halves(met) - halves(met[: len(met) // 2])) / len(late)
        self.columns: list[list[int]] = [[] for _ in model.parts(met[0])]  # parts, by place
        self.begins: list[int] = [0]  # of each state with its successors
        self.bands: list[int] = []  # of each state
        for state in late[:: max(1, len(late) // MET)]:
            self.expand(state, 0)
        self.walk(list(late[:: max(1, len(late) // WALKS)]))
        self.meanings: list[dict[int, Part]] = [
            {part: model.meaning(slot, part) for part in set(column)}
            for slot, column in enumerate(self.columns)
        ]
        sizes = [0] * BANDS
        for band in self.bands:
            sizes[band] += 1
        # Levels grow and shrink again.
        heights = [0.5] + [sin(pi * (k + 0.5) / (BANDS - 1)) ** 2 for k in range(BANDS - 1)]
        self.weights = [heights[band] / max(1, size) for band, size in enumerate(sizes)]

    def walk(self, walkers: list[int]) -> None:
        random, first, steps = Random(1), len(self.bands), 0
        while walkers and len(self.bands) - first < WALKED:
            following: list[int] = []
            for state in walkers:
                self.expand(state, steps)
                if self.model.successors:
                    following.append(random.choice(self.model.successors))
            walkers = following
            steps += 1
        for row in range(first, len(self.bands)):
            self.bands[row] = 1 + (BANDS - 1) * self.bands[row] // steps

    def expand(self, state: int, band: int) -> None:
        self.model.expand(state)
        self.note(state)
        for after in self.model.successors:
            self.note(after)
        self.begins.append(len(self.columns[0]))
        self.bands.append(band)

    def note(self, state: int) -> None:
        for slot, part in enumerate(self.model.parts(state)):
            self.columns[slot].append(part)

    def aspects(self) -> list[Aspect]:
        found: list[Aspect] = []
        for slot, column in enumerate(self.columns):
            items = cast("tuple[Any, ...]", self.meanings[slot][column[0]])
            for item, inside in enumerate(items):
                found.append(Aspect(slot, item, -1))
                if isinstance(inside, tuple) and len(inside) <= NESTED:
                    found += [Aspect(slot, item, within) for within in range(len(inside))]
        return found

    def candidates(self, count: int) -> list[Aspect]:
        """Aspects that tell states apart and have few values: of many, others may be to come."""
        found: list[Aspect] = []
        for by in self.aspects():
            values, column = self.values(by), self.columns[by.slot]
            loads: dict[Any, float] = {}
            for row, band in enumerate(self.bands):
                value = values[column[self.begins[row]]]
                loads[value] = loads.get(value, 0.0) + self.weights[band]
            rare = max(loads.values()) < FREQUENT * sum(loads.values())
            if rare and len(loads) <= count:
                found.append(by)
        return found

    def values(self, by: Aspect) -> dict[int, Any]:
        """Of all parts that were met in its place."""
        return {part: by.value(meaning) for part, meaning in self.meanings[by.slot].items()}

    def added(self, by: Aspect, before: list[int], count: int) -> list[int]:
        """What an aspect adds to whose all these states are. Its values are dealt out, the most
        frequent first, each so that the busiest is left with least."""
        column, values = self.columns[by.slot], self.values(by)
        loads: dict[Any, list[float]] = {}
        for row, band in enumerate(self.bands):
            at = self.begins[row]
            value = values[column[at]]
            if value not in loads:
                loads[value] = [0.0] * count
            loads[value][before[at]] += self.weights[band] * (self.begins[row + 1] - at - 1)
        by.shares.clear()
        total = [0.0] * count
        for value in sorted(loads, key=lambda value: -sum(loads[value])):
            load, best, least = loads[value], 0, inf
            for share in range(count):
                busiest = max([total[k] + load[k - share] for k in range(count)])
                if busiest < least:
                    best, least = share, busiest
            by.shares[value] = best
            for k in range(count):
                total[k] += load[k - best]
        adds = {part: by.share_of(value, count) for part, value in values.items()}
        return [adds[part] for part in column]

    def cost(self, together: list[Aspect], count: int) -> float:
        """How long the search takes if states are shared by these: in each band as long as the
        busiest. Beside that, what it takes if some value of an aspect is all there is."""
        owners = [0] * len(self.columns[0])
        parts: list[list[int]] = []
        for by in together:
            added = self.added(by, owners, count)
            owners = [(owner + added[k]) % count for k, owner in enumerate(owners)]
            parts.append(added)
        worst = max([self.longest(owners, count, part) for part in parts])
        return (1 - DOUBT) * self.longest(owners, count, [0] * len(owners)) + DOUBT * worst

    def longest(self, owners: list[int], count: int, parts: list[int]) -> float:
        """In each part of each band as long as the busiest."""
        sending, receiving = SENDING + self.introducing, RECEIVING + self.introducing
        loads = [0.0] * (BANDS * count * count)
        for row, band in enumerate(self.bands):
            at, end = self.begins[row], self.begins[row + 1]
            weight, first = self.weights[band], (band * count + parts[at]) * count
            home = owners[at]
            busy = float(end - at - 1)
            for k in range(at + 1, end):
                if owners[k] != home:
                    busy += sending
                    loads[first + owners[k]] += receiving * weight
            loads[first + home] += busy * weight
        return sum([max(loads[k : k + count]) for k in range(0, len(loads), count)])


def halves(states: Sequence[int]) -> int:
    """How many different halves they have."""
    return len({state // SPREAD for state in states}) + len({state % SPREAD for state in states})


def partition(model: System, met: Sequence[int], count: int) -> list[Aspect]:
    """The best aspect by itself, then whichever makes that better."""
    sample = Sample(model, met)
    chosen: list[Aspect] = []
    aspects, least = sample.candidates(count) or sample.aspects(), inf
    better = True
    while better and len(chosen) < MOST:
        better, before = False, chosen
        for by in aspects:
            if by not in before:
                cost = sample.cost([*before, by], count)
                if cost < least:
                    chosen, least, better = [*before, by], cost, True
        least *= GAIN
    sample.cost(chosen, count)  # so that they add what belongs together
    return chosen
