"""Mistakes one could make with information structures."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.maekawa import Ballot, Failed, MaekawaNode
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find
from meshlock.algorithms.sanders import SandersNode, Structure, leader


class AsksItsGroupOnly(SandersNode):
    def __init__(self, me: int, out: list[Effect], size: int, structure: Structure) -> None:
        super().__init__(me, out, size, structure)
        mine = leader(me, size)
        self.quorum = tuple([site for site in self.quorum if leader(site, size) == mine])


class AsksButIsNotAsked(SandersNode):
    def __init__(self, me: int, out: list[Effect], size: int, structure: Structure) -> None:
        super().__init__(me, out, size, structure)
        self.quorum = tuple([site for site in self.quorum if site <= me])


class BindsItselfToNobody(SandersNode):
    def vote(self, ballot: Ballot) -> None:
        super().vote(ballot)
        self.vote_for_next()


class BindsItselfToAll(SandersNode):
    def vote(self, ballot: Ballot) -> None:
        MaekawaNode.vote(self, ballot)


class TellsNobodyElse(SandersNode):
    def release(self, client: int) -> None:
        informs = self.informs
        self.informs = [(site,) for site in range(len(informs))]
        super().release(client)
        self.informs = informs


class WaitsForFailed(SandersNode):
    def inquire(self, member: int) -> None:
        MaekawaNode.inquire(self, member)


class FailsNobody(SandersNode):
    def send(self, message: Message) -> None:
        if not isinstance(message, Failed):
            super().send(message)


def nodes_of(kind: type[SandersNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        structure = Structure(network.size, options["structure"])
        return [kind(me, out, network.size, structure) for me in range(network.size)]

    return make


SANDERS = find("sanders")
AGREED = {"structure": "ricart-agrawala"}
QUORUMS = {"structure": "maekawa"}

MUTANTS: list[Mutant] = [
    Mutant(
        SANDERS,
        "asks-its-group-only",
        "sites of two groups neither ask each other nor inform a third",
        nodes_of(AsksItsGroupOnly),
        Case(4, "complete", "0 2"),
        breaks="safety",
        steps=2,
    ),
    Mutant(
        SANDERS,
        "asks-but-is-not-asked",
        "of two sites only one asks the other",
        nodes_of(AsksButIsNotAsked),
        Case(2, "complete", "0 1", options=AGREED),
        breaks="safety",
        steps=4,
    ),
    Mutant(
        SANDERS,
        "binds-itself-to-nobody",
        "a site goes on granting, though it will be informed when the first has left",
        nodes_of(BindsItselfToNobody),
        Case(3, "complete", "0 1", options=QUORUMS),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        SANDERS,
        "binds-itself-to-all",
        "a site waits for a message from one that will not send it",
        nodes_of(BindsItselfToAll),
        Case(3, "complete", "0 1", options=AGREED),
        breaks="served",
        steps=9,
    ),
    Mutant(
        SANDERS,
        "tells-nobody-else",
        "a site that leaves informs only itself",
        nodes_of(TellsNobodyElse),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=5,
    ),
    Mutant(
        SANDERS,
        "waits-for-failed",
        "I2: a site keeps its own grant until it receives FAILED, which nobody sends",
        nodes_of(WaitsForFailed),
        Case(2, "complete", "0 1", options=AGREED),
        breaks="served",
        steps=4,
    ),
    Mutant(
        SANDERS,
        "fails-nobody",
        "FAILED is not sent, so nobody yields a grant",
        nodes_of(FailsNobody),
        Case(4, "complete", "0 1 2", options=QUORUMS),
        breaks="served",
        steps=9,
    ),
]
