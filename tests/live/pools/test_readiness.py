"""A node says that a pool is ready only if clients can be served there.

In virtual time: every link fails for long, so that the token's lease ends, and then all come back.
Until there is another token nobody is served, though a quorum is there.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from test_lost_disks import LEASE, World, core, pool, run

from meshlock.live.interfaces.http import unready
from waiting import a_while


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
