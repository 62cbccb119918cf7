"""Mistakes one could make in Neilsen and Mizuno's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.neilsen_mizuno import NeilsenMizunoNode, Request, Token
from meshlock.algorithms.registry import find


class StaysTheSink(NeilsenMizunoNode):
    def receive(self, message: Message) -> None:
        sink = isinstance(message, Request) and self.next == -1 and not self.holding
        super().receive(message)
        if sink:
            self.next = -1


class ForgetsWhoFollows(NeilsenMizunoNode):
    def release(self, client: int) -> None:
        self.follow = -1
        super().release(client)


class HoldsWhileInside(NeilsenMizunoNode):
    def enter_cs(self) -> None:
        super().enter_cs()
        self.holding = True


class KeepsAndSends(NeilsenMizunoNode):
    def receive(self, message: Message) -> None:
        sent = len(self.out)
        super().receive(message)
        for effect in self.out[sent:]:
            if isinstance(effect, Token):
                self.holding = True


class SendsToTheNeighbour(NeilsenMizunoNode):
    def receive(self, message: Message) -> None:
        if isinstance(message, Request) and self.next == -1:
            message.origin = message.sender
        super().receive(message)


def nodes_of(kind: type[NeilsenMizunoNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.father(me)) for me in range(network.size)]

    return make


NEILSEN_MIZUNO = find("neilsen-mizuno")

MUTANTS: list[Mutant] = [
    Mutant(
        NEILSEN_MIZUNO,
        "stays-the-sink",
        "a waiting sink that has got a follower does not turn its pointer",
        nodes_of(StaysTheSink),
        Case(3, "star", "0 1 2"),
        breaks="served",
        steps=8,
    ),
    Mutant(
        NEILSEN_MIZUNO,
        "forgets-who-follows",
        "a site that leaves keeps the token though another one follows",
        nodes_of(ForgetsWhoFollows),
        Case(2, "line", "0 1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        NEILSEN_MIZUNO,
        "holds-while-inside",
        "a site that is inside still counts as holding an idle token",
        nodes_of(HoldsWhileInside),
        Case(2, "line", "0 1"),
        breaks="conservation",
        steps=1,
    ),
    Mutant(
        NEILSEN_MIZUNO,
        "keeps-and-sends",
        "a site that sends the token believes that it still has it",
        nodes_of(KeepsAndSends),
        Case(2, "line", "1"),
        breaks="one-token",
        steps=2,
    ),
    Mutant(
        NEILSEN_MIZUNO,
        "sends-to-the-neighbour",
        "the sink takes the neighbour who passed a request on for the one who made it",
        nodes_of(SendsToTheNeighbour),
        Case(3, "line", "2"),
        breaks="safety",
        steps=4,
    ),
]
