"""What all models of nodes on a network have in common, whatever can happen to them.

A state is the row of the numbers of its parts: one of each node, and behind these what is around
them, such as links or messages. The row is folded into one integer. Nodes that do not crash are in
:mod:`.plain`, and in :mod:`.changing_links` on links that change; those that crash are in
:mod:`.crashing_nodes`.
"""

from __future__ import annotations

from meshlock.algorithms.actor import Message
from meshlock.check.model import AT_REST, Act, Model, Part
from meshlock.check.order_by_kind import order_of
from meshlock.check.packing import Tree
from meshlock.check.setup import SetUp
from meshlock.check.standings import Standings
from meshlock.errors import Refused, setting
from meshlock.properties.promises import promises


class System(Model):
    tree: Tree

    def __init__(self, setup: SetUp, judged: set[str]) -> None:
        super().__init__()
        self.setup = setup
        self.size = setup.network.size
        self.judged = judged
        self.promises = promises(setup.algorithm, setup.options)
        self.standings = Standings(setup)
        self.order = order_of(self.standings, self.promises)
        self.first = -1
        self.told: list[Act] = []  # what happened before the first state

    # -- the first state -----------------------------------------------------------------------

    def initial(self) -> int:
        if self.first < 0:
            self.first = self.find_first()
            for step in self.setup.lead:
                self.first = self.take_lead(self.first, step)
        return self.first

    def find_first(self) -> int:
        """The state in which the nodes are there, and nothing has happened to them."""
        raise NotImplementedError

    def opening(self) -> list[Act]:
        """What happens before the first state, once the nodes are there."""
        return self.told

    def take_lead(self, state: int, step: str) -> int:
        """The state after the step of that name; of several alike, the first."""
        self.expand(state)
        for fault in self.faults:
            if fault.label != AT_REST and self.name(state, fault.label) == step:
                raise Refused(f"{setting('lead')} '{step}' violates a property: {fault.text}.")
        names = [self.name(state, label) for label in self.labels]
        if step not in names:
            possible = ", ".join(names)
            raise Refused(
                f"{setting('lead')} '{step}' is not possible here: use one of {possible}."
            )
        place = names.index(step)
        after = self.successors[place]
        self.told += self.explain(state, self.labels[place])
        return after

    def name(self, state: int, label: int) -> str:
        """A step in a word or two."""
        raise NotImplementedError

    # -- states as rows ------------------------------------------------------------------------

    def parts(self, state: int) -> list[int]:
        """The numbers of its parts, as many and in the same order for all states."""
        return self.tree.unpack(state)[self.tree.leaves :]

    def met(self, slot: int) -> int:
        """How many different parts there were in that place so far: numbers are below this."""
        raise NotImplementedError

    def meaning(self, slot: int, number: int) -> Part:
        """What is in that place of a state that has this number there: the same in all processes
        of a search."""
        raise NotImplementedError

    def number_of(self, slot: int, part: Part) -> int:
        """The way back."""
        raise NotImplementedError


def called(setup: SetUp, act: Act) -> str:
    """A step in a word or two: ``request 1``, ``deliver TOKEN 0>2``, ``link-down 0-1``."""
    if isinstance(act.message, Message):
        return f"{act.event} {act.message.kind} {act.message.sender}>{act.message.receiver}"
    if act.peer >= 0:
        return f"{act.event} {act.node}-{act.peer}"
    more = f" {act.priority:.12g}" if act.event == "priority" else ""
    if act.released > 1:
        more = f" {act.released}"
    return f"{act.event} {setup.client_name(act.client)}{more}"
