"""A pause or a cut that is shorter than the lease costs nothing: holders keep their permits.

In virtual time: three members, leases of 3 s. One node hears and says nothing for a while.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import virtual
from virtual import HOST, Network, Wire

from meshlock import Grant, Node
from waiting import a_while

LEASE = 3.0
NAMES = "abc"
PAUSED = ("with the token", "with a grant")


class World:
    def __init__(self, network: Network) -> None:
        self.ports = {name: 5000 + place for place, name in enumerate(NAMES)}
        self.wires: dict[tuple[str, str], Wire] = {
            (one, other): network.wire(f"{HOST}:{self.ports[other]}")
            for one in NAMES
            for other in NAMES
            if other < one
        }
        self.nodes: dict[str, Node] = {}

    def add(self, network: Network, name: str, port: int) -> None:
        for other in NAMES:
            self.wires[name, other] = network.wire(f"{HOST}:{self.ports[other]}")
        self.ports[name] = port

    async def start(self, name: str, state: Path | None = None) -> None:
        peers = [wire.address for (one, _), wire in self.wires.items() if one == name]
        listen = f"{HOST}:{self.ports[name]}"
        kept = None if state is None else state / name
        node = Node(name, listen=listen, peers=peers, state=kept, min_links=0)
        self.nodes[name] = node
        await node.start()
        node.pool("docks", 3, members=list(NAMES), lease=LEASE)

    def of(self, name: str) -> list[Wire]:
        return [wire for pair, wire in self.wires.items() if name in pair]

    async def hold(self, names: str) -> list[Grant]:
        """The first has the token then."""
        return [await self.nodes[name].pool("docks").acquire(timeout=60) for name in names]

    def has_token(self, name: str) -> bool:
        core = self.nodes[name]._local.pools["docks"].adapter.core
        return core is not None and core.tokens() > 0


@pytest.mark.parametrize(
    ("paused", "length", "seed"),
    [
        *[(who, length, seed) for who in PAUSED for length in (0.8, 1.0) for seed in (0, 1)],
        ("with the token", 1.5, 16),
        ("with the token", 1.5, 18),
    ],
)
def test_a_pause_shorter_than_the_lease_costs_nothing(
    paused: str, length: float, seed: int
) -> None:
    async def story(network: Network) -> None:
        world = World(network)
        for name in NAMES:
            await world.start(name)
        grants = await world.hold("abc")
        await a_while(network.random.uniform(LEASE, 2 * LEASE))
        [holder] = [name for name in NAMES if world.has_token(name)]
        chosen = holder if paused == "with the token" else min(set(NAMES) - {holder})
        for wire in world.of(chosen):
            wire.cut()
        await a_while(length)
        for wire in world.of(chosen):
            wire.heal()
        back = asyncio.get_running_loop().time()
        await a_while(3 * LEASE)
        assert not any(grant.lost for grant in grants)
        for grant in grants:
            grant.release()
        again = await world.hold("abc")  # and nothing is gone
        assert all(grant.held for grant in again)
        assert asyncio.get_running_loop().time() - back < 4 * LEASE
        for node in world.nodes.values():
            await node._local.vanish()

    virtual.run(story, seed=seed)


@pytest.mark.parametrize("paused", ["itself", "another"])
@pytest.mark.parametrize("young", ["b with its disk", "b without its disk", "d, no member"])
@pytest.mark.parametrize("seed", range(3))
def test_a_pause_of_a_node_that_has_just_started_costs_nothing(
    tmp_path: Path, young: str, paused: str, seed: int
) -> None:
    async def story(network: Network) -> None:
        world = World(network)
        state = tmp_path if young == "b with its disk" else None
        for name in NAMES:
            await world.start(name, state)
        for grant in await world.hold("abc"):
            grant.release()
        name = young[0]
        if name == "d":
            world.add(network, name, 5009)
        else:
            await world.nodes[name]._local.vanish()
        await world.start(name, state)
        grants = await world.hold(name + "ac")
        await a_while(network.random.uniform(0, LEASE / 3))
        chosen = world.of(name if paused == "itself" else "c")
        for wire in chosen:
            wire.cut()
        await a_while(network.random.uniform(0.8, 1.0))
        for wire in chosen:
            wire.heal()
        await a_while(3 * LEASE)
        assert not any(grant.lost for grant in grants)
        for node in world.nodes.values():
            await node._local.vanish()

    virtual.run(story, seed=seed)


@pytest.mark.parametrize(("period", "stays"), [(0.25, True), (0.9, False)])
def test_links_that_flap_one_way_cost_nobody_its_permits(period: float, stays: bool) -> None:
    """Shorter than links take to notice, it costs not even an epoch."""

    async def story(network: Network) -> None:
        world = World(network)
        for name in NAMES:
            await world.start(name)
        grants = await world.hold("abc")
        await a_while(LEASE)
        epochs = {node.status()["pools"]["docks"]["epoch"] for node in world.nodes.values()}
        for _ in range(int(4 * LEASE / period)):
            for wire in world.of("c"):
                wire.deafen()
            await a_while(period)
            for wire in world.of("c"):
                wire.heal()
            await a_while(period)
        assert not any(grant.lost for grant in grants)
        after = {node.status()["pools"]["docks"]["epoch"] for node in world.nodes.values()}
        assert after == epochs or not stays
        for node in world.nodes.values():
            await node._local.vanish()

    virtual.run(story)
