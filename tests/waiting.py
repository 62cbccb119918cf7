"""How tests wait: for what must happen, as long as it takes; never for a time to have passed.

A busy machine makes everything late. So a test waits for events, and LIMIT is only there to end a
test for which the event will never come. What is promised in seconds is tested in virtual
time (live/virtual.py). ``tests/test_waiting.py`` finds other ways to wait.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

LIMIT = 120.0
"""Seconds."""

A_MOMENT = 0.005


def run(story: Callable[[], Awaitable[object]]) -> None:
    """A story on a loop of its own."""

    async def limited() -> None:
        async with asyncio.timeout(LIMIT):
            await story()

    asyncio.run(limited())


async def eventually(true: Callable[[], object]) -> float:
    """Wait for it; the result is how long it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not true():
        assert loop.time() - began < LIMIT, "this never came true"
        await asyncio.sleep(A_MOMENT)
    return loop.time() - began


def sooner_or_later(true: Callable[[], object]) -> None:
    """The same without a loop."""
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, "this never came true"
        time.sleep(A_MOMENT)


async def a_while(seconds: float) -> None:
    """Time for what must *not* happen, or for work to go on. Nothing may depend on its length:
    on a busy machine less happens meanwhile."""
    await asyncio.sleep(seconds)


def has_worked(process: int, seconds: float) -> bool:
    """Has it used so much CPU time?"""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") >= seconds
