"""Write a run of nodes that recover; docs/trace-format.md says what the lines mean."""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.interface import Effect, Message
from meshlock.algorithms.recovery.messages import Epoch, Granted, Lost
from meshlock.trace.writer import FORMAT, TraceWriter, arguments


class RecoveryTrace:
    def __init__(self, writer: TraceWriter) -> None:
        self.writer = writer
        self.wants: dict[int, int] = {}
        self.known: dict[int, tuple[int, int, int]] = {}  # node: tokens, free, lent

    def begin(self, setup: dict[str, Any]) -> None:
        self.writer.line({"meshlock": "trace", "format": FORMAT, **setup})

    def step(
        self,
        time: float,
        event: str,
        me: int,
        cause: dict[str, Any],
        token: tuple[int, int, int],
        effects: list[Effect],
        made: Epoch | None,
        ends: dict[int, float],
    ) -> None:
        """One run of one handler. ``token``: whether it is here, free and lent permits after
        it; ``made``: the epoch whose token was made in it; ``ends``: of leases that changed."""
        line: dict[str, Any] = {"t": time, "node": me, "event": event, **cause}
        before = self.known.get(me, (0, 0, 0))
        for name, old, new in zip(("tokens", "free", "lent"), before, token, strict=True):
            if old != new:
                line[name] = new
        self.known[me] = token
        if event == "timer" and len(effects) == 0 and token == before and len(ends) == 0:
            return  # nothing has come of it
        if event == "request":
            self.wants[cause["client"]] = cause["want"]
        elif event in ("leave", "withdraw"):
            del self.wants[cause["client"]]
        self.writer.line(line)
        if made is not None:
            self.writer.line({"t": time, "node": me, "event": "recover", "epoch": made})
        for effect in effects:
            if isinstance(effect, Message):
                self.writer.sent(time, me, effect)
            elif isinstance(effect, Granted):
                entered = {"t": time, "node": me, "event": "enter", "client": effect.client}
                entered["want"] = self.wants[effect.client]
                entered["fence"] = effect.fence
                entered["until"] = ends.pop(effect.client)
                self.writer.line(entered)
            elif isinstance(effect, Lost):
                self.lost(time, me, effect.client)
        for client, until in ends.items():
            renewed = {"t": time, "node": me, "event": "lease", "client": client, "until": until}
            self.writer.line(renewed)

    def had_token(self, me: int) -> bool:
        return self.known.get(me, (0, 0, 0))[0] > 0

    def arrival(self, message: Message) -> dict[str, Any]:
        cause = {"id": message.serial, "from": message.sender, "message": message.kind}
        return {**cause, "args": arguments(message)}

    def lost(self, time: float, me: int, client: int) -> None:
        del self.wants[client]
        self.writer.line({"t": time, "node": me, "event": "lease-lost", "client": client})

    def link(self, time: float, one: int, other: int, up: bool, components: int) -> None:
        event = "link-up" if up else "link-down"
        for me, peer in ((one, other), (other, one)):
            line = {"t": time, "node": me, "event": event, "peer": peer}
            if components > 1:
                line["components"] = components
            self.writer.line(line)
