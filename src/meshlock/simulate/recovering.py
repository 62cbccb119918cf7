"""Recovery in virtual time: crashes, links that come and go, clocks of different rates.

Runs the nodes of :mod:`meshlock.algorithms.recovery.node` at the pace of
:mod:`meshlock.algorithms.recovery.pace`, and measures. Messages find their way within the part of
the network that their sender is in, at ``delay`` per hop; a message whose receiver cannot be
reached, or is down when it arrives, is lost. That a node cannot be reached is noticed by the
others after ``notice``.

Times are whole milliseconds of true time; every node has its own clock, which runs faster or
slower by at most ``skew`` per thousand, and ``wait`` is longer than ``lease`` accordingly.
"""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

from meshlock.algorithms.interface import Effect, Message
from meshlock.algorithms.recovery.messages import (
    NO_EPOCH,
    Config,
    Epoch,
    Fence,
    Granted,
    Keep,
    Lost,
    Token,
)
from meshlock.algorithms.recovery.node import Pool, RecoveryNode
from meshlock.algorithms.recovery.pace import Pace
from meshlock.topology.mobility.changes import Changes, LinkChange
from meshlock.topology.mobility.live_graph import LiveGraph

CLIENT = 0
"""One client per node."""
POLLS = 30
"""Per lease."""


class Plan:
    """A set-up; rates are per node and second of true time, 0 for never."""

    def __init__(
        self,
        size: int,
        permits: int,
        *,
        members: tuple[int, ...] | None = None,
        lease: int = 3000,
        skew: int = 10,
        delay: int = 5,
        notice: int = 500,
        think: int = 2000,
        hold: int = 500,
        crash_every: int = 0,
        down_for: int = 5000,
        kill_holder_at: int = 0,
        until: int = 600_000,
        seed: int = 1,
    ) -> None:
        self.size = size
        self.permits = permits
        self.members = members if members is not None else tuple(range(size))
        self.lease = lease
        self.skew = skew  # parts per thousand
        self.delay = delay
        self.notice = notice  # until it is known that a node cannot be reached
        self.think = think  # mean time before a node asks again
        self.hold = hold  # mean time that a client keeps its permits
        self.crash_every = crash_every  # mean time between crashes, of any node
        self.down_for = down_for  # mean
        self.kill_holder_at = kill_holder_at  # once, whoever has the token then; 0 for never
        self.until = until
        self.seed = seed


class Figures:
    """What came of it."""

    def __init__(self) -> None:
        self.violated: list[str] = []
        self.crashes = 0
        self.requests = 0
        self.grants = 0
        self.lost_grants = 0
        self.lost_requests = 0  # their node crashed while they waited
        self.waiting = 0  # at the end
        self.longest_wait = 0
        self.epochs = 0
        self.messages: dict[str, int] = {}
        self.replaced_after = -1  # ms from the killing of the holder to the next usable token
        self.outages: list[int] = []  # how long there was no usable token
        self.served_share: list[float] = []  # of time, per node: it could reach a usable token
        self.majority_share = 0.0  # of time: some part had a majority of the members in it
        self.idle_share = 0.0  # of permits and time: neither free at a token nor in use


class Task:
    """Something that is due: what, at which node, and for which of its lives."""

    def __init__(self, what: str, node: int, life: int, message: Message | None = None) -> None:
        self.what = what
        self.node = node
        self.life = life
        self.message = message


class Recovering:
    def __init__(
        self, plan: Plan, links: list[tuple[int, int]], changes: Changes | None = None
    ) -> None:
        self.plan = plan
        self.graph = LiveGraph(plan.size, links)
        self.changes = changes
        wait = plan.lease * (1000 + plan.skew) // (1000 - plan.skew) + 1
        self.pool = Pool(tuple(range(plan.size)), plan.members, plan.permits, plan.lease, wait)
        self.random = Random(plan.seed)
        self.rates = [1000 + self.random.randint(-plan.skew, plan.skew) for _ in range(plan.size)]
        self.out: list[Effect] = []
        self.now = 0
        self.serial = 0
        self.heap: list[tuple[int, int, Task]] = []
        self.nodes: list[RecoveryNode | None] = [None] * plan.size
        self.paces: list[Pace | None] = [None] * plan.size
        self.disk: list[Epoch] = [NO_EPOCH] * plan.size
        self.configs: list[Config | None] = [None] * plan.size
        self.away_since: list[dict[int, int]] = [{} for _ in range(plan.size)]
        self.lives = [0] * plan.size
        self.orphans: list[tuple[int, int, int]] = []  # node, its clock at the end, permits
        self.asked_at = [-1] * plan.size
        self.figures = Figures()
        self.fence: Fence = (NO_EPOCH, 0)
        self.epochs: set[Epoch] = set()
        self.part: list[int] = []  # of each node: which part of the network
        self.served = [0] * plan.size
        self.with_majority = 0
        self.idle = 0
        self.outage_since = 0
        self.pending: LinkChange | None = None  # the next change of links
        self.killed_at = -1

    # -- the run ---------------------------------------------------------------------------------

    def run(self) -> Figures:
        plan = self.plan
        self.find_parts()
        for node in range(plan.size):
            self.start(node)
        if plan.crash_every > 0:
            self.later(self.about(plan.crash_every), Task("crash", -1, 0))
        self.next_change()
        while self.heap and self.heap[0][0] <= plan.until:
            self.account(self.heap[0][0])
            self.now, _, task = heappop(self.heap)
            self.carry_out(task)
            self.judge()
        self.account(plan.until)
        return self.finish()

    def later(self, delay: int, task: Task) -> None:
        self.serial += 1
        heappush(self.heap, (self.now + delay, self.serial, task))

    def about(self, mean: int) -> int:
        return 1 + int(self.random.expovariate(1.0 / mean))

    def clock(self, node: int) -> int:
        return self.now * self.rates[node] // 1000

    def carry_out(self, task: Task) -> None:
        if task.what == "links":
            self.next_change()
            return
        if task.what == "crash":
            self.crash(self.random.randrange(self.plan.size))
            self.later(self.about(self.plan.crash_every), task)
            return
        if task.what == "start":
            self.start(task.node)
            return
        node = self.nodes[task.node]
        if task.what == "deliver":
            if node is not None and task.message is not None:
                node.receive(task.message, self.clock(task.node))
                self.effects(task.node)
        elif node is not None and task.life == self.lives[task.node]:
            if task.what == "poll":
                self.poll(node)
            elif task.what == "ask":
                self.figures.requests += 1
                self.asked_at[task.node] = self.now
                want = self.random.randint(1, self.plan.permits)
                node.request(CLIENT, want, 0, self.clock(task.node))
                self.effects(task.node)
            elif task.what == "leave" and len(node.grants) > 0:
                node.release(CLIENT, self.clock(task.node))
                self.effects(task.node)
                self.think(task.node)

    def think(self, node: int) -> None:
        self.later(self.about(self.plan.think), Task("ask", node, self.lives[node]))

    # -- nodes -----------------------------------------------------------------------------------

    def start(self, me: int) -> None:
        self.lives[me] += 1
        node = RecoveryNode(me, self.pool, self.out)
        node.start(self.clock(me), self.lives[me], self.disk[me], self.configs[me])
        self.nodes[me] = node
        self.paces[me] = Pace(node, 1000)
        self.away_since[me] = {}
        step = self.plan.lease // POLLS
        self.later(self.random.randint(1, step), Task("poll", me, self.lives[me]))
        self.think(me)

    def crash(self, me: int) -> None:
        node = self.nodes[me]
        if node is None:
            return
        self.figures.crashes += 1
        for grant in node.grants.values():
            self.orphans.append((me, grant.until, grant.h))
        if self.asked_at[me] >= 0:
            self.figures.lost_requests += 1
            self.asked_at[me] = -1
        self.nodes[me] = None
        self.later(self.about(self.plan.down_for), Task("start", me, 0))

    def poll(self, node: RecoveryNode) -> None:
        me = node.me
        pace = self.paces[me]
        assert pace is not None
        node.gone = self.gone(me)
        pace.poll(self.clock(me), self.random.random())
        self.effects(me)
        self.later(self.plan.lease // POLLS, Task("poll", me, self.lives[me]))

    def gone(self, me: int) -> set[int]:
        """Who could not be reached from here for so long that it was noticed."""
        away = self.away_since[me]
        for other in range(self.plan.size):
            if self.nodes[other] is not None and self.part[other] == self.part[me]:
                away.pop(other, None)
            else:
                away.setdefault(other, self.now)
        return {other for other, since in away.items() if self.now - since >= self.plan.notice}

    def effects(self, me: int) -> None:
        todo = self.out[:]
        self.out.clear()
        for effect in todo:
            if isinstance(effect, Message):
                self.send(me, effect)
            elif isinstance(effect, Keep):
                self.disk[me] = effect.promised
                self.configs[me] = effect.config
            elif isinstance(effect, Granted):
                self.granted(me, effect)
            elif isinstance(effect, Lost):
                self.figures.lost_grants += 1
                self.think(me)

    def granted(self, me: int, effect: Granted) -> None:
        figures = self.figures
        figures.grants += 1
        figures.longest_wait = max(figures.longest_wait, self.now - self.asked_at[me])
        self.asked_at[me] = -1
        if effect.fence <= self.fence:
            figures.violated.append(f"fences: {effect.fence} after {self.fence}")
        self.fence = max(self.fence, effect.fence)
        self.epochs.add(effect.fence[0])
        self.later(self.about(self.plan.hold), Task("leave", me, self.lives[me]))

    def send(self, me: int, message: Message) -> None:
        kind = message.kind
        self.figures.messages[kind] = self.figures.messages.get(kind, 0) + 1
        to = message.receiver
        if self.part[to] != self.part[me]:
            return
        travel = self.plan.delay * max(1, self.graph.distance(me, to))
        if isinstance(message, Token):
            message.travelled = travel * (1000 + self.plan.skew) // 1000 + 1
        self.later(travel, Task("deliver", to, 0, message))

    # -- the network -----------------------------------------------------------------------------

    def next_change(self) -> None:
        """Carry out the changes that are due, and wait for the next."""
        if self.changes is None:
            return
        moved = False
        while True:
            change = self.ahead()
            if change is None:
                break
            if isinstance(change, LinkChange):
                if change.up:
                    self.graph.connect(change.one, change.other)
                else:
                    self.graph.cut(change.one, change.other)
                moved = True
            self.pending = None
        if moved:
            self.find_parts()

    def ahead(self) -> LinkChange | None:
        """The next change if it is due; otherwise it is put on the heap."""
        assert self.changes is not None
        while self.pending is None:
            change = self.changes.next()
            if change is None:
                return None
            if isinstance(change, LinkChange):
                self.pending = change
        due = int(self.pending.time * 1000)
        if due <= self.now:
            return self.pending
        self.later(due - self.now, Task("links", -1, 0))
        return None

    def find_parts(self) -> None:
        size = self.plan.size
        self.part = [-1] * size
        for root in range(size):
            if self.part[root] < 0:
                self.part[root] = root
                todo = [root]
                while todo:
                    for other in self.graph.near[todo.pop()]:
                        if self.part[other] < 0:
                            self.part[other] = root
                            todo.append(other)

    # -- judging and measuring --------------------------------------------------------------------

    def in_use(self) -> int:
        """Permits under valid leases, those of orphans included."""
        used = 0
        for node in self.nodes:
            if node is not None:
                now = self.clock(node.me)
                used += sum([grant.h for grant in node.grants.values() if grant.until > now])
        self.orphans = [one for one in self.orphans if one[1] > self.clock(one[0])]
        return used + sum([h for _, _, h in self.orphans])

    def holder(self) -> RecoveryNode | None:
        found: RecoveryNode | None = None
        for node in self.nodes:
            if node is not None and node.usable(self.clock(node.me)):
                if found is not None:
                    self.figures.violated.append(f"one-token: two at {self.now} ms")
                found = node
        return found

    def judge(self) -> None:
        used = self.in_use()
        if used > self.plan.permits:
            self.figures.violated.append(f"safety: {used} permits in use at {self.now} ms")
        if 0 < self.plan.kill_holder_at <= self.now and self.figures.replaced_after < 0:
            holder = self.holder()
            if holder is not None and self.killed_at < 0:
                self.killed_at = self.now
                self.crash(holder.me)
            elif holder is not None:
                self.figures.replaced_after = self.now - self.killed_at

    def account(self, time: int) -> None:
        """What held since the last event held for so long."""
        span = time - self.now
        if span <= 0:
            return
        holder = self.holder()
        free = 0
        if holder is not None and holder.token is not None:
            free = holder.token.free
            if self.outage_since >= 0:
                self.figures.outages.append(self.now - self.outage_since)
                self.outage_since = -1
            for node in range(self.plan.size):
                if self.nodes[node] is not None and self.part[node] == self.part[holder.me]:
                    self.served[node] += span
        elif not self.under_way() and self.outage_since < 0:
            self.outage_since = self.now
        parts = [self.part[i] for i in self.plan.members if self.nodes[i] is not None]
        if any(parts.count(part) >= self.pool.majority for part in set(parts)):
            self.with_majority += span
        self.idle += span * max(0, self.plan.permits - free - self.in_use())

    def under_way(self) -> bool:
        return any(isinstance(task.message, Token) for _, _, task in self.heap)

    def finish(self) -> Figures:
        figures, until = self.figures, self.plan.until
        figures.epochs = len(self.epochs)
        figures.waiting = sum([1 for time in self.asked_at if time >= 0])
        figures.served_share = [round(time / until, 4) for time in self.served]
        figures.majority_share = round(self.with_majority / until, 4)
        figures.idle_share = round(self.idle / (until * self.plan.permits), 4)
        return figures
