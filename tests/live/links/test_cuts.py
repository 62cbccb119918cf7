"""Links are cut and come back; the pool goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from meshlock.live.chaos.relay import Relay
from meshlock.live.interfaces.node import Node
from meshlock.live.links.dialler import split
from meshlock.live.pools.grants import Pool
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace
from waiting import LIMIT, a_while, eventually, run

Line = tuple[list[Node], list[Relay]]


@asynccontextmanager
async def line(
    folder: Path, size: int, secret: str | None = None, dead: float = 0.5
) -> AsyncIterator[Line]:
    """Nodes n0 - n1 - n2 ..., each link over a relay."""
    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        relays: list[Relay] = []
        for number in range(size):
            peers = []
            if nodes:
                relay = await Relay(*split(nodes[-1].address)).start()
                stack.push_async_callback(relay.close)
                relays.append(relay)
                peers = [relay.address]
            node = Node(
                f"n{number}", peers=peers, secret=secret, trace=folder, dead=dead, min_links=0
            )
            await node.start()
            stack.push_async_callback(node._local.vanish)
            nodes.append(node)
        yield nodes, relays


def pools(nodes: list[Node], algorithm: str, permits: int) -> list[Pool]:
    """Without leases: what the links alone can promise."""
    names = [node.name for node in nodes]
    if algorithm == "jiang":
        first = nodes[0].pool("docks", permits, recovery="none")
    else:
        links = list(pairwise(names))
        fixed = {"members": names, "links": links, "recovery": "none"}
        first = nodes[0].pool("docks", permits, algorithm=algorithm, **fixed)  # type: ignore
    return [first, *[node.pool("docks") for node in nodes[1:]]]


async def work(pool: Pool, times: int, hold: float = 0.0) -> None:
    for _ in range(times):
        async with pool.acquire(timeout=LIMIT):
            await asyncio.sleep(hold)


def judge(folder: Path) -> Audit:
    merged = folder / "merged.jsonl"
    with merged.open("wb") as file:
        missing = merge(folder.glob("docks.*.jsonl"), file, ended=True)
    assert missing == 0  # no token and no permit was lost on the way
    verdict = Audit(Trace(merged))
    assert verdict.monitor.violated == {}
    return verdict


@pytest.mark.parametrize("secret", [None, "a secret of enough letters"])
@pytest.mark.parametrize("algorithm", ["raymond", "jiang"])
def test_connections_that_break_are_replaced_and_nobody_notices(
    tmp_path: Path, algorithm: str, secret: str | None
) -> None:
    if secret:
        pytest.importorskip("cryptography")

    async def story() -> None:
        async with line(tmp_path, 3, secret, dead=LIMIT) as (nodes, relays):
            docks = pools(nodes, algorithm, 1)
            await work(docks[2], 1)
            generations = [session.generation for session in sessions(nodes)]
            load = asyncio.gather(*[work(pool, 60, 0.001) for pool in docks])
            for _ in range(5):
                await asyncio.sleep(0.05)
                relays[0].reset()
                relays[1].reset()
            await load
            await eventually(lambda: at_rest(nodes))
            assert [session.generation for session in sessions(nodes)] == generations

    run(story)
    assert judge(tmp_path).entries == 181


@pytest.mark.parametrize("algorithm", ["raymond", "jiang"])
def test_a_cut_longer_than_the_dead_interval_heals(tmp_path: Path, algorithm: str) -> None:
    async def story() -> None:
        async with line(tmp_path, 3) as (nodes, relays):
            docks = pools(nodes, algorithm, 1)
            await work(docks[2], 1)
            load = asyncio.gather(*[work(pool, 40, 0.002) for pool in docks])
            await asyncio.sleep(0.03)
            relays[0].cut()
            await eventually(lambda: nodes[0].status()["links"]["n1"]["up"] is False)
            await a_while(0.3)
            relays[0].heal()
            await load
            await eventually(lambda: at_rest(nodes))
            assert nodes[0].status()["links"]["n1"]["generation"] >= 2

    run(story)
    assert judge(tmp_path).entries == 121


def test_a_token_on_a_link_that_never_returns_finds_another_way(tmp_path: Path) -> None:
    async def story() -> None:
        async with line(tmp_path, 3) as (nodes, relays):
            nodes[2].connect(nodes[0].address)  # a triangle; the link n0 - n1 has a relay
            docks = pools(nodes, "jiang", 2)
            grant = await docks[0].acquire(2)
            await eventually(lambda: all(len(pool._source.peers.near) == 2 for pool in docks))
            waiting = asyncio.create_task(work(docks[1], 1))
            await eventually(lambda: docks[0]._source.adapter.core.queue)  # type: ignore[union-attr]
            relays[0].cut()
            grant.release()  # TOKEN goes to n1, over the link that is cut
            await asyncio.sleep(0)
            assert nodes[0].status()["links"]["n1"]["unacknowledged"] == 1
            await waiting
            await work(docks[0], 1)
            while nodes[0].status()["links"]["n1"]["unacknowledged"]:  # until the receipt is there
                await asyncio.sleep(0.01)
            assert nodes[0].status()["links"]["n1"]["up"] is False
            relays[0].heal()
            await eventually(lambda: nodes[0].status()["links"]["n1"]["up"])
            await asyncio.gather(*[work(pool, 20) for pool in docks])
            await eventually(lambda: at_rest(nodes))

    run(story)
    assert judge(tmp_path).entries == 63


def at_rest(nodes: list[Node]) -> bool:
    """All that was sent has arrived, and its sender knows."""
    links = [link for node in nodes for link in node.status()["links"].values()]
    return all(link["up"] and not link["in_flight"] for link in links) and not any(
        link["unacknowledged"] for link in links
    )


def sessions(nodes: list[Node]) -> list[object]:
    return [session for node in nodes for session in node._local.mesh.sessions.values()]  # type: ignore
