"""What an agent tells systemd, seen from the other end of the socket."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meshlock import Node
from meshlock.live.interfaces.notify import Service, summary, watchdog
from waiting import LIMIT

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]


@contextmanager
def systemd(place: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind("\0" + place[1:] if place.startswith("@") else place)
        listener.settimeout(LIMIT)
        yield listener


def heard(listener: socket.socket, line: str) -> list[str]:
    """All lines up to the datagram with this one."""
    lines: list[str] = []
    while line not in lines:
        lines += listener.recv(4096).decode().splitlines()
    return lines


def test_a_real_agent_is_ready_feeds_the_watchdog_and_says_that_it_stops(tmp_path: Path) -> None:
    place = str(tmp_path / "notify")
    with systemd(place) as listener:
        given = ["--name", "ann", "--socket", str(tmp_path / "socket"), "--pool", "docks=3"]
        agent = subprocess.Popen(
            [*PROGRAM, "agent", *given],
            env={**os.environ, "NOTIFY_SOCKET": place, "WATCHDOG_USEC": "100000"},
            stderr=subprocess.DEVNULL,
        )
        try:
            lines = heard(listener, "READY=1")
            assert (tmp_path / "socket").exists()  # it listens
            assert lines[-1] == (
                "STATUS=0 links up, 1 pool, 0 permits held here, 0 requests waiting here."
            )
            for _ in range(3):
                heard(listener, "WATCHDOG=1")
            agent.send_signal(signal.SIGTERM)
            lines = heard(listener, "STOPPING=1")
            assert lines[-1] == "STATUS=Leaving the mesh."
            assert agent.wait(LIMIT) == 0
        finally:
            agent.kill()
            agent.wait()


def test_the_status_follows_what_clients_do_and_no_watchdog_is_fed_unasked() -> None:
    place = f"@meshlock-test-{os.getpid()}"

    async def serve(listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with Service({"NOTIFY_SOCKET": place}) as service:
            async with Node("ann") as node:
                pool = node.pool("docks", permits=3)
                service.ready(node)
                await loop.run_in_executor(None, heard, listener, "READY=1")
                async with pool.acquire(2):
                    service.beat()
                    lines = await loop.run_in_executor(None, listener.recv, 4096)
        assert lines == (
            b"STATUS=0 links up, 1 pool, 2 permits held here, 0 requests waiting here."
        )

    with systemd(place) as listener:
        asyncio.run(serve(listener))


def test_an_agent_without_systemd_says_nothing_and_one_without_its_socket_works(
    tmp_path: Path,
) -> None:
    async def serve(environment: dict[str, str]) -> Service:
        with Service(environment) as service:
            async with Node("ann") as node:
                service.ready(node)
                service.stopping()
        return service

    assert not asyncio.run(serve({})).failed
    assert asyncio.run(serve({"NOTIFY_SOCKET": str(tmp_path / "nobody")})).failed


def test_the_watchdog_of_another_process_is_not_ours() -> None:
    assert watchdog({}) is None
    assert watchdog({"WATCHDOG_USEC": "0"}) is None
    assert watchdog({"WATCHDOG_USEC": "3000000"}) == 3.0
    assert watchdog({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}) == 3.0
    assert watchdog({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}) is None


def test_a_lost_quorum_is_in_the_status() -> None:
    docks = {
        "known": True,
        "holding": [{"want": 1}],
        "queued": 2,
        "unready": "quorum lost: 1 of 3 members reachable",
    }
    links = {"bob": {"up": True}, "cyd": {"up": False}}
    pools = {"docks": docks, "ghost": {"known": False, "why": "nobody told us"}}
    assert summary({"links": links, "pools": pools}) == (
        "1 link up, 1 pool, 1 permit held here, 2 requests waiting here; "
        "docks: quorum lost: 1 of 3 members reachable."
    )
