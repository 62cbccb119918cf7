"""Watch a run step by step, at a cost that can always be paid.

The simulator reports as it goes and ``meshlock audit`` reports from a trace; both are
judged here and nowhere else.

- **safety**: never are more than k permits in use.
- **one-token** and **conservation** are checked as balances: no handler may make or lose
  a token or a permit. What was at the node, plus what the step brought, must equal what
  is there afterwards plus what the step sent off and gave to clients. Since the start
  has one token and k permits, so has every later moment.
- **order**: when nothing is in flight, everybody's request has reached everybody it
  will reach, so the next grant must be for the highest priority of all that wait: for
  whoever enters next, or for somebody at the node to which permits are sent. Where
  waiting raises priorities, it is given the most that it can have gained, since it asked where
  requests are stamped, and the highest is given nothing. A link change, or a partition, excuses;
  who waited through a change may have been stamped by what was known of grants there, and one that
  asks meanwhile may hide an older one of its node.
- **neighbours**: messages go to nodes that are linked: on a network that changes, and in a trace
  also where links stay, unless the algorithm leaves it to others to find a way.
- **served**: when a run ends because nothing more can happen, nobody waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from meshlock.properties import sentences
from meshlock.properties.promises import Promises

NAMES = ("safety", "one-token", "conservation", "order", "neighbours", "served")


class Monitor:
    def __init__(self, permits: int, promised: Promises) -> None:
        self.permits = permits
        self.ordered = promised.ordered
        self.ageing = promised.ageing  # what a waiting request gains by every grant ...
        self.patience = round(1 / self.ageing) if self.ageing > 0.0 else 0  # ... for one step
        self.stamped = promised.stamped  # only grants since it asked count
        self.grants = 0
        self.held = 0
        self.violated: dict[str, str] = {}  # property: what was seen first, in a sentence
        self.levels: dict[float, int] = {}  # priority: how many wait with it (if ordered)
        self.ranking: list[float] = []  # a heap of their -priorities, and of some without any
        self.connected = True
        self.due = False  # the next to enter must have ...
        self.due_priority = 0.0  # ... at least this priority ...
        self.due_grants = 0  # ... after so many grants
        self.changed_at = -1  # grants when a link changed last
        self.asked = False  # somebody has, since something was due
        self.at_once = False  # the grants that come now are all made in one step, from rest ...
        self.more = False  # ... and something is due after the first of them
        self.under_way: list[tuple[int, float]] = []  # those on their way: node, priority

    def report(self, name: str, time: float, text: str) -> None:
        if name not in self.violated:
            self.violated[name] = f"at {time:g}: {text}"

    # -- clients ------------------------------------------------------------------

    def asks(self, priority: float) -> int:
        """The result: how many of the grants it gains nothing by."""
        if self.ordered:
            self.asked = True
            level = self.levels.get(priority, 0)
            self.levels[priority] = level + 1
            if level == 0:
                heappush(self.ranking, -priority)
                if len(self.ranking) > 2 * len(self.levels) + 64:
                    self.ranking = [-other for other in self.levels]
                    heapify(self.ranking)
        return self.grants if self.stamped else 0

    def waits_no_more(self, priority: float) -> None:
        level = self.levels[priority]
        if level > 1:
            self.levels[priority] = level - 1
        else:
            del self.levels[priority]

    def enters(self, time: float, node: int, want: int, priority: float, born: int) -> None:
        """``born``: what :meth:`asks` said."""
        self.held += want
        self.grants += 1
        if self.held > self.permits:
            self.report("safety", time, sentences.overuse(node, want, self.held, self.permits))
        if self.ordered:
            self.waits_no_more(priority)
            if self.due and self.too_early(priority, born):
                text = sentences.out_of_order(node, priority, self.due_priority)
                self.report("order", time, text)
            self.due = False
            if self.at_once:
                self.next_due()

    def lends(self, time: float, node: int, waiting: Sequence[tuple[float, int]]) -> None:
        """Permits are sent to that node, for one of those who wait there: priority, ``born``."""
        before = len([receiver for receiver, _ in self.under_way if receiver == node])
        others = sorted(waiting, reverse=True)[before:]  # the highest have something already
        if self.due and others and all(self.too_early(one, born) for one, born in others):
            text = sentences.lent_out_of_order(node, others[0][0], self.due_priority)
            self.report("order", time, text)
        self.due = False
        if self.at_once and others:
            self.under_way.append((node, others[0][0]))
            self.next_due()

    def next_due(self) -> None:
        """Of those that still wait, and for whom nothing is on its way, the highest."""
        left = dict(self.levels)
        for _, priority in self.under_way:
            left[priority] = left.get(priority, 0) - 1
        waiting = [priority for priority, count in left.items() if count > 0]
        if waiting:
            self.due = self.more = True
            self.due_priority = max(waiting)
            self.due_grants = self.grants

    def too_early(self, priority: float, born: int) -> bool:
        """Is it below what was due, even if it has gained by all grants; or by a step of priority,
        if it has gained by those since it asked? Less than a step need not be told, and as much
        is allowed to who may be older."""
        if self.patience == 0:
            return priority < self.due_priority
        due = self.due_priority * self.patience - self.due_grants
        if priority * self.patience < due:
            return True
        if not self.stamped or self.asked or born <= self.changed_at:
            return False
        most = (priority + 1) * self.patience - 1 - born
        return most // self.patience < due // self.patience

    def leaves(self, want: int) -> None:
        self.held -= want

    def withdraws(self, priority: float) -> None:
        """A client has given up waiting."""
        if self.ordered:
            self.waits_no_more(priority)
        self.due = False

    def quiet(self) -> None:
        """Nothing is in flight, and a client leaves: the next entry is due to the highest."""
        if self.ordered and self.levels and self.connected:
            while -self.ranking[0] not in self.levels:
                heappop(self.ranking)
            self.due = True
            self.due_priority = -self.ranking[0]
            self.due_grants = self.grants
            self.asked = False
            self.at_once = True

    def moved(self) -> None:
        """The step that began at rest is over: what else it made due may be granted elsewhere, by
        who has not heard of all."""
        self.at_once = False
        if self.more:
            self.due = self.more = False
        if self.under_way:
            self.under_way = []

    def changed(self, connected: bool) -> None:
        """A link has formed or failed: requests are on their way again."""
        self.due = False
        self.changed_at = self.grants
        self.connected = connected

    # -- balances -----------------------------------------------------------------

    def balance(self, time: float, node: int, tokens: int, permits: int) -> None:
        """After a step of node: what it had and got, less what it has and gave."""
        if tokens != 0:
            self.report("one-token", time, sentences.tokens(node, tokens))
        if permits != 0:
            self.report("conservation", time, sentences.permits(node, permits))

    # -- the end --------------------------------------------------------------------

    def ends(self, time: float, unserved: int) -> None:
        if unserved > 0:
            self.report("served", time, sentences.unserved(unserved))
