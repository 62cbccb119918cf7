"""Is every client served when it should be, where nodes crash and links fail: in order, and if it
had a path for long enough (see :mod:`.paths`)? The simulator reports as it goes and
``meshlock audit`` reports from a trace.

A client that asks later and is less urgent goes later: order where nodes crash and links fail.
Clients that want no kind of permits in common have no order.

With faults it cannot be said at which moment a request is known where the token is. But once
nothing has failed or changed for ``slack``, a request that is as old and can reach the token must
be known there. From then on a request that is made later with a lower priority ranks below it, for
both age alike. The same holds for equal priorities where first come, first served is promised, as
long as no more clients of a node wait than the node may have in the queue (``lines``). A request
that has changed its priority is known by the new one after ``slack``; until then, and if it is the
one that enters, the highest that it has had counts. Where ``patience`` grants count for a
step of priority, a request that has been known for that many, and as many again, goes before one
that is a step more urgent and is made then: a request begins with less than ``patience``.

A client may enter some time after it was granted its permits: fences say in which order grants were
made. So a request that is passed is judged when it enters itself, or after ``slack`` if it does
not. ``most`` may pass one: none where the node that decides knows every request, MOST where the
token may let others in on its way.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from meshlock.algorithms.actor import Algorithm
from meshlock.algorithms.amounts import kinds_of
from meshlock.algorithms.conflicts import lines_per_kind
from meshlock.properties.leases import Fence, LeaseMonitor
from meshlock.properties.paths import Paths
from meshlock.properties.promises import ALL_KNOWN, orderly, ties

MOST = 3


class Pass(NamedTuple):
    """A client that waits with this priority is passed by a grant of this node."""

    time: float
    node: int
    client: int
    priority: float
    fence: Fence


class WaitingRequest:
    def __init__(
        self, number: int, time: float, node: int, priority: float, due: bool, kinds: int
    ) -> None:
        self.number = number
        self.kinds = kinds  # of permits that it wants
        self.asked = time
        self.time = time  # since when it has this priority
        self.node = node
        self.priority = priority
        self.due = due  # it has a deadline, which counts for up to a step
        self.highest = priority + due  # that it has had
        self.passes: list[Pass] = []


class Overtaking:
    """``lines``: how many clients of a node are served in turn if they are equal; 0: none.
    ``patience``: grants that count for a step of priority, where clients with a line age; 0: none
    do."""

    def __init__(self, slack: float, lines: int = 0, most: int = MOST, patience: int = 0) -> None:
        self.slack = slack
        self.lines = lines
        self.most = most
        self.patience = patience
        self.made: list[float] = []  # when grants were, since the last disturbance
        self.waiting: dict[int, WaitingRequest] = {}  # by client
        self.here: dict[int, int] = {}  # node: how many wait there
        self.crowded: dict[int, int] = {}  # node: the latest request that found its lines taken
        self.requests = 0
        self.disturbed_at = 0.0
        self.epoch: object = None

    def disturbed(self, time: float) -> None:
        """A node or a link comes or goes: everything begins anew."""
        self.disturbed_at = time
        self.made = []
        for one in self.waiting.values():
            one.passes = []

    def goes_by(self, time: float, epoch: object) -> bool:
        """Another epoch counts as a fault, since all clients ask anew. Is it another?"""
        another = self.epoch is not None and epoch != self.epoch
        if another:
            self.disturbed(time)
        self.epoch = epoch
        return another

    def asks(
        self,
        time: float,
        client: int,
        node: int,
        priority: float,
        due: bool = False,
        want: int = 1,
    ) -> None:
        self.stops(client)
        self.requests += 1
        kinds = kinds_of(want)
        self.waiting[client] = WaitingRequest(self.requests, time, node, priority, due, kinds)
        here = self.here[node] = self.here.get(node, 0) + 1
        if here > self.lines:
            self.crowded[node] = self.requests

    def changes(self, time: float, client: int, priority: float) -> None:
        """That one has another priority now."""
        one = self.waiting.get(client)
        if one is not None:
            one.time = time
            one.priority = priority
            one.highest = max(one.highest, priority + one.due)
            one.passes = []

    def stops(self, client: int) -> WaitingRequest | None:
        one = self.waiting.pop(client, None)
        if one is not None:
            self.here[one.node] -= 1
        return one

    def crashed(self, node: int) -> None:
        for client in [client for client, one in self.waiting.items() if one.node == node]:
            self.stops(client)

    def granted(self, time: float, client: int, reached: set[int], fence: Fence) -> list[Pass]:
        """A client enters with this fence. The result: who was passed, as is known by now."""
        entry = self.stops(client)
        self.made.append(time)
        if entry is None:
            return []
        for other in self.passed_by(entry, reached):
            one = self.waiting[other]
            one.passes.append(Pass(time, entry.node, other, one.priority, fence))
        before = [one for one in entry.passes if one.fence < fence]
        return before[self.most :] + self.overdue(time)

    def overdue(self, time: float) -> list[Pass]:
        """Of clients that wait: who passed them more than ``slack`` ago, so no grant comes."""
        return [
            passing
            for one in self.waiting.values()
            for passing in one.passes[self.most :]
            if passing.time + self.slack < time
        ]

    def passed_by(self, entry: WaitingRequest, reached: set[int]) -> list[int]:
        return [
            client
            for client, one in self.waiting.items()
            if entry.asked >= max(one.time, self.disturbed_at) + self.slack
            and one.node in reached
            and one.kinds & entry.kinds != 0
            and self.is_before(one, entry)
        ]

    def is_before(self, one: WaitingRequest, entry: WaitingRequest) -> bool:
        steps = entry.highest - one.priority
        if steps < 0:
            return True
        if not self.has_line(one) or not self.has_line(entry):
            return False
        enough = (steps + 1) * self.patience
        return steps == 0 or (self.patience > 0 and self.age(one, entry) >= enough)

    def age(self, one: WaitingRequest, entry: WaitingRequest) -> int:
        """How many grants were made after the one was known and before the other was asked for."""
        known = max(one.time, self.disturbed_at) + self.slack
        return bisect(self.made, entry.asked) - bisect(self.made, known)

    def has_line(self, one: WaitingRequest) -> bool:
        return self.crowded.get(one.node, 0) < one.number


def overtaking(
    slack: float, algorithm: Algorithm, options: dict[str, str], permits: int
) -> Overtaking:
    """How order is judged under leases, where there are at least this many permits; where order is
    not promised, no time is long enough for any pass."""
    if not orderly(algorithm, options):
        return Overtaking(inf)
    if ties(algorithm, options) == ALL_KNOWN:
        return Overtaking(slack, lines_per_kind(permits), 0)
    return Overtaking(slack)


@dataclass
class WaitJudge:
    """Without ``paths`` only order is judged. ``patient``: what excuses a grant may be
    told later than the grant, as in traces of live nodes."""

    monitor: LeaseMonitor
    paths: Paths | None
    order: Overtaking
    patient: bool = False

    def __post_init__(self) -> None:
        self.passed: list[Pass] = []  # that something may yet excuse
        self.asked: dict[int, tuple[int, float]] = {}  # client that waits: its node, since when
        self.late = 0  # requests that had a path, waited too long and were then served or lost
        self.unserved = 0  # requests that had a path and wait at the end

    # -- clients --------------------------------------------------------------------------

    def asks(
        self,
        time: float,
        client: int,
        node: int,
        priority: float,
        due: bool = False,
        want: int = 1,
    ) -> None:
        self.asked[client] = (node, time)
        self.order.asks(time, client, node, priority, due, want)

    def changes(self, time: float, client: int, priority: float) -> None:
        self.order.changes(time, client, priority)

    def enters(self, time: float, client: int, parts: Sequence[int], fence: Fence) -> None:
        """``parts``: of the network, by node."""
        here = parts[self.asked[client][0]]
        reached = {one for one, part in enumerate(parts) if part == here}
        self.passed += self.order.granted(time, client, reached, fence)
        self.waits_no_more(time, client)

    def stops(self, time: float, client: int) -> None:
        """It gives up, or its node crashes."""
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
        while self.passed:
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
        self.order.disturbed(time)

    def crashed(self, time: float, node: int) -> None:
        self.disturbed(time)
        self.order.crashed(node)

    def goes_by(self, time: float, epoch: object) -> None:
        if self.order.goes_by(time, epoch):
            self.passed = []

    # -- the end --------------------------------------------------------------------------

    def ends(self, time: float) -> None:
        """Nothing more can happen."""
        self.passed += self.order.overdue(time)
        self.blame(inf)
        if self.paths is not None:
            for node, asked in self.asked.values():
                self.unserved += self.paths.had_path(node, asked, time)
        self.monitor.ends_leased(time, self.late + self.unserved)
