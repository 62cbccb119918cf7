"""Faults injected into a run: crashes, cuts of the network in two, other numbers of permits, other
members. Times are in time units."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from meshlock.algorithms.recovery.records import Change
from meshlock.simulate.durations import Duration

if TYPE_CHECKING:
    from meshlock.simulate.recovery import RecoverySimulation


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
