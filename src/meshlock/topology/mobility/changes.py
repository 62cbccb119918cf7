"""What may change in a network, and the stream in which changes come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from math import inf

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
