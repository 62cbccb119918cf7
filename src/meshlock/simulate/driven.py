"""A run that somebody drives, one step at a time, and a transcript of what the nodes do.

Who drives is a script (:mod:`.director`), a trace that is played again (:mod:`.schedule`) or
whoever sits at the page. What cannot be done is refused with a sentence.
"""

from __future__ import annotations

from random import Random
from typing import Any

from meshlock.algorithms.interface import NIL, Algorithm, Effect, Enter, Message, Node
from meshlock.algorithms.registry import refuse_impossible, settle
from meshlock.errors import Refused
from meshlock.properties.monitor import Monitor
from meshlock.properties.promises import promises
from meshlock.simulate.outcome import Outcome
from meshlock.simulate.scenario import Scenario
from meshlock.topology.graphs import Graph
from meshlock.trace.writer import TraceWriter

ENDLESS = 10_000
"""So many messages without a client entering or leaving are taken for messages for ever."""


class Impossible(Refused):
    """This cannot be done now; the text is one sentence."""


class Request:
    """What a client asked for."""

    def __init__(self, client: int, node: int, want: int, priority: int) -> None:
        self.client = client
        self.node = node
        self.want = want
        self.priority = priority


class DrivenRun:
    """The nodes of a scenario's set-up; ``options`` go before those of the script."""

    def __init__(
        self,
        scenario: Scenario,
        algorithm: Algorithm,
        trace: TraceWriter | None = None,
        options: dict[str, str] | None = None,
    ) -> None:
        self.network = scenario.network()
        refuse_impossible(
            algorithm,
            permits=scenario.permits,
            want=max(scenario.wants),
            complete=self.network.complete,
            fifo=True,
            changing=scenario.changing,
        )
        known = {
            name: value for name, value in scenario.options.items() if name in algorithm.options
        }
        self.options = settle(algorithm, {**known, **(options or {})})
        self.scenario = scenario
        self.algorithm = algorithm
        self.ordered = algorithm.needs_fifo and algorithm.name not in scenario.unordered
        self.out: list[Effect] = []
        self.refuse_set_up()
        self.nodes = algorithm.make(self.network, scenario.permits, self.options, self.out)
        self.refuse_other_tree()
        self.links = set(self.network.links())
        self.on_the_way: list[Message] = []  # in the order in which they were sent
        self.lost: list[Message] = []  # in this step
        self.held: set[tuple[int, int]] = set()
        self.sent: dict[str, int] = {}  # how many messages of each kind
        self.hops = 0  # links crossed by all messages
        self.promises = promises(algorithm, self.options)
        self.monitor = Monitor(scenario.permits, self.promises)
        self.waiting: dict[int, Request] = {}  # by client
        self.inside: dict[int, Request] = {}  # by client, in the order of entry
        self.requests = 0
        self.behaviours: dict[int, int] = {}  # node: its choice, where somebody made it
        self.lot = Random(f"{scenario.seed}:choice").random
        self.choice = -1  # of the node whose turn it is, where there is a choice
        self.now = 0.0
        self.outcome = Outcome(scenario, algorithm, self.options)
        self.lines: list[str] = []
        self.trace = trace
        if trace is not None:
            self.begin_trace(trace)

    def refuse_set_up(self) -> None:
        """What :func:`refuse_impossible` does not know of: trees, and names of nodes."""
        name = self.algorithm.name
        if self.scenario.first and any(kind.names is None for kind in self.algorithm.kinds):
            raise Refused(
                f"The messages of {name} do not say which of their fields are nodes, so its nodes "
                f"are numbered from 0: leave out 'numbered from'."
            )
        if not self.scenario.tree:
            return
        if not self.algorithm.any_tree:
            raise Refused(
                f"{name} does not start from a given tree of fathers: leave out 'tree', or use "
                f"general-scheme."
            )
        for node, father in enumerate(self.scenario.tree):
            linked = father == NIL or self.network.linked(node, father)
            if not linked and not self.algorithm.routed:
                one, other = self.called(node), self.called(father)
                raise Refused(
                    f"{name} sends over links only: the tree's {one}>{other} needs the link "
                    f"{one}-{other}."
                )

    def refuse_other_tree(self) -> None:
        if self.scenario.tree and self.fathers() != self.scenario.tree:
            raise Refused(
                f"{self.algorithm.name} with these options makes a tree of its own: leave out "
                f"'tree', or the option behaviour=gateway or start=binary."
            )

    def begin_trace(self, trace: TraceWriter) -> None:
        from meshlock import __version__

        setup: dict[str, Any] = {
            "version": __version__,
            "source": "simulate",
            "scenario": self.scenario.name,
            "algorithm": self.algorithm.name,
            "options": self.options,
            "seed": self.scenario.seed,
            **self.promises.line(),
        }
        if self.scenario.tree:
            setup["tree"] = self.scenario.tree
        if self.scenario.failures != "drain":
            setup["failures"] = self.scenario.failures
        pairs = list(self.network.links())
        trace.begin(setup, self.network, pairs, self.scenario.permits, self.nodes)

    def start(self) -> None:
        """Set the nodes of a restless algorithm going."""
        for node in self.nodes:
            before = self.turn(node.me)
            node.start()
            self.step(node.me, "is set going", before, "start", {})

    def end(self) -> Outcome:
        """The run is over: whoever waits now waits for ever."""
        self.outcome.unserved = [request.node for request in self.waiting.values()]
        self.monitor.ends(self.now, len(self.waiting))
        if self.trace is not None:
            self.trace.end(self.now, len(self.waiting), self.monitor.violated)
        return self.so_far()

    def so_far(self) -> Outcome:
        self.outcome.violated = self.monitor.violated
        self.outcome.transcript = "\n".join(self.lines) + "\n"
        return self.outcome

    # -- clients ------------------------------------------------------------------------

    def request(self, node: int, want: int, priority: int) -> None:
        busy = [*self.waiting.values(), *self.inside.values()]
        if not self.algorithm.many_clients and any(other.node == node for other in busy):
            raise Impossible(
                f"Node {self.called(node)} has a client already: {self.algorithm.name} takes one "
                f"at a time."
            )
        self.requests += 1
        request = Request(self.requests, node, want, priority)
        self.waiting[request.client] = request
        self.monitor.asks(request.client, priority)
        before = self.turn(node)
        self.nodes[node].request(request.client, want, priority)
        cause = {"client": request.client, "want": want, "priority": priority}
        self.step(node, f"asks for {want} with priority {priority}", before, "request", cause)

    def leave(self, node: int) -> bool:
        """Whoever has been inside longest at this node leaves; False if nobody is."""
        for request in self.inside.values():
            if request.node == node:
                self.leaves(request)
                return True
        return False

    def leaves(self, request: Request) -> None:
        del self.inside[request.client]
        self.monitor.leaves(request.want)
        if not self.on_the_way:
            self.monitor.quiet()
        tokens, permits = self.turn(request.node)
        self.nodes[request.node].release(request.client)
        cause = {"client": request.client}
        self.step(request.node, "leaves", (tokens, permits + request.want), "leave", cause)

    def withdraw(self, node: int) -> bool:
        """Whoever has waited longest at this node gives up; False if nobody waits."""
        for request in self.waiting.values():
            if request.node == node:
                break
        else:
            return False
        before = self.turn(node)
        if not self.nodes[node].withdraw(request.client):
            raise Impossible(f"{self.algorithm.name} cannot take a request back.")
        del self.waiting[request.client]
        self.monitor.withdraws(request.client)
        self.step(node, "gives up waiting", before, "withdraw", {"client": request.client})
        return True

    def finish(self) -> None:
        while self.settle() and self.inside:
            self.leaves(next(iter(self.inside.values())))

    # -- choices --------------------------------------------------------------------------

    def behave(self, nodes: list[int], word: str) -> None:
        """From now on these nodes choose this where the algorithm leaves a choice."""
        for me in nodes:
            names = self.choices(me)
            if not names:
                raise Impossible(
                    f"{self.algorithm.name} leaves its nodes no choice of behaviour: "
                    f"general-scheme with behaviour=random does."
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
        return node.choice_names if node.choices() > 1 else ()

    def turn(self, me: int) -> tuple[int, int]:
        """Node ``me`` is about to act: make its choice; and what has it, tokens and permits?"""
        node = self.nodes[me]
        count = node.choices()
        if count > 1:
            if me in self.behaviours:
                self.choice = self.behaviours[me]
            else:
                self.choice = int(self.lot() * count)
            node.choose(self.choice)
        else:
            self.choice = -1
        return node.tokens(), node.free_permits()

    # -- messages -------------------------------------------------------------------------

    def first(self, link: tuple[int, int], after: int = -1) -> int:
        """Where in the line the first message on this link is, behind place ``after``."""
        for place in range(after + 1, len(self.on_the_way)):
            message = self.on_the_way[place]
            if (message.sender, message.receiver) == link:
                return place
        return -1

    def deliver_one(self, sender: int, receiver: int) -> None:
        place = self.first((sender, receiver))
        if place < 0:
            raise Impossible(
                f"Nothing is on the way {self.called(sender)}->{self.called(receiver)}."
            )
        self.deliver(place)

    def overtake(self, sender: int, receiver: int) -> None:
        first = self.first((sender, receiver))
        second = self.first((sender, receiver), first) if first >= 0 else -1
        if second < 0:
            raise Impossible(
                f"Less than two are on the way {self.called(sender)}->{self.called(receiver)}."
            )
        if self.ordered:
            self.lines.append(f"  the link keeps the order, which {self.algorithm.name} needs")
        else:
            line = self.on_the_way
            line[first], line[second] = line[second], line[first]

    def settle(self) -> bool:
        """Deliver all there is, in the order sent; False if there is no end to it."""
        for _ in range(ENDLESS):
            places = [
                place
                for place, message in enumerate(self.on_the_way)
                if (message.sender, message.receiver) not in self.held
            ]
            if not places:
                return True
            self.deliver(places[0])
        self.lines.append(f"  after {ENDLESS} messages there is no end in sight")
        return False

    def deliver(self, place: int) -> None:
        message = self.on_the_way.pop(place)
        tokens, permits = self.turn(message.receiver)
        before = (tokens + message.tokens(), permits + message.permits())
        self.nodes[message.receiver].receive(message)
        text = f"gets {self.described(message)} from {self.called(message.sender)}"
        cause = {"id": message.serial, "from": message.sender, "message": message.kind}
        cause["args"] = dict(zip(message.fields, message.freeze()[1:], strict=True))
        self.step(message.receiver, text, before, "deliver", cause)

    # -- links ------------------------------------------------------------------------------

    def link_up(self, one: int, other: int) -> None:
        self.links.add((min(one, other), max(one, other)))
        self.links_changed()
        for node, peer in ((one, other), (other, one)):
            before = self.turn(node)
            self.nodes[node].link_up(peer)
            text = f"sees the link to {self.called(peer)} form"
            self.step(node, text, before, "link-up", self.about_link(peer))

    def link_down(self, one: int, other: int) -> None:
        between = f"{self.called(one)}-{self.called(other)}"
        if (min(one, other), max(one, other)) not in self.links:
            raise Impossible(f"There is no link {between}.")
        while self.first((one, other)) >= 0 or self.first((other, one)) >= 0:
            if self.now > ENDLESS:  # what arrives is answered, over the same link, without end
                raise Impossible(f"The link {between} never falls silent.")
            places = [self.first((one, other)), self.first((other, one))]
            place = min(place for place in places if place >= 0)
            if self.scenario.failures == "drain":
                self.deliver(place)
            else:
                self.take_off(place)
        self.links.remove((min(one, other), max(one, other)))
        self.links_changed()
        for node, peer in ((one, other), (other, one)):
            before = self.turn(node)
            self.nodes[node].link_down(peer)
            text = f"sees the link to {self.called(peer)} fail"
            self.step(node, text, before, "link-down", self.about_link(peer))

    def about_link(self, peer: int) -> dict[str, Any]:
        cause = {"peer": peer}
        if not self.monitor.connected:
            cause["components"] = 2  # at least: enough to know that it is cut
        return cause

    def take_off(self, place: int) -> None:
        """Off a failing link: tokens and permits come back, the rest is lost."""
        message = self.on_the_way.pop(place)
        sender, receiver = message.sender, message.receiver
        if not message.tokens() and not message.permits():
            way = f"from {self.called(sender)} to {self.called(receiver)}"
            self.lines.append(f"  {self.described(message)} {way} is lost")
            if self.trace is not None:
                self.trace.dropped(self.now, message)
            return
        tokens, permits = self.turn(sender)
        before = (tokens + message.tokens(), permits + message.permits())
        self.nodes[sender].undelivered(message)
        text = f"{self.described(message)} to {self.called(receiver)} comes back"
        cause = {"id": message.serial, "to": receiver, "message": message.kind}
        cause["args"] = dict(zip(message.fields, message.freeze()[1:], strict=True))
        self.step(sender, text, before, "undelivered", cause)

    def links_changed(self) -> None:
        whole = Graph(self.scenario.size, self.links).reached == self.scenario.size
        self.monitor.changed(whole)

    # -- steps --------------------------------------------------------------------------------

    def step(
        self, me: int, text: str, before: tuple[int, int], event: str, cause: dict[str, Any]
    ) -> None:
        """Write down and carry out what a handler of node ``me`` asked for."""
        node: Node = self.nodes[me]
        tokens, permits = before
        self.now += 1.0
        if names := self.choices(me):
            text += f" [{names[self.choice]}{'' if me in self.behaviours else ', drawn'}]"
        self.lines.append(f"  {self.called(me)}: {text}")
        for effect in self.out:
            if isinstance(effect, Message):
                self.send(effect)
                tokens -= effect.tokens()
                permits -= effect.permits()
            elif isinstance(effect, Enter):
                request = self.waiting.pop(effect.client)
                self.inside[request.client] = request
                self.outcome.entries.append(me)
                self.monitor.enters(self.now, me, request.client, request.want)
                permits -= request.want
                self.lines.append(f"     enters, {request.want} permit(s)")
        if self.algorithm.token:
            self.monitor.balance(
                self.now, me, tokens - node.tokens(), permits - node.free_permits()
            )
        if self.trace is not None:
            self.trace.step(self.now, event, node, cause, self.out, self.choice)
            for message in self.lost:
                self.trace.dropped(self.now, message)
        self.lost.clear()
        self.out.clear()

    def send(self, message: Message) -> None:
        one, other = message.sender, message.receiver
        message.serial = len(self.lines)  # every message has a line
        told = f"{self.described(message)} to {self.called(other)}"
        self.sent[message.kind] = self.sent.get(message.kind, 0) + 1
        if (min(one, other), max(one, other)) in self.links:
            self.hops += 1
            self.lines.append(f"     sends {told}")
        elif self.algorithm.routed:
            hops = self.network.distance(one, other)
            self.hops += hops
            self.lines.append(f"     sends {told}, over {hops} links")
        else:
            missing = f"there is no link to {self.called(other)}"
            self.lines.append(f"     loses {self.described(message)}: {missing}")
            self.lost.append(message)
            self.monitor.balance(self.now, one, message.tokens(), message.permits())
            return
        self.on_the_way.append(message)

    # -- what is seen ---------------------------------------------------------------------------

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
        words = [message.kind]
        names = message.names or ()
        for name, value in zip(message.fields, message.freeze()[1:], strict=True):
            if name in names and isinstance(value, int):
                words.append(f"{name}={self.called(value) if value != NIL else 'nil'}")
            else:
                words.append(f"{name}={shown(value)}")
        return " ".join(words)


def shown(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join([shown(part) for part in value]) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)
