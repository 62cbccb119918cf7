"""A pool is made anew when its quorum is gone for ever; what that risks, and what not.

Random worlds in virtual time: members a, b and c, and d and e that only use the pool. b and c are
killed, one of the others makes the pool anew, and the old members come back from their disks: one
of them, or both; linked to the new pool, or cut off from it for a while.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import virtual
from virtual import HOST, Network

from meshlock import Grant, Node, Refused
from meshlock.live.pools.grants import Pool
from waiting import a_while, eventually

MEMBERS = ["a", "b", "c"]
NAMES = [*MEMBERS, "d", "e"]
PERMITS = 3
PATIENCE = 2.0  # of a client, in virtual seconds
LEASE = 1.0


class World:
    """All are linked to all, by wires between two groups that can be cut."""

    def __init__(self, network: Network, folder: Path, seed: int) -> None:
        self.network = network
        self.folder = folder
        self.random = Random(seed)
        self.ports = {name: 5000 + place for place, name in enumerate(NAMES)}
        self.wires = {
            (one, other): network.wire(f"{HOST}:{self.ports[other]}")
            for one in NAMES
            for other in NAMES
            if other < one
        }
        self.nodes: dict[str, Node] = {}
        self.work: dict[str, list[asyncio.Task[None]]] = {}
        self.inside: list[tuple[str, int, Grant]] = []  # node, identity of its pool, grant
        self.ghosts: list[tuple[float, int, int]] = []  # of killed nodes: until, identity, permits
        self.entries: dict[int, int] = {}
        self.most_in_all = 0
        self.wrong: list[str] = []

    async def start(self, name: str) -> None:
        peers = [wire.address for (one, _), wire in self.wires.items() if one == name]
        listen = f"{HOST}:{self.ports[name]}"
        state = self.folder / name
        node = Node(name, listen=listen, peers=peers, state=state, dead=LEASE / 2, min_links=0)
        self.nodes[name] = node
        await node.start()
        node.pool("docks", PERMITS, members=MEMBERS, lease=LEASE)
        self.work[name] = [asyncio.create_task(self.client(node)) for _ in range(3)]

    async def client(self, node: Node) -> None:
        """Its program goes on whatever happens; it uses a grant for as long as it is held."""
        pool = node._local.pools["docks"]
        while True:
            with suppress(TimeoutError, Refused):
                want = self.random.randint(1, 2)
                grant = await Pool(pool).acquire(want, timeout=PATIENCE)
                assert pool.adapter.configuration is not None
                identity = pool.adapter.configuration.identity
                entry = (node.name, identity, grant)
                self.inside.append(entry)
                self.entries[identity] = self.entries.get(identity, 0) + 1
                self.judge()
                try:
                    async with asyncio.timeout(self.random.uniform(0.0, 3 * LEASE)):
                        await grant.wait_lost()
                finally:
                    self.inside.remove(entry)
                    grant.release()
            await asyncio.sleep(self.random.uniform(0.0, 0.2))

    def judge(self) -> None:
        """Never more than k of one pool, at nodes that are up or down."""
        now = asyncio.get_running_loop().time()
        used: dict[int, int] = {}
        for _, identity, grant in self.inside:
            if grant.held and not grant.lost:
                used[identity] = used.get(identity, 0) + grant.want
        for until, identity, want in self.ghosts:
            if until > now:
                used[identity] = used.get(identity, 0) + want
        if max(used.values(), default=0) > PERMITS:
            self.wrong.append(f"{used} at {now}")
        self.most_in_all = max(self.most_in_all, sum(used.values()))

    async def kill(self, name: str) -> None:
        """What its clients hold they use until the lease ends that they know of."""
        now = asyncio.get_running_loop().time()
        for node, identity, grant in self.inside:
            if node == name and grant.held:
                self.ghosts.append((now + (grant.lease or 0.0), identity, grant.want))
        node = self.nodes.pop(name)
        for task in self.work.pop(name):
            task.cancel()
        self.network.kill(node._local.mesh)
        await node._local.vanish()

    def part(self, one: set[str], other: set[str]) -> None:
        for (left, right), wire in self.wires.items():
            if (left in one and right in other) or (left in other and right in one):
                wire.cut()

    def heal(self) -> None:
        for wire in self.wires.values():
            wire.heal()

    def identity(self, name: str) -> int:
        configuration = self.nodes[name]._local.pools["docks"].adapter.configuration
        assert configuration is not None
        return configuration.identity

    async def grants(self, identity: int, more: int = 5) -> None:
        there = self.entries.get(identity, 0) + more
        await eventually(lambda: self.entries.get(identity, 0) >= there)
        assert not self.wrong

    async def lose_the_quorum(self) -> int:
        """The result is the old pool's identity."""
        for name in NAMES:
            await self.start(name)
        old = self.identity("a")
        await self.grants(old)
        await a_while(self.random.uniform(0.0, 3.0))
        for name in ("b", "c"):
            await self.kill(name)
        await eventually(lambda: not self.nodes["a"]._local.mesh.link_map.reaches("b"))
        await eventually(lambda: not self.nodes["a"]._local.mesh.link_map.reaches("c"))
        return old

    async def reset(self) -> int:
        chosen = self.random.choice(["a", "d", "e"])
        await self.nodes[chosen]._local.pools["docks"].participation.reset()
        new = self.identity(chosen)
        await eventually(lambda: all(self.identity(name) == new for name in self.nodes))
        return new

    async def end(self) -> None:
        for name in list(self.nodes):
            await self.kill(name)
        assert not self.wrong


@pytest.mark.parametrize("seed", range(8))
def test_a_quorum_that_is_gone_grants_nothing_beside_the_new_pool(
    tmp_path: Path, seed: int
) -> None:
    """One of two comes back, cut off or not: it is no quorum. The new pool alone grants."""

    async def story(network: Network) -> None:
        world = World(network, tmp_path, seed)
        old = await world.lose_the_quorum()
        await a_while(world.random.uniform(0.0, LEASE))
        before = world.entries[old]
        new = await world.reset()
        back = world.random.choice(["b", "c"])
        if world.random.random() < 0.5:
            world.part({back}, set(NAMES) - {back})
        await world.start(back)
        await world.grants(new)
        await a_while(5 * LEASE)
        world.heal()
        await eventually(lambda: world.identity(back) == new)
        await world.grants(new)
        assert world.entries[old] == before
        assert world.most_in_all <= PERMITS  # also while old grants ran out
        await world.end()

    virtual.run(story, seed=seed)


@pytest.mark.parametrize("seed", range(8))
def test_a_quorum_that_lives_after_all_is_what_the_warning_is_about(
    tmp_path: Path, seed: int
) -> None:
    """Both come back where nobody knows of the reset: two pools grant, each its k. When they meet
    the old one does not give way, for its quorum lives; but both say that they conflict."""

    async def story(network: Network) -> None:
        world = World(network, tmp_path, seed)
        old = await world.lose_the_quorum()
        new = await world.reset()
        world.part({"b", "c"}, {"a", "d", "e"})
        for name in ("b", "c"):
            await world.start(name)
        await world.grants(old)
        await world.grants(new)
        assert world.most_in_all <= 2 * PERMITS
        world.heal()
        old_members = [world.nodes[name]._local.pools["docks"] for name in ("b", "c")]
        await eventually(lambda: all(pool.conflict for pool in old_members))  # nobody is silent
        new_members = [world.nodes[name]._local.pools["docks"] for name in ("a", "d", "e")]
        await eventually(lambda: all(pool.conflict for pool in new_members))
        await a_while(5 * LEASE)
        assert world.most_in_all <= 2 * PERMITS
        await world.end()

    virtual.run(story, seed=seed)
