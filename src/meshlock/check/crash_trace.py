"""A counterexample of nodes that crash, as a trace.

The acts of the story are put on layers one after the other, and each goes through the one step
(:mod:`meshlock.world.steps`) that writes traces of simulated runs, too. The time is the number
of ticks so far; times inside states and messages are relative to it, as the checker has them.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import NIL, Actor, Effect, Enter, Frozen, Message
from meshlock.algorithms.recovery.messages import Confirm, Ledger, Renew
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.explorer import Violation
from meshlock.check.model import Act
from meshlock.check.story import acts, arguments
from meshlock.check.words import copy
from meshlock.trace.setup import TraceSetup
from meshlock.trace.writer import TraceWriter, arrival
from meshlock.world.clients import SimulatedClient
from meshlock.world.clocks import MILLION, Clocks
from meshlock.world.effects import NOTHING
from meshlock.world.lives import LayeredNodes, LayerSetup
from meshlock.world.steps import Steps

DUE = ("renew", "propose", "change", "close", "resend", "tick")
"""What a node's own timing decides on: a ``timer`` that says what it does."""


def write_crash_trace(model: Crashing, violation: Violation, sink: Any, version: str) -> None:
    """The way to a violation, from the first start of the nodes on."""
    told = model.opening()
    for step in acts(model, violation):
        told += step
    Sends().pair(told)
    run = Retold(model, told, TraceWriter(sink, True), version)
    for act in told:
        run.act(act)
    if violation.name == "served":
        run.ends(violation)


class Sends:
    """Gives a message the same number where it is sent and where it arrives or is lost. What
    arrives twice is sent twice."""

    def __init__(self) -> None:
        self.serial = 0
        self.flying: dict[Frozen, list[int]] = {}
        self.origins: dict[Frozen, tuple[Message, list[Effect]]] = {}

    def pair(self, told: list[Act]) -> None:
        for act in told:
            if isinstance(act.message, Message):
                self.arrives(act.message)
            if act.failure:
                act.effects = []  # nobody knows which of them were to be
            for effect in act.effects:
                if isinstance(effect, Message):
                    self.sends(effect, act.effects)

    def sends(self, message: Message, effects: list[Effect]) -> None:
        key = timeless(message)
        self.origins[key] = (message, effects)
        message.serial = self.number()
        line = self.flying.setdefault(key, [])
        if isinstance(message, (Renew, Confirm)):  # only the latest goes on
            line.clear()
        line.append(message.serial)

    def arrives(self, message: Message) -> None:
        key = timeless(message)
        line = self.flying[key]
        if line:
            message.serial = line.pop(0)
            return
        original, effects = self.origins[key]
        twin = copy(original)
        message.serial = twin.serial = self.number()
        effects.append(twin)

    def number(self) -> int:
        self.serial += 1
        return self.serial


def timeless(message: Message) -> Frozen:
    """What stays the same on the way, while it gets older."""
    contents = message.freeze()
    if isinstance(message, (Renew, Ledger, Confirm)):
        place = message.fields.index("sent") + 1
        contents = (*contents[:place], *contents[place + 1 :])
    seal = () if message.seal is None else message.seal.freeze()[:-1]
    return (message.sender, message.receiver, contents, seal)


class TickClocks(Clocks):
    """Times are ticks from now on. ``slow``: whose clock misses the tick, for every tick that
    there will be."""

    def __init__(self, lease: int, wait: int, size: int, slow: list[int]) -> None:
        super().__init__(1.0, 0, [MILLION] * size)
        self.lease = lease
        self.wait = wait
        self.slow = slow
        self.now = 0

    def true_time(self, me: int, shown: int) -> float:
        time, left = self.now, shown
        while left > 0:
            if time >= len(self.slow) or self.slow[time] != me:
                left -= 1
            time += 1
        return float(time + left)


class Retold(Steps):
    """``told``: all that happens."""

    def __init__(self, model: Crashing, told: list[Act], trace: TraceWriter, version: str) -> None:
        setup, bounds = model.setup, model.bounds
        slow = [act.node for act in told if passes(act)]
        self.clocks = TickClocks(bounds.lease, bounds.wait, model.size, slow)
        nodes = LayeredNodes(
            LayerSetup(bounds.members, self.clocks, bounds.rules),
            setup.algorithm,
            setup.options,
            setup.permits,
            setup.network.neighbours,
        )
        for me in range(model.size):
            layer = model.layers.make(me)
            layer.thaw(model.layers.places[me][model.layers.birth(me)].state)
            nodes.layers[me] = nodes.nodes[me] = layer
        graph = setup.network
        super().__init__(setup.algorithm, setup.options, graph, setup.permits, 0, trace, nodes)
        self.leased = nodes
        self.writer = trace
        about = TraceSetup(
            version=version,
            source="check",
            algorithm=setup.algorithm.name,
            options=setup.options,
            promised=self.promises,
            permits=setup.permits,
            nodes=graph.size,
            links="complete" if graph.complete else list(graph.links()),
            fifo=setup.fifo,
            recovery={
                "members": list(bounds.members) or [0],
                "lease": bounds.lease,
                "wait": bounds.wait,
            },
        )
        trace.begin(about, self.nodes)
        for node in self.nodes:
            self.done(node, "start", NOTHING, 0, 0)

    def act(self, act: Act) -> None:
        if passes(act):
            self.tick()
        elif act.event in ("crash", "die"):
            self.end_life(act.node)
        elif act.event == "drop" and isinstance(act.message, Message):
            self.writer.dropped(self.now, act.message)
        elif act.event not in ("break", "return", "hang", "write"):  # no node knows of it
            self.handler(act)

    def tick(self) -> None:
        """Time passes, and whatever runs without its node stops when its lease is over."""
        self.clocks.now += 1
        self.now = float(self.clocks.now)
        for client in list(self.leased.orphans.values()):
            if self.leased.ends[client.number] <= self.now:
                self.end_lease(client)

    def handler(self, act: Act) -> None:
        """A node has run one of its handlers."""
        node = self.nodes[act.node]
        had = (node.tokens(), node.free_permits())
        node.thaw(act.after)
        if act.event == "tick" and not act.effects and had == (act.tokens, act.free):
            return  # that time passes is no news
        event, cause = act.event, arguments(act)
        if isinstance(act.message, Message):
            cause = arrival(act.message)
        elif event == "request":
            client = SimulatedClient(act.node, act.want, act.priority)
            client.number = act.client
            self.present[act.client] = client
        elif event == "leave":
            self.leased.leaves(self.now, self.present.pop(act.client))
        elif event == "give-back":
            self.leased.gives_some(self.present[act.client], act.released)
        elif event == "priority":
            self.present[act.client].priority = act.priority
        elif event == "withdraw":
            del self.present[act.client]
        elif event == "forget":
            event, cause = "restart", {"disk": False}
        elif event in DUE:
            event, cause = "timer", {"does": event}
        self.out += [effect for effect in act.effects if self.is_possible(effect)]
        self.done(node, event, cause, 0, 0)

    def is_possible(self, effect: Effect) -> bool:
        """A trace has no words for a client that enters without having asked."""
        if not isinstance(effect, Enter):
            return True
        client = self.present.get(effect.client)
        return client is not None and not client.inside

    def ends(self, violation: Violation) -> None:
        waiting = [client for client in self.present.values() if not client.inside]
        self.writer.end(self.now, len(waiting), {violation.name: violation.text})

    # -- the messages have their numbers, and clients do nothing of themselves -------------------

    def carry(self, message: Message) -> None:
        pass

    def enters(self, node: Actor, client: SimulatedClient) -> None:
        pass

    def loses(self, client: SimulatedClient) -> None:
        pass


def passes(act: Act) -> bool:
    """Is this a tick for all, or for all but one?"""
    return act.event == "slow" or (act.event == "tick" and act.node == NIL)
