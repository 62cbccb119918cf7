"""A run that somebody drives, one step at a time, and a transcript of what the nodes do.

Who drives is a script (:mod:`.player`), a trace that is played again (:mod:`.schedule`) or
the reader at the page. What cannot be done is refused with a sentence.

Without members, every step takes one unit of time. With members, time passes only when the
driver says so.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import NIL, Actor, Algorithm, ChoosingActor, Message
from meshlock.algorithms.recovery.messages import Inner, content
from meshlock.algorithms.registry import refuse_impossible, with_defaults
from meshlock.algorithms.steps import in_grants, urgency, without_unit
from meshlock.errors import Refused
from meshlock.properties.sentences import no_link
from meshlock.simulate.driven_lives import ENDLESS, DrivenLives, Impossible
from meshlock.simulate.scenario import Scenario, refuse_set_up
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.trace.convert import shown
from meshlock.trace.setup import TraceSetup
from meshlock.trace.writer import TraceWriter
from meshlock.world.channels import CUSTODY, DRAIN, LEASES, precious
from meshlock.world.clients import SimulatedClient
from meshlock.world.clocks import TICKS
from meshlock.world.lives import LayeredNodes
from meshlock.world.steps import Steps

LONG = 10
"""Leases without an entry: after these, a client that waits is taken to wait forever."""


class ScenarioOutcome:
    """What came of a driven run."""

    def __init__(self, scenario: Scenario, algorithm: Algorithm, options: dict[str, str]) -> None:
        self.scenario = scenario
        self.algorithm = algorithm
        self.options = options
        self.entries: list[int] = []  # nodes, in the order in which their clients entered
        self.unserved: list[int] = []  # nodes whose client waits for ever
        self.violated: dict[str, str] = {}
        self.unmet: list[str] = []  # the expectations that were not met
        self.transcript = ""

    @property
    def good(self) -> bool:
        return not (self.unserved or self.violated or self.unmet)

    def figures(self) -> dict[str, Any]:
        first = self.scenario.first
        return {
            "scenario": self.scenario.name,
            "title": self.scenario.title,
            "algorithm": self.algorithm.name,
            "options": self.options,
            "entries": [node + first for node in self.entries],
            "unserved": [node + first for node in self.unserved],
            "violated": self.violated,
            "unmet": self.unmet,
            "good": self.good,
            "transcript": self.transcript.splitlines(),
        }


class OnTheWay(list[Message]):
    """In the order in which they were sent."""

    def find(self, way: tuple[int, int], which: int = 1) -> int:
        """The place of the first message from one node to another, or of the one of that number;
        -1 if there are fewer."""
        for place, message in enumerate(self):
            if (message.sender, message.receiver) == way:
                which -= 1
                if which == 0:
                    return place
        return -1


class DrivenRun(Steps):
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
            want=max(scenario.wants),
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
        self.graph = LiveGraph(network.size, network.links())  # as the links are now
        layered: LayeredNodes | None = None
        if layer is not None:
            layered = LayeredNodes(
                layer, algorithm, settled, scenario.permits, self.graph.neighbours
            )
        super().__init__(
            algorithm,
            settled,
            network,
            scenario.permits,
            scenario.seed,
            trace,
            layered,
            scenario.founder,
        )
        self.network = network
        self.scenario = scenario
        self.ordered = algorithm.assumes.fifo and algorithm.name not in scenario.unordered
        refuse_other_tree(self)
        self.links = set(network.links())
        self.custody = scenario.failures == CUSTODY
        self.sees = {way for a, b in self.links for way in ((a, b), (b, a))}  # as each end sees it
        self.monitor.changed(self.graph.components == 1)
        self.on_the_way = OnTheWay()
        self.sent_at: dict[int, float] = {}  # of these, where it matters
        self.held: set[tuple[int, int]] = set()
        self.hops = 0  # links crossed by all messages
        self.waiting: dict[int, SimulatedClient] = {}  # by number
        self.inside: dict[int, SimulatedClient] = {}  # by number, in the order of entry
        self.requests = 0
        self.steps = 0
        self.behaviours: dict[int, int] = {}  # node: its choice, where somebody made it
        self.lives = DrivenLives(self)
        self.text = ""  # of the step at hand
        self.outcome = ScenarioOutcome(scenario, algorithm, without_unit(self.options))
        self.lines: list[str] = []
        if trace is not None:
            trace.begin(trace_setup(self), self.nodes)
        if layered is not None:
            self.start_layers(list(network.links()))

    def start(self) -> None:
        """Set the nodes of a restless algorithm going."""
        for node in self.nodes:
            self.text = "is set going"
            self.set_going(node.me)

    def end(self) -> ScenarioOutcome:
        """The run is over: a client that waits now waits forever."""
        self.outcome.unserved = [client.node for client in self.waiting.values()]
        self.monitor.ends(self.now, len(self.waiting))
        if self.trace is not None:
            self.trace.end(self.now, len(self.waiting), self.monitor.violated)
        return self.so_far()

    def so_far(self) -> ScenarioOutcome:
        self.outcome.violated = self.monitor.violated
        self.outcome.transcript = "\n".join(self.lines) + "\n"
        return self.outcome

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
            self.lines.append(f"  {self.called(node)}: queues a request for {want}")
        self.submit(client)

    def request(self, client: SimulatedClient) -> None:
        self.text = f"asks for {client.want} with priority {self.in_steps(client.priority)}"
        super().request(client)

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
        if not 0 < part < client.want:
            raise Impossible(
                f"A client that holds {client.want} can release a part of these, not {part}."
            )
        self.text = f"releases {part} of {client.want}"
        try:
            self.release_some(client, part)
        except NotImplementedError:
            raise Impossible(f"{self.algorithm.name} releases all permits at once.") from None

    def set_priority(self, client: SimulatedClient, priority: int) -> None:
        before, after = self.in_steps(client.priority), self.in_steps(priority)
        self.text = f"changes its priority from {before} to {after}"
        if not self.change_priority(client, priority):
            raise Impossible(f"{self.algorithm.name} cannot change the priority of a request.")
        if self.text:  # it queues still, so that no handler has run
            self.lines.append(f"  {self.called(client.node)}: {self.text}")
            self.text = ""

    def finish(self) -> None:
        """Let everything arrive and everybody leave, and time pass while nobody enters."""
        idle = 0
        while self.deliver_all():
            if self.inside:
                idle = 0
                self.release(next(iter(self.inside.values())))
            elif self.scenario.layer is None or not self.waiting or idle == LONG:
                return
            else:
                idle += 1
                self.lives.wait(self.lives.nodes.clocks.lease / TICKS)

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

    def choices(self, me: int) -> tuple[str, ...]:
        """What is left to choose at this node, by name; nothing in most algorithms."""
        node = self.nodes[me]
        return node.choice_names if isinstance(node, ChoosingActor) and node.choices() > 1 else ()

    def chosen(self, me: int, count: int) -> int:
        return self.behaviours[me] if me in self.behaviours else super().chosen(me, count)

    # -- messages -------------------------------------------------------------------------

    def hold(self, sender: int, receiver: int) -> None:
        """Nothing on this way is delivered unless it is said for each message."""
        self.held.add((sender, receiver))

    def let_go(self, sender: int, receiver: int) -> None:
        self.held.discard((sender, receiver))

    def deliver_first(self, sender: int, receiver: int, which: int = 1) -> None:
        self.deliver_at(self.place_of(sender, receiver, which))

    def lose_first(self, sender: int, receiver: int, which: int = 1) -> None:
        self.lose(self.on_the_way[self.place_of(sender, receiver, which)])

    def place_of(self, sender: int, receiver: int, which: int = 1) -> int:
        """Where the first message from one to the other is, or the one of that number."""
        place = self.on_the_way.find((sender, receiver), which)
        if place < 0:
            way = f"{self.called(sender)}->{self.called(receiver)}"
            many = "Nothing is" if which == 1 else f"Less than {which} are"
            raise Impossible(f"{many} on the way {way}.")
        return place

    def overtake(self, sender: int, receiver: int) -> None:
        first, second = self.place_of(sender, receiver), self.place_of(sender, receiver, 2)
        if self.ordered:
            self.lines.append(f"  the link keeps the order, which {self.algorithm.name} needs")
        else:
            line = self.on_the_way
            line[first], line[second] = line[second], line[first]

    def deliver_all(self) -> bool:
        """Deliver all there is, in the order sent; False if there is no end to it."""
        for _ in range(ENDLESS):
            places = [
                place
                for place, message in enumerate(self.on_the_way)
                if (message.sender, message.receiver) not in self.held and self.arrives(message)
            ]
            if not places:
                return True
            self.deliver_at(places[0])
        self.lines.append(f"  after {ENDLESS} messages there is no end in sight")
        return False

    def arrives(self, message: Message) -> bool:
        """Or does it wait for a way to its receiver?"""
        if self.layered is None or not self.layered.reliable(message):
            return True
        return self.joined(message.sender, message.receiver)

    def deliver_at(self, place: int) -> None:
        """The message at this place of the line arrives, or is lost if nobody can receive it."""
        message = self.on_the_way[place]
        if self.layered is not None:
            if not self.arrives(message):
                raise Impossible("This message waits: there is no route to its receiver.")
            if not self.layered.up[message.receiver]:
                self.lose(message)
                return
            if isinstance(message, Inner):
                under_way = self.now - self.sent_at.pop(message.serial, self.now)
                message.travelled = self.layered.clocks.longest(under_way)
        del self.on_the_way[place]
        self.text = f"gets {self.described(message)} from {self.called(message.sender)}"
        self.deliver(message)

    def overtakes(self, place: int) -> bool:
        """Is another on the same way, which keeps the order, before the message at this place?"""
        message, layered = self.on_the_way[place], self.layered
        if layered is None:
            first = self.on_the_way.find((message.sender, message.receiver))
            return first != place and self.algorithm.assumes.fifo
        way = (message.sender, message.receiver)
        before = [one for one in self.on_the_way[:place] if (one.sender, one.receiver) == way]
        return layered.ordered(message) and any(layered.ordered(one) for one in before)

    def lose(self, message: Message) -> None:
        self.on_the_way.remove(message)
        self.in_flight -= 1
        way = f"from {self.called(message.sender)} to {self.called(message.receiver)}"
        self.lines.append(f"  {self.described(message)} {way} is lost")
        if self.trace is not None:
            self.trace.dropped(self.now, message)

    def arrive(self, message: Message) -> None:
        self.deliver_at(self.on_the_way.index(message))

    def come_back(self, message: Message) -> None:
        self.on_the_way.remove(message)
        self.text = f"{self.described(message)} to {self.called(message.receiver)} comes back"
        self.return_to_sender(message)

    # -- links ------------------------------------------------------------------------------

    def notice(self, me: int, peer: int, up: bool) -> None:
        """One end learns of a change by itself; what is on its way stays there."""
        if not self.custody:
            raise Impossible("Both ends notice at once, unless failures are 'custody'.")
        if ((me, peer) in self.sees) == up:
            raise Impossible(f"Node {self.called(me)} has noticed this change already.")
        if up:
            self.sees.add((me, peer))
        else:
            self.sees.discard((me, peer))
        if {(me, peer), (peer, me)} <= self.sees:
            self.links.add((min(me, peer), max(me, peer)))
            self.graph.connect(me, peer)
        elif self.graph.linked(me, peer):
            self.unlink(me, peer)
        agreed = all((b, a) in self.sees for a, b in self.sees)
        self.monitor.changed(agreed and self.graph.components == 1)
        self.text = f"sees the link to {self.called(peer)} {'form' if up else 'fail'}"
        self.link_changes(me, peer, up)

    def link_up(self, one: int, other: int) -> None:
        self.refuse_down(one)
        self.refuse_down(other)
        if self.graph.linked(one, other):
            raise Impossible(f"There is a link {self.called(one)}-{self.called(other)} already.")
        if self.custody:
            self.notice(one, other, True)
            self.notice(other, one, True)
            return
        self.links.add((min(one, other), max(one, other)))
        self.graph.connect(one, other)
        self.monitor.changed(self.graph.components == 1)
        for node, peer in ((one, other), (other, one)):
            self.text = f"sees the link to {self.called(peer)} form"
            self.link_changes(node, peer, True)

    def link_down(self, one: int, other: int) -> None:
        between = f"{self.called(one)}-{self.called(other)}"
        if not self.graph.linked(one, other):
            raise Impossible(f"There is no link {between}.")
        if self.custody:
            self.notice(one, other, False)
            self.notice(other, one, False)
            return
        failures = self.scenario.failures if self.layered is None else LEASES
        if not self.empty_link(one, other, failures, ENDLESS):  # what arrives is answered
            raise Refused(f"The link {between} never becomes idle.")
        self.unlink(one, other)
        for node, peer in ((one, other), (other, one)):
            self.text = f"sees the link to {self.called(peer)} fail"
            self.link_changes(node, peer, False)

    def first_on(self, one: int, other: int) -> Message | None:
        for message in self.on_the_way:
            on_link = self.layered is None or self.layered.by_link(message)
            if on_link and {message.sender, message.receiver} == {one, other}:
                return message
        return None

    def unlink(self, one: int, other: int) -> None:
        self.links.remove((min(one, other), max(one, other)))
        self.graph.cut(one, other)
        self.monitor.changed(self.graph.components == 1)

    def pieces(self) -> int:
        return self.graph.components

    def joined(self, one: int, other: int) -> bool:
        """Is there a way from one to the other?"""
        return one == other or not self.graph.apart(one, other)

    # -- lives --------------------------------------------------------------------------------

    def is_up(self, node: int) -> bool:
        return self.layered is None or self.layered.up[node]

    def refuse_down(self, node: int) -> None:
        if not self.is_up(node):
            raise Impossible(f"Node {self.called(node)} is down.")

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
        self.outcome.entries.append(node.me)
        self.lines.append(f"     enters, {client.want} permit(s)")

    def loses(self, client: SimulatedClient) -> None:
        del self.inside[client.number]
        self.lines.append("     loses its lease")

    def transmit(self, message: Message) -> None:
        one, other = message.sender, message.receiver
        message.serial = len(self.lines)  # every message has a line
        said = f"{self.described(message)} to {self.called(other)}"
        if self.custody or self.graph.linked(one, other):
            if self.custody and not precious(message) and (one, other) not in self.sees:
                self.monitor.report("neighbours", self.now, no_link(one, other))
            self.hops += 1
            self.lines.append(f"     sends {said}")
        elif self.layered is not None:
            self.lines.append(f"     sends {said}")
            self.hops += max(0, self.graph.distance(one, other))
            if not self.joined(one, other) and not self.layered.reliable(message):
                self.lines.append("     which is lost: there is no way")
                self.lost.append(message)
                return
        elif self.algorithm.assumes.routed:
            hops = self.network.distance(one, other)
            self.hops += hops
            self.lines.append(f"     sends {said}, over {hops} links")
        else:
            missing = f"there is no link to {self.called(other)}"
            self.lines.append(f"     loses {self.described(message)}: {missing}")
            self.lost.append(message)
            self.monitor.balance(self.now, one, message.tokens(), message.permits())
            return
        if isinstance(message, Inner):
            self.sent_at[message.serial] = self.now
        self.in_flight += 1
        self.on_the_way.append(message)

    # -- what is seen ---------------------------------------------------------------------------

    def holders(self) -> list[int]:
        """The nodes that have a token."""
        if self.layered is not None:
            for node in self.nodes:
                self.layered.set_clock(node.me, self.now)
        return [node.me for node in self.nodes if self.is_up(node.me) and node.tokens()]

    def fathers(self) -> list[int]:
        """The tree as it is: everybody's father."""
        found: list[int] = []
        for node in self.nodes:
            father = node.freeze()[node.variables.index("father")]
            assert isinstance(father, int)
            found.append(father)
        return found

    def called(self, node: int) -> str:
        return self.scenario.called(node)

    def described(self, message: Message) -> str:
        return described(message, self.scenario)


def described(message: Message, scenario: Scenario) -> str:
    """Its kind and its fields, with nodes as the script calls them."""
    message = content(message)
    words = [message.kind]
    names = message.reductions.names or ()
    for name, value in zip(message.fields, message.freeze()[1:], strict=True):
        if name in names and isinstance(value, int):
            words.append(f"{name}={scenario.called(value) if value != NIL else 'nil'}")
        else:
            words.append(f"{name}={shown(value)}")
    return " ".join(words)


def refuse_other_tree(run: DrivenRun) -> None:
    if run.scenario.tree and run.fathers() != run.scenario.tree:
        raise Refused(
            f"{run.algorithm.name} with these options makes a tree of its own: leave out "
            f"'tree', or the option behaviour=gateway or start=binary."
        )


def trace_setup(run: DrivenRun) -> TraceSetup:
    scenario, layer = run.scenario, run.scenario.layer
    return TraceSetup(
        source="simulate",
        algorithm=run.algorithm.name,
        options=run.options,
        promised=run.promises,
        permits=run.permits,
        nodes=scenario.size,
        links=list(run.network.links()),
        scenario=scenario.name,
        seed=scenario.seed,
        tree=scenario.tree or None,
        failures=scenario.failures if scenario.failures != DRAIN else None,
        recovery=None if layer is None else layer.line(),
    )
