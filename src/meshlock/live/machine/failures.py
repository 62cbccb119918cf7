"""Where an exception ends that nobody expected: in the log and in a count.

Timers, handlers and tasks run through here, so that none of them ends because one round of it
failed, and no node because of one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from logging import ERROR
from typing import TypeVarTuple

from meshlock.live.machine.logs import log_event

Arguments = TypeVarTuple("Arguments")

PAUSE = 1.0  # seconds between two lines about the same place: what fails at every turn is no flood


class Failures:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.counts: dict[str, int] = {}  # where: how often
        self.told: dict[str, float] = {}  # where: when last

    def note(self, where: str, error: BaseException | None = None) -> None:
        """Without ``error`` it is the one that is being handled."""
        times = self.counts[where] = self.counts.get(where, 0) + 1
        now = self.loop.time()
        if where not in self.told or now - self.told[where] >= PAUSE:
            self.told[where] = now
            log_event(ERROR, "failed", where=where, times=times, failed=error or True)

    def run(self, where: str, work: Callable[[*Arguments], object], *given: *Arguments) -> None:
        try:
            work(*given)
        except Exception:
            self.note(where)

    def later(
        self, seconds: float, where: str, work: Callable[[*Arguments], object], *given: *Arguments
    ) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self.run, where, work, *given)

    def mind(self, where: str, task: asyncio.Task[None]) -> asyncio.Task[None]:
        """The same task; should it fail, that is noted."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self.note(where, error)

        task.add_done_callback(ended)
        return task
