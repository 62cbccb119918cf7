"""Put the traces that live nodes wrote of one pool together into one.

Each node wrote its own steps in order. Between nodes the clock decides (on one machine it
is the same for all), except that nothing is delivered before it was sent: where clocks
disagree, the message is right. Nodes, clients and messages get numbers of their own in the
merged trace; those of nodes keep the order of the numbers by which the algorithm knew them, for
that is all it looks at.

A trace may be cut short by a full disk or a killed node. The merged trace ends where it would need
what is missing. Nodes may go on writing while their traces are read, one after the other: with
leases, where messages are not recorded, the merged trace ends where the first of these was read.

In a pool with leases a node may have several lives in its trace. When one ended is not written;
here it ends just before the next begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from meshlock.algorithms.registry import ALGORITHMS
from meshlock.errors import Attempt, Refused
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.trace.reader import LONGEST_LINE

EFFECTS = {"send", "enter"}

Event = dict[str, Any]
Step = list[Event]
Id = tuple[int, int, int]
"""A message: its sender, its receiver, and its number between these two."""


class TracePart:
    """One node's trace."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = size(path)
        events = whole(path)
        self.setup = events[0]
        if "node" not in self.setup or self.setup.get("source") != "live":
            raise Refused(f"{path} was not written by a live node: audit it alone.")
        self.node: int = self.setup["node"]
        self.steps: list[Step] = []
        for event in events[1:]:
            if "meshlock" in event:
                self.steps.append([{"event": "restart", "node": self.node, "t": self.last()}])
            elif event["event"] in EFFECTS:
                self.steps[-1].append(event)
            else:
                self.steps.append([event])
        self.next = 0

    def last(self) -> float:
        """When something was received of it last."""
        return float(self.steps[-1][-1]["t"]) if self.steps else 0.0

    def grows(self) -> bool:
        """Was anything written there since it was read, or just before?"""
        return size(self.path) != self.size

    def end_at(self, t: float) -> None:
        self.steps = [step for step in self.steps if step[0]["t"] <= t]

    def head(self) -> Step | None:
        return self.steps[self.next] if self.next < len(self.steps) else None


def size(path: Path) -> int:
    """In bytes; -1 if it cannot be told, as of a trace that has just begun a new file."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def is_part(path: Path) -> bool:
    """Did one live node write this, and is it of that node only?"""
    try:
        with path.open("rb") as file:
            setup = msgspec.json.decode(file.readline(LONGEST_LINE), type=dict[str, Any])
    except (OSError, msgspec.MsgspecError):
        return False
    return "node" in setup and setup.get("source") == "live"


def whole(path: Path) -> list[Event]:
    """The lines of a trace; what was written before its file was full is in another."""
    events = written(path)
    part = events[0].get("part", 1)
    earlier = path.with_name(path.name + ".1")
    if part == 1:
        return events
    if part > 2:
        raise Refused(
            f"{earlier} begins with part {part - 1}: its beginning was dropped when the trace "
            f"reached its trace-limit, and nothing can be judged without it."
        )
    if not earlier.exists():
        raise Refused(f"{path} is part {part} of a trace: put {earlier.name} beside it.")
    return written(earlier) + events[1:]


def written(path: Path) -> list[Event]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with Attempt(f"read {path}"), path.open("rb") as file:
        # a killed node stops anywhere
        lines = [line for line in file if line.endswith(b"\n")]
    if not lines:
        raise Refused(f"{path} is empty: did its node ever join the pool?")
    try:
        return [decode(line) for line in lines]
    except msgspec.MsgspecError:
        raise Refused(f"{path} is not a trace: its lines are not all JSON objects.") from None


def merge(paths: Iterable[Path], sink: IO[bytes], ended: bool) -> int:
    """Write one trace; ``ended`` says that nothing more was going to happen.

    The result is how many messages with a token or permits were sent and never arrived: what
    these traces cannot tell from lost.
    """
    parts = sorted([TracePart(path) for path in paths], key=lambda part: part.node)
    if not parts:
        raise Refused("There are no traces to merge.")
    running = [part.last() for part in parts if part.grows()]
    if running and "recovery" in parts[0].setup:
        for part in parts:
            part.end_at(min(running))
    merger = Merger(parts)
    merger.write(sink, ended)
    return merger.missing


class Merger:
    def __init__(self, parts: list[TracePart]) -> None:
        self.parts = parts
        self.names = {part.node: place for place, part in enumerate(parts)}
        algorithm = ALGORITHMS.get(parts[0].setup["algorithm"])
        kinds = algorithm.kinds if algorithm is not None else ()
        self.heights = {kind.kind: kind.reductions.heights for kind in kinds}
        self.delivered = {
            message(step[0])
            for part in parts
            for step in part.steps
            if step[0]["event"] == "deliver"
        }
        self.seen: set[tuple[int, int]] = set()  # ends that see their link, and its other end
        self.agreed = LiveGraph(len(parts), [])  # links that both ends see
        self.sent: dict[Id, int] = {}
        self.clients: dict[tuple[int, int], int] = {}
        self.hopeless: dict[tuple[int, int], list[int]] = {}  # link: messages that were lost on it
        self.messages = 0
        self.missing = 0
        self.short = False  # a node's trace ends before others need it: nothing follows from there
        self.waiting: dict[int, int] = {}  # clients, and their nodes
        self.last_client = 0
        self.start = 0.0
        self.now = 0.0

    def write(self, sink: IO[bytes], ended: bool) -> None:
        encode = msgspec.json.Encoder().encode
        for line in self.lines(ended):
            sink.write(encode(line) + b"\n")

    def lines(self, ended: bool) -> Iterator[Event]:
        setup = dict(self.parts[0].setup)
        founders = [part.node for part in self.parts if part.setup["holder"] != -1]
        leased = "recovery" in setup
        if leased:
            members = [
                self.names[node] for node in setup["recovery"]["members"] if node in self.names
            ]
            setup["recovery"] = {**setup["recovery"], "members": members}
        elif len(founders) != 1:
            raise Refused(f"{len(founders)} of these traces begin with the token; one must.")
        for key in ("node", "name"):
            setup.pop(key)
        setup.update(
            nodes=len(self.parts),
            names=[part.setup["name"] for part in self.parts],
            links=[],
            holder=-1 if leased else self.names[founders[0]],
        )
        if not leased:
            setup.update(components=self.agreed.components)
        yield setup
        start = min((part.steps[0][0]["t"] for part in self.parts if part.steps), default=0.0)
        for step in self.in_order():
            self.now = max(self.now, step[0]["t"] - start)
            self.start = start
            if step[0]["event"] == "restart":
                yield from self.life_ends(step[0]["node"])
            if leased and step[0].get("peer", step[0]["node"]) not in self.names:
                continue  # a node without clients need not have a trace
            for event in step:
                yield self.translated(event)
            if step[0]["event"] == "link-down":
                yield from self.dropped((step[0]["node"], step[0]["peer"]))
        for link in list(self.hopeless):
            yield from self.dropped(link)
        if ended and not self.short:
            yield {"t": self.now, "event": "end", "unserved": len(self.waiting)}

    def in_order(self) -> Iterator[Step]:
        """The earliest step of all nodes whose message, if it is a delivery, has been sent."""
        while True:
            heads = [(part.head(), part) for part in self.parts]
            ready = [
                (step[0]["t"], place)
                for place, (step, _) in enumerate(heads)
                if step is not None
                and (step[0]["event"] != "deliver" or message(step[0]) in self.sent)
            ]
            if not ready:
                strangers = [
                    step for step, _ in heads if step and step[0]["from"] not in self.names
                ]
                if strangers:
                    raise Refused("A message arrived that none of these nodes sent: add its trace.")
                self.short = any(step is not None for step, _ in heads)
                return
            part = self.parts[min(ready)[1]]
            yield part.steps[part.next]
            part.next += 1

    def translated(self, event: Event) -> Event:
        line = dict(event)
        line["t"] = self.now
        node = event["node"]
        line["node"] = self.names[node]
        kind = event["event"]
        if "client" in event:
            who = (node, event["client"])
            if who not in self.clients:
                self.last_client += 1
                self.clients[who] = self.last_client
            line["client"] = self.clients[who]
        if "args" in event:
            line["args"] = self.renamed(event["args"], self.heights.get(event["message"], ()))
        if "until" in event:
            line["until"] = event["until"] - self.start
        if "peer" in event:
            line["peer"] = self.place(event["peer"])
            self.link(line["node"], line["peer"], kind == "link-up")
            if self.agreed.components > 1:
                line["components"] = self.agreed.components
        if kind == "request":
            self.waiting[line["client"]] = node
        elif kind in ("enter", "withdraw"):
            del self.waiting[line["client"]]
        elif kind == "send":
            name = (node, event["to"], event["id"])
            self.messages += 1
            line["id"] = self.sent[name] = self.messages
            line["to"] = self.place(event["to"])
            if name not in self.delivered and ("tokens" in event or "permits" in event):
                self.missing += 1
            elif name not in self.delivered:
                self.hopeless.setdefault((node, event["to"]), []).append(line["id"])
        elif kind == "deliver":
            line["id"] = self.sent[message(event)]
            line["from"] = self.names[event["from"]]
        return line

    def renamed(self, args: Event, heights: tuple[str, ...]) -> Event:
        """With the nodes in heights numbered as they are here."""
        said = dict(args)
        for field in set(heights) & set(args):
            *above, node = args[field]
            said[field] = [*above, self.names.get(node, node)]
        return said

    def place(self, node: int) -> int:
        """A node's number in the merged trace."""
        if node not in self.names:
            raise Refused("A node took part whose trace is not among these: add its trace.")
        return self.names[node]

    def link(self, me: int, peer: int, up: bool) -> None:
        """One end sees its link form or fail; it joins the two while both see it."""
        if up:
            self.seen.add((me, peer))
        else:
            self.seen.discard((me, peer))
        joined = up and (peer, me) in self.seen
        if joined and not self.agreed.linked(me, peer):
            self.agreed.connect(me, peer)
        elif not joined and self.agreed.linked(me, peer):
            self.agreed.cut(me, peer)

    def life_ends(self, node: int) -> Iterator[Event]:
        """Who waited there does not any more; who was inside is until its lease is over."""
        here = self.names[node]
        for client in [client for client, where in self.waiting.items() if where == node]:
            del self.waiting[client]
            yield {"t": self.now, "node": here, "event": "withdraw", "client": client}
        self.clients = {name: client for name, client in self.clients.items() if name[0] != node}
        yield {"t": self.now, "node": here, "event": "crash"}

    def dropped(self, link: tuple[int, int]) -> Iterator[Event]:
        for number in self.hopeless.pop(link, []):
            node = self.names[link[1]]
            yield {"t": self.now, "node": node, "event": "drop", "id": number}


def message(delivery: Event) -> Id:
    return (delivery["from"], delivery["node"], delivery["id"])
