"""A node says that a pool is ready only if clients can be served there.

In virtual time: every link fails for long, so that the token's lease ends, and then all come back.
Until there is another token nobody is served, though a quorum is there.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from test_lost_disks import LEASE, World, core, pool, run

from meshlock import Node
from meshlock.live.interfaces.http import unready
from meshlock.live.pools.members import STALLED
from waiting import a_while


def behind(node: Node) -> bool:
    runner = node._local.pools["docks"].adapter.members
    return runner is not None and runner.disk.is_behind()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("away", [2 * LEASE, 12 * LEASE])
def test_a_quorum_that_returns_is_ready_when_somebody_can_be_served(
    tmp_path: Path, away: float, dies: bool, seed: int
) -> None:
    """Three members and two other nodes; nobody asks at the last one. Where the token dies with its
    node, another one is made after a wait."""

    async def story(world: World) -> None:
        world.most_members = 3
        await world.begin(3)
        world.clients.pop("e").cancel()
        world.clients["e"] = asyncio.create_task(a_while(1000 * LEASE))
        wires = list(world.network.wires.values())
        for wire in wires:
            wire.cut()
        await a_while(away)
        assert all(unready(pool(node)) for node in world.nodes.values())
        if dies:
            held = [
                name
                for name, node in world.nodes.items()
                if core(node).member.holding.token is not None
            ]
            await world.kill(held[0])
        before = sum(map(len, world.granted.values()))
        for wire in wires:
            wire.heal()
        while sum(map(len, world.granted.values())) == before:
            if not any(core(node).member.usable() for node in world.nodes.values()):
                for name, node in world.nodes.items():
                    assert unready(pool(node)), f"{name} says that it is ready"
            await a_while(LEASE / 200)
        for _ in range(4):
            await a_while(2 * LEASE)
            assert not any(unready(pool(node)) for node in world.nodes.values())

    run(tmp_path, "abcde", story, seed)


def test_a_node_whose_disk_has_not_taken_the_new_epoch_is_not_ready(tmp_path: Path) -> None:
    """Its token may grant, but nobody hears of a grant before the disk knows the epoch."""

    async def story(world: World) -> None:
        world.most_members = 3
        await world.begin(3)
        wires = list(world.network.wires.values())
        for wire in wires:
            wire.cut()
        await a_while(12 * LEASE)
        epoch = max(core(node).member.adopted for node in world.nodes.values())
        slow: list[str] = []

        def write() -> float:
            """The first node that has a new epoch waits for its disk."""
            begun = [
                name for name, node in world.nodes.items() if core(node).member.adopted > epoch
            ]
            if not begun or slow:
                return 0.0
            slow.extend(begun)
            return 2 * LEASE

        world.network.disk = write
        before, late = sum(map(len, world.granted.values())), 0
        for wire in wires:
            wire.heal()
        while sum(map(len, world.granted.values())) == before:
            for name, node in world.nodes.items():
                if core(node).member.usable() and behind(node):
                    late += 1
                    assert unready(pool(node)), f"{name} says that it is ready"
            await a_while(LEASE / 200)
        assert late > 0
        await a_while(4 * LEASE)
        assert not any(unready(pool(node)) for node in world.nodes.values())

    run(tmp_path, "abc", story, 0)


def test_a_token_that_is_there_for_a_moment_ends_no_stall(tmp_path: Path) -> None:
    """After a quorum was lost, one epoch may follow the other before anybody is served."""

    async def story(world: World) -> None:
        world.most_members = 3
        await world.begin(3)
        runner = world.nodes["a"]._local.pools["docks"].adapter.members
        assert runner is not None and not runner.stalls()
        long_ago = runner.served_at = -2 * STALLED
        runner.stalled_at = runner.mesh.time()
        runner.note_service()
        assert runner.served_at == long_ago
        await a_while(LEASE)
        assert runner.mesh.time() - runner.served_at < LEASE

    run(tmp_path, "abc", story, 0)
