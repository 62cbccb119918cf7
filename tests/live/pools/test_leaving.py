"""A node that leaves is gone soon, whatever waits, and takes nothing that others need."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
import virtual
from virtual import Network

from meshlock import Node
from meshlock.errors import Refused
from meshlock.live.machine import clock
from meshlock.live.pools.grants import Pool
from waiting import LIMIT, eventually, sooner_or_later

NAMES = ["a", "b", "c"]
SOON = 1.0
"""Virtual seconds."""


async def three(recovery: str | None) -> list[Node]:
    """With and without members; all linked."""
    nodes: list[Node] = []
    for name in NAMES:
        node = Node(name, peers=[one.address for one in nodes])
        await node.start()
        nodes.append(node)
        if recovery is None:
            node.pool("docks", 1, members=NAMES, lease=3.0)
        else:
            node.pool("docks", None if name != "a" else 1, recovery=recovery)
    await eventually(lambda: all(len(node._local.mesh.linked) == 2 for node in nodes))
    async with nodes[0].pool("docks").acquire(timeout=LIMIT):
        await eventually(
            lambda: all(node._local.pools["docks"].adapter.core is not None for node in nodes)
        )
    return nodes


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("recovery", [None, "none"])
def test_all_leave_at_once(recovery: str | None, caplog: pytest.LogCaptureFixture) -> None:
    async def story(_: Network) -> None:
        nodes = await three(recovery)
        async with nodes[2].pool("docks").acquire(timeout=LIMIT):
            wish = asyncio.create_task(nodes[1].pool("docks").acquire(timeout=LIMIT).__aenter__())
            await asyncio.sleep(0)
            began = clock.seconds()
            await asyncio.gather(*[node.close() for node in nodes])
        with pytest.raises(Refused):
            await wish
        assert clock.seconds() - began < 3.0 + SOON  # the lease of who was inside

    virtual.run(story)
    assert complaints(caplog) == []


@pytest.mark.parametrize("recovery", [None, "none"])
@pytest.mark.parametrize("staying", [0, 1, 2])
def test_who_leaves_hands_its_token_to_one_that_stays(
    recovery: str | None, staying: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(_: Network) -> None:
        nodes = await three(recovery)
        leaving = [node for place, node in enumerate(nodes) if place != staying]
        async with leaving[0].pool("docks").acquire(timeout=LIMIT):
            pass
        began = clock.seconds()
        await asyncio.gather(*[node.close() for node in leaving])
        assert clock.seconds() - began < SOON
        if recovery is not None:  # with members one of three is no majority
            async with nodes[staying].pool("docks").acquire(timeout=LIMIT):
                assert clock.seconds() - began < SOON
        await nodes[staying].close()

    virtual.run(story)
    assert complaints(caplog) == []


def test_a_member_that_was_never_there_keeps_nobody(caplog: pytest.LogCaptureFixture) -> None:
    async def story(_: Network) -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            for node in (a, b):
                node.pool("docks", 1, members=["a", "b", "ghost"], lease=3.0)
            for node in (a, b):
                async with node.pool("docks").acquire(timeout=LIMIT):
                    pass
            began = clock.seconds()
            await b.close()
            assert clock.seconds() - began < SOON
            await a.close()
            assert clock.seconds() - began < 2 * SOON

    virtual.run(story)
    assert complaints(caplog) == []


def test_every_pool_has_its_own_time(caplog: pytest.LogCaptureFixture) -> None:
    """One whose client clings to its lease does not keep the others' tokens here."""

    async def story(_: Network) -> None:
        nodes = await three("none")
        for node in nodes:
            node.pool("slow", 1, members=NAMES, lease=20.0)
        grant = await nodes[0].pool("slow").acquire(timeout=LIMIT)
        async with nodes[0].pool("docks").acquire(timeout=LIMIT):
            pass
        began = clock.seconds()
        await nodes[0].close()
        assert clock.seconds() - began < 3.0 + SOON
        assert grant.lost
        async with nodes[1].pool("docks").acquire(timeout=LIMIT):
            assert clock.seconds() - began < 3.0 + 2 * SOON
        await asyncio.gather(*[node.close() for node in nodes[1:]])

    virtual.run(story)


async def four(members: list[str]) -> list[Node]:
    """a to d, all linked, with three permits; a holds one, so the token stays there, and a client
    of b another one."""
    nodes: list[Node] = []
    for name in (*NAMES, "d"):
        nodes.append(Node(name, peers=[one.address for one in nodes]))
        await nodes[-1].start()
        nodes[-1].pool("docks", 3, members=members, lease=LEASE)
    await eventually(lambda: all(len(node._local.mesh.linked) == 3 for node in nodes))
    for node in reversed(nodes):
        async with node.pool("docks").acquire(3, timeout=LIMIT):
            pass
    return nodes


LEASE = 10.0
"""Longer than anybody takes to leave."""


@pytest.mark.parametrize("members", ["abc", "bcd"])
@pytest.mark.parametrize("inside", [False, True])
def test_who_leaves_with_the_token_leaves_others_their_grants(
    inside: bool, members: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The token of direct does not move while permits are out: another member takes it over."""

    async def story(_: Network) -> None:
        nodes = await four(list(members))
        a, b, c, d = [node._local.pools["docks"] for node in nodes]
        own = await Pool(a).acquire(timeout=LIMIT)
        grant = await Pool(b).acquire(timeout=LIMIT)
        assert a.describe()["token_here"]
        if not inside:
            own.release()
        leaving = asyncio.ensure_future(nodes[0].close())
        began = clock.seconds()
        async with Pool(d).acquire(1 if inside else 2, timeout=LIMIT):
            assert clock.seconds() - began < SOON and grant.held
        await leaving
        assert clock.seconds() - began < (3.0 if inside else 0.0) + SOON
        assert grant.held and not grant.lost
        grant.release()
        async with Pool(c).acquire(3, timeout=LIMIT):  # what a held lapses
            assert clock.seconds() - began < (2 * LEASE if inside else SOON)
        await asyncio.gather(*[node.close() for node in nodes[1:]])

    virtual.run(story)
    assert complaints(caplog) == []


@pytest.mark.parametrize("lease", [2.0, LEASE])
def test_who_leaves_with_a_grant_of_another_node_returns_it(
    lease: float, caplog: pytest.LogCaptureFixture
) -> None:
    """When the lease ends that its client knows of; if that is too long, it lapses."""

    async def story(_: Network) -> None:
        nodes = await three(None)
        pools = [node.pool("berths", 3, members=NAMES, lease=lease) for node in nodes]
        async with pools[0].acquire(timeout=LIMIT):
            grant = await pools[1].acquire(timeout=LIMIT)
            assert pools[0]._source.describe()["token_here"]
            began = clock.seconds()
            await nodes[1].close()
            assert grant.lost and clock.seconds() - began < 3.0 + SOON
        async with pools[2].acquire(3, timeout=LIMIT):
            assert clock.seconds() - began < 2 * lease + 3.0
        await asyncio.gather(nodes[0].close(), nodes[2].close())

    virtual.run(story)
    assert complaints(caplog) == []


def test_an_agent_ends_while_programs_wait_and_tells_them(tmp_path: Path) -> None:
    place = str(tmp_path / "socket")
    program = [sys.executable, "-m", "meshlock"]
    log = (tmp_path / "log").open("w")
    given = ["--name", "a", "--socket", place, "--pool", "docks=1", "--http", "127.0.0.1:0"]
    agent = subprocess.Popen([*program, "agent", *given], stderr=log, cwd=tmp_path)
    sooner_or_later(lambda: "ready" in (tmp_path / "log").read_text())
    asks = [*program, "exec", "--socket", place, "--pool", "docks", "--"]
    inside = subprocess.Popen([*asks, "sh", "-c", "echo in; exec sleep 1000"], stdout=PIPE)
    assert inside.stdout is not None and inside.stdout.readline() == b"in\n"
    impatient = "from meshlock.live.interfaces import agent_client; agent_client.PATIENCE = 2.0"
    start = [sys.executable, "-c", f"{impatient}; from meshlock.cli.main import run; run()"]
    waits = subprocess.Popen([*start, *asks[len(program) :], "true"], stderr=PIPE)
    shows = [*program, "status", "--socket", place, "--json"]

    def queued() -> bool:
        said = json.loads(subprocess.run(shows, capture_output=True, check=True).stdout)
        return bool(said["pools"]["docks"]["queued"] == 1)

    sooner_or_later(queued)
    agent.terminate()
    assert agent.wait(LIMIT) == 0
    _, said = waits.communicate(timeout=LIMIT)
    assert waits.returncode != 0 and b"No agent answers at" in said  # nor comes back
    inside.kill()
    inside.wait()
    log.close()
    assert '"error"' not in (tmp_path / "log").read_text()
