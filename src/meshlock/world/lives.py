"""Nodes under the recovery layer: their lives, clocks and disks, and their clients' leases.

A node that has crashed keeps its place in ``nodes``; the program that runs it asks
:attr:`LayeredNodes.up` before calling it. What its disk remembers is the record of the last Save.

Clocks of nodes under the recovery layer: whole ticks, each at its own rate, and leases in them.

What is recorded and judged is in true time, in time units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any

from meshlock.algorithms.actor import Actor, Algorithm, Effect, Enter, Message
from meshlock.algorithms.amounts import positive
from meshlock.algorithms.recovery.inside import refuse_unrecoverable
from meshlock.algorithms.recovery.layer import layer
from meshlock.algorithms.recovery.messages import Inner, carrier
from meshlock.algorithms.recovery.records import NO_EPOCH, Change, Epoch, Life, fence_number
from meshlock.algorithms.recovery.terms import Rules, Terms
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.properties.leases import NO_FENCE, LeaseMonitor, numbered
from meshlock.properties.promises import orderly, promises
from meshlock.trace.writer import LeaseStep
from meshlock.world.clients import SimulatedClient

TICKS = 1000
"""To the time unit."""

MILLION = 1_000_000
"""Rates of clocks are counted in millionths."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Clocks:
    """``lease`` in time units; rates differ from true time by at most ``skew`` millionths. ``wait``
    on any clock is longer than ``lease`` on any other, the rounding of both to ticks included."""

    def __init__(self, lease: float, skew: int, rates: list[int]) -> None:
        self.lease = max(1, round(lease * TICKS))
        self.skew = skew
        self.rates = rates
        self.wait = self.lease * (MILLION + skew) // (MILLION - skew) + 5

    def shown(self, me: int, time: float) -> int:
        """By this node's clock at this time; the thousandth is for the rounding of floats."""
        return int(time * TICKS + 0.001) * self.rates[me] // MILLION

    def true_time(self, me: int, shown: int) -> float:
        """The first time at which this node's clock shows that or more."""
        return -(-shown * MILLION // self.rates[me]) / TICKS

    def longest(self, time: float) -> int:
        """The most that any clock counts in this time."""
        return ceil(time * TICKS) * (MILLION + self.skew) // MILLION + 2


def drawn_clocks(size: int, lease: float, skew: float, seed: int) -> Clocks:
    """Rates that differ by at most ``skew``, 0.01 for one per cent."""
    millionths = round(skew * MILLION)
    draw = Random(f"{seed}:clocks")
    rates = [MILLION + draw.randint(-millionths, millionths) for _ in range(size)]
    return Clocks(lease, millionths, rates)


Near = Callable[[int], Iterable[int]]


@dataclass
class LayerSetup:
    """What the recovery layer needs besides an algorithm."""

    members: tuple[int, ...]
    clocks: Clocks
    rules: Rules | None = None  # if given, node 0 makes the pool, and members choose themselves

    def line(self) -> dict[str, Any]:
        """As in the set-up of a trace, under ``recovery``."""
        clocks = self.clocks
        line = {
            "members": list(self.members),
            "lease": clocks.lease / TICKS,
            "wait": clocks.wait / TICKS,
            "skew": clocks.skew,
            "rates": clocks.rates,
        }
        if self.rules is not None:
            line["rules"] = list(self.rules)
        return line


def made_by_node_0(clocks: Clocks) -> LayerSetup:
    """Members choose themselves, by rules as live nodes have them with their leases of 3 s."""
    return LayerSetup((), clocks, Rules(5, 3 * clocks.lease, 10 * clocks.lease))


def recorded_layer(recovery: dict[str, Any]) -> LayerSetup:
    """From the set-up of a trace."""
    clocks = Clocks(recovery["lease"], recovery["skew"], recovery["rates"])
    rules = Rules(*recovery["rules"]) if "rules" in recovery else None
    return LayerSetup(tuple(recovery["members"]), clocks, rules)


class LayeredNodes:
    def __init__(
        self,
        setup: LayerSetup,
        algorithm: Algorithm,
        options: dict[str, str],
        permits: int,
        near: Near,
    ) -> None:
        refuse_unrecoverable(algorithm, options)
        clocks = self.clocks = setup.clocks
        size = len(clocks.rates)
        self.terms = Terms(
            tuple(range(size)),
            setup.members,
            permits,
            clocks.lease,
            clocks.wait,
            algorithm,
            options,
            near,
            slots=True,
            rules=setup.rules,
        )
        self.members = setup.members  # of the latest epoch whose token was seen
        self.out: list[Effect] = []
        self.layers = [layer(me, self.out, self.terms) for me in range(size)]
        self.nodes: list[Actor] = list(self.layers)
        self.monitor = LeaseMonitor(permits, orderly=orderly(algorithm, options))
        self.promises = promises(algorithm, options, leased=True)
        self.up = [False] * size
        self.boots = [0] * size
        self.disk: list[Any] = [None] * size
        self.last_fence = NO_FENCE  # of an entry
        self.ends: dict[int, float] = {}  # client: when its lease ends
        self.orphans: dict[int, SimulatedClient] = {}  # inside, although their node has crashed
        self.usable: dict[int, float] = {}  # node with a token: when the token's lease ends
        self.free = 0  # at the token that was seen last
        self.minted = NO_EPOCH  # the highest epoch whose token was seen
        self.said: dict[int, list[int]] = {}  # node: whom the trace says that it cannot reach
        # node: what it is to have changed, and to what, not said yet
        self.asked: dict[int, tuple[str, int]] = {}

    # -- lives ----------------------------------------------------------------------------

    def restart(self, me: int, now: float, disk: bool = True) -> None:
        """A life begins, the first or another; without a disk, epochs count from the clock. With
        the first of node 0 the pool begins, if its members choose themselves."""
        if not disk:
            self.disk[me] = None
        self.boots[me] += 1
        self.up[me] = True
        self.layers[me] = layer(me, self.out, self.terms)
        self.nodes[me] = self.layers[me]
        self.said.pop(me, None)
        self.set_clock(me, now)
        kept = self.disk[me]
        floor = self.clocks.shown(me, now) if kept is None else 0
        founds = self.terms.rules is not None and me == 0 and self.boots[me] == 1
        self.layers[me].start(Life(self.boots[me], kept, floor, founds, founds))

    def crash(self, me: int, clients: list[SimulatedClient]) -> None:
        """Those of its clients that are inside go on until their leases end."""
        self.up[me] = False
        self.usable.pop(me, None)
        self.monitor.crashed(me)
        for client in clients:
            if client.inside:
                self.orphans[client.number] = client

    def set_clock(self, me: int, now: float) -> None:
        self.layers[me].tell_time(self.clocks.shown(me, now))

    def wake_at(self, me: int) -> float:
        """When this node wants to be woken."""
        return self.clocks.true_time(me, self.layers[me].timer_at())

    # -- leases ---------------------------------------------------------------------------

    def enters(self, now: float, client: SimulatedClient, enter: Enter) -> None:
        me, want = client.node, client.want
        end = self.ends[client.number] = self.clocks.true_time(me, enter.until)
        fence = self.last_fence = numbered(enter.fence)
        permits, slots = enter.permits, enter.slots
        self.monitor.granted(now, me, client.number, want, end, fence, permits, slots)

    def lends(self, now: float, message: Message) -> None:
        if isinstance(message, Inner) and message.lent is not None:
            fence = numbered(fence_number(message.lent.fence))
            self.monitor.lends_under(now, message.sender, fence)

    def leaves(self, now: float, client: SimulatedClient) -> None:
        """It has left, or its lease is over."""
        del self.ends[client.number]
        self.monitor.gives_back(now, client.number)

    # -- after a step ---------------------------------------------------------------------

    def judge(self, now: float, me: int) -> LeaseStep:
        """Where the token is and until when, whose leases were renewed, which epoch has begun."""
        layer = self.layers[me]
        token = layer.member.holding.token
        lent = 0
        if token is None or token.epoch != layer.member.promised:
            self.usable.pop(me, None)
        else:
            self.usable[me] = self.clocks.true_time(me, token.until)
            self.free = token.free
            if len(self.usable) > 1:
                self.judge_tokens(now)
        minted = self.new_epoch(now, me)
        if token is not None:
            lent = sum([entry.permits for entry in token.ledger])
            if token.epoch == self.minted:
                self.monitor.keeps(now, me, positive(token.free), lent)
        ends: dict[int, float] = {}
        for grant in layer.member.grants.values():
            before = self.ends.get(grant.client)
            if before is not None:
                end = self.clocks.true_time(me, grant.until)
                if end != before:
                    self.ends[grant.client] = end
                    self.monitor.renewed(now, grant.client, end)
                    ends[grant.client] = end
        return LeaseStep(lent, minted, layer.member.config.permits, ends, self.ends, self.members)

    def judge_tokens(self, now: float) -> None:
        valid = [node for node, end in self.usable.items() if end > now]
        if len(valid) > 1:
            text = f"nodes {valid[0]} and {valid[1]} both have a token with a lease"
            self.monitor.report("one-token", now, text)

    def new_epoch(self, now: float, me: int) -> Epoch | None:
        """The epoch whose token this step made, if it made one; it may be gone already."""
        token = self.layers[me].member.holding.token
        epoch = token.epoch if token is not None else NO_EPOCH
        for effect in self.out:
            if isinstance(effect, Inner) and effect.tokens() > 0:
                epoch = max(epoch, effect.epoch)
        if epoch <= self.minted:
            return None
        self.minted = epoch
        self.members = self.layers[me].member.members
        self.monitor.recovered(now, me, epoch, self.layers[me].member.config.permits)
        return epoch

    # -- what reaches a node from outside ---------------------------------------------------

    def resize(self, me: int, permits: int) -> None:
        """This node is asked to have the number of permits changed."""
        self.layers[me].timers.change = Change(permits=permits)
        self.monitor.resizes.add(permits)
        self.asked[me] = ("resize", permits)

    def change_member(self, me: int, verb: str, node: int) -> None:
        """This node is asked to ``add`` that one to the members, or to ``remove`` it."""
        change = Change(add=node) if verb == "add" else Change(remove=node)
        self.layers[me].timers.change = change
        self.asked[me] = (verb, node)

    def news(self, me: int) -> dict[str, Any]:
        """For the trace: whom this node cannot reach, where that has changed, and that change."""
        said: dict[str, Any] = {}
        now = sorted(self.layers[me].member.unreachable)
        if self.said.get(me, []) != now:
            said["unreachable"] = self.said[me] = now
        if me in self.asked:
            verb, value = self.asked.pop(me)
            said[verb] = value
        return said

    # -- messages -----------------------------------------------------------------------------

    def carrier(self, message: Message) -> int:
        """LINK: it goes over the link to a neighbour, in order, and is lost when the link fails.
        RELIABLE: it waits for a way to its receiver, in order, as long as both live. BEST_EFFORT:
        others may overtake it, and it outlives either end."""
        return carrier(message, self.terms.algorithm.assumes.changing_links)
