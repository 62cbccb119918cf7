"""What happens to the nodes of chaos in virtual time.

Nodes are killed, leave, and come back, with their disks or without; links are cut both ways or one
way, slow, and break; disks are slow or full; what recovery says itself is lost, late and doubled;
members and permits change, members also in two places at once. A node takes all its links for
failed, and they are back before anybody else does. Members renew, propose and close epochs when
they should not, for nothing of that can be wrong: only unwise. Most faults are aimed at protocol
moments: a token under way, a promise, a ledger, an answer that prolongs a lease, a restart, a
change. Some are made of several:

``strand``   a minority is cut off for long, and its clients use what they have until it is lost
``restart``  a node whose clients go on to the end of their lease is killed, and back at once; then
             another begins an epoch
``squeeze``  a node that was just answered is cut off, and the other one begins another epoch
             at once, as if it had known: then all that keeps two from having one permit is the
             margin for clocks that run at different rates, and that of the first is slower
``swap``     one is cut off, another begins an epoch without it; then they change places, and
             the node that was with both restarts: it alone has to remember
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from errno import ENOSPC
from random import Random
from typing import TYPE_CHECKING, Any
from unittest import mock

from virtual_stages import Stages

from meshlock.algorithms.actor import Message
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import BEST_EFFORT, Inner, Promise, carrier, content
from meshlock.errors import Refused
from meshlock.live.machine import clock
from meshlock.live.pools.adapter import Adapter
from meshlock.live.pools.change_requests import ChangeRequest
from meshlock.live.pools.pool import LocalPool
from meshlock.live.pools.promises import Promised, Promises

if TYPE_CHECKING:
    from virtual_chaos import Chaos

LEASE = 3.0
AIMED_AT = {"TOKEN", "PROMISE", "LEDGER", "PRIVILEGE", "RETURN"}
"""Kinds of messages whose sending may bring a fault; and every message with a token."""
RANDOM = ["kill", "kill", "wipe", "leave", "away", "cut", "deafen", "reset", "part", "part"]
RANDOM += ["slow", "propose", "duel", "change", "change", "resize", "resize", "full", "swap"]
RANDOM += ["strand", "restart", "die", "die"]
AT_MOMENTS = ["kill", "kill", "wipe", "part", "part", "slow", "reset", "propose", "full", "renew"]


LONG = "all the time"
"""What is done in between, by tasks that end with the run."""
STAGED = 0.3
"""Share of faults that are stages."""


class Faults:
    def __init__(self, run: Chaos) -> None:
        self.run = run
        self.random = random = run.random
        # Members by name that lose their disks must not have changed: docs/how-it-works/recovery.md
        self.forgetting = not run.auto and random.random() < 0.4
        self.disks = random.choice([(0.0,), (0.0, 0.1), (0.0, 0.3, 1.0, 4.0)])  # what a write takes
        self.calm = random.choice([5.0, 10.0, 20.0])  # seconds between faults, about
        self.lost = random.choice([0.0, 0.0, 0.05, 0.2])  # share of what recovery says itself
        self.late = random.choice([0.0, 0.0, 0.05])
        self.hasty = random.choice([0.0, 0.5])
        self.blinks = Random(f"{run.seed}:blinks")
        self.blinking = self.blinks.choice([0.0, 0.0, 30.0])  # seconds between them, about; or none
        self.rivalry = Random(f"{run.seed}:rivals")
        self.rivals = self.rivalry.choice([0.0, 30.0])  # seconds between them, about; or none
        self.full: set[str] = set()  # disks
        self.over = False
        self.aimed_at = 0.0
        self.resizing = self.unsure = False
        self.paused = False  # for a stage
        self.stages = Stages(run, self)
        self.tasks: set[asyncio.Task[None]] = set()

    async def go_on(self, seconds: float) -> None:
        random, end = self.random, clock.seconds() + seconds
        names = list(self.run.ports)
        if self.blinking:
            self.begin(self.blink(end), LONG)
        if self.rivals and not self.run.auto and not self.forgetting:
            self.begin(self.change_twice(end), LONG)
        while clock.seconds() < end:
            await asyncio.sleep(random.expovariate(1 / self.calm))
            if random.random() < STAGED:
                await self.stages.play()
                continue
            for _ in range(random.choice([1, 1, 1, 2, 4])):
                heal = random.uniform(0.1, 4 * LEASE)
                self.soon(random.choice(RANDOM), random.choice(names), 0.0, heal)

    async def blink(self, end: float) -> None:
        """The token's holder, mostly, looks away from all others, and no node notices."""
        random, run = self.blinks, self.run
        while clock.seconds() < end:
            await asyncio.sleep(random.expovariate(1 / self.blinking))
            pools = [(name, run.pool(name)) for name in run.nodes]
            cores = [(name, pool.adapter.core) for name, pool in pools if pool is not None]
            holders = [name for name, core in cores if core is not None and core.tokens() > 0]
            name = random.choice(holders or list(run.nodes) or [""])
            if name in run.nodes and not self.over and not self.paused:
                run.judge.disturbed()
                run.note("blink", name)
                node = run.nodes[name]
                for peer in sorted(node._local.mesh.linked):
                    node._local.mesh.cut(
                        peer, random.uniform(0.05, 0.8) * node._local.settings.dead
                    )

    async def end(self) -> None:
        while self.tasks:
            await asyncio.gather(*self.tasks)
        self.over, self.disks, self.lost, self.late = True, (0.0,), 0.0, 0.0

    async def pause(self) -> None:
        """Until all that was done is undone."""
        self.paused = True
        long = {task for task in self.tasks if task.get_name() == LONG}
        while self.tasks - long:
            await asyncio.gather(*(self.tasks - long))
        for wire in self.run.wires.values():
            wire.heal()
            wire.delay = 0.0

    def stop(self) -> None:
        self.over = True
        for task in list(self.tasks):
            task.cancel()

    def soon(self, kind: str, name: str, delay: float, heal: float) -> None:
        async def later() -> None:
            await asyncio.sleep(delay)
            if not self.over and not self.paused:
                self.run.judge.disturbed()
                await self.strike(kind, name, heal)
                self.run.judge.disturbed()

        self.begin(later())

    def begin(self, work: Coroutine[Any, Any, None], name: str = "") -> None:
        task = asyncio.create_task(work, name=name)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # -- one fault -----------------------------------------------------------------------------

    async def strike(self, kind: str, name: str, heal: float) -> None:
        run, random = self.run, self.random
        pool = run.pool(name)
        if kind in ("kill", "wipe", "leave", "away"):
            if name in run.nodes:
                await self.takes_away(kind, name, 12 * LEASE if kind == "away" else heal)
            return
        run.note(kind, name)
        if kind == "die":
            run.dying.add(name)
        elif kind == "full":
            self.full.add(name)
            await asyncio.sleep(heal)
            self.full.discard(name)
        elif kind in ("propose", "duel", "renew") and pool is not None:
            self.acts(pool, "renew" if kind == "renew" else "propose")
            other = run.pool(random.choice(list(run.ports)))
            if kind == "duel" and other is not None:
                self.acts(other, "propose")
        elif kind in ("change", "resize") and not self.forgetting:
            members = [pool for one in run.chosen() if (pool := run.pool(one)) is not None]
            if members and kind == "resize":
                await self.resize(random.choice(members))
            elif members and not run.auto:
                await self.change(random.choice(members))
        elif kind == "part":
            await self.part({name, *random.sample(list(run.ports), random.randint(0, 1))}, heal)
        elif kind == "swap":
            await self.swap(name, heal)
        elif kind == "strand":
            await self.strand({name, random.choice(list(run.ports))})
        elif kind == "restart":
            await self.keeps({name})
            run.keeping.discard(name)
            if name in run.nodes:
                await run.kill(name)
                await run.start(name)
                for _ in range(2):
                    other = random.choice(list(run.ports))
                    self.soon("duel", other, random.uniform(0, LEASE / 2), 0.0)
        elif kind in ("cut", "deafen", "reset", "slow"):
            pairs = [pair for pair in sorted(run.wires) if name in pair]
            wire = run.wires[random.choice(pairs)]
            if kind == "slow":
                wire.delay = random.uniform(0.0, 0.4)
                await asyncio.sleep(heal)
                wire.delay = 0.0
            else:
                getattr(wire, kind)()
                await asyncio.sleep(heal)
                wire.heal()

    async def takes_away(self, kind: str, name: str, heal: float) -> None:
        run = self.run
        if kind == "leave":
            await run.leave(name)
        else:
            await run.kill(name)
        alive = [member for member in run.members if member in run.nodes]
        wiped = kind == "wipe" and self.forgetting and len(alive) * 2 > len(run.members)
        if wiped:
            run.note("wipe", name)
            shutil.rmtree(run.state / name, ignore_errors=True)
        await asyncio.sleep(heal)
        if wiped and self.random.random() < 0.5:  # it is back, and reaches nobody
            self.begin(self.part({name}, self.random.uniform(0.5, 2.5) * LEASE))
        await run.start(name)
        if self.random.random() < 0.3:  # right after its restart
            kinds = ["kill", "part", "propose", "full", "slow"]
            self.soon(self.random.choice(kinds), name, self.random.uniform(0.0, LEASE), heal)

    async def part(self, side: set[str], heal: float) -> None:
        run = self.run
        wires = [pair for pair in sorted(run.wires) if len(side.intersection(pair)) == 1]
        for pair in wires:
            run.wires[pair].cut()
        await asyncio.sleep(heal)
        for pair in wires:
            run.wires[pair].heal()

    def acts(self, pool: LocalPool, what: str) -> None:
        """Without any reason, against another node that does it as well."""
        if pool.adapter.members is not None:
            pool.adapter.before()
            getattr(pool.adapter.members.node, what)()
            pool.adapter.carry_out("timer", {})
            pool.mesh.flush()

    async def change_twice(self, end: float) -> None:
        """Two members each begin another change at the same moment; three stay."""
        random, run = self.rivalry, self.run
        while clock.seconds() < end:
            await asyncio.sleep(random.expovariate(1 / self.rivals))
            names = run.chosen()
            pools = [pool for one in names if (pool := run.pool(one)) is not None]
            others = [name for name in run.ports if name not in names]
            removed = random.sample(names, max(0, min(2, len(names) - 3)))
            wanted = [*others, *removed]
            if len(pools) < 2 or len(wanted) < 2 or self.over or self.paused:
                continue
            run.judge.disturbed()
            run.note("rivals", tuple(wanted))
            both = zip(random.sample(pools, 2), random.sample(wanted, 2), strict=True)
            await asyncio.gather(*[self.make_change(pool, other) for pool, other in both])
            run.judge.disturbed()

    async def change(self, pool: LocalPool) -> None:
        """Three stay; one that is away may be removed, and is not missed."""
        assert pool.adapter.members is not None
        names = pool.adapter.members.names()
        others = [name for name in self.run.ports if name not in names]
        other = self.random.choice([*others, *(names if len(names) > 3 else ())] or names)
        self.perhaps(["kill", "part", "slow", "full", "propose"], pool.me)
        await self.make_change(pool, other)

    async def make_change(self, pool: LocalPool, other: str) -> None:
        assert pool.adapter.members is not None
        names = pool.adapter.members.names()
        try:
            async with asyncio.timeout(6 * LEASE):
                member = ChangeRequest(**{"remove" if other in names else "add": other})
                await pool.change_requests.have(member)
            self.run.note("changed", pool.adapter.members.names())
        except (TimeoutError, Refused):
            pass

    async def resize(self, pool: LocalPool) -> None:
        """One at a time; of what did not come through in time nobody knows whether it will."""
        run, judge = self.run, self.run.judge
        most = len(run.names) or (3 if run.algorithm in ("jiang", "direct") else 1)
        others = [permits for permits in range(1, most + 1) if permits != pool.permits]
        if self.resizing or not others:
            return
        permits = self.random.choice(others)
        self.resizing = True
        judge.may_become(permits)
        self.perhaps(["kill", "part", "slow", "full", "propose"], pool.me)
        try:
            await pool.change_requests.resize(permits, timeout=6 * LEASE)
            if run.pool(pool.me) is not pool:
                raise TimeoutError  # nobody was told
            run.note("resized", permits)
            judge.has_become(permits, clock.seconds() + (10 * LEASE if self.unsure else 0.0))
            self.unsure = False
        except (TimeoutError, Refused):
            self.unsure = True
        finally:
            self.resizing = False

    async def keeps(self, names: set[str]) -> None:
        """Clients of these nodes keep what they have; until one has something."""
        run, end = self.run, clock.seconds() + LEASE
        run.keeping |= names
        while clock.seconds() < end and not any(one._source.me in names for one in run.judge.valid):
            await asyncio.sleep(LEASE / 100)

    async def strand(self, side: set[str]) -> None:
        """See above."""
        await self.keeps(side)
        await self.part(side, self.random.uniform(2, 5) * LEASE)
        self.run.keeping -= side

    async def swap(self, name: str, heal: float) -> None:
        """See above."""
        run = self.run
        names = [one for one in run.ports if one != name]
        other, *rest = self.random.sample(names, len(names))
        cut = asyncio.create_task(self.part({name}, self.random.uniform(0.3, LEASE)))
        await asyncio.sleep(LEASE / 20)
        pool = run.pool(other)
        if pool is not None:
            self.acts(pool, "propose")
        await cut
        for one in rest[:2]:
            self.soon("kill", one, 0.0, 0.1)
        await self.part({other}, max(heal, 2 * LEASE))

    async def squeeze(self, answered: str, other: Adapter, slowest: float) -> None:
        """See above."""
        await asyncio.sleep(slowest)
        self.run.note("squeeze", answered)
        cut = asyncio.create_task(self.part({answered}, 2 * LEASE))
        await asyncio.sleep(0)
        here = self.run.pool(other.me)
        if here is not None and here.adapter is other:
            self.acts(here, "propose")
            assert other.members is not None
            other.members.node.hasty = True  # type: ignore[attr-defined]
        await cut
        self.run.judge.disturbed()

    def perhaps(self, kinds: list[str], name: str) -> None:
        """One of these soon, to this node or another."""
        if self.random.random() < 0.5:
            where = self.random.choice([name, name, *self.run.ports])
            heal = self.random.uniform(0.1, 3 * LEASE)
            self.soon(self.random.choice(kinds), where, self.random.uniform(0.0, 0.3), heal)

    # -- protocol moments ----------------------------------------------------------------------

    def sends(self, pool: Adapter, message: Message) -> None:
        """Somebody sends something that matters."""
        now, random, run = clock.seconds(), self.random, self.run
        if self.over or self.paused or now < self.aimed_at:
            return
        token = isinstance(message, Inner) and message.state is not None
        ends = [pool.me, pool.names.get(message.receiver, pool.me)]
        faster = message.kind == "CONFIRM" and run.rates[ends[0]] > run.rates[ends[1]]
        holds = faster and any(one._source.me == ends[1] for one in run.judge.valid)
        if holds and random.random() < 0.1:
            self.aimed_at = now + random.expovariate(1 / self.calm)
            self.begin(self.squeeze(ends[1], pool, run.network.slowest))
        elif message.kind == "PROMISE" and random.random() < 0.1:
            for name in run.ports:  # a node that has not heard of it yet wants to live on
                self.soon("renew", name, random.uniform(0.0, 0.1), 0.0)
        if (token or content(message).kind in AIMED_AT) and random.random() < (
            0.02 if token else 0.1
        ):
            self.aimed_at = now + random.expovariate(1 / self.calm)
            delay = random.choice([0.0, random.uniform(0, 0.05), random.uniform(0, 1.0)])
            heal = random.choice([random.uniform(0, 0.5), random.uniform(0.1, 3 * LEASE)])
            self.soon(random.choice(AT_MOMENTS), random.choice(ends), delay, heal)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Have what pools send seen, lost and late; disks full; and epochs closed in haste."""
        send, write, receive = Adapter.send, Promises.write, Layer.receive_promise
        random, loop = self.random, self.run.network.loop
        self.run.network.disk = lambda: random.choice(self.disks)

        def sending(pool: Adapter, message: Message) -> None:
            chance = random.random()
            best_effort = carrier(message, True) == BEST_EFFORT
            if best_effort and chance < self.lost:
                return
            if best_effort and chance < self.lost + self.late:
                loop.call_later(random.uniform(0.0, 2 * LEASE), again, pool, message)
                if chance < self.lost + self.late / 2:
                    return
            send(pool, message)
            self.sends(pool, message)

        def again(pool: Adapter, message: Message) -> None:
            here = self.run.pool(pool.me)
            if here is not None and here.adapter is pool:
                send(pool, message)
                pool.mesh.flush()

        def writing(promises: Promises, promised: Promised) -> bool:
            full = (
                OSError(ENOSPC, "the disk is full") if promises.folder.name in self.full else None
            )
            with mock.patch.object(os, "fsync", side_effect=full):
                return write(promises, promised)

        def receiving(layer: Layer, promise: Promise) -> None:
            receive(layer, promise)
            if not self.over and (getattr(layer, "hasty", False) or random.random() < self.hasty):
                layer.close()

        patches = [(Adapter, "send", sending), (Promises, "write", writing)]
        with ExitStack() as stack:
            for place, name, instead in [*patches, (Layer, "receive_promise", receiving)]:
                stack.enter_context(mock.patch.object(place, name, instead))
            yield
