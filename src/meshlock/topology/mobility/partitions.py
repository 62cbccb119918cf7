"""What is done about partitions: prevented, allowed, or healed in the end.

*prevented*: a link whose loss would part the graph is kept, beyond its radio range if
need be, until it is no longer needed or its nodes meet again. *allowed*: links fail as
they fail. *healed*: likewise, but when changes stop, links form that make the graph one
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from meshlock.topology.mobility.changes import Adjusted, Changes, LinkChange, NetworkChange
from meshlock.topology.mobility.live_graph import LiveGraph


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
