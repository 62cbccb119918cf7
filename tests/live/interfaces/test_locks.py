"""Locks that pass for those of threading and asyncio: Python's own tests of these, and what is
different on purpose."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

import meshlock
from meshlock.live.interfaces import locks
from waiting import sooner_or_later

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
NAMES = (f"pool-{number}" for number in count())

lock_tests = pytest.importorskip("test.lock_tests", reason="this Python came without its tests")
asyncio_tests = pytest.importorskip("test.test_asyncio.test_locks")


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("locks")
    place, log = str(folder / "socket"), folder / "log"
    given = ["--name", "here", "--state", "none", "--client-pools", "--socket", place]
    with log.open("w") as errors:
        agent = subprocess.Popen([*PROGRAM, "agent", *given, "--pool", "one=1"], stderr=errors)
    sooner_or_later(lambda: '"ready"' in log.read_text() or agent.poll() is not None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MESHLOCK_SOCKET", place)
        yield place
        for client in locks.SHARED.values():
            client.close()
        locks.SHARED.clear()
    agent.terminate()
    agent.wait()


@pytest.fixture(scope="module", params=["agent", "node"])
def pools(request: pytest.FixtureRequest, socket: str) -> Iterator[Callable[[int], Any]]:
    """Makes pools, of an agent's client or of a node in this process."""
    with meshlock.connect(socket) if request.param == "agent" else meshlock.BlockingNode() as home:

        def pool(permits: int) -> Any:
            made = home.pool(next(NAMES), permits=permits)
            made.acquire().release()  # it is born: time-outs of 5 ms are too short for that
            return made

        yield pool


def outcome(kind: type[unittest.TestCase], name: str) -> str:
    result = unittest.TestResult()
    kind(name).run(result)
    wrong = result.errors + result.failures
    return wrong[0][1].strip().splitlines()[-1] if wrong else ""


def names(kind: type[unittest.TestCase]) -> list[str]:
    return list(unittest.TestLoader().getTestCaseNames(kind))


INTERNAL = {"test_at_fork_reinit", "test__is_owned"}
"""They call methods that are private to CPython's own classes."""

NO_LIMIT = {"test_acquire_timeout"}
"""It measures that 5 ms are enough for all that is free, which is a promise of one process."""


def test_python_s_own_tests_of_threading_locks(pools: Callable[[int], Any]) -> None:
    class Tests(lock_tests.LockTests):  # type: ignore[misc,name-defined]
        locktype = staticmethod(lambda: meshlock.Lock(pools(1)))

    failed = {name: text for name in names(Tests) if (text := outcome(Tests, name))}
    assert failed.keys() <= INTERNAL, failed
    assert len(names(Tests)) >= 15


def test_python_s_own_tests_of_threading_semaphores(pools: Callable[[int], Any]) -> None:
    def made(value: int = 1) -> meshlock.Semaphore:
        if value < 0:
            raise ValueError("as a pool refuses it")
        return meshlock.Semaphore(pools(value))

    class Tests(lock_tests.BoundedSemaphoreTests):  # type: ignore[misc,name-defined]
        semtype = staticmethod(made)

    failed = {name: text for name in names(Tests) if (text := outcome(Tests, name))}
    assert failed.keys() <= {"test_repr", *NO_LIMIT}, failed  # its value is not known here
    assert len(names(Tests)) >= 10


ASYNCIO_CANNOT = {
    # a value that is nobody's: permits that were never acquired cannot be released
    *("test_initial_value_zero", "test_acquire_fifo_order_2", "test_acquire_fifo_order_3"),
    *("test_acquire_hang", "test_acquire_cancel_before_awoken", "test_semaphore"),
    # they look into CPython's own variables, or count on one pass of the loop
    *("test_repr", "test_acquire", "test_acquire_cancel"),
    *("test_lock_doesnt_accept_loop_parameter", "test_finished_waiter_cancelled", "test_lock"),
    *("test_cancel_race", "test_cancel_release_race"),
}


@pytest.mark.parametrize("kind", ["LockTests", "SemaphoreTests"])
def test_python_s_own_tests_of_asyncio(kind: str, socket: str) -> None:
    def pool(permits: int) -> Any:
        return meshlock.aconnect(socket).pool(next(NAMES), permits=permits)

    def semaphore(value: int = 1) -> meshlock.AsyncSemaphore:
        if value < 0:
            raise ValueError("as a pool refuses it")
        return meshlock.AsyncSemaphore(pool(value))

    mine = {"Lock": lambda: meshlock.AsyncLock(pool(1)), "Semaphore": semaphore}
    seen = SimpleNamespace(**{**vars(asyncio), **mine})
    tests: type[unittest.TestCase] = getattr(asyncio_tests, kind)
    with patch.object(asyncio_tests, "asyncio", seen):
        run = [name for name in names(tests) if name not in ASYNCIO_CANNOT]
        failed = {name: text for name in run if (text := outcome(tests, name))}
    assert failed == {}
    assert len(run) >= 3


# -- what no lock of one process has ------------------------------------------------------------


def test_a_lock_by_name_is_the_same_in_another_process(socket: str) -> None:
    lock = meshlock.Lock(next(NAMES), 1)
    with lock:
        copy = pickle.loads(pickle.dumps(lock))
        assert not copy.acquire(blocking=False)
        assert copy.locked()
    with copy:
        assert not lock.acquire(timeout=0.01)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as workers:
        assert len({*workers.map(enter, [lock] * 4)}) == 4


def enter(lock: meshlock.Lock) -> int:
    with lock:
        fence = lock.grants[0].fence
    assert fence is not None
    return fence


def test_readers_share_and_a_writer_is_alone(pools: Callable[[int], Any]) -> None:
    lock = meshlock.RWLock(pools(3))
    with lock.shared, lock.shared:
        assert not lock.exclusive.acquire(blocking=False)
    with lock.exclusive:
        assert not lock.shared.acquire(blocking=False)


def test_a_later_reader_does_not_pass_a_waiting_writer(pools: Callable[[int], Any]) -> None:
    pool = pools(3)
    reader, other, writer = meshlock.RWLock(pool), meshlock.RWLock(pool), meshlock.RWLock(pool)
    done = []

    def write() -> None:
        with writer.exclusive:
            done.append("written")

    reader.shared.acquire()
    thread = threading.Thread(target=write)
    thread.start()
    sooner_or_later(lambda: pool.picture()["queued"] == 1)
    assert not other.shared.acquire(blocking=False)
    reader.shared.release()
    thread.join()
    assert done == ["written"] and other.shared.acquire()
    other.shared.release()


def test_what_is_held_says_its_fence_and_when_it_is_lost(pools: Callable[[int], Any]) -> None:
    lock = meshlock.Lock(pools(1))
    with lock:
        (grant,) = lock.grants
        assert grant.held and not lock.lost
    assert lock.grants == ()
    with pytest.raises(RuntimeError, match="unlocked"):
        lock.release()


def test_a_pool_of_the_wrong_kind_is_refused(socket: str, pools: Callable[[int], Any]) -> None:
    with pytest.raises(meshlock.Refused, match=r"use meshlock\.AsyncLock with it"):
        meshlock.Lock(meshlock.aconnect(socket).pool("one"))  # type: ignore[arg-type]
    with pytest.raises(meshlock.Refused, match="takes a pool that is awaited"):
        meshlock.AsyncLock(pools(1))
    with pytest.raises(TypeError, match="name of its pool"):
        pickle.dumps(meshlock.Lock(pools(1)))


def test_readers_and_writers_in_an_event_loop() -> None:
    async def work() -> None:
        async with meshlock.Node() as node:
            lock = meshlock.AsyncRWLock(node.pool("document", permits=2), 2)
            async with lock.shared:
                assert not lock.shared.locked() and lock.exclusive.locked() is False
            async with lock.exclusive:
                assert lock.exclusive.locked()

    asyncio.run(work())


def test_importing_them_costs_what_a_client_costs() -> None:
    text = "import sys, meshlock; meshlock.Lock; print('asyncio' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_page_says_how_many_of_python_s_tests_pass() -> None:
    page = Path(__file__).parents[3] / "docs/how-to/drop-ins.md"
    semaphores = {"test_repr", *NO_LIMIT}
    for kind, cannot in (
        (lock_tests.LockTests, INTERNAL),
        (lock_tests.BoundedSemaphoreTests, semaphores),
        (asyncio_tests.LockTests, ASYNCIO_CANNOT),
        (asyncio_tests.SemaphoreTests, ASYNCIO_CANNOT),
    ):
        pass_them = [name for name in names(kind) if name not in cannot]
        if sys.version_info[:2] == (3, 11):
            row = f"| {len(pass_them)} of {len(names(kind))} |"
            assert row in page.read_text(encoding="utf-8"), (kind, row)


@pytest.mark.parametrize("raised", [TimeoutError, InterruptedError, KeyError])
def test_a_handler_of_a_signal_ends_a_wait_by_its_own_error(
    raised: type[Exception], pools: Callable[[int], Any]
) -> None:
    """An alarm that raises TimeoutError must not look as if the agent were silent or gone: then
    ``with`` would go on without the lock, or the request would be repeated for ever."""
    pool = pools(1)
    held, waiting = meshlock.Lock(pool), meshlock.Lock(pool)

    def ring(*_: object) -> None:
        raise raised("the alarm rang")

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with held:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(raised, match="the alarm rang"), waiting:
                pass
        assert waiting.grants == ()
        with held:  # nothing is left of the request that ended
            pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_lock_is_of_one(pools: Callable[[int], Any]) -> None:
    with pytest.raises(meshlock.Refused, match="has 5 permits, so this lock would let in several"):
        meshlock.Lock(pools(5))
    assert meshlock.Lock(pools(5), want=3).acquire()


def test_a_writer_takes_all_permits(pools: Callable[[int], Any]) -> None:
    with pytest.raises(meshlock.Refused, match="has 8 permits, not 4"):
        meshlock.RWLock(pools(8), 4)
    unknown = SimpleNamespace(name="young", permits=None, acquire=None)
    with pytest.raises(meshlock.Refused, match="not known here yet"):
        locks.all_permits(unknown, None)  # type: ignore[arg-type]
    assert locks.all_permits(unknown, 3) == 3  # type: ignore[arg-type]


def test_a_lock_makes_its_pool_again_when_the_agent_was_restarted(socket: str) -> None:
    """One without a state folder forgets pools that programs made."""
    seat = meshlock.Semaphore(next(NAMES), 2)
    acquire, gone = seat._pool.acquire, [meshlock.NoSuchPool("No pool; known: none.")]

    def once(_pool: object, **settings: Any) -> Any:
        if gone:
            raise gone.pop()
        return acquire(**settings)

    with patch.object(type(seat._pool), "acquire", once), seat:
        assert not gone and len(seat.grants) == 1
    gone.append(meshlock.NoSuchPool("No pool 'x'; known: none."))
    other = meshlock.Semaphore("one")  # it does not know how to make it
    with patch.object(type(other._pool), "acquire", once), pytest.raises(meshlock.NoSuchPool):
        other.acquire()
