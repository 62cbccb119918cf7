"""Mistakes one could make in Naimi and Trehel's algorithm."""

from __future__ import annotations

from meshlock.algorithms.interface import NIL, Effect, Message, Network, Node
from meshlock.algorithms.mutants.mutant import Case, Make, Mutant
from meshlock.algorithms.naimi_trehel import NaimiTrehelNode, Request
from meshlock.algorithms.registry import find


class KeepsItsFather(NaimiTrehelNode):
    def request(self, client: int, want: int, priority: int) -> None:
        father = self.father
        super().request(client, want, priority)
        self.father = father


class StaysTheRoot(NaimiTrehelNode):
    def requested(self, origin: int) -> None:
        root = self.father == NIL and self.requesting
        super().requested(origin)
        if root:
            self.father = NIL


class ForgetsWhoIsNext(NaimiTrehelNode):
    def release(self, client: int) -> None:
        self.next = NIL
        super().release(client)


class RemembersWhoWasNext(NaimiTrehelNode):
    def release(self, client: int) -> None:
        served = self.next
        super().release(client)
        self.next = served


class KeepsAndSends(NaimiTrehelNode):
    def pass_token(self, site: int) -> None:
        super().pass_token(site)
        self.token_here = True


class TakesTheMessengerForTheAsker(NaimiTrehelNode):
    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.requested(message.sender)
        else:
            super().receive(message)


def nodes_of(kind: type[NaimiTrehelNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [kind(me, out, network.father(me)) for me in range(network.size)]

    return make


NAIMI_TREHEL = find("naimi-trehel-original")

MUTANTS: list[Mutant] = [
    Mutant(
        NAIMI_TREHEL,
        "keeps-its-father",
        "a site that asks does not become the root, and sends others' requests to its old father",
        nodes_of(KeepsItsFather),
        Case(3, "complete", "1 2"),
        breaks="liveness",
        steps=12,
    ),
    Mutant(
        NAIMI_TREHEL,
        "stays-the-root",
        "a waiting root that has a next does not make it its father, and loses it",
        nodes_of(StaysTheRoot),
        Case(3, "complete", "0 1 2"),
        breaks="one-token",
        steps=6,
    ),
    Mutant(
        NAIMI_TREHEL,
        "forgets-who-is-next",
        "a site that leaves keeps the token though another one is next",
        nodes_of(ForgetsWhoIsNext),
        Case(2, "complete", "0 1"),
        breaks="served",
        steps=4,
    ),
    Mutant(
        NAIMI_TREHEL,
        "remembers-who-was-next",
        "a site that has sent the token to its next does not forget it, and sends it there again",
        nodes_of(RemembersWhoWasNext),
        Case(2, "complete", "0 1 0"),
        breaks="conservation",
        steps=11,
    ),
    Mutant(
        NAIMI_TREHEL,
        "keeps-and-sends",
        "a site that sends the token believes that it still has it",
        nodes_of(KeepsAndSends),
        Case(2, "complete", "1"),
        breaks="one-token",
        steps=2,
    ),
    Mutant(
        NAIMI_TREHEL,
        "takes-the-messenger-for-the-asker",
        "the site that passed a request on is taken for the one that made it",
        nodes_of(TakesTheMessengerForTheAsker),
        Case(3, "line", "2"),
        breaks="conservation",
        steps=4,
    ),
]
