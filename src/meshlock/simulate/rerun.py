"""States for a trace that records none: its algorithm is run again beside it, step by step.

Algorithms are deterministic, so the same causes in the same order give the same states. Should
a step do anything else than the trace says (another version wrote it, or the outside chose),
there are no states, and the trace is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from meshlock.algorithms.actor import WAKE, ChoosingActor, Effect, Enter, Message, Save, choices_of
from meshlock.algorithms.recovery.messages import Inner, content
from meshlock.algorithms.registry import find, joined, settle
from meshlock.algorithms.steps import UNIT, in_grants, units
from meshlock.topology.graphs import Complete, Graph, Rooted, Topology
from meshlock.topology.specification import MOST_LINKS
from meshlock.trace.reader import BadTrace, Trace
from meshlock.trace.writer import TraceWriter
from meshlock.world.lives import LayeredNodes, recorded_layer

Line = dict[str, Any]

EFFECTS = ("send", "enter", "recover", "lease", "lease-lost")
"""Lines that belong to the cause before them."""

MOST_UNLINKED = 100_000
"""Nodes more than links that a set-up may have: a short line must not make millions of nodes."""


class Differs(Exception):
    """The algorithm does not do what the trace says."""


def too_large(setup: Line) -> bool:
    """Are its nodes and links too many to be made again, or out of proportion to its line?"""
    size, links = setup["nodes"], setup.get("links")
    if links == "complete":
        return bool(size * (size - 1) // 2 > MOST_LINKS)
    return bool(size - (len(links) if isinstance(links, list) else 0) > MOST_UNLINKED)


def refuse_too_large(trace: Trace) -> None:
    if too_large(trace.setup):
        raise BadTrace(
            f"The set-up of {trace.path} has {trace.nodes:,} nodes, too many to run again: a "
            f"complete network may have {MOST_LINKS:,} links, any other {MOST_UNLINKED:,} nodes "
            f"more than links."
        )


class Rerun:
    def __init__(self, setup: Line) -> None:
        if too_large(setup):
            raise Differs("too large")
        algorithm = find(str(setup.get("algorithm")))
        given = {str(name): str(value) for name, value in dict(setup.get("options", {})).items()}
        size, links, tree = setup["nodes"], setup.get("links"), setup.get("tree")
        network: Topology = Complete(size)
        if links != "complete":
            network = Graph(size, [(one, other) for one, other in links or []])
        if tree:
            network = Rooted(size, network.links(), tree)
        unit = given.pop(UNIT, "")
        options = settle(algorithm, given)
        if unit or setup.get("source") == "live":
            options = in_grants(options)
        self.near = [set(network.neighbours(node)) for node in range(size)]
        self.layered: LayeredNodes | None = None
        if "recovery" in setup:
            layer = recorded_layer(setup["recovery"])
            self.layered = LayeredNodes(
                layer, algorithm, options, setup["permits"], self.near.__getitem__
            )
            self.out = self.layered.out
            self.nodes = self.layered.nodes
        elif setup.get("source") == "live":
            self.out = []
            self.nodes = joined(
                algorithm, size, setup["holder"], setup["permits"], options, self.out
            )
        else:
            self.out = []
            self.nodes = algorithm.make(network, setup["permits"], options, self.out)
        self.units = units(options)
        self.choosing = choices_of(self.nodes[0]) > 1
        self.flying: dict[int, Message] = {}
        self.wants: dict[int, int] = {}  # of all clients
        self.writer = TraceWriter(self, True)  # knows which variables changed
        self.setup = {**setup, "states": [self.writer.changed(node) for node in self.nodes]}

    def write(self, line: bytes) -> None:
        """Nothing is written here."""

    def step(self, lines: list[Line]) -> None:
        """Do the step and note in its first line which variables it changed."""
        cause = lines[0]
        kind = cause["event"]
        if kind in ("move", "end", "lease-lost") or (kind == "withdraw" and "crash" in cause):
            return
        if kind == "drop":
            self.flying.pop(cause["id"], None)
            return
        me = cause["node"]
        if self.layered is not None:
            if kind == "crash":
                self.unlink(me)
                return
            self.layered.set_clock(me, cause["t"])
        if self.choosing:
            node = self.nodes[me]
            assert isinstance(node, ChoosingActor)
            node.choose(cause["choice"])
        self.call(kind, me, cause)
        self.compare(me, [line for line in lines[1:] if line["event"] in ("send", "enter")])
        if changed := self.writer.changed(self.nodes[me]):
            cause["state"] = changed

    def priority(self, cause: Line) -> int:
        """As the node was given it: live nodes count in grants."""
        counts: float = cause["urgency" if "urgency" in cause else "priority"]
        return round(counts * self.units)

    def call(self, kind: str, me: int, cause: Line) -> None:
        node = self.nodes[me]
        if kind == "request":
            self.wants[cause["client"]] = cause["want"]
            node.request(cause["client"], cause["want"], self.priority(cause))
        elif kind == "give-back":
            node.release_some(cause["client"], cause["permits"])
        elif kind == "priority":
            client = cause["client"]
            node.change_priority(client, self.wants[client], self.priority(cause))
        elif kind == "leave":
            node.release(cause["client"])
        elif kind == "withdraw":
            node.withdraw(cause["client"])
        elif kind == "deliver":
            message = self.flying.pop(cause["id"])
            if isinstance(message, Inner):
                message.travelled = cause["seal"][-1]
            node.receive(message)
        elif kind == "undelivered":
            node.undelivered(self.flying.pop(cause["id"]))
        elif kind == "link-up":
            self.near[me].add(cause["peer"])
            self.near[cause["peer"]].add(me)
            node.link_up(cause["peer"])
        elif kind == "link-down":
            self.near[me].discard(cause["peer"])
            self.near[cause["peer"]].discard(me)
            node.link_down(cause["peer"])
        elif self.layered is not None and kind in ("start", "restart"):
            self.layered.restart(me, cause["t"], cause.get("disk", True))
        elif self.layered is not None and kind == "timer":
            layer = self.layered.layers[me]
            layer.cannot_reach(set(cause.get("unreachable", layer.member.unreachable)))
            if "resize" in cause:
                self.layered.resize(me, cause["resize"])
            for verb in ("add", "remove"):
                if verb in cause:
                    self.layered.change_member(me, verb, cause[verb])
            layer.timer(WAKE, cause["chance"])
        elif kind == "start":
            node.start()
        else:
            raise Differs(kind)

    def unlink(self, me: int) -> None:
        for peer in self.near[me]:
            self.near[peer].discard(me)
        self.near[me] = set()

    def compare(self, me: int, lines: list[Line]) -> None:
        effects: list[Effect] = []
        for effect in self.out:
            if isinstance(effect, Message | Enter):
                effects.append(effect)
            elif isinstance(effect, Save) and self.layered is not None:
                self.layered.disk[me] = effect.record
        self.out.clear()
        if len(lines) != len(effects):
            raise Differs("another number of effects")
        for line, effect in zip(lines, effects, strict=True):
            if isinstance(effect, Message):
                if line["event"] != "send" or line["message"] != content(effect).kind:
                    raise Differs(line["event"])
                if line["to"] != effect.receiver:
                    raise Differs("another receiver")
                self.flying[line["id"]] = effect
            elif isinstance(effect, Enter) and line.get("client") != effect.client:
                raise Differs("another client")


def steps(lines: Iterable[bytes]) -> Iterator[list[Line]]:
    """The lines in groups: a cause and its effects, or a line that stands alone."""
    group: list[Line] = []
    for text in lines:
        line = msgspec.json.decode(text)
        if line["event"] not in EFFECTS and group:
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


def give_states(trace: Trace) -> bool:
    """Of a trace that has been opened and not read: does it have states now?"""
    if "states" in trace.setup:
        return True
    lines = with_states(trace.setup, trace.lines)
    if lines is not None:
        trace.setup, trace.lines = msgspec.json.decode(lines[0]), iter(lines[1:])
    return lines is not None
