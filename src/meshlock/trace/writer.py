"""Write a run as it happens; docs/reference/trace-format.md says what the lines mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from meshlock.algorithms.actor import Actor, ChoosingActor, Effect, Enter, Frozen, Lost, Message
from meshlock.algorithms.amounts import Kinds
from meshlock.algorithms.recovery.messages import Inner
from meshlock.algorithms.recovery.records import Epoch
from meshlock.trace.setup import TraceSetup

AMOUNTS = ("want", "permits", "free", "lent", "lends", "resize")
"""The keys of amounts. Of several kinds they are written as a number per kind."""


def arguments(message: Message) -> dict[str, Any]:
    return dict(zip(message.fields, message.freeze()[1:], strict=True))


def contents(message: Message) -> dict[str, Any]:
    """Kind and fields, and the seal of a message of the algorithm inside a recovery layer."""
    if isinstance(message, Inner):
        return {**contents(message.message), "seal": message.seal()}
    return {"message": message.kind, "args": arguments(message)}


def arrival(message: Message) -> dict[str, Any]:
    """The cause of a ``deliver``."""
    return {"id": message.serial, "from": message.sender, **contents(message)}


def came_back(message: Message) -> dict[str, Any]:
    """The cause of an ``undelivered``."""
    return {"id": message.serial, "to": message.receiver, **contents(message)}


@dataclass
class LeaseStep:
    """What a step of a node under leases says besides: how many permits the ledger of its
    token counts, the epoch whose token it made, how many permits and which members that has, the
    leases it renewed, and all there are."""

    lent: int
    minted: Epoch | None
    permits: int
    renewed: dict[int, float]
    ends: dict[int, float]
    members: tuple[int, ...] = ()


class TraceWriter:
    """Turns steps into lines of JSON for ``sink``, anything with a ``write`` for bytes."""

    def __init__(self, sink: Any, states: bool) -> None:
        self.write = sink.write
        self.states = states
        self.encode = msgspec.json.Encoder().encode
        self.permits = 0  # of the pool, as its set-up says
        self.kinds: Kinds | None = None  # where there are several
        self.members: list[int] = []  # as was said last
        self.wants: dict[int, int] = {}  # client: what it asked for, until it leaves
        self.tokens: dict[int, int] = {}
        self.free: dict[int, int] = {}
        self.lent: dict[int, int] = {}
        self.last: dict[int, Frozen] = {}

    def begin(self, setup: TraceSetup, nodes: list[Actor]) -> None:
        """The first line; ``nodes`` as they are before anything has happened."""
        self.permits, self.kinds = setup.permits, setup.kinds
        self.members = list((setup.recovery or {}).get("members", []))
        for node in nodes:
            if node.tokens():
                setup.holder = node.me
                self.tokens[node.me] = 1
            if node.free_permits():
                self.free[node.me] = node.free_permits()
        line = setup.line()
        if nodes and isinstance(nodes[0], ChoosingActor) and nodes[0].choices() > 1:
            line["choices"] = nodes[0].choice_names
        if self.states:
            line["states"] = [self.changed(node) for node in nodes]
        self.line(line)

    def line(self, event: dict[str, Any]) -> None:
        if self.kinds is not None:
            for key in AMOUNTS:
                if key in event:
                    event[key] = self.kinds.outward(event[key])
        self.write(self.encode(event) + b"\n")

    def event(self, time: float, me: int, event: str, **more: Any) -> None:
        self.line({"t": time, "node": me, "event": event, **more})

    def step(
        self,
        time: float,
        event: str,
        node: Actor,
        cause: dict[str, Any],
        effects: list[Effect],
        choice: int = -1,
        leased: LeaseStep | None = None,
    ) -> None:
        """One run of one handler; ``choice`` is what was chosen before, if anything was."""
        me = node.me
        line: dict[str, Any] = {"t": time, "node": me, "event": event}
        if choice >= 0:
            line["choice"] = choice
        line.update(cause)
        if event == "request":
            self.wants[cause["client"]] = cause["want"]
        elif event == "give-back":
            self.wants[cause["client"]] -= cause["permits"]
        elif event in ("leave", "withdraw"):
            del self.wants[cause["client"]]
        tokens, free = node.tokens(), node.free_permits()
        if tokens != self.tokens.get(me, 0):
            line["tokens"] = self.tokens[me] = tokens
        if free != self.free.get(me, 0):
            line["free"] = self.free[me] = free
        if leased is not None and leased.lent != self.lent.get(me, 0):
            line["lent"] = self.lent[me] = leased.lent
        if self.states:
            changed = self.changed(node)
            if changed:
                line["state"] = changed
        self.line(line)
        if leased is not None and leased.minted is not None:
            made: dict[str, Any] = {"epoch": leased.minted}
            members = list(leased.members)
            if members and members != self.members:
                self.members = made["members"] = members
            self.event(time, me, "recover", **made, **self.other(leased.permits))
        for effect in effects:
            if isinstance(effect, Message):
                self.sent(time, me, effect)
            elif isinstance(effect, Enter):
                want = self.wants.get(effect.client, 0)  # mutants let in unknown clients
                entered: dict[str, Any] = {"client": effect.client, "want": want}
                if effect.fence:
                    entered["fence"] = effect.fence
                if effect.slots:
                    entered["slots"] = effect.slots
                if leased is not None:
                    entered["until"] = leased.ends[effect.client]
                    entered.update(self.other(effect.permits))
                self.event(time, me, "enter", **entered)
            elif isinstance(effect, Lost):
                self.lease_lost(time, me, effect.client)
        if leased is not None:
            for client, until in leased.renewed.items():
                self.event(time, me, "lease", client=client, until=until)

    def other(self, permits: int) -> dict[str, int]:
        """k, where it is not that of the set-up any more."""
        return {"permits": permits} if permits != self.permits else {}

    def lease_lost(self, time: float, me: int, client: int) -> None:
        del self.wants[client]
        self.event(time, me, "lease-lost", client=client)

    def sent(self, time: float, me: int, message: Message) -> None:
        carried = {
            "tokens": message.tokens(),
            "permits": message.permits(),
            "lends": message.lends(),
        }
        about = {"id": message.serial, "to": message.receiver, **contents(message)}
        about |= {name: number for name, number in carried.items() if number}
        self.event(time, me, "send", **about)

    def dropped(self, time: float, message: Message) -> None:
        self.event(time, message.receiver, "drop", id=message.serial)

    def gave_up(self, time: float, me: int, client: int) -> None:
        """A waiting client, because its node crashes."""
        del self.wants[client]
        self.event(time, me, "withdraw", client=client, crash=True)

    def crashed(self, time: float, me: int) -> None:
        known = {"tokens": self.tokens, "free": self.free, "lent": self.lent}
        gone = {name: 0 for name, numbers in known.items() if numbers.pop(me, 0) != 0}
        self.event(time, me, "crash", **gone)

    def moved(self, time: float, node: int, x: float, y: float) -> None:
        self.event(time, node, "move", x=x, y=y)

    def end(self, time: float, unserved: int, violated: dict[str, str]) -> None:
        wrong = {"violated": violated} if violated else {}
        self.line({"t": time, "event": "end", "unserved": unserved, **wrong})

    def changed(self, node: Actor) -> dict[str, Any]:
        """The variables of this node that differ from when it was looked at last."""
        now = node.freeze()
        before = self.last.get(node.me)
        self.last[node.me] = now
        names = node.variables
        if before is None:
            return dict(zip(names, now, strict=True))
        return {names[i]: now[i] for i in range(len(names)) if now[i] != before[i]}
