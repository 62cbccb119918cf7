"""Links drawn by chance: any tree, and any set of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import combinations
from math import log, log1p
from random import Random


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
