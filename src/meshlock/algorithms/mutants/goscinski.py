"""Mistakes one could make with Goscinski's queue."""

from __future__ import annotations

from meshlock.algorithms.goscinski import GoscinskiNode
from meshlock.algorithms.interface import Effect, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find


class LinesUpInOrderOfArrival(GoscinskiNode):
    def line_up(self, site: int) -> None:
        self.queue.append((site, self.urgent[site]))


class KeepsAnOldPriority(GoscinskiNode):
    def requested(self, site: int, number: int, priority: int) -> None:
        known = self.urgent[site] if self.asked[site] > 0 else priority
        super().requested(site, number, known)


class ForgetsWhoAskedMeanwhile(GoscinskiNode):
    def release(self, client: int) -> None:
        known = self.asked
        self.asked = self.served[:]
        self.asked[self.me] = known[self.me]
        super().release(client)
        self.asked = known


class DoesNotCountItsEntries(GoscinskiNode):
    def release(self, client: int) -> None:
        before = self.asked[self.me]
        self.asked[self.me] = self.served[self.me]
        super().release(client)
        self.asked[self.me] = before


class KeepsAndSends(GoscinskiNode):
    def pass_token(self, site: int) -> None:
        queue, served = self.queue, self.served
        super().pass_token(site)
        self.token_here, self.queue, self.served = True, queue, served


def nodes_of(kind: type[GoscinskiNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size) for me in range(network.size)]

    return make


GOSCINSKI = find("goscinski")

MUTANTS: list[Mutant] = [
    Mutant(
        GOSCINSKI,
        "lines-up-in-order-of-arrival",
        "a site that leaves adds those who asked meanwhile at the end of the queue",
        nodes_of(LinesUpInOrderOfArrival),
        Case(3, "complete", "0:1@1 1:1@1 2:1@2"),
        breaks="order",
        steps=9,
    ),
    Mutant(
        GOSCINSKI,
        "keeps-an-old-priority",
        "a site goes on counting as urgent as it was at its first request",
        nodes_of(KeepsAnOldPriority),
        Case(3, "complete", "1:1@9 1:1@1 2:1@5 0:1@1"),
        breaks="order",
        steps=17,
    ),
    Mutant(
        GOSCINSKI,
        "forgets-who-asked-meanwhile",
        "a site that leaves does not add to the queue those who asked while it was inside",
        nodes_of(ForgetsWhoAskedMeanwhile),
        Case(2, "complete", "0:1@1 1:1@1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        GOSCINSKI,
        "does-not-count-its-entries",
        "a site that leaves does not note in the token that its request was served",
        nodes_of(DoesNotCountItsEntries),
        Case(3, "complete", "0:1@1 1:1@2 1:1@2"),
        breaks="conservation",
        steps=9,
    ),
    Mutant(
        GOSCINSKI,
        "keeps-and-sends",
        "a site that sends the token keeps a copy",
        nodes_of(KeepsAndSends),
        Case(2, "complete", "1:1@1"),
        breaks="one-token",
        steps=2,
    ),
]
