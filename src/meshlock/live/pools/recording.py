"""A live node's part of the trace of one pool; ``meshlock.trace.merge`` puts them together."""

from __future__ import annotations

from contextlib import suppress
from logging import ERROR
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, cast

import msgspec

from meshlock import __version__
from meshlock.algorithms.interface import Algorithm, Effect, Message, Node
from meshlock.live.machine import clock
from meshlock.live.machine.error_text import error_text
from meshlock.live.machine.logs import tell
from meshlock.live.pools.pool_configuration import Charter
from meshlock.properties.promises import promises
from meshlock.trace.writer import FORMAT, TraceWriter, arguments

SLACK = 10
"""The part of a lease by which renewals may be told late."""

ENDS = ("leave", "withdraw", "lease-lost")
"""After these a client is inside no more."""


class FirstLine(msgspec.Struct):
    """Of a file of a trace."""

    part: int = 1


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
        self.setup: dict[str, Any] = {}
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
                self.writer.line(self.setup | {"part": self.part})
            if self.file is not None:
                self.file.write(line)
                self.size += len(line)
        except OSError as error:
            self.give_up(error)

    def give_up(self, error: OSError) -> None:
        file, self.file = self.file, None
        if file is not None:
            with suppress(OSError):  # it would write once more what it could not write
                file.close()
        tell(ERROR, "trace ended", file=str(self.path), reason=error_text(error))

    def close(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                tell(ERROR, "trace ended", file=str(self.path), reason=error_text(error))

    # -- lines -------------------------------------------------------------------------

    def begin(self, charter: Charter, algorithm: Algorithm, core: Node) -> None:
        self.close()
        with suppress(OSError):
            self.earlier.unlink()
        self.part = 1
        self.open("wb")  # a founding that was withdrawn leaves no trace
        founder = core.tokens() > 0 or core.free_permits() > 0
        self.writer.tokens[core.me] = core.tokens()
        self.writer.free[core.me] = core.free_permits()
        self.set_up(charter, algorithm, core.me, core.me if founder else -1)
        self.writer.line(self.setup)

    def begin_leased(
        self, charter: Charter, algorithm: Algorithm, me: int, members: list[int]
    ) -> None:
        """A pool with leases outlives its nodes, so a life is added to those before it. Only
        clients are told of, not the token and its messages: who may be inside is judged by
        leases and fences."""
        with suppress(OSError, msgspec.MsgspecError), self.path.open("rb") as file:
            self.part = msgspec.json.decode(file.readline(), type=FirstLine).part
        self.open("ab")
        lease = charter.lease / 1e6
        self.set_up(charter, algorithm, me, -1)
        self.setup["recovery"] = {"members": members, "lease": lease, "slack": lease / SLACK}
        self.leased_line(self.setup)

    def set_up(self, charter: Charter, algorithm: Algorithm, me: int, holder: int) -> None:
        self.setup = {
            "meshlock": "trace",
            "format": FORMAT,
            "version": __version__,
            "source": "live",
            "algorithm": charter.algorithm,
            "options": charter.options,
            "pool": charter.pool,
            "name": self.name,
            "node": me,
            "permits": charter.permits,
            "holder": holder,
            **promises(algorithm, charter.options).line(),
        }

    # -- of pools with leases ----------------------------------------------------------

    def leased(self, event: str, me: int, **fields: Any) -> None:
        """A client did or was told something."""
        if event in ENDS:
            self.until.pop(fields["client"], None)
        self.leased_line({"t": clock.seconds(), "node": me, "event": event, **fields})

    def entered(self, me: int, client: int, fence: int, until: float | None) -> None:
        self.until[client] = until
        self.leased("enter", me, client=client, fence=fence, until=until)

    def renewed(self, me: int, client: int, until: float | None) -> None:
        """Nothing is written if that is known."""
        if client in self.until and self.until[client] != until:
            self.until[client] = until
            self.leased("lease", me, client=client, until=until)

    def leased_line(self, line: dict[str, Any]) -> None:
        """At once: who is killed leaves what it had to say."""
        self.writer.line(line)
        if self.file is not None:
            try:
                self.file.flush()
            except OSError as error:
                self.give_up(error)

    # -- of others -----------------------------------------------------------------------

    def delivery(self, message: Message) -> dict[str, Any]:
        cause = {"id": message.serial, "from": message.sender, "message": message.kind}
        return {**cause, "args": arguments(message)}

    def step(self, event: str, core: Node, cause: dict[str, Any], effects: list[Effect]) -> None:
        self.writer.step(monotonic(), event, core, cause, effects)
