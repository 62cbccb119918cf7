"""The token of direct moves on while permits are out, so that no node is more equal than others."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
import virtual

from meshlock import Node
from meshlock.algorithms.direct import REST
from meshlock.algorithms.recovery.layer import Layer
from waiting import LIMIT, eventually

PERMITS, LEASE, HOP = 3, 10.0, 0.002


def layer(node: Node) -> Layer:
    members = node._local.pools["docks"].adapter.members
    assert members is not None
    return members.node


@pytest.mark.parametrize("hold", [HOP, 5 * HOP])
def test_all_who_ask_alike_enter_alike_often_and_no_epoch_ends(hold: float) -> None:
    """Each of five nodes has a client that asks again as soon as it has released."""
    entries: dict[str, int] = {}

    async def work(node: Node, until: int) -> None:
        while sum(entries.values()) < until:
            async with node.pool("docks").acquire(timeout=LIMIT):
                await asyncio.sleep(hold)
                entries[node.name] = entries.get(node.name, 0) + 1

    async def story(network: virtual.Network) -> None:
        async with AsyncExitStack() as stack:
            nodes: list[Node] = []
            for name in "abcde":
                node = Node(name, peers=[one.address for one in nodes], state=None)
                await node.start()
                stack.push_async_callback(node.close)
                nodes.append(node)
            for node in nodes:
                node.pool("docks", PERMITS, lease=LEASE, members=list("abc"))
            for node in nodes:
                async with node.pool("docks").acquire(timeout=LIMIT):
                    pass
            epoch = layer(nodes[0]).member.adopted
            before = max(layer(node).member.holding.holder_hop for node in nodes)
            most = 120 * REST  # with a quarter of these, chance alone makes a tenth
            await asyncio.gather(*[work(node, most) for node in nodes])
            assert all(layer(node).member.adopted == epoch for node in nodes)
            assert max(layer(node).member.holding.holder_hop for node in nodes) >= before + 20
            assert [node.status()["refused"] for node in nodes] == [0] * 5
            held = [layer(node) for node in nodes if layer(node).member.holding.token is not None]
            await eventually(
                lambda: (
                    held[0].member.holding.token is None
                    or held[0].member.holding.token.free == PERMITS
                )
            )

    virtual.run(story, slowest=HOP)
    assert min(entries.values()) >= 0.9 * max(entries.values()), entries
