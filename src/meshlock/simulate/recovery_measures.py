"""What crashes, cuts and leases cost."""

from __future__ import annotations

from statistics import median
from typing import Any

from meshlock.properties.paths import DOWN


def spread(times: list[float]) -> dict[str, Any]:
    """How many, their median and the longest."""
    if not times:
        return {"count": 0, "median": None, "worst": None}
    return {"count": len(times), "median": median(times), "worst": max(times)}


class RecoveryMeasures:
    """Filled span by span: between two of them nothing changes."""

    def __init__(self, size: int, members: tuple[int, ...], permits: int) -> None:
        self.size = size
        self.members = members
        self.permits = permits
        self.capacity = 0.0  # permits, times how long there were that many
        self.time = 0.0
        self.crashes = 0
        self.cuts = 0
        self.changes = -1  # of members; the first are no change
        self.lost_grants = 0  # the lease ran out although the client's node lived
        self.orphaned_grants = 0  # their node crashed
        self.lost_requests = 0  # their node crashed while they waited
        self.birth = -1.0  # when the first token could be used
        self.outages: list[float] = []  # no token could be used anywhere
        self.outage_since = 0.0
        self.recoveries: list[float] = []  # a quorum was connected, but had no usable token
        self.lacking_since = -1.0
        self.with_majority = 0.0
        self.majority_served = 0.0
        self.idle = 0.0
        self.rest = 0.0  # a token, and no client that waits or holds
        self.rest_messages = 0  # of leases, in that time
        self.served = [0.0] * size
        self.holder = -1  # of the usable token
        self.moved = True  # the network, since it was last looked at
        self.majority_part = DOWN
        self.reached: list[int] = []  # who can reach the usable token, since ...
        self.reached_since = 0.0

    def renews(self) -> None:
        """A message of a lease, while no client waits or holds."""
        if self.holder >= 0:
            self.rest_messages += 1

    def note_reach(self, parts: tuple[int, ...], holder: int) -> None:
        """The network or the holder changed: note who could be served, find the quorum's part."""
        for node in self.reached:
            self.served[node] += self.time - self.reached_since
        self.reached_since = self.time
        self.holder = holder
        self.moved = False
        self.reached = []
        if holder >= 0:
            self.reached = [node for node in range(self.size) if parts[node] == parts[holder]]
        there = [parts[one] for one in self.members if parts and parts[one] != DOWN]
        self.majority_part = DOWN
        for part in set(there):
            if 2 * there.count(part) > len(self.members):
                self.majority_part = part

    def span(
        self,
        end: float,
        parts: tuple[int, ...],
        holder: int,
        *,
        flying: bool,
        used: int,
        free: int,
        resting: bool,
    ) -> None:
        """From the end of the last span until this one. ``holder``: of the usable token, -1 if
        there is none; ``flying``: it is under way."""
        if self.moved or holder != self.holder:
            self.note_reach(parts, holder)
        start = self.time
        length = end - start
        self.time = end
        majority = self.majority_part != DOWN
        if holder >= 0:
            if self.outage_since >= 0.0:
                if self.birth < 0.0:
                    self.birth = start
                else:
                    self.outages.append(start - self.outage_since)
                self.outage_since = -1.0
            if resting:
                self.rest += length
        elif not flying and self.outage_since < 0.0:
            self.outage_since = start
        if majority:
            self.with_majority += length
        if majority and holder >= 0 and parts[holder] == self.majority_part:
            self.majority_served += length
            if self.lacking_since > 0.0:  # birth, at 0, is told apart
                self.recoveries.append(start - self.lacking_since)
            self.lacking_since = -1.0
        elif majority and not flying and self.lacking_since < 0.0:
            self.lacking_since = start
        elif not majority:
            self.lacking_since = -1.0
        self.capacity += length * self.permits
        self.idle += length * max(0, self.permits - used - (free if holder >= 0 else 0))

    def ends(self) -> None:
        self.note_reach((), -1)

    def figures(self) -> dict[str, Any]:
        time = self.time if self.time > 0.0 else 1.0
        shares = [round(served / time, 4) for served in self.served]
        at_rest = self.rest_messages / self.rest if self.rest > 0 else None
        return {
            "crashes": self.crashes,
            "partitions": self.cuts,
            "member_changes": max(0, self.changes),
            "birth": self.birth if self.birth >= 0.0 else None,
            "outages": spread(self.outages),
            "time_to_recover": spread(self.recoveries),
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
            "idle_share": round(self.idle / (self.capacity or 1.0), 4),
            "lost_grants": self.lost_grants,
            "orphaned_grants": self.orphaned_grants,
            "lost_requests": self.lost_requests,
            "lease_messages_at_rest": at_rest,
        }
