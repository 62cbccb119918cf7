"""What is done about partitions: prevented, allowed, or healed in the end.

*prevented*: a link whose loss would part the graph is kept, beyond its radio range if
need be, until it is no longer needed or its nodes meet again. *allowed*: links fail as
they fail. *healed*: likewise, but when changes stop, links form that make the graph one
again.
"""

from __future__ import annotations

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
        self.formed: LinkChange | None = None

    def next(self) -> NetworkChange | None:
        if self.formed is not None:
            relieved = self.relieved(self.formed)
            self.formed = None
            if relieved is not None:
                return relieved
        change = self.changes.next()
        if not isinstance(change, LinkChange):
            return change
        link = (change.one, change.other)
        if change.up:
            if link in self.overdue:
                del self.overdue[link]
                return NetworkChange(change.time)
            if self.overdue:
                self.formed = change
            return change
        if not self.graph.bridge(change.one, change.other):
            return change
        self.overdue[link] = None
        return NetworkChange(change.time)

    def relieved(self, formed: LinkChange) -> LinkChange | None:
        path = self.graph.path(formed.one, formed.other, direct=False)
        steps = {
            (min(path[i], path[i + 1]), max(path[i], path[i + 1])) for i in range(len(path) - 1)
        }
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
        self.time = 0.0
        self.over = False

    def next(self) -> NetworkChange | None:
        if not self.over:
            change = self.changes.next()
            if change is not None and change.time <= self.until:
                self.time = change.time
                return change
            self.over = True
            if change is not None:
                self.time = self.until
        if self.heal and self.graph.components > 1:
            first, second = self.graph.roots()[:2]
            return LinkChange(self.time, True, first, second)
        return None

    def stop(self, time: float) -> None:
        self.until = min(self.until, time)
