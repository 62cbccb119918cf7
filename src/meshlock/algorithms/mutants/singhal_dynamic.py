"""Mistakes one could make with Singhal's dynamic structure."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find
from meshlock.algorithms.singhal_dynamic import Reply, Request, SinghalDynamicNode


class NoStaircase(SinghalDynamicNode):
    def __init__(self, me: int, out: list[Effect]) -> None:
        super().__init__(me, out)
        self.request_set = set()


class DoesNotAskBack(SinghalDynamicNode):
    def requested(self, site: int, number: int) -> None:
        known = site in self.request_set
        asked = len(self.out)
        super().requested(site, number)
        if not known and any(isinstance(effect, Request) for effect in self.out[asked:]):
            self.out.pop()
            self.request_set.discard(site)


class ForgetsToWhomItGaveWay(SinghalDynamicNode):
    def reply(self, site: int) -> None:
        self.send(Reply(site, self.clock))


class AsksByItsClock(SinghalDynamicNode):
    def requested(self, site: int, number: int) -> None:
        if self.number > 0 and not self.executing:
            self.number = self.clock
        super().requested(site, number)


class OwesNothing(SinghalDynamicNode):
    def release(self, client: int) -> None:
        self.inform_set = set()
        super().release(client)


class AnswersWhileExecuting(SinghalDynamicNode):
    def requested(self, site: int, number: int) -> None:
        if self.executing and not self.before(number, site):
            self.reply(site)
        else:
            super().requested(site, number)


class IgnoresNumbers(SinghalDynamicNode):
    def before(self, number: int, site: int) -> bool:
        return self.number > 0


def nodes_of(kind: type[SinghalDynamicNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out) for me in range(network.size)]

    return make


SINGHAL_DYNAMIC = find("singhal-dynamic")

MUTANTS: list[Mutant] = [
    Mutant(
        SINGHAL_DYNAMIC,
        "no-staircase",
        "at the start nobody has anybody in its request set",
        nodes_of(NoStaircase),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=2,
    ),
    Mutant(
        SINGHAL_DYNAMIC,
        "does-not-ask-back",
        "a site that returns a permission that it already had does not ask for it again",
        nodes_of(DoesNotAskBack),
        Case(3, "complete", "0 1 2"),
        breaks="safety",
        steps=12,
    ),
    Mutant(
        SINGHAL_DYNAMIC,
        "forgets-to-whom-it-gave-way",
        "a site that replies does not put the requester into its request set",
        nodes_of(ForgetsToWhomItGaveWay),
        Case(2, "complete", "0 1"),
        breaks="safety",
        steps=4,
    ),
    Mutant(
        SINGHAL_DYNAMIC,
        "asks-by-its-clock",
        "D1: the number of a request that waits grows with the clock",
        nodes_of(AsksByItsClock),
        Case(3, "complete", "0 1 2"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        SINGHAL_DYNAMIC,
        "owes-nothing",
        "a site that leaves does not reply to those who asked meanwhile",
        nodes_of(OwesNothing),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        SINGHAL_DYNAMIC,
        "answers-while-executing",
        "a site that is inside replies to an earlier request that arrives late",
        nodes_of(AnswersWhileExecuting),
        Case(2, "complete", "0 0 1"),
        breaks="safety",
        steps=6,
    ),
    Mutant(
        SINGHAL_DYNAMIC,
        "ignores-numbers",
        "a waiting site puts its own request first, whatever the numbers: two wait for each other",
        nodes_of(IgnoresNumbers),
        Case(3, "complete", "0 1 2"),
        breaks="served",
        steps=8,
    ),
]
