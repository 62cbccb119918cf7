"""Drive the nodes of any algorithm by hand, one step at a time, and write down what they do.

A scenario is a short text: a set-up, then one line per deed of the director, then what is
expected of the clients. Since it names no message, every algorithm can play it::

    # J10 Two clients fit and only one is let in
    nodes 2
    links 0-1
    permits 3

    request 0 want 1 priority 1
    request 1 want 1 priority 1
    settle
    expect inside 0 1
    finish
    expect served

===============================  =========================================================
request N [want H] [priority P]  a client of node N asks for H permits
leave N                          the client inside N leaves (it is expected to be inside)
deliver A->B                     the first message on the way from A to B arrives
overtake A->B                    the second message from A to B passes the first
hold A->B, let go A->B           settle leaves this link alone, or no longer does
settle                           everything on its way arrives, in the order it was sent
link up A-B, link down A-B       both ends notice; what is on a failing link arrives first
finish                           settle; whoever has been inside longest leaves; and so on
expect served                    nobody waits
expect entries N N ...           clients have entered in this order and no others
expect before A B                A's client has entered and B's had not before it
expect inside N ...              exactly these nodes have a client inside
===============================  =========================================================

``option NAME=VALUE`` in the set-up holds for algorithms that have the option;
``unordered NAME`` says that the authors of algorithm NAME claim to need no FIFO links, so
there ``overtake`` happens. For all others that need FIFO, the link puts things right.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from meshlock.algorithms.interface import Algorithm, Effect, Enter, Message, Node
from meshlock.algorithms.registry import Refused, find, refuse_impossible, settle
from meshlock.properties.monitor import Monitor
from meshlock.properties.promises import promises
from meshlock.topology.graphs import Graph
from meshlock.trace.writer import TraceWriter

FOLDER = Path(__file__).parent / "scenarios"

ENDLESS = 10_000
"""So many messages without a client entering or leaving are taken for messages for ever."""


class Scenario:
    """A script that has been read: its set-up, and the director's lines with their numbers."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.title = ""
        self.size = 0
        self.links: list[tuple[int, int]] = []
        self.permits = 1
        self.options: dict[str, str] = {}
        self.unordered: set[str] = set()
        self.lines: list[tuple[int, list[str]]] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("#") and not self.title:
                self.title = line.strip("# ").removeprefix(f"{name} ")
            words = line.partition("#")[0].split()
            if words and not self.reads_set_up(number, words):
                self.lines.append((number, words))
        if self.size < 1:
            raise Refused(f"Scenario {name} has no line 'nodes COUNT'.")
        self.changing = any(words[0] == "link" for _, words in self.lines)
        self.wants = [1]
        for number, words in self.lines:
            if words[0] == "request" and "want" in words[:-1]:
                self.wants.append(self.whole(number, words[words.index("want") + 1]))

    def reads_set_up(self, number: int, words: list[str]) -> bool:
        if words[0] == "nodes" and len(words) == 2:
            self.size = self.whole(number, words[1])
        elif words[0] == "permits" and len(words) == 2:
            self.permits = self.whole(number, words[1])
        elif words[0] == "links":
            self.links += [self.link(number, word) for word in words[1:]]
        elif words[0] == "option" and len(words) == 2 and "=" in words[1]:
            option, _, value = words[1].partition("=")
            self.options[option] = value
        elif words[0] == "unordered":
            self.unordered.update(words[1:])
        else:
            return False
        return True

    def wrong(self, number: int, text: str) -> Refused:
        return Refused(f"Scenario {self.name}, line {number}: {text}")

    def whole(self, number: int, word: str) -> int:
        if not word.isdigit():
            raise self.wrong(number, f"'{word}' should be a whole number.")
        return int(word)

    def node(self, number: int, word: str) -> int:
        node = self.whole(number, word)
        if node >= self.size:
            raise self.wrong(number, f"there is no node {node}: the last is {self.size - 1}.")
        return node

    def link(self, number: int, word: str, between: str = "-") -> tuple[int, int]:
        one, found, other = word.partition(between)
        if not found:
            raise self.wrong(number, f"'{word}' should be a link such as 0{between}1.")
        return self.node(number, one), self.node(number, other)


class Outcome:
    """How it went."""

    def __init__(self, scenario: Scenario, algorithm: Algorithm) -> None:
        self.scenario = scenario
        self.algorithm = algorithm
        self.entries: list[int] = []  # nodes, in the order in which their clients entered
        self.unserved: list[int] = []  # nodes whose client waits for ever
        self.violated: dict[str, str] = {}
        self.unmet: list[str] = []  # the expectations that were not met
        self.transcript = ""

    @property
    def good(self) -> bool:
        return not (self.unserved or self.violated or self.unmet)

    def figures(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.name,
            "title": self.scenario.title,
            "algorithm": self.algorithm.name,
            "entries": self.entries,
            "unserved": self.unserved,
            "violated": self.violated,
            "unmet": self.unmet,
            "good": self.good,
            "transcript": self.transcript.splitlines(),
        }


class Request:
    """What a client asked for."""

    def __init__(self, client: int, node: int, want: int, priority: int) -> None:
        self.client = client
        self.node = node
        self.want = want
        self.priority = priority


class Director:
    def __init__(
        self, scenario: Scenario, algorithm: Algorithm, trace: TraceWriter | None = None
    ) -> None:
        refuse_impossible(
            algorithm,
            permits=scenario.permits,
            want=max(scenario.wants),
            complete=len(set(scenario.links)) * 2 == scenario.size * (scenario.size - 1),
            fifo=True,
            changing=scenario.changing,
        )
        given = {key: value for key, value in scenario.options.items() if key in algorithm.options}
        self.options = settle(algorithm, given)
        self.scenario = scenario
        self.algorithm = algorithm
        self.ordered = algorithm.needs_fifo and algorithm.name not in scenario.unordered
        self.out: list[Effect] = []
        self.network = Graph(scenario.size, scenario.links)
        self.nodes = algorithm.make(self.network, scenario.permits, self.options, self.out)
        self.links = set(self.network.links())
        self.on_the_way: list[Message] = []  # in the order in which they were sent
        self.lost: list[Message] = []  # in this step
        self.held: set[tuple[int, int]] = set()
        self.promises = promises(algorithm, self.options)
        self.monitor = Monitor(scenario.permits, self.promises)
        self.waiting: dict[int, Request] = {}  # by client
        self.inside: dict[int, Request] = {}  # by client, in the order of entry
        self.requests = 0
        self.now = 0.0
        self.outcome = Outcome(scenario, algorithm)
        self.lines: list[str] = []
        self.trace = trace
        if trace is not None:
            self.begin_trace(trace)

    def begin_trace(self, trace: TraceWriter) -> None:
        from meshlock import __version__

        setup = {
            "version": __version__,
            "source": "simulate",
            "scenario": self.scenario.name,
            "algorithm": self.algorithm.name,
            "options": self.options,
            **self.promises.line(),
        }
        pairs = list(self.network.links())
        trace.begin(setup, self.network, pairs, self.scenario.permits, self.nodes)

    # -- the script -------------------------------------------------------------------

    def play(self) -> Outcome:
        for number, words in self.scenario.lines:
            self.lines.append(f"> {' '.join(words)}")
            self.act(number, words)
        outcome = self.outcome
        outcome.unserved = [request.node for request in self.waiting.values()]
        self.monitor.ends(self.now, len(self.waiting))
        outcome.violated = self.monitor.violated
        outcome.transcript = "\n".join(self.lines) + "\n"
        if self.trace is not None:
            self.trace.end(self.now, len(self.waiting), self.monitor.violated)
        return outcome

    def act(self, number: int, words: list[str]) -> None:
        scenario = self.scenario
        verb = words[0] if words[0] not in ("link", "let") else " ".join(words[:2])
        rest = words[len(verb.split()) :]
        if verb == "request" and rest:
            self.request(number, rest)
        elif verb == "leave" and len(rest) == 1:
            self.leave(scenario.node(number, rest[0]))
        elif verb == "deliver" and len(rest) == 1:
            self.deliver_one(number, scenario.link(number, rest[0], "->"))
        elif verb == "overtake" and len(rest) == 1:
            self.overtake(number, scenario.link(number, rest[0], "->"))
        elif verb == "hold" and len(rest) == 1:
            self.held.add(scenario.link(number, rest[0], "->"))
        elif verb == "let go" and len(rest) == 1:
            self.held.discard(scenario.link(number, rest[0], "->"))
        elif verb == "settle" and not rest:
            self.settle()
        elif verb == "link up" and len(rest) == 1:
            self.link_up(*scenario.link(number, rest[0]))
        elif verb == "link down" and len(rest) == 1:
            self.link_down(number, *scenario.link(number, rest[0]))
        elif verb == "finish" and not rest:
            self.finish()
        elif verb == "expect" and rest:
            self.expect(number, rest)
        else:
            raise scenario.wrong(number, f"cannot do '{' '.join(words)}'.")

    # -- clients ------------------------------------------------------------------------

    def request(self, number: int, words: list[str]) -> None:
        node = self.scenario.node(number, words[0])
        want, priority = 1, 0
        for key, value in zip(words[1::2], words[2::2], strict=False):
            if key == "want":
                want = self.scenario.whole(number, value)
            elif key == "priority":
                priority = self.scenario.whole(number, value)
            else:
                raise self.scenario.wrong(number, f"a request has want and priority, not '{key}'.")
        busy = [*self.waiting.values(), *self.inside.values()]
        if not self.algorithm.many_clients and any(other.node == node for other in busy):
            raise self.scenario.wrong(number, f"node {node} has a client already.")
        self.requests += 1
        request = Request(self.requests, node, want, priority)
        self.waiting[request.client] = request
        self.monitor.asks(request.client, priority)
        before = self.before(node)
        self.nodes[node].request(request.client, want, priority)
        cause = {"client": request.client, "want": want, "priority": priority}
        self.step(node, f"asks for {want} with priority {priority}", before, "request", cause)

    def leave(self, node: int) -> None:
        for request in self.inside.values():
            if request.node == node:
                self.leaves(request)
                return
        self.judge(f"leave {node}", False, "nobody is inside there")

    def leaves(self, request: Request) -> None:
        del self.inside[request.client]
        self.monitor.leaves(request.want)
        if not self.on_the_way:
            self.monitor.quiet()
        tokens, permits = self.before(request.node)
        self.nodes[request.node].release(request.client)
        cause = {"client": request.client}
        self.step(request.node, "leaves", (tokens, permits + request.want), "leave", cause)

    def finish(self) -> None:
        while self.settle() and self.inside:
            self.leaves(next(iter(self.inside.values())))

    # -- messages -------------------------------------------------------------------------

    def first(self, link: tuple[int, int], after: int = -1) -> int:
        """Where in the line the first message on this link is, behind place ``after``."""
        for place in range(after + 1, len(self.on_the_way)):
            message = self.on_the_way[place]
            if (message.sender, message.receiver) == link:
                return place
        return -1

    def deliver_one(self, number: int, link: tuple[int, int]) -> None:
        place = self.first(link)
        if place < 0:
            raise self.scenario.wrong(number, f"nothing is on the way {link[0]}->{link[1]}.")
        self.deliver(place)

    def overtake(self, number: int, link: tuple[int, int]) -> None:
        first = self.first(link)
        second = self.first(link, first) if first >= 0 else -1
        if second < 0:
            raise self.scenario.wrong(number, f"less than two are on the way {link[0]}->{link[1]}.")
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
        tokens, permits = self.before(message.receiver)
        before = (tokens + message.tokens(), permits + message.permits())
        self.nodes[message.receiver].receive(message)
        text = f"gets {described(message)} from {message.sender}"
        cause = {"id": message.serial, "from": message.sender, "message": message.kind}
        cause["args"] = dict(zip(message.fields, message.freeze()[1:], strict=True))
        self.step(message.receiver, text, before, "deliver", cause)

    # -- links ------------------------------------------------------------------------------

    def link_up(self, one: int, other: int) -> None:
        self.links.add((min(one, other), max(one, other)))
        self.links_changed()
        for node, peer in ((one, other), (other, one)):
            before = self.before(node)
            self.nodes[node].link_up(peer)
            self.step(node, f"sees the link to {peer} form", before, "link-up", {"peer": peer})

    def link_down(self, number: int, one: int, other: int) -> None:
        if (min(one, other), max(one, other)) not in self.links:
            raise self.scenario.wrong(number, f"there is no link {one}-{other}.")
        while self.first((one, other)) >= 0 or self.first((other, one)) >= 0:
            if self.now > ENDLESS:  # what arrives is answered, over the same link, without end
                raise self.scenario.wrong(number, f"the link {one}-{other} never falls silent.")
            places = [self.first((one, other)), self.first((other, one))]
            self.deliver(min(place for place in places if place >= 0))
        self.links.remove((min(one, other), max(one, other)))
        self.links_changed()
        for node, peer in ((one, other), (other, one)):
            before = self.before(node)
            self.nodes[node].link_down(peer)
            self.step(node, f"sees the link to {peer} fail", before, "link-down", {"peer": peer})

    def links_changed(self) -> None:
        whole = Graph(self.scenario.size, self.links).reached == self.scenario.size
        self.monitor.changed(whole)

    # -- steps --------------------------------------------------------------------------------

    def before(self, node: int) -> tuple[int, int]:
        return self.nodes[node].tokens(), self.nodes[node].free_permits()

    def step(
        self, me: int, text: str, before: tuple[int, int], event: str, cause: dict[str, Any]
    ) -> None:
        """Write down and carry out what a handler of node ``me`` asked for."""
        node: Node = self.nodes[me]
        tokens, permits = before
        self.now += 1.0
        self.lines.append(f"  {me}: {text}")
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
            self.trace.step(self.now, event, node, cause, self.out)
            for message in self.lost:
                self.trace.dropped(self.now, message)
        self.lost.clear()
        self.out.clear()

    def send(self, message: Message) -> None:
        one, other = message.sender, message.receiver
        message.serial = len(self.lines)  # every message has a line
        if self.algorithm.routed or (min(one, other), max(one, other)) in self.links:
            self.on_the_way.append(message)
            self.lines.append(f"     sends {described(message)} to {other}")
        else:
            self.lines.append(f"     loses {described(message)}: there is no link to {other}")
            self.lost.append(message)
            self.monitor.balance(self.now, one, message.tokens(), message.permits())

    # -- expectations ---------------------------------------------------------------------------

    def expect(self, number: int, words: list[str]) -> None:
        nodes = [self.scenario.node(number, word) for word in words[1:]]
        entries = self.outcome.entries
        if words[0] == "served":
            waiting = [request.node for request in self.waiting.values()]
            met, seen = not waiting, f"waiting for ever: {listed(waiting)}"
        elif words[0] == "entries":
            met, seen = entries == nodes, f"entered: {listed(entries)}"
        elif words[0] == "before" and len(nodes) == 2:
            one, other = nodes
            first = entries[: entries.index(other)] if other in entries else entries
            met, seen = one in first, f"entered: {listed(entries)}"
        elif words[0] == "inside":
            inside = sorted(request.node for request in self.inside.values())
            met, seen = inside == sorted(nodes), f"inside: {listed(inside)}"
        else:
            raise self.scenario.wrong(number, f"cannot expect '{' '.join(words)}'.")
        self.judge(" ".join(words), met, seen)

    def judge(self, expected: str, met: bool, seen: str) -> None:
        self.lines.append("  yes" if met else f"  NO, {seen}")
        if not met:
            self.outcome.unmet.append(f"{expected}: no, {seen}")


def listed(nodes: list[int]) -> str:
    return " ".join(str(node) for node in nodes) or "nobody"


def described(message: Message) -> str:
    values = dict(zip(message.fields, message.freeze()[1:], strict=True))
    return " ".join([message.kind, *[f"{name}={shown(values[name])}" for name in values]])


def shown(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join(shown(part) for part in value) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)


def names() -> list[str]:
    """The scenarios that come with meshlock, in the order of their numbers."""
    found = [path.stem for path in FOLDER.glob("*.txt")]
    return sorted(found, key=lambda name: (len(name.rstrip("b")), name))


def scenario(name: str) -> Scenario:
    """A scenario by its name, or by the path of its file."""
    path = FOLDER / f"{name}.txt" if name in names() else Path(name)
    if path.suffix != ".txt":
        raise Refused(f"There is no scenario '{name}': choose one of {', '.join(names())}.")
    try:
        return Scenario(path.stem, path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"Cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Refused(f"{path} is not a text.") from None


def play(name: str, algorithm: str, trace: TraceWriter | None = None) -> Outcome:
    return Director(scenario(name), find(algorithm), trace).play()
