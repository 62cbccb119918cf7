"""Requests that wait with a deadline rise as it comes closer: see :mod:`.steps`."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from meshlock.algorithms.steps import time_on_level
from meshlock.live.machine import clock

if TYPE_CHECKING:
    import asyncio

    from meshlock.live.pools.grants import Waiter
    from meshlock.live.pools.pool import LocalPool


def time_left(deadline: float | None) -> float | None:
    """Seconds; below 0 if it has passed."""
    return None if deadline is None else deadline - clock.seconds()


class Rises:
    """Requests of this node that wait with a deadline; each rises whenever its level does."""

    def __init__(self, pool: LocalPool) -> None:
        self.pool = pool
        self.due: list[tuple[float, int]] = []  # when, and which
        self.timer: asyncio.TimerHandle | None = None

    def add(self, waiter: Waiter) -> None:
        if waiter.deadline is None:
            return
        now = clock.seconds()
        pause = time_on_level(waiter.deadline - now)
        if pause < inf:
            heappush(self.due, (now + pause, waiter.number))
            if len(self.due) > 2 * len(self.pool.adapter.clients) + 64:  # most of them wait no more
                self.due = [one for one in self.due if one[1] in self.pool.adapter.clients]
                heapify(self.due)
            if self.timer is None or self.due[0][1] == waiter.number:
                self.sleep()

    def sleep(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.due:
            pause = max(0.0, self.due[0][0] - clock.seconds())
            self.timer = self.pool.mesh.failures.later(pause, "deadlines", self.wake)

    def wake(self) -> None:
        """What is due; whatever becomes of it, there is another time."""
        self.timer = None
        try:
            while self.due and self.due[0][0] <= clock.seconds():
                waiter = self.pool.adapter.clients.get(heappop(self.due)[1])
                if waiter is not None and waiter.grant is None and not waiter.abandoned:
                    self.add(waiter)
                    self.pool.rerank(waiter)  # where the algorithm cannot, it stays as it is
        finally:
            self.sleep()

    def close(self) -> None:
        self.due.clear()
        self.sleep()
