"""The limit of any simulator with nodes of Python objects: a token on a walk through many of them.

A place has a few of the objects that a node of jiang has: what it knows of its neighbours in a
dictionary, a queue with an entry, a set. A message reads and replaces one of each. A hop of the
token is three of them, as in jiang: TOKEN there, LINK back, and there again a REQUEST. All is the
same however many places there are; only how far apart in memory they lie differs.
"""

from __future__ import annotations

from random import Random

LINKS = 6


class Place:
    def __init__(self, me: int, near: list[int]) -> None:
        self.me = me
        self.near = near
        self.height = (0, 0, me)
        self.views = {other: (0, 1, other) for other in near}
        self.queue = [(me, 1000)]
        self.unheard: set[int] = set()
        self.clients: dict[int, int] = {}

    def receive(self, sender: int, number: int) -> None:
        client, rank = self.queue.pop()
        self.queue.append((client, number))
        self.clients[client] = rank
        del self.clients[client]
        self.unheard.add(sender)
        if self.height < self.views.get(sender, self.height):
            self.height = (0, -number, self.me)
        self.views[sender] = (0, -number, sender)
        self.unheard.remove(sender)


class Walk:
    def __init__(self, size: int) -> None:
        chance = Random(1)
        near: list[list[int]] = [[] for _ in range(size)]
        for me in range(size):
            for _ in range(LINKS // 2):
                other = chance.randrange(size)
                near[me].append(other)
                near[other].append(me)
        self.places = [Place(me, near[me]) for me in range(size)]
        self.draw = chance.random

    def go(self, hops: int) -> None:
        giver = self.places[0]
        for number in range(1000, 1000 + hops):
            taker = self.places[giver.near[int(self.draw() * len(giver.near))]]
            taker.receive(giver.me, number)
            giver.receive(taker.me, number)
            taker.receive(giver.me, number)
            giver = taker
