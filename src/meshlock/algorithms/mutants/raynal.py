"""Mistakes one could make in Raynal's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.raynal import NotUsed, RaynalNode
from meshlock.algorithms.registry import find


class CountsTwice(RaynalNode):
    def release(self, client: int) -> None:
        for site in set(self.delayed):
            self.send(NotUsed(site, self.want * self.delayed.count(site)))
        self.delayed = []
        super().release(client)

    def answer(self, site: int, number: int) -> None:
        again = self.delayed.count(site)
        self.delayed = [other for other in self.delayed if other != site]
        super().answer(site, number)
        self.delayed = sorted([*self.delayed, *[site] * again])


class StartsFromM(RaynalNode):
    def request(self, client: int, want: int, priority: int) -> None:
        self.used = [0] * self.size
        self.others = 0
        super().request(client, want, priority)


class IgnoresNumbers(RaynalNode):
    def before(self, number: int, site: int) -> bool:
        return True


class AnswersAllWhileInside(RaynalNode):
    def before(self, number: int, site: int) -> bool:
        return not self.inside and super().before(number, site)


class AnswersAllWhileWaiting(RaynalNode):
    def before(self, number: int, site: int) -> bool:
        return self.inside


class ForgetsWhomItOwes(RaynalNode):
    def release(self, client: int) -> None:
        self.delayed = []
        super().release(client)


class CountsItselfOut(RaynalNode):
    def try_to_enter(self) -> None:
        if self.want > 0 and not self.inside and self.others < self.permits:
            self.inside = True
            self.enter(self.client)


def nodes_of(kind: type[RaynalNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size, permits) for me in range(network.size)]

    return make


RAYNAL = find("raynal")

MUTANTS: list[Mutant] = [
    Mutant(
        RAYNAL,
        "counts-twice",
        "K1: a site that asks again while we are inside counts our permits twice",
        nodes_of(CountsTwice),
        Case(2, "complete", "0 1 1", permits=2, stay=[0]),
        breaks="served",
        steps=10,
    ),
    Mutant(
        RAYNAL,
        "starts-from-m",
        "a new request forgets outstanding answers, so that an old one counts for it",
        nodes_of(StartsFromM),
        Case(2, "complete", "0:1 0:2 1:1 1:2", permits=2),
        breaks="safety",
        steps=10,
    ),
    Mutant(
        RAYNAL,
        "ignores-numbers",
        "a waiting site puts its own request first, whatever the numbers: two wait for each other",
        nodes_of(IgnoresNumbers),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        RAYNAL,
        "answers-all-while-inside",
        "a site that is inside says that it uses nothing",
        nodes_of(AnswersAllWhileInside),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        RAYNAL,
        "answers-all-while-waiting",
        "a site that waits says that it uses nothing even to those who come after it",
        nodes_of(AnswersAllWhileWaiting),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        RAYNAL,
        "forgets-whom-it-owes",
        "a site that leaves does not say that its permits are free",
        nodes_of(ForgetsWhomItOwes),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=6,
    ),
    Mutant(
        RAYNAL,
        "counts-itself-out",
        "a site enters when any permit is left, however many it wants",
        nodes_of(CountsItselfOut),
        Case(2, "complete", "0:1 1:2", permits=2),
        breaks="safety",
        steps=6,
    ),
]
