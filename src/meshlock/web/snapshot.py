"""Everything that is so between two steps of a trace, and how a line of it changes that.

The page knows the same (page/model.js); a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from typing import Any

import msgspec

NOTHING = msgspec.Raw(b"{}")


class TraceEvent(msgspec.Struct, gc=False):
    """What the index must know of a line; the page reads the line itself."""

    t: float
    event: str
    node: int = -1
    id: int = -1
    peer: int = -1
    client: int = -1
    want: int = 1
    permits: int = 0
    priority: float = 0
    tokens: int = -1
    free: int = -1
    x: float = 0
    y: float = 0
    state: dict[str, msgspec.Raw] | None = None
    violated: dict[str, str] | None = None


class SentMessage(msgspec.Struct, gc=False):
    """A message on its way, as its line says."""

    node: int
    to: int
    message: str
    args: msgspec.Raw = NOTHING
    tokens: int = 0
    permits: int = 0

    def shown(self) -> dict[str, Any]:
        told = msgspec.structs.asdict(self)
        return {"from": told.pop("node"), **told}


class Snapshot(msgspec.Struct, gc=False):
    """Everything that is so between two steps; copies share what does not change."""

    tokens: dict[int, int] = {}  # nodes that have any
    free: dict[int, int] = {}
    clients: dict[int, tuple[int, int, float, int, int]] = {}
    # by number: node, want, priority, the step of asking and of entering (or -1)
    inside: int = 0  # permits in use
    served: int = 0  # clients that use them
    flying: dict[int, tuple[int, bytes]] = {}  # by number: step of sending, the line
    up: dict[tuple[int, int], None] = {}  # links that were not there at the start
    down: dict[tuple[int, int], None] = {}  # links of the start that have failed
    gone: dict[int, None] = {}  # nodes that have crashed
    variables: list[dict[str, msgspec.Raw]] = []  # where states were recorded

    def copy(self) -> Snapshot:
        return Snapshot(*map(copy, msgspec.structs.astuple(self)))

    def follow(self, event: TraceEvent, step: int, line: bytes) -> None:
        """What this line changes."""
        kind, node = event.event, event.node
        if event.tokens >= 0 and kind != "send":
            self.tokens[node] = event.tokens
        if event.free >= 0:
            self.free[node] = event.free
        if event.state is not None and self.variables:
            self.variables[node] = {**self.variables[node], **event.state}
        if kind == "send":
            self.flying[event.id] = (step, line)
        elif kind == "deliver" or kind == "undelivered" or kind == "drop":
            self.flying.pop(event.id, None)
        elif kind == "request":
            self.clients[event.client] = (node, event.want, event.priority, step, -1)
        elif kind == "enter":
            before = self.clients.get(event.client, (node, event.want, 0.0, step, -1))
            self.clients[event.client] = (*before[:4], step)
            self.inside += before[1]
            self.served += 1
        elif kind == "give-back" and event.client in self.clients:
            place, want, priority, asked, entered = self.clients[event.client]
            self.clients[event.client] = (place, want - event.permits, priority, asked, entered)
            self.inside -= event.permits
        elif kind == "priority" and event.client in self.clients:
            place, want, _, asked, entered = self.clients[event.client]
            self.clients[event.client] = (place, want, event.priority, asked, entered)
        elif kind == "leave" or kind == "withdraw" or kind == "lease-lost":
            client = self.clients.pop(event.client, None)
            if client is not None and client[4] >= 0:
                self.inside -= client[1]
                self.served -= 1
        elif kind == "link-up":
            pair = (node, event.peer) if node < event.peer else (event.peer, node)
            self.down.pop(pair, None)
            self.up[pair] = None
        elif kind == "link-down":
            pair = (node, event.peer) if node < event.peer else (event.peer, node)
            self.up.pop(pair, None)
            self.down[pair] = None
        elif kind == "crash":
            self.gone[node] = None
        elif kind == "restart":
            self.gone.pop(node, None)

    def sent(self) -> Iterator[tuple[int, int, SentMessage]]:
        """What is on its way: its number, the step in which it was sent, and what it is."""
        for number, (step, line) in self.flying.items():
            with suppress(msgspec.ValidationError):  # sent to nobody: there is nothing to draw
                yield number, step, msgspec.json.decode(line, type=SentMessage)

    def shown(self) -> dict[str, Any]:
        """For the page."""
        return {
            "tokens": [[node, count] for node, count in self.tokens.items() if count],
            "free": [[node, count] for node, count in self.free.items() if count],
            "clients": [[number, *client] for number, client in self.clients.items()],
            "flying": [
                {"id": number, "step": step, **sent.shown()} for number, step, sent in self.sent()
            ],
            "up": list(self.up),
            "down": list(self.down),
            "gone": list(self.gone),
            "variables": self.variables,
        }
