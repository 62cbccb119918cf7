"""Write a run as it happens; docs/trace-format.md says what the lines mean."""

from __future__ import annotations

from typing import Any

import msgspec

from meshlock.algorithms.interface import Effect, Enter, Frozen, Message, Network, Node

FORMAT = 1


def arguments(message: Message) -> dict[str, Any]:
    return dict(zip(message.fields, message.freeze()[1:], strict=True))


class TraceWriter:
    """Turns steps into lines of JSON for ``sink``, anything with a ``write`` for bytes."""

    def __init__(self, sink: Any, states: bool) -> None:
        self.write = sink.write
        self.states = states
        self.encode = msgspec.json.Encoder().encode
        self.wants: dict[int, int] = {}  # client: what it asked for, until it leaves
        self.tokens: dict[int, int] = {}
        self.free: dict[int, int] = {}
        self.last: dict[int, Frozen] = {}

    def begin(
        self, setup: dict[str, Any], network: Network, links: Any, permits: int, nodes: list[Node]
    ) -> None:
        """The first line; ``nodes`` as they are before anything has happened."""
        holder = -1
        for node in nodes:
            if node.tokens():
                holder = node.me
                self.tokens[node.me] = 1
            if node.free_permits():
                self.free[node.me] = node.free_permits()
        line = {"meshlock": "trace", "format": FORMAT, **setup}
        line.update(nodes=network.size, links=links, permits=permits, holder=holder)
        if nodes and nodes[0].choices() > 1:
            line["choices"] = nodes[0].choice_names
        if self.states:
            line["states"] = [self.changed(node) for node in nodes]
        self.line(line)

    def line(self, event: dict[str, Any]) -> None:
        self.write(self.encode(event) + b"\n")

    def step(
        self,
        time: float,
        event: str,
        node: Node,
        cause: dict[str, Any],
        effects: list[Effect],
        choice: int = -1,
    ) -> None:
        """One run of one handler; ``choice`` is what was chosen before, if anything was."""
        me = node.me
        line: dict[str, Any] = {"t": time, "node": me, "event": event}
        if choice >= 0:
            line["choice"] = choice
        line.update(cause)
        if event == "request":
            self.wants[cause["client"]] = cause["want"]
        elif event in ("leave", "withdraw"):
            del self.wants[cause["client"]]
        tokens, free = node.tokens(), node.free_permits()
        if tokens != self.tokens.get(me, 0):
            line["tokens"] = self.tokens[me] = tokens
        if free != self.free.get(me, 0):
            line["free"] = self.free[me] = free
        if self.states:
            changed = self.changed(node)
            if changed:
                line["state"] = changed
        self.line(line)
        for effect in effects:
            if isinstance(effect, Message):
                self.sent(time, me, effect)
            elif isinstance(effect, Enter):
                entered = {"t": time, "node": me, "event": "enter", "client": effect.client}
                entered["want"] = self.wants[effect.client]
                if effect.fence:
                    entered["fence"] = effect.fence
                self.line(entered)

    def sent(self, time: float, me: int, message: Message) -> None:
        line: dict[str, Any] = {
            "t": time,
            "node": me,
            "event": "send",
            "id": message.serial,
            "to": message.receiver,
            "message": message.kind,
            "args": arguments(message),
        }
        if message.tokens():
            line["tokens"] = message.tokens()
        if message.permits():
            line["permits"] = message.permits()
        self.line(line)

    def delivered(
        self, time: float, node: Node, message: Message, effects: list[Effect], choice: int = -1
    ) -> None:
        cause = {"id": message.serial, "from": message.sender, "message": message.kind}
        self.step(time, "deliver", node, {**cause, "args": arguments(message)}, effects, choice)

    def undelivered(self, time: float, node: Node, message: Message, effects: list[Effect]) -> None:
        cause = {"id": message.serial, "to": message.receiver, "message": message.kind}
        self.step(time, "undelivered", node, {**cause, "args": arguments(message)}, effects)

    def dropped(self, time: float, message: Message) -> None:
        self.line({"t": time, "node": message.receiver, "event": "drop", "id": message.serial})

    def moved(self, time: float, node: int, x: float, y: float) -> None:
        self.line({"t": time, "node": node, "event": "move", "x": x, "y": y})

    def end(self, time: float, unserved: int, violated: dict[str, str]) -> None:
        line: dict[str, Any] = {"t": time, "event": "end", "unserved": unserved}
        if violated:
            line["violated"] = violated
        self.line(line)

    def changed(self, node: Node) -> dict[str, Any]:
        """The variables of this node that differ from when it was looked at last."""
        now = node.freeze()
        before = self.last.get(node.me)
        self.last[node.me] = now
        names = node.variables
        if before is None:
            return dict(zip(names, now, strict=True))
        return {names[i]: now[i] for i in range(len(names)) if now[i] != before[i]}
