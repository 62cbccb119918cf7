"""One semaphore in the workers of dask, joblib and concurrent.futures: the real libraries, real
processes, and an agent. Beside dask's own where a worker is blocked."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from agents import Agent

import meshlock
from meshlock.live.interfaces import locks
from waiting import LIMIT, sooner_or_later

WORKERS = 4
needs_dask = pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed")
needs_joblib = pytest.mark.skipif(find_spec("joblib") is None, reason="needs joblib")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("workers")
    given = ["--state", "none", "--client-pools", "--pool", "kept=1", "--lease", "10"]
    agent = Agent(folder, "here", *given, protected=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MESHLOCK_SOCKET", agent.socket)
        yield agent
        for client in locks.SHARED.values():
            client.close()
        locks.SHARED.clear()
    agent.process.terminate()
    agent.process.wait()


@pytest.fixture(scope="module")
def dask(agent: Agent) -> Iterator[Any]:
    """A client of a cluster of four processes; leases of dask's own semaphores are short."""
    import distributed
    from dask import config

    settings = {
        "distributed.scheduler.locks.lease-timeout": "300ms",
        "distributed.scheduler.locks.lease-validation-interval": "50ms",
        "distributed.comm.timeouts.connect": f"{LIMIT}s",
        "distributed.admin.tick.limit": "1h",
    }
    given: dict[str, Any] = {"n_workers": WORKERS, "threads_per_worker": 1}
    with (
        config.set(settings),
        distributed.LocalCluster(**given, dashboard_address=None) as cluster,
        distributed.Client(cluster, timeout=LIMIT) as client,
    ):
        client.wait_for_workers(WORKERS, timeout=LIMIT)
        yield client


def write(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(f"{text}\n")


def killed_once(seat: meshlock.Semaphore, number: int, folder: Path) -> int:
    """Work in a seat; one of the workers dies there."""
    with seat:
        (grant,) = seat.grants
        write(folder / "log", "1")
        with contextlib.suppress(FileExistsError):
            if number == 3:
                (folder / "killed").touch(exist_ok=False)
                write(folder / "log", "-1")
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.005)
        write(folder / "log", "-1")
        assert grant.held and grant.fence
        return grant.fence


@needs_dask
def test_a_killed_worker_of_dask_loses_and_doubles_no_seat(dask: Any, tmp_path: Path) -> None:
    seat = meshlock.Semaphore("seats", 2)
    numbers = range(16)
    tasks = dask.map(killed_once, [seat] * 16, numbers, folder=tmp_path, pure=False)
    fences = dask.gather(tasks)
    assert len(set(fences)) == 16 and (tmp_path / "killed").exists()
    busy = [0]
    for step in (tmp_path / "log").read_text().split():
        busy.append(busy[-1] + int(step))
    assert max(busy) <= 2 and busy[-1] == 0 and len(busy) == 1 + 2 * 17
    assert (seat.name, seat.max_leases) == ("seats", 2)
    both = meshlock.Semaphore("seats", 2, want=2)
    assert both.acquire(timeout=LIMIT) and seat.get_value() == 2
    both.release()
    sooner_or_later(lambda: seat.get_value() == 0)


def blocked(seat: Any, folder: Path) -> bool:
    """Take the seat, then block all threads of this process until a byte comes. Is it kept?"""
    with seat:
        pipe = os.open(folder / "pipe", os.O_RDWR)
        (folder / "blocked").touch()
        ctypes.PyDLL(None).read(pipe, ctypes.create_string_buffer(1), 1)  # with Python's lock held
        os.close(pipe)
        return not getattr(seat, "lost", False)


def acquired(seat: Any, timeout: float) -> bool:
    got: bool = seat.acquire(timeout=timeout)
    if got:
        seat.release()
    return got


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[int]:
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR)
    yield pipe
    os.close(pipe)


@needs_dask
def test_a_blocked_worker_keeps_its_seat(dask: Any, tmp_path: Path, pipe: int) -> None:
    """The agent renews its lease, here twice."""
    seat = meshlock.Semaphore("kept", 1)
    one, two, *_ = dask.scheduler_info()["workers"]
    first = dask.submit(blocked, seat, tmp_path, workers=[one], pure=False)
    sooner_or_later((tmp_path / "blocked").exists)
    renewals = 0
    before = LIMIT  # seconds that are left of the lease

    def is_renewed_twice() -> bool:
        nonlocal before, renewals
        (holder,) = client.status()["pools"]["kept"]["holding"]
        left = holder["lease"]
        assert left is not None
        renewals += left > before
        before = left
        return renewals == 2

    with meshlock.connect() as client:
        sooner_or_later(is_renewed_twice)
    assert not dask.submit(acquired, seat, 0.01, workers=[two], pure=False).result()
    os.write(pipe, b"!")
    assert first.result()
    assert dask.submit(acquired, seat, LIMIT, workers=[two], pure=False).result()


@needs_dask
def test_a_blocked_worker_loses_a_seat_of_dask_and_does_not_know(
    dask: Any, tmp_path: Path, pipe: int
) -> None:
    """As dask's documentation warns. If this fails, the page says too much against it."""
    from distributed import Semaphore

    seat = Semaphore(max_leases=1, name="theirs")
    one, two, *_ = dask.scheduler_info()["workers"]
    first = dask.submit(blocked, seat, tmp_path, workers=[one], pure=False)
    sooner_or_later((tmp_path / "blocked").exists)
    assert dask.submit(acquired, seat, LIMIT, workers=[two], pure=False).result()
    assert not first.done()
    os.write(pipe, b"!")
    first.result()


def enter(seat: meshlock.Semaphore) -> int:
    with seat:
        fence = seat.grants[0].fence
    assert fence is not None
    return fence


@needs_joblib
def test_workers_of_joblib_share_it(agent: Agent) -> None:
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(max_workers=2).shutdown()  # of other tests, with another agent
    seat = meshlock.Semaphore("joblib", 2)
    fences = Parallel(n_jobs=2)(delayed(enter)(seat) for _ in range(8))
    get_reusable_executor().shutdown()
    assert len(set(fences)) == 8


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_of_concurrent_futures_share_it(agent: Agent, method: str) -> None:
    seat = meshlock.Semaphore("futures", 2)
    context = multiprocessing.get_context(method)
    with seat, ProcessPoolExecutor(2, mp_context=context) as workers:
        assert len({*workers.map(enter, [seat] * 8)}) == 8
        assert seat.get_value() == 1 and not seat.lost
