"""What nodes' variables and the messages on their way make together, in every single state.

The papers prove their theorems by invariants: heights lead downhill to the token, father
variables make a tree. Here each is a property with a name, which the checker judges in all states
of an algorithm that promises it (:attr:`~meshlock.algorithms.actor.Algorithm.structure`).

A property sees of each node a *glimpse*: what matters of its variables and of what is on
its way to it. Equal glimpses have one number, so that a judge of many states looks at
each combination of numbers once.
"""

from __future__ import annotations

from typing import cast

from meshlock.algorithms.actor import Actor, Frozen, Message
from meshlock.algorithms.subclassing import mypyc_attr

Wrong = tuple[str, str]
"""A property that does not hold, and a sentence that says what was seen."""

Clients = tuple[tuple[int, ...], tuple[int, ...]]
"""Those of a node that wait, and those that are inside."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Structure:
    """Properties that are judged together because they look at the same things."""

    def __init__(self, judged: set[str]) -> None:
        self.judged = judged
        self.numbers: dict[Frozen, int] = {}
        self.glimpses: list[Frozen] = []  # by number

    def names(self) -> list[str]:
        return sorted(self.judged)

    def see(self, node: Actor, inbox: list[Message], clients: Clients = ((), ())) -> int:
        """The number of the glimpse of this node, with this on its way to it."""
        glimpse = self.glimpse(node, inbox, clients)
        number = self.numbers.setdefault(glimpse, len(self.glimpses))
        if number == len(self.glimpses):
            self.glimpses.append(glimpse)
        return number

    def glimpse(self, node: Actor, inbox: list[Message], clients: Clients) -> Frozen:
        raise NotImplementedError

    def wrong(self, seen: tuple[int, ...], neighbours: list[list[int]]) -> list[Wrong]:
        """What does not hold where each node is seen so, and has these neighbours.

        If links have changed, nothing may be on its way.
        """
        raise NotImplementedError


class Both(Structure):
    """Properties of two kinds."""

    def __init__(self, one: Structure, other: Structure) -> None:
        super().__init__(one.judged | other.judged)
        self.one = one
        self.other = other

    def glimpse(self, node: Actor, inbox: list[Message], clients: Clients) -> Frozen:
        return self.one.see(node, inbox, clients), self.other.see(node, inbox, clients)

    def wrong(self, seen: tuple[int, ...], neighbours: list[list[int]]) -> list[Wrong]:
        pairs = [cast("tuple[int, int]", self.glimpses[number]) for number in seen]
        wrong = self.one.wrong(tuple([pair[0] for pair in pairs]), neighbours)
        return wrong + self.other.wrong(tuple([pair[1] for pair in pairs]), neighbours)
