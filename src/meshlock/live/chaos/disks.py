"""Faults of disks: one agent forgets and reaches nobody, or most of them forget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from meshlock.live.chaos.client import AT_EASE, KEEP
from meshlock.live.chaos.plan import PlannedFault
from meshlock.live.chaos.record import ChangingLine, SettledLine, now

GIVES_WAY = ("conflict", "pool stopped")
"""What agents log of the former pool when they meet the one that was reset."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from meshlock.live.chaos.run import Chaos


async def give_birth(chaos: Chaos, event: PlannedFault) -> None:
    """An agent comes back without its disk, and reaches nobody: it must not make the pool.
    Its clients would keep what it granted them."""
    cluster = chaos.cluster
    name = await chaos.whom(event)
    if name is None:
        chaos.skip(event)
        return
    t = cluster.kill_agent(name)
    chaos.note("disk lost", t, f"{name}, which reaches nobody for {event.seconds:.1f} s")
    links = [link for link in chaos.plan.links if name in link]
    cluster.cut(links, silent=False)
    slots = chaos.slots_at(name)
    cluster.say(slots, KEEP)
    await chaos.restart(name, wiped=True)
    await asyncio.sleep(event.seconds)
    cluster.heal(links)
    cluster.say(slots, AT_EASE)


async def lose_most_disks(chaos: Chaos, event: PlannedFault) -> None:
    """Most agents come back without their disks, one by one, so that each learns of the pool
    before they are enough to make another. Then an operator resets it where it is known. The
    clients of those agents work on meanwhile."""
    cluster = chaos.cluster
    left = [name for name in cluster.awake() if name not in event.nodes]
    if chaos.changing or not left or not {*event.nodes} <= {*cluster.awake()}:
        chaos.skip(event)
        return
    chaos.changing = True
    cluster.record.write(ChangingLine(t=now()))
    chaos.note("most disks lost", now(), " ".join(event.nodes))
    for name in event.nodes:
        cluster.kill_agent(name)
    await asyncio.sleep(event.seconds)
    for name in event.nodes:
        await chaos.restart(name, wiped=True)
        await until(chaos, partial(knows_pool, chaos, name))
    await until(chaos, lambda: cluster.agents[left[0]].change("reset", chaos.plan.lease))
    chaos.note("reset", now(), f"by {left[0]}")
    for agent in cluster.agents.values():
        agent.forgiven.update(GIVES_WAY)
    await cluster.grow()
    chaos.changing = False
    cluster.record.write(SettledLine(t=now()))


async def knows_pool(chaos: Chaos, name: str) -> bool:
    return bool((await chaos.cluster.agents[name].status() or {}).get("members"))


async def until(chaos: Chaos, condition: Callable[[], Awaitable[bool]]) -> None:
    """The judge says what it means if that does not come."""
    end = now() + 2 * chaos.plan.within
    while not await condition() and now() < end:
        await asyncio.sleep(chaos.plan.lease / 30)
