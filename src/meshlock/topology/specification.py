"""Networks by name or by file: what ``--topology`` takes.

A specification is a word (``ring``), a word with a number (``random:0.2``) or the name
of a file. Random networks are drawn again until one is connected, from the one stream
``seed:topology``, so that a seed always means the same network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from heapq import heappop, heappush
from itertools import combinations, pairwise
from math import log, log1p, pi, sqrt
from pathlib import Path
from random import Random

from meshlock.errors import Refused, setting
from meshlock.topology.files import SUFFIXES, read
from meshlock.topology.graphs import BinaryTree, Complete, Graph, Topology

FORMS = {
    "line": "line",
    "ring": "ring",
    "star": "star",
    "tree": "tree",
    "grid": "grid:ROWSxCOLUMNS",
    "complete": "complete",
    "edges": "edges:0-1,1-2,...",
    "random": "random:PROBABILITY",
    "links": "links:COUNT",
    "geometric": "geometric:RANGE",
}
TRIES = 100
MOST_LINKS = 10_000_000
MOST_NODES = 10_000_000


def network(spec: str, nodes: int | None, seed: int) -> Topology:
    """The network that ``spec`` describes; ``nodes`` None leaves their number to it."""
    if nodes is not None and nodes < 1:
        raise Refused(
            f"A network needs at least one node: raise {setting('nodes')} {nodes} to 1 or more."
        )
    if nodes is not None and nodes > MOST_NODES:
        raise Refused(f"{nodes} nodes are too many: use {setting('nodes')} {MOST_NODES} or fewer.")
    if Path(spec).suffix in SUFFIXES:
        return from_file(spec, nodes)
    name, _, value = spec.partition(":")
    if name not in FORMS:
        raise Refused(unknown("topology", spec, name, FORMS, SUFFIXES))
    if (":" in FORMS[name]) != bool(value):
        raise Refused(f"Topology '{spec}' is incomplete or has too much: write {FORMS[name]}.")
    if name == "grid":
        return grid(spec, value, nodes)
    if name == "edges":
        return one_by_one(spec, value, nodes)
    if nodes is None:
        raise Refused(
            f"Topology '{spec}' does not say how many nodes it has: add {setting('nodes')}."
        )
    if name in REGULAR:
        return REGULAR[name](nodes)
    stream = Random(f"{seed}:topology")
    draw = {"links": with_links, "random": by_chance, "geometric": within_range}[name]
    return draw(spec, value, nodes, stream)


def says_its_size(spec: str) -> bool:
    """A grid, edges and a file say how many nodes they have; the others must be told."""
    return spec.startswith(("grid:", "edges:")) or Path(spec).suffix in SUFFIXES


def unknown(what: str, spec: str, name: str, forms: dict[str, str], suffixes: Iterable[str]) -> str:
    """There is no such topology, or mobility; these forms there are, and files of these names."""
    none = f"There is no {what} '{spec}'"
    if Path(spec).suffix or "/" in spec:
        return f"{none}; if it is a file, its name must end in {', '.join(suffixes)}."
    close = get_close_matches(name, forms, n=1)
    if close:
        return f"{none}: did you mean {forms[close[0]]}?"
    return f"{none}: choose one of {', '.join(forms.values())}, or a file."


def number(spec: str, value: str, form: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise Refused(f"'{value}' in topology '{spec}' is not a number: write {form}.") from None


# -- regular networks -----------------------------------------------------------------


REGULAR: dict[str, Callable[[int], Topology]] = {
    "complete": Complete,
    "tree": BinaryTree,
    "line": lambda nodes: Graph(nodes, pairwise(range(nodes))),
    "ring": lambda nodes: Graph(nodes, [*pairwise(range(nodes)), *[(nodes - 1, 0)][: nodes > 2]]),
    "star": lambda nodes: Graph(nodes, [(0, node) for node in range(1, nodes)]),
}
"""A ring of two nodes has one link."""


def grid(spec: str, value: str, nodes: int | None) -> Topology:
    parts = value.lower().split("x")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise Refused(f"Topology '{spec}' is not a grid: write two numbers, as in grid:4x5.")
    rows, columns = int(parts[0]), int(parts[1])
    size = rows * columns
    refuse_another_size(f"Topology {spec}", size, nodes)
    refuse_too_many(spec, 2 * size)
    right = [(n, n + 1) for n in range(size) if n % columns < columns - 1]
    down = [(n, n + columns) for n in range(size - columns)]
    return Graph(size, right + down)


def one_by_one(spec: str, value: str, nodes: int | None) -> Topology:
    links: list[tuple[int, int]] = []
    for pair in value.split(","):
        one, _, other = pair.partition("-")
        if not (one.isdecimal() and other.isdecimal()) or int(one) == int(other):
            raise Refused(
                f"'{pair}' in topology '{spec}' is not a link between two nodes: write 0-1."
            )
        links.append((int(one), int(other)))
    size = 1 + max([max(link) for link in links])
    refuse_another_size(f"Topology {spec}", size, nodes)
    refuse_too_many(spec, size)
    return refuse_parts(f"Topology {spec}", Graph(size, links), range(size), "add a link")


def refuse_another_size(what: str, size: int, nodes: int | None) -> None:
    if nodes is not None and nodes != size:
        raise Refused(
            f"{what} has {size} nodes, not {nodes}: use {setting('nodes')} {size} or leave it out."
        )


def refuse_parts(what: str, graph: Graph, names: Sequence[object], advice: str) -> Graph:
    if len(graph.roots) > 1:
        first, lost = (names[root] for root in graph.roots[:2])
        raise Refused(
            f"{what} is not connected: node {lost} cannot be reached from node {first}; {advice}."
        )
    return graph


# -- random networks ------------------------------------------------------------------


def with_links(spec: str, value: str, nodes: int, stream: Random) -> Topology:
    """A random tree, so that all are reached, and random links besides."""
    if not value.isdecimal():
        raise Refused(f"'{value}' in topology '{spec}' is not a count: write links:40.")
    count, most = int(value), nodes * (nodes - 1) // 2
    if count < nodes - 1:
        raise Refused(
            f"{count} links cannot connect {nodes} nodes: use links:{nodes - 1} or more, "
            f"or fewer {setting('nodes')}."
        )
    if count > most:
        raise Refused(f"{nodes} nodes have at most {most} links, not {count}: use links:{most}.")
    refuse_too_many(spec, count)
    links = set(any_tree(nodes, stream))
    if count > most // 2:  # nearly all: drawing blindly would seldom find a free place
        free = [(a, b) for b in range(nodes) for a in range(b) if (a, b) not in links]
        links.update(stream.sample(free, count - len(links)))
    while len(links) < count:
        one, other = stream.randrange(nodes), stream.randrange(nodes)
        if one != other:
            links.add((min(one, other), max(one, other)))
    return Graph(nodes, links)


def by_chance(spec: str, value: str, nodes: int, stream: Random) -> Topology:
    chance = number(spec, value, "random:0.2")
    if not 0.0 <= chance <= 1.0:
        raise Refused(f"{value} in topology '{spec}' is no probability: use 0 to 1.")
    refuse_too_many(spec, chance * nodes * (nodes - 1) / 2)
    for _ in range(tries(nodes)):
        graph = Graph(nodes, some_pairs(nodes, chance, stream))
        if len(graph.roots) == 1:
            return graph
    enough = min(1.0, 1.5 * log(nodes) / nodes)
    raise Refused(seldom("networks", spec, nodes, f"probability ({advice(chance, enough)})"))


def within_range(spec: str, value: str, nodes: int, stream: Random) -> Topology:
    """Nodes anywhere in the unit square, linked where they are within range."""
    radius = number(spec, value, "geometric:0.2")
    if not radius >= 0.0:
        raise Refused(f"{value} in topology '{spec}' is no distance: use a number above 0.")
    refuse_too_many(spec, min(1.0, pi * radius * radius) * nodes * (nodes - 1) / 2)
    for _ in range(tries(nodes)):
        places = [(stream.random(), stream.random()) for _ in range(nodes)]
        graph = Graph(nodes, near(places, radius))
        if len(graph.roots) == 1:
            return graph
    enough = min(sqrt(2.0), usual_range(nodes))
    raise Refused(seldom("networks", spec, nodes, f"range ({advice(radius, enough)})"))


def near(places: list[tuple[float, float]], radius: float) -> Iterable[tuple[int, int]]:
    """All pairs within ``radius``, found by looking into neighbouring cells only."""
    side = max(radius, 1e-3)
    cells: dict[tuple[int, int], list[int]] = {}
    for node, (x, y) in enumerate(places):
        column, row = int(x / side), int(y / side)
        for i in (column - 1, column, column + 1):
            for j in (row - 1, row, row + 1):
                for other in cells.get((i, j), ()):
                    x2, y2 = places[other]
                    if (x - x2) ** 2 + (y - y2) ** 2 <= radius * radius:
                        yield (other, node)
        cells.setdefault((column, row), []).append(node)


def tries(nodes: int) -> int:
    """Fewer for large networks, where one try is much like another."""
    return max(3, min(TRIES, 1_000_000 // nodes))


def usual_range(nodes: int) -> float:
    """A range with which nodes anywhere in the unit square are mostly connected."""
    return 1.3 * sqrt(log(nodes) / (pi * nodes))


def advice(value: float, enough: float) -> str:
    if enough > value:
        return f"about {enough:.2g} is usually enough"
    return f"or use another {setting('seed')}"


def seldom(what: str, spec: str, nodes: int, raised: str) -> str:
    return (
        f"None of {tries(nodes)} {what} drawn for {spec} with {nodes} nodes was connected: "
        f"raise the {raised}."
    )


def refuse_too_many(spec: str, links: float) -> None:
    if links > MOST_LINKS:
        raise Refused(
            f"Topology {spec} would have about {links:.2g} links, and at most {MOST_LINKS:,} "
            f"are kept: use fewer {setting('nodes')}, or complete or tree, which are kept as "
            f"formulas."
        )


def any_tree(nodes: int, stream: Random) -> Iterable[tuple[int, int]]:
    """One of all the trees of these nodes, each as likely, from its Prüfer sequence.

    The sequence names, leaf by leaf, where the smallest leaf that is left hangs.
    """
    if nodes < 2:
        return
    places = [stream.choice(range(nodes)) for _ in range(nodes - 2)]
    hanging = Counter(places)
    leaves = [node for node in range(nodes) if not hanging[node]]  # ascending: a heap already
    for place in places:
        leaf = heappop(leaves)
        yield (min(leaf, place), max(leaf, place))
        hanging[place] -= 1
        if not hanging[place]:
            heappush(leaves, place)
    one, other = leaves
    yield (min(one, other), max(one, other))


def some_pairs(nodes: int, chance: float, stream: Random) -> Iterable[tuple[int, int]]:
    """Each pair with this probability, leaping from one chosen pair to the next.

    How many pairs are passed over is geometrically distributed, so the work is that of
    the links drawn and not that of all pairs (Batagelj and Brandes, 2005).
    """
    if chance == 0.0:
        return
    if chance == 1.0:
        yield from combinations(range(nodes), 2)
        return
    one, other, passed_by = -1, 1, log1p(-chance)
    while True:
        leap = log(1.0 - stream.random()) / passed_by
        if leap > nodes * nodes:  # may be infinite, where chance is next to nothing
            return
        one += 1 + int(leap)
        while one >= other:
            one -= other
            other += 1
        if other >= nodes:
            return
        yield (one, other)


# -- files ----------------------------------------------------------------------------


def from_file(spec: str, nodes: int | None) -> Topology:
    names, links = read(Path(spec))
    if not names:
        raise Refused(f"{spec} has no nodes.")
    refuse_another_size(spec, len(names), nodes)
    graph = Graph(len(names), links)
    return refuse_parts(spec, graph, names, "add a link or take the node out")
