"""A small run that somebody drives from the page: who asks, what arrives, which link fails.

Each action is played as a line of a scenario. What the nodes do is written as a trace, and the page
plays that trace like any other while it grows. A riddle is driven like any run: the referee of
``meshlock riddle`` judges the same actions, written as a schedule.
"""

from __future__ import annotations

from collections import Counter
from math import hypot
from random import Random
from tempfile import TemporaryFile
from typing import Any

import msgspec

from meshlock.algorithms.recovery.inside import refuse_unrecoverable
from meshlock.algorithms.registry import ALGORITHMS, find, with_defaults
from meshlock.check.riddles import Finding, Riddle
from meshlock.errors import Refused
from meshlock.properties import sentences
from meshlock.simulate.player import Player
from meshlock.simulate.scenario import Scenario
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.topology.specification import network
from meshlock.trace.writer import TraceWriter
from meshlock.web.index import Index

MOST_NODES = 40
MOST_PERMITS = 24
MOST_STEPS = 20_000
LEASE = 100
"""Units of time, of a run with members."""
RANGE = 0.42
"""How far a radio reaches on a field of side 1."""

TOPOLOGIES = ("range", "grid", "ring", "line", "star", "tree", "complete")


class Growing:
    """Takes the lines of a trace as they are written, and keeps their index."""

    def __init__(self) -> None:
        self.file = TemporaryFile()  # noqa: SIM115 - lives as long as the run
        self.index: Index | None = None

    def write(self, line: bytes) -> None:
        self.file.seek(0, 2)
        self.file.write(line)
        self.file.flush()
        if self.index is None:
            self.index = Index(msgspec.json.decode(line), self.file, len(line))
        else:
            self.index.feed(line)


class DrivenSetUp:
    """What somebody chose, checked."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.algorithm = find(str(asked.get("algorithm", "jiang")))
        self.topology = str(asked.get("topology", "range"))
        if self.topology not in TOPOLOGIES:
            raise Refused(f"The topology is one of {', '.join(TOPOLOGIES)}.")
        if self.algorithm.assumes.complete_graph:
            self.topology = "complete"
        self.nodes = whole(asked, "nodes", 8, 2, MOST_NODES)
        mutex = self.algorithm.problem == "mutex"
        self.permits = whole(asked, "permits", 1 if mutex else 3, 1, MOST_PERMITS)
        if mutex and self.permits != 1:
            raise Refused(
                f"{self.algorithm.name} shares one permit: set permits to 1, not {self.permits}."
            )
        self.seed = whole(asked, "seed", 1, 0, 1_000_000)
        self.members = whole(asked, "members", 0, 0, self.nodes)
        if self.members:
            refuse_unrecoverable(self.algorithm, with_defaults(self.algorithm, {}))
        self.changing = self.algorithm.assumes.changing_links or self.members > 0

    def places(self) -> list[tuple[float, float]]:
        """For a network by radio range: places from which everybody can be reached."""
        stream = Random(f"{self.seed}:places")
        places = [(0.5, 0.5)]
        while len(places) < self.nodes:
            x, y = 1.8 * stream.random() - 0.4, stream.random()
            near = [hypot(x - px, y - py) for px, py in places]
            apart = min(0.62 * RANGE, 0.8 / self.nodes**0.5)
            if apart < min(near) < RANGE * 0.9:
                places.append((round(x, 3), round(y, 3)))
        return places

    def links(self, places: list[tuple[float, float]]) -> list[tuple[int, int]]:
        if self.topology == "range":
            return [
                (one, other)
                for one in range(self.nodes)
                for other in range(one + 1, self.nodes)
                if within(places[one], places[other])
            ]
        spec = self.topology
        if spec == "grid":
            rows = max(n for n in range(1, int(self.nodes**0.5) + 1) if self.nodes % n == 0)
            spec = f"grid:{rows}x{self.nodes // rows}"
        return list(network(spec, self.nodes, self.seed).links())

    def script(self, places: list[tuple[float, float]]) -> str:
        """As the set-up of a scenario."""
        lines = [f"nodes {self.nodes}", f"permits {self.permits}", f"seed {self.seed}"]
        if self.members:
            lines += [f"members {self.members}", f"lease {LEASE}"]
        lines.append("links " + " ".join(f"{a}-{b}" for a, b in self.links(places)))
        return "\n".join(lines)


def within(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return hypot(one[0] - other[0], one[1] - other[1]) <= RANGE


def whole(asked: dict[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = asked.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Refused(f"{name} must be a whole number from {least} to {most}.")
    return value


LINES = {
    "ask": "request {node} want {want} priority {priority}",
    "leave": "leave {node} {nth}",
    "release": "release {node} {permits}",
    "raise": "raise {node} {priority}",
    "behaviour": "behaviour {node} {behaviour}",
    "cut": "link down {one}-{other}",
    "join": "link up {one}-{other}",
    "crash": "crash {node}",
    "restart": "restart {node} {disk}",
    "wait": "wait {time}",
}
"""Actions of the page as lines of a scenario."""

MOST_DRIVEN_CLIENTS = 1000
"""Inside at one node."""

MOST_DELIVERED = 300
"""Messages that one click delivers: some algorithms never fall silent."""


class PagePlayer(Player):
    """What cannot be done is refused without the place in a script."""

    def act(self, number: int, words: list[str]) -> None:
        self.does(number, words)

    def judge(self, expected: str, met: bool, seen: str) -> None:
        what = "waits" if "waits" in seen else "holds permits"
        raise Refused(f"No client {what} at node {expected.split()[1]}.")


class PageRun:
    """One such run."""

    def __init__(self, settled: DrivenSetUp) -> None:
        self.settled = settled
        self.actions: list[dict[str, Any]] = []
        self.lasts: list[int] = []  # the last step of each
        self.begin()

    def again(self) -> PageRun:
        """The same run at its beginning."""
        return PageRun(self.settled)

    def begin(self) -> None:
        settled = self.settled
        self.places = settled.places() if settled.topology == "range" else []
        self.trace = Growing()
        self.writer = TraceWriter(self.trace, True)
        scenario = Scenario("driven", settled.script(self.places))
        self.player = PagePlayer(scenario, settled.algorithm, self.writer)
        self.run = self.player.run
        for node, (x, y) in enumerate(self.places):
            self.writer.moved(0.0, node, x, y)
        self.failure = ""
        if settled.algorithm.serves.restless:
            self.run.start()

    @property
    def index(self) -> Index:
        assert self.trace.index is not None  # the run has written the set-up
        return self.trace.index

    # -- actions ----------------------------------------------------------------------------

    def perform(self, action: dict[str, Any]) -> None:
        """One action of the driver; refused with a sentence if it cannot be done."""
        verb = action.get("do")
        if verb == "undo":
            self.undo()
            return
        if self.failure:
            raise Refused("This run cannot go on: undo the last step, or start another run.")
        if self.index.steps > MOST_STEPS:
            raise Refused(f"This run has {MOST_STEPS} steps: save it and start another.")
        action = self.drawn(action)
        self.act(str(action.get("do")), action)
        self.actions.append(action)
        self.lasts.append(self.index.steps)

    def drawn(self, action: dict[str, Any]) -> dict[str, Any]:
        """What chance makes of an action that is left to it: after the same actions, the same."""
        if action.get("do") == "random request":
            return random_request(self, Random(f"{self.settled.seed}:{len(self.actions)}:request"))
        if action.get("do") == "random link":
            return random_link(self, Random(f"{self.settled.seed}:{len(self.actions)}:link"))
        return action

    def act(self, verb: str, action: dict[str, Any]) -> None:
        try:
            if verb in LINES:
                self.play(self.line(verb, action))
            elif verb == "deliver":
                self.arrives(self.place_of(action.get("id")))
            elif verb in ("next", "all"):
                self.deliver_next(1 if verb == "next" else MOST_DELIVERED)
            elif verb == "move":
                self.move(action)
            else:
                raise Refused(f"There is no step '{verb}'.")
        except Refused:
            raise
        except Exception as error:  # whatever a broken algorithm does, say it
            self.failure = f"a handler cannot go on: {type(error).__name__} {error}".rstrip()

    def undo(self) -> None:
        if not self.actions:
            raise Refused("There is nothing to undo.")
        actions = self.actions[:-1]
        self.begin()
        self.actions, self.lasts = [], []
        for action in actions:
            self.perform(action)

    def play(self, line: str) -> None:
        """One line of a scenario."""
        self.player.act(0, line.split())

    def line(self, verb: str, action: dict[str, Any]) -> str:
        """What the page asks for, as a line of a scenario; its numbers are within bounds."""
        template, settled = LINES[verb], self.settled
        last = settled.nodes - 1
        bounds = {
            **dict.fromkeys(("node", "one", "other"), (-1, 0, last)),
            **dict.fromkeys(("want", "permits"), (1, 1, settled.permits)),
            "priority": (0, 0, 1_000_000),
            "time": (LEASE // 4, 1, 100 * LEASE),
        }
        values: dict[str, Any] = {
            key: whole(action, key, *bound)
            for key, bound in bounds.items()
            if f"{{{key}}}" in template
        }
        self.refuse_unserved(verb, values)
        if "one" in values:
            values["one"], values["other"] = self.ends(values["one"], values["other"])
        values["behaviour"] = action.get("behaviour", "drawn")
        nth = whole(action, "nth", 1, 1, MOST_DRIVEN_CLIENTS)
        values["nth"] = nth if nth > 1 else ""  # of those inside at this node
        values["disk"] = "without disk" if action.get("disk") is False else ""
        return template.format(**values).strip()

    def refuse_unserved(self, verb: str, values: dict[str, Any]) -> None:
        algorithm = self.settled.algorithm
        if verb == "ask" and algorithm.problem != "h-of-k" and values["want"] != 1:
            raise Refused(f"{algorithm.name} grants one permit at a time.")
        if verb == "raise" and not algorithm.serves.priorities:
            raise Refused(f"{algorithm.name} has no priorities.")

    def refuse_fixed_links(self) -> None:
        if not self.settled.changing:
            raise Refused(f"{self.settled.algorithm.name} is for fixed networks: use jiang.")

    def ends(self, one: int, other: int) -> tuple[int, int]:
        self.refuse_fixed_links()
        if one == other:
            raise Refused("A link has two different ends.")
        return min(one, other), max(one, other)

    def place_of(self, number: object) -> int:
        """Where the message of this number is in the line."""
        for place, message in enumerate(self.run.on_the_way):
            if message.serial == number:
                if self.run.overtakes(place):
                    raise Refused(
                        f"Another message from {message.sender} to {message.receiver} is first, "
                        "and links keep the order."
                    )
                return place
        raise Refused("This message is no longer in flight.")

    def deliver_next(self, most: int) -> None:
        if not self.run.on_the_way:
            raise Refused("No message is in flight.")
        for _ in range(most):
            if self.run.on_the_way:
                self.arrives(0)

    def arrives(self, place: int) -> None:
        ways = [f"{one.sender}->{one.receiver}" for one in self.run.on_the_way[: place + 1]]
        self.play(f"deliver {ways[-1]} {ways.count(ways[-1])}")

    def move(self, action: dict[str, Any]) -> None:
        """A node goes elsewhere; its links follow what its radio reaches."""
        node = whole(action, "node", -1, 0, self.settled.nodes - 1)
        x, y = action.get("x"), action.get("y")
        if not self.places:
            raise Refused("Nodes can be moved only in a network by radio range.")
        if not isinstance(x, int | float) or not isinstance(y, int | float):
            raise Refused("A position is two numbers, x and y.")
        self.places[node] = (min(max(x, -2.0), 3.0), min(max(y, -2.0), 3.0))
        self.writer.moved(self.run.now, node, *self.places[node])
        if not self.settled.changing:
            return
        linked = {ends for ends in self.run.links if node in ends}
        reached = {
            (min(node, other), max(node, other))
            for other in range(self.settled.nodes)
            if other != node and within(self.places[node], self.places[other])
        }
        for one, other in sorted(reached - linked):
            self.run.link_up(one, other)
        for one, other in sorted(linked - reached):
            self.run.link_down(one, other)

    # -- for the page ---------------------------------------------------------------------------

    def stuck(self) -> str:
        """Does somebody wait although nothing can happen any more?"""
        run = self.run
        if run.on_the_way or run.inside or not run.waiting or self.settled.members:
            return ""
        return sentences.unserved(len(run.waiting))

    def parted(self) -> bool:
        return not self.run.monitor.connected

    def about(self) -> dict[str, Any]:
        about = self.index.about()
        algorithm = self.settled.algorithm
        served = "" if self.parted() else self.stuck()
        found = {one["property"] for one in about["violated"]}
        more = {**self.run.monitor.violated, "served": served, "handler": self.failure}
        about["violated"] = about["violated"] + [
            {"property": name, "sentence": text, "step": self.index.steps}
            for name, text in more.items()
            if text and name not in found
        ]
        about["driven"] = {
            "topology": self.settled.topology,
            "range": RANGE if self.places else 0,
            "changing": self.settled.changing,
            "members": self.settled.members,
            "one_permit": algorithm.problem != "h-of-k",
            "fifo": algorithm.assumes.fifo and not self.settled.members,
            "priorities": algorithm.serves.priorities,
            "parted": self.parted(),
            "behaviours": self.run.behaviours,
            "actions": len(self.actions),
        }
        return about

    def closing(self) -> bytes:
        """The last line of the saved trace, if nothing more can happen."""
        run = self.run
        if run.on_the_way or run.inside or self.settled.members:
            return b""
        line = {"t": run.now, "event": "end", "unserved": len(run.waiting)}
        return msgspec.json.encode(line) + b"\n"


def random_request(page: PageRun, stream: Random) -> dict[str, Any]:
    """Of a node that has none yet."""
    run, algorithm = page.run, page.settled.algorithm
    busy = {client.node for clients in (run.waiting, run.inside) for client in clients.values()}
    idle = [node for node in range(page.settled.nodes) if node not in busy and run.is_up(node)]
    if not idle:
        raise Refused("Every node waits or is inside: let some of them leave first.")
    most = page.settled.permits if algorithm.problem == "h-of-k" else 1
    priority = stream.randint(0, 9) if algorithm.serves.priorities else 0
    action = {"do": "ask", "node": stream.choice(idle), "want": stream.randint(1, most)}
    return {**action, "priority": priority}


def random_link(page: PageRun, stream: Random) -> dict[str, Any]:
    """A link fails that is not the only way, or one forms again."""
    run = page.run
    page.refuse_fixed_links()
    up = run.links
    graph = LiveGraph(page.settled.nodes, up)
    bridges = [link for link in up if graph.components > 1 or graph.bridge(*link)]
    changes = [("cut", link) for link in sorted(up) if link not in bridges]
    lost = set(run.network.links()) - up
    changes += [("join", link) for link in sorted(lost)]
    if not changes:
        raise Refused("Every link is the only way between two parts of the network.")
    verb, (one, other) = stream.choice(changes)
    return {"do": verb, "one": one, "other": other}


def choices() -> list[dict[str, Any]]:
    """The algorithms that can be driven from the page."""
    return [
        {
            "name": entry.name,
            "title": entry.title,
            "mutex": entry.problem == "mutex",
            "complete": entry.assumes.complete_graph,
            "token": entry.serves.token and not entry.serves.restless,
        }
        for entry in ALGORITHMS.values()
    ]


class Given(DrivenSetUp):
    """The riddle's own set-up."""

    def __init__(self, riddle: Riddle) -> None:
        self.riddle = riddle
        self.algorithm = riddle.mutant.algorithm
        self.topology = "riddle"
        self.nodes = riddle.setup.network.size
        self.permits = riddle.setup.permits
        self.seed = 1
        self.members = 0
        self.changing = bool(riddle.changes)

    def script(self, places: list[tuple[float, float]]) -> str:
        return self.riddle.script()


class RiddleRun(PageRun):
    def __init__(self, riddle: Riddle) -> None:
        self.riddle = riddle
        self.solved = False  # or given up: what is wrong is no secret any more
        super().__init__(Given(riddle))

    def again(self) -> PageRun:
        return RiddleRun(self.riddle)

    def begin(self) -> None:
        self.schedule: list[str] = []
        self.finding = Finding({}, 0, "")
        super().begin()

    # -- actions ----------------------------------------------------------------------------

    def act(self, verb: str, action: dict[str, Any]) -> None:
        if verb not in ("ask", "leave", "behaviour", "deliver", "next", "all", "cut", "join"):
            raise Refused("This does not happen in a riddle.")
        if self.finding.violated:
            raise Refused("It is found: take the last step back, or choose another riddle.")
        schedule = list(self.schedule)
        try:
            super().act(verb, action)
        except Refused as error:
            self.schedule = schedule
            raise Refused(self.riddle.hidden(str(error))) from None
        self.finding = self.riddle.judge("\n".join(self.schedule) + "\n")
        self.solved = self.solved or bool(self.finding.violated)

    def drawn(self, action: dict[str, Any]) -> dict[str, Any]:
        if str(action.get("do")).startswith("random"):
            raise Refused("A riddle has no random steps.")
        return action

    def play(self, line: str) -> None:
        if line.startswith("request") and self.left()[line] < 1:
            raise Refused(f"'{line}' is not in this riddle, or not so often.")
        if line.startswith("link") and self.changes_left()[:1] != [line]:
            order = ", ".join(self.riddle.changes) or "never"
            raise Refused(f"Links change in this order only: {order}.")
        self.schedule.append(line)
        super().play(line)

    def left(self) -> Counter[str]:
        """Requests that may still be made, as actions."""
        return Counter(self.riddle.requests) - Counter(self.schedule)

    def changes_left(self) -> list[str]:
        done = sum(line.startswith("link ") for line in self.schedule)
        return self.riddle.changes[done:]

    # -- for the page ---------------------------------------------------------------------------

    def hidden(self) -> bool:
        """Would its name and its code give the mistake away?"""
        return not self.solved

    def about(self) -> dict[str, Any]:
        about = super().about()
        riddle, finding = self.riddle, self.finding
        about["setup"] = {**about["setup"], "algorithm": riddle.algorithm}
        about["violated"] = [
            {"property": name, "sentence": riddle.hidden(text), "step": finding.steps}
            for name, text in finding.violated.items()
        ]
        left, requests = self.left(), dict.fromkeys(riddle.requests)
        about["riddle"] = {
            "number": riddle.number,
            "algorithm": riddle.algorithm,
            "requests": [{"text": request, "left": left[request]} for request in requests],
            "changes": self.changes_left(),
            "found": bool(finding.violated),
            "hidden": self.hidden(),
        }
        return about

    def solution(self) -> dict[str, Any]:
        """The mistake and the checker's story; from now on nothing is hidden."""
        actions, story = self.riddle.solution
        self.solved = True
        return {"mistake": self.riddle.mistake(), "story": story, "schedule": actions.splitlines()}
