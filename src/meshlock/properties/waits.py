"""Is every client served when it should be, where nodes crash and links fail: in order (see
:mod:`.overtaking`), and if it had a path for long enough (see :mod:`.paths`)?

The simulator reports as it goes and ``meshlock audit`` reports from a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from meshlock.properties.leases import LeaseMonitor
from meshlock.properties.overtaking import Fence, Overtaking, Pass
from meshlock.properties.paths import Paths


@dataclass
class WaitJudge:
    """Without ``order`` or ``paths`` that is not judged. ``patient``: what excuses a grant may be
    told later than the grant, as in traces of live nodes."""

    monitor: LeaseMonitor
    paths: Paths | None
    order: Overtaking | None
    patient: bool = False

    def __post_init__(self) -> None:
        self.passed: list[Pass] = []  # that something may yet excuse
        self.asked: dict[int, tuple[int, float]] = {}  # client that waits: its node, since when
        self.late = 0  # requests that had a path, waited too long and were then served or lost
        self.unserved = 0  # requests that had a path and wait at the end

    # -- clients --------------------------------------------------------------------------

    def asks(self, time: float, client: int, node: int, priority: float, due: bool = False) -> None:
        self.asked[client] = (node, time)
        if self.order is not None:
            self.order.asks(time, client, node, priority, due)

    def changes(self, time: float, client: int, priority: float) -> None:
        if self.order is not None:
            self.order.changes(time, client, priority)

    def enters(self, time: float, client: int, parts: Sequence[int], fence: Fence) -> None:
        """``parts``: of the network, by node."""
        if self.order is not None:
            here = parts[self.asked[client][0]]
            reached = {one for one, part in enumerate(parts) if part == here}
            self.passed += self.order.granted(time, client, reached, fence)
        self.waits_no_more(time, client)

    def stops(self, time: float, client: int) -> None:
        """It gives up, or its node crashes."""
        if self.order is not None:
            self.passed += self.order.overdue(time)
            self.order.stops(client)
        self.waits_no_more(time, client)

    def waits_no_more(self, time: float, client: int) -> None:
        if not self.patient:
            self.blame(inf)
        node, asked = self.asked.pop(client)
        if self.paths is not None and self.paths.had_path(node, asked, time):
            self.late += 1

    def blame(self, time: float) -> None:
        """What nothing excuses that was told until this time."""
        while self.order is not None and self.passed:
            one = self.passed[0]
            if one.time + self.order.slack >= time:
                break
            self.passed.pop(0)
            text = (
                f"lets in a later request, which is no more urgent than that of client {one.client}"
            )
            waits = f"which waits with priority {one.priority:g}"
            self.monitor.report("order", one.time, f"node {one.node} {text}, {waits}")

    # -- what excuses ---------------------------------------------------------------------

    def disturbed(self, time: float) -> None:
        """A fault, of which live nodes may have learnt late."""
        self.passed = []
        if self.order is not None:
            self.order.disturbed(time)

    def crashed(self, time: float, node: int) -> None:
        self.disturbed(time)
        if self.order is not None:
            self.order.crashed(node)

    def goes_by(self, time: float, epoch: object) -> None:
        if self.order is not None and self.order.goes_by(time, epoch):
            self.passed = []

    # -- the end --------------------------------------------------------------------------

    def ends(self, time: float) -> None:
        """Nothing more can happen."""
        if self.order is not None:
            self.passed += self.order.overdue(time)
            self.blame(inf)
        if self.paths is not None:
            for node, asked in self.asked.values():
                self.unserved += self.paths.had_path(node, asked, time)
        self.monitor.ends_leased(time, self.late + self.unserved)
