"""Judge a trace by properties of one's own, after every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from meshlock.algorithms.actor import Frozen
from meshlock.errors import Refused, setting
from meshlock.properties.own import (
    OwnProperty,
    SeenMessage,
    SeenNode,
    SeenWorld,
    own_name,
    own_property,
    wrong_by,
)
from meshlock.trace.files import trace_file
from meshlock.trace.reader import CAUSES
from meshlock.trace.writer import TraceWriter

Line = dict[str, Any]


class Watched:
    """Follows a run line by line. It is a sink for what writes traces; ``sink`` gets the lines,
    too. ``violated`` has the first sentence of each property."""

    def __init__(self, judges: Sequence[OwnProperty], sink: Any = None) -> None:
        self.judges = judges
        self.sink = sink
        self.nodes: list[SeenNode] = []
        self.flying: dict[int, SeenMessage] = {}
        self.violated: dict[str, str] = {}
        self.stated = True  # it has the nodes' variables
        self.begun = False  # a step has begun, and is judged when it is over

    def write(self, text: bytes) -> None:
        if self.sink is not None:
            self.sink.write(text)
        line: Line = msgspec.json.decode(text)
        if not self.nodes:
            self.begin(line)
            return
        event = line["event"]
        if self.begun and (event in CAUSES or event == "end"):
            self.judge()
        if event in CAUSES or event in ("send", "enter", "drop", "lease-lost"):
            self.begun = True
            self.follow(event, line)

    def begin(self, setup: Line) -> None:
        self.stated = "states" in setup
        states = setup.get("states") or [{}] * setup["nodes"]
        for number, variables in enumerate(states):
            self.nodes.append(SeenNode(number=number, inbox=[], waiting=(), inside=()))
            self.change(number, variables)

    def change(self, number: int, variables: Line) -> None:
        vars(self.nodes[number]).update({name: frozen(variables[name]) for name in variables})

    def follow(self, event: str, line: Line) -> None:
        node = self.nodes[line["node"]]
        if event == "send":
            about = {name: frozen(value) for name, value in line["args"].items()}
            about.update(kind=line["message"], sender=line["node"], receiver=line["to"])
            self.flying[line["id"]] = message = SeenMessage(**about)
            self.nodes[line["to"]].inbox.append(message)
        elif event in ("deliver", "undelivered", "drop"):
            message = self.flying.pop(line["id"])
            self.nodes[message.receiver].inbox.remove(message)
        elif event == "request":
            node.waiting = (*node.waiting, line["client"])
        elif event == "enter":
            node.waiting = without(node.waiting, line["client"])
            node.inside = (*node.inside, line["client"])
        elif event in ("leave", "lease-lost"):
            node.inside = without(node.inside, line["client"])
        elif event == "withdraw":
            node.waiting = without(node.waiting, line["client"])
        self.change(node.number, line.get("state", {}))

    def judge(self) -> None:
        left = [judge for judge in self.judges if own_name(judge) not in self.violated]
        try:
            found = wrong_by(left, SeenWorld(self.nodes))
        except Refused as error:
            if self.stated or not isinstance(error.__cause__, AttributeError):
                raise
            missing = f"This trace has no states: write it with {setting('trace-states')}."
            raise Refused(f"{error} {missing}") from error.__cause__
        self.violated.update(found)

    def end(self) -> dict[str, str]:
        """The last step is over; what was wrong, by property."""
        if self.begun:
            self.judge()
        return self.violated


def frozen(value: Any) -> Frozen:
    """Lists as tuples, as a search has them."""
    return tuple([frozen(one) for one in value]) if isinstance(value, list) else value


def without(clients: tuple[int, ...], client: int) -> tuple[int, ...]:
    return tuple([one for one in clients if one != client])


def watched_by(properties: Sequence[str | OwnProperty]) -> Watched | None:
    """What judges a run by these, if there are any."""
    return Watched([own_property(one) for one in properties]) if properties else None


@contextmanager
def traced(
    path: Path | None, states: bool = False, watched: Watched | None = None
) -> Iterator[TraceWriter | None]:
    """What writes to this file, if one is named, and to what watches the run, if anything does."""
    if path is None:
        yield None if watched is None else TraceWriter(watched, True)
        return
    with trace_file(path) as file:
        if watched is None:
            yield TraceWriter(file, states)
        else:
            watched.sink = file
            yield TraceWriter(watched, True)
