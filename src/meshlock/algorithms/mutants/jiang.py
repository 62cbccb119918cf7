"""The printed algorithm's faults, each alone in the repaired one, and some of our own."""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.interface import NIL, Effect, Message, Network, Node
from meshlock.algorithms.jiang import (
    JiangNode,
    Release,
    Rules,
    Token,
    Update,
)
from meshlock.algorithms.mutants.made import Case, Make, Mutant
from meshlock.algorithms.queues import FRESH, Entry
from meshlock.algorithms.registry import find
from meshlock.algorithms.reverse_link import Height, first_heights


class ForgetsItself(JiangNode):
    """J1: a waiting holder gives the token to whoever asks, and drops its own request."""

    def decide(self) -> None:
        if self.t > 0 and len(self.queue) > 1:
            front = self.queue.first()
            if front.neighbour == NIL and front.want > self.t:
                self.queue.remove(front)
        super().decide()


class ForgetsItselfWhenOvertaken(JiangNode):
    """J2: when a higher one takes the token away, the own request is sent but not kept."""

    def give(self, entry: Entry) -> None:
        super().give(entry)
        for own in [other for other in self.queue.all() if other.neighbour == NIL]:
            self.queue.remove(own)


class KeepsItsOwnUrgencyToItself(JiangNode):
    """J3: an own request is announced only if it is the only one."""

    def request(self, client: int, want: int, priority: int) -> None:
        if self.holder or len(self.queue) == 0:
            super().request(client, want, priority)
        else:
            base = priority * self.rules.weight
            self.queue.push(Entry(NIL, client, want, priority, base - self.grants, FRESH, base))


class SwallowsUpdatesOfItsFront(JiangNode):
    """J4: an UPDATE of the entry that is first already is not passed on."""

    def receive_update(self, update: Update) -> None:
        front = self.queue.first().neighbour if len(self.queue) > 0 else NIL
        super().receive_update(update)
        if front == update.sender and len(self.queue) > 0 and self.told:
            self.remember(self.queue.first())


class DoesNotLookAgain(JiangNode):
    """J5: permits that are released are counted, but no waiting request is checked against them."""

    def receive(self, message: Message) -> None:
        if isinstance(message, Release) and self.holder:
            self.t += message.r
        else:
            super().receive(message)


class LosesItsNextByReleasing(JiangNode):
    """J6: RELEASE changes ``next``, which is where the request is."""

    def send(self, message: Message) -> None:
        super().send(message)
        if isinstance(message, Release):
            self.next = message.receiver


class KeepsADeadNext(JiangNode):
    """J7: the link to the node that holds our request fails, and we think it still does."""

    def link_down(self, peer: int) -> None:
        told, asked = self.told, self.next
        super().link_down(peer)
        if told and asked == peer and len(self.views) == 0 and not self.queue.is_empty():
            self.remember(self.queue.first())
            self.next = peer

    def see(self, j: int, height: Height) -> None:
        self.views[j] = height
        if height < self.height:
            self.delete(j)

    def take_back(self) -> None:
        if self.next in self.views:
            super().take_back()


class TellsOnlyRises(JiangNode):
    """J9: a front of the queue that becomes less urgent is not announced to the next."""

    def pursue(self) -> None:
        fallen = self.told and len(self.queue) > 0 and self.queue.first().rank < self.told[1]
        if not (fallen and self.stranded == 0 and self.has_lower()):
            super().pursue()


class KeepsTheTokenInside(JiangNode):
    """J10: a holder that is inside lets nobody else in, however many permits are free."""

    def decide(self) -> None:
        if len(self.clients) == 0:
            super().decide()


class YieldsToEquals(JiangNode):
    """A waiting holder counts itself as the last of its rank."""

    def decide(self) -> None:
        if self.t > 0 and len(self.queue) > 1:
            front, second = self.queue.entries[0], self.queue.entries[1]
            if front.neighbour == NIL and front.want > self.t and second.neighbour != NIL:
                self.give(second)
                return
        super().decide()


class KeepsAndSends(JiangNode):
    """The token is sent and kept."""

    def give(self, entry: Entry) -> None:
        t = self.t
        super().give(entry)
        self.holder, self.t = True, t


class ReleasesTwice(JiangNode):
    """A client that leaves without the token frees its permits here and at the holder."""

    def release(self, client: int) -> None:
        permits = self.clients[client]
        super().release(client)
        if not self.holder:
            self.stranded += permits


class DoesNotAskBack(JiangNode):
    """The token is passed on and not asked back for those that still wait here."""

    def give(self, entry: Entry) -> None:
        super().give(entry)
        if len(self.queue) > 0:
            self.out.pop()


class StaysWhereItWas(JiangNode):
    """The token is received, and the height stays as it was, above the giver's."""

    def receive_token(self, token: Token) -> None:
        h1, h2, _ = self.height
        token.height = (h1, h2 + 1, token.sender)
        super().receive_token(token)


class TakesALateGiverForANeighbour(JiangNode):
    """Of our own: whoever gave the token is linked to us, however late the token comes."""

    def receive_token(self, token: Token) -> None:
        self.views[token.sender] = token.height
        super().receive_token(token)


class AsksAnewWhenItChanges(JiangNode):
    """A changed priority is a withdrawal and another request, with a decision between them."""

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        age = self.waited(client)
        if not self.withdraw(client):
            return False
        self.resume(client, want, priority, age)
        return True


def nodes_of(kind: Callable[[int, list[Effect], Rules, Height, bool], JiangNode]) -> Make:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        rules = Rules(permits, options)
        heights = first_heights(network)
        nodes: list[Node] = []
        for me in range(network.size):
            node = kind(me, out, rules, heights[me], me == 0)
            for j in network.neighbours(me):
                node.views[j] = heights[j]
            nodes.append(node)
        return nodes

    return make


JIANG = find("jiang")

MUTANTS: list[Mutant] = [
    Mutant(
        JIANG,
        "j1-forgets-itself",
        "a waiting holder gives the token to whoever asks, and drops its own request",
        nodes_of(ForgetsItself),
        Case(3, "line", "0:1@9 1:2@5 2:1@1", permits=2),
        breaks="order",
        steps=9,
    ),
    Mutant(
        JIANG,
        "j2-forgets-itself-when-overtaken",
        "a holder that loses the token to a higher request asks for it again but forgets for whom",
        nodes_of(ForgetsItselfWhenOvertaken),
        Case(3, "line", "0:1@9 1:2@5 2:1@9", permits=2),
        breaks="served",
        steps=13,
    ),
    Mutant(
        JIANG,
        "j3-keeps-its-own-urgency-to-itself",
        "an own request is announced only if nobody else's is in the queue",
        nodes_of(KeepsItsOwnUrgencyToItself),
        Case(4, "edges:0-1,1-2,0-3", "0:1@1 2:1@1 3:1@5 1:1@9"),
        breaks="order",
        steps=9,
    ),
    Mutant(
        JIANG,
        "j4-swallows-updates-of-its-front",
        "an UPDATE of the entry that is first already is not passed on",
        nodes_of(SwallowsUpdatesOfItsFront),
        Case(5, "edges:0-1,1-2,2-3,0-4", "0:1@1 2:1@3 4:1@5 3:1@9"),
        breaks="order",
        steps=11,
    ),
    Mutant(
        JIANG,
        "j5-does-not-look-again",
        "permits that are released are counted, but no waiting request is checked against them",
        nodes_of(DoesNotLookAgain),
        Case(2, "line", "0:1@9 1:2@5", permits=2),
        breaks="served",
        steps=7,
    ),
    Mutant(
        JIANG,
        "j6-loses-its-next-by-releasing",
        "RELEASE changes next, which is where the request is",
        nodes_of(LosesItsNextByReleasing),
        Case(3, "line", "2:1@5 0:1@3 2:1@1", permits=2, changes=["up 0-2", "down 1-2"], clients=2),
        breaks="served",
        steps=25,
    ),
    Mutant(
        JIANG,
        "j7-keeps-a-dead-next",
        "the only link fails, and the request is still taken to be at that neighbour",
        nodes_of(KeepsADeadNext),
        Case(3, "line", "0:1@1 2:1@5", changes=["up 0-2", "down 1-2"]),
        breaks="served",
        steps=10,
    ),
    Mutant(
        JIANG,
        "j8-thinks-links-need-no-order",
        "the algorithm unchanged, on links where the token may be overtaken",
        nodes_of(JiangNode),
        Case(4, "star", "1:1@9 2:1@5 3:1@1"),
        breaks="served",
        steps=8,
        unordered=True,
    ),
    Mutant(
        JIANG,
        "j9-tells-only-rises",
        "a front of the queue that becomes less urgent is not announced to the next",
        nodes_of(TellsOnlyRises),
        Case(5, "edges:0-1,1-2,1-3,0-4,2-4", "0:1@1 3:1@1 2:1@9 4:1@5", changes=["down 1-2"]),
        breaks="order",
        steps=12,
    ),
    Mutant(
        JIANG,
        "j10-keeps-the-token-inside",
        "a holder that is inside lets nobody else in, however many permits are free",
        nodes_of(KeepsTheTokenInside),
        Case(2, "line", "0:1@1 1:1@1", permits=3, stay=[0]),
        breaks="served",
        steps=3,
    ),
    Mutant(
        JIANG,
        "yields-to-lower",
        "a holder that waits for permits passes the token to the next in its queue",
        nodes_of(YieldsToEquals),
        Case(3, "line", "0:1@9 1:2@5 2:1@1", permits=2),
        breaks="order",
        steps=9,
    ),
    Mutant(
        JIANG,
        "keeps-and-sends",
        "the token is sent and kept",
        nodes_of(KeepsAndSends),
        Case(2, "line", "0:1@1 1:1@1"),
        breaks="one-token",
        steps=2,
    ),
    Mutant(
        JIANG,
        "releases-twice",
        "a client that leaves without the token frees its permits twice",
        nodes_of(ReleasesTwice),
        Case(2, "line", "0:1@1 1:1@1", permits=2),
        breaks="conservation",
        steps=4,
    ),
    Mutant(
        JIANG,
        "does-not-ask-back",
        "the token is passed on and not requested again for those that still wait",
        nodes_of(DoesNotAskBack),
        Case(3, "edges:0-1,0-2", "0:1@1 1:1@5 2:1@3"),
        breaks="served",
        steps=9,
    ),
    Mutant(
        JIANG,
        "stays-where-it-was",
        "a node that receives the token does not go below its sender",
        nodes_of(StaysWhereItWas),
        Case(3, "line", "0:1@1 1:1@1 2:1@1"),
        breaks="downhill",
        steps=3,
    ),
    Mutant(
        JIANG,
        "takes-a-late-giver-for-a-neighbour",
        "a token that arrives late makes its sender a neighbour, although the link is down",
        nodes_of(TakesALateGiverForANeighbour),
        Case(2, "line", "1:1@1", changes=["down 0-1", "up 0-1"], failures="custody"),
        breaks="neighbours",
        steps=7,
    ),
    Mutant(
        JIANG,
        "asks-anew-when-it-changes",
        "a request that becomes more urgent is withdrawn and made again, and another is let in",
        nodes_of(AsksAnewWhenItChanges),
        Case(3, "complete", "0:2@9 1:2@5 2:1@3", permits=3, raises=["1:9"]),
        breaks="order",
        steps=11,
    ),
]
