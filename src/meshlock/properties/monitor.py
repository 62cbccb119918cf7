"""Watch a run step by step, at a cost that can always be paid.

The simulator reports as it goes and ``meshlock audit`` reports from a trace; both are
judged here and nowhere else.

- **safety**: at most k permits are in use.
- **one-token** and **conservation** are checked as balances: no handler may make or lose
  a token or a permit. What was at the node, plus what the step brought, must equal what
  is there afterwards plus what the step sent off and gave to clients. Since the start
  has one token and k permits, so has every later moment.
- **order**: a moment is *quiet* if nothing is in flight when a client asks, releases, gives up or
  changes its priority. Then every request has reached every node that it will reach, so the next
  grant must be for the highest priority of all that wait: for the client that enters next, or for
  one at the node to which permits are sent. Priorities are those of that moment; a request that has
  changed since counts with the higher one. Where waiting raises priorities, the one that enters is
  given the most that it can have gained, since it asked where requests are stamped, and the highest
  is given nothing. One that stood behind an older request of its priority, which may have hidden
  it, may count as old as that. A link change, or a partition, excuses; who waited through a change
  may have been stamped by what was known of grants there, and one that asks meanwhile may hide an
  older one of its node.
- **order**, first come, first served: the next grant must not go to a request that was made after
  another of the same or a higher priority was *known* at a quiet moment. What is known depends on
  the algorithm, see :attr:`.PromisedOrder.ties`. Where a node knows only the first request of each
  neighbour, clients of one node with one priority are served in turn whatever is in flight.
- **order**, raised: a step that makes one request more urgent lets no other one in.
- **neighbours**: messages go to nodes that are linked: on a network that changes, and in a trace
  also where links stay, unless the algorithm leaves it to others to find a way.
- **served**: when a run ends because nothing more can happen, no client waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from meshlock.properties import sentences
from meshlock.properties.promises import ALL_KNOWN, FIRST_KNOWN, NO_TIES, PromisedOrder

NAMES = ("safety", "one-token", "conservation", "order", "neighbours", "served")

Known = dict[float, deque[tuple[int, "Rival"]]]
"""Priority: requests that are known since a quiet moment of that number, the earliest first. Some
have gone or changed since."""


class Rival:
    """A request that waits, as the order of requests sees it."""

    def __init__(self, number: int, node: int, priority: float, born: int, asked: int) -> None:
        self.number = number  # in the order of asking
        self.node = node
        self.priority = priority
        self.highest = priority  # that it has had since the last quiet moment
        self.born = born  # it gains nothing by this number of the grants
        self.asked = asked  # after this number of quiet moments
        self.changed = -1  # its priority, after this number
        self.stay = -1  # of the token, during which it is known
        self.waits = True

    def waiting(self) -> str:
        """As of a request that was passed."""
        text = f"nothing was in flight and an earlier request of node {self.node} was waiting"
        return f"{text} with priority {self.priority:g}"


class Monitor:
    def __init__(self, permits: int, promised: PromisedOrder) -> None:
        self.permits = permits
        self.ordered = promised.ordered
        self.ties = promised.ties
        self.judges_order = self.ordered or self.ties != NO_TIES
        self.lines = promised.lines(permits)
        self.ageing = promised.ageing  # what a waiting request gains by every grant ...
        self.patience = round(1 / self.ageing) if self.ageing > 0.0 else 0  # ... for one step
        self.stamped = promised.stamped  # only grants since it asked count
        self.grants = 0
        self.held = 0
        self.violated: dict[str, str] = {}  # property: what was seen first, in a sentence
        # priority: those that wait with it, in the order of asking (if ordered)
        self.levels: dict[float, dict[int, Rival]] = {}
        self.ranking: list[float] = []  # a heap of their -priorities, and of some without any
        self.connected = True
        self.due = False  # the next to enter must have ...
        self.due_priority = 0.0  # ... at least this priority ...
        self.due_grants = 0  # ... after this number of grants
        self.due_known: Known = {}  # ... and have been asked for before these were known
        self.changed_at = -1  # grants when a link changed last
        self.asked = False  # a client has, since something was due
        self.at_once = False  # the grants that come now are all made in one step, from rest ...
        self.more = False  # ... and something is due after the first of them
        self.under_way: list[tuple[int, float]] = []  # those on their way: node, priority
        self.raised: Rival | None = None  # by the step at hand
        # ties
        self.moments = 0  # that were quiet
        self.requests = 0
        self.fresh: list[Rival] = []  # that asked or changed since the last quiet moment
        self.most_fresh = 64  # then those that have gone are dropped
        self.known: Known = {}
        self.stay = 0  # of the token at one node
        self.line: deque[Rival] = deque()  # in the order of asking; some have gone
        # node, priority: its requests that never had another, in the order of asking; likewise
        self.turns: dict[tuple[int, float], deque[Rival]] = {}
        # priority: how old those that wait with it may count, where one may hide another
        self.oldest: dict[float, int] = {}
        self.here: dict[int, int] = {}  # node: how many wait there
        self.crowded: dict[int, int] = {}  # node: the latest request that found its lines taken

    def report(self, name: str, time: float, text: str) -> None:
        if name not in self.violated:
            self.violated[name] = f"at {time:g}: {text}"

    # -- clients ------------------------------------------------------------------

    def asks(self, node: int, priority: float, want: int = 0) -> Rival:
        """Call :meth:`quiet` first if nothing is in flight."""
        self.requests += 1
        born = self.grants if self.stamped else 0
        level = priority if self.ordered else 0.0
        rival = Rival(self.requests, node, level, born, self.moments)
        if self.judges_order:
            self.asked = True
            self.add(rival)
            if self.ties == FIRST_KNOWN:
                self.line.append(rival)
                self.turns.setdefault((node, level), deque()).append(rival)
            elif self.ties == ALL_KNOWN:
                waiting = self.here.get(node, 0) + 1
                self.here[node] = waiting
                if waiting > self.lines:
                    self.crowded[node] = rival.number
                self.fresh.append(rival)
                if len(self.fresh) > self.most_fresh:
                    self.fresh = [one for one in self.fresh if one.waits]
                    self.most_fresh = 2 * len(self.fresh) + 64
        return rival

    def add(self, rival: Rival) -> None:
        level = self.levels.get(rival.priority)
        if level is not None:
            level[rival.number] = rival
            if self.ties == FIRST_KNOWN:
                rival.born = self.oldest[rival.priority] = min(
                    rival.born, self.oldest[rival.priority]
                )
            return
        self.levels[rival.priority] = {rival.number: rival}
        if self.ties == FIRST_KNOWN:
            self.oldest[rival.priority] = rival.born
        heappush(self.ranking, -rival.priority)
        if len(self.ranking) > 2 * len(self.levels) + 64:
            self.ranking = [-other for other in self.levels]
            heapify(self.ranking)

    def remove(self, rival: Rival) -> None:
        level = self.levels[rival.priority]
        if len(level) > 1:
            del level[rival.number]
        else:
            del self.levels[rival.priority]
            self.oldest.pop(rival.priority, None)

    def waits_no_more(self, rival: Rival) -> None:
        rival.waits = False
        self.remove(rival)
        if self.ties == FIRST_KNOWN:
            while self.line and not self.line[0].waits:
                self.line.popleft()
        elif self.ties == ALL_KNOWN:
            self.here[rival.node] -= 1

    def enters(self, time: float, node: int, want: int, rival: Rival | None) -> None:
        """``rival``: what :meth:`asks` gave; None where order is not judged."""
        self.held += want
        self.grants += 1
        if self.held > self.permits:
            self.report("safety", time, sentences.overuse(node, want, self.held, self.permits))
        if self.judges_order and rival is not None:
            self.waits_no_more(rival)
            if self.due:
                self.judge(time, node, rival)
            if self.ties == FIRST_KNOWN:
                self.judge_turn(time, rival)
            if self.raised is not None and self.raised is not rival:
                self.report("order", time, sentences.let_in_by_a_raise(node))
            self.due = False
            if self.at_once:
                self.next_due()

    def judge(self, time: float, node: int, rival: Rival) -> None:
        if self.ordered and self.too_early(rival):
            text = sentences.out_of_order(node, rival.priority, self.due_priority)
            self.report("order", time, text)
        earlier = self.passes(rival)
        if earlier is not None:
            text = f"node {node} enters with priority {rival.priority:g}"
            self.report("order", time, f"{text} although {earlier.waiting()}")

    def judge_turn(self, time: float, rival: Rival) -> None:
        """No request of its node is passed that has always had the same priority."""
        key = (rival.node, rival.priority)
        turns = self.turns.get(key)
        if turns is None or rival.changed >= 0:
            return
        while turns and not (turns[0].waits and turns[0].changed < 0):
            turns.popleft()
        if not turns:
            del self.turns[key]
        elif turns[0].number < rival.number:
            text = f"node {rival.node} lets in a request with priority {rival.priority:g}"
            self.report("order", time, f"{text} before an earlier one of its own")

    def lends(self, time: float, node: int, waiting: Sequence[Rival], want: int = 0) -> None:
        """Permits, ``want`` of them, are sent to that node, for one of those who wait there."""
        before = len([receiver for receiver, _ in self.under_way if receiver == node])
        # the highest have something already
        others = sorted(waiting, key=lambda one: (-one.priority, one.number))[before:]
        if self.due and others:
            if self.ordered and all(self.too_early(one) for one in others):
                text = sentences.lent_out_of_order(node, others[0].priority, self.due_priority)
                self.report("order", time, text)
            earlier = [self.passes(one) for one in others]
            first = earlier[0]
            if first is not None and None not in earlier:
                highest = f"where {others[0].priority:g} is the highest priority"
                text = f"permits are sent to node {node}, {highest}, although {first.waiting()}"
                self.report("order", time, text)
        if self.raised is not None and others and self.raised not in waiting:
            self.report("order", time, sentences.let_in_by_a_raise(node))
        self.due = False
        if self.at_once and others:
            self.under_way.append((node, others[0].priority))
            self.next_due()

    def next_due(self) -> None:
        """Of those that still wait, and for whom nothing is on its way, the highest."""
        left = {priority: len(level) for priority, level in self.levels.items()}
        for _, priority in self.under_way:
            left[priority] = left.get(priority, 0) - 1
        waiting = [priority for priority, count in left.items() if count > 0]
        if waiting:
            self.due = self.more = True
            self.due_priority = max(waiting)
            self.due_grants = self.grants

    def too_early(self, rival: Rival) -> bool:
        """Is it below what was due, even if it has gained by all grants; or by a step of priority,
        if it has gained by those since it asked? Less than a step need not be told, and as much
        is allowed to who may be older."""
        priority = rival.highest
        if self.patience == 0:
            return priority < self.due_priority
        due = round(self.due_priority * self.patience) - self.due_grants
        worth = round(priority * self.patience)  # a deadline counts for this number of grants
        if worth < due:
            return True
        if not self.stamped or self.asked or rival.born <= self.changed_at:
            return False
        most = worth + self.patience - 1 - rival.born
        return most // self.patience < due // self.patience

    def leaves(self, want: int) -> None:
        self.held -= want

    def withdraws(self, rival: Rival, quiet: bool) -> None:
        """A client has given up waiting. ``quiet``: nothing was in flight."""
        if self.judges_order:
            self.waits_no_more(rival)
            self.forget_the_first()
            self.due = False
            if quiet:
                self.quiet_step()

    def changes(self, rival: Rival, priority: float, quiet: bool) -> None:
        """A client that waits has another priority now, and keeps its age. Until the next quiet
        moment it may go by either: what is due goes by the lower one."""
        if not self.ordered or priority == rival.priority:
            return
        highest = max(rival.highest, priority)
        if priority > rival.priority:
            if quiet:
                self.quiet()
            self.raised = rival
        else:
            self.due = False
        self.remove(rival)
        rival.priority = priority
        self.add(rival)
        if quiet and self.raised is None:
            self.quiet_step()
        rival.highest = highest
        rival.changed = self.moments
        self.fresh.append(rival)
        self.forget_the_first()

    def quiet(self) -> None:
        """Nothing is in flight, and a client acts: the next entry is due to the highest."""
        self.moments += 1
        if not self.levels:
            self.fresh = []
        if not self.connected or not self.levels:
            return
        while -self.ranking[0] not in self.levels:
            heappop(self.ranking)
        self.due = True
        self.due_priority = -self.ranking[0]
        self.due_grants = self.grants
        self.asked = False
        self.at_once = True
        if self.ties == FIRST_KNOWN:
            self.know_the_first()
        for rival in self.fresh:
            rival.highest = rival.priority
            if self.ties == ALL_KNOWN and rival.waits and self.has_line(rival):
                self.know(rival)
        if self.fresh:
            self.fresh = []
        if len(self.known) > 2 * len(self.levels) + 64:
            self.known = {one: self.known[one] for one in self.levels if one in self.known}
        self.due_known = self.known

    def quiet_step(self) -> None:
        """The same, but only what is granted in this step is judged. Until all know that a request
        is less urgent or gone, the token may go to its node on its behalf."""
        self.quiet()
        self.more = True

    def moved(self) -> None:
        """The step that began at rest is over: what else it made due may be granted elsewhere, by
        who has not heard of all."""
        self.at_once = False
        if self.more:
            self.due = self.more = False
        if self.under_way:
            self.under_way = []
        self.raised = None

    def changed(self, connected: bool) -> None:
        """A link has formed or failed: requests are on their way again."""
        self.due = False
        self.changed_at = self.grants
        self.connected = connected
        self.known = {}  # requests may have come to other nodes in another order
        self.stay += 1

    # -- ties -----------------------------------------------------------------------

    def has_line(self, rival: Rival) -> bool:
        """Is it in the holder's queue: did no more wait at its node, since it asked, than may be
        there?"""
        return self.crowded.get(rival.node, 0) < rival.number

    def know(self, rival: Rival) -> None:
        rival.stay = self.stay
        line = self.known.get(rival.priority)
        if line is None:
            line = self.known[rival.priority] = deque()
        while line and not line[0][1].waits:
            line.popleft()
        line.append((self.moments, rival))

    def know_the_first(self) -> None:
        """The holder knows a request that none can hide: it is the only one of the highest
        priority, and none has waited for so long that it is worth a step of priority."""
        first = self.levels[self.due_priority]
        if len(first) > 1:
            return
        if self.patience > 0 and self.grants - self.line[0].born >= self.patience:
            return
        for rival in first.values():
            if rival.stay < self.stay:
                self.know(rival)

    def forget_the_first(self) -> None:
        """The token moves, or a request that hid another is gone."""
        if self.ties == FIRST_KNOWN:
            self.stay += 1
            if self.known:
                self.known = {}

    def passes(self, rival: Rival) -> Rival | None:
        """One that waits, is no less urgent, and was known when this one asked."""
        if self.ties == NO_TIES or not self.has_line(rival):
            return None
        for priority, line in self.due_known.items():
            if priority < rival.highest:
                continue
            while line and not line[0][1].waits:
                line.popleft()
            for moment, one in line:
                if moment > rival.asked:
                    break
                stays = one.waits and one.priority == priority and one.changed < moment
                if stays and self.has_line(one) and not self.is_lent_to(one.node):
                    return one
        return None

    def is_lent_to(self, node: int) -> bool:
        """In the step at hand; for which of its clients cannot be seen."""
        return any(receiver == node for receiver, _ in self.under_way)

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
