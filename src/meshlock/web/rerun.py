"""States for a trace that records none: its algorithm is run again beside it, step by step.

Algorithms are deterministic, so the same causes in the same order give the same states. Should
a step do anything else than the trace says (another version wrote it, or the outside chose),
there are no states, and the trace is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from meshlock.algorithms.interface import Effect, Enter, Message
from meshlock.algorithms.registry import find, settle
from meshlock.topology.graphs import Complete, Graph, Rooted, Topology
from meshlock.trace.writer import TraceWriter

Line = dict[str, Any]


class Differs(Exception):
    """The algorithm does not do what the trace says."""


class Rerun:
    def __init__(self, setup: Line) -> None:
        if "recovery" in setup:
            raise Differs("its nodes have clocks")
        algorithm = find(str(setup.get("algorithm")))
        given = {str(name): str(value) for name, value in dict(setup.get("options", {})).items()}
        size, links, tree = setup["nodes"], setup.get("links"), setup.get("tree")
        network: Topology = Complete(size)
        if links != "complete":
            network = Graph(size, [(one, other) for one, other in links or []])
        if tree:
            network = Rooted(size, network.links(), tree)
        self.out: list[Effect] = []
        options = settle(algorithm, given)
        self.nodes = algorithm.make(network, setup["permits"], options, self.out)
        self.choosing = self.nodes[0].choices() > 1
        self.flying: dict[int, Message] = {}
        self.writer = TraceWriter(self, True)  # knows which variables changed
        self.setup = {**setup, "states": [self.writer.changed(node) for node in self.nodes]}

    def write(self, line: bytes) -> None:
        """Nothing is written here."""

    def step(self, lines: list[Line]) -> None:
        """Do the step and note in its first line which variables it changed."""
        cause = lines[0]
        kind = cause["event"]
        if kind in ("move", "end"):
            return
        if kind == "drop":
            self.flying.pop(cause["id"], None)
            return
        node = self.nodes[cause["node"]]
        if self.choosing:
            node.choose(cause["choice"])
        if kind == "request":
            node.request(cause["client"], cause["want"], cause["priority"])
        elif kind == "leave":
            node.release(cause["client"])
        elif kind == "withdraw":
            node.withdraw(cause["client"])
        elif kind == "deliver":
            node.receive(self.flying.pop(cause["id"]))
        elif kind == "undelivered":
            node.undelivered(self.flying.pop(cause["id"]))
        elif kind == "link-up":
            node.link_up(cause["peer"])
        elif kind == "link-down":
            node.link_down(cause["peer"])
        elif kind == "start":
            node.start()
        else:
            raise Differs(kind)
        self.compare([line for line in lines[1:] if line["event"] in ("send", "enter")])
        if changed := self.writer.changed(node):
            cause["state"] = changed

    def compare(self, effects: list[Line]) -> None:
        if len(effects) != len(self.out):
            raise Differs("another number of effects")
        for line, effect in zip(effects, self.out, strict=True):
            if isinstance(effect, Message):
                if line["event"] != "send" or line["message"] != effect.kind:
                    raise Differs(line["event"])
                if line["to"] != effect.receiver:
                    raise Differs("another receiver")
                self.flying[line["id"]] = effect
            elif isinstance(effect, Enter) and line.get("client") != effect.client:
                raise Differs("another client")
        self.out.clear()


def steps(lines: Iterable[bytes]) -> Iterator[list[Line]]:
    """The lines in groups: a cause and its effects, or a line that stands alone."""
    group: list[Line] = []
    for text in lines:
        line = msgspec.json.decode(text)
        if line["event"] not in ("send", "enter") and group:
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def with_states(setup: Line, lines: Iterable[bytes]) -> list[bytes] | None:
    """The whole trace with states, its set-up first; None if they cannot be had."""
    encode = msgspec.json.Encoder().encode
    try:
        rerun = Rerun(setup)
        written = [encode(rerun.setup) + b"\n"]
        for group in steps(lines):
            rerun.step(group)
            written += [encode(line) + b"\n" for line in group]
    except Exception:  # whatever an algorithm makes of a trace that is not its own
        return None
    return written
