"""The lease of a token, or of a grant, goes on running while it is under way."""

from __future__ import annotations

import asyncio

import pytest
import virtual
from lines import line

from meshlock.live.machine import clock
from meshlock.live.pools.grants import Pool
from waiting import eventually

LEASE = 9.0
HELD_UP = 4.0
"""Seconds: longer than the third of a lease after which it is renewed, so that time which is not
counted shows whenever the token was renewed last."""


async def deadline_of(pool: Pool) -> float:
    grant = await pool.acquire()
    assert grant.until is not None
    return grant.until


@pytest.mark.parametrize("held", [0, 1], ids=["token", "grant"])
def test_the_time_under_way_is_not_added_to_the_lease(held: int) -> None:
    """With a permit out the token stays, and what comes is a grant."""

    async def story(network: virtual.Network) -> None:
        async with line(network, "ab", dead=60.0) as (nodes, [wire]):
            here = nodes["a"].pool("docks", 1 + held, members=["a"], lease=LEASE)
            there = nodes["b"].pool("docks")
            grant = await here.acquire()
            if not held:
                grant.release()
            await eventually(
                lambda: (
                    there._source.adapter.members and there._source.adapter.members.node.epoch.inner
                )
            )
            wire.deafen()  # b hears nothing; what a sends comes later
            asked = clock.seconds()
            waiting = asyncio.ensure_future(deadline_of(there))
            await asyncio.sleep(HELD_UP)
            assert not waiting.done()
            assert (
                here._source.adapter.members is not None
                and here._source.adapter.members.has_token() == bool(held)
            )
            wire.heal()
            deadline = await waiting
            assert clock.seconds() - asked >= HELD_UP
            assert deadline <= asked + LEASE + 0.1

    virtual.run(story)
