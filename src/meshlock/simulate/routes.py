"""Who can reach whom when nodes crash and the network is cut in two, besides moving.

A link can be used while it is there, both its ends are up, and both lie on the same side of
a cut, if there is one. Messages take a shortest way over such links.
"""

from __future__ import annotations

from meshlock.properties.paths import labelled
from meshlock.topology.mobility.live_graph import LiveGraph


class Routes:
    def __init__(self, graph: LiveGraph) -> None:
        self.graph = graph  # the links there are, whoever is up
        self.size = graph.size
        self.up: list[bool] = [True] * graph.size
        self.side: list[int] = [0] * graph.size
        pairs = [(one, other) for one in range(self.size) for other in graph.near[one]]
        self.usable = LiveGraph(graph.size, [pair for pair in pairs if pair[0] < pair[1]])
        self.parts: tuple[int, ...] = ()
        self.find_parts()

    def find_parts(self) -> None:
        self.parts = labelled(self.usable.near, self.up)

    def joined(self, one: int, other: int) -> bool:
        """Is there a way from one to the other?"""
        return self.up[one] and self.parts[one] == self.parts[other]

    def hops(self, one: int, other: int) -> int:
        return self.usable.distance(one, other)

    def whole(self) -> bool:
        """Can every node reach every other?"""
        return self.usable.components == 1 and all(self.up)

    # -- changes ------------------------------------------------------------------------

    def link(self, one: int, other: int, up: bool) -> bool:
        """A link forms or fails; is there anything to be seen of it?"""
        if self.graph.linked(one, other) == up:
            return False
        if up:
            self.graph.connect(one, other)
        else:
            self.graph.cut(one, other)
        if self.side[one] != self.side[other]:
            return False
        self.use(one, other)
        self.find_parts()
        return True

    def use(self, one: int, other: int) -> None:
        """Use the link or not, as things are now."""
        usable = (
            self.graph.linked(one, other)
            and self.up[one]
            and self.up[other]
            and self.side[one] == self.side[other]
        )
        if usable and not self.usable.linked(one, other):
            self.usable.connect(one, other)
        elif not usable and self.usable.linked(one, other):
            self.usable.cut(one, other)

    def node(self, node: int, up: bool) -> None:
        self.up[node] = up
        for other in sorted(self.graph.near[node]):
            self.use(node, other)
        self.find_parts()

    def cut(self, side: list[int]) -> list[tuple[int, int]]:
        """Everybody is on this side now: the links that this takes away or gives back."""
        before, self.side = self.side, side
        changed: list[tuple[int, int]] = []
        for one in range(self.size):
            for other in sorted(self.graph.near[one]):
                if one < other and (before[one] == before[other]) != (side[one] == side[other]):
                    self.use(one, other)
                    changed.append((one, other))
        self.find_parts()
        return changed
