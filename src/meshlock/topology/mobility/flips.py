"""Flips: at random moments a new link forms and another one fails.

Flips form a Poisson process. Each forms a link between two random nodes that have none,
then cuts a random other link; where partitions are prevented, one whose loss does not
part the graph. Forming first leaves even a tree something that can be cut. In a complete
graph the first flip has nothing to form and only cuts.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from random import Random

from meshlock.topology.mobility.changes import Changes, LinkChange, NetworkChange
from meshlock.topology.mobility.live_graph import LiveGraph


class Pairs:
    """A set of node pairs from which one can be drawn at random, in constant time."""

    def __init__(self, pairs: list[tuple[int, int]]) -> None:
        self.items = pairs
        self.place = {pair: place for place, pair in enumerate(pairs)}

    def add(self, pair: tuple[int, int]) -> None:
        self.place[pair] = len(self.items)
        self.items.append(pair)

    def remove(self, pair: tuple[int, int]) -> None:
        place = self.place.pop(pair)
        last = self.items.pop()
        if last != pair:
            self.items[place] = last
            self.place[last] = place


class Flips(Changes):
    BLIND = 20  # draws of a link to cut before one is taken that surely can be

    def __init__(self, graph: LiveGraph, rate: float, keep: bool, stream: Random) -> None:
        self.graph = graph
        self.rate = rate
        self.keep = keep  # never part the graph
        self.random = stream.random
        self.time = 0.0
        self.over = False
        self.coming = self.flips()
        self.links = Pairs(list(graph.links()))
        pairs = graph.size * (graph.size - 1) // 2
        self.free: Pairs | None = None  # all pairs without a link, where these are the fewer
        if 2 * len(self.links.items) > pairs:
            linked = self.links.place
            self.free = Pairs(
                [(a, b) for b in range(graph.size) for a in range(b) if (a, b) not in linked]
            )
        self.most = pairs

    def flips(self) -> Iterator[NetworkChange]:
        while not self.over:
            self.time += -log(1.0 - self.random()) / self.rate
            formed = self.form()
            if formed is not None:
                self.links.add(formed)
                if self.free is not None:
                    self.free.remove(formed)
                yield LinkChange(self.time, True, *formed)
            elif self.graph.size < 2 or (self.keep and self.graph.size == 2):
                return  # nothing can ever be cut, or formed
            gone = self.cut(formed)
            if gone is not None:
                self.links.remove(gone)
                if self.free is not None:
                    self.free.add(gone)
                yield LinkChange(self.time, False, *gone)

    def form(self) -> tuple[int, int] | None:
        if len(self.links.items) == self.most:
            return None
        if self.free is not None:
            return self.free.items[int(self.random() * len(self.free.items))]
        size = self.graph.size
        while True:  # at least half of all pairs are free
            one, other = int(self.random() * size), int(self.random() * size)
            pair = (one, other) if one < other else (other, one)
            if one != other and pair not in self.links.place:
                return pair

    def cut(self, formed: tuple[int, int] | None) -> tuple[int, int] | None:
        links = self.links.items
        for _ in range(self.BLIND):
            link = links[int(self.random() * len(links))]
            if link != formed and not (self.keep and self.graph.bridge(link[0], link[1])):
                return link
        if formed is None:
            return None
        cycle = self.graph.path(formed[0], formed[1], direct=False)
        if len(cycle) < 2:
            return None
        at = int(self.random() * (len(cycle) - 1))
        one, other = cycle[at], cycle[at + 1]
        return (one, other) if one < other else (other, one)

    def stop(self, time: float) -> None:
        self.over = True
