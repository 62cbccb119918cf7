"""Stages of chaos in virtual time: faults that need a healthy pool to show what they are for.

Among faults that strike at random most of these come to nothing: the lease that a minority renews
for ever ends because its node is killed, and nobody asks for the permits of a client that works on.
So each stage waits until all that was done is undone, and nothing else is done meanwhile.

``strand``   two members with a client that keeps its permits are cut off for long; of five, the
             others are a quorum
``restart``  a node under a client that keeps what it has, to the end of its lease, is killed and
             back at once; then the holder of the token begins another epoch
``crowd``    all ask without a pause, with two priorities, and nothing is done: order is judged
``dark``     no link works, for longer than a node without a quorum may call itself ready
``birth``    a member comes back without its disk, and reaches nobody for a while
``reset``    most members come back without their disks, one by one, and the pool is reset where it
             is known
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from meshlock.errors import Refused
from meshlock.live.machine import clock
from meshlock.live.pools.grants import Pool

if TYPE_CHECKING:
    from virtual_chaos import Chaos
    from virtual_faults import Faults

LEASE = 3.0
CROWD = 10 * LEASE
DARK = 12 * LEASE
SOON = 12 * LEASE
"""What a stage waits for comes as soon as that, or the stage is over."""


class Stages:
    def __init__(self, run: Chaos, faults: Faults) -> None:
        self.run = run
        self.faults = faults
        self.random = Random(f"{run.seed}:stages")
        self.kinds = ["strand", "restart", "crowd", "restart", "strand"]
        self.kinds += self.random.sample(["dark", "birth", "reset"], 2)
        self.random.shuffle(self.kinds)
        self.next = 0

    async def play(self) -> None:
        """The next one."""
        run, kind = self.run, self.kinds[self.next % len(self.kinds)]
        self.next += 1
        await self.faults.pause()
        try:
            await asyncio.sleep(2 * LEASE)
            run.note("stage", kind)
            run.judge.disturbed()
            await getattr(self, kind)()
            run.judge.disturbed()
        finally:
            run.keeping, run.hurry, run.resetting = set(), False, False
            self.faults.paused = False

    async def until(self, condition: Callable[[], bool]) -> bool:
        end = clock.seconds() + SOON
        while not condition() and clock.seconds() < end:
            await asyncio.sleep(LEASE / 100)
        return condition()

    def holders(self) -> list[str]:
        """Of the token."""
        pools = [(name, self.run.pool(name)) for name in self.run.nodes]
        return [name for name, pool in pools if pool is not None and pool.adapter.core.tokens() > 0]

    async def keeper(self, names: set[str]) -> str:
        """One of these nodes, where a client has permits that it will keep. The others go on."""
        run = self.run
        run.keeping = set(names)
        users: list[str] = []

        def found() -> bool:
            users[:] = sorted({one._source.me for one in run.judge.valid} & names)
            return users != []

        await self.until(found)
        name = self.random.choice(users) if users else ""
        run.keeping = {name}
        return name

    async def strand(self) -> None:
        run, random = self.run, self.random
        await self.add_members()
        members = run.chosen()
        name = await self.keeper(set(members))
        others = [one for one in members if one != name]
        if name:
            run.hurry = True
            side = {name, random.choice(others)} if len(members) > 3 else {name}
            await self.faults.part(side, random.uniform(3, 5) * LEASE)

    async def add_members(self) -> None:
        """All, where that is for us to say; those that may forget do not change."""
        for other in list(self.run.ports):
            members = self.run.chosen()
            pools = [pool for one in members if (pool := self.run.pool(one)) is not None]
            may = not self.run.auto and not self.faults.forgetting
            if pools and may and other not in members:
                await self.faults.make_change(pools[0], other)

    async def restart(self) -> None:
        run = self.run
        without_token = set(run.nodes) - set(self.holders())
        name = await self.keeper(without_token)
        if not name:
            return
        await run.kill(name)
        await run.start(name)
        run.hurry = True
        await self.until(lambda: bool(run.nodes[name]._local.mesh.linked))
        for one in self.holders():
            pool = run.pool(one)
            if pool is not None:
                self.faults.acts(pool, "propose")
        await asyncio.sleep(2 * LEASE)

    async def crowd(self) -> None:
        self.run.hurry = True
        await asyncio.sleep(CROWD)

    async def dark(self) -> None:
        wires = list(self.run.wires.values())
        for wire in wires:
            wire.cut()
        await asyncio.sleep(DARK)
        for wire in wires:
            wire.heal()
        await asyncio.sleep(4 * LEASE)

    async def birth(self) -> None:
        run = self.run
        if not self.may_forget():
            return
        name = self.random.choice(self.may_be_wiped())
        await self.forget([name])
        alone = asyncio.create_task(self.faults.part({name}, self.random.uniform(0.5, 2.5) * LEASE))
        await run.start(name)
        await alone
        await self.until(lambda: self.has_vote(name))
        if not self.has_vote(name):
            run.judge.blame("members", f"{name}, which lost its disk, has no vote")

    def may_forget(self) -> bool:
        """Members by name that forget must not have changed."""
        members = self.run.chosen()
        return self.run.auto and len(members) > 2 and all(map(self.has_vote, members))

    def may_be_wiped(self) -> list[str]:
        """Members, but for one that names nobody: on loopback that makes a pool at once."""
        return [one for one in self.run.chosen() if self.run.mutual or one != min(self.run.ports)]

    def has_vote(self, name: str) -> bool:
        pool = self.run.pool(name)
        if pool is None or pool.adapter.members is None:
            return False
        votes: bool = pool.adapter.members.node.member.votes()
        return votes

    async def forget(self, names: list[str]) -> None:
        for name in names:
            await self.run.kill(name)
            self.run.note("wipe", name)
            shutil.rmtree(self.run.state / name, ignore_errors=True)

    async def reset(self) -> None:
        run, members = self.run, self.run.chosen()
        if not self.may_forget() or run.judge.unsettled():
            return
        lost = self.random.sample(self.may_be_wiped(), len(members) // 2 + 1)
        left = next(one for one in members if one not in lost)
        run.resetting = True
        await self.forget(lost)
        for name in lost:
            await run.start(name)
            await self.until(lambda name=name: run.pool(name) is not None)
        end = clock.seconds() + SOON
        while clock.seconds() < end:
            try:
                await Pool(run.nodes[left]._local.pools["docks"]).reset()
                break
            except Refused:
                await asyncio.sleep(LEASE / 10)
        else:
            run.judge.blame("served", f"{left} cannot reset the pool, whose members forgot")
        if not await self.until(lambda: len(run.chosen()) > 2):
            run.judge.blame("members", f"{run.chosen()} are members after a reset")
        await asyncio.sleep(2 * LEASE)
