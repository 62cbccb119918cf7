"""Clients of the nodes of a world."""

from __future__ import annotations

from meshlock.properties.monitor import Rival


class SimulatedClient:
    """One request of one node: from asking, through entering, to leaving."""

    life: int = 0  # of its node, where nodes crash

    def __init__(self, node: int, want: int, priority: int, number: int = 0) -> None:
        self.number = number  # given when it asks
        self.node = node
        self.want = want
        self.priority = priority
        self.deadline = 0.0  # when it should be in, where deadlines are the priorities
        self.asked = 0.0
        self.rival: Rival | None = None  # where order is judged
        self.inside = False
        self.rank = 0.0  # what its priority comes to when waiting counts (see measures)
