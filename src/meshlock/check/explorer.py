"""Breadth first through all states of a model, so that what is found first is shortest.

Of a state three things are kept: its integer in a set and in a row, and the number of the state it
was first reached from; that is all that is needed to tell the way there. Where cycles are looked
for, or a reduction must know which states are expanded already, a dictionary with the states'
numbers takes the place of the set.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from meshlock.check.helpers import Helpers
from meshlock.check.model import AT_REST, Fault, Model

Adjacency = tuple[Sequence[int], Sequence[int]]
"""Where transitions lead, state after state; and where among them those of each state begin."""


class Violation:
    """The shortest way to a violation: states and labels, the last label at fault."""

    def __init__(self, name: str, text: str, states: list[int], labels: list[int]) -> None:
        self.name = name
        self.text = text
        self.states = states
        self.labels = labels  # the step from each state; none from the last if it is at rest
        self.loop = -1  # where the way comes round again, for ever


class Explorer:
    """``graph``: keep the transitions too, to look for cycles."""

    def __init__(
        self, model: Model, most: int, graph: bool = False, helpers: Helpers | None = None
    ) -> None:
        self.model = model
        self.most = most
        self.helpers = helpers
        self.numbered = graph or model.numbered
        self.numbers: dict[int, int] = {}  # state: its number, in order of discovery
        self.seen: set[int] = set()  # the states, where nobody asks for their numbers
        self.states = array("q")
        self.parents = array("I")
        self.graph = graph
        self.edges = array("I")
        self.offsets = array("Q", [0])  # where in edges each expanded state's begin
        self.backward = 0  # transitions to states expanded already: without any, no cycle
        self.transitions = 0
        self.expanded = 0
        self.depth = 0
        self.level_end = 1  # number of states up to the present depth
        self.violations: dict[str, Violation] = {}  # the first of each property
        self.stopped = ""  # why the search cannot go on, though there is more to do
        model.attach(self.numbers, self.seen)
        start = model.initial()
        if self.numbered:
            self.numbers[start] = 0
        else:
            self.seen.add(start)
        self.states.append(start)
        self.parents.append(0)

    def count(self) -> int:
        return len(self.states)

    def complete(self) -> bool:
        return self.expanded == len(self.states)

    def state(self, number: int) -> int:
        return self.states[number]

    def some(self, first: int, end: int) -> Sequence[int]:
        """The states with these numbers."""
        return self.states[first:end]

    def adjacency(self) -> Adjacency:
        """All transitions, by the states they begin in."""
        return self.edges, self.offsets

    def close(self) -> None:
        """Nobody has more questions."""
        if self.helpers is not None:
            self.helpers.close()

    def run(self, batch: int) -> bool:
        """Expand at most ``batch`` states; False when there is no more to do."""
        model, helpers, some = self.model, self.helpers, self.some
        stop = self.expanded + batch
        while self.expanded < stop:
            here = self.expanded
            known = self.reached()
            if here >= known or known >= self.most:
                return False
            if here == self.level_end:
                self.depth += 1
                self.level_end = known
            if helpers is None:
                model.expand(self.following())
                degree = len(model.successors)
            else:
                degree = helpers.expand(here, known, some)
            if self.numbered:
                self.number(here)
            else:
                self.collect(here)
            self.note_degree(degree)
            self.expanded = here + 1
            if model.faults:
                for fault in model.faults[:]:
                    self.found(here, fault)
        return True

    def note_degree(self, degree: int) -> None:
        self.transitions += degree

    def reached(self) -> int:
        """How many states there are before the next is expanded; -1: it is not to be."""
        return len(self.states)

    def following(self) -> int:
        """The state that is to be expanded."""
        return self.states[self.expanded]

    def collect(self, here: int) -> None:
        """Store those successors of a state that were never seen."""
        seen = self.seen
        size = len(seen)
        for state in self.model.successors:
            seen.add(state)
            if len(seen) > size:  # looked up once, not twice
                size += 1
                self.states.append(state)
                self.parents.append(here)

    def number(self, here: int) -> None:
        """The same, with the number of each."""
        numbers = self.numbers
        known = len(self.states)
        for state in self.model.successors:
            number = numbers.setdefault(state, known)
            if number == known:
                self.states.append(state)
                self.parents.append(here)
                known += 1
            elif number <= here:
                self.backward += 1
            if self.graph:
                self.edges.append(number)
        if self.graph:
            self.offsets.append(len(self.edges))

    def found(self, here: int, fault: Fault) -> None:
        if fault.name in self.violations:
            return
        states, labels = ([], []) if self.model.numbered else self.way(here)
        if fault.label != AT_REST:
            labels.append(fault.label)
        self.violations[fault.name] = Violation(fault.name, fault.text, states, labels)

    def parent(self, number: int) -> int:
        """The state that it was first reached from."""
        return self.parents[number]

    def way(self, number: int) -> tuple[list[int], list[int]]:
        """The states from the first to this one, and the labels of the steps between."""
        states, labels = [self.state(number)], list[int]()
        while number > 0:
            number = self.parent(number)
            states.append(self.state(number))
        states.reverse()
        for k, after in enumerate(states[1:]):
            self.model.expand(states[k])
            labels.append(self.model.labels[self.model.successors.index(after)])
        return states, labels
