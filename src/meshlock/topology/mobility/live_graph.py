"""A graph whose links change, and which always knows whether it is in one piece.

Whether a link's loss parts the graph is found by searching from both ends at once, the
smaller search first, until the two meet or one is exhausted. In a network of neighbours
that is a look at a few nodes; at worst it is the smaller of the two parts.
"""

from __future__ import annotations

from collections.abc import Iterable

from meshlock.algorithms.actor import NIL
from meshlock.topology.graphs import Graph, Topology


class LiveGraph(Topology):
    def __init__(self, size: int, links: Iterable[tuple[int, int]]) -> None:
        super().__init__(size)
        start = Graph(size, links)
        self.near = start.sets
        self.fathers = start.fathers  # as it was at the start
        self.components = len(start.roots)
        self.spare = (NIL, NIL)  # a link whose loss, if it comes next, parts nothing

    # -- what algorithms may know when they start -----------------------------------

    def neighbours(self, node: int) -> list[int]:
        return sorted(self.near[node])

    def linked(self, one: int, other: int) -> bool:
        return other in self.near[one]

    def father(self, node: int) -> int:
        return self.fathers[node]

    def distance(self, one: int, other: int) -> int:
        return len(self.path(one, other)) - 1

    # -- changes ----------------------------------------------------------------------

    def connect(self, one: int, other: int) -> None:
        if self.components > 1 and self.apart(one, other):
            self.components -= 1
        self.near[one].add(other)
        self.near[other].add(one)
        self.spare = (NIL, NIL)

    def cut(self, one: int, other: int) -> None:
        self.near[one].discard(other)
        self.near[other].discard(one)
        if self.spare != (one, other) and self.apart(one, other):
            self.components += 1
        self.spare = (NIL, NIL)

    def bridge(self, one: int, other: int) -> bool:
        """Would the loss of this link part the graph?"""
        self.near[one].discard(other)
        self.near[other].discard(one)
        parts = self.apart(one, other)
        self.near[one].add(other)
        self.near[other].add(one)
        self.spare = (one, other) if not parts else (NIL, NIL)
        return parts

    # -- searches -----------------------------------------------------------------------

    def apart(self, one: int, other: int) -> bool:
        """Is there no path between them?"""
        near = self.near
        if other in near[one] or not near[one].isdisjoint(near[other]):
            return False
        return not self.path(one, other, direct=False)

    def path(self, one: int, other: int, *, direct: bool = True) -> list[int]:
        """Some path between them, not over their own link unless ``direct``; else empty."""
        if direct and (one == other or other in self.near[one]):
            return [one] if one == other else [one, other]
        ways: list[dict[int, int]] = [{one: NIL}, {other: NIL}]
        edges = [[one], [other]]
        while edges[0] and edges[1]:
            side = 0 if len(ways[0]) <= len(ways[1]) else 1
            here, there = ways[side], ways[1 - side]
            further: list[int] = []
            for node in edges[side]:
                for next_one in self.near[node]:
                    if next_one in here or (node in (one, other) and next_one in (one, other)):
                        continue
                    here[next_one] = node
                    if next_one in there:
                        there_on = way_back(ways[1], ways[1][next_one])
                        return [*reversed(way_back(ways[0], next_one)), *there_on]
                    further.append(next_one)
            edges[side] = further
        return []

    def roots(self) -> list[int]:
        """The lowest node of every component, ascending."""
        return Graph(self.size, self.links()).roots


def way_back(ways: dict[int, int], node: int) -> list[int]:
    """From this node to the start of the search that came there."""
    path: list[int] = []
    while node != NIL:
        path.append(node)
        node = ways[node]
    return path
