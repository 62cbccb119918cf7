"""Mistakes one could make with Chandy and Misra's forks."""

from __future__ import annotations

from meshlock.algorithms.chandy_misra import ChandyMisraNode
from meshlock.algorithms.interface import Effect, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find


class StartsInACircle(ChandyMisraNode):
    def __init__(self, me: int, out: list[Effect], size: int) -> None:
        super().__init__(me, out, size)
        self.forks = {(me + 1) % size}
        self.dirty = {(me + 1) % size}
        self.requests = {(me - 1) % size}


class GivesCleanForks(ChandyMisraNode):
    def give(self, site: int) -> None:
        self.dirty |= self.forks
        super().give(site)


class KeepsDirtyForks(ChandyMisraNode):
    def give(self, site: int) -> None:
        if not self.hungry:
            super().give(site)


class GivesWhileEating(ChandyMisraNode):
    def give(self, site: int) -> None:
        eating = self.eating
        self.eating = False
        super().give(site)
        self.eating = eating


class DoesNotAskBack(ChandyMisraNode):
    def give(self, site: int) -> None:
        hungry = self.hungry
        self.hungry = False
        super().give(site)
        self.hungry = hungry


class WashesUp(ChandyMisraNode):
    def release(self, client: int) -> None:
        super().release(client)
        self.dirty = set()


class GivesNothingOnLeaving(ChandyMisraNode):
    def release(self, client: int) -> None:
        self.client = -1
        self.eating = False
        self.dirty = set(self.forks)


def nodes_of(kind: type[ChandyMisraNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size) for me in range(network.size)]

    return make


CHANDY_MISRA = find("chandy-misra")

MUTANTS: list[Mutant] = [
    Mutant(
        CHANDY_MISRA,
        "starts-in-a-circle",
        "each site has its right fork at the start, so each comes before the next in a circle",
        nodes_of(StartsInACircle),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=12,
    ),
    Mutant(
        CHANDY_MISRA,
        "gives-clean-forks",
        "a hungry site gives away clean forks, too, and each waits for what another gave away",
        nodes_of(GivesCleanForks),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=14,
    ),
    Mutant(
        CHANDY_MISRA,
        "keeps-dirty-forks",
        "a hungry site keeps its forks, clean or dirty, until it has eaten",
        nodes_of(KeepsDirtyForks),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=8,
    ),
    Mutant(
        CHANDY_MISRA,
        "gives-while-eating",
        "a site gives forks away while it eats with them",
        nodes_of(GivesWhileEating),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=4,
    ),
    Mutant(
        CHANDY_MISRA,
        "does-not-ask-back",
        "a hungry site that gives a fork away does not ask for it back",
        nodes_of(DoesNotAskBack),
        Case(3, "complete", "1 2"),
        breaks="served",
        steps=9,
    ),
    Mutant(
        CHANDY_MISRA,
        "washes-up",
        "a site washes its forks after the meal, and keeps them for the next",
        nodes_of(WashesUp),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        CHANDY_MISRA,
        "gives-nothing-on-leaving",
        "a site that has eaten does not give away the forks that were asked for meanwhile",
        nodes_of(GivesNothingOnLeaving),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=4,
    ),
]
