"""A run as a list of deeds: who asked, what was delivered, who left, which link changed.

Any trace is such a list. Played again (:mod:`.director`) it must give the same run, since
algorithms are deterministic; with deeds left out it gives a smaller run, which is how a failure
is shrunk (:mod:`.shrink`).
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.interface import Algorithm
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.simulate.director import Director
from meshlock.simulate.driven import DrivenRun
from meshlock.simulate.outcome import Outcome
from meshlock.simulate.scenario import Scenario, drawn
from meshlock.trace.reader import Trace


class Deed:
    """One line of a scenario, and the nodes it is about."""

    def __init__(self, verb: str, one: int, other: int = -1, rest: str = "") -> None:
        self.verb = verb
        self.one = one
        self.other = other
        self.rest = rest  # of a request: want and priority
        self.choice = -1  # what the outside chose before, where there was a choice

    def text(self) -> str:
        if self.verb in ("deliver", "overtake"):
            return f"{self.verb} {self.one}->{self.other}"
        if self.verb in ("link up", "link down"):
            return f"{self.verb} {self.one}-{self.other}"
        return f"{self.verb} {self.one} {self.rest}".rstrip()

    def renamed(self, names: dict[int, int]) -> Deed:
        twin = Deed(self.verb, names[self.one], names.get(self.other, -1), self.rest)
        twin.choice = self.choice
        return twin

    @property
    def node(self) -> int:
        """Whose handler runs."""
        return self.other if self.verb == "deliver" else self.one

    def possible(self, run: DrivenRun) -> bool:
        """Can this be done in the run as it stands?"""
        if self.verb == "request":
            busy = [*run.waiting.values(), *run.inside.values()]
            many = run.algorithm.many_clients
            return many or all(request.node != self.one for request in busy)
        if self.verb == "leave":
            return any(request.node == self.one for request in run.inside.values())
        if self.verb == "deliver":
            return run.first((self.one, self.other)) >= 0
        if self.verb == "overtake":
            first = run.first((self.one, self.other))
            return first >= 0 and run.first((self.one, self.other), first) >= 0
        linked = (min(self.one, self.other), max(self.one, self.other)) in run.links
        return linked == (self.verb == "link down")


class Schedule:
    def __init__(
        self,
        algorithm: Algorithm,
        options: dict[str, str],
        size: int,
        links: list[tuple[int, int]],
        permits: int,
        deeds: list[Deed],
        tree: list[int],
        failures: str,
    ) -> None:
        self.algorithm = algorithm
        self.options = options
        self.size = size
        self.links = links
        self.permits = permits
        self.deeds = deeds
        self.tree = tree  # everybody's father at the start; empty: not said
        self.failures = failures

    def but(self, deeds: list[Deed]) -> Schedule:
        """The same set-up with other deeds."""
        return Schedule(
            self.algorithm,
            self.options,
            self.size,
            self.links,
            self.permits,
            deeds,
            self.tree,
            self.failures,
        )

    def script(self, title: str, deeds: bool = True) -> str:
        """As a scenario file."""
        lines = [f"# {title}", f"nodes {self.size}"]
        lines.append("links " + " ".join(f"{one}-{other}" for one, other in self.links))
        lines.append(f"permits {self.permits}")
        if self.tree:
            lines.append(f"tree {drawn(self.tree, 0)}")
        if self.failures != "drain":
            lines.append(f"failures {self.failures}")
        lines.append(f"algorithm {self.algorithm.name}")
        lines += [f"option {name}={value}" for name, value in self.options.items()]
        if deeds:
            lines += ["", *self.deeds_with_choices()]
        return "\n".join(lines) + "\n"

    def deeds_with_choices(self) -> list[str]:
        """A line per deed, and one before it where its node chooses otherwise than before."""
        lines: list[str] = []
        chosen: dict[int, int] = {}
        for deed in self.deeds:
            if deed.choice >= 0 and chosen.get(deed.node) != deed.choice:
                chosen[deed.node] = deed.choice
                lines.append(f"behaviour {deed.node} {self.choice_names()[deed.choice]}")
            lines.append(deed.text())
        return lines

    def choice_names(self) -> tuple[str, ...]:
        run = DrivenRun(Scenario("replay", self.script("replay", deeds=False)), self.algorithm)
        return run.choices(0)

    def play(self, strict: bool) -> Play:
        return Play(self, strict)


class Play:
    """A schedule played again; unless strict, what cannot be done is left out."""

    def __init__(self, schedule: Schedule, strict: bool) -> None:
        scenario = Scenario("replay", schedule.script("replay", deeds=False))
        scenario.changing = any(deed.verb.startswith("link") for deed in schedule.deeds)
        director = Director(scenario, schedule.algorithm)
        self.run = director.run
        self.done: list[Deed] = []
        for number, deed in enumerate(schedule.deeds, start=1):
            if not deed.possible(self.run):
                if strict:
                    raise Refused(f"Step {number} of the trace, '{deed.text()}', cannot be done.")
                continue
            if deed.choice >= 0:
                self.run.behaviours[deed.node] = deed.choice
            self.run.lines.append(f"> {deed.text()}")
            director.act(number, deed.text().split())
            self.done.append(deed)

    def finish(self) -> None:
        """Let everything arrive and everybody leave."""
        self.run.lines.append("> finish")
        self.run.finish()

    def outcome(self) -> Outcome:
        run = self.run
        over = not run.on_the_way and not run.inside
        return run.end() if over else run.so_far()


# -- from a trace ---------------------------------------------------------------------------


class Reading:
    """A trace turned into deeds."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.pairs = first_links(trace)
        self.links = set(self.pairs)  # as they are now
        self.lines: dict[tuple[int, int], list[int]] = {}  # link: ids of what is on it
        self.deeds: list[Deed] = []
        self.entries: list[int] = []
        self.failures = "drain"
        for event in trace.events():
            self.event(event)

    def event(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        node = event.get("node", -1)
        deed: Deed | None = None
        if kind == "request":
            rest = f"want {event.get('want', 1)} priority {event.get('priority', 0)}"
            deed = Deed("request", node, -1, rest)
        elif kind == "leave":
            deed = Deed("leave", node)
        elif kind == "deliver":
            deed = self.delivered(self.trace.whole(event, "from"), node, event)
        elif kind == "send":
            line = self.lines.setdefault((node, self.trace.whole(event, "to")), [])
            line.append(self.trace.whole(event, "id"))
        elif kind == "enter":
            self.entries.append(node)
        elif kind in ("link-up", "link-down"):
            peer = self.trace.whole(event, "peer")
            if node < peer:
                deed = Deed("link up" if kind == "link-up" else "link down", node, peer)
                (self.links.add if kind == "link-up" else self.links.discard)((node, peer))
        elif kind in ("undelivered", "drop"):
            self.taken_off(self.trace.whole(event, "id"))
        elif kind in ("crash", "restart", "timer", "withdraw", "start"):
            raise Refused(f"A trace with '{kind}' in it cannot be played again yet.")
        if deed is not None:
            deed.choice = event.get("choice", -1)
            self.deeds.append(deed)

    def taken_off(self, number: int) -> None:
        """A message comes back or is lost: its link fails next, unless there was none."""
        for (one, other), line in self.lines.items():
            if number in line:
                line.remove(number)
                if (min(one, other), max(one, other)) in self.links:
                    self.failures = "return"
                return
        raise self.trace.bad(f"message {number} comes back or is lost, but is not on its way")

    def delivered(self, sender: int, receiver: int, event: dict[str, Any]) -> Deed:
        number = self.trace.whole(event, "id")
        line = self.lines.get((sender, receiver), [])
        if number not in line:
            raise self.trace.bad(f"delivers message {number}, which is not on its way")
        if line.index(number) == 1:
            self.deeds.append(Deed("overtake", sender, receiver))
        elif line.index(number) > 1:
            raise Refused("A message that overtakes more than one other cannot be replayed yet.")
        line.remove(number)
        return Deed("deliver", sender, receiver)


def first_links(trace: Trace) -> list[tuple[int, int]]:
    size, links = trace.nodes, trace.setup.get("links")
    if links == "complete":
        return [(one, other) for one in range(size) for other in range(one + 1, size)]
    if isinstance(links, list):
        return [(int(one), int(other)) for one, other in links]
    raise Refused("The trace does not say which links there are.")


def read(trace: Trace) -> tuple[Schedule, list[int]]:
    """The schedule that a trace records, and the nodes whose clients entered, in order."""
    setup = trace.setup
    if setup.get("failures") == "custody":
        raise Refused("A trace of links with custody cannot be played again yet.")
    reading = Reading(trace)
    schedule = Schedule(
        find(str(setup.get("algorithm"))),
        {str(name): str(value) for name, value in dict(setup.get("options", {})).items()},
        trace.nodes,
        reading.pairs,
        setup["permits"],
        reading.deeds,
        [int(father) for father in setup.get("tree", [])],
        reading.failures,
    )
    return schedule, reading.entries
