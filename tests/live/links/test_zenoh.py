"""The same nodes over real Zenoh sessions, and over a wire of theirs that is cut."""

from __future__ import annotations

import asyncio

import pytest

from ports import free_port
from waiting import LIMIT, a_while, run

pytest.importorskip("zenoh")

from meshlock import Node, Pool
from meshlock.live.chaos.relay import Relay
from meshlock.live.links.dialler import split


async def work(pool: Pool, times: int) -> None:
    for _ in range(times):
        async with pool.acquire(timeout=LIMIT):
            await asyncio.sleep(0.001)


def test_three_nodes_share_over_zenoh_and_survive_its_silent_losses() -> None:
    async def story() -> None:
        port = free_port()
        relay = await Relay("127.0.0.1", port).start()
        hub = {"listen/endpoints": [f"tcp/127.0.0.1:{port}"]}
        direct = {"connect/endpoints": [f"tcp/127.0.0.1:{port}"]}
        cut = {"connect/endpoints": [f"tcp/127.0.0.1:{split(relay.address)[1]}"]}
        for settings in (direct, cut):
            settings["listen/endpoints"] = []
        async with (
            Node("a", listen=None, zenoh=hub) as a,
            Node("b", listen=None, zenoh=direct, peers=["zenoh/a"]) as b,
            Node("c", listen=None, zenoh=cut, peers=["zenoh/a"]) as c,
        ):
            pools = [a.pool("docks", permits=1), b.pool("docks"), c.pool("docks")]
            await asyncio.gather(*[work(pool, 20) for pool in pools])
            assert c.status()["links"]["a"]["address"] == "zenoh:a"
            load = asyncio.gather(*[work(pool, 60) for pool in pools])
            await a_while(0.1)
            relay.cut()
            await a_while(2.0)  # longer than Zenoh's lease: what is sent now is lost
            relay.heal()
            await load
            assert sum(pool._source.adapter.measures.entries for pool in pools) >= 240
        await relay.close()

    run(story)
