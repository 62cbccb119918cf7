"""While the front of the queue waits for permits, may a smaller request go?"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.ranked import Ranked, RankedRequest
from meshlock.algorithms.variables import StatePart


class Strict(StatePart):
    """No request passes the front."""

    def __init__(self) -> None:
        self.most = 0  # requests that may pass a front that waits
        self.passed = 0  # requests of lower rank than ``blocked`` that were let in since
        self.blocked: int | None = None  # the highest rank that had to wait for permits

    def next_entry(self, queue: Ranked, front: RankedRequest, free: int) -> RankedRequest | None:
        """``front`` wants more than is free: the entry whose turn it is, or None: all wait."""
        return front

    def let_in(self, entry: RankedRequest) -> None:
        """This entry's client enters."""

    def set_to(self, passed: int, blocked: int | None) -> None:
        """The state of a token that arrives, or the initial one."""
        self.passed = passed
        self.blocked = blocked

    def freeze(self) -> tuple[object, ...]:
        return () if self.blocked is None else (self.passed, self.blocked)

    def thaw(self, frozen: tuple[Any, ...]) -> None:
        self.passed, self.blocked = frozen or (0, None)


class Backfill(Strict):
    """A request that fits into the free permits may pass, but only ``most`` of lower rank."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def next_entry(self, queue: Ranked, front: RankedRequest, free: int) -> RankedRequest | None:
        if self.passed < self.most:
            for entry in queue.entries:
                if entry.want <= free:
                    if self.blocked is None or self.blocked < front.rank:
                        self.blocked = front.rank
                    return entry
        return None

    def let_in(self, entry: RankedRequest) -> None:
        if self.blocked is not None and entry.rank < self.blocked:
            self.passed += 1
        else:
            self.set_to(0, None)
