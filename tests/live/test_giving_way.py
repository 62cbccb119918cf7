"""Where the token rests, its node's clients are no better off than those of others."""

from __future__ import annotations

import asyncio

import pytest
from test_leases import run

from meshlock import Node
from meshlock.live.pools.pool import QUIET_TURNS
from waiting import eventually


@pytest.mark.parametrize(("heard", "permits", "turns"), [(3, 2, 3), (1, 2, 1), (3, 1, 0)])
def test_a_client_waits_for_a_grant_to_each_of_the_others(
    heard: int, permits: int, turns: int
) -> None:
    async def story() -> None:
        async with Node("a") as node:
            pool = node.pool("pens", permits)
            await eventually(lambda: pool.ready.is_set())
            pool.heard = {str(number) for number in range(heard)}
            pool.lent_before = pool.lent
            granted = 0

            async def others() -> None:
                nonlocal granted
                while True:
                    pool.measures.received += 1
                    pool.lent += 1
                    granted += 1
                    await asyncio.sleep(0)

            messages = asyncio.create_task(others())
            await pool.give_way()
            assert granted == turns
            messages.cancel()

    run(story)


def test_nobody_waits_for_those_who_say_nothing() -> None:
    async def story() -> None:
        async with Node("a") as node:
            pool = node.pool("pens", 2)
            await eventually(lambda: pool.ready.is_set())
            pool.heard = {"b", "c", "d"}
            turns = 0

            def turn() -> None:
                nonlocal turns
                turns += 1
                node.mesh.loop.call_soon(turn)

            node.mesh.loop.call_soon(turn)
            await pool.give_way()
            assert turns == QUIET_TURNS

    run(story)
