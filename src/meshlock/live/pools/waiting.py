"""Requests of this node. Those that wait with a deadline rise as it comes closer: :mod:`.steps`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
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

    def waits(self) -> bool:
        return self.grant is None and not self.abandoned

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
        self.added = 0
        self.due: list[tuple[float, int, Waiter]] = []  # when, its place among equals, and which
        self.most = 64  # of these; if there are more, most may not wait any more
        self.timer: asyncio.TimerHandle | None = None

    def add(self, waiter: Waiter) -> None:
        if waiter.deadline is None:
            return
        now = clock.seconds()
        pause = time_on_level(waiter.deadline - now)
        if pause < inf:
            if len(self.due) > self.most:
                self.due = [one for one in self.due if one[2].waits()]
                self.most = 2 * len(self.due) + 64
                heapify(self.due)
            self.added += 1
            heappush(self.due, (now + pause, self.added, waiter))
            if self.timer is None or self.due[0][2] is waiter:
                self.sleep()

    def sleep(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.due:
            pause = max(0.0, self.due[0][0] - clock.seconds())
            self.timer = self.failures.later(pause, "deadlines", self.wake)

    def wake(self) -> None:
        """What is due; whatever becomes of it, there is another time."""
        self.timer = None
        try:
            while self.due and self.due[0][0] <= clock.seconds():
                waiter = heappop(self.due)[2]
                if waiter.waits():
                    self.add(waiter)
                    self.rerank(waiter)  # where the algorithm cannot, it stays as it is
        finally:
            self.sleep()

    def close(self) -> None:
        self.due.clear()
        self.sleep()
