"""Recovery in virtual time: crashes, cuts, links that come and go, clocks of different rates.

Runs the nodes of :mod:`meshlock.algorithms.recovery.node` at the pace of
:mod:`meshlock.algorithms.recovery.pace` under a workload, with faults, and measures. Messages
take a shortest way over links that can be used (see :mod:`.routes`), one delay per link; a
message whose receiver cannot be reached when it is sent, or cannot be reached or is down when
it arrives, is lost. That a node cannot be reached is noticed by the others after ``notice``.

Nodes count whole ticks, :data:`TICKS` to the time unit. Every node has its own clock, which
runs faster or slower by at most ``skew``; ``wait`` is longer than ``lease`` accordingly. What
is recorded and judged is in true time.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import sqrt
from random import Random
from typing import Any

from meshlock.algorithms.interface import Effect, Message
from meshlock.algorithms.recovery.algorithm import DIRECT
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
from meshlock.algorithms.recovery.order import PATIENCE
from meshlock.algorithms.recovery.pace import Pace
from meshlock.algorithms.registry import settle
from meshlock.properties.leases import LeaseMonitor
from meshlock.properties.paths import DOWN, Paths
from meshlock.properties.promises import promises
from meshlock.simulate.durations import Duration
from meshlock.simulate.faults import Faults
from meshlock.simulate.measures import Measures
from meshlock.simulate.recovery_measures import RecoveryMeasures
from meshlock.simulate.recovery_trace import RecoveryTrace
from meshlock.simulate.routes import Routes
from meshlock.simulate.workload import Client, Workload
from meshlock.topology.mobility.changes import Change, Changes, LinkChange, Move
from meshlock.topology.mobility.live_graph import LiveGraph

TICKS = 1000
"""To the time unit."""

MILLION = 1_000_000
"""Rates of clocks are counted in millionths."""

POLLS = 30
"""Per lease."""

NOTICE = 6
"""Parts of a lease."""

RECOVER = 6
"""Waits; see :meth:`Recovering.recover_within`."""

MOST_LOOKS = 5_000_000

HOPELESS = 10_000
"""So many leases without an entry, and the run is given up."""


class Timing:
    """Leases and clocks, in time units; ``skew`` is a share, 0.01 for one per cent."""

    def __init__(self, lease: float, skew: float) -> None:
        self.lease = max(1, round(lease * TICKS))
        self.skew = round(skew * MILLION)
        self.notice = self.lease // NOTICE
        self.poll = max(1, self.lease // POLLS)
        self.wait = self.lease * (MILLION + self.skew) // (MILLION - self.skew) + 1


class Task:
    """Something that is due: what, at which node, and in which of its lives."""

    def __init__(
        self,
        what: str,
        node: int,
        life: int = 0,
        message: Message | None = None,
        client: Client | None = None,
    ) -> None:
        self.what = what
        self.node = node
        self.life = life
        self.message = message
        self.client = client


class Recovering:
    def __init__(
        self,
        graph: LiveGraph,
        permits: int,
        members: tuple[int, ...],
        timing: Timing,
        workload: Workload,
        delay: Duration,
        hold: Duration,
        fifo: bool,
        seed: int,
        faults: Faults,
        changes: Changes | None = None,
        until: float = 0.0,
        trace: RecoveryTrace | None = None,
    ) -> None:
        size = graph.size
        self.algorithm = DIRECT
        self.options = settle(self.algorithm, {})
        self.network = graph
        self.routes = Routes(graph)
        self.permits = permits
        self.members = members
        self.timing = timing
        self.pool = Pool(tuple(range(size)), members, permits, timing.lease, timing.wait)
        self.workload = workload
        self.delay = delay
        self.hold_time = hold
        self.fifo = fifo
        self.faults = faults
        self.changes = changes
        self.until = round(until * TICKS)  # 0: as long as it takes
        self.trace = trace

        low, high = workload.priorities
        ranked = low != high or workload.deadlines is not None
        self.measures = Measures(size, ranked, promises(self.algorithm, self.options).ageing)
        self.monitor = LeaseMonitor(permits)
        self.recovery = RecoveryMeasures(size, members, permits)
        self.paths = Paths(members, self.recover_within(), self.queue_within())
        self.late = 0  # requests that waited although they had a path, and were served or lost
        self.unserved_with_path = 0
        self.asked: list[tuple[int, float]] = []  # node and time of every request

        self.pacing = Random(f"{seed}:pace")
        clocks = Random(f"{seed}:clocks")
        self.rates = [MILLION + clocks.randint(-timing.skew, timing.skew) for _ in range(size)]
        self.tick = 0
        self.serial = 0
        self.messages_sent = 0
        self.heap: list[tuple[int, int, Task]] = []
        self.last: dict[int, int] = {}  # directed pair: when its last message arrives
        self.out: list[Effect] = []
        self.nodes: list[RecoveryNode | None] = [None] * size
        self.paces: list[Pace | None] = [None] * size
        self.lives = [0] * size
        self.disk: list[Epoch] = [NO_EPOCH] * size
        self.configs: list[Config | None] = [None] * size
        self.away: list[dict[int, int]] = [{} for _ in range(size)]  # of each: whom, since when
        self.present: dict[int, Client] = {}  # by number, while they wait or hold
        self.ends: dict[int, int] = {}  # client: the true tick at which its lease ends
        self.orphans: dict[int, Client] = {}
        self.leased: dict[int, int] = {}  # node with a token: the true tick at which it is dead
        self.free = 0  # at the token that was seen last
        self.flying = 0  # tokens under way
        self.accounted = 0
        self.holder = -1  # as accounted for
        self.majority_part = DOWN
        self.moved = True  # the network, since it was accounted for
        self.whole_time = 0
        self.cut_now = False
        self.last_entry = 0
        self.last_change = 0
        self.killed_at = -1
        self.killed: list[Fence] = []
        self.lost_when_killed = 0
        self.replaced_after = -1  # ticks from the killing to a usable token without the killed
        self.pending: Change | None = None
        self.over = False
        self.asking = False  # serial workload: the next request is on the heap

    @property
    def now(self) -> float:
        return self.tick / TICKS

    # -- how long a request may take ----------------------------------------------------

    def recover_within(self) -> float:
        """In the worst case of :mod:`~meshlock.algorithms.recovery.pace`: somebody is silent
        after a restart (1 wait), then nothing is heard of the token (1), it is the last one's turn
        (1/2), reports come in (1/10), the new token has to wait (1), and then permits have to
        lapse (1). The rest is for a proposal that comes to nothing, after which the next one
        comes up to a lease and a half later."""
        return RECOVER * self.timing.wait / TICKS

    def queue_within(self) -> float:
        """Everybody goes first, each with one crossing of the network for asking, leaving, and
        handing over there and back; and a step of priority is worth so many grants."""
        low, high = self.workload.priorities
        ahead = self.network.size * self.workload.clients + (high - low) * PATIENCE
        crossings = 4 * self.network.size * ahead
        return at_most(self.hold_time, ahead) + at_most(self.delay, crossings)

    # -- the run --------------------------------------------------------------------------

    def start(self) -> None:
        size = self.network.size
        self.paths.record(0.0, self.routes.parts)
        if self.trace is not None and self.changes is not None:
            for place in self.changes.places(0.0):
                self.trace.writer.moved(0.0, place.node, place.x, place.y)
        for node in range(size):
            self.begin(node)
        if self.workload.serial:
            self.ask_somewhere()
        faults = self.faults
        if faults.crash_every > 0.0:
            self.later(faults.crash_after(), Task("crash", -1))
        if faults.cut_every > 0.0 and size > 1:
            self.later(faults.cut_after(), Task("cut", -1))
        if faults.kill:
            self.later(faults.kill_at, Task("kill", -1))
        self.next_change()
        self.at(self.timing.lease, Task("watch", -1))

    def run(self, most: int) -> bool:
        """Let at most this many events happen; False when all are served or nothing more can."""
        heap = self.heap
        for _ in range(most):
            if self.over or not heap:
                return False
            due = heap[0][0]
            if 0 < self.until < due:
                self.account(self.until)
                self.tick = self.until
                return False
            self.account(due)
            self.tick, _, task = heappop(heap)
            self.carry_out(task)
            if len(self.present) == 0 and self.settled():
                self.over = True
        return not self.over

    def settled(self) -> bool:
        """Nobody waits or holds; will nobody ever again?"""
        if self.measures.requested < self.workload.requests:
            if self.workload.serial and not self.asking:
                self.ask_somewhere()
            return False
        return True

    def hopeless(self) -> bool:
        """Can nothing more happen, or has nothing happened for too long?"""
        if self.until > 0:
            return False
        idle = self.tick - max(self.last_entry, self.last_change)
        if not self.restless() and idle > 3 * TICKS * (self.paths.recover + self.paths.queue):
            return len(self.present) > 0
        return self.tick - self.last_entry > HOPELESS * self.timing.lease

    def restless(self) -> bool:
        """Are there more faults or changes to come?"""
        faults = self.faults
        if faults.crash_every > 0.0 or faults.cut_every > 0.0 or self.pending is not None:
            return True
        return not all(self.routes.up) and not faults.kill

    def at(self, tick: int, task: Task) -> None:
        self.serial += 1
        heappush(self.heap, (tick, self.serial, task))

    def later(self, delay: float, task: Task) -> None:
        self.at(self.tick + round(delay * TICKS), task)

    def clock(self, node: int) -> int:
        return self.tick * self.rates[node] // MILLION

    def true_tick(self, node: int, time: int) -> int:
        """The first tick at which this node's clock shows that time or a later one."""
        return -(-time * MILLION // self.rates[node])

    def carry_out(self, task: Task) -> None:
        what = task.what
        if what == "deliver":
            assert task.message is not None
            self.deliver(task.message)
        elif what == "poll":
            if task.life == self.lives[task.node]:
                self.poll(task.node)
        elif what == "ask":
            assert task.client is not None
            self.ask(task.client, task.life)
        elif what == "leave":
            assert task.client is not None
            self.leave(task.client)
        elif what == "deadline":
            assert task.client is not None
            self.deadline(task.client)
        elif what == "links":
            self.next_change()
        elif what == "watch":
            self.over = self.hopeless()
            self.at(self.tick + self.timing.lease, task)
        elif what == "crash":
            self.crash(self.faults.victim(self.network.size), True)
            self.later(self.faults.crash_after(), task)
        elif what == "restart":
            self.restart(task.node)
        elif what == "cut":
            self.cut()
        elif what == "kill":
            self.kill(task)

    # -- clients ----------------------------------------------------------------------------

    def ask_somewhere(self) -> None:
        """Serial workload: the next request, of a node drawn from all that are up."""
        size = self.network.size
        drawn = self.workload.somewhere(size)
        up = [node for node in range(drawn, drawn + size) if self.routes.up[node % size]]
        if up:
            self.asking = True
            node = up[0] % size
            self.at(
                self.tick, Task("ask", node, self.lives[node], None, self.workload.client(node))
            )

    def ask_later(self, node: int) -> None:
        """The next request of a client of this node, after it has thought."""
        think = self.workload.think
        delay = think.draw() if think is not None else 0.0
        self.later(delay, Task("ask", node, self.lives[node], None, self.workload.client(node)))

    def ask(self, client: Client, life: int) -> None:
        self.asking = False
        node = self.nodes[client.node]
        if node is None or life != self.lives[client.node]:
            return
        if self.measures.requested >= self.workload.requests:
            return
        client.asked = self.now
        self.workload.make_urgent(client, client.asked)
        self.measures.asks(client)
        self.asked.append((client.node, client.asked))
        self.present[client.number] = client
        node.request(client.number, client.want, client.priority, self.clock(client.node))
        asked = {"client": client.number, "want": client.want, "priority": client.priority}
        self.done(client.node, "request", asked)

    def known(self, node: RecoveryNode, effects: list[Effect]) -> int | None:
        """The highest priority that the token's queue has left after this step."""
        queue = node.queue
        for effect in effects:
            if isinstance(effect, Token):
                queue = list(effect.queue)
        return max([asked[3] for asked in queue], default=None)

    def granted(self, me: int, effect: Granted, known: int | None) -> None:
        client = self.present[effect.client]
        client.inside = True
        self.waited(client)
        self.measures.enters(client, self.now, known)
        until = self.true_tick(me, effect.until)
        self.ends[client.number] = until
        self.monitor.granted(self.now, me, client.number, client.want, until / TICKS, effect.fence)
        self.last_entry = self.tick
        self.later(self.hold_time.draw(), Task("leave", me, 0, None, client))
        self.at(until, Task("deadline", me, 0, None, client))

    def waited(self, client: Client) -> None:
        """It waits no more; has it waited although it had a path?"""
        if self.paths.had_path(client.node, client.asked, self.now):
            self.late += 1

    def leave(self, client: Client) -> None:
        if client.number not in self.present:
            return  # its lease ran out, or its node crashed
        node = self.nodes[client.node]
        assert node is not None
        self.gone(client)
        node.release(client.number, self.clock(client.node))
        self.done(client.node, "leave", {"client": client.number})
        if not self.workload.serial:
            self.ask_later(client.node)

    def gone(self, client: Client) -> None:
        """It has left, or its lease is over."""
        self.present.pop(client.number, None)
        del self.ends[client.number]
        self.measures.leaves(client, self.now)
        self.monitor.gives_back(self.now, client.number)

    def lost(self, me: int, effect: Lost) -> None:
        client = self.present[effect.client]
        self.recovery.lost_grants += 1
        self.gone(client)
        if not self.workload.serial:
            self.ask_later(me)

    def deadline(self, client: Client) -> None:
        """The lease may be over; whatever the client runs stops by itself then."""
        end = self.ends.get(client.number)
        if end is None:
            return
        if end > self.tick:
            self.at(end, Task("deadline", client.node, 0, None, client))
        elif client.number in self.orphans:
            del self.orphans[client.number]
            self.gone(client)
            if self.trace is not None:
                self.trace.lost(self.now, client.node, client.number)
        else:
            node = self.nodes[client.node]
            assert node is not None
            node.wake(self.clock(client.node))
            self.done(client.node, "timer", {})

    # -- nodes ------------------------------------------------------------------------------

    def begin(self, me: int) -> None:
        """A life begins."""
        self.lives[me] += 1
        node = RecoveryNode(me, self.pool, self.out)
        node.start(self.clock(me), self.lives[me], self.disk[me], self.configs[me])
        self.nodes[me] = node
        self.paces[me] = Pace(node, TICKS)
        self.away[me] = {}
        self.look_around(me)
        first = self.tick + self.pacing.randint(1, self.timing.poll)
        self.at(first, Task("poll", me, self.lives[me]))
        if not self.workload.serial:
            for _ in range(self.workload.clients):
                self.ask_later(me)

    def crash(self, me: int, comes_back: bool) -> None:
        node = self.nodes[me]
        if node is None:
            return
        self.recovery.crashes += 1
        for client in [one for one in self.present.values() if one.node == me]:
            del self.present[client.number]
            if client.inside:
                self.recovery.orphaned_grants += 1
                self.orphans[client.number] = client
            else:
                self.recovery.lost_requests += 1
                self.waited(client)
                self.measures.gives_up(client)
                if self.trace is not None:
                    number = {"client": client.number}
                    self.trace.step(
                        self.now, "withdraw", me, number, self.token_at(me), [], None, {}
                    )
        self.monitor.crashed(me)
        self.nodes[me] = None
        self.lives[me] += 1  # so that nothing is due any more in the life that is over
        self.leased.pop(me, None)
        self.routes.node(me, False)
        self.network_changed()
        if self.trace is not None:
            self.trace.step(self.now, "crash", me, {}, (0, 0, 0), [], None, {})
        if comes_back:
            self.later(self.faults.restart_after(), Task("restart", me))

    def restart(self, me: int) -> None:
        self.routes.node(me, True)
        self.network_changed()
        self.begin(me)
        self.done(me, "restart", {})

    def poll(self, me: int) -> None:
        node, pace = self.nodes[me], self.paces[me]
        assert node is not None and pace is not None
        away, notice = self.away[me], self.timing.notice
        if len(away) > 0 or len(node.gone) > 0:
            node.gone = {other for other in away if self.tick - away[other] >= notice}
        pace.poll(self.clock(me), self.pacing.random())
        self.done(me, "timer", {})
        self.at(self.tick + self.timing.poll, Task("poll", me, self.lives[me]))

    def look_around(self, me: int) -> None:
        """Whom can this node not reach, and since when?"""
        away, parts = self.away[me], self.routes.parts
        for other in range(self.network.size):
            if parts[other] == parts[me]:
                away.pop(other, None)
            elif other not in away:
                away[other] = self.tick

    # -- steps ------------------------------------------------------------------------------

    def done(self, me: int, event: str, cause: dict[str, Any]) -> None:
        """A handler has run: carry out what it asks for, judge it, write it down."""
        node = self.nodes[me]
        assert node is not None
        if len(self.out) == 0 and event == "timer" and self.is_bare(me, node):
            return  # nothing has come of it
        effects = self.out[:]
        self.out.clear()
        made = self.made(me, node, effects)
        self.look_at_token(me, node)
        dropped: list[Message] = []
        for effect in effects:
            if isinstance(effect, Message):
                if not self.send(me, effect):
                    dropped.append(effect)
            elif isinstance(effect, Keep):
                self.disk[me] = effect.promised
                self.configs[me] = effect.config
            elif isinstance(effect, Granted):
                self.granted(me, effect, self.known(node, effects))
            elif isinstance(effect, Lost):
                self.lost(me, effect)
        ends = self.renewed(me, node, effects)
        if self.trace is not None:
            token = self.token_at(me)
            self.trace.step(self.now, event, me, cause, token, effects, made, ends)
            for message in dropped:
                self.trace.writer.dropped(self.now, message)

    def is_bare(self, me: int, node: RecoveryNode) -> bool:
        """Has this node neither token nor grants, and had none before the step?"""
        if node.token is not None or len(node.grants) > 0 or me in self.leased:
            return False
        return self.trace is None or not self.trace.had_token(me)

    def look_at_token(self, me: int, node: RecoveryNode) -> None:
        """Note where the token is and until when."""
        token = node.token
        if token is None or token.epoch != node.promised:
            self.leased.pop(me, None)
            return
        self.leased[me] = self.true_tick(me, token.until)
        self.free = token.free
        lent = sum([entry[2] for entry in token.ledger])
        self.monitor.keeps(self.now, me, token.free, lent)
        if len(self.leased) > 1:
            usable = [other for other, until in self.leased.items() if until > self.tick]
            if len(usable) > 1:
                text = f"nodes {usable[0]} and {usable[1]} both have a token with a lease"
                self.monitor.report("one-token", self.now, text)
        if self.killed_at >= 0 and self.replaced_after < 0 and self.leased[me] > self.tick:
            fences = [entry[1] for entry in token.ledger]
            if all(fence not in fences for fence in self.killed):
                self.replaced_after = self.tick - self.killed_at

    def made(self, me: int, node: RecoveryNode, effects: list[Effect]) -> Epoch | None:
        """The epoch whose token this step made, if it made one; it may be gone already."""
        epoch = node.token.epoch if node.token is not None else NO_EPOCH
        for effect in effects:
            if isinstance(effect, Token):
                epoch = max(epoch, effect.papers[0])
            elif isinstance(effect, Granted):
                epoch = max(epoch, effect.fence[0])
        if epoch <= self.monitor.epoch:
            return None
        self.monitor.recovered(self.now, me, epoch)
        return epoch

    def token_at(self, me: int) -> tuple[int, int, int]:
        """For the trace: is the token here, how many permits are free, how many lent."""
        node = self.nodes[me]
        token = node.token if node is not None else None
        if token is None:
            return (0, 0, 0)
        return (1, token.free, sum([entry[2] for entry in token.ledger]))

    def renewed(self, me: int, node: RecoveryNode, effects: list[Effect]) -> dict[int, float]:
        """The ends of those leases of this node's clients that were given or changed."""
        ends: dict[int, float] = {}
        for grant in node.grants.values():
            until = self.true_tick(me, grant.until)
            before = self.ends.get(grant.client)
            if before is not None and until != before:
                self.ends[grant.client] = until
                self.monitor.renewed(self.now, grant.client, until / TICKS)
                ends[grant.client] = until / TICKS
        for effect in effects:
            if isinstance(effect, Granted) and effect.client not in ends:
                ends[effect.client] = self.true_tick(me, effect.until) / TICKS
        return ends

    # -- messages ---------------------------------------------------------------------------

    def send(self, me: int, message: Message) -> bool:
        """Put a message on its way; False if there is none."""
        measures = self.measures
        kind = message.kind
        measures.messages[kind] = measures.messages.get(kind, 0) + 1
        if kind in ("RENEW", "STILL") and len(self.present) == 0 and self.holder >= 0:
            self.recovery.rest_messages += 1
        self.messages_sent += 1
        message.serial = self.messages_sent
        to = message.receiver
        if not self.routes.joined(me, to):
            return False
        hops = self.routes.hops(me, to)
        measures.crossings += hops
        arrival = self.tick
        for _ in range(hops):
            arrival += round(self.delay.draw() * TICKS)
        if self.fifo:
            pair = me * self.network.size + to
            arrival = max(arrival, self.last.get(pair, 0))
            self.last[pair] = arrival
        if isinstance(message, Token):
            self.flying += 1
            travel = arrival - self.tick
            message.travelled = travel * (MILLION + self.timing.skew) // MILLION + 1
        self.at(arrival, Task("deliver", to, 0, message))
        return True

    def deliver(self, message: Message) -> None:
        if isinstance(message, Token):
            self.flying -= 1
        me, sender = message.receiver, message.sender
        node = self.nodes[me]
        cut_off = self.routes.up[sender] and not self.routes.joined(sender, me)
        if node is None or cut_off:
            if self.trace is not None:
                self.trace.writer.dropped(self.now, message)
            return
        node.receive(message, self.clock(me))
        cause: dict[str, Any] = {}
        if self.trace is not None:
            cause = self.trace.arrival(message)
        self.done(me, "deliver", cause)

    # -- the network --------------------------------------------------------------------------

    def next_change(self) -> None:
        """Carry out the changes that are due, and wait for the next."""
        changes = self.changes
        if changes is None:
            return
        while True:
            if self.pending is None:
                self.pending = changes.next()
            change = self.pending
            if change is None:
                return
            due = round(change.time * TICKS)
            if due > self.tick:
                self.at(due, Task("links", -1))
                return
            self.pending = None
            if isinstance(change, LinkChange):
                if self.routes.link(change.one, change.other, change.up):
                    self.network_changed()
                    self.tell(change.one, change.other, change.up)
            elif isinstance(change, Move) and self.trace is not None:
                self.trace.writer.moved(self.now, change.node, change.x, change.y)

    def network_changed(self) -> None:
        self.moved = True
        self.last_change = self.tick
        if self.paths.record(self.now, self.routes.parts):
            for node in range(self.network.size):
                if self.routes.up[node]:
                    self.look_around(node)

    def tell(self, one: int, other: int, up: bool) -> None:
        if self.trace is not None:
            self.trace.link(self.now, one, other, up, self.routes.usable.components)

    def cut(self) -> None:
        """The network falls in two, or the two become one again."""
        size = self.network.size
        self.cut_now = not self.cut_now
        if self.cut_now:
            self.recovery.cuts += 1
        changed = self.routes.cut(self.faults.sides(size) if self.cut_now else [0] * size)
        self.network_changed()
        for one, other in changed:
            self.tell(one, other, not self.cut_now)
        wait = self.faults.heal_after() if self.cut_now else self.faults.cut_after()
        self.later(wait, Task("cut", -1))

    def kill(self, task: Task) -> None:
        """Once and for good: the node with the token, or another whose client holds permits."""
        holders = [node for node, until in self.leased.items() if until > self.tick]
        victim = -1
        if self.faults.kill == "holder":
            victim = holders[0] if holders else -1
        elif holders:
            for client in self.present.values():
                if client.inside and client.node not in holders:
                    victim = client.node
                    break
        if victim < 0:
            self.at(self.tick + 1, task)
            return
        node = self.nodes[victim]
        assert node is not None
        self.killed = sorted(node.grants)
        self.killed_at = self.tick
        self.lost_when_killed = self.recovery.lost_grants
        self.crash(victim, False)

    # -- measuring ------------------------------------------------------------------------------

    def account(self, to: int) -> None:
        """What held since the last event held until now, or until a token's lease ended."""
        while self.accounted < to:
            start, end = self.accounted, to
            holder = -1
            for node, until in self.leased.items():
                if until > start:
                    holder = node
                    end = min(end, until)
            if self.moved or holder != self.holder:
                self.majority_part = self.recovery.network(start, self.routes.parts, holder)
                self.holder = holder
                self.moved = False
            free = self.free if holder >= 0 else 0
            self.recovery.span(
                start,
                end,
                usable=holder >= 0,
                flying=self.flying > 0,
                majority=self.majority_part != DOWN,
                served=holder >= 0 and self.routes.parts[holder] == self.majority_part,
                idle=max(0, self.permits - free - self.monitor.in_use(start / TICKS)),
                resting=len(self.present) == 0,
            )
            if self.routes.whole():
                self.whole_time += end - start
            self.accounted = end

    def connected_share(self) -> float:
        """The part of the time in which every node could reach every other."""
        if self.tick == 0:
            return 1.0 if self.routes.whole() else 0.0
        return self.whole_time / self.tick

    def finish(self) -> None:
        self.recovery.network(self.accounted, self.routes.parts, -1)
        self.measures.hold(0, self.now)
        for client in self.present.values():
            if not client.inside and self.paths.had_path(client.node, client.asked, self.now):
                self.unserved_with_path += 1
        self.monitor.ends_leased(self.now, self.late + self.unserved_with_path)
        if self.trace is not None:
            if self.changes is not None:
                for place in self.changes.places(self.now):
                    self.trace.writer.moved(self.now, place.node, place.x, place.y)
            self.trace.writer.end(self.now, self.measures.waiting, self.monitor.violated)

    def requests_with_path(self) -> int | None:
        """How many requests would be owed an entry by now; None if that takes long to find out."""
        if len(self.asked) * len(self.paths.times) > MOST_LOOKS:
            return None
        return sum([1 for node, asked in self.asked if self.paths.had_path(node, asked, self.now)])

    def figures(self) -> dict[str, Any]:
        """Under ``recovery``, beside the figures that every run has."""
        return {
            "epochs": self.monitor.epochs,
            **self.recovery.figures(TICKS),
            "requests_with_path": self.requests_with_path(),
            "unserved_with_path": self.unserved_with_path,
            "late_with_path": self.late,
            "long_enough": {"recover": self.paths.recover, "queue": self.paths.queue},
        }


def at_most(duration: Duration, times: int) -> float:
    """What so many draws together hardly ever exceed (once in 100 million where exponential)."""
    if duration.constant:
        return times * duration.low
    if duration.uniform:
        return times * (duration.low + duration.span)
    return duration.low * (times + 6.0 * sqrt(times) + 20.0)
