"""What may change in a network, the stream in which changes come, and two of their sources.

*Flips*: at random moments a new link forms and another one fails. They form a Poisson process.
Each forms a link between two random nodes that have none, then cuts a random other link; where
partitions are prevented, one whose loss does not part the graph. Forming first leaves even a
tree something that can be cut. In a complete graph the first flip has nothing to form and only
cuts.

Partitions, *prevented*: a link whose loss would part the graph is kept, beyond its radio range if
need be, until it is no longer needed or its nodes meet again. *Allowed*: links fail as they fail.
*Healed*: likewise, but when changes stop, links form that make the graph one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, takewhile
from math import inf, log
from random import Random

from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.topology.mobility.live_graph import LiveGraph


class NetworkChange:
    """Something about the network is different from this time on.

    A plain one says only that nothing was until now: the caller who asks for the next change is
    not to wait for ever for one that may never come.
    """

    def __init__(self, time: float) -> None:
        self.time = time


class LinkChange(NetworkChange):
    """The link between two nodes forms or fails."""

    def __init__(self, time: float, up: bool, one: int, other: int) -> None:
        super().__init__(time)
        self.up = up
        self.one = one if one < other else other
        self.other = other if one < other else one


class Move(NetworkChange):
    """The node is here now, and goes straight, at one speed, to its next move."""

    def __init__(self, time: float, node: int, x: float, y: float) -> None:
        super().__init__(time)
        self.node = node
        self.x = x
        self.y = y


@mypyc_attr(allow_interpreted_subclasses=True)
class Changes:
    """Changes in order of time, made one by one.

    Some depend on the links there are, so each must have been carried out on the live
    graph before the next is asked for.
    """

    coming: Iterator[NetworkChange]

    def next(self) -> NetworkChange | None:
        """The next change; None when nothing will ever change again."""
        return next(self.coming, None)

    def stop(self, time: float) -> None:
        """Let nothing happen after this time but what it takes to come to rest."""
        raise NotImplementedError

    def places(self, time: float) -> list[Move]:
        """Where everybody is; empty where nodes have no places."""
        return []


class Planned(Changes):
    """These changes, as given, in order of time."""

    def __init__(self, changes: Iterable[NetworkChange]) -> None:
        self.coming = takewhile(lambda change: change.time <= self.until, changes)
        self.until = inf

    def stop(self, time: float) -> None:
        self.until = time


@mypyc_attr(allow_interpreted_subclasses=True)
class Adjusted(Changes):
    """Those of another stream, with a say about each as the live graph is then."""

    def __init__(self, changes: Changes, graph: LiveGraph) -> None:
        self.changes = changes
        self.graph = graph
        self.coming = self.adjusted()

    def adjusted(self) -> Iterator[NetworkChange]:
        raise NotImplementedError

    def stop(self, time: float) -> None:
        self.changes.stop(time)

    def places(self, time: float) -> list[Move]:
        return self.changes.places(time)


class Prevented(Adjusted):
    """Holds back every link failure that would part the graph.

    What is held back is a bridge of the graph. A new link relieves at most one bridge,
    and only one on a path between its ends: with that gone, the others there are bridges
    again.
    """

    def __init__(self, changes: Changes, graph: LiveGraph) -> None:
        super().__init__(changes, graph)
        self.overdue: dict[tuple[int, int], None] = {}  # in the order in which they fell due

    def adjusted(self) -> Iterator[NetworkChange]:
        while (change := self.changes.next()) is not None:
            if not isinstance(change, LinkChange):
                yield change
                continue
            link = (change.one, change.other)
            if change.up and link in self.overdue:
                del self.overdue[link]
                yield NetworkChange(change.time)
            elif change.up:
                yield change
                if self.overdue and (relieved := self.relieved(change)) is not None:
                    yield relieved
            elif self.graph.bridge(change.one, change.other):
                self.overdue[link] = None
                yield NetworkChange(change.time)
            else:
                yield change

    def relieved(self, formed: LinkChange) -> LinkChange | None:
        path = self.graph.path(formed.one, formed.other, direct=False)
        steps = {(min(step), max(step)) for step in pairwise(path)}
        for link in self.overdue:
            if link in steps:
                del self.overdue[link]
                return LinkChange(formed.time, False, link[0], link[1])
        return None


class Until(Adjusted):
    """Ends the changes at a given time, or earlier when told, and then heals if asked to."""

    def __init__(self, changes: Changes, graph: LiveGraph, until: float, heal: bool) -> None:
        super().__init__(changes, graph)
        self.until = until
        self.heal = heal

    def adjusted(self) -> Iterator[NetworkChange]:
        time = 0.0
        while (change := self.changes.next()) is not None and change.time <= self.until:
            time = change.time
            yield change
        if change is not None:
            time = self.until
        while self.heal and self.graph.components > 1:
            first, second = self.graph.roots()[:2]
            yield LinkChange(time, True, first, second)

    def stop(self, time: float) -> None:
        self.until = min(self.until, time)


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
