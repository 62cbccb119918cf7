"""What all models of nodes on a network have in common, whatever can happen to them.

A state is the row of the numbers of its parts: one of each node, and behind these what is around
them, such as links or messages. The row is folded into one integer. Nodes that do not crash are in
:mod:`.plain`, and in :mod:`.changing_links` on links that change; those that crash are in
:mod:`.crashing_nodes`.
"""

from __future__ import annotations

from meshlock.algorithms.actor import Message
from meshlock.check.model import Act, Model, Part
from meshlock.check.order_by_kind import order_of
from meshlock.check.setup import SetUp
from meshlock.check.standings import Standings
from meshlock.properties.promises import promises


class System(Model):
    def __init__(self, setup: SetUp, judged: set[str]) -> None:
        super().__init__()
        self.setup = setup
        self.size = setup.network.size
        self.judged = judged
        self.promises = promises(setup.algorithm, setup.options)
        self.standings = Standings(setup)
        self.order = order_of(self.standings, self.promises)

    def opening(self) -> list[Act]:
        """What happens before the first state, once the nodes are there."""
        raise NotImplementedError

    # -- for searches that processes share: their numbers differ -------------------------------

    def parts(self, state: int) -> list[int]:
        """The numbers of its parts, as many and in the same order for all states."""
        raise NotImplementedError

    def part(self, state: int, slot: int) -> int:
        """One of them."""
        return self.parts(state)[slot]

    def half(self, slot: int) -> int:
        """In which half of a state that place is, 0 or 1: a state is the number of its first
        half, times SPREAD, plus that of its second."""
        raise NotImplementedError

    def joined(self, parts: list[int]) -> int:
        """The state that has these parts."""
        raise NotImplementedError

    def met(self, slot: int) -> int:
        """How many different parts there were in that place so far: numbers are below this."""
        raise NotImplementedError

    def meaning(self, slot: int, number: int) -> Part:
        """What is in that place of a state that has this number there."""
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
