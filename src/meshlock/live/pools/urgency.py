"""What a request counts for: its priority, and how close its deadline is.

Requests are served by one number, which is counted in grants. A step of priority counts as many
grants as it takes to age by one step (``patience``, 100). A deadline counts for less than a step:
for 1 to 99 of 100, the closer the more, five more whenever half of the time left has passed. So

- a higher priority goes before any deadline of a lower one,
- of one priority, requests with a deadline go before those without, and the earliest first,
- waiting counts in the same coin, so nobody starves.

Only the time that is left matters, by the clock of the node where the request waits: no two clocks
need to agree, and there is no date at which the numbers run out. As time passes the node raises
its request, level by level (:class:`Rises`).
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import ceil, inf, log2
from typing import TYPE_CHECKING

from meshlock.live.machine import clock

if TYPE_CHECKING:
    import asyncio

    from meshlock.live.pools.grants import Waiter
    from meshlock.live.pools.pool import LocalPool

LEVELS = 99  # of closeness; 0 is that of a request without a deadline
HALVING = 5  # levels that a deadline rises by while half of the time that is left passes
SHORTEST = 0.1
"""Seconds: deadlines that are closer than that, or have passed, are on the highest level."""


def level(left: float) -> int:
    """How close a deadline is of which so many seconds are left."""
    if left <= SHORTEST:
        return LEVELS
    return max(1, LEVELS - ceil(HALVING * log2(left / SHORTEST) - 1e-6))


def time_on_level(left: float) -> float:
    """Seconds until it rises by a level; none on the highest."""
    here = level(left)
    if here == LEVELS:
        return inf
    return left - SHORTEST * 2 ** ((LEVELS - here - 1) / HALVING)


def urgency(priority: int, left: float | None, step: int) -> int:
    """In grants, of which a step of priority is worth so many. ``left``: seconds until its
    deadline, None without one."""
    if left is None or step == 1:  # nothing is less than such a step, and not nothing
        return priority * step
    return priority * step + max(1, level(left) * step // (LEVELS + 1))


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
