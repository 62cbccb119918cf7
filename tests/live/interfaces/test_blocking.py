"""The blocking API: what goes wrong leaves nothing behind."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from types import FrameType

import pytest

import meshlock
from meshlock import Refused
from meshlock.live.pools.grants import Acquire
from waiting import LIMIT, sooner_or_later


class Alarm(Exception):
    pass


def ring(_: int, __: FrameType | None) -> None:
    raise Alarm


def ring_once_it_waits(node: meshlock.BlockingNode) -> None:
    sooner_or_later(lambda: node.status()["pools"]["docks"]["waiting"])
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)


def test_an_interrupted_wait_is_withdrawn() -> None:
    before = signal.signal(signal.SIGALRM, ring)
    try:
        with meshlock.BlockingNode("a") as node:
            docks = node.pool("docks", permits=1)
            with docks.acquire() as first:
                threading.Thread(target=ring_once_it_waits, args=(node,), daemon=True).start()
                with pytest.raises(Alarm):
                    docks.acquire()
            next_fence = first.fence + 1  # the one in between never got any
            assert docks.acquire(timeout=LIMIT).fence == next_fence
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_grant_that_comes_with_the_interrupt_goes_back() -> None:
    """The caller has given up, and the loop has not heard of it yet when the grant comes."""
    with meshlock.BlockingNode("a") as node:
        docks = node.pool("docks", permits=1)
        given_up: Future[meshlock.Grant] = Future()
        assert given_up.cancel()
        asked = Acquire(docks._source, 1, 0, None, None)
        node._call(docks._wait_for(given_up, asked))
        pool = node.status()["pools"]["docks"]
        assert (pool["entries"], pool["free_here"], pool["holding"]) == (1, 1, [])


def test_a_start_that_fails_leaves_no_thread() -> None:
    threads = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Refused, match="in use"):
            meshlock.BlockingNode("a", listen=f"127.0.0.1:{port}").start()
    assert set(threading.enumerate()) <= threads


def test_before_and_after_its_life_a_node_says_so() -> None:
    node = meshlock.BlockingNode("a")
    with pytest.raises(Refused, match="not running"):
        node.pool("docks", permits=1)
    with node:
        docks = node.pool("docks", permits=1)
        grant = docks.acquire()
    grant.release()  # went back when the node closed; once more does no harm
    with pytest.raises(Refused, match="not running"):
        docks.acquire()


PROGRAM = """
import meshlock

async def share() -> None:
    async with meshlock.Node("a", secret="s") as node:
        pool = node.pool("docks", permits=3)
        async with pool.acquire(2, priority=9, timeout=30) as grant:
            fence: int | None = grant.fence
        again: meshlock.Grant = await pool.acquire()
        perhaps: meshlock.Grant | None = await pool.try_acquire(2)

def block() -> None:
    with meshlock.BlockingNode("a", secret="s") as node:
        pool: meshlock.BlockingPool = node.pool("docks", permits=3)
        with pool.acquire(2, timeout=3) as grant:
            fence: int | None = grant.fence
    meshlock.BlockingNode("a", sceret="s")  # call-arg
    node.pool("docks", permits="three")  # arg-type
    wrong: int = grant.fence  # assignment
"""


def test_type_checkers_know_every_argument(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"^user.py:(\d+): error: .*\[(.*)\]$", done.stdout, re.M)
    lines = enumerate(PROGRAM.splitlines(), 1)
    wrong = [(str(number), line.split("# ")[1]) for number, line in lines if "# " in line]
    assert found == wrong, done.stdout + done.stderr


def test_live_nodes_need_no_clock_that_only_linux_has() -> None:
    program = (
        "import time; del time.CLOCK_BOOTTIME; import meshlock\n"
        "with meshlock.BlockingNode('a') as node:\n"
        "    with node.pool('docks', permits=1, lease=600).acquire() as grant:\n"
        "        print(grant.lease > 2)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_pool_is_made_on_purpose() -> None:
    """The peer is not there, so without that it would be waited for."""
    with meshlock.BlockingNode("a", peers=["127.0.0.1:1"], state=None) as node:
        assert node.create_pool("docks", 2) == 2
        assert node.pool("docks").acquire(2, timeout=LIMIT).held
