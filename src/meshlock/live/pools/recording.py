"""A live node's part of the trace of one pool; ``meshlock.trace.merge`` puts them together."""

from __future__ import annotations

from contextlib import suppress
from logging import ERROR
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO

from meshlock.algorithms.interface import NIL, Algorithm, Effect, Message, Node
from meshlock.live.machine import clock
from meshlock.live.machine.error_text import error_text
from meshlock.live.machine.logs import tell
from meshlock.live.pools.pool_configuration import Charter
from meshlock.properties.promises import promises
from meshlock.trace.setup import TraceSetup
from meshlock.trace.writer import TraceWriter, arguments

SLACK = 10
"""The part of a lease by which renewals may be told late."""


class Recording:
    """Permits matter more than their trace: where it cannot be written it ends, and they go on."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.path = path
        self.file: BinaryIO | None = None
        self.writer = TraceWriter(self, states=False)
        try:
            self.file = path.open("ab", buffering=1 << 16)
        except OSError as error:
            self.give_up(error)

    def write(self, line: bytes) -> None:
        if self.file is not None:
            try:
                self.file.write(line)
            except OSError as error:
                self.give_up(error)

    def give_up(self, error: OSError) -> None:
        file, self.file = self.file, None
        if file is not None:
            with suppress(OSError):  # it would write once more what it could not write
                file.close()
        tell(ERROR, "trace ended", file=str(self.path), reason=error_text(error))

    def begin_leased(
        self, charter: Charter, algorithm: Algorithm, me: int, members: list[int]
    ) -> None:
        """A pool with leases outlives its nodes, so a life is added to those before it. Only
        clients are told of, not the token and its messages: who may be inside is judged by
        leases and fences."""
        lease = charter.lease / 1e6
        recovery = {"members": members, "lease": lease, "slack": lease / SLACK}
        self.leased_line(self.setup(charter, algorithm, me, NIL, recovery).line())

    def setup(
        self,
        charter: Charter,
        algorithm: Algorithm,
        me: int,
        holder: int,
        recovery: dict[str, Any] | None = None,
    ) -> TraceSetup:
        return TraceSetup(
            source="live",
            algorithm=algorithm.name,
            options=charter.options,
            promised=promises(algorithm, charter.options, leased=recovery is not None),
            permits=charter.permits,
            holder=holder,
            pool=charter.pool,
            name=self.name,
            node=me,
            recovery=recovery,
        )

    def leased(self, event: str, me: int, **fields: Any) -> None:
        self.leased_line({"t": clock.seconds(), "node": me, "event": event, **fields})

    def leased_line(self, line: dict[str, Any]) -> None:
        """At once: who is killed leaves what it had to say."""
        self.writer.line(line)
        if self.file is not None:
            try:
                self.file.flush()
            except OSError as error:
                self.give_up(error)

    def begin(self, charter: Charter, algorithm: Algorithm, core: Node) -> None:
        if self.file is not None:
            try:
                self.file.seek(0)  # a founding that was withdrawn leaves no trace
                self.file.truncate()
            except OSError as error:
                self.give_up(error)
        founder = core.tokens() > 0 or core.free_permits() > 0
        self.writer.tokens[core.me] = core.tokens()
        self.writer.free[core.me] = core.free_permits()
        holder = core.me if founder else NIL
        self.writer.line(self.setup(charter, algorithm, core.me, holder).line())

    def delivery(self, message: Message) -> dict[str, Any]:
        cause = {"id": message.serial, "from": message.sender, "message": message.kind}
        return {**cause, "args": arguments(message)}

    def step(self, event: str, core: Node, cause: dict[str, Any], effects: list[Effect]) -> None:
        self.writer.step(monotonic(), event, core, cause, effects)

    def close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                tell(ERROR, "trace ended", file=str(self.path), reason=error_text(error))
