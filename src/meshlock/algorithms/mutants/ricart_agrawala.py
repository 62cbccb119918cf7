"""Mistakes one could make in Ricart and Agrawala's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find
from meshlock.algorithms.ricart_agrawala import RicartAgrawalaNode


class TooPolite(RicartAgrawalaNode):
    def before(self, number: int, site: int) -> bool:
        return self.number < number


class TooStubborn(RicartAgrawalaNode):
    def before(self, number: int, site: int) -> bool:
        return self.number <= number


class ForgetsTheDeferred(RicartAgrawalaNode):
    def release(self, client: int) -> None:
        self.deferred = []
        super().release(client)


class IgnoresOthersNumbers(RicartAgrawalaNode):
    def receive(self, message: Message) -> None:
        highest = self.highest
        super().receive(message)
        self.highest = highest


class RepliesWhileInside(RicartAgrawalaNode):
    def before(self, number: int, site: int) -> bool:
        return self.outstanding > 0 and super().before(number, site)


def nodes_of(kind: type[RicartAgrawalaNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size) for me in range(network.size)]

    return make


RICART_AGRAWALA = find("ricart-agrawala")

MUTANTS: list[Mutant] = [
    Mutant(
        RICART_AGRAWALA,
        "too-polite",
        "of two requests with the same number each site lets the other go first",
        nodes_of(TooPolite),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        RICART_AGRAWALA,
        "too-stubborn",
        "of two requests with the same number each site goes first",
        nodes_of(TooStubborn),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        RICART_AGRAWALA,
        "forgets-the-deferred",
        "a site that leaves does not send the replies that it owes",
        nodes_of(ForgetsTheDeferred),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=6,
    ),
    Mutant(
        RICART_AGRAWALA,
        "ignores-others-numbers",
        "a site numbers its requests without regard to those of others",
        nodes_of(IgnoresOthersNumbers),
        Case(2, "complete", "0 0 1"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        RICART_AGRAWALA,
        "replies-while-inside",
        "a site that is inside replies at once",
        nodes_of(RepliesWhileInside),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=6,
    ),
]
