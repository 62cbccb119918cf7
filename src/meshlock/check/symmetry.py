"""Symmetry: of states that differ only in the names of nodes, one is enough.

A permutation of the nodes that leaves the first holder, the links and the requests as they
are turns every run into a run, provided that the algorithm treats names as names: it may
store them and compare them for equality, but not prefer the smaller. Of all states that
such permutations make of one another, the one whose row of places is smallest stands for all.

Which variables and message fields hold names, an algorithm says itself
(``Node.names``, ``Message.names``; variables called ``client`` hold clients). That it does
not prefer some names is not taken on trust: whenever a place is expanded, each of its images
must have the images of its steps; if one has not, the check goes on without symmetry.

Nothing that is judged depends on names, so the verdict is that of the full graph. When
something is found wrong, the full graph is explored too, where the way there needs no renaming.
"""

from __future__ import annotations

from itertools import permutations

from meshlock.algorithms.actor import Frozen
from meshlock.check import kinds
from meshlock.check.places import Outcome
from meshlock.check.plain import Plain
from meshlock.check.quotient import Quotient


class Asymmetric(Exception):
    """Names matter to this algorithm; the text says where that was seen."""


class Permutation:
    """Where each node goes, each client, and, as they are met, each place and message."""

    def __init__(self, nodes: tuple[int, ...], clients: list[int]) -> None:
        self.nodes = nodes
        self.clients = clients
        self.places: list[dict[int, int]] = [{} for _ in nodes]
        self.messages: dict[int, int] = {}
        self.verified: list[set[int]] = [set() for _ in nodes]


class Symmetric(Quotient):
    """Those are alike that differ in names only."""

    def __init__(self, system: Plain) -> None:
        super().__init__(system)
        self.group = self.find_group()

    def find_group(self) -> list[Permutation]:
        """All permutations but the one that moves nothing."""
        system = self.system
        names = system.handlers.nodes[0].reductions.names
        if names is None or any(
            kind.reductions.names is None for kind in system.setup.algorithm.kinds
        ):
            raise Asymmetric("it does not say where it keeps the names of nodes")
        if system.changing:
            raise Asymmetric("links that change are not alike")
        if system.ties is not None:
            raise Asymmetric("who came first has a name")
        size = system.size
        network = system.setup.network
        links = set(network.links())
        group: list[Permutation] = []
        for rest in permutations(range(1, size)):
            nodes = (0, *rest)
            moved = {
                (min(nodes[one], nodes[other]), max(nodes[one], nodes[other]))
                for one, other in links
            }
            if nodes == tuple(range(size)) or moved != links:
                continue
            clients = self.move_clients(nodes)
            if clients:
                group.append(Permutation(nodes, clients))
        return group

    def move_clients(self, nodes: tuple[int, ...]) -> list[int]:
        """Which client each becomes; empty if the nodes do not ask for the same."""
        system = self.system
        moved = [0] * len(system.standings.wants)
        for i in range(system.size):
            before, after = system.places.clients[i], system.places.clients[nodes[i]]
            if len(before) != len(after):
                return []
            for k, client in enumerate(before):
                other = after[k]
                mine, theirs = self.standings_of(client), self.standings_of(other)
                if list(mine) != list(theirs):
                    return []
                for standing, number in mine.items():
                    moved[number] = theirs[standing]
        return moved

    def standings_of(self, client: int) -> dict[tuple[int, int], int]:
        """The numbers of its standings, by permits and priority, in order."""
        clients = self.system.standings.clients
        found = [number for number in range(1, len(clients)) if clients[number] == client]
        return {
            (self.system.standings.wants[one], self.system.standings.priorities[one]): one
            for one in found
        }

    # -- images -----------------------------------------------------------------------------

    def rename(self, value: object, by: Permutation) -> object:
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            return by.nodes[value] if 0 <= value < len(by.nodes) else value
        if isinstance(value, tuple):
            return tuple([self.rename(part, by) for part in value])
        return value

    def rename_state(self, i: int, frozen: Frozen, by: Permutation) -> Frozen:
        node = self.system.handlers.nodes[i]
        names = node.reductions.names or ()
        moved: list[object] = []
        for name, value in zip(node.variables, frozen, strict=True):
            if name == "client" and isinstance(value, int) and value > 0:
                moved.append(by.clients[value])
            else:
                moved.append(self.rename(value, by) if name in names else value)
        return tuple(moved)

    def message(self, number: int, by: Permutation) -> int:
        known = by.messages.get(number, -1)
        if known < 0:
            message = self.system.handlers.messages[number]
            names = message.reductions.names or ()
            values = [
                self.rename(value, by) if name in names else value
                for name, value in zip(message.fields, message.freeze()[1:], strict=True)
            ]
            sender, receiver = by.nodes[message.sender], by.nodes[message.receiver]
            known = by.messages[number] = self.twin(message, sender, receiver, tuple(values))
        return known

    def place(self, i: int, number: int, by: Permutation) -> int:
        known = by.places[i].get(number, -1)
        if known < 0:
            system = self.system
            place = system.places.look(i, number)
            to = by.nodes[i]
            inbox: list[tuple[int, tuple[int, ...]]] = []
            for source, line in place.inbox:
                moved = [self.message(message, by) for message in line]
                inbox.append((by.nodes[source], tuple(moved if system.fifo else sorted(moved))))
            known = system.places.number(
                to,
                system.handlers.local(
                    to, self.rename_state(i, system.handlers.locals[i][place.local], by)
                ),
                place.asked,
                tuple(sorted([by.clients[client] for client in place.inside])),
                tuple([by.clients[client] for client in place.waiting]),
                tuple(sorted(inbox)),
            )
            by.places[i][number] = known
        return known

    # -- names must not matter ------------------------------------------------------------------

    def verify(self, i: int, number: int, by: Permutation) -> None:
        """The image of this place must have the images of its steps."""
        if number in by.verified[i]:
            return
        by.verified[i].add(number)
        system = self.system
        to = by.nodes[i]
        image = system.places.expanded(to, self.place(i, number, by))
        expected = [self.step(i, step, by) for step in system.places.expanded(i, number).steps]
        have = [self.shape(step) for step in image.steps]
        if sorted(expected) != sorted(have):
            raise Asymmetric(f"nodes {i} and {to} do not do the same in the same place")

    def step(self, i: int, step: Outcome, by: Permutation) -> tuple[int, ...]:
        """What a step should be after renaming."""
        subject = step.subject
        if step.kind == kinds.DELIVER:
            subject = self.message(subject, by)
        elif step.kind in (kinds.PRIORITY, kinds.GIVE_BACK):
            here, there = self.system.standings.shifts[subject]
            moved = (by.clients[here], by.clients[there])
            subject = self.system.standings.shifts.index(moved)
        else:
            subject = by.clients[subject]
        sends = [self.message(message, by) for message in step.sends]
        enters = [by.clients[client] for client in step.enters]
        after = self.place(i, step.after, by) if not step.faults else 0
        return (step.kind, subject, after, len(step.faults), len(sends), *sends, *enters)

    def shape(self, step: Outcome) -> tuple[int, ...]:
        after = step.after if not step.faults else 0
        start = (step.kind, step.subject, after, len(step.faults), len(step.sends))
        return (*start, *step.sends, *step.enters)

    # -- exploring ------------------------------------------------------------------------------

    def expand(self, state: int) -> None:
        super().expand(state)
        tree = self.system.tree.unpack(state)
        for by in self.group:
            for i in range(self.system.size):
                self.verify(i, tree[self.system.tree.leaves + i], by)

    def alike(self, state: int) -> int:
        tree = self.system.tree
        row = tree.unpack(state)[tree.leaves :]
        size = self.system.size
        least = row
        for by in self.group:
            image = row[:]
            for i in range(size):
                image[by.nodes[i]] = self.place(i, row[i], by)
            if image < least:
                least = image
        return state if least is row else tree.pack(least)
