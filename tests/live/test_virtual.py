"""Chaos in virtual time: real nodes, meshes, sessions and pools; one seed, one run.

Nodes are killed and come back, links are cut both ways or one way, connections break. Judged at
every entry: never more permits inside than there are, counting the dead until their leases end,
and no fence twice. In the end everybody is served.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
import virtual
from virtual import Network, Wire

from meshlock import Node
from meshlock.live.machine import clock
from meshlock.live.pools.grants import Grant
from waiting import LIMIT

NAMES = ["a", "b", "c", "d", "e"]
PERMITS = 2
LEASE = 3.0
PATIENCE = 30.0  # of clients, in virtual seconds


class Chaos:
    def __init__(self, network: Network, state: Path, seed: int) -> None:
        self.network = network
        self.state = state
        self.random = Random(seed)
        self.nodes: dict[str, Node] = {}
        self.clients: dict[str, list[asyncio.Task[None]]] = {}
        self.wires: dict[tuple[str, str], Wire] = {}
        self.inside: dict[Grant, float] = {}  # and until when, as far as was seen
        self.fences: set[int] = set()
        self.wrong: list[str] = []
        self.log: list[tuple[float, str, object]] = []
        self.ports = {name: 5001 + place for place, name in enumerate(NAMES)}

    def note(self, what: str, of: object) -> None:
        self.log.append((clock.seconds(), what, of))

    # -- nodes and clients -----------------------------------------------------------------

    async def start(self, name: str) -> None:
        self.note("start", name)
        peers = []
        for other in NAMES[: NAMES.index(name)]:
            if (name, other) not in self.wires:
                self.wires[name, other] = self.network.wire(f"{virtual.HOST}:{self.ports[other]}")
            peers.append(self.wires[name, other].address)
        listen = f"{virtual.HOST}:{self.ports[name]}"
        node = self.nodes[name] = Node(name, listen=listen, peers=peers, state=self.state / name)
        await node.start()
        node.pool("docks", PERMITS, members=NAMES, lease=LEASE)
        work = [self.work(node), self.work(node)]
        self.clients[name] = [asyncio.create_task(client) for client in work]

    async def kill(self, name: str) -> None:
        self.note("kill", name)
        node = self.nodes.pop(name)
        self.network.kill(node.mesh)
        for task in self.clients.pop(name):
            task.cancel()
        await node.vanish()

    async def work(self, node: Node) -> None:
        pool, random = node.pools["docks"], self.random
        while True:
            await asyncio.sleep(random.expovariate(1.0))
            try:
                grant = await pool.acquire(
                    random.randint(1, PERMITS), priority=random.randint(0, 9), timeout=PATIENCE
                )
            except TimeoutError:
                self.note("timeout", node.name)
                continue
            self.entered(node, grant)
            try:
                async with asyncio.timeout(random.expovariate(1.0)):
                    await grant.wait_lost()
                self.note("lost", grant.fence)
            except TimeoutError:
                grant.release()
            self.inside.pop(grant, None)

    def entered(self, node: Node, grant: Grant) -> None:
        """A client that was killed stays inside until its lease ends: it cannot discard itself."""
        now = clock.seconds()
        assert grant.fence is not None
        if grant.fence in self.fences:
            self.wrong.append(f"at {now:.3f} fence {grant.fence} comes again")
        self.fences.add(grant.fence)
        self.note("enter", (node.name, grant.want, grant.fence))
        for other in list(self.inside):
            self.inside[other] = other.deadline or self.inside[other]
        self.inside = {other: until for other, until in self.inside.items() if until > now}
        self.inside[grant] = grant.deadline or 0.0
        held = sum(other.want for other in self.inside)
        if held > PERMITS:
            self.wrong.append(f"at {now:.3f} {held} permits of {PERMITS} are held")

    # -- faults --------------------------------------------------------------------------------

    async def fault(self) -> None:
        random = self.random
        kind = random.choice(["kill", "cut", "deafen", "reset", "part", "part"])
        heal = random.uniform(0.1, 12.0)
        loop = asyncio.get_running_loop()
        if kind == "kill":
            name = random.choice(NAMES)
            if name in self.nodes:
                await self.kill(name)
                await asyncio.sleep(heal)
                await self.start(name)
            return
        wires = [random.choice(sorted(self.wires))]
        if kind == "part":
            side = set(random.sample(NAMES, random.randint(1, 2)))
            wires = [pair for pair in sorted(self.wires) if len(side.intersection(pair)) == 1]
        self.note(kind, wires)
        for pair in wires:
            getattr(self.wires[pair], "cut" if kind == "part" else kind)()
            loop.call_later(heal, self.wires[pair].heal)
        if kind == "part":
            await asyncio.sleep(heal)  # no other fault heals or widens it

    async def go_on(self, seconds: float) -> None:
        end = clock.seconds() + seconds
        while clock.seconds() < end:
            await asyncio.sleep(self.random.expovariate(0.2))
            await self.fault()

    async def end_well(self) -> None:
        """All are there, nothing is cut: everybody is served."""
        for wire in self.wires.values():
            wire.heal()
        await asyncio.sleep(4 * LEASE)
        for wire in self.wires.values():
            wire.heal()
        before = len(self.fences)
        for node in self.nodes.values():
            async with node.pools["docks"].acquire(PERMITS, priority=99, timeout=LIMIT):
                self.note("served", node.name)
        assert len(self.fences) > before


def chaos(
    state: Path, seed: int, seconds: float, disks: tuple[float, ...] = (0.0,)
) -> list[tuple[float, str, object]]:
    """``disks``: what a write may take."""

    async def story(network: Network) -> list[tuple[float, str, object]]:
        run = Chaos(network, state, seed)
        network.disk = lambda: run.random.choice(disks)
        for name in NAMES:
            await run.start(name)
        await run.go_on(seconds)
        await run.end_well()
        assert run.wrong == [], run.wrong
        assert not any(task.done() for tasks in run.clients.values() for task in tasks)
        for node in list(run.nodes.values()):
            await run.kill(node.name)
        return run.log

    return virtual.run(story, seed, slowest=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_a_quarter_of_an_hour_of_chaos_in_seconds(tmp_path: Path, seed: int) -> None:
    log = chaos(tmp_path, seed, 1000.0)
    counts = {what: sum(one[1] == what for one in log) for what in ("enter", "kill", "lost")}
    assert counts["enter"] > 300 and counts["kill"] > 10
    print(seed, counts, f"until {log[-1][0]:.0f}")


@pytest.mark.parametrize("seed", range(2))
def test_disks_that_are_slower_than_leases_are_only_slow(tmp_path: Path, seed: int) -> None:
    log = chaos(tmp_path, seed, 1000.0, disks=(0.0, 0.3, 1.0, 4.0))
    counts = {what: sum(one[1] == what for one in log) for what in ("enter", "kill", "lost")}
    assert counts["enter"] > 200 and counts["kill"] > 10
    print(seed, counts, f"until {log[-1][0]:.0f}")


def test_one_seed_is_one_run(tmp_path: Path) -> None:
    logs = [chaos(tmp_path / name, 7, 100.0) for name in ("once", "again")]
    assert logs[0] == logs[1]
    assert logs[0] != chaos(tmp_path / "other", 8, 100.0)
