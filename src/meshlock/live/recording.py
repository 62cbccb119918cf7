"""A live node's part of the trace of one pool; ``meshlock.trace.merge`` puts them together."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

from meshlock import __version__
from meshlock.algorithms.interface import Algorithm, Effect, Message, Node
from meshlock.algorithms.registry import ageing_rate
from meshlock.live.charter import Charter
from meshlock.trace.writer import FORMAT, TraceWriter, arguments


class Recording:
    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.file = path.open("wb", buffering=1 << 16)
        self.writer = TraceWriter(self.file, states=False)

    def begin(self, charter: Charter, algorithm: Algorithm, core: Node) -> None:
        self.file.seek(0)  # a founding that was withdrawn leaves no trace
        self.file.truncate()
        founder = core.tokens() > 0 or core.free_permits() > 0
        self.writer.tokens[core.me] = core.tokens()
        self.writer.free[core.me] = core.free_permits()
        self.writer.line(
            {
                "meshlock": "trace",
                "format": FORMAT,
                "version": __version__,
                "source": "live",
                "algorithm": charter.algorithm,
                "options": charter.options,
                "pool": charter.pool,
                "name": self.name,
                "node": core.me,
                "permits": charter.permits,
                "holder": core.me if founder else -1,
                "ordered": algorithm.priorities,
                "balanced": algorithm.token,
                "ageing": ageing_rate(charter.options),
            }
        )

    def delivery(self, message: Message) -> dict[str, Any]:
        cause = {"id": message.serial, "from": message.sender, "message": message.kind}
        return {**cause, "args": arguments(message)}

    def step(self, event: str, core: Node, cause: dict[str, Any], effects: list[Effect]) -> None:
        self.writer.step(monotonic(), event, core, cause, effects)

    def close(self) -> None:
        self.file.close()
