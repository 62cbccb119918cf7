"""Run a program of ours on the quickest event loop that is installed; measure how late it is."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Coroutine
from contextlib import suppress
from inspect import isawaitable
from logging import ERROR, WARNING
from time import monotonic
from typing import Any, TypeVar

from meshlock.live.machine.logs import log_event

Result = TypeVar("Result")

LAGS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Upper bounds of the delays that are counted together, in seconds."""


class Lag:
    """How late the loop runs a timer that repeats."""

    def __init__(self) -> None:
        self.due: float | None = None
        self.counts = [0] * (len(LAGS) + 1)
        self.total = 0.0

    def measure(self, again: float) -> None:
        """The timer runs now, and is due again in this number of seconds."""
        now = monotonic()
        if self.due is not None:
            late = max(0.0, now - self.due)
            self.counts[bisect_left(LAGS, late)] += 1
            self.total += late
        self.due = now + again


def run(work: Coroutine[Any, Any, Result]) -> Result:
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    try:
        import uvloop
    except ImportError:
        pass
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.get_loop().set_exception_handler(note_failure)
        return runner.run(work)


async def watch(work: Coroutine[Any, Any, None], look: Callable[[], None], every: float) -> None:
    """Run this, and look at it from time to time meanwhile."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            look()
            await asyncio.wait([task], timeout=every)
    finally:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    await task


async def within(seconds: float, find: Callable[[], Any], pause: float = 0.05) -> Any:
    """What this finds, or what it awaits finds, as soon as that is something; else the last try."""
    end = monotonic() + seconds
    while True:
        found = find()
        if isawaitable(found):
            found = await found
        if found or monotonic() >= end:
            return found
        await asyncio.sleep(pause)


def note_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """What failed with nothing waiting for it goes to our log, as one line. A connection that broke
    after its task was given up is no failure of ours."""
    error = context.get("exception")
    level = WARNING if isinstance(error, ConnectionError) else ERROR
    log_event(level, "failed", where="event loop", what=context["message"], failed=error or False)
