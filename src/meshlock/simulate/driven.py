"""A run that is driven one step at a time, and a transcript of what the nodes do.

A script drives it (:mod:`.player`), a trace that is played again (:mod:`.schedule`) or the reader
at the page. Its messages, links and lives are those of a :mod:`~meshlock.world.scripted` world;
here are its clients, and what nodes choose.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import Actor, Algorithm, ChoosingActor
from meshlock.algorithms.amounts import is_part
from meshlock.algorithms.registry import refuse_impossible, with_defaults
from meshlock.algorithms.steps import in_grants, urgency, without_unit
from meshlock.errors import Refused
from meshlock.properties.sentences import counted
from meshlock.simulate.scenario import Scenario, refuse_set_up
from meshlock.trace.writer import TraceWriter
from meshlock.world.channels import DRAIN
from meshlock.world.clients import SimulatedClient
from meshlock.world.lives import TICKS
from meshlock.world.scripted import Impossible, ScriptedWorld

LONG = 10
"""Leases without an entry: after these, a client that waits is taken to wait forever."""


class DrivenRun(ScriptedWorld):
    """The nodes of a scenario's set-up; ``options`` go before those of the script."""

    def __init__(
        self,
        scenario: Scenario,
        algorithm: Algorithm,
        trace: TraceWriter | None = None,
        options: dict[str, str] | None = None,
    ) -> None:
        network = scenario.network()
        layer = scenario.layer
        refuse_impossible(
            algorithm,
            permits=scenario.permits,
            want=scenario.most,
            complete=network.complete or layer is not None,
            fifo=True,
            changing=scenario.changing and layer is None,
        )
        known = {
            name: value for name, value in scenario.options.items() if name in algorithm.options
        }
        settled = with_defaults(algorithm, {**known, **(options or {})})
        if scenario.deadlines:
            settled = in_grants(settled)
        refuse_set_up(scenario, algorithm, network)
        super().__init__(
            algorithm,
            settled,
            network,
            scenario.permits,
            scenario.seed,
            trace,
            layer,
            scenario.founder,
            failures=scenario.failures,
            first=scenario.first,
            unordered=algorithm.name in scenario.unordered,
        )
        self.kinds = scenario.kinds if scenario.kinds.several else None
        self.scenario = scenario
        refuse_other_tree(self)
        self.waiting: dict[int, SimulatedClient] = {}  # by number
        self.inside: dict[int, SimulatedClient] = {}  # by number, in the order of entry
        self.requests = 0
        self.steps = 0
        self.behaviours: dict[int, int] = {}  # node: its choice, where it is not drawn
        self.entries: list[int] = []  # nodes, in the order in which their clients entered
        self.unserved: list[int] = []  # nodes whose client waits for ever
        self.unmet: list[str] = []  # the expectations that were not met
        self.begin_trace(
            "simulate",
            scenario=scenario.name,
            seed=scenario.seed,
            tree=scenario.tree or None,
            failures=scenario.failures if scenario.failures != DRAIN else None,
            links=list(network.links()),
            recovery=None if layer is None else layer.line(),
        )
        if layer is not None:
            self.start_layers(list(network.links()))

    def start(self) -> None:
        """Set the nodes of a restless algorithm going."""
        for node in self.nodes:
            self.text = "is set going"
            self.set_going(node.me)

    def end(self) -> None:
        """The run is over: a client that waits now waits forever."""
        self.unserved = [client.node for client in self.waiting.values()]
        self.monitor.ends(self.now, len(self.waiting))
        if self.trace is not None:
            self.trace.end(self.now, len(self.waiting), self.violated)

    # -- what came of it ------------------------------------------------------------------

    @property
    def violated(self) -> dict[str, str]:
        return self.monitor.violated

    @property
    def transcript(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def good(self) -> bool:
        return not (self.unserved or self.violated or self.unmet)

    def figures(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.name,
            "title": self.scenario.title,
            "algorithm": self.algorithm.name,
            "options": without_unit(self.options),
            "entries": [node + self.first for node in self.entries],
            "unserved": [node + self.first for node in self.unserved],
            "violated": self.violated,
            "unmet": self.unmet,
            "good": self.good,
            "transcript": self.transcript.splitlines(),
        }

    # -- clients ------------------------------------------------------------------------

    def ask(self, node: int, want: int, priority: int, within: float | None = None) -> None:
        """``within``: seconds until its deadline."""
        self.refuse_down(node)
        self.requests += 1
        client = SimulatedClient(node, want, priority)
        if within is not None:
            client.deadline = self.now + within
            client.priority = urgency(priority // self.units, within, self.units)
        client.number = self.requests
        self.waiting[client.number] = client
        if self.is_busy(node):
            self.lines.append(f"  {self.called(node)}: queues a request for {self.written(want)}")
        self.submit(client)

    def request(self, client: SimulatedClient) -> None:
        self.text = (
            f"asks for {self.written(client.want)} with priority {self.shown(client.priority)}"
        )
        super().request(client)

    def written(self, amount: int) -> str:
        """Of permits."""
        return self.scenario.kinds.write(amount)

    def shown(self, priority: int) -> str:
        """In steps of priority: a whole number where there are no parts of a step."""
        return str(priority if self.units == 1 else priority / self.units)

    def release(self, client: SimulatedClient) -> None:
        del self.inside[client.number]
        self.text = "leaves"
        super().release(client)

    def give_up(self, client: SimulatedClient) -> None:
        self.text = "withdraws its request"
        if not self.withdraw(client):
            raise Impossible(f"{self.algorithm.name} cannot withdraw a request.")
        del self.waiting[client.number]

    def release_part(self, client: SimulatedClient, part: int) -> None:
        held, released = self.written(client.want), self.written(part)
        if not is_part(part, client.want):
            raise Impossible(
                f"A client that holds {held} can release a part of these, not {released}."
            )
        self.text = f"releases {released} of {held}"
        try:
            self.release_some(client, part)
        except NotImplementedError:
            raise Impossible(f"{self.algorithm.name} releases all permits at once.") from None

    def set_priority(self, client: SimulatedClient, priority: int) -> None:
        before, after = self.shown(client.priority), self.shown(priority)
        self.text = f"changes its priority from {before} to {after}"
        if not self.change_priority(client, priority):
            raise Impossible(f"{self.algorithm.name} cannot change the priority of a request.")
        if self.text:  # it queues still, so that no handler has run
            self.lines.append(f"  {self.called(client.node)}: {self.text}")
            self.text = ""

    def finish(self) -> None:
        """Let every message arrive and every client leave, and time pass while none enters."""
        idle = 0
        while self.deliver_all():
            if self.inside:
                idle = 0
                self.release(next(iter(self.inside.values())))
            elif self.scenario.layer is None or not self.waiting or idle == LONG:
                return
            else:
                idle += 1
                self.wait(self.recovering.clocks.lease / TICKS)

    # -- choices --------------------------------------------------------------------------

    def behave(self, nodes: list[int], word: str) -> None:
        """From now on these nodes choose this where the algorithm leaves a choice."""
        for me in nodes:
            names = self.choices(me)
            if not names:
                raise Impossible(
                    f"Nodes of {self.algorithm.name} have no choice of behaviour: use "
                    "general-scheme with behaviour=random."
                )
            if word == "drawn":
                self.behaviours.pop(me, None)
            elif word in names:
                self.behaviours[me] = names.index(word)
            else:
                raise Impossible(
                    f"A node of {self.algorithm.name} behaves as {', '.join(names)} or drawn, "
                    f"not '{word}'."
                )

    def end_life(self, me: int) -> list[SimulatedClient]:
        clients = super().end_life(me)
        for client in clients:
            self.waiting.pop(client.number, None)
            self.inside.pop(client.number, None)
        return clients

    def choices(self, me: int) -> tuple[str, ...]:
        """What is left to choose at this node, by name; nothing in most algorithms."""
        node = self.nodes[me]
        return node.choice_names if isinstance(node, ChoosingActor) and node.choices() > 1 else ()

    def chosen(self, me: int, count: int) -> int:
        return self.behaviours[me] if me in self.behaviours else super().chosen(me, count)

    # -- steps --------------------------------------------------------------------------------

    def done(
        self, node: Actor, event: str, cause: dict[str, Any], tokens: int, permits: int
    ) -> None:
        """Write down what happens, and what comes of it."""
        me = node.me
        self.steps += 1
        if self.layered is None:
            self.now += 1.0
        text = self.text
        if names := self.choices(me):
            text += f" [{names[self.choice]}{'' if me in self.behaviours else ', drawn'}]"
        if text:
            self.lines.append(f"  {self.called(me)}: {text}")
        self.text = ""
        super().done(node, event, cause, tokens, permits)
        self.lost.clear()

    def enters(self, node: Actor, client: SimulatedClient) -> None:
        del self.waiting[client.number]
        self.inside[client.number] = client
        self.entries.append(node.me)
        several = self.kinds is not None
        held = self.written(client.want) if several else counted(client.want, "permit")
        self.lines.append(f"     enters, {held}")

    def loses(self, client: SimulatedClient) -> None:
        del self.inside[client.number]
        self.lines.append("     loses its lease")

    # -- what is seen ---------------------------------------------------------------------------

    def holders(self) -> list[int]:
        """The nodes that have a token."""
        if self.layered is not None:
            for node in self.nodes:
                self.layered.set_clock(node.me, self.now)
        return [node.me for node in self.nodes if self.is_up(node.me) and node.tokens()]

    def fathers(self) -> list[int]:
        """The tree as it is: the father of each node."""
        found: list[int] = []
        for node in self.nodes:
            father = node.freeze()[node.variables.index("father")]
            assert isinstance(father, int)
            found.append(father)
        return found


def refuse_other_tree(run: DrivenRun) -> None:
    if run.scenario.tree and run.fathers() != run.scenario.tree:
        raise Refused(
            f"{run.algorithm.name} with these options makes a tree of its own: leave out "
            f"'tree', or the option behaviour=gateway or start=binary."
        )
