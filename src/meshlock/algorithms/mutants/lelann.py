"""Mistakes one could make in Le Lann's ring."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.lelann import RingNode
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find


class PassesOnBeforeLeaving(RingNode):
    def receive(self, message: Message) -> None:
        super().receive(message)
        if self.token_here:
            self.pass_on()

    def release(self, client: int) -> None:
        self.client = -1


class KeepsTheToken(RingNode):
    def release(self, client: int) -> None:
        self.client = -1


class KeepsAndSends(RingNode):
    def pass_on(self) -> None:
        super().pass_on()
        self.token_here = True


class SkipsANeighbour(RingNode):
    def __init__(self, me: int, out: list[Effect], size: int) -> None:
        super().__init__(me, out, size)
        self.successor = (me + 2) % size


def nodes_of(kind: type[RingNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size) for me in range(network.size)]

    return make


LELANN = find("lelann")

MUTANTS: list[Mutant] = [
    Mutant(
        LELANN,
        "passes-on-before-leaving",
        "a site passes the token on as soon as its client has entered",
        nodes_of(PassesOnBeforeLeaving),
        Case(3, "ring", "0 1"),
        breaks="conservation",
        steps=2,
    ),
    Mutant(
        LELANN,
        "keeps-the-token",
        "a site that leaves does not pass the token on",
        nodes_of(KeepsTheToken),
        Case(3, "ring", "0 1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        LELANN,
        "keeps-and-sends",
        "a site that passes the token on believes that it still has it",
        nodes_of(KeepsAndSends),
        Case(3, "ring", "0 1"),
        breaks="one-token",
        steps=1,
    ),
    Mutant(
        LELANN,
        "skips-a-neighbour",
        "the token goes to every second site, which in an even ring leaves out half of them",
        nodes_of(SkipsANeighbour),
        Case(4, "ring", "1"),
        breaks="liveness",
        steps=3,
    ),
]
