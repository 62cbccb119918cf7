"""Who is urgent goes first, also where an older request of its node waits already."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
import virtual
from sabotages import SABOTAGES, sabotaged
from virtual import Network

from meshlock import Node
from meshlock.live.pools.grants import Pool
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace
from waiting import LIMIT, eventually

NAMES = ["a", "b", "c"]
ORDINARY, URGENT = 0, 9
MOST = 2
"""Grants that may be made while word of an urgent request is under way to the token, and back."""


HOLDS = (0.005, 0.01)
"""Seconds: longer than word is under way over two links."""


class Load:
    """Clients that ask again and again, and an urgent one now and then."""

    def __init__(self, pools: list[Pool], seed: int) -> None:
        self.pools = pools
        self.random = Random(seed)
        self.waiting: dict[int, int] = {}  # urgent requests: how many ordinary ones went before
        self.worst = 0
        self.entries = 0

    async def ordinary(self, pool: Pool) -> None:
        while True:
            async with pool.acquire(priority=ORDINARY, timeout=LIMIT):
                self.entries += 1
                for urgent in self.waiting:
                    self.waiting[urgent] += 1
                await asyncio.sleep(self.random.uniform(*HOLDS))

    async def urgent(self, number: int) -> None:
        pool = self.random.choice(self.pools)
        self.waiting[number] = 0
        async with pool.acquire(priority=URGENT, timeout=LIMIT):
            self.worst = max(self.worst, self.waiting.pop(number))

    async def run(self, clients: int, urgent: int) -> None:
        work = [self.ordinary(pool) for pool in self.pools for _ in range(clients)]
        tasks = [asyncio.create_task(one) for one in work]
        await eventually(lambda: self.entries > 20)
        for number in range(urgent):
            await asyncio.sleep(self.random.uniform(0.0, 0.2))
            await self.urgent(number)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("recovery", [None, "none"])
@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_an_urgent_request_is_not_held_up_by_an_older_one_of_its_node(
    algorithm: str, recovery: str | None
) -> None:
    if algorithm == "direct" and recovery is not None:
        pytest.skip("direct needs members")

    async def story(_: Network) -> int:
        nodes: list[Node] = []
        for name in NAMES:
            nodes.append(Node(name, peers=[node.address for node in nodes], min_links=0))
            await nodes[-1].start()
            if recovery is None:
                nodes[-1].pool("docks", 1, members=NAMES, lease=3.0, algorithm=algorithm)
            else:
                nodes[-1].pool("docks", 1 if name == "a" else None, recovery=recovery)
        pools = [node.pool("docks") for node in nodes]
        load = Load(pools, 1)
        await load.run(clients=20, urgent=40)
        for node in nodes:
            await node._local.vanish()
        return load.worst

    worst = virtual.run(story)
    print(algorithm, recovery, worst)
    assert worst <= MOST


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_an_urgent_request_survives_a_failure_that_only_the_holder_notices(algorithm: str) -> None:
    async def story(_: Network) -> list[str]:
        nodes: list[Node] = []
        for name in NAMES:
            first = [nodes[0].address] if nodes else []
            nodes.append(Node(name, peers=first, min_links=0))
            await nodes[-1].start()
            nodes[-1].pool("docks", 1, members=NAMES, lease=3.0, algorithm=algorithm)
        holder, ordinary, urgent = (node.pool("docks") for node in nodes)
        entered: list[str] = []

        async def enter(pool: Pool, priority: int) -> None:
            async with pool.acquire(priority=priority, timeout=LIMIT):
                entered.append(pool._source.me)

        held = await holder.acquire()
        waiting = [asyncio.create_task(enter(urgent, URGENT))]
        await asyncio.sleep(nodes[0]._local.settings.dead)  # of virtual time
        waiting.append(asyncio.create_task(enter(ordinary, ORDINARY)))
        await asyncio.sleep(nodes[0]._local.settings.dead)
        nodes[0]._local.mesh.cut(
            "c", 0.6 * nodes[2]._local.settings.dead
        )  # it is back before c calls it dead
        await asyncio.sleep(4 * nodes[0]._local.settings.dead)
        held.release()
        await asyncio.gather(*waiting)
        for node in nodes:
            await node._local.vanish()
        return entered

    assert virtual.run(story) == ["c", "b"]


def audited(folder: Path) -> Audit:
    """The traces of a leased pool that is used by many, more or less urgently."""

    async def story(_: Network) -> None:
        nodes: list[Node] = []
        for name in NAMES:
            nodes.append(Node(name, peers=[node.address for node in nodes], trace=folder))
            await nodes[-1].start()
            nodes[-1].pool("docks", 2, members=NAMES, lease=0.6)
        load = Load([node.pool("docks") for node in nodes], 1)
        await load.run(clients=4, urgent=5)
        for node in nodes:
            await node._local.vanish()

    virtual.run(story)
    with (folder / "merged.jsonl").open("wb") as file:
        merge([folder / f"docks.{name}.jsonl" for name in NAMES], file, ended=True)
    return Audit(Trace(folder / "merged.jsonl"))


def test_a_leased_pool_serves_in_order(tmp_path: Path) -> None:
    verdict = audited(tmp_path)
    assert verdict.monitor.violated == {} and verdict.entries > 100


def test_the_audit_of_a_leased_pool_judges_order(tmp_path: Path) -> None:
    sabotage = SABOTAGES["recovery/serves-the-least-urgent"]
    if not sabotage.possible():
        pytest.skip("it replaces a compiled class")
    with sabotaged(sabotage):
        found = audited(tmp_path).monitor.violated
    assert "which waits with priority 9" in found.pop("order") and found == {}
