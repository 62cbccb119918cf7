"""A counterexample as a trace.

The acts of the story are put on nodes one after the other, and each goes through the one step
(:mod:`meshlock.world.steps`) that writes traces of simulated runs, too. The time is the number of
the step. Where nodes crash it is that of ticks so far; times inside states and messages are
relative to it, as the checker has them.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import NIL, Actor, Effect, Enter, Frozen, Message
from meshlock.algorithms.recovery.messages import Confirm, Inner, Ledger, Renew
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.explorer import Violation
from meshlock.check.links import connected, pair
from meshlock.check.model import Act
from meshlock.check.story import acts
from meshlock.check.system import System
from meshlock.check.words import copy
from meshlock.trace.setup import TraceSetup
from meshlock.trace.writer import TraceWriter, arrival, came_back
from meshlock.world.clients import SimulatedClient
from meshlock.world.effects import NOTHING
from meshlock.world.lives import MILLION, Clocks, LayeredNodes, LayerSetup
from meshlock.world.steps import Steps

DUE = ("renew", "propose", "change", "close", "resend", "tick")
"""What a node's own timing decides on: a ``timer`` that says what it does."""
UNKNOWN = ("break", "return", "hang", "write")
"""No node knows of it."""


def write_trace(model: System, violation: Violation, sink: Any) -> None:
    """The way to a violation, from the first start of the nodes on."""
    steps = [model.opening(), *acts(model, violation)]
    told = [act for step in steps for act in step]
    Sends().pair(told)
    writer = TraceWriter(sink, True)
    if isinstance(model, Crashing):
        run: Retold = RetoldCrashes(model, told, writer)
    else:
        run = Retold(model, writer, None, round_from(steps, violation))
    for number, step in enumerate(steps):
        run.begin(number)
        for act in step:
            run.act(act)
    if violation.name == "served":
        waiting = [client for client in run.present.values() if not client.inside]
        writer.end(run.time, len(waiting), {violation.name: violation.text})


def round_from(steps: list[list[Act]], violation: Violation) -> int | None:
    """The step of the trace from which on it goes round for ever; ``steps`` has the opening."""
    if violation.loop < 0:
        return None
    before = [act for step in steps[: violation.loop + 1] for act in step]
    return 1 + sum(act.event not in UNKNOWN for act in before)


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
                act.effects = []  # the handler did not end, so that these are not all
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
    if isinstance(message, Inner):
        contents = (*message.seal()[:-1], *contents[-1:])
    return (message.sender, message.receiver, contents)


class Retold(Steps):
    """Nodes that do what they are told to have done; clients do nothing of themselves."""

    def __init__(
        self,
        model: System,
        writer: TraceWriter,
        nodes: LayeredNodes | None,
        loop: int | None = None,
    ) -> None:
        setup, graph = model.setup, model.setup.network
        super().__init__(setup.algorithm, setup.options, graph, setup.permits, 0, writer, nodes)
        self.writer = writer
        self.balanced = False  # the search has judged it
        self.time: float = 0
        self.links = set(graph.links())
        changing = bool(setup.changes) or setup.flips > 0
        recovery = None
        if setup.faults is not None:
            lease, wait = setup.faults.lease, setup.faults.wait
            members = list(setup.faults.members) or [0]
            recovery = {"members": members, "lease": lease, "wait": wait}
        about = TraceSetup(
            source="check",
            algorithm=setup.algorithm.name,
            options=setup.options,
            promised=self.promises,
            permits=setup.permits,
            kinds=setup.kinds if setup.kinds.several else None,
            nodes=graph.size,
            links="complete" if graph.complete else list(graph.links()),
            fifo=setup.fifo,
            failures=setup.failures if changing else None,
            recovery=recovery,
            loop=loop,
        )
        writer.begin(about, self.nodes)

    def begin(self, step: int) -> None:
        self.time = step

    def act(self, act: Act) -> None:
        if act.event == "drop" and isinstance(act.message, Message):
            self.writer.dropped(self.time, act.message)
        elif act.event not in UNKNOWN:
            self.handler(act)

    def handler(self, act: Act) -> None:
        """A node has run one of its handlers."""
        node = self.nodes[act.node]
        node.thaw(act.after)
        self.choice = act.choice
        cause = self.cause(act)
        event = act.event
        if event in DUE:
            event, cause = "timer", {"does": event}
        elif event == "forget":
            event, cause = "restart", {"disk": False}
        self.out += [effect for effect in act.effects if self.is_possible(effect)]
        self.done(node, event, cause, 0, 0)

    def cause(self, act: Act) -> dict[str, Any]:
        """What the line of the cause says beside node and event."""
        if isinstance(act.message, Message):
            return arrival(act.message) if act.event == "deliver" else came_back(act.message)
        if act.event in ("link-up", "link-down"):
            return self.link(act)
        if act.event == "request":
            client = SimulatedClient(act.node, act.want, self.counts(act), act.client)
            self.present[act.client] = client
            return {"client": act.client, "want": act.want, **self.told_urgency(act)}
        if act.client == 0:
            return {}
        client = self.present[act.client]
        if act.event == "give-back":
            client.want -= act.released
            if self.layered is not None:
                self.layered.monitor.gives_some(client.number, act.released)
            return {"client": act.client, "permits": act.released}
        if act.event == "priority":
            client.priority = self.counts(act)
            return {"client": act.client, **self.told_urgency(act)}
        del self.present[act.client]
        if act.event == "leave" and self.layered is not None:
            self.layered.leaves(self.now, client)
        return {"client": act.client}

    def counts(self, act: Act) -> int:
        return round(act.priority * self.units)

    def told_urgency(self, act: Act) -> dict[str, float]:
        """A deadline is known only by what it counts for."""
        whole = self.counts(act) // self.units
        return (
            {"priority": whole} if self.units == 1 else {"priority": whole, "urgency": act.priority}
        )

    def link(self, act: Act) -> dict[str, Any]:
        if act.event == "link-up":
            self.links.add(pair(act.node, act.peer))
        else:
            self.links.discard(pair(act.node, act.peer))
        cause: dict[str, Any] = {"peer": act.peer}
        if self.layered is None and not connected(len(self.nodes), frozenset(self.links)):
            cause["components"] = 2  # at least: enough to know that it is cut
        return cause

    def is_possible(self, effect: Effect) -> bool:
        """Of a lease a trace has no words for a client that enters without having asked."""
        if self.layered is None or not isinstance(effect, Enter):
            return True
        client = self.present.get(effect.client)
        return client is not None and not client.inside

    def record(self, node: Actor, event: str, cause: dict[str, Any]) -> None:
        leased = None if self.layered is None else self.layered.judge(self.now, node.me)
        self.writer.step(self.time, event, node, cause, self.out, self.choice, leased)

    def admits(self, node: Actor, enter: Enter) -> int:
        return super().admits(node, enter) if enter.client in self.present else 0

    def transmit(self, message: Message) -> None:
        pass

    def enters(self, node: Actor, client: SimulatedClient) -> None:
        pass

    def loses(self, client: SimulatedClient) -> None:
        pass


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


class RetoldCrashes(Retold):
    """``told``: all that happens."""

    def __init__(self, model: Crashing, told: list[Act], writer: TraceWriter) -> None:
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
        super().__init__(model, writer, nodes)
        self.leased = nodes
        for node in self.nodes:
            self.done(node, "start", NOTHING, 0, 0)

    def begin(self, step: int) -> None:
        """Time is that of ticks."""

    def act(self, act: Act) -> None:
        if passes(act):
            self.tick()
        elif act.event in ("crash", "die"):
            self.end_life(act.node)
        else:
            super().act(act)

    def tick(self) -> None:
        """Time passes, and whatever runs without its node stops when its lease is over."""
        self.clocks.now += 1
        self.now = self.time = float(self.clocks.now)
        for client in list(self.leased.orphans.values()):
            if self.leased.ends[client.number] <= self.now:
                self.end_lease(client)

    def handler(self, act: Act) -> None:
        node = self.nodes[act.node]
        had = (node.tokens(), node.free_permits())
        if act.event == "tick" and not act.effects and had == (act.tokens, act.free):
            node.thaw(act.after)
            return  # that time passes is no news
        super().handler(act)


def passes(act: Act) -> bool:
    """Is this a tick for all, or for all but one?"""
    return act.event == "slow" or (act.event == "tick" and act.node == NIL)
