"""Did a waiting client have a way to a majority for long enough to be served?

Where a network falls apart and nodes crash, no algorithm can serve every request.
What is promised: *a request is served if its node can reach a majority of the members for long
enough*. Here is what that means, so that a machine can decide it.

A request **had a path** if, while it waited, there was an interval during which one and the same
majority of the members was up and connected with its node without interruption, and which was
longer than ``queue`` + ``recover`` x (1 + c). Here c is how often, in the interval, another
node came to this part of the network or left it, or the members changed: a node that leaves may
take the token or permits along, and one that comes may bring a higher epoch, so that everything has
to be found out anew. ``recover`` is the longest that that takes, ``queue`` the longest that those
ahead can take; both follow from the timers and the workload, and the program that runs the nodes
states them.
"""

from __future__ import annotations

from bisect import bisect_right

DOWN = -1
"""The part of a node that has crashed."""


def labelled(near: list[set[int]], up: list[bool]) -> tuple[int, ...]:
    """For every node the lowest one it can reach over nodes that are up; DOWN if it is not."""
    size = len(near)
    labels = [DOWN] * size
    for root in range(size):
        if up[root] and labels[root] == DOWN:
            labels[root] = root
            todo = [root]
            while todo:
                for other in near[todo.pop()]:
                    if up[other] and labels[other] == DOWN:
                        labels[other] = root
                        todo.append(other)
    return tuple(labels)


class Paths:
    """Which nodes were connected when; asked about requests when they have waited."""

    def __init__(self, members: tuple[int, ...], recover: float, queue: float) -> None:
        self.members = members  # now; they may change
        self.recover = recover
        self.queue = queue
        self.times: list[float] = []
        self.parts: list[tuple[int, ...]] = []
        self.members_then: list[tuple[int, ...]] = []

    def record(self, time: float, parts: tuple[int, ...]) -> bool:
        """From this time on the network is in these parts; are they new?"""
        known = len(self.times) > 0
        if known and self.parts[-1] == parts and self.members_then[-1] == self.members:
            return False
        if known and self.times[-1] == time:
            self.parts[-1] = parts
            self.members_then[-1] = self.members
        else:
            self.times.append(time)
            self.parts.append(parts)
            self.members_then.append(self.members)
        return True

    def had_path(self, node: int, asked: float, end: float) -> bool:
        """Had the request that this node made, and that waited until ``end``, a path?"""
        if end - asked <= self.queue + self.recover:
            return False
        first = max(0, bisect_right(self.times, asked) - 1)
        for place in range(first, len(self.times)):
            start = max(asked, self.times[place])
            if end - start <= self.queue + self.recover:
                return False
            if self.long_enough(node, place, start, end):
                return True
        return False

    def long_enough(self, node: int, place: int, start: float, end: float) -> bool:
        """The same for one interval, that starts so."""
        here = self.part_of(node, place)
        members = self.members_then[place]
        steady = [member for member in members if member in here]
        allowed = self.queue + self.recover
        while 2 * len(steady) > len(members):
            place += 1
            until = min(end, self.times[place]) if place < len(self.times) else end
            if until - start > allowed:
                return True
            if until >= end:
                return False
            now, before = self.part_of(node, place), members
            members = self.members_then[place]
            if now != here or members != before:
                allowed += self.recover
                kept = [one for one in members if one in steady or one not in before]
                steady = [member for member in kept if member in now]
                here = now
        return False

    def part_of(self, node: int, place: int) -> frozenset[int]:
        """The nodes that this one can reach, itself included; none while it is down."""
        parts = self.parts[place]
        label = parts[node]
        if label == DOWN:
            return frozenset()
        return frozenset([other for other in range(len(parts)) if parts[other] == label])
