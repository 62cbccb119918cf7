"""Mistakes one could make in Suzuki and Kasami's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import Effect, Message, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.registry import find
from meshlock.algorithms.suzuki_kasami import Request, SuzukiKasamiNode


class ForgetsNewerRequests(SuzukiKasamiNode):
    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.asked[message.sender] = 0
        super().receive(message)


class DoesNotCountItsEntries(SuzukiKasamiNode):
    def release(self, client: int) -> None:
        before = self.asked[self.me]
        self.asked[self.me] = self.served[self.me]
        super().release(client)
        self.asked[self.me] = before


class ForgetsWhoAskedMeanwhile(SuzukiKasamiNode):
    def release(self, client: int) -> None:
        self.client = -1
        self.requesting = False
        self.served[self.me] = self.asked[self.me]
        if self.queue:
            self.pass_token(self.queue.pop(0))


class EntersWithoutSayingSo(SuzukiKasamiNode):
    def request(self, client: int, want: int, priority: int) -> None:
        super().request(client, want, priority)
        if self.token_here:
            self.requesting = False


class KeepsAndSends(SuzukiKasamiNode):
    def pass_token(self, site: int) -> None:
        queue, served = self.queue, self.served
        super().pass_token(site)
        self.token_here, self.queue, self.served = True, queue, served


def nodes_of(kind: type[SuzukiKasamiNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.size) for me in range(network.size)]

    return make


SUZUKI_KASAMI = find("suzuki-kasami")

MUTANTS: list[Mutant] = [
    Mutant(
        SUZUKI_KASAMI,
        "forgets-newer-requests",
        "the number of a late REQUEST replaces a higher one that came before it",
        nodes_of(ForgetsNewerRequests),
        Case(3, "complete", "1 1 2"),
        breaks="served",
        steps=13,
    ),
    Mutant(
        SUZUKI_KASAMI,
        "does-not-count-its-entries",
        "a site that leaves does not note in the token that its request was served",
        nodes_of(DoesNotCountItsEntries),
        Case(3, "complete", "0 1 1"),
        breaks="conservation",
        steps=9,
    ),
    Mutant(
        SUZUKI_KASAMI,
        "forgets-who-asked-meanwhile",
        "a site that leaves does not add to the queue those who asked while it was inside",
        nodes_of(ForgetsWhoAskedMeanwhile),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        SUZUKI_KASAMI,
        "enters-without-saying-so",
        "the holder that enters does not set requesting, so it gives the token away",
        nodes_of(EntersWithoutSayingSo),
        Case(2, "complete", "0 1"),
        breaks="conservation",
        steps=1,
    ),
    Mutant(
        SUZUKI_KASAMI,
        "keeps-and-sends",
        "a site that sends the token keeps a copy",
        nodes_of(KeepsAndSends),
        Case(2, "complete", "1"),
        breaks="one-token",
        steps=2,
    ),
]
