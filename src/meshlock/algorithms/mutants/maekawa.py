"""Mistakes one could make in Maekawa's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.maekawa import NOBODY, MaekawaNode, Release, Yield
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find


class RowsOnly(MaekawaNode):
    def __init__(self, me: int, out: list[Effect], size: int) -> None:
        super().__init__(me, out, size)
        width = 1
        while width * width < size:
            width += 1
        self.quorum = tuple(site for site in range(size) if site // width == me // width)


class VotesForAll(MaekawaNode):
    def asked(self, number: int, site: int) -> None:
        self.voted = NOBODY
        super().asked(number, site)


class WithoutSanders(MaekawaNode):
    def fail_the_overtaken(self) -> None:
        pass


class ForgetsWhoYields(MaekawaNode):
    def handle(self, message: Message) -> None:
        if isinstance(message, Yield):
            self.vote_for_next()
        else:
            super().handle(message)


class VotesOnce(MaekawaNode):
    def handle(self, message: Message) -> None:
        if isinstance(message, Release):
            self.voted = NOBODY
            self.inquired = False
        else:
            super().handle(message)


class YieldsWhileInside(MaekawaNode):
    def inquire(self, member: int) -> None:
        if self.inside and member in self.votes:
            self.votes.remove(member)
            self.send(Yield(member))
        else:
            super().inquire(member)


class NeverYields(MaekawaNode):
    def give_back(self, member: int) -> None:
        pass


def nodes_of(kind: type[MaekawaNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size) for me in range(network.size)]

    return make


MAEKAWA = find("maekawa")

MUTANTS: list[Mutant] = [
    Mutant(
        MAEKAWA,
        "rows-only",
        "a quorum is a row of the grid, so two quorums need not meet",
        nodes_of(RowsOnly),
        Case(4, "complete", "0 2"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        MAEKAWA,
        "votes-for-all",
        "a member does not remember that it has voted",
        nodes_of(VotesForAll),
        Case(3, "complete", "0 1"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        MAEKAWA,
        "without-sanders",
        "a site whose request was first is not notified that an earlier one goes before it",
        nodes_of(WithoutSanders),
        Case(4, "complete", "0 1 2 3"),
        breaks="served",
        steps=14,
    ),
    Mutant(
        MAEKAWA,
        "forgets-who-yields",
        "a member whose vote was yielded does not queue the site that yielded it",
        nodes_of(ForgetsWhoYields),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=14,
    ),
    Mutant(
        MAEKAWA,
        "votes-once",
        "a member that receives RELEASE does not vote for the next in its queue",
        nodes_of(VotesOnce),
        Case(3, "complete", "0 1"),
        breaks="served",
        steps=7,
    ),
    Mutant(
        MAEKAWA,
        "yields-while-inside",
        "a site that is inside yields a vote when it receives INQUIRE",
        nodes_of(YieldsWhileInside),
        Case(3, "complete", "0 1 2"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        MAEKAWA,
        "never-yields",
        "a site keeps its votes though it cannot enter",
        nodes_of(NeverYields),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=7,
    ),
]
