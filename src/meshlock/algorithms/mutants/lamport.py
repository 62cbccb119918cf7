"""Mistakes one could make in Lamport's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.lamport import LamportNode, Release, Request
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find


class NoTieBreak(LamportNode):
    def younger(self, stamp: int, site: int) -> bool:
        return stamp >= self.queue[self.me]


class DoesNotWaitForAnswers(LamportNode):
    def nothing_older_can_come(self) -> bool:
        return True


class LeavesReleasedRequestsQueued(LamportNode):
    def receive(self, message: Message) -> None:
        queued = self.queue[message.sender]
        super().receive(message)
        if isinstance(message, Release):
            self.queue[message.sender] = queued


class ClockDoesNotJump(LamportNode):
    def receive(self, message: Message) -> None:
        clock = self.clock
        super().receive(message)
        self.clock = clock


class ForgetsWhoAsksMeanwhile(LamportNode):
    def receive(self, message: Message) -> None:
        super().receive(message)
        if isinstance(message, Request) and self.inside:
            self.queue[message.sender] = 0


def nodes_of(kind: type[LamportNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size) for me in range(network.size)]

    return make


LAMPORT = find("lamport")

MUTANTS: list[Mutant] = [
    Mutant(
        LAMPORT,
        "no-tie-break",
        "of two requests with the same timestamp each site takes its own for the older one",
        nodes_of(NoTieBreak),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=4,
    ),
    Mutant(
        LAMPORT,
        "does-not-wait-for-answers",
        "a site enters as soon as its request is the oldest that it knows of",
        nodes_of(DoesNotWaitForAnswers),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=2,
    ),
    Mutant(
        LAMPORT,
        "leaves-released-requests-queued",
        "RELEASE does not take the request out of the queue",
        nodes_of(LeavesReleasedRequestsQueued),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=8,
    ),
    Mutant(
        LAMPORT,
        "clock-does-not-jump",
        "a site's clock does not advance beyond the timestamps of messages that it receives",
        nodes_of(ClockDoesNotJump),
        Case(2, "complete", "0 0 1"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        LAMPORT,
        "forgets-who-asks-meanwhile",
        "a site that is inside acknowledges requests but does not queue them",
        nodes_of(ForgetsWhoAsksMeanwhile),
        Case(2, "complete", "0 0 1"),
        breaks="safety",
        steps=11,
    ),
]
