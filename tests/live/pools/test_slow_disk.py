"""A disk that is slow holds up promises, and nothing else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import get_ident

import pytest
import virtual
from virtual import Network

import meshlock
from meshlock.algorithms.actor import Enter, Lost, Save
from meshlock.algorithms.recovery.records import Durable
from meshlock.live.machine import clock
from meshlock.live.pools.grants import Pool
from ports import free_ports
from waiting import LIMIT, eventually, run_in_real_time, sooner_or_later

NAMES = ["a", "b", "c"]
LEASE = 3.0


async def started(name: str, state: Path, peers: list[str]) -> meshlock.Node:
    node = meshlock.Node(name, state=state / name, peers=peers)
    await node.start()
    node.pool("docks", 1, members=NAMES, lease=LEASE)
    return node


def test_three_nodes_serve_and_recover_though_a_write_takes_longer_than_a_lease(
    tmp_path: Path,
) -> None:
    async def story(network: Network) -> tuple[float, float]:
        network.disk = lambda: 4.0
        began = clock.seconds()
        nodes: list[meshlock.Node] = []
        for name in NAMES:
            nodes.append(await started(name, tmp_path, [node.address for node in nodes]))
        async with nodes[1].pool("docks").acquire(timeout=LIMIT):
            born = clock.seconds() - began
        await nodes[0].pool("docks").acquire(timeout=LIMIT)
        began = clock.seconds()
        network.kill(nodes[0]._local.mesh)
        await nodes[0]._local.vanish()
        async with nodes[2].pool("docks").acquire(timeout=LIMIT):
            recovered = clock.seconds() - began
        for node in nodes[1:]:
            network.kill(node._local.mesh)
            await node._local.vanish()
        return born, recovered

    born, recovered = virtual.run(story)
    print(f"born after {born:.1f} s, recovered after {recovered:.1f} s")
    assert born < 20 and recovered < 20


def test_who_cannot_write_its_promise_down_lets_nobody_in_and_no_fence_comes_again(
    tmp_path: Path,
) -> None:
    """The only member; its disk remembers an epoch and is full when there is another."""

    async def life(full: bool) -> tuple[int | None, ...]:
        async with meshlock.Node("a", state=tmp_path) as node:
            pool = node.pool("docks", 1, members=["a"], lease=LEASE)
            assert (
                pool._source.adapter.members is not None
                and pool._source.adapter.members.disk.promises is not None
            )
            promises = pool._source.adapter.members.disk.promises
            if full:
                promises.folder = tmp_path / "not" / "there"
                with pytest.raises(TimeoutError):
                    await pool.acquire(timeout=LIMIT)
                promises.folder = tmp_path
            fences = []
            for _ in range(3):
                async with pool.acquire(timeout=LIMIT) as grant:
                    fences.append(grant.fence)
            await node._local.vanish()
        return tuple(fences)

    async def story(_: Network) -> None:
        lives = [await life(full) for full in (False, True, False)]
        fences = [fence for fences in lives for fence in fences]
        assert fences == sorted(set(fences))

    virtual.run(story)


def test_a_lease_that_ends_before_its_client_may_hear_of_it_is_never_used(tmp_path: Path) -> None:
    """The client is not let in late; it asks again."""

    async def story(network: Network) -> None:
        nodes: list[meshlock.Node] = []
        for name in NAMES:
            nodes.append(await started(name, tmp_path, [node.address for node in nodes]))
        pools = [node._local.pools["docks"] for node in nodes]
        held = await Pool(pools[0]).acquire(timeout=LIMIT)
        waiting = asyncio.ensure_future(Pool(pools[1]).acquire(timeout=LIMIT).__aenter__())
        await eventually(lambda: pools[1].adapter.clients)
        [number] = pools[1].adapter.clients
        assert pools[1].adapter.members is not None
        node = pools[1].adapter.members.node
        assert node.withdraw(number)
        pools[1].adapter.carry_out("withdraw", {})
        network.disk = lambda: 4.0
        for effect in (
            Save(Durable(node.member.promised, node.member.config)),
            Enter(number, 7, 1),
            Lost(number, 7),
        ):
            pools[1].adapter.out.append(effect)
            pools[1].adapter.carry_out("timer", {})
        assert len(pools[1].adapter.clients) == 1 and number not in pools[1].adapter.clients
        held.release()
        grant = await waiting
        assert grant.fence != 7 and grant.held and grant.lease
        for one in nodes:
            assert one._local.mesh.failures.counts == {}
            network.kill(one._local.mesh)
            await one._local.vanish()

    virtual.run(story)


SLOW = """\
import os, time
fsync = os.fsync
def slowly(file):
    time.sleep({seconds})
    fsync(file)
os.fsync = slowly
from meshlock.cli.main import run
run()
"""


def agents(folder: Path, seconds: float, lease: float) -> list[subprocess.Popen[bytes]]:
    """Real ones, all of them with such disks."""
    ports = free_ports(len(NAMES))
    found = []
    for place, name in enumerate(NAMES):
        peers = [f"127.0.0.1:{port}" for port in ports[:place]]
        (folder / f"{name}.toml").write_text(
            f'name = "{name}"\nlisten = "127.0.0.1:{ports[place]}"\npeers = {peers}\n'
            f'socket = "{folder}/{name}.sock"\nstate = "{folder}/{name}"\n'
            f"[pools.docks]\npermits = 1\nmembers = {NAMES}\nlease = {lease}\n"
        )
        program = [sys.executable, "-c", SLOW.format(seconds=seconds), "agent"]
        with (folder / f"{name}.log").open("w") as log:
            found.append(subprocess.Popen([*program, f"{folder}/{name}.toml"], stderr=log))
        sooner_or_later((folder / f"{name}.sock").exists)
    return found


def enters(folder: Path, name: str) -> subprocess.Popen[bytes]:
    """A client of this agent that stays inside; this returns when it is in."""
    where = ["--socket", f"{folder}/{name}.sock", "--pool", "docks", "--timeout", str(LIMIT)]
    program = [sys.executable, "-m", "meshlock", "exec", *where, "--", "sh", "-c"]
    client = subprocess.Popen([*program, "echo in; exec sleep 1000"], stdout=subprocess.PIPE)
    assert client.stdout is not None and client.stdout.readline() == b"in\n"
    return client


def test_agents_whose_disks_take_a_lease_for_a_promise(tmp_path: Path) -> None:
    """A promise costs two calls of fsync."""
    with ExitStack() as stack:
        running = agents(tmp_path, seconds=0.5, lease=1.0)
        for agent in running:
            stack.callback(agent.wait)
            stack.callback(agent.kill)
        first = enters(tmp_path, "a")
        first.terminate()
        first.wait()
        inside = enters(tmp_path, "b")
        running[1].kill()
        for client in (inside, enters(tmp_path, "c")):
            client.kill()
            client.wait()


def test_the_loop_never_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for that of a pool that is made now, or is over, either: its node may have links and
    other pools, and has to leave in time."""
    waited: list[int] = []
    fsync = os.fsync

    def noted(file: int) -> None:
        waited.append(get_ident())
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)

    async def story() -> None:
        async with meshlock.Node("a", state=tmp_path) as node:
            grant = await node.pool("docks", 1).acquire(timeout=LIMIT)
            assert [*tmp_path.glob("docks*")]
            grant.release()

    run_in_real_time(story)
    assert waited and get_ident() not in waited
    assert not [*tmp_path.glob("docks*")]
