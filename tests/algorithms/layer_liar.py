"""Algorithms that lie: they let in whom they like, send tokens to all, and permits out of nothing,
also as grants to clients of others.

Nobody needs to be served by such an algorithm; but whatever it does, the layer keeps k permits k.
"""

from __future__ import annotations

from random import Random
from typing import ClassVar

from meshlock.algorithms.actor import (
    NIL,
    Actor,
    Algorithm,
    Assumptions,
    Effect,
    Message,
    Network,
    Newcomers,
    OpenActor,
    Serves,
)

NOBODY = 10**9
"""A client that never asked."""


class Lie(Message):
    def __init__(self, receiver: int, count: int) -> None:
        super().__init__(receiver)
        self.count = count

    def permits(self) -> int:
        return self.count


class FalseToken(Lie):
    kind: ClassVar[str] = "TOKEN"

    def tokens(self) -> int:
        return 1


class FalsePermits(Lie):
    kind: ClassVar[str] = "RELEASE"


class FalseGrant(Lie):
    kind: ClassVar[str] = "GRANT"

    def lends(self) -> int:
        return self.count


class LiarNode(OpenActor):
    """Some of what it does is right, so that lies are built upon."""

    def __init__(
        self, me: int, out: list[Effect], liar: Liar, size: int, permits: int, holder: bool
    ) -> None:
        super().__init__(me, out)
        self.liar = liar
        self.random = liar.random
        self.size = size
        self.all_permits = permits
        self.holder = holder
        self.free = permits if holder else 0
        self.wants: dict[int, int] = {}
        self.held: dict[int, int] = {}

    def lie(self, most: int) -> None:
        draw = self.random
        for _ in range(draw.randint(0, most)):
            what = draw.random()
            if what > self.liar.often:
                return
            if what < 0.4 * self.liar.often:
                self.enter(draw.choice([*self.wants, *self.held, NOBODY]))
            elif what < 0.7 * self.liar.often:
                self.send_to_any(FalseToken, draw.choice([self.free, draw.randint(-1, 4)]))
            elif what < 0.85 * self.liar.often:
                self.send_to_any(FalseGrant, draw.randint(0, 3))
            else:
                self.send_to_any(FalsePermits, draw.randint(0, 3))

    def send_to_any(self, kind: type[Lie], count: int) -> None:
        others = [other for other in range(self.size) if other != self.me]
        if others:
            self.send(kind(self.random.choice(others), count))

    def serve(self) -> None:
        for client, want in list(self.wants.items()):
            if self.holder and want <= self.free:
                del self.wants[client]
                self.free -= want
                self.held[client] = want
                self.enter(client)

    def pass_on(self) -> None:
        self.holder = False
        self.send_to_any(FalseToken, self.free)
        self.free = 0

    # -- handlers ----------------------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.wants[client] = want
        self.serve()
        if self.liar.lends and self.holder:
            self.send_to_any(FalseGrant, 1)
        self.lie(3)

    def release(self, client: int) -> None:
        self.free += self.held.pop(client, 1)
        self.serve()
        if self.liar.lends and self.holder:
            self.send_to_any(FalseGrant, 1)
        self.lie(2)
        if self.holder and self.random.random() < 0.5:
            self.pass_on()

    def release_some(self, client: int, permits: int) -> None:
        self.free += permits
        self.lie(1)

    def withdraw(self, client: int) -> bool:
        self.lie(1)
        if self.random.random() < 0.5:
            self.wants.pop(client, None)
            return True
        return False

    def receive(self, message: Message) -> None:
        if isinstance(message, FalseToken):
            self.holder = True
            self.free += message.count
        elif isinstance(message, FalsePermits):
            self.free += message.count
        elif isinstance(message, FalseGrant):
            for client in list(self.wants)[: self.random.randint(0, 2)]:
                self.held[client] = self.wants.pop(client)
                self.enter(client)
        self.serve()
        if self.random.random() < 0.4:
            self.lie(2)

    def undelivered(self, message: Message) -> None:
        self.lie(1)

    def link_up(self, peer: int) -> None:
        self.lie(1)

    def link_down(self, peer: int) -> None:
        self.lie(1)

    # -- of nodes that come and go -----------------------------------------------------------------

    def holder_is(self, node: int, hop: int) -> None:
        pass

    def forget(self, node: int) -> bool:
        return False

    def number_of(self, node: int) -> int:
        return NIL

    def ask_again(self) -> None:
        pass

    def unacknowledged(self, grants: int) -> None:
        pass

    # -- observers ---------------------------------------------------------------------------------

    def tokens(self) -> int:
        honest = self.random.random() > self.liar.often
        return int(self.holder) if honest else self.random.randint(0, 1)

    def free_permits(self) -> int:
        return self.random.randint(0, self.all_permits)

    def waited(self, client: int, grants: int = 0) -> int:
        return self.random.randint(-5, 10**6)


class Liar:
    """How its nodes lie follows from its seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.often = self.random.choice([0.05, 0.3, 1.0])
        self.lends = False

    def make(
        self, network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Actor]:
        size = network.size
        return [LiarNode(me, out, self, size, permits, me == 0) for me in range(size)]

    def join(
        self, number: int, founder: bool, permits: int, options: dict[str, str], out: list[Effect]
    ) -> LiarNode:
        return LiarNode(number, out, self, 2, permits, founder)

    def late(
        self,
        me: int,
        holder: int,
        hop: int,
        number: int,
        permits: int,
        options: dict[str, str],
        out: list[Effect],
    ) -> LiarNode:
        return LiarNode(me, out, self, 2, permits, me == holder)

    def algorithm(self, many_clients: bool, network: str) -> Algorithm:
        """Among the fixed participants of an epoch, over links that change, or open to nodes that
        come and go, whose grants may go to clients of others."""
        self.lends = network == "open"
        return Algorithm(
            "liar",
            "Lies",
            "nobody",
            "h-of-k",
            self.make,
            (FalseToken, FalsePermits, FalseGrant),
            assumes=Assumptions(changing_links=network == "changing"),
            serves=Serves(many_clients=many_clients),
            newcomers=Newcomers(join=self.join, late=self.late if network == "open" else None),
        )
