"""Algorithms that lie: they let in whom they like, send tokens to all, and permits out of nothing.

Nobody needs to be served by such an algorithm; but whatever it does, the layer keeps k permits k.
"""

from __future__ import annotations

from random import Random
from typing import ClassVar

from meshlock.algorithms.interface import Algorithm, Effect, Frozen, Message, Network, Node


class Lie(Message):
    def __init__(self, receiver: int, count: int) -> None:
        super().__init__(receiver)
        self.count = count

    def permits(self) -> int:
        return self.count


class FalseToken(Lie):
    kind: ClassVar[str] = "FALSE-TOKEN"

    def tokens(self) -> int:
        return 1


class FalsePermits(Lie):
    kind: ClassVar[str] = "FALSE-PERMITS"


class LiarNode(Node):
    """Half of what it does is right, so that lies are built upon."""

    def __init__(self, me: int, out: list[Effect], size: int, permits: int, holder: bool) -> None:
        super().__init__(me, out)
        self.random = Random(me)
        self.size = size
        self.all_permits = permits
        self.holder = holder
        self.free = permits if holder else 0
        self.wants: dict[int, int] = {}
        self.held: dict[int, int] = {}
        self.peers: set[int] = set()

    def lie(self, most: int) -> None:
        draw = self.random
        for _ in range(draw.randint(0, most)):
            what = draw.random()
            if what < 0.4:
                asked = [*self.wants, *self.held, 10**9]
                self.enter(draw.choice(asked))
            elif what < 0.8:
                self.send_lie(FalseToken, draw.choice([self.free, draw.randint(-1, 4)]))
            else:
                self.send_lie(FalsePermits, draw.randint(0, 3))

    def send_lie(self, kind: type[Lie], count: int) -> None:
        others = [other for other in range(self.size) if other != self.me] or [self.me]
        self.send(kind(self.random.choice(others), count))

    def serve(self) -> None:
        for client, want in list(self.wants.items()):
            if self.holder and want <= self.free and self.random.random() < 0.8:
                del self.wants[client]
                self.free -= want
                self.held[client] = want
                self.enter(client)

    def request(self, client: int, want: int, priority: int) -> None:
        self.wants[client] = want
        self.serve()
        if client >= 0:
            self.lie(3)

    def release(self, client: int) -> None:
        self.free += self.held.pop(client, 1)
        self.serve()
        self.lie(2)

    def withdraw(self, client: int) -> bool:
        self.lie(1)
        if self.random.random() < 0.5:
            self.wants.pop(client, None)
            return True
        return False

    def receive(self, message: Message) -> None:
        if isinstance(message, FalseToken):
            self.holder = True
            self.free = message.count
        elif isinstance(message, FalsePermits):
            self.free += message.count
        self.serve()
        if self.random.random() < 0.4:
            self.lie(2)
        if self.holder and self.random.random() < 0.3:
            self.holder = False
            self.send_lie(FalseToken, self.free)

    def link_up(self, peer: int) -> None:
        self.lie(1)

    def link_down(self, peer: int) -> None:
        self.lie(1)

    def undelivered(self, message: Message) -> None:
        self.lie(1)

    def tokens(self) -> int:
        return self.random.randint(0, 1)

    def free_permits(self) -> int:
        return self.random.randint(0, self.all_permits)

    def waited(self, client: int) -> int:
        return self.random.randint(-5, 10**6)

    def freeze(self) -> Frozen:
        return ()

    def thaw(self, state: Frozen) -> None:
        pass


def make(network: Network, permits: int, options: dict[str, str], out: list[Effect]) -> list[Node]:
    return [LiarNode(me, out, network.size, permits, me == 0) for me in range(network.size)]


def join(
    number: int, founder: bool, permits: int, options: dict[str, str], out: list[Effect]
) -> Node:
    return LiarNode(number, out, 2, permits, founder)


KINDS = (FalseToken, FalsePermits)

LIARS = [
    Algorithm("liar", "", "", "h-of-k", make, KINDS, many_clients=True),
    Algorithm("liar-one-client", "", "", "h-of-k", make, KINDS),
    Algorithm(
        "liar-on-links",
        *("", "", "h-of-k", make, KINDS),
        many_clients=True,
        changing_links=True,
        join=join,
    ),
]
