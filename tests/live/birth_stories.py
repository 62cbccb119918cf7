"""Births in virtual time: one seed, one pool name, and all that can go wrong before there is one.

Two, three or five machines name each other, or all name the first. They start within seconds of
each other; links come up late, one way or not at all for a while, and need up to half a second;
some machines have a wrong secret until they are restarted; machines are killed, or cut off as if
they were paused, and come back, with their disk or without. Everybody wants all permits from the
first moment on. Never more than k are used, in all pools of the name together; and when faults stop
everybody is served by one pool.

A disk is lost when all others know the pool, and it has three members, all with a vote: a
node that forgets is like one that never knew, and fewer than a majority may be so, as
guarantees.md says. Clocks of walls are wrong by nobody's doing here: no birth reads one, and that
links come up whatever they show is in links/test_certificates.py.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import NamedTuple

import virtual

from meshlock import Node, Refused

PERMITS = 3
LEASE = 0.6
TROUBLE = 12.0
"""Seconds of faults."""

PAUSE = 0.05
SERVED = 60.0
"""Seconds in which everybody is served after that."""


class Outcome(NamedTuple):
    most: int  # permits in use at a time
    pools: int  # identities under which any were granted
    served: bool  # everybody, in the end
    forgot: int  # lost disks
    first: float  # seconds until the first grant; -1 if there was none before faults stopped


class Machine:
    def __init__(self, story: Story, place: int, port: int) -> None:
        self.story = story
        self.name = f"m{place}"
        self.port = port
        self.folder = story.folder / self.name
        self.wires: list[virtual.Wire] = []
        self.node: Node | None = None
        self.tasks: list[asyncio.Task[None]] = []
        self.served = 0
        self.stranger = story.chance.random() < 0.15  # it has another secret

    async def start(self) -> None:
        peers = [wire.address for wire in self.wires]
        listen = f"0.0.0.0:{self.port}"
        self.node = Node(self.name, listen=listen, peers=peers, state=self.folder)
        await self.node.start()
        self.node.pool("docks", PERMITS, lease=LEASE, promote_after=1.0, replace_after=3.0)
        self.tasks = [asyncio.ensure_future(self.work(self.node))]

    async def work(self, node: Node) -> None:
        """Asks for some of the permits again and again; a grant counts until it ends."""
        story = self.story
        while True:
            try:
                want = story.chance.choice([1, PERMITS])
                grant = await node.pool("docks").acquire(want, timeout=SERVED)
            except (Refused, TimeoutError):
                await asyncio.sleep(PAUSE)
                continue
            self.served += 1
            story.enters(self, want, node._local.pools["docks"].adapter.identity)
            try:
                lost = asyncio.ensure_future(grant.wait_lost())
                await asyncio.wait([lost], timeout=story.chance.uniform(0.02, 0.5))
                lost.cancel()
            finally:
                story.held -= want
                if node is self.node:
                    grant.release()

    async def kill(self) -> None:
        """Its clients are programs of the same process."""
        node, self.node = self.node, None
        if node is not None:
            self.story.network.kill(node._local.mesh)
            await node._local.vanish()
        for task in self.tasks:
            task.cancel()
        self.tasks = []


class Story:
    def __init__(self, network: virtual.Network, folder: Path) -> None:
        self.network = network
        self.chance = network.random
        self.folder = folder
        self.began = network.loop.time()
        self.held = self.most = self.forgot = 0
        self.first = -1.0
        self.identities: set[int] = set()
        count = self.chance.choice([2, 3, 3, 5])
        network.ports += count
        ports = [network.ports - place for place in range(count)]
        self.machines = [Machine(self, place, port) for place, port in enumerate(ports)]
        star = self.chance.random() < 0.4
        for place, machine in enumerate(self.machines):
            named = ports if not star else ports[:1] if place else []
            for port in named:
                wire = network.wire(f"{virtual.HOST}:{port}")
                other = self.machines[ports.index(port)]
                wire.refuses = lambda one=machine, other=other: one.stranger != other.stranger
                machine.wires.append(wire)

    def enters(self, machine: Machine, want: int, identity: int) -> None:
        self.held += want
        self.most = max(self.most, self.held)
        self.identities.add(identity)
        if self.first < 0:
            self.first = self.network.loop.time() - self.began

    def later(self, seconds: float, what: object, *given: object) -> None:
        self.network.loop.call_later(seconds, what, *given)  # type: ignore[arg-type]

    def trouble_links(self) -> None:
        """Late, slow, one way, or as good as absent for a while."""
        for machine in self.machines:
            for wire in machine.wires:
                wire.delay = self.chance.choice([0.0, 0.0, 0.05, 0.25, 0.5])
                while self.chance.random() < 0.5:
                    at = self.chance.uniform(0.0, TROUBLE / 2)
                    self.later(at, self.chance.choice([wire.cut, wire.deafen]))
                    self.later(at + self.chance.uniform(0.1, TROUBLE / 2), wire.heal)
                if self.chance.random() < 0.3:
                    wire.cut()
                    self.later(self.chance.uniform(0.1, TROUBLE), wire.heal)

    def may_forget(self, machine: Machine) -> bool:
        """Do all others know the pool, and is it not lost with this disk?"""
        others = [one for one in self.machines if one is not machine]
        known = all((one.folder / "docks.promised").exists() for one in others)
        pools = [one.node.status()["pools"]["docks"] for one in others if one.node is not None]
        return known and all(
            len(pool.get("members", ())) >= 3 and not pool["members_without_vote"] for pool in pools
        )

    async def tell(self) -> Outcome:
        self.trouble_links()
        for machine in self.machines:
            await machine.start()
            await asyncio.sleep(self.chance.choice([0.0, 0.2, 1.0]))
        end = self.began + TROUBLE
        while self.network.loop.time() < end:
            await asyncio.sleep(self.chance.uniform(0.3, 4.0))
            machine, what = self.chance.choice(self.machines), self.chance.random()
            if what < 0.6:
                await self.restart(machine)
            elif what < 0.8:
                await self.pause(machine)
        for machine in self.machines:
            if machine.stranger:
                await self.restart(machine)
            for wire in machine.wires:
                wire.delay = 0.0
                wire.heal()
            machine.served = 0
        end = self.network.loop.time() + SERVED
        while not all(one.served for one in self.machines) and self.network.loop.time() < end:
            await asyncio.sleep(PAUSE)
        served = all(machine.served for machine in self.machines)
        for machine in self.machines:
            await machine.kill()
        return Outcome(self.most, len(self.identities), served, self.forgot, self.first)

    async def restart(self, machine: Machine) -> None:
        """At once, or when others have noticed; perhaps without its disk."""
        await machine.kill()
        machine.stranger = False
        if self.chance.random() < 0.4 and self.may_forget(machine):
            self.forgot += 1
            shutil.rmtree(machine.folder, ignore_errors=True)
        await asyncio.sleep(self.chance.choice([0.1, LEASE, 3.0]))
        await machine.start()

    async def pause(self, machine: Machine) -> None:
        """No link to it or from it passes anything on."""
        wires = [wire for one in self.machines for wire in one.wires]
        wires = [wire for wire in wires if wire in machine.wires or wire.port == machine.port]
        for wire in wires:
            wire.cut()
        await asyncio.sleep(self.chance.choice([0.8 * LEASE, 3 * LEASE, 3.0]))
        for wire in wires:
            wire.heal()


def birth(seed: int, folder: Path) -> Outcome:
    async def story(network: virtual.Network) -> Outcome:
        return await Story(network, folder).tell()

    slowest = [0.002, 0.05, 0.25][seed % 3]
    return virtual.run(story, seed=seed, slowest=slowest)
