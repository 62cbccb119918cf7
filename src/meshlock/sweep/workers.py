"""Who makes the runs: this process, processes on this machine, or a cluster.

Each way takes runs and gives their lines as they come, in any order. What a run measures depends
on its settings alone, so it does not matter who made it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue

import msgspec

from meshlock.errors import Refused, setting
from meshlock.simulate.run_settings import Values
from meshlock.sweep.runs import failed_line, key_of, line_of

Make = Callable[[list[Values], int], Iterator[bytes]]
"""Makes runs and gives their lines, in any order."""

TRIES = 3
"""A run is given up when this number of workers died under it."""

PATIENCE = 10.0
"""Seconds that a scheduler has to answer."""


def usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # pragma: no cover


def one_by_one(runs: list[Values], events: int) -> Iterator[bytes]:
    for values in runs:
        yield line_of(values, events)


def on_this_machine(workers: int | None) -> Make:
    """By this number of processes, or one for each core."""
    if workers is not None and workers < 1:
        raise Refused(f"{setting('workers')} takes how many processes: 1 or more.")
    count = workers or usable_cores()
    return one_by_one if count == 1 else lambda runs, events: on_cores(runs, events, count)


# -- processes ------------------------------------------------------------------------------


def on_cores(runs: list[Values], events: int, workers: int) -> Iterator[bytes]:
    """By processes that make one run at a time each: one that dies takes no other run with it."""
    pool = WorkerProcesses(events, min(workers, len(runs)))
    with ThreadPoolExecutor(max(1, workers)) as threads:
        try:
            for made in as_completed([threads.submit(pool.make, values) for values in runs]):
                yield made.result()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            pool.kill()


class WorkerProcesses:
    """As many processes as runs are made at once; threads take them and bring them back."""

    def __init__(self, events: int, count: int) -> None:
        self.events = events
        self.over = False
        self.all: list[subprocess.Popen[bytes]] = []
        self.idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for _ in range(count):
            self.idle.put(self.start())

    def start(self) -> subprocess.Popen[bytes]:
        """In a session of its own, which Ctrl-C at this terminal does not reach."""
        program = [sys.executable, "-m", "meshlock.sweep.workers", str(self.events)]
        process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.all.append(process)
        return process

    def make(self, values: Values) -> bytes:
        process = self.idle.get()
        try:
            for _ in range(TRIES):
                if line := asked(process, values):
                    return line
                if self.over:
                    break
                process.wait()
                process = self.start()
            return failed_line(values, self.events, f"Its process died {TRIES} times.")
        finally:
            self.idle.put(process)

    def kill(self) -> None:
        self.over = True
        for process in self.all:
            process.kill()
            process.wait()


def asked(process: subprocess.Popen[bytes], values: Values) -> bytes:
    """The line of this run; empty if the process died before it had one."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(values) + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except (OSError, ValueError):  # it has died, or was killed in the end
        return b""
    return line if line.endswith(b"\n") else b""


def work(events: int) -> None:
    """What such a process does: read settings, make the run, write its line."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # an algorithm may print
    for line in sys.stdin.buffer:
        answers.write(line_of(msgspec.json.decode(line), events))
        answers.flush()


def end_with(parent: int) -> None:
    """End when the parent does, even by SIGKILL, and in the middle of a run."""
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


if __name__ == "__main__":
    work(int(sys.argv[1]))
