"""Who makes the runs: this process, processes on this machine, or a cluster.

Each way takes runs and gives their lines as they come, in any order. What a run measures depends
on its settings alone, so it does not matter who made it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import Any

from meshlock.errors import Refused
from meshlock.simulate.run_settings import Values
from meshlock.sweep.runs import failed_line, key_of, line_of

TRIES = 3
"""So often a run may take its worker with it before it is given up."""

AHEAD = 2
"""Runs that a process of this machine has: the one it makes, and the next."""

PATIENCE = 10.0
"""Seconds that a scheduler has to answer."""


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover


def one_by_one(runs: list[Values], events: int) -> Iterator[bytes]:
    for values in runs:
        yield line_of(values, events)


# -- processes ------------------------------------------------------------------------------


def on_cores(runs: list[Values], events: int, workers: int) -> Iterator[bytes]:
    """A pool of one process each, so that one that dies takes nobody else's run with it."""
    waiting = deque(runs)
    tries: dict[int, int] = {}
    slots = [Slot(events) for _ in range(min(workers, len(runs)))]
    try:
        while True:
            for slot in slots:
                while waiting and len(slot.given) < AHEAD:
                    slot.give(waiting.popleft())
            busy = [slot for slot in slots if slot.given]
            if not busy:
                return
            wait([slot.given[0][1] for slot in busy], return_when=FIRST_COMPLETED)
            for slot in busy:
                while slot.given and slot.given[0][1].done():
                    values, future = slot.given[0]
                    error = future.exception()
                    if error is None:
                        slot.given.popleft()
                        yield future.result()
                        continue
                    tries[id(values)] = tries.get(id(values), 0) + 1
                    if tries[id(values)] >= TRIES:
                        slot.given.popleft()
                        yield failed_line(values, events, f"Its process died {TRIES} times.")
                    slot.start_again()
    finally:
        for slot in slots:
            slot.kill()


class Slot:
    """One process, and the runs given to it in order."""

    def __init__(self, events: int) -> None:
        self.events = events
        self.given: deque[tuple[Values, Future[bytes]]] = deque()
        self.pool = process()
        self.begun = False  # has the process been given anything?

    def kill(self) -> None:
        """Loky's thread may meet a run that was taken from it meanwhile (a KeyError): its traceback
        says nothing to anybody."""
        thread = self.pool._executor_manager_thread
        before = threading.excepthook

        def report(what: threading.ExceptHookArgs) -> None:
            if what.thread is not thread or what.exc_type is not KeyError:
                before(what)

        if thread is not None:
            threading.excepthook = report
        self.pool.shutdown(wait=False, kill_workers=True)

    def give(self, values: Values) -> None:
        self.given.append((values, self.submit(values)))

    def submit(self, values: Values) -> Future[bytes]:
        """The first starts the process, which Ctrl-C must not reach before it knows what to do."""
        starts, self.begun = not self.begun, True
        with interrupts_held_back(starts):
            future: Future[bytes] = self.pool.submit(line_of, values, self.events)
        return future

    def start_again(self) -> None:
        self.kill()
        self.pool = process()
        self.begun = False
        self.given = deque((values, self.submit(values)) for values, _ in self.given)


@contextmanager
def interrupts_held_back(ignored: bool) -> Iterator[None]:
    """Here until the end, and for good in every process that is started meanwhile. What is
    ``ignored`` stays so there from the first moment on; but should one come in that moment, while
    another thread of this process could take it, it is lost."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.getsignal(signal.SIGINT)
    ignored = (
        ignored
        and threading.current_thread() is threading.main_thread()
        and handler is not None
        and signal.SIGINT not in signal.sigpending()
    )
    try:
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield
    finally:
        if ignored:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def process() -> Any:
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=1, initializer=depend_on_parent)


def depend_on_parent() -> None:
    """In the new process: leave Ctrl-C to the parent, and end when it does, even by SIGKILL."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()


def end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


# -- a cluster ------------------------------------------------------------------------------


def on_cluster(runs: list[Values], events: int, address: str) -> Iterator[bytes]:
    """The workers of a dask scheduler. It gives the run of a worker that died to another."""
    from dask.distributed import CancelledError, Client, as_completed

    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise Refused(
            f"No dask scheduler answers at {address}: {error or 'timeout'}. Start one with "
            f"'dask scheduler', and workers with 'dask worker {address}'."
        ) from None
    futures = []
    try:
        if not client.scheduler_info()["workers"]:
            print(f"The scheduler at {address} has no workers yet; waiting.", file=sys.stderr)
        expected = {key_of(values, events): values for values in runs}
        futures = [
            client.submit(line_of, values, events, key=f"meshlock-{key}", retries=TRIES - 1)
            for key, values in expected.items()
        ]
        for future in as_completed(futures):
            key = future.key.removeprefix("meshlock-")
            try:
                problem = future.exception()
                text: bytes = future.result() if problem is None else b""
            except (CancelledError, OSError):
                raise Refused(
                    f"Lost the connection to the scheduler at {address}: runs that ended are kept, "
                    f"and the same command goes on when it is back."
                ) from None
            if problem is not None:
                why = f"{type(problem).__name__}: {problem}"
                text = failed_line(expected[key], events, why)
            yield text
            future.release()
    finally:
        client.cancel(futures)
        client.close()
