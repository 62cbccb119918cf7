"""Mistakes one could make in Reverse Link."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find
from meshlock.algorithms.reverse_link import Height, ReverseLinkNode, first_heights


class DoesNotAskBack(ReverseLinkNode):
    def give_token_to_next(self) -> None:
        waiting, self.queue = self.queue[1:], self.queue[:1]
        super().give_token_to_next()
        self.queue += waiting


class KeepsAndSends(ReverseLinkNode):
    def give_token_to_next(self) -> None:
        super().give_token_to_next()
        self.token_holder = True


class GivesItAwayInside(ReverseLinkNode):
    def requested(self, j: int, height: Height) -> None:
        self.inside = False
        super().requested(j, height)


class ForgetsAFailedLink(ReverseLinkNode):
    def link_down(self, peer: int) -> None:
        asked = self.next
        super().link_down(peer)
        if asked == peer:
            self.next = self.me


class DoesNotClimb(ReverseLinkNode):
    def raise_height(self) -> None:
        self.send_height()


class StaysWhereItWas(ReverseLinkNode):
    def token(self, j: int, height: Height) -> None:
        h1, h2, me = self.height
        super().token(j, (h1, h2 + 1, me))


def nodes_of(kind: type[ReverseLinkNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        heights = first_heights(network)
        nodes: list[Node] = []
        for me in range(network.size):
            seen = {v: heights[v] for v in network.neighbours(me)}
            nodes.append(kind(me, out, heights[me], me == 0, seen))
        return nodes

    return make


REVERSE_LINK = find("reverse-link")

MUTANTS: list[Mutant] = [
    Mutant(
        REVERSE_LINK,
        "does-not-ask-back",
        "the token is passed on and not requested again for those that still wait",
        nodes_of(DoesNotAskBack),
        Case(3, "star", "0 1 2"),
        breaks="served",
        steps=9,
    ),
    Mutant(
        REVERSE_LINK,
        "keeps-and-sends",
        "a node that passes the token on believes that it still has it",
        nodes_of(KeepsAndSends),
        Case(2, "line", "0 1"),
        breaks="one-token",
        steps=2,
    ),
    Mutant(
        REVERSE_LINK,
        "gives-it-away-inside",
        "a node whose client is inside passes the token to whoever asks",
        nodes_of(GivesItAwayInside),
        Case(2, "line", "0 1"),
        breaks="conservation",
        steps=3,
    ),
    Mutant(
        REVERSE_LINK,
        "does-not-ask-again",
        "the link to the node that was asked fails, and nobody else is asked",
        nodes_of(ForgetsAFailedLink),
        Case(3, "line", "0 2", changes=["up 0-2", "down 1-2"]),
        breaks="served",
        steps=5,
    ),
    Mutant(
        REVERSE_LINK,
        "does-not-climb",
        "a node without a lower neighbour sends its height but does not raise it",
        nodes_of(DoesNotClimb),
        Case(3, "complete", "0 2", changes=["down 0-2"]),
        breaks="downhill",
        steps=7,
    ),
    Mutant(
        REVERSE_LINK,
        "stays-where-it-was",
        "a node that receives the token does not go below its sender",
        nodes_of(StaysWhereItWas),
        Case(3, "line", "0 1 2"),
        breaks="downhill",
        steps=3,
    ),
]
