"""Networks at rest: the complete graph, the binary tree, and any graph by its links.

The complete graph and the tree are kept as formulas, so that a million nodes cost
nothing; every other graph is drawn or read from a file
(:mod:`.specification`) and kept as lists of neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from meshlock.algorithms.actor import NIL, Network


class Topology(Network):
    """A connected network, with distances for messages that must be routed."""

    complete = False

    def distance(self, one: int, other: int) -> int:
        """How many links the shortest path has."""
        raise NotImplementedError

    def links(self) -> Iterator[tuple[int, int]]:
        """Every link once, the smaller node first, in ascending order."""
        for one in range(self.size):
            for other in self.neighbours(one):
                if one < other:
                    yield (one, other)


class Complete(Topology):
    complete = True

    def neighbours(self, node: int) -> list[int]:
        return [other for other in range(self.size) if other != node]

    def linked(self, one: int, other: int) -> bool:
        return one != other

    def father(self, node: int) -> int:
        return 0 if node > 0 else NIL

    def distance(self, one: int, other: int) -> int:
        return 1 if one != other else 0


class BinaryTree(Topology):
    """The complete binary tree: node i hangs on node (i - 1) // 2."""

    def neighbours(self, node: int) -> list[int]:
        near = [(node - 1) // 2] if node > 0 else []
        return near + [child for child in (2 * node + 1, 2 * node + 2) if child < self.size]

    def linked(self, one: int, other: int) -> bool:
        return self.father(one) == other or self.father(other) == one

    def father(self, node: int) -> int:
        return (node - 1) // 2 if node > 0 else NIL

    def distance(self, one: int, other: int) -> int:
        steps = 0
        while one != other:
            if one > other:
                one = (one - 1) // 2
            else:
                other = (other - 1) // 2
            steps += 1
        return steps


class Graph(Topology):
    """Any graph, by its links; a run whose links change may start with one in parts."""

    def __init__(self, size: int, links: Iterable[tuple[int, int]]) -> None:
        super().__init__(size)
        self.sets: list[set[int]] = [set() for _ in range(size)]
        for one, other in links:
            self.sets[one].add(other)
            self.sets[other].add(one)
        self.near = [sorted(others) for others in self.sets]
        self.roots: list[int] = []  # the lowest node of every component, ascending
        # a part cut off from node 0 has it as its root's father
        self.fathers, depth = [0] * size, [NIL] * size
        for root in range(size):
            if depth[root] == NIL:
                self.roots.append(root)
                self.spread(root, self.fathers, depth)
        self.fathers[0] = NIL
        self.complete = all(len(others) == size - 1 for others in self.near)
        self.distances: dict[int, list[int]] = {}

    def neighbours(self, node: int) -> list[int]:
        return self.near[node]

    def linked(self, one: int, other: int) -> bool:
        return other in self.sets[one]

    def father(self, node: int) -> int:
        return self.fathers[node]

    def distance(self, one: int, other: int) -> int:
        if self.linked(one, other):
            return 1
        known = self.distances.get(one)
        if known is None:
            if len(self.distances) * self.size > 4_000_000:
                self.distances.clear()
            known = self.distances[one] = [NIL] * self.size
            self.spread(one, [NIL] * self.size, known)
        return known[other]

    def spread(self, root: int, fathers: list[int], depth: list[int]) -> None:
        """Breadth first from root: note the father and the distance of each node reached."""
        depth[root] = 0
        level = [root]
        while level:
            further: list[int] = []
            for node in level:
                for other in self.near[node]:
                    if depth[other] == NIL:
                        depth[other] = depth[node] + 1
                        fathers[other] = node
                        further.append(other)
            level = further


class Rooted(Graph):
    """A graph whose tree of fathers is given: its root may be any node."""

    def __init__(self, size: int, links: Iterable[tuple[int, int]], fathers: list[int]) -> None:
        super().__init__(size, links)
        self.fathers = fathers
