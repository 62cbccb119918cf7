"""How tests wait: for what must happen, as long as it takes; never for a time to have passed.

A busy machine makes everything late. So a test waits for events, and LIMIT is only there to end a
test for which the event will never come. What is promised in seconds is tested in virtual
time (live/virtual.py). ``tests/test_waiting.py`` finds other ways to wait.

Nodes have leases and time-outs of their own. Those of a story (``run``) share a clock that does
not go on while the machine keeps them from working, so none of these ends by that.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

LIMIT = 600.0
"""Seconds. What takes one on an idle machine may take a hundred on a busy one."""

A_MOMENT = 0.005


class Patient(selectors.DefaultSelector):
    """Looks often, and counts no more than a moment between two looks: however long the machine
    kept the process from working, every task on this loop has had its turns by then."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.looked = time.monotonic()
        self.threads = 0  # that work for the loop: disks are as slow as the machine is busy

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(A_MOMENT if timeout is None else min(timeout, A_MOMENT))
        before, self.looked = self.looked, time.monotonic()
        if not self.threads:
            self.now += min(self.looked - before, A_MOMENT)
        return found


class PatientLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.patient = Patient()
        super().__init__(self.patient)

    def time(self) -> float:
        return self.patient.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        def done(_: object) -> None:
            self.patient.threads -= 1

        self.patient.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(done)
        return future


class PatientTime:
    """Stands in for the module ``time``."""

    def __init__(self, loop: PatientLoop) -> None:
        self.monotonic = loop.time

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def clock_gettime(self, _: int) -> float:
        return self.monotonic()

    def clock_gettime_ns(self, _: int) -> int:
        return int(self.monotonic() * 1e9)


def run(story: Callable[[], Awaitable[object]]) -> None:
    """A story on a loop of its own, with a patient clock. It has to be the only one: threads and
    processes with clocks of their own are for ``run_in_real_time``."""
    loop = PatientLoop()
    clocks = PatientTime(loop)
    instead = {id(time): clocks, id(time.monotonic): clocks.monotonic}
    instead |= {id(time.clock_gettime_ns): clocks.clock_gettime_ns}
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("meshlock.live."):
                for word, value in list(vars(module).items()):
                    if id(value) in instead:
                        patch = mock.patch.object(module, word, instead[id(value)])
                        stack.enter_context(patch)
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(limited(story))


def run_in_real_time(story: Callable[[], Awaitable[object]]) -> None:
    """A story beside agents in processes, which have the clock of the machine."""
    asyncio.run(limited(story))


async def limited(story: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(LIMIT):
        await story()


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
