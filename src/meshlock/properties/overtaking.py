"""Whoever asks later and is less urgent goes later: order where nodes crash and links fail.

With faults nobody can say at which moment a request is known where the token is. But once nothing
has been done to the network for ``slack``, a request that is as old and can reach the token must
be known there. From then on whoever asks later with a lower priority ranks below it for ever, for
both age alike. MOST may pass all the same: what was granted is told late.
"""

from __future__ import annotations

MOST = 3


class Waiting:
    def __init__(self, time: float, node: int, priority: float) -> None:
        self.time = time
        self.node = node
        self.priority = priority
        self.passed = 0


class Overtaking:
    def __init__(self, slack: float) -> None:
        self.slack = slack
        self.waiting: dict[int, Waiting] = {}  # by client
        self.disturbed_at = 0.0
        self.epoch: object = None

    def disturbed(self, time: float) -> None:
        """A node or a link comes or goes: everything begins anew."""
        self.disturbed_at = time
        for one in self.waiting.values():
            one.passed = 0

    def goes_by(self, time: float, epoch: object) -> bool:
        """Another epoch is as good as a fault: everybody asks anew. Is it one?"""
        another = self.epoch is not None and epoch != self.epoch
        if another:
            self.disturbed(time)
        self.epoch = epoch
        return another

    def asks(self, time: float, client: int, node: int, priority: float) -> None:
        self.waiting[client] = Waiting(time, node, priority)

    def stops(self, client: int) -> None:
        self.waiting.pop(client, None)

    def crashed(self, node: int) -> None:
        for client in [client for client, one in self.waiting.items() if one.node == node]:
            del self.waiting[client]

    def enters(self, client: int, reached: set[int]) -> list[tuple[int, float]]:
        """The result: clients that were passed once too often, and their priorities. ``reached``:
        nodes that have a way to the token."""
        entry = self.waiting.pop(client, None)
        found: list[tuple[int, float]] = []
        if entry is None:
            return found
        for other, one in self.waiting.items():
            settled = max(one.time, self.disturbed_at) + self.slack
            if one.priority > entry.priority and entry.time >= settled and one.node in reached:
                one.passed += 1
                if one.passed == MOST + 1:
                    found.append((other, one.priority))
        return found
