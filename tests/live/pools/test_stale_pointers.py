"""A node that is no member asks whom it took for the holder, who is gone: it finds the token."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
import virtual

from meshlock import Node
from waiting import eventually

LEASE = 3.0
MEMBERS = ["a", "b", "c"]


def epoch_of(node: Node) -> object:
    return node.status()["pools"]["docks"]["epoch"]


@pytest.mark.parametrize("last", MEMBERS)
def test_a_request_that_went_to_somebody_who_is_gone_is_made_again(last: str) -> None:
    """x held the token when d had permits of it last; the token went on, then x stopped."""

    async def story(network: virtual.Network) -> None:
        async with AsyncExitStack() as stack:
            nodes: dict[str, Node] = {}
            for name in (*MEMBERS, "d", "x"):
                peers = [node.address for node in nodes.values()]
                nodes[name] = node = Node(name, peers=peers, state=None, dead=1.0)
                await node.start()
                stack.push_async_callback(node._local.vanish)
            pools = {
                name: node.pool("docks", 2, members=MEMBERS, lease=LEASE)
                for name, node in nodes.items()
            }
            for pool in pools.values():
                (await pool.acquire(timeout=60)).release()
            # an epoch whose ledger names everybody
            assert await pools["a"].set_permits(3, timeout=60) == 3
            held = await pools["x"].acquire()
            (await pools["d"].acquire()).release()
            held.release()
            there = pools[last]
            (await there.acquire(3)).release()  # with all permits the token comes along
            await eventually(
                lambda: there._source.adapter.members and there._source.adapter.members.has_token()
            )
            network.kill(nodes["x"]._local.mesh)
            await nodes["x"]._local.vanish()
            await eventually(lambda: not nodes["d"]._local.mesh.link_map.reaches("x"))
            epoch = epoch_of(nodes[last])
            (await pools["d"].acquire(timeout=3 * LEASE)).release()
            assert epoch_of(nodes[last]) == epoch  # no other one made up for it

    virtual.run(story)
