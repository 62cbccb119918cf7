"""Requests of this node. Those that wait with a deadline rise as it comes closer: :mod:`.steps`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Any

import msgspec

from meshlock.algorithms.steps import time_on_level
from meshlock.live.machine import clock
from meshlock.live.machine.failures import Failures
from meshlock.live.pools.grants import Grant


class Waiter(msgspec.Struct, eq=False):
    """One request, from the moment it is made until its permits are back."""

    want: int
    priority: int
    asked: float  # when
    label: str
    deadline: float | None = None  # by clock.seconds
    number: int = 0
    urgency: int = 0  # priority and deadline as one number, as the algorithm was told last
    since: float = 0.0  # when it was granted, by the clock of ``asked``
    grant: Grant | None = None
    future: asyncio.Future[Grant] | None = None
    failure: Exception | None = None  # why it could not even be handed in
    abandoned: bool = False  # nobody waits any more: what comes goes straight back
    rises: asyncio.TimerHandle | None = None  # while it waits with a deadline: when it does next

    def waits(self) -> bool:
        return self.grant is None and not self.abandoned

    def stays(self) -> None:
        """As urgent as it is."""
        if self.rises is not None:
            self.rises.cancel()
            self.rises = None

    def left(self) -> float | None:
        """Seconds until its deadline, below 0 if it has passed; None without one."""
        return None if self.deadline is None else round(self.deadline - clock.seconds(), 3)

    def shown(self, now: float) -> dict[str, Any]:
        """As plain values; ``seconds``: since it was made."""
        return {
            "want": self.want,
            "priority": self.priority,
            "label": self.label,
            "seconds": round(now - self.asked, 3),
            "client": self.number,
        }


class Rises:
    """Requests that wait with a deadline; each rises whenever its level does. ``rerank``: tells the
    algorithm."""

    def __init__(self, failures: Failures, rerank: Callable[[Waiter], object]) -> None:
        self.failures = failures
        self.rerank = rerank

    def add(self, waiter: Waiter) -> None:
        waiter.stays()
        if waiter.deadline is not None and waiter.waits():
            pause = time_on_level(waiter.deadline - clock.seconds())
            if pause < inf:
                waiter.rises = self.failures.later(pause, "deadlines", self.wake, waiter)

    def wake(self, waiter: Waiter) -> None:
        self.add(waiter)
        self.rerank(waiter)  # where the algorithm cannot, it stays as it is
