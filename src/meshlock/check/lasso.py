"""Liveness: is there a way to go round for ever while somebody waits?

A violation has the shape of a lasso: a way into a cycle, and the cycle. Going round is
only held against an algorithm if the world is fair to it: a message that is on its way
arrives in the end, and a client that is inside leaves in the end. Nobody is obliged to
ask, and no link to change.

Every channel that is not empty, and every client inside, is *owed* a step. A run is
(weakly) fair if nothing is owed without end and never paid. So: take the states in which
some client waits and the steps between them, and look at each strongly connected
component. If every debt that stands in all its states is paid by one of its steps, then a
run that goes through all its states and steps for ever is fair and starves the client.
If some debt is not paid, no run within the component is fair, for a smaller part of it
has the same debt. Hence looking at whole components is enough.

An algorithm whose counters only grow never comes round in this sense, however often the
same thing happens: see :mod:`.abstraction`.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from meshlock.check.explorer import Explorer, Violation
from meshlock.check.model import Model
from meshlock.properties import sentences


class Lassos:
    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self.model: Model = explorer.model
        self.steps: dict[int, list[tuple[int, int]]] = {}  # state: (state, label), within cycles

    def find(self) -> Violation | None:
        """The violation with the shortest way in, if there is one."""
        explorer = self.explorer
        if explorer.backward == 0:
            return None
        cyclic = components(explorer.count(), *explorer.adjacency())
        if not cyclic:
            return None
        members = {number for component in cyclic for number in component}
        self.collect(members)
        starving: dict[int, set[int]] = {}  # client: the states in which it waits
        for number in members:
            for client in self.model.waiting(explorer.state(number)):
                starving.setdefault(client, set()).add(number)
        best: Violation | None = None
        for client in sorted(starving):
            for component in self.within(starving[client]):
                if self.fair(component):
                    found = self.violation(client, component)
                    if best is None or len(found.labels) < len(best.labels):
                        best = found
        return best

    def collect(self, members: set[int]) -> None:
        """Steps between states that lie on cycles, with their labels."""
        explorer, model = self.explorer, self.model
        numbers = {explorer.state(number): number for number in sorted(members)}
        for state, number in numbers.items():
            model.expand(state)
            self.steps[number] = [
                (numbers[after], model.labels[k])
                for k, after in enumerate(model.successors)
                if after in numbers
            ]
        model.faults.clear()

    def within(self, states: set[int]) -> list[list[int]]:
        """The components of the part of the graph that consists of these states."""
        order = sorted(states)
        index = {number: i for i, number in enumerate(order)}
        edges, offsets = array("I"), array("Q", [0])
        for number in order:
            for other, _ in self.steps[number]:
                if other in index:
                    edges.append(index[other])
            offsets.append(len(edges))
        return [[order[i] for i in part] for part in components(len(order), edges, offsets)]

    def fair(self, component: list[int]) -> bool:
        """Is every debt that stands in all these states paid by a step between them?"""
        return self.debts(component) <= self.payments(component)

    def debts(self, component: list[int]) -> set[int]:
        standing: set[int] | None = None
        for number in component:
            owed = set(self.model.owed(self.explorer.state(number)))
            standing = owed if standing is None else standing & owed
        return standing if standing is not None else set()

    def payments(self, component: list[int]) -> set[int]:
        inside = set(component)
        return {
            self.model.pays(self.explorer.state(number), label)
            for number in component
            for other, label in self.steps[number]
            if other in inside
        }

    # -- telling it -------------------------------------------------------------------------

    def violation(self, client: int, component: list[int]) -> Violation:
        """The way in, and once round so that each debt is paid or does not stand."""
        explorer, model = self.explorer, self.model
        entry = min(component)
        inside = set(component)
        states, labels = explorer.way(entry)
        loop = len(labels)
        here = entry
        every = {debt for number in component for debt in model.owed(explorer.state(number))}
        for debt in sorted(every):
            here = self.walk(here, inside, states, labels, debt, -1)
        if here != entry or len(labels) == loop:
            self.walk(here, inside, states, labels, -1, entry)
        states.pop()
        found = Violation("liveness", sentences.starves(client), states, labels)
        found.loop = loop
        return found

    def walk(
        self,
        start: int,
        inside: set[int],
        states: list[int],
        labels: list[int],
        debt: int,
        goal: int,
    ) -> int:
        """Go on to the goal or, if there is a debt, to where it is paid or does not stand."""
        explorer, model = self.explorer, self.model
        came: dict[int, tuple[int, int]] = {}
        level = [start]
        seen = {start} if debt >= 0 else set()
        while level:
            further: list[int] = []
            for number in level:
                if debt >= 0 and debt not in model.owed(explorer.state(number)):
                    return self.retrace(start, number, came, states, labels)
                for other, label in self.steps[number]:
                    if other not in inside:
                        continue
                    paid = debt >= 0 and model.pays(explorer.state(number), label) == debt
                    if paid or other == goal:
                        self.retrace(start, number, came, states, labels)
                        labels.append(label)
                        states.append(explorer.state(other))
                        return other
                    if other not in seen:
                        seen.add(other)
                        came[other] = (number, label)
                        further.append(other)
            level = further
        raise AssertionError("a component is strongly connected")

    def retrace(
        self,
        start: int,
        end: int,
        came: dict[int, tuple[int, int]],
        states: list[int],
        labels: list[int],
    ) -> int:
        back: list[tuple[int, int]] = []
        number = end
        while number != start:
            before, label = came[number]
            back.append((number, label))
            number = before
        for number, label in reversed(back):
            labels.append(label)
            states.append(self.explorer.state(number))
        return end


def components(size: int, edges: Sequence[int], offsets: Sequence[int]) -> list[list[int]]:
    """The strongly connected components that have a cycle (Tarjan's algorithm, unrolled)."""
    index = array("i", [-1]) * size
    low = array("i", [0]) * size
    position = array("q", [0]) * size
    on_stack = bytearray(size)
    stack = array("i")
    found: list[list[int]] = []
    counter = 0
    for root in range(size):
        if index[root] >= 0:
            continue
        calls = [root]
        while calls:
            v = calls[-1]
            if index[v] < 0:
                index[v] = low[v] = counter
                counter += 1
                stack.append(v)
                on_stack[v] = 1
                position[v] = offsets[v]
            descended = False
            at, end = position[v], offsets[v + 1]
            least = low[v]
            while at < end:
                w = edges[at]
                if index[w] < 0:
                    descended = True
                    break
                if on_stack[w] and index[w] < least:
                    least = index[w]
                at += 1
            position[v] = at
            low[v] = least
            if descended:
                calls.append(edges[at])
                continue
            calls.pop()
            if calls and low[v] < low[calls[-1]]:
                low[calls[-1]] = low[v]
            if low[v] == index[v]:
                component: list[int] = []
                while True:
                    w = stack.pop()
                    on_stack[w] = 0
                    component.append(w)
                    if w == v:
                        break
                if len(component) > 1 or v in edges[offsets[v] : offsets[v + 1]]:
                    found.append(component)
    return found
