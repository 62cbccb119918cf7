"""A node that is not needed for the quorum stops for good: all others are served, whatever went
before. Chaos starts everybody again in the end; here nobody comes back."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from random import Random

import pytest
import virtual

from meshlock import Node, Pool

LEASE = 3.0
INSIDE = ["direct", "direct", "jiang", "naimi-trehel", "raymond", "suzuki-kasami"]
SEVERAL = ("direct", "jiang")
"""Algorithms for several permits, of which one may want more than one."""


class World:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.names = [f"n{number}" for number in range(random.choice([4, 5, 6, 7]))]
        self.members = self.names[: random.choice([1, 3, 3])]
        self.algorithm = random.choice(INSIDE)
        self.permits = random.choice([1, 2, 3]) if self.algorithm in SEVERAL else 1
        self.nodes: dict[str, Node] = {}
        self.pools: dict[str, Pool] = {}

    async def start(self, stack: AsyncExitStack) -> None:
        for name in self.names:
            peers = [node.address for node in self.nodes.values()]
            if peers and self.random.random() < 0.4:
                peers = self.random.sample(peers, max(1, len(peers) // 2))
            self.nodes[name] = node = Node(name, peers=peers, state=None, dead=1.0)
            await node.start()
            stack.push_async_callback(node._local.vanish)
        for name, node in self.nodes.items():
            self.pools[name] = node.pool(
                *("docks", self.permits),
                algorithm=self.algorithm,
                members=self.members,
                lease=LEASE,
            )
        await self.serves(self.names)

    async def serves(self, names: list[str]) -> None:
        for name in names:
            (await self.pools[name].acquire(timeout=8 * LEASE)).release()

    async def client(self, pool: Pool) -> None:
        random = self.random
        for _ in range(random.randint(0, 3)):
            want, priority = random.randint(1, self.permits), random.randint(0, 3)
            async with pool.acquire(want, priority=priority):
                await asyncio.sleep(random.choice([0, 0, 0.001, 0.05, 1.0]))
            await asyncio.sleep(random.choice([0, 0.01, 0.3]))

    def mortal(self) -> list[str]:
        needed = self.members if len(self.members) == 1 else self.members[1:]
        found = [name for name in self.names if name not in needed]
        self.random.shuffle(found)
        return found[: 1 if self.members[0] in found[:2] else 2]

    async def dies(self, name: str, network: virtual.Network) -> None:
        random = self.random
        if random.random() < 0.4 and self.algorithm in SEVERAL:  # an epoch that names everybody
            pool = self.pools[random.choice(list(self.pools))]
            await pool.set_permits(self.permits, timeout=60)
        clients = [
            asyncio.create_task(self.client(pool))
            for pool in self.pools.values()
            for _ in range(random.choice([1, 1, 2]))
        ]
        await asyncio.sleep(random.choice([0.01, 0.1, 0.5, 2.0, 5.0]))
        if random.random() < 0.5:
            await asyncio.wait(clients, timeout=60)
        del self.pools[name]
        network.kill(self.nodes[name]._local.mesh)
        await self.nodes[name]._local.vanish()
        await asyncio.sleep(random.choice([0, 0.3, 2.0, 6.0]))
        await self.serves(list(self.pools))
        for client in clients:
            client.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await client


@pytest.mark.parametrize("seed", range(60))
def test_the_others_are_served(seed: int) -> None:
    async def story(network: virtual.Network) -> None:
        async with AsyncExitStack() as stack:
            world = World(seed)
            await world.start(stack)
            for name in world.mortal():
                await world.dies(name, network)

    virtual.run(story, seed=seed)
