"""Mistakes one could make in Mueller's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Network, Node
from meshlock.algorithms.mueller import ALONG_THE_TREE, MuellerNode, Request, Waiting
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find


class StaysWithWhoeverWaits(MuellerNode):
    def stays(self, priority: int, hop: int) -> bool:
        return self.requesting and hop == ALONG_THE_TREE


class StaysBesideTheWay(MuellerNode):
    def stays(self, priority: int, hop: int) -> bool:
        return self.requesting and self.priority >= priority


class GoesOnAlongTheTree(MuellerNode):
    def requested(self, origin: int, priority: int, hop: int) -> None:
        if self.requesting and not self.token_here and not self.stays(priority, hop):
            self.send(Request(self.father, origin, priority, ALONG_THE_TREE))
        else:
            super().requested(origin, priority, hop)


class LeavesItsQueueBehind(MuellerNode):
    def pass_token(self, site: int) -> None:
        queue = self.queue
        self.queue = []
        super().pass_token(site)
        self.queue = queue


class ForgetsWhoCameHere(MuellerNode):
    def received(self, hop: int, queue: tuple[Waiting, ...]) -> None:
        self.queue = []
        super().received(hop, queue)


class InOrderOfArrival(MuellerNode):
    def line_up(self, waiting: Waiting) -> None:
        self.queue.append(waiting)


class KeepsAndSends(MuellerNode):
    def pass_token(self, site: int) -> None:
        super().pass_token(site)
        self.token_here = True


def nodes_of(kind: type[MuellerNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out) for me in range(network.size)]

    return make


MUELLER = find("mueller")

MUTANTS: list[Mutant] = [
    Mutant(
        MUELLER,
        "stays-with-whoever-waits",
        "a request stays with a waiting site, even if that one is less urgent",
        nodes_of(StaysWithWhoeverWaits),
        Case(4, "complete", "0:1@1 1:1@1 2:1@9 3:1@5"),
        breaks="order",
        steps=9,
    ),
    Mutant(
        MUELLER,
        "goes-on-along-the-tree",
        "a request that meets a less urgent one goes on to that one's father, which sends it back",
        nodes_of(GoesOnAlongTheTree),
        Case(4, "complete", "0:1@1 1:1@1 2:1@9 3:1@5"),
        breaks="served",
        steps=9,
    ),
    Mutant(
        MUELLER,
        "stays-beside-the-way",
        "a request that goes after the token stays with one as urgent, which may wait for it",
        nodes_of(StaysBesideTheWay),
        Case(4, "complete", "1:1@1 2:1@5 3:1@5 3:1@5"),
        breaks="served",
        steps=13,
    ),
    Mutant(
        MUELLER,
        "leaves-its-queue-behind",
        "the token goes without the queue of the site that sends it",
        nodes_of(LeavesItsQueueBehind),
        Case(3, "complete", "0:1@1 1:1@1 2:1@1"),
        breaks="served",
        steps=8,
    ),
    Mutant(
        MUELLER,
        "forgets-who-came-here",
        "the queue of the token takes the place of the local one",
        nodes_of(ForgetsWhoCameHere),
        Case(3, "complete", "1:1@1 2:1@1"),
        breaks="served",
        steps=7,
    ),
    Mutant(
        MUELLER,
        "in-order-of-arrival",
        "a new request goes to the end of the queue, whatever its priority",
        nodes_of(InOrderOfArrival),
        Case(3, "complete", "0:1@1 1:1@1 2:1@2"),
        breaks="order",
        steps=7,
    ),
    Mutant(
        MUELLER,
        "keeps-and-sends",
        "a site that sends the token believes that it still has it",
        nodes_of(KeepsAndSends),
        Case(2, "complete", "1:1@1"),
        breaks="one-token",
        steps=2,
    ),
]
