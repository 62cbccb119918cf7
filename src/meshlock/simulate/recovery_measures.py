"""What crashes, cuts and leases cost; times are ticks, see :mod:`.recovering`."""

from __future__ import annotations

from statistics import median
from typing import Any

from meshlock.properties.paths import DOWN


def spread(times: list[int], ticks: int) -> dict[str, Any]:
    """How many, their median and the longest, in time units."""
    if not times:
        return {"count": 0, "median": None, "worst": None}
    return {
        "count": len(times),
        "median": median(times) / ticks,
        "worst": max(times) / ticks,
    }


class RecoveryMeasures:
    """Filled span by span: between two of them nothing changes."""

    def __init__(self, size: int, members: tuple[int, ...], permits: int) -> None:
        self.size = size
        self.members = members
        self.majority = len(members) // 2 + 1
        self.permits = permits
        self.time = 0
        self.crashes = 0
        self.cuts = 0
        self.lost_grants = 0  # the lease ran out although the client's node lived
        self.orphaned_grants = 0  # their node crashed
        self.lost_requests = 0  # their node crashed while they waited
        self.birth = -1  # when the first token could be used
        self.outages: list[int] = []  # no token could be used anywhere
        self.outage_since = 0
        self.recoveries: list[int] = []  # a majority was connected, but had no usable token
        self.lacking_since = -1
        self.with_majority = 0
        self.majority_served = 0
        self.idle = 0
        self.rest = 0  # a token, and nobody who waits or holds
        self.rest_messages = 0  # of leases, in that time
        self.served = [0] * size
        self.reached: list[int] = []  # who can reach the usable token, since ...
        self.reached_since = 0

    def network(self, now: int, parts: tuple[int, ...], holder: int) -> int:
        """The network or the holder changed: note who could be served, find the majority's part."""
        for node in self.reached:
            self.served[node] += now - self.reached_since
        self.reached_since = now
        self.reached = []
        if holder >= 0:
            self.reached = [node for node in range(self.size) if parts[node] == parts[holder]]
        there = [parts[member] for member in self.members if parts[member] != DOWN]
        for part in set(there):
            if there.count(part) >= self.majority:
                return part
        return DOWN

    def span(
        self,
        start: int,
        end: int,
        *,
        usable: bool,
        flying: bool,
        majority: bool,
        served: bool,
        idle: int,
        resting: bool,
    ) -> None:
        """From start to end. ``usable``: some token; ``flying``: it is under way; ``majority``:
        some part has one; ``served``: the token is in that part."""
        length = end - start
        self.time += length
        if usable:
            if self.outage_since >= 0:
                if self.birth < 0:
                    self.birth = start
                else:
                    self.outages.append(start - self.outage_since)
                self.outage_since = -1
            if resting:
                self.rest += length
        elif not flying and self.outage_since < 0:
            self.outage_since = start
        if majority:
            self.with_majority += length
        if majority and served:
            self.majority_served += length
            if self.lacking_since > 0:  # birth, at 0, is told apart
                self.recoveries.append(start - self.lacking_since)
            self.lacking_since = -1
        elif majority and not flying and self.lacking_since < 0:
            self.lacking_since = start
        elif not majority:
            self.lacking_since = -1
        self.idle += length * idle

    def figures(self, ticks: int) -> dict[str, Any]:
        time = self.time if self.time > 0 else 1
        shares = [round(served / time, 4) for served in self.served]
        at_rest = self.rest_messages * ticks / self.rest if self.rest > 0 else None
        return {
            "crashes": self.crashes,
            "partitions": self.cuts,
            "birth": self.birth / ticks if self.birth >= 0 else None,
            "outages": spread(self.outages, ticks),
            "time_to_recover": spread(self.recoveries, ticks),
            "served_share": {
                "worst": min(shares),
                "mean": round(sum(self.served) / (time * self.size), 4),
                "best": max(shares),
                "nodes": shares,
            },
            "majority_share": round(self.with_majority / time, 4),
            "majority_served_share": (
                round(self.majority_served / self.with_majority, 4)
                if self.with_majority > 0
                else None
            ),
            "idle_share": round(self.idle / (time * self.permits), 4),
            "lost_grants": self.lost_grants,
            "orphaned_grants": self.orphaned_grants,
            "lost_requests": self.lost_requests,
            "lease_messages_at_rest": at_rest,
        }
