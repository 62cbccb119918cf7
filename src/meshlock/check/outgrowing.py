"""Searches whose states outgrow memory, by one process or by several: see :mod:`.disk`.

An explorer of this kind sees the same states in the same order as one that has them all in memory,
so its counts and its counterexamples are the same, also where ``most`` ends it: what was expanded
beyond that, before candidates were looked for on disk, is taken back.
"""

from __future__ import annotations

from array import array
from typing import Final

from meshlock.check.disk import Row, Space, Store
from meshlock.check.explorer import Adjacency, Explorer
from meshlock.check.model import Fault, Model
from meshlock.check.partition import Aspect
from meshlock.check.system import System
from meshlock.check.worker import SHIFT, Batch, Worker

LABEL: Final = 32
"""A source is the number of a state, shifted by this, plus the label of the step from there."""
NEW: Final = 1 << 60
CANDIDATE: Final = -1
SENT: Final = -2
"""In place of a number. A state of somebody else has this, less the level in which it was sent."""
FEW: Final = 1 << 16
"""Fewer candidates are not worth a look at the disk, unless a level is over."""


class Outgrowing(Explorer):
    def __init__(self, model: Model, most: int, graph: bool, space: Space) -> None:
        super().__init__(model, most, graph)
        assert not model.numbered, "only the latest states have their numbers at hand"
        self.room = space.at_hand
        self.store = Store(space, graph)
        self.links = Row(space.folder, "I")  # the edges, on disk
        self.begins = Row(space.folder, "Q")  # where among them each state's begin
        self.degrees = array("I")  # of the states expanded since the candidates were settled
        self.heads = array("q")  # where their transitions lead: a number, or -1 - the candidate
        self.first_found: dict[str, int] = {}  # in which state each property failed first
        self.begins.append(self.offsets)
        self.store.candidates, self.states = self.states, array("q")
        self.store.origins.append(0)
        self.store.settle(1)

    def count(self) -> int:
        return self.store.states.size

    def complete(self) -> bool:
        return self.expanded == self.count() and not (self.stopped or self.store.candidates)

    def state(self, number: int) -> int:
        return self.store.states.at(number)

    def close(self) -> None:
        self.store.close()
        self.links.close()
        self.begins.close()

    def adjacency(self) -> Adjacency:
        return self.links.view(), self.begins.view()

    def run(self, batch: int) -> bool:
        try:
            return super().run(batch)
        except OSError as error:
            self.stopped = self.store.space.trouble(error)
            return False

    def reached(self) -> int:
        here = self.expanded
        if here == self.level_end or self.crowded():
            self.settle()
        return self.count() if self.expanded == here else -1

    def following(self) -> int:
        return self.store.state(self.expanded)

    def collect(self, here: int) -> None:
        seen, labels = self.seen, self.model.labels
        for k, state in enumerate(self.model.successors):
            if state not in seen:
                seen.add(state)
                self.offer(state, (here << LABEL) + labels[k])
        self.degrees.append(len(self.model.successors))

    def number(self, here: int) -> None:
        numbers, labels = self.numbers, self.model.labels
        following = -1 - len(self.store.candidates)
        for k, state in enumerate(self.model.successors):
            number = numbers.setdefault(state, following)
            if number == following:
                self.offer(state, (here << LABEL) + labels[k])
                following -= 1
            self.heads.append(number)
        self.degrees.append(len(self.model.successors))

    def offer(self, state: int, source: int) -> None:
        self.store.candidates.append(state)
        self.store.origins.append(source)

    def found(self, here: int, fault: Fault) -> None:
        self.first_found.setdefault(fault.name, here)
        super().found(here, fault)

    def source(self, number: int) -> tuple[int, int]:
        return divmod(self.store.sources.at(number), 1 << LABEL)

    # -- from memory to disk -------------------------------------------------------------------

    def crowded(self) -> bool:
        """Is it time to see which candidates are new?"""
        waiting = len(self.store.candidates)
        if len(self.seen) + len(self.numbers) >= self.room and waiting > 0:
            return True
        return waiting >= FEW and waiting >= self.most - self.store.states.size

    def settle(self) -> None:
        """Number the candidates that are new, and note where transitions lead."""
        store, before = self.store, self.expanded
        store.look(0)
        new = self.cut()
        if self.graph and self.expanded == before:
            store.name(self.numbers)
            self.note_edges()
        store.settle(new)
        self.degrees, self.heads = array("I"), array("q")
        if len(self.seen) + len(self.numbers) >= self.room:
            self.seen.clear()
            self.numbers.clear()
            store.leave()

    def cut(self) -> int:
        """How many of the new states there are when ``most`` is reached. What was expanded after
        that is taken back."""
        store = self.store
        first = self.expanded - len(self.degrees)
        new, known = 0, store.states.size
        last = -1  # the state whose expansion reaches it
        for k, state in enumerate(store.candidates):
            if state not in store.old:
                source = store.origins[k] >> LABEL
                if 0 <= last < source:
                    break
                new += 1
                if known + new >= self.most:
                    last = source
        if last < first:
            return new
        self.transitions -= sum(self.degrees[last + 1 - first :])
        self.expanded = last + 1
        for name, here in list(self.first_found.items()):
            if here > last:
                del self.first_found[name], self.violations[name]
        return new

    def note_edges(self) -> None:
        numbers, candidates = self.numbers, self.store.candidates
        edges, begins = array("I"), array("Q")
        before, at = self.links.size, 0
        first = self.expanded - len(self.degrees)
        for k, degree in enumerate(self.degrees):
            for _ in range(degree):
                head = self.heads[at]
                number = head if head >= 0 else numbers[candidates[-1 - head]]
                if number <= first + k:
                    self.backward += 1
                edges.append(number)
                at += 1
            begins.append(before + at)
        self.links.append(edges)
        self.begins.append(begins)


class OutgrowingWorker(Worker):
    """It keeps no transitions, but knows whether some lead back up: to a state of its own by the
    number of that, to another's by sending that once in each level."""

    def __init__(
        self, model: System, me: int, by: list[Aspect], processes: int, most: int, space: Space
    ) -> None:
        self.store = Store(space, False)
        self.room = space.at_hand
        super().__init__(model, me, by, processes, most, False)
        model.attach(self.numbers, self.numbers)
        self.settle()
        self.level_end = self.count()
        self.depth = 0

    def count(self) -> int:
        return self.store.states.size

    def state(self, number: int) -> int:
        return self.store.state(number)

    def following(self) -> int:
        return self.store.state(self.expanded)

    def parent(self, number: int) -> int:
        return self.store.sources.at(number)

    def keep(self, state: int, parent: int) -> int:
        self.numbers[state] = CANDIDATE
        self.store.candidates.append(state)
        self.store.origins.append(parent)
        return CANDIDATE

    def full(self) -> bool:
        waiting = len(self.store.candidates)
        few = waiting < FEW or waiting < self.most - self.count()
        if not few or len(self.numbers) >= self.room:
            self.settle()
        return self.stopped != "" or self.count() >= self.most

    def collect(self, here: int) -> None:
        numbers, sent = self.numbers, SENT - self.level
        for state in self.model.successors:
            number = numbers.get(state, NEW)
            if number == NEW:
                owner = self.owner(state)
                if owner == self.me:
                    self.fresh += 1
                    self.keep(state, (self.me << SHIFT) + here)
                else:
                    numbers[state] = sent
                    self.send(owner, state, here)
            elif number >= 0:
                self.backward += number < self.level_end
            elif number not in (CANDIDATE, sent):
                numbers[state] = sent
                self.send(self.owner(state), state, here)

    def receive(self, batch: Batch) -> None:
        source = batch.sender << SHIFT
        for k, state in enumerate(self.states_in(batch)):
            number = self.numbers.get(state, NEW)
            if number == NEW:
                self.keep(state, source + batch.sources[k])
            elif number >= 0:
                self.backward += number < self.level_end
        if len(self.numbers) >= self.room:
            self.settle()

    def descend(self) -> None:
        self.settle()
        super().descend()

    def settle(self) -> None:
        """Number the candidates that are new."""
        store, before = self.store, self.count()
        try:
            store.look(self.level_end)
            self.backward += store.backward
            store.name(self.numbers)
            store.settle(len(store.candidates))
        except OSError as error:
            self.stopped = store.space.trouble(error)
            store.candidates, store.origins = array("q"), array("q")
        if self.count() > before:
            self.depth = self.level + 1
        if len(self.numbers) >= self.room:
            self.numbers.clear()
            store.leave()
