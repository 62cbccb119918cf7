"""A live node's part of the trace of one pool; ``meshlock.trace.merge`` puts them together.

It changes nothing in what it records, and a trace that cannot be written stops nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from logging import ERROR
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, cast

import msgspec

from meshlock.algorithms.actor import NIL, Actor, Algorithm, Effect, Enter, Lost, Message
from meshlock.algorithms.recovery.messages import Inner, content
from meshlock.algorithms.recovery.records import fence_number
from meshlock.live.machine import clock
from meshlock.live.machine.error_text import error_text
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.adapter import Adapter
from meshlock.live.pools.members import LayerRunner
from meshlock.live.pools.pool_configuration import PoolConfiguration
from meshlock.properties.promises import promises
from meshlock.trace.setup import TraceSetup
from meshlock.trace.writer import TraceWriter, arguments

SLACK = 10  # the part of a lease by which renewals may be told late
CLIENTS = ("request", "leave", "give-back", "withdraw", "priority")  # what a client does
ENDS = ("leave", "withdraw", "lease-lost")  # after these a client is inside no more


class Recording:
    """Permits matter more than their trace: where it cannot be written it ends, and they go on.

    A trace has two files at most, each of half the ``limit`` in bytes. When one is full it becomes
    the earlier part (``.1``) in place of the one before it, and another begins with a set-up that
    says which part it is.
    """

    def __init__(self, path: Path, name: str, limit: int) -> None:
        self.name = name
        self.path = path
        self.earlier = path.with_name(path.name + ".1")
        self.most = limit // 2
        self.file: BinaryIO | None = None
        self.size = 0
        self.part = 1
        self.setup: TraceSetup | None = None
        self.writer = TraceWriter(self, states=False)
        self.until: dict[int, float | None] = {}  # client inside: the end of its lease, as written

    # -- files -------------------------------------------------------------------------

    def open(self, mode: str) -> None:
        try:
            self.file = cast(BinaryIO, self.path.open(mode, buffering=1 << 16))
            self.size = self.file.tell()
        except OSError as error:
            self.give_up(error)

    def write(self, line: bytes) -> None:
        try:
            if self.file is not None and self.size and self.size + len(line) > self.most:
                self.file.close()
                self.path.replace(self.earlier)
                self.part += 1
                self.open("wb")
                assert self.setup is not None
                self.writer.line(replace(self.setup, part=self.part).line())
            if self.file is not None:
                self.file.write(line)
                self.size += len(line)
        except OSError as error:
            self.give_up(error)

    def give_up(self, error: OSError) -> None:
        log_event(ERROR, "trace ended", file=str(self.path), reason=error_text(error))
        with suppress(OSError):  # it would write once more what it could not write
            self.close_file()

    def close_file(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            file.close()

    def close(self) -> None:
        try:
            self.close_file()
        except OSError as error:
            self.give_up(error)

    # -- lines -------------------------------------------------------------------------

    def begin(
        self, pool: Adapter, configuration: PoolConfiguration, algorithm: Algorithm, core: Actor
    ) -> None:
        """A pool with members outlives its nodes, so a life is added to those before it. Only
        clients and links are written of, and grants to clients of other nodes, not the token and
        its messages: who may be inside is judged by leases and fences, who goes first by who has
        asked and can be reached."""
        recovery: dict[str, Any] | None = None
        holder = core.me if core.tokens() > 0 or core.free_permits() > 0 else NIL
        if pool.members is not None:
            members = [pool.meet(name) for name in configuration.members]
            lease = configuration.lease / 1e6
            recovery = {"members": members, "lease": lease, "slack": lease / SLACK}
        self.setup = TraceSetup(
            source="live",
            algorithm=algorithm.name,
            options=configuration.options,
            promised=promises(algorithm, configuration.options, leased=recovery is not None),
            permits=configuration.permits,
            holder=holder,
            pool=configuration.pool,
            name=self.name,
            node=core.me,
            recovery=recovery,
        )
        self.writer.permits = configuration.permits
        self.close()
        self.part = 1
        if recovery is not None:
            with suppress(OSError, msgspec.MsgspecError), self.path.open("rb") as file:
                first = msgspec.json.decode(file.readline(), type=dict[str, Any])
                self.part = int(first.get("part", 1))
            self.open("ab")
            self.write_now(self.setup.line())
            return
        with suppress(OSError):
            self.earlier.unlink()
        self.open("wb")  # a founding that was withdrawn leaves no trace
        self.writer.tokens[core.me] = core.tokens()
        self.writer.free[core.me] = core.free_permits()
        self.write_now(self.setup.line())

    def delivery(self, message: Message) -> dict[str, Any]:
        cause = {"id": message.serial, "from": message.sender, "message": content(message).kind}
        return {**cause, "args": arguments(content(message))}

    def step(self, pool: Adapter, event: str, cause: dict[str, Any], effects: list[Effect]) -> None:
        core = pool.core
        assert core is not None
        if pool.members is None:
            self.writer.step(monotonic(), event, core, cause, effects)
            self.flush()
        else:
            self.leased_step(pool.members, event, cause, effects)

    # -- of pools with members ---------------------------------------------------------

    def leased_step(
        self, members: LayerRunner, event: str, cause: dict[str, Any], effects: list[Effect]
    ) -> None:
        me = members.node.me
        outcomes = [effect for effect in effects if is_told(effect)]
        if event == "leave" and self.slept_over(members, cause["client"]):
            event = "lease-lost"
        if event in CLIENTS or event in ("link-up", "link-down", "lease-lost"):
            self.leased(event, me, **cause)
        elif outcomes:
            self.leased("timer", me)
        for effect in outcomes:
            if isinstance(effect, Lost):
                self.leased("lease-lost", me, client=effect.client)
            elif isinstance(effect, Message):
                assert isinstance(effect, Inner) and effect.lent is not None
                fence = fence_number(effect.lent.fence) + members.configuration.fences
                self.leased("timer", me, lends=effect.lends(), fence=fence)
            elif isinstance(effect, Enter):
                client = effect.client
                until = self.until[client] = members.until(client)
                more: dict[str, Any] = self.writer.other(effect.permits)
                if effect.slots:
                    more["slots"] = effect.slots
                self.leased("enter", me, client=client, fence=effect.fence, until=until, **more)
        if event == "timer":
            self.renewals(members)

    def slept_over(self, members: LayerRunner, client: int) -> bool:
        """Has the lease of this client ended since the node ran last? Then the node was stopped,
        and cannot know whether the client released in time."""
        until = self.until.get(client)
        ran = members.node.timers.woken_at / 1e6 / members.mesh.clock_rate
        return until is not None and ran < until <= clock.seconds()

    def renewals(self, members: LayerRunner) -> None:
        for client in [grant.client for grant in members.member.grants.values()]:
            until = members.until(client)
            if client in self.until and self.until[client] != until:
                self.until[client] = until
                self.leased("lease", members.node.me, client=client, until=until)

    def leased(self, event: str, me: int, **fields: Any) -> None:
        """A client did or was told something."""
        if event in ENDS:
            self.until.pop(fields["client"], None)
        self.write_now({"t": clock.seconds(), "node": me, "event": event, **fields})

    def write_now(self, line: dict[str, Any]) -> None:
        self.writer.line(line)
        self.flush()

    def flush(self) -> None:
        """A killed process leaves what it had to say; a step is written down before its messages
        leave, so nobody has received what no trace says was sent."""
        if self.file is not None:
            try:
                self.file.flush()
            except OSError as error:
                self.give_up(error)


def is_told(effect: Effect) -> bool:
    """What a client is told, or a grant that is made to one of another node."""
    return isinstance(effect, Enter | Lost) or (isinstance(effect, Message) and effect.lends() > 0)
