"""States for a trace that records none: its algorithm is run again beside it, step by step.

Algorithms are deterministic, so the same causes in the same order give the same states. Should
a step do anything else than the trace says (another version wrote it, or the outside chose),
there are no states, and the trace is shown as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from meshlock.algorithms.actor import NIL, Actor, Enter, Message
from meshlock.algorithms.recovery.messages import Inner, content
from meshlock.algorithms.registry import find, with_defaults
from meshlock.algorithms.steps import UNIT, in_grants
from meshlock.topology.graphs import Complete, Graph, Rooted, Topology
from meshlock.topology.specification import MOST_LINKS
from meshlock.trace.reader import BadTrace, Trace
from meshlock.trace.writer import TraceWriter
from meshlock.world.clients import SimulatedClient
from meshlock.world.lives import LayeredNodes, recorded_layer
from meshlock.world.steps import Steps

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


class Rerun(Steps):
    """Nodes that do again what a trace with this set-up says."""

    def __init__(self, setup: Line) -> None:
        if too_large(setup):
            raise Differs("too large")
        algorithm = find(str(setup.get("algorithm")))
        given = {str(name): str(value) for name, value in dict(setup.get("options", {})).items()}
        size, permits, links = setup["nodes"], setup["permits"], setup.get("links")
        network: Topology = Complete(size)
        if links != "complete":
            network = Graph(size, [(one, other) for one, other in links or []])
        if setup.get("tree"):
            network = Rooted(size, network.links(), setup["tree"])
        unit, live = given.pop(UNIT, ""), setup.get("source") == "live"
        options = with_defaults(algorithm, given)
        if unit or live:
            options = in_grants(options)
        near = [set(network.neighbours(node)) for node in range(size)]
        layered: LayeredNodes | None = None
        if "recovery" in setup:
            layer = recorded_layer(setup["recovery"])
            layered = LayeredNodes(layer, algorithm, options, permits, near.__getitem__)
        founder = setup["holder"] if live and layered is None else NIL
        super().__init__(algorithm, options, network, permits, 0, None, layered, founder)
        self.near = near
        self.observed = True
        self.many_clients = True  # those that queued are not in the trace yet
        self.flying: dict[int, Message] = {}
        self.told: list[Line] = []  # the effects of the step at hand
        self.told_choice = -1
        self.writer = TraceWriter(self, True)  # knows which variables changed
        self.setup = {**setup, "states": [self.writer.changed(node) for node in self.nodes]}

    def write(self, line: bytes) -> None:
        """Nothing is written here."""

    def step(self, lines: list[Line]) -> None:
        """Do the step and note in its first line which variables it changed."""
        cause, *effects = lines
        kind = cause["event"]
        if kind == "drop":
            self.flying.pop(cause["id"], None)
        elif kind == "crash":
            self.unlink(cause["node"])
            self.end_life(cause["node"])
        elif kind not in ("move", "end", "lease-lost") and "crash" not in cause:
            self.now = cause["t"]
            self.told = [line for line in effects if line["event"] in ("send", "enter")]
            self.told_choice = cause.get("choice", -1)
            self.act(kind, cause["node"], cause)
            if changed := self.writer.changed(self.nodes[cause["node"]]):
                cause["state"] = changed

    def act(self, kind: str, me: int, cause: Line) -> None:
        if kind == "request":
            client = SimulatedClient(me, cause["want"], self.priority(cause), cause["client"])
            self.present[client.number] = client
            self.request(client)
        elif kind == "give-back":
            self.release_some(self.present[cause["client"]], cause["permits"])
        elif kind == "priority":
            self.change_priority(self.present[cause["client"]], self.priority(cause))
        elif kind == "leave":
            self.release(self.present[cause["client"]])
        elif kind == "withdraw":
            self.withdraw(self.present[cause["client"]])
        elif kind == "deliver":
            message = self.flying.pop(cause["id"])
            if isinstance(message, Inner):
                message.travelled = cause["seal"][-1]
            self.deliver(message)
        elif kind == "undelivered":
            self.return_to_sender(self.flying.pop(cause["id"]))
        elif kind in ("link-up", "link-down"):
            peer, up = cause["peer"], kind == "link-up"
            for one, other in ((me, peer), (peer, me)):
                (self.near[one].add if up else self.near[one].discard)(other)
            self.link_changes(me, peer, up)
        elif self.layered is not None and kind in ("start", "restart"):
            self.begin_life(me, cause.get("disk", True))
        elif self.layered is not None and kind == "timer":
            layer = self.layered.layers[me]
            layer.cannot_reach(set(cause.get("unreachable", layer.member.unreachable)))
            if "resize" in cause:
                self.layered.resize(me, cause["resize"])
            for verb in ("add", "remove"):
                if verb in cause:
                    self.layered.change_member(me, verb, cause[verb])
            self.wake(me, cause["chance"])
        elif kind == "start":
            self.set_going(me)
        else:
            raise Differs(kind)

    def priority(self, cause: Line) -> int:
        """As the node was given it: live nodes count in grants."""
        counts: float = cause["urgency" if "urgency" in cause else "priority"]
        return round(counts * self.units)

    def unlink(self, me: int) -> None:
        for peer in self.near[me]:
            self.near[peer].discard(me)
        self.near[me].clear()

    # -- the step --------------------------------------------------------------------------

    def chosen(self, me: int, count: int) -> int:
        return self.told_choice

    def record(self, node: Actor, event: str, cause: Line) -> None:
        """Compare what the step does with what the trace says."""
        effects = [effect for effect in self.out if isinstance(effect, Message | Enter)]
        done = [
            (content(one).kind, one.receiver) if isinstance(one, Message) else ("", one.client)
            for one in effects
        ]
        told = [(line.get("message", ""), line.get("to", line.get("client"))) for line in self.told]
        if done != told:
            raise Differs(f"{done} for {told}")
        for line, effect in zip(self.told, effects, strict=True):
            if isinstance(effect, Message):
                self.flying[line["id"]] = effect

    def admits(self, node: Actor, enter: Enter) -> int:
        """A mutant may let a client in that does not wait."""
        return super().admits(node, enter) if enter.client in self.present else 0

    def transmit(self, message: Message) -> None:
        self.in_flight += 1

    def enters(self, node: Actor, client: SimulatedClient) -> None:
        """The trace says what comes of it."""

    def loses(self, client: SimulatedClient) -> None:
        """Likewise."""


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
