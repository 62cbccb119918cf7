"""Mistakes one could make on the way to a token that moves."""

from __future__ import annotations

from meshlock.algorithms.direct import Ahead, DirectNode, Grant, Release, Request, Token, rests
from meshlock.algorithms.interface import NIL, Effect, Message, Network, Node
from meshlock.algorithms.mutants.made import Case, Make, Mutant
from meshlock.algorithms.registry import find


class KeepsAndSends(DirectNode):
    def give(self, node: int) -> None:
        free = self.free
        super().give(node)
        self.holder, self.free = True, free


class ForgetsWhatCameAhead(DirectNode):
    def receive_token(self, token: Token) -> None:
        self.ahead = []
        super().receive_token(token)


class WaitsForATokenThatHasGone(DirectNode):
    def receive_request(self, m: Request) -> None:
        if m.hop + 1 == self.hop and not self.holder:
            self.wait_ahead((m.asker, m.number, m.since, m.want, m.priority, m.rank, m.fresh))
        else:
            super().receive_request(m)


class KeepsTheFirstEntry(DirectNode):
    def hear(self, one: Ahead) -> None:
        if one[0] == self.me or all(other[0] != one[0] for other in self.queue):
            super().hear(one)


class LetsTheSmallPass(DirectNode):
    def decide(self) -> None:
        while self.holder:
            fitting = [asked for asked in self.queue if 0 < asked[2] <= self.free]
            if not fitting:
                return
            self.queue.remove(fitting[0])
            self.queue.insert(0, fitting[0])
            if fitting[0][0] == self.me:
                self.let_in()
            elif self.free == self.permits:
                self.give(fitting[0][0])
            else:
                self.grant()


class GrantsWithoutCounting(DirectNode):
    def grant(self) -> None:
        free = self.free
        super().grant()
        self.free = free


class GivesItToTheMostUrgent(DirectNode):
    """Whoever it was granted to, and whatever that one wanted."""

    def client_of(self, number: int) -> int:
        return NIL if self.own.is_empty() else self.own.first().client


class HasOneLine(DirectNode):
    """The others of its clients wait until it has got permits."""

    def __init__(self, me: int, out: list[Effect], permits: int, patience: int) -> None:
        super().__init__(me, out, permits, patience)
        self.lines = 1
        self.numbers = [0]
        self.since = [0]
        self.placed = [NIL]


class TakesAllForOneLine(DirectNode):
    def hear(self, one: Ahead) -> None:
        self.queue = [other for other in self.queue if other[0] != one[0] or other[1] > one[1]]
        super().hear(one)


class AsksOnlyOnce(DirectNode):
    """The others of its clients wait until the token comes."""

    def receive_grant(self, m: Grant) -> None:
        before = len(self.out)
        super().receive_grant(m)
        self.out[before:] = [one for one in self.out[before:] if not isinstance(one, Request)]


class AsksAnewWhenItChanges(DirectNode):
    """A changed priority is a withdrawal and another request."""

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        age = self.waited(client)
        if not self.withdraw(client):
            return False
        self.resume(client, want, priority, age)
        return True


class KeepsWhatIsReleased(DirectNode):
    """RELEASE stays where the token was."""

    def receive(self, message: Message) -> None:
        if isinstance(message, Release) and not self.holder:
            self.free += message.count
        else:
            super().receive(message)


class ForgetsPermitsThatCameAhead(DirectNode):
    def receive_token(self, token: Token) -> None:
        self.free = 0
        super().receive_token(token)


class MovesOnWithWhatIsOut(DirectNode):
    """It takes for granted that all permits are with the token."""

    def give(self, node: int) -> None:
        self.free = self.permits
        super().give(node)


def nodes_of(kind: type[DirectNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        patience = int(options["patience"]) if options["ageing"] == "stamped" else 0
        nodes = [kind(me, out, permits, patience) for me in range(network.size)]
        for node in nodes:
            node.rest = rests(options)
        return list[Node](nodes)

    return make


DIRECT = find("direct")

MUTANTS: list[Mutant] = [
    Mutant(
        DIRECT,
        "keeps-and-sends",
        "the token is sent and kept",
        nodes_of(KeepsAndSends),
        Case(2, "complete", "1:1@1"),
        breaks="one-token",
        steps=2,
    ),
    Mutant(
        DIRECT,
        "forgets-what-came-ahead",
        "requests that waited for the token are forgotten when it arrives",
        nodes_of(ForgetsWhatCameAhead),
        Case(3, "complete", "1:1@2 2:1@1"),
        breaks="served",
        steps=7,
    ),
    Mutant(
        DIRECT,
        "waits-for-a-token-that-has-gone",
        "a request of an old pointer waits where the token was, as if it were still to come",
        nodes_of(WaitsForATokenThatHasGone),
        Case(3, "complete", "1:1@2 2:1@1"),
        breaks="served",
        steps=6,
    ),
    Mutant(
        DIRECT,
        "keeps-the-first-entry",
        "a newer request of a node does not take the place of the older one in the queue",
        nodes_of(KeepsTheFirstEntry),
        Case(3, "complete", "0:1@5 1:1@1 1:1@9 2:1@5", clients=2),
        breaks="order",
        steps=9,
    ),
    Mutant(
        DIRECT,
        "lets-the-small-pass",
        "a request that fits into the free permits goes first, whatever its rank",
        nodes_of(LetsTheSmallPass),
        Case(3, "complete", "0:1@1 0:1@1 1:2@9 2:1@1", permits=2, clients=2),
        breaks="order",
        steps=7,
    ),
    Mutant(
        DIRECT,
        "grants-without-counting",
        "permits that are sent to another node count as free",
        nodes_of(GrantsWithoutCounting),
        Case(2, "complete", "0:1@1 1:1@1", permits=2),
        breaks="conservation",
        steps=3,
    ),
    Mutant(
        DIRECT,
        "gives-it-to-the-most-urgent",
        "permits that were granted for a client are taken by a more urgent one that wants more",
        nodes_of(GivesItToTheMostUrgent),
        Case(2, "complete", "0:1@1 1:1@1 1:2@9", permits=3, clients=2),
        breaks="conservation",
        steps=5,
    ),
    Mutant(
        DIRECT,
        "asks-only-once",
        "a node that is granted permits does not ask for its next client",
        nodes_of(AsksOnlyOnce),
        Case(2, "complete", "0:1@1 1:1@1 1:1@1 1:1@1", permits=2, clients=3),
        breaks="served",
        steps=13,
    ),
    Mutant(
        DIRECT,
        "has-one-line",
        "of the clients of a node only the most urgent is in the queue, whatever comes free",
        nodes_of(HasOneLine),
        Case(3, "complete", "0:1@1 0:2@1 1:1@1 2:1@9 2:1@9", permits=3, clients=2),
        breaks="order",
        steps=8,
    ),
    Mutant(
        DIRECT,
        "takes-all-for-one-line",
        "a newer request of a node takes the place of all older ones, not of that in its line",
        nodes_of(TakesAllForOneLine),
        Case(2, "complete", "0:2@1 1:1@1 1:1@1", permits=2, clients=2),
        breaks="served",
        steps=7,
    ),
    Mutant(
        DIRECT,
        "asks-anew-when-it-changes",
        "a request that becomes more urgent is withdrawn and made again, and another is let in",
        nodes_of(AsksAnewWhenItChanges),
        Case(3, "complete", "0:2@9 1:2@5 2:1@3", permits=3, raises=["1:9"]),
        breaks="order",
        steps=7,
    ),
    Mutant(
        DIRECT,
        "keeps-what-is-released",
        "permits that are released to where the token was do not follow it",
        nodes_of(KeepsWhatIsReleased),
        Case(3, "complete", "0:1@1 1:1@1 2:1@1 2:3@1", permits=3, options={"rest": "3"}),
        breaks="served",
        steps=12,
    ),
    Mutant(
        DIRECT,
        "forgets-permits-that-came-ahead",
        "permits that were released ahead of the token are forgotten when it arrives",
        nodes_of(ForgetsPermitsThatCameAhead),
        Case(3, "complete", "0:1@1 1:1@1 2:1@1", permits=2, options={"rest": "2"}),
        breaks="conservation",
        steps=6,
    ),
    Mutant(
        DIRECT,
        "moves-on-with-what-is-out",
        "a token that moves on counts permits as free that are out",
        nodes_of(MovesOnWithWhatIsOut),
        Case(2, "complete", "0:1@1 1:1@1", permits=2, options={"rest": "2"}),
        breaks="conservation",
        steps=3,
    ),
]
