"""Whether agents that call themselves ready can serve a client.

A node is *unserved* from the moment a client there waits and all that clients ask for is free,
until a client of a node in the same part of the network is granted permits: that shows a token
which this node can reach. Gaps of less than a lease in which no client waits do not count. What an
agent says is about the future: one that was unserved for long, and calls itself ready, is right if
such a grant follows within a lease. If a fault strikes until then, nothing is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

UNREADY_AFTER = 30.0
"""Seconds unserved: then a node does not call itself ready."""


class Claim(NamedTuple):
    """A node that was unserved called itself ready."""

    node: str
    time: float
    unserved: float


class Readiness:
    def __init__(self, nodes: Iterable[str], lease: float, began: float) -> None:
        self.lease = lease
        self.since = dict.fromkeys(nodes, began)  # unserved
        self.waited = dict.fromkeys(self.since, began)  # a client did, for the last time
        self.claims: dict[str, Claim] = {}  # by node, the first that is not decided

    def waits(self, time: float, before: float, nodes: Collection[str]) -> None:
        """Clients wait there, though permits are free, and did ``before``."""
        for node in nodes:
            if before - self.waited[node] > self.lease:
                self.since[node] = before
            self.waited[node] = time

    def can_be_served(self, time: float, nodes: Collection[str]) -> None:
        for node in nodes:
            self.since[node] = time
            self.claims.pop(node, None)

    def disturbed(self) -> None:
        self.claims = {}

    def says_ready(self, time: float, node: str) -> None:
        unserved = time - self.since[node]
        if self.waited[node] == time and unserved > UNREADY_AFTER and node not in self.claims:
            self.claims[node] = Claim(node, time, unserved)

    def wrong(self, time: float) -> list[Claim]:
        """Claims after which no client was served for a lease."""
        found = [one for one in self.claims.values() if time - one.time > self.lease]
        for one in found:
            del self.claims[one.node]
        return found
