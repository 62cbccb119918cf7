"""What a pool has done on this node, in numbers."""

from __future__ import annotations

from time import monotonic
from typing import Final

BOUNDS: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Upper bounds of the waiting times that are counted together, in seconds."""

TOKEN = "TOKEN"
"""The kind of message that carries the token, in every algorithm that has one."""


class Measures:
    def __init__(self) -> None:
        self.entries = 0
        self.lost = 0  # grants whose lease ran out
        self.met = 0  # deadlines ...
        self.missed = 0  # ... by requests that were granted too late, or gave up after it
        self.sent: dict[str, int] = {}  # kind: messages
        self.received = 0
        self.waited = 0.0  # by all together, in seconds
        self.waits = [0] * (len(BOUNDS) + 1)
        self.token_seen: float | None = None  # when it last left, if it was ever here

    def enters(self, waited: float) -> None:
        self.entries += 1
        self.waited += waited
        place = 0
        while place < len(BOUNDS) and BOUNDS[place] < waited:
            place += 1
        self.waits[place] += 1

    def judges(self, met: bool) -> None:
        """Of a request with a deadline."""
        if met:
            self.met += 1
        else:
            self.missed += 1

    def sends(self, kind: str) -> None:
        self.sent[kind] = self.sent.get(kind, 0) + 1
        if kind == TOKEN:
            self.token_seen = monotonic()
