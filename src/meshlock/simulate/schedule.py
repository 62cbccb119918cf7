"""A run as a list of actions: who asked, what was delivered, who left, which link changed.

Any trace is such a list. Played again (:mod:`.player`) it must give the same run, since
algorithms are deterministic; with actions left out it gives a smaller run, which is how a failure
is made small: fewer actions, fewer nodes, the same failure.

Actions are left out in ever smaller pieces (delta debugging); whatever has become impossible
is left out too, every message then arrives and every client leaves, and the piece stays out if a
property that was violated still is. Nodes that nothing happens at any more are taken away
as long as the rest hangs together. What remains cannot lose a single action.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from meshlock.algorithms.actor import NIL, Algorithm
from meshlock.algorithms.registry import find
from meshlock.algorithms.steps import UNIT
from meshlock.errors import Refused, setting
from meshlock.simulate.driven import DrivenRun
from meshlock.simulate.player import Player
from meshlock.simulate.rerun import refuse_too_large
from meshlock.simulate.scenario import Scenario, drawn
from meshlock.topology.graphs import Graph
from meshlock.trace.reader import CAUSES, UNSAID, Trace, TraceLine
from meshlock.world.scripted import Impossible

NONE = (-1, -1)
"""No link."""


@dataclass
class Action:
    """One line of a scenario, and the nodes it is about."""

    verb: str
    one: int
    other: int = -1
    rest: str = ""  # of a request: want and priority; of a delivery: which message; ...
    choice: int = -1  # what the outside chose before, where there was a choice

    def text(self) -> str:
        about = f"{self.one}" if self.one >= 0 else ""
        if self.verb in ("deliver", "overtake", "lose", "notice"):
            about += f"->{self.other}"
        elif self.verb in ("link up", "link down"):
            about += f"-{self.other}"
        return " ".join([part for part in (self.verb, about, self.rest) if part])

    def renamed(self, names: dict[int, int]) -> Action:
        return replace(self, one=names[self.one], other=names.get(self.other, -1))

    @property
    def node(self) -> int:
        """Whose handler runs."""
        return self.other if self.verb == "deliver" else self.one


@dataclass
class Schedule:
    algorithm: Algorithm
    setup: list[str]  # the other lines of a scenario's set-up
    size: int
    links: list[tuple[int, int]]
    tree: list[int]  # the father of each node at the start; empty: not said
    actions: list[Action]

    def but(self, actions: list[Action]) -> Schedule:
        """The same set-up with other actions."""
        return replace(self, actions=actions)

    @property
    def leased(self) -> bool:
        return any(line.startswith("members ") for line in self.setup)

    @property
    def custody(self) -> bool:
        return "failures custody" in self.setup

    def script(self, title: str, actions: bool = True) -> str:
        """As a scenario file."""
        lines = [f"# {title}", f"nodes {self.size}"]
        lines.append("links " + " ".join(f"{one}-{other}" for one, other in self.links))
        if self.tree:
            lines.append(f"tree {drawn(self.tree, 0)}")
        lines += [*self.setup, f"algorithm {self.algorithm.name}"]
        if actions:
            lines += ["", *self.actions_with_choices()]
        return "\n".join(lines) + "\n"

    def actions_with_choices(self) -> list[str]:
        """A line per action, and one before it where its node chooses otherwise than before."""
        lines: list[str] = []
        chosen: dict[int, int] = {}
        for action in self.actions:
            if action.choice >= 0 and chosen.get(action.node) != action.choice:
                chosen[action.node] = action.choice
                lines.append(f"behaviour {action.node} {self.choice_names()[action.choice]}")
            lines.append(action.text())
        return lines

    def choice_names(self) -> tuple[str, ...]:
        run = DrivenRun(Scenario("replay", self.script("replay", actions=False)), self.algorithm)
        return run.choices(0)

    def play(self, strict: bool) -> Play:
        return Play(self, strict)


class Play(Player):
    """A schedule played again; unless strict, what cannot be done is left out."""

    def __init__(self, schedule: Schedule, strict: bool) -> None:
        scenario = Scenario("replay", schedule.script("replay", actions=False))
        scenario.changing = any(
            action.verb == "notice" or action.verb.startswith("link") for action in schedule.actions
        )
        super().__init__(scenario, schedule.algorithm)
        self.done: list[Action] = []
        for number, action in enumerate(schedule.actions, start=1):
            if self.does_again(number, action):
                self.done.append(action)
            elif strict:
                raise Refused(f"Step {number} of the trace, '{action.text()}', cannot be done.")

    def does_again(self, number: int, action: Action) -> bool:
        """Do it, if that is possible in the run as it stands."""
        run = self.run
        if action.verb == "request" and run.is_busy(action.one):
            return False
        if action.choice >= 0:
            run.behaviours[action.node] = action.choice
        run.lines.append(f"> {action.text()}")
        try:
            self.attempt(number, action.text().split())
        except Impossible:
            run.lines.pop()
            return False
        return True

    def finish(self) -> None:
        """Let every message arrive and every client leave."""
        self.run.lines.append("> finish")
        self.run.finish()

    def outcome(self) -> DrivenRun:
        run = self.run
        if not run.on_the_way and not run.inside:
            run.end()
        return run


# -- from a trace ---------------------------------------------------------------------------


class Reading:
    """A trace turned into actions."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.leased = "recovery" in trace.setup
        self.live = trace.setup.get("source") == "live"
        self.custody = self.live or trace.setup.get("failures") == "custody"
        self.pairs = first_links(trace)
        self.links = set(self.pairs)  # as they are now
        self.lines: dict[tuple[int, int], list[int]] = {}  # link: ids of what is on it
        self.sent: set[int] = set()  # ids of what was sent since the last cause
        self.inside: dict[int, list[int]] = {}  # node: clients inside, in the order of entry
        self.waiting: dict[int, list[int]] = {}  # node: clients that wait, in the order of asking
        self.down: set[int] = set()
        self.now = 0.0
        self.actions: list[Action] = []
        self.entries: list[int] = []
        self.failures = "custody" if self.custody else "drain"
        for line in trace.events():
            self.event(line)

    def written(self, amount: int) -> str:
        """Of permits."""
        return str(amount) if self.trace.kinds is None else self.trace.kinds.write(amount)

    def event(self, line: TraceLine) -> None:
        kind, node = line.event, line.node
        if kind == "send":
            self.lines.setdefault((node, line.to), []).append(line.id)
            self.sent.add(line.id)
        elif kind == "enter":
            self.entries.append(node)
            went(self.waiting, node, line.client)
            self.inside.setdefault(node, []).append(line.client)
        elif kind == "lease-lost":
            went(self.inside, node, line.client)
        elif kind in ("undelivered", "drop"):
            self.taken_off(line)
        elif kind in CAUSES:
            self.sent.clear()
            self.cause(kind, node, line)

    def cause(self, kind: str, node: int, line: TraceLine) -> None:
        if self.leased and kind in ("crash", "restart", "timer", "start"):
            self.life(kind, node, line)
        elif kind == "request":
            self.waiting.setdefault(node, []).append(line.client)
            self.add(line, "request", f"want {self.written(line.want)} priority {line.counts()}")
        elif kind == "leave":
            self.add(line, "leave", number_of(went(self.inside, node, line.client)))
        elif kind == "deliver":
            self.delivered(line)
        elif kind in ("link-up", "link-down"):
            self.link(line, kind == "link-up")
        elif kind == "withdraw":
            place = number_of(went(self.waiting, node, line.client))
            if not line.crash:
                self.add(line, "withdraw", place)
        elif kind == "give-back":
            place = self.place_in(self.inside, line)
            self.add(line, "release", f"{self.written(line.permits)} {place}".strip())
        elif kind == "priority":
            place = self.place_in(self.waiting, line)
            self.add(line, "raise", f"{line.counts()} {place}".strip())
        else:
            raise Refused(f"A trace with '{kind}' events cannot be replayed.")

    def life(self, kind: str, node: int, line: TraceLine) -> None:
        if kind == "crash":
            self.add(line, "crash")
            self.down.add(node)
            self.inside.pop(node, None)
            self.waiting.pop(node, None)
            self.links = {pair for pair in self.links if node not in pair}
        elif kind == "restart":
            self.add(line, "restart", "without links" + ("" if line.disk else " disk"))
            self.down.discard(node)
        elif kind == "timer":
            if line.unreachable is not None:
                self.add(line, "unreachable", " ".join(map(str, line.unreachable)))
            if line.resize != UNSAID:
                self.add(line, "resize", str(line.resize))
            for verb, other in (("add", line.add), ("remove", line.remove)):
                if other != UNSAID:
                    self.add(line, "member", f"{verb} {other}")
            self.add(line, "wake", f"chance {line.chance!r}")

    def place_in(self, clients: dict[int, list[int]], line: TraceLine) -> str:
        """Which of the clients of its node the line is about."""
        here = clients.get(line.node, [])
        if line.client not in here:
            raise self.trace.bad(f"is about client {line.client}, which is not there")
        return number_of(here.index(line.client))

    def add(self, line: TraceLine, verb: str, rest: str = "", ends: tuple[int, int] = NONE) -> None:
        """``ends``: of a link or a way; else the action is about the line's node alone."""
        if self.leased and line.t != self.now:
            self.now = line.t
            self.actions.append(Action("time", -1, -1, repr(line.t)))
        one, other = (line.node, -1) if ends == NONE else ends
        self.actions.append(Action(verb, one, other, rest))
        if verb not in ("overtake", "lose", "unreachable", "resize", "member"):
            self.actions[-1].choice = line.choice

    def link(self, line: TraceLine, up: bool) -> None:
        """Both ends have a line; those of a crash, and of the start, are no actions."""
        node, peer = line.node, line.peer
        if self.custody:
            self.add(line, "notice", "up" if up else "down", (node, peer))
            return
        pair = (min(node, peer), max(node, peer))
        if node > peer or peer in self.down or up == (pair in self.links):
            return
        self.add(line, "link up" if up else "link down", "", (node, peer))
        if up:
            self.links.add(pair)
        else:
            self.links.discard(pair)

    def taken_off(self, line: TraceLine) -> None:
        """A message comes back or is lost: its link fails next, unless there was none."""
        number = line.id
        for (one, other), on_link in self.lines.items():
            if number in on_link:
                if self.custody or (self.leased and number not in self.sent):
                    self.add(line, "lose", number_of(on_link.index(number)), (one, other))
                on_link.remove(number)
                if not self.custody and (min(one, other), max(one, other)) in self.links:
                    self.failures = "return"
                return
        raise self.trace.bad(f"message {number} comes back or is lost, but is not on its way")

    def delivered(self, line: TraceLine) -> None:
        way = (line.sender, line.node)
        on_link = self.lines.get(way, [])
        if line.id not in on_link:
            raise self.trace.bad(f"delivers message {line.id}, which is not on its way")
        place = on_link.index(line.id)
        on_link.remove(line.id)
        if place == 1 and not self.leased and not self.custody:
            self.add(line, "overtake", "", way)
            place = 0
        self.add(line, "deliver", number_of(place), way)


def went(clients: dict[int, list[int]], node: int, client: int) -> int:
    """A client is inside, or waits, no more: which of them was it?"""
    here = clients.get(node, [])
    place = here.index(client) if client in here else 0
    if client in here:
        here.remove(client)
    return place


def number_of(place: int) -> str:
    """As a script says which one; nothing for the first."""
    return str(place + 1) if place > 0 else ""


def first_links(trace: Trace) -> list[tuple[int, int]]:
    size, links = trace.nodes, trace.setup.get("links")
    if links == "complete":
        return [(one, other) for one in range(size) for other in range(one + 1, size)]
    if isinstance(links, list):
        return [(int(one), int(other)) for one, other in links]
    raise Refused("The trace does not say which links there are.")


def layer_lines(trace: Trace) -> list[str]:
    """What a scenario says of members, leases and clocks; nothing for plain nodes."""
    recovery = trace.setup.get("recovery")
    if not isinstance(recovery, dict):
        return []
    rates = recovery.get("rates")
    if not isinstance(rates, list):
        raise Refused("The trace does not say what its nodes' clocks did: it cannot be replayed.")
    clocks = " ".join([str(value) for value in [recovery.get("skew", 0), *rates]])
    members = "auto" if "rules" in recovery else len(recovery["members"])
    return [f"members {members}", f"lease {recovery['lease']!r}", f"clocks {clocks}"]


def read(trace: Trace) -> tuple[Schedule, list[int]]:
    """The schedule that a trace records, and the nodes whose clients entered, in order."""
    setup = trace.setup
    if setup.get("source") == "live" and "recovery" in setup:
        raise Refused(
            "This trace cannot be replayed: of a live pool with members only clients "
            "are recorded, not messages. Use 'meshlock audit' to judge it."
        )
    refuse_too_large(trace)
    lines = [f"permits {trace.kinds or setup['permits']}", *layer_lines(trace)]
    reading = Reading(trace)
    if reading.live:
        lines.append(f"founder {setup['holder']}")
    if reading.failures != "drain" and not reading.leased:
        lines.append(f"failures {reading.failures}")
    options = dict(setup.get("options", {}))
    if options.pop(UNIT, "") or setup.get("source") == "live":
        lines.append("deadlines")
    lines += [f"option {name}={value}" for name, value in options.items()]
    tree = [int(father) for father in setup.get("tree", [])]
    algorithm = find(str(setup.get("algorithm")))
    return Schedule(
        algorithm, lines, trace.nodes, reading.pairs, tree, reading.actions
    ), reading.entries


def violated(schedule: Schedule) -> set[str]:
    """What is wrong when this is played to the end; a failing handler counts too.

    In a network that is parted at the end, clients may wait.
    """
    try:
        play = schedule.play(strict=False)
        if schedule.leased and play.run.monitor.violated:
            return set(play.run.monitor.violated)  # the end takes many leases
        play.finish()
        wrong = set(play.outcome().violated)
        return wrong if play.run.monitor.connected else wrong - {"served"}
    except Refused:
        return set()
    except Exception:  # a handler of a broken algorithm; that it fails is the finding
        return {"handlers"}


def shrink(schedule: Schedule) -> tuple[Schedule, set[str]]:
    """The smallest schedule found, and which properties it violates."""
    if schedule.custody:
        raise Refused(f"A run with {setting('failures')} custody cannot be shrunk.")
    wrong = violated(schedule)
    if not wrong:
        raise Refused(
            "This run violates no property when it is played to its end: there is "
            "nothing to shrink."
        )
    while True:
        smaller = without_nodes(fewer_actions(schedule, wrong), wrong)
        if len(smaller.actions) == len(schedule.actions) and smaller.size == schedule.size:
            return smaller, violated(smaller)
        schedule = smaller


def still(schedule: Schedule, actions: list[Action], wrong: set[str]) -> bool:
    return bool(violated(schedule.but(actions)) & wrong)


def fewer_actions(schedule: Schedule, wrong: set[str]) -> Schedule:
    actions = schedule.actions
    piece = max(1, len(actions) // 2)
    while True:
        at = 0
        lost = False
        while at < len(actions):
            rest = actions[:at] + actions[at + piece :]
            if still(schedule, rest, wrong):
                actions = rest
                lost = True
            else:
                at += piece
        if piece > 1:
            piece //= 2
        elif not lost:
            break
    if "handlers" not in wrong:  # else it breaks off, and all of it is needed
        actions = schedule.but(actions).play(strict=False).done
    return schedule.but(actions)


def without_nodes(schedule: Schedule, wrong: set[str]) -> Schedule:
    """Take away nodes that no action is about, the highest first."""
    node = schedule.size - 1
    while node > 0:
        busy = any(node in (action.one, action.other) for action in schedule.actions)
        if not busy:
            smaller = without(schedule, node)
            if smaller is not None and violated(smaller) & wrong:
                schedule = smaller
        node -= 1
    return schedule


def without(schedule: Schedule, gone: int) -> Schedule | None:
    """The same without this node, the others renumbered; None if that cuts network or tree, or
    may take a member away."""
    if schedule.leased or gone in schedule.tree or schedule.tree[gone : gone + 1] == [NIL]:
        return None
    names = {node: node - (node > gone) for node in range(schedule.size) if node != gone}
    links = [
        (names[one], names[other]) for one, other in schedule.links if gone not in (one, other)
    ]
    size = schedule.size - 1
    if len(Graph(size, links).roots) > 1:
        return None
    tree = [names.get(father, NIL) for node, father in enumerate(schedule.tree) if node != gone]
    actions = [action.renamed(names) for action in schedule.actions]
    return Schedule(schedule.algorithm, schedule.setup, size, links, tree, actions)
