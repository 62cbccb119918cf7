"""A simulation of nodes under the recovery layer: timers, faults, and what they cost.

Faults are crashes, cuts of the network in two, other numbers of permits, and other members. Nodes
are woken when they ask for it. That a node cannot be reached is noticed by the others after a part
of a lease. A client whose node crashes goes on until its lease ends. Times are in time units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import sqrt
from random import Random
from typing import Any

from meshlock.algorithms.actor import Actor, Message
from meshlock.algorithms.amounts import in_all
from meshlock.algorithms.clients import PATIENCE
from meshlock.algorithms.conflicts import lines_per_kind
from meshlock.algorithms.recovery.records import Change
from meshlock.properties.paths import Paths
from meshlock.properties.waits import WaitJudge, overtaking
from meshlock.simulate.engine import RunSetup
from meshlock.simulate.recovery_measures import RecoveryMeasures
from meshlock.simulate.routed import RoutedSimulation
from meshlock.simulate.workload import Duration
from meshlock.topology.mobility.changes import NetworkChange
from meshlock.world.clients import SimulatedClient
from meshlock.world.lives import TICKS, LayerSetup


@dataclass
class InjectedFaults:
    """Means of exponential times, 0 for never; each kind of fault has its own random stream."""

    seed: int
    crash_every: float = 0.0  # of any node
    down_for: float = 0.0
    disks_lost: float = 0.0  # share of the crashes that take the disk as well
    cut_every: float = 0.0  # from the healing of one to the next
    cut_for: float = 0.0
    # when, and how many permits there are to be; in that order
    resizes: list[tuple[float, int]] = field(default_factory=list)
    # when, "add" or "remove", and which node
    members: list[tuple[float, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        seed = self.seed
        crashing, cutting = Random(f"{seed}:crashes"), Random(f"{seed}:cuts")
        self.crash_after = exponential(self.crash_every, crashing)
        self.restart_after = exponential(self.down_for, crashing)
        self.cut_after = exponential(self.cut_every, cutting)
        self.heal_after = exponential(self.cut_for, cutting)
        self.crashing = crashing.random
        self.losing = Random(f"{seed}:disks").random
        self.cutting = cutting.random

    def start(self, run: RecoverySimulation) -> None:
        if self.crash_after.mean > 0.0:
            run.later(self.crash_after.draw(), partial(self.crash_somebody, run))
        if self.cut_after.mean > 0.0 and run.network.size > 1:
            run.later(self.cut_after.draw(), partial(self.cut, run))
        for time, permits in self.resizes:
            run.later(time, partial(self.resize, run, permits))
        for number, (time, verb, node) in enumerate(self.members):
            run.later(time, partial(self.change_member, run, verb, node, number))

    def go_on(self) -> bool:
        """Is there no last one?"""
        return self.crash_after.mean > 0.0 or self.cut_after.mean > 0.0

    # -- crashes ----------------------------------------------------------------------------

    def crash_somebody(self, run: RecoverySimulation) -> None:
        victim = int(self.crashing() * run.network.size)
        if run.lives.up[victim]:
            run.crash(victim)
            disk = self.disks_lost == 0.0 or self.losing() >= self.disks_lost
            run.later(self.restart_after.draw(), partial(run.restart, victim, disk))
        run.later(self.crash_after.draw(), partial(self.crash_somebody, run))

    # -- cuts -------------------------------------------------------------------------------

    def cut(self, run: RecoverySimulation) -> None:
        """Every node draws a side; there is one on each where there are two nodes or more."""
        size = run.network.size
        side = [0] * size
        while not 0 < sum(side) < size:
            side = [int(self.cutting() * 2) for _ in range(size)]
        run.recovery.cuts += 1
        run.cut(side)
        run.later(self.heal_after.draw(), partial(self.heal, run))

    def heal(self, run: RecoverySimulation) -> None:
        run.cut([0] * run.network.size)
        run.later(self.cut_after.draw(), partial(self.cut, run))

    # -- changes of the pool ----------------------------------------------------------------

    def resize(self, run: RecoverySimulation, permits: int) -> None:
        """Have a member that is up see to it, after other changes; and again, should it crash."""
        layers = [layer for layer in run.lives.layers if run.lives.up[layer.me]]
        if all(layer.timers.change is None for layer in layers):
            for layer in layers:
                if layer.me in run.lives.usable and layer.member.config.permits == permits:
                    return
            for layer in layers:
                if layer.member.is_member():
                    run.lives.resize(layer.me, permits)
                    run.wake_now(layer.me)
                    break
        run.later(run.lease, partial(self.resize, run, permits))

    def change_member(self, run: RecoverySimulation, verb: str, node: int, number: int) -> None:
        """Have a member that is up see to it, for each change another one if there are as many; and
        again, should it crash."""
        for me in run.lives.usable:
            if (node in run.lives.layers[me].member.members) == (verb == "add"):
                return
        up = [layer for layer in run.lives.layers if run.lives.up[layer.me]]
        layers = [layer for layer in up if layer.member.is_member()]
        change = Change(add=node) if verb == "add" else Change(remove=node)
        idle = [layer for layer in layers if layer.timers.change is None]
        if idle and all(layer.timers.change != change for layer in layers):
            proposer = idle[number % len(idle)].me
            run.lives.change_member(proposer, verb, node)
            run.wake_now(proposer)
        run.later(run.lease, partial(self.change_member, run, verb, node, number))


def exponential(mean: float, stream: Random) -> Duration:
    return Duration("exponential", mean, mean, stream)


NOTICE = 6
"""Parts of a lease, after which it is noticed that a node cannot be reached."""

RECOVER = 6
"""Waits; see :func:`recover_within`."""

MOST_LOOKS = 5_000_000

HOPELESS = 10_000
"""Leases without an entry: after these, the run is given up."""

NEVER = float("inf")


class RecoverySimulation(RoutedSimulation):
    """Until all clients are served, or until that time, if it is above 0."""

    def __init__(
        self, setup: RunSetup, layer: LayerSetup, faults: InjectedFaults, until: float = 0.0
    ) -> None:
        super().__init__(setup, layer)
        size = self.network.size
        self.layer = layer
        self.faults = faults
        self.until = until
        self.restless = True  # the layer is never silent
        self.lease = layer.clocks.lease / TICKS
        self.recovery = RecoveryMeasures(size, layer.members, in_all(self.permits))
        recover = recover_within(layer.clocks.wait / TICKS)
        self.paths = Paths(layer.members, recover, self.queue_within())
        sizes = [setup.permits, *[permits for _, permits in faults.resizes]]
        least = min(sizes, key=lines_per_kind)
        self.order = overtaking(recover, setup.algorithm, setup.options, least)
        self.waits = WaitJudge(self.lives.monitor, self.paths, self.order)
        self.asked: list[tuple[int, float]] = []  # node and time of every request
        self.chance = Random(f"{setup.seed}:wake").random
        self.due = [NEVER] * size  # when each node is woken
        self.away: list[dict[int, float]] = [{} for _ in range(size)]  # of each: whom, since when
        self.begun = False
        self.last_entry = 0.0
        self.last_change = 0.0
        self.stopped = False

    def queue_within(self) -> float:
        """All others go first, each with one crossing of the network for asking, leaving, and
        handing over there and back; and a step of priority is worth ``patience`` grants."""
        low, high = self.workload.priorities
        worth = max(PATIENCE, int(self.options.get("patience", "0")))
        ahead = self.network.size * self.workload.clients + (high - low) * worth
        crossings = 4 * self.network.size * ahead
        return at_most(self.hold_time, ahead) + at_most(self.delay, crossings)

    # -- the run --------------------------------------------------------------------------

    def start(self) -> None:
        self.paths.record(0.0, self.parts)
        self.start_layers(list(self.usable.links()))
        self.begun = True
        super().start()
        self.faults.start(self)
        self.later(self.lease, self.watch)
        if self.until > 0.0:
            self.later(self.until, self.stop)

    def later(self, delay: float, happen: Callable[[], object]) -> None:
        self.schedule(self.now + max(0.0, delay), lambda: self.happens(happen))

    def happens(self, happen: Callable[[], object]) -> None:
        self.account()
        happen()

    def change(self, change: NetworkChange) -> None:
        self.account()
        self.take_place(change)

    def stop(self) -> None:
        self.stopped = True
        self.agenda.clear()

    def watch(self) -> None:
        """Stop the run if the clients that wait have no hope."""
        self.later(self.lease, self.watch)
        if self.hopeless():
            self.stop()

    def hopeless(self) -> bool:
        """Has nothing happened for too long?"""
        if self.until > 0.0:
            return False
        idle = self.now - max(self.last_entry, self.last_change)
        if self.at_rest() and idle > 3.0 * (self.paths.recover + self.paths.queue):
            return self.active > 0
        return self.now - self.last_entry > HOPELESS * self.lease

    def at_rest(self) -> bool:
        """Are there no more faults or changes to come?"""
        if self.faults.go_on() or self.pending is not None:
            return False
        return all(self.lives.up)

    # -- clients ----------------------------------------------------------------------------

    def life(self, me: int) -> int:
        """Lives are numbered; 0 while the node is down."""
        return self.lives.boots[me] if self.lives.up[me] else 0

    def ask_somewhere(self) -> None:
        """Serial workload: the next request, of a node drawn from all that are up."""
        size = self.network.size
        drawn = self.workload.somewhere(size)
        for node in range(drawn, drawn + size):
            if self.lives.up[node % size] and not self.stopped:
                self.planned = self.measures.requested + 1
                self.ask_at(self.now, node % size)
                return

    def ask_later(self, node: int) -> None:
        think = self.workload.think
        self.ask_at(self.now + (think.draw() if think is not None else 0.0), node)

    def ask_at(self, time: float, node: int) -> None:
        client = self.workload.client(node)
        client.life = self.life(node)
        self.schedule(time, client)

    def ask(self, client: SimulatedClient) -> None:
        self.planned = self.measures.requested
        if client.life != self.life(client.node) or self.planned >= self.workload.requests:
            return
        if self.workload.think is None:
            self.planned += 1
        self.account()
        self.asked.append((client.node, self.now))
        super().ask(client)

    def submit(self, client: SimulatedClient) -> None:
        priority, due = client.priority // self.units, client.deadline > 0.0
        self.waits.asks(self.now, client.number, client.node, priority, due, client.want)
        super().submit(client)

    def gets_priority(self, client: SimulatedClient, priority: int) -> None:
        step = priority // self.units
        if step != client.priority // self.units:
            self.waits.changes(self.now, client.number, step)
        super().gets_priority(client, priority)

    def enters(self, node: Actor, client: SimulatedClient) -> None:
        self.last_entry = self.now
        self.waits.enters(self.now, client.number, self.parts, self.lives.last_fence)
        super().enters(node, client)

    def leave(self, client: SimulatedClient) -> None:
        if client.number in self.present:  # else its lease ran out, or its node crashed
            self.account()
            super().leave(client)

    def loses(self, client: SimulatedClient) -> None:
        self.recovery.lost_grants += 1
        self.active -= 1
        self.measures.leaves(client, self.now)
        if not self.workload.serial:
            self.ask_later(client.node)

    # -- nodes ------------------------------------------------------------------------------

    def crash(self, me: int) -> list[SimulatedClient]:
        self.recovery.crashes += 1
        clients = super().crash(me)
        self.waits.crashed(self.now, me)
        self.due[me] = NEVER
        for client in clients:
            self.active -= 1
            if client.inside:
                self.recovery.orphaned_grants += 1
                left = self.lives.ends[client.number] - self.now
                self.later(left, partial(self.lease_ends, client))
            else:
                self.recovery.lost_requests += 1
                self.waits.stops(self.now, client.number)
                self.measures.gives_up(client)
        return clients

    def restart(self, me: int, disk: bool) -> None:
        self.away[me] = {}
        super().restart(me, disk)
        if not self.workload.serial:
            for _ in range(self.workload.clients):
                self.ask_later(me)

    def lease_ends(self, orphan: SimulatedClient) -> None:
        self.end_lease(orphan)
        self.measures.leaves(orphan, self.now)

    def wake_up(self, me: int, life: int, due: float) -> None:
        self.account()
        if self.due[me] == due and life == self.life(me):
            self.due[me] = NEVER
            self.wake_now(me)

    def wake_now(self, me: int) -> None:
        self.wake(me, self.chance())

    def done(
        self, node: Actor, event: str, cause: dict[str, Any], tokens: int, permits: int
    ) -> None:
        super().done(node, event, cause, tokens, permits)
        me = node.me
        self.waits.goes_by(self.now, self.lives.minted)
        if self.lives.members != self.paths.members:
            self.paths.members = self.recovery.members = self.lives.members
            self.recovery.moved = True
            self.recovery.changes += 1
            if self.begun:
                self.paths.record(self.now, self.parts)
        wanted = self.lives.wake_at(me)
        if wanted < self.due[me]:
            due = self.due[me] = max(wanted, self.now)
            life = self.life(me)
            self.schedule(due, lambda: self.wake_up(me, life, due))

    # -- the network --------------------------------------------------------------------------

    def network_changed(self) -> None:
        super().network_changed()
        self.recovery.moved = True
        self.last_change = self.now
        self.waits.disturbed(self.now)
        if self.begun and self.paths.record(self.now, self.parts):
            for me in range(self.network.size):
                away = self.away[me]
                for other in range(self.network.size):
                    if self.parts[other] == self.parts[me]:
                        away.pop(other, None)
                    elif other not in away:
                        away[other] = self.now
            self.later(0.0, self.look_around)
            self.later(self.lease / NOTICE, self.look_around)

    def look_around(self) -> None:
        before = self.now - self.lease / NOTICE + 1e-9
        for layer in self.lives.layers:
            if self.lives.up[layer.me]:
                away = self.away[layer.me]
                gone = {other for other, since in away.items() if since <= before}
                if gone != layer.member.unreachable:
                    layer.cannot_reach(gone)
                    self.wake_now(layer.me)

    def transmit(self, message: Message) -> None:
        if message.kind in ("RENEW", "CONFIRM") and self.active == 0:
            self.recovery.renews()
        super().transmit(message)

    def deliver(self, message: Message) -> None:
        self.account()  # while a token is still under way
        super().deliver(message)

    # -- measuring ------------------------------------------------------------------------------

    def turn(self, me: int) -> Actor:
        self.account()
        return super().turn(me)

    def account(self) -> None:
        """What held since the last event held until now, or until a token's lease ended."""
        lives, measures = self.lives, self.recovery
        while measures.time < self.now:
            start, end = measures.time, self.now
            holder = -1
            for node, until in lives.usable.items():
                if until > start:
                    holder = node
                    end = min(end, until)
            measures.permits = in_all(lives.monitor.permits)
            measures.span(
                end,
                self.parts,
                holder,
                flying=self.flying > 0,
                used=in_all(lives.monitor.in_use(start)),
                free=in_all(lives.free),
                resting=self.active == 0,
            )

    def finish(self) -> None:
        self.account()
        self.recovery.ends()
        super().finish()

    def judge_end(self) -> None:
        self.waits.ends(self.now)

    def capacity(self) -> float:
        return self.recovery.capacity

    def requests_with_path(self) -> int | None:
        """How many requests would be owed an entry by now; None if that takes long to find out."""
        if len(self.asked) * len(self.paths.times) > MOST_LOOKS:
            return None
        return sum([1 for node, asked in self.asked if self.paths.had_path(node, asked, self.now)])

    def figures(self) -> dict[str, Any]:
        """Under ``recovery``, beside the figures that every run has."""
        return {
            "epochs": self.lives.monitor.epochs,
            "permits": self.lives.monitor.permits
            if self.kinds is None
            else self.kinds.outward(self.lives.monitor.permits),
            **self.recovery.figures(),
            "map_crossings_per_entry": self.map_crossings / (self.measures.entries or 1),
            "requests_with_path": self.requests_with_path(),
            "unserved_with_path": self.waits.unserved,
            "late_with_path": self.waits.late,
            "long_enough": {"recover": self.paths.recover, "queue": self.paths.queue},
        }


def recover_within(wait: float) -> float:
    """In the worst case of :mod:`~meshlock.algorithms.recovery.timers`: a node is in its quiet
    period after a restart (1 wait), then nothing is received of the token (1), it is the last one's
    turn (1/2), reports come in (1/10), the new token has to wait (1), and then permits have to
    lapse (1). The rest is for a proposal that comes to nothing, after which the next one
    comes up to a lease and a half later."""
    return RECOVER * wait


def at_most(duration: Duration, times: int) -> float:
    """What several draws together hardly ever exceed (once in 100 million where exponential)."""
    if duration.constant:
        return times * duration.low
    if duration.uniform:
        return times * (duration.low + duration.span)
    return duration.low * (times + 6.0 * sqrt(times) + 20.0)
