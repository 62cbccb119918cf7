"""Breadth first through all states of a model, so that what is found first is shortest.

Of a state four things are kept: its integer in a set and in a row, the number of the state
it was first reached from, and the label of that step; that is all that is needed to tell the
way there. Where cycles are looked for, or a reduction must know which states are expanded
already, a dictionary with the states' numbers takes the place of the set.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from meshlock.algorithms.subclassing import mypyc_attr
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


@mypyc_attr(allow_interpreted_subclasses=True)
class Explorer:
    def __init__(self, model: Model, most: int, graph: bool = False) -> None:
        self.model = model
        self.most = most
        self.numbered = graph or model.numbered
        self.numbers: dict[int, int] = {}  # state: its number, in order of discovery
        self.seen: set[int] = set()  # the states, where nobody asks for their numbers
        self.states = array("q")
        self.parents = array("I")
        self.labels = array("I")
        self.graph = graph  # keep the transitions too, to look for cycles
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
        self.begin(model.initial())

    def begin(self, start: int) -> None:
        if self.numbered:
            self.numbers[start] = 0
        else:
            self.seen.add(start)
        self.states.append(start)
        self.parents.append(0)
        self.labels.append(0)

    def count(self) -> int:
        return len(self.states)

    def complete(self) -> bool:
        return self.expanded == len(self.states)

    def state(self, number: int) -> int:
        return self.states[number]

    def adjacency(self) -> Adjacency:
        """All transitions, by the states they begin in."""
        return self.edges, self.offsets

    def close(self) -> None:
        """Nobody has more questions."""

    def run(self, batch: int) -> bool:
        """Expand at most ``batch`` states; False when there is no more to do."""
        model = self.model
        stop = self.expanded + batch
        while self.expanded < stop:
            here = self.expanded
            known = self.reached()
            if here >= known or known >= self.most:
                return False
            if here == self.level_end:
                self.depth += 1
                self.level_end = known
            model.expand(self.following())
            if self.numbered:
                self.number(here)
            else:
                self.collect(here)
            self.transitions += len(model.successors)
            self.expanded = here + 1
            if model.faults:
                for fault in model.faults:
                    self.found(here, fault)
        return True

    def reached(self) -> int:
        """How many states there are before the next is expanded; -1: it is not to be."""
        return len(self.states)

    def following(self) -> int:
        """The state that is to be expanded."""
        return self.states[self.expanded]

    def collect(self, here: int) -> None:
        """Store those successors of a state that were never seen."""
        seen, labels = self.seen, self.model.labels
        size = len(seen)
        for k, state in enumerate(self.model.successors):
            seen.add(state)
            if len(seen) > size:  # looked up once, not twice
                size += 1
                self.states.append(state)
                self.parents.append(here)
                self.labels.append(labels[k])

    def number(self, here: int) -> None:
        """The same, with the number of each."""
        numbers, labels = self.numbers, self.model.labels
        known = len(self.states)
        for k, state in enumerate(self.model.successors):
            number = numbers.setdefault(state, known)
            if number == known:
                self.states.append(state)
                self.parents.append(here)
                self.labels.append(labels[k])
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
        states, labels = self.way(here)
        if fault.label != AT_REST:
            labels.append(fault.label)
        self.violations[fault.name] = Violation(fault.name, fault.text, states, labels)

    def source(self, number: int) -> tuple[int, int]:
        """Which state it was first reached from, and by which step."""
        return self.parents[number], self.labels[number]

    def way(self, number: int) -> tuple[list[int], list[int]]:
        """The states from the first to this one, and the labels of the steps between."""
        states, labels = [self.state(number)], list[int]()
        while number > 0:
            number, label = self.source(number)
            states.append(self.state(number))
            labels.append(label)
        states.reverse()
        labels.reverse()
        return states, labels
