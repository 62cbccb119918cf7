"""A run as a list of deeds: who asked, what was delivered, who left, which link changed.

Any trace is such a list. Played again by hand (:mod:`.by_hand`) it must give the same run,
since algorithms are deterministic; with deeds left out it gives a smaller run, which is how
a failure is shrunk (:mod:`.shrink`).
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.interface import Algorithm
from meshlock.algorithms.registry import Refused, find
from meshlock.simulate.by_hand import Director, Outcome, Scenario
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

    def possible(self, director: Director) -> bool:
        """Can this be done in the run at hand?"""
        if self.verb == "request":
            busy = [*director.waiting.values(), *director.inside.values()]
            many = director.algorithm.many_clients
            return many or all(request.node != self.one for request in busy)
        if self.verb == "leave":
            return any(request.node == self.one for request in director.inside.values())
        if self.verb == "deliver":
            return director.first((self.one, self.other)) >= 0
        if self.verb == "overtake":
            first = director.first((self.one, self.other))
            return first >= 0 and director.first((self.one, self.other), first) >= 0
        linked = (min(self.one, self.other), max(self.one, self.other)) in director.links
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
    ) -> None:
        self.algorithm = algorithm
        self.options = options
        self.size = size
        self.links = links
        self.permits = permits
        self.deeds = deeds

    def but(self, deeds: list[Deed]) -> Schedule:
        """The same set-up with other deeds."""
        options, links = self.options, self.links
        return Schedule(self.algorithm, options, self.size, links, self.permits, deeds)

    def script(self, title: str, deeds: bool = True) -> str:
        """As a scenario file."""
        lines = [f"# {title}", f"nodes {self.size}"]
        lines.append("links " + " ".join(f"{one}-{other}" for one, other in self.links))
        lines.append(f"permits {self.permits}")
        lines += [f"option {name}={value}" for name, value in self.options.items()]
        if deeds:
            lines += ["", *[deed.text() for deed in self.deeds]]
        return "\n".join(lines) + "\n"

    def play(self, strict: bool) -> Play:
        return Play(self, strict)


class Play:
    """A schedule played again; unless strict, what cannot be done is left out."""

    def __init__(self, schedule: Schedule, strict: bool) -> None:
        scenario = Scenario("replay", schedule.script("replay", deeds=False))
        scenario.changing = any(deed.verb.startswith("link") for deed in schedule.deeds)
        director = Director(scenario, schedule.algorithm)
        self.done: list[Deed] = []
        for number, deed in enumerate(schedule.deeds, start=1):
            if not deed.possible(director):
                if strict:
                    raise Refused(f"Step {number} of the trace, '{deed.text()}', cannot be done.")
                continue
            if deed.choice >= 0:
                at = deed.other if deed.verb == "deliver" else deed.one
                director.nodes[at].choose(deed.choice)
            director.lines.append(f"> {deed.text()}")
            director.act(number, deed.text().split())
            self.done.append(deed)
        self.director = director

    def finish(self) -> None:
        """Let everything arrive and everybody leave."""
        self.director.lines.append("> finish")
        self.director.finish()

    def outcome(self) -> Outcome:
        director = self.director
        outcome = director.outcome
        if not director.on_the_way and not director.inside:
            outcome.unserved = [request.node for request in director.waiting.values()]
            director.monitor.ends(director.now, len(director.waiting))
        outcome.violated = director.monitor.violated
        outcome.transcript = "\n".join(director.lines) + "\n"
        return outcome


# -- from a trace ---------------------------------------------------------------------------


class Reading:
    """A trace turned into deeds."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.lines: dict[tuple[int, int], list[int]] = {}  # link: ids of what is on it
        self.deeds: list[Deed] = []
        self.entries: list[int] = []
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
        elif kind in ("crash", "restart", "timer", "undelivered", "drop", "withdraw", "start"):
            raise Refused(f"A trace with '{kind}' in it cannot be played again by hand yet.")
        if deed is not None:
            deed.choice = event.get("choice", -1)
            self.deeds.append(deed)

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


def read(trace: Trace) -> tuple[Schedule, list[int]]:
    """The schedule that a trace records, and the nodes whose clients entered, in order."""
    setup = trace.setup
    if setup.get("failures") == "custody":
        raise Refused("A trace of links with custody cannot be played again by hand yet.")
    reading = Reading(trace)
    size = trace.nodes
    links = setup.get("links")
    if links == "complete":
        pairs = [(one, other) for one in range(size) for other in range(one + 1, size)]
    elif isinstance(links, list):
        pairs = [(int(one), int(other)) for one, other in links]
    else:
        raise Refused("The trace does not say which links there are.")
    algorithm = find(str(setup.get("algorithm")))
    options = {str(name): str(value) for name, value in dict(setup.get("options", {})).items()}
    schedule = Schedule(algorithm, options, size, pairs, setup["permits"], reading.deeds)
    return schedule, reading.entries
