"""Chaos in virtual time: real nodes, meshes, sessions and pools; one seed, one run.

Nodes are killed and come back, with their disks or without; links are cut both ways or one way,
slow, and break; disks are slow or full; members change; members propose epochs without a reason;
clocks run fast and slow. Half of the faults are aimed: at a node that has just promised, sends or
receives a token, or writes a ledger. Clients cling to their permits to the very end.

The judge sees what clients see, and nothing else. A grant is valid until its client releases it,
is told that it is lost, or reaches the last deadline that it was told of; a client of a node that
was killed goes on until then.

========  ======================================================================================
permits   valid grants never add up to more than there are
slots     where permits have names, no two valid grants have one in common
fences    none comes twice; and a grant asked for while another was held has a higher one
told      a client whose deadline passes has been told that its grant is lost, and not before
served    soon after the last fault everybody is given all permits, one after the other
errors    nothing failed inside a node
========  ======================================================================================
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from unittest import mock

import virtual
from virtual import HOST, Network, Wire

from meshlock import Node
from meshlock.algorithms.interface import Message
from meshlock.errors import Refused
from meshlock.live.links.mesh import DRIFT
from meshlock.live.machine import clock
from meshlock.live.pools.grants import Grant
from meshlock.live.pools.pool import Pool
from meshlock.live.pools.promises import Promised, Promises

NAMES = ["a", "b", "c", "d", "e"]
INSIDE = ["jiang", "direct", "naimi-trehel", "raymond"]
"""The last two share one permit."""
LEASE = 3.0
PATIENCE = 30.0
"""Of clients, in virtual seconds."""
SERVED_WITHIN = 12 * LEASE
"""After the last fault, for each node in turn."""
MOMENT = 1e-3
AIMED_AT = {"TOKEN", "PROMISE", "LEDGER", "PRIVILEGE", "RETURN"}
"""Kinds of messages whose sending may bring a fault; and every message with a token."""


class Wrong(Exception):
    """What the judge has to say."""


class Chaos:
    def __init__(self, network: Network, state: Path, seed: int) -> None:
        self.network = network
        self.state = state
        self.random = random = Random(seed)
        self.permits = random.choice([1, 2, 2, 3])
        self.algorithm = random.choice(INSIDE if self.permits == 1 else INSIDE[:2])
        self.named = random.random() < 0.3  # have permits names?
        self.auto = random.random() < 0.4  # do members choose themselves?
        self.members = NAMES[: random.choice([3, 3, 4, 5, 5])]
        self.rates = {name: random.choice([1 - DRIFT, 1.0, 1 + DRIFT]) for name in NAMES}
        self.disks = random.choice([(0.0,), (0.0, 0.1), (0.0, 0.3, 1.0, 4.0)])  # what a write takes
        self.calm = random.choice([5.0, 10.0, 20.0])  # seconds between faults, about
        self.nodes: dict[str, Node] = {}
        self.clients: dict[str, list[asyncio.Task[None]]] = {}
        self.wires: dict[tuple[str, str], Wire] = {}
        self.valid: dict[Grant, float] = {}  # until when, as far as its client was told
        # permits of clients whose node was killed: until when, how many, which
        self.orphans: list[tuple[float, int, tuple[str, ...]]] = []
        self.fences: set[int] = set()
        self.full: set[str] = set()  # disks
        self.log: list[tuple[float, str, object]] = []
        self.ports = {name: 5001 + place for place, name in enumerate(NAMES)}
        self.wrong: asyncio.Future[None] = network.loop.create_future()
        self.over = False
        self.aimed_at = 0.0
        self.tasks: set[asyncio.Task[None]] = set()

    def note(self, what: str, of: object) -> None:
        self.log.append((clock.seconds(), what, of))

    def blame(self, rule: str, sentence: str) -> None:
        if not self.wrong.done():
            self.wrong.set_exception(Wrong(f"{rule}: at {clock.seconds():.3f} {sentence}"))

    # -- nodes ---------------------------------------------------------------------------------

    async def start(self, name: str) -> None:
        self.note("start", name)
        peers = []
        for other in NAMES[: NAMES.index(name)]:
            if (name, other) not in self.wires:
                self.wires[name, other] = self.network.wire(f"{HOST}:{self.ports[other]}")
            peers.append(self.wires[name, other].address)
        node = self.nodes[name] = Node(
            name,
            listen=f"{HOST}:{self.ports[name]}",
            peers=peers,
            state=self.state / name,
            clock_rate=self.rates[name],
        )
        await node.start()
        node.pool(
            "docks",
            [f"dock-{place}" for place in range(self.permits)] if self.named else self.permits,
            algorithm=self.algorithm,
            members="auto" if self.auto else self.members,
            lease=LEASE,
            promote_after=LEASE,
            replace_after=3 * LEASE,
        )
        self.clients[name] = [asyncio.create_task(self.work(node)) for _ in range(2)]

    async def kill(self, name: str) -> None:
        """Its clients go on, each until the last deadline it knows."""
        self.note("kill", name)
        node = self.nodes.pop(name)
        self.network.kill(node.mesh)
        for task in self.clients.pop(name):
            task.cancel()
        for grant in [grant for grant in self.valid if grant.pool.me == name]:
            self.orphans.append((self.seen(grant), grant.want, grant.slots))
            del self.valid[grant]
        self.judge_errors(node)
        await node.vanish()

    def judge_errors(self, node: Node) -> None:
        counts = node.mesh.mishaps.counts
        if counts:
            self.blame("errors", f"{node.name} failed at {counts}")

    # -- clients -------------------------------------------------------------------------------

    async def work(self, node: Node) -> None:
        pool, random = node.pools["docks"], self.random
        while True:
            await asyncio.sleep(random.expovariate(1.0))
            highest = max(self.fences, default=0)
            try:
                want, patience = random.randint(1, self.permits), random.uniform(0.1, PATIENCE)
                grant = await pool.acquire(want, priority=random.randint(0, 9), timeout=patience)
            except TimeoutError:
                self.note("timeout", node.name)
                continue
            self.entered(node, grant, highest)
            clings = random.random() < 0.1 and not self.over
            await self.use(grant, 4 * LEASE if clings else random.expovariate(5.0))
            self.valid.pop(grant, None)

    async def use(self, grant: Grant, seconds: float) -> None:
        """Until we have had enough, or it is lost; it must not outlive its deadline."""
        end = clock.seconds() + seconds
        while not grant.lost:
            now, until = clock.seconds(), self.seen(grant)
            if now >= end:
                grant.release()
                return
            if now > until + MOMENT:
                self.blame("told", f"{grant} of {grant.pool.me} outlived its deadline {until:.3f}")
                return
            try:
                async with asyncio.timeout(max(MOMENT, min(until + 2 * MOMENT, end) - now)):
                    await grant.wait_lost()
            except TimeoutError:
                pass
        self.note("lost", grant.fence)
        if clock.seconds() < self.valid.get(grant, 0.0) - 10 * MOMENT:
            self.blame("told", f"{grant} of {grant.pool.me} ended before its deadline")

    def seen(self, grant: Grant) -> float:
        """The latest deadline its client was told of."""
        if grant in self.valid:
            self.valid[grant] = max(self.valid[grant], grant.deadline or 0.0)
            return self.valid[grant]
        return 0.0

    def entered(self, node: Node, grant: Grant, highest: int) -> None:
        now, fence = clock.seconds(), grant.fence
        assert fence is not None
        self.note("enter", (node.name, grant.want, fence))
        if fence in self.fences:
            self.blame("fences", f"{fence} comes again")
        if fence < highest:
            self.blame("fences", f"{fence} is lower than {highest}, held before it was asked for")
        self.fences.add(fence)
        self.valid[grant] = 0.0
        self.orphans = [orphan for orphan in self.orphans if orphan[0] > now]
        valid = [(one.want, one.slots) for one in list(self.valid) if self.seen(one) > now]
        valid += [orphan[1:] for orphan in self.orphans]
        held = sum(want for want, _ in valid)
        if held > self.permits:
            self.blame("permits", f"{held} of {self.permits} are held")
        slots = [slot for _, row in valid for slot in row]
        if len(set(slots)) < len(slots) or len(slots) != (held if self.named else 0):
            self.blame("slots", f"{slots} are held, {held} permits")

    # -- faults --------------------------------------------------------------------------------

    async def fault(self, kind: str, name: str, heal: float) -> None:
        random, loop = self.random, self.network.loop
        if self.over:
            return
        if kind in ("kill", "wipe"):
            if name in self.nodes:
                await self.kill(name)
                alive = [member for member in self.members if member in self.nodes]
                if kind == "wipe" and len(alive) * 2 > len(self.members) and not self.auto:
                    self.note("wipe", name)
                    shutil.rmtree(self.state / name, ignore_errors=True)
                await asyncio.sleep(heal)
                await self.start(name)
            return
        self.note(kind, name)
        if kind == "full":
            self.full.add(name)
            loop.call_later(heal, self.full.discard, name)
        elif kind == "propose" and name in self.nodes:
            self.propose(self.nodes[name].pools["docks"])
        elif kind == "change" and name in self.nodes and not self.auto:
            await self.change(self.nodes[name].pools["docks"], random.choice(NAMES))
        elif kind == "part":
            side = {name, *random.sample(NAMES, random.randint(0, 1))}
            wires = [pair for pair in sorted(self.wires) if len(side.intersection(pair)) == 1]
            for pair in wires:
                self.wires[pair].cut()
            await asyncio.sleep(heal)
            for pair in wires:
                self.wires[pair].heal()
        elif kind in ("cut", "deafen", "reset", "slow"):
            wire = self.wires[random.choice([pair for pair in sorted(self.wires) if name in pair])]
            if kind == "slow":
                wire.delay = random.uniform(0.0, 0.4)
                loop.call_later(heal, setattr, wire, "delay", 0.0)
            else:
                getattr(wire, kind)()
                loop.call_later(heal, wire.heal)

    def propose(self, pool: Pool) -> None:
        """Without any reason, against whoever does it as well."""
        if pool.members is not None:
            pool.before()
            pool.members.node.propose()
            pool.carry_out("timer", {})
            pool.mesh.flush()

    async def change(self, pool: Pool, other: str) -> None:
        assert pool.members is not None
        names = pool.members.names()
        if other in names and len(names) <= 3:
            return
        try:
            async with asyncio.timeout(2 * LEASE):
                await pool.members.change(other, other not in names)
            self.note("changed", pool.members.names())
        except (TimeoutError, Refused):
            pass

    def soon(self, kind: str, name: str, delay: float, heal: float) -> None:
        async def later() -> None:
            await asyncio.sleep(delay)
            await self.fault(kind, name, heal)

        task = asyncio.create_task(later())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def sends(self, pool: Pool, message: Message) -> None:
        """A protocol moment: somebody sends something that matters."""
        now, random = clock.seconds(), self.random
        token = message.seal is not None and message.seal.state is not None
        if self.over or now < self.aimed_at or not (token or message.kind in AIMED_AT):
            return
        if random.random() < (0.02 if token else 0.1):
            self.aimed_at = now + random.expovariate(1 / self.calm)
            ends = [pool.me, pool.names.get(message.receiver, pool.me)]
            kinds = ["kill", "kill", "wipe", "part", "part", "slow", "reset", "propose", "full"]
            delay = random.choice([0.0, random.uniform(0, 0.05), random.uniform(0, 1.0)])
            heal = random.choice([random.uniform(0, 0.5), random.uniform(0.1, 3 * LEASE)])
            self.soon(random.choice(kinds), random.choice(ends), delay, heal)

    async def go_on(self, seconds: float) -> None:
        random, end = self.random, clock.seconds() + seconds
        kinds = ["kill", "wipe", "cut", "deafen", "reset", "part", "part", "slow", "propose"]
        while clock.seconds() < end:
            await asyncio.sleep(random.expovariate(1 / self.calm))
            kind = random.choice([*kinds, "change", "full"])
            self.soon(kind, random.choice(NAMES), 0.0, random.uniform(0.1, 4 * LEASE))

    async def end_well(self) -> None:
        """All are there, nothing is cut: everybody is served."""
        while self.tasks:
            await asyncio.gather(*self.tasks)
        self.over, self.disks = True, (0.0,)
        for _ in range(2):
            for wire in self.wires.values():
                wire.heal()
                wire.delay = 0.0
            await asyncio.sleep(4 * LEASE)
        for node in self.nodes.values():
            try:
                pool = node.pools["docks"]
                async with pool.acquire(self.permits, priority=99, timeout=SERVED_WITHIN):
                    self.note("served", node.name)
            except TimeoutError:
                self.blame("served", f"{node.name} was not: {pool.describe()['why']}")
            self.judge_errors(node)

    # -- the run -------------------------------------------------------------------------------

    async def run(self, seconds: float) -> None:
        for name in NAMES:
            await self.start(name)
        story = asyncio.ensure_future(self.story(seconds))
        try:
            await asyncio.wait([story, self.wrong], return_when=asyncio.FIRST_COMPLETED)
            if self.wrong.done():
                self.wrong.result()
            await story
        finally:
            self.over = True
            story.cancel()
            for task in list(self.tasks):
                task.cancel()
            for name in list(self.nodes):
                await self.kill(name)
            if self.wrong.done():
                self.wrong.exception()

    async def story(self, seconds: float) -> None:
        await self.go_on(seconds)
        await self.end_well()
        for tasks in self.clients.values():
            for task in tasks:
                if task.done():
                    task.result()


@contextmanager
def watched(run: Chaos) -> Iterator[None]:
    """Faults are aimed at what pools send; disks are full when they should be."""
    carry, write = Pool.carry, Promises.write

    def sending(pool: Pool, message: Message) -> None:
        carry(pool, message)
        run.sends(pool, message)

    def writing(promises: Promises, promised: Promised) -> bool:
        return promises.folder.name not in run.full and write(promises, promised)

    with mock.patch.object(Pool, "carry", sending), mock.patch.object(Promises, "write", writing):
        yield


def chaos(state: Path, seed: int, seconds: float) -> list[tuple[float, str, object]]:
    """What happened; raises Wrong if it should not have."""

    async def story(network: Network) -> list[tuple[float, str, object]]:
        run = Chaos(network, state, seed)
        network.disk = lambda: run.random.choice(run.disks)
        with watched(run):
            await run.run(seconds)
        return run.log

    return virtual.run(story, seed, slowest=0.05)
