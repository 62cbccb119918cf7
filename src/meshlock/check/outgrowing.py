"""States that outgrow memory: the latest at hand, all of them on disk, in order of discovery.

A state is one integer (:mod:`.packing`), on disk too: nothing is hashed, and no two states are
taken for one. Whether a state was seen before is asked of those at hand first. Whatever is not
among them is a *candidate*; when a level of the search is over, or too much is at hand, all that
lies on disk passes by once, and the candidates that it does not contain are new. So the disk is
read from one end to the other, once per level, and never here and there. As long as nothing had to
leave memory, nothing is read at all. In memory stay, besides, the parts that states consist of: the
model's tables.

The same states come in the same order as in a search that has them all in memory, so counts and
counterexamples are the same, also where ``most`` ends it: what was expanded beyond that, before
candidates were looked for on disk, is taken back.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

from meshlock.check.disk import Row, Space
from meshlock.check.explorer import Adjacency, Explorer
from meshlock.check.helpers import Helpers
from meshlock.check.model import Fault, Model

CHUNK: Final = 1 << 16
"""States that are read from disk together."""
FEW: Final = 1 << 16
"""Fewer candidates are not worth a look at the disk, unless a level is over."""


class Outgrowing(Explorer):
    def __init__(
        self, model: Model, most: int, graph: bool, space: Space, helpers: Helpers | None = None
    ) -> None:
        super().__init__(model, most, graph, helpers)
        assert not model.numbered, "only the latest states have their numbers at hand"
        self.space = space
        self.stored = Row(space.folder, "q")  # all states,
        self.sources = Row(space.folder, "I")  # and beside each where it was reached from
        self.links = Row(space.folder, "I")  # the edges
        self.begins = Row(space.folder, "Q")  # where among them each state's begin
        self.away = 0  # states before this one are on disk only
        self.ahead = array("q")  # some states in a row, as they are asked for in their order
        self.ahead_of = 0  # the number of the first of them
        self.degrees = array("I")  # of the states expanded since the candidates were settled
        self.heads = array("q")  # where their transitions lead: a number, or -1 - the candidate
        self.first_found: dict[str, int] = {}  # in which state each property failed first
        self.begins.append(self.offsets)
        # Candidates, in order of discovery, none twice, and where they were reached from, stand
        # where other explorers have all states.
        self.keep(self.states, self.parents)

    def count(self) -> int:
        return self.stored.size

    def complete(self) -> bool:
        return self.expanded == self.count() and not (self.stopped or self.states)

    def state(self, number: int) -> int:
        return self.stored.at(number)

    def some(self, first: int, end: int) -> Sequence[int]:
        return self.stored.part(first, end)

    def parent(self, number: int) -> int:
        return self.sources.at(number)

    def close(self) -> None:
        super().close()
        for row in (self.stored, self.sources, self.links, self.begins):
            row.close()

    def adjacency(self) -> Adjacency:
        return self.links.view(), self.begins.view()

    def run(self, batch: int) -> bool:
        try:
            return super().run(batch)
        except OSError as error:
            self.stopped = self.space.trouble(error)
            return False

    def reached(self) -> int:
        here = self.expanded
        if here == self.level_end or self.crowded():
            self.settle()
        return self.count() if self.expanded == here else -1

    def following(self) -> int:
        at = self.expanded - self.ahead_of
        if not 0 <= at < len(self.ahead):
            self.ahead_of, at = self.expanded, 0
            self.ahead = self.stored.part(self.expanded, min(self.expanded + CHUNK, self.count()))
        return self.ahead[at]

    def note_degree(self, degree: int) -> None:
        super().note_degree(degree)
        self.degrees.append(degree)

    def number(self, here: int) -> None:
        numbers = self.numbers
        following = -1 - len(self.states)
        for state in self.model.successors:
            number = numbers.setdefault(state, following)
            if number == following:
                self.states.append(state)
                self.parents.append(here)
                following -= 1
            self.heads.append(number)

    def found(self, here: int, fault: Fault) -> None:
        self.first_found.setdefault(fault.name, here)
        super().found(here, fault)

    # -- from memory to disk -------------------------------------------------------------------

    def at_hand(self) -> int:
        return len(self.seen) + len(self.numbers)

    def crowded(self) -> bool:
        """Is it time to see which candidates are new?"""
        waiting = len(self.states)
        if self.at_hand() >= self.space.at_hand and waiting > 0:
            return True
        return waiting >= FEW and waiting >= self.most - self.count()

    def settle(self) -> None:
        """Number the candidates that are new, and note where transitions lead."""
        before = self.expanded
        old = self.on_disk()
        states, sources = self.fresh(old)
        if self.graph and self.expanded == before:
            self.note_edges(old)
        self.keep(states, sources)
        self.degrees, self.heads = array("I"), array("q")
        if self.at_hand() >= self.space.at_hand:
            self.seen.clear()
            self.numbers.clear()
            self.away = self.count()

    def keep(self, states: array[int], sources: array[int]) -> None:
        """These are new; there are no candidates any more."""
        self.sources.append(sources)
        self.stored.append(states)
        self.states, self.parents = array("q"), array("I")

    def on_disk(self) -> dict[int, int]:
        """The candidates that are not new, with their numbers."""
        old: dict[int, int] = {}
        wanted = set(self.states) if self.away > 0 else set()
        for start in range(0, self.away if wanted else 0, CHUNK):
            some = self.stored.part(start, min(start + CHUNK, self.away))
            found = wanted.intersection(some)
            if found and self.graph:
                old.update({state: start + k for k, state in enumerate(some) if state in found})
            else:
                old.update(dict.fromkeys(found, start))
        return old

    def fresh(self, old: dict[int, int]) -> tuple[array[int], array[int]]:
        """The candidates that are new, up to the state whose expansion reaches ``most``, and where
        they were reached from. What was expanded after that is taken back."""
        states, sources = array("q"), array("I")
        last = -1
        for k, state in enumerate(self.states):
            if state not in old:
                if 0 <= last < self.parents[k]:
                    break
                states.append(state)
                sources.append(self.parents[k])
                if self.count() + len(states) >= self.most:
                    last = self.parents[k]
        first = self.expanded - len(self.degrees)
        if last >= first:
            self.transitions -= sum(self.degrees[last + 1 - first :])
            self.expanded = last + 1
            for name, here in list(self.first_found.items()):
                if here > last:
                    del self.first_found[name], self.violations[name]
        return states, sources

    def note_edges(self, old: dict[int, int]) -> None:
        """Where transitions lead, by the numbers that states have, or will have at once."""
        numbers, following = self.numbers, self.count()
        for state in self.states:
            numbers[state] = old.get(state, following)
            following += numbers[state] == following
        edges, begins = array("I"), array("Q")
        before, at = self.links.size, 0
        first = self.expanded - len(self.degrees)
        for k, degree in enumerate(self.degrees):
            for head in self.heads[at : at + degree]:
                number = head if head >= 0 else numbers[self.states[-1 - head]]
                if number <= first + k:
                    self.backward += 1
                edges.append(number)
            at += degree
            begins.append(before + at)
        self.links.append(edges)
        self.begins.append(begins)
