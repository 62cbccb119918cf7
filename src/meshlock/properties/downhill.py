"""Lemma 1 of Jiang, which is Lemma 3 of Walter, Welch and Vaidya: all ways down end at the token.

**downhill**: heights are all different, so links that point from the higher node to the lower
make no cycle; and the only node without a lower neighbour is the one that has the
token, or that has sent it off and whose TOKEN has not arrived yet.

The receiver of the token goes below the giver, which is the lowest, so on a network whose
links stay this holds in every state. The papers say it of the ``next`` variables, which follow
the heights as far as a node knows them, and of the time after links have ceased to change. When a
link fails, its higher end may have no way down until it climbs, and then its
neighbours until they hear of it. So where links change, the property is judged in states in which
nothing is on its way, and of the part of the network that has the token. Then it says that no
node that could climb has stopped halfway.
"""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from meshlock.algorithms.actor import Actor, Frozen, Message
from meshlock.properties.structure import Clients, Structure, Wrong

DOWNHILL: Final = "downhill"


class Slope(NamedTuple):
    """What is seen of one node."""

    height: tuple[int, ...]
    holds: bool  # has the token
    givers: tuple[int, ...]  # who sent it a token that is on its way


class Downhill(Structure):
    def glimpse(self, node: Actor, inbox: list[Message], clients: Clients) -> Frozen:
        givers = tuple([message.sender for message in inbox if message.tokens() > 0])
        return Slope(node.altitude() or (), node.tokens() > 0, givers)

    def wrong(self, seen: tuple[int, ...], neighbours: list[list[int]]) -> list[Wrong]:
        slopes = [cast(Slope, self.glimpses[number]) for number in seen]
        heights = [slope.height for slope in slopes]
        if len(set(heights)) < len(heights):
            return [(DOWNHILL, f"two nodes are equally high: {heights}")]
        ends: set[int] = set()  # where ways down may end
        for i, slope in enumerate(slopes):
            if slope.holds:
                ends.add(i)
            ends.update(slope.givers)
        for i in reach(ends, neighbours):
            if i not in ends and not any(heights[j] < heights[i] for j in neighbours[i]):
                at = " or ".join([str(end) for end in sorted(ends)])
                return [(DOWNHILL, f"node {i} has no lower neighbour, but the token is at {at}")]
        return []


def reach(start: set[int], neighbours: list[list[int]]) -> list[int]:
    """All nodes that can be reached from these, in order."""
    found = set(start)
    todo = sorted(start)
    while todo:
        for j in neighbours[todo.pop()]:
            if j not in found:
                found.add(j)
                todo.append(j)
    return sorted(found)
