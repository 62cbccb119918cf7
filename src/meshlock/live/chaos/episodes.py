"""Faults for which the stage is set first, so that a mistake in the rule that they try must show;
and faults of disks.

A client in the right place has permits, keeps them, and has used its connection since it read so.
Its lease was renewed a moment ago, and all others ask for the rest without a pause. Only then does
the fault strike: whatever is granted too early is granted while that client still holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from meshlock.live.chaos import record as lines
from meshlock.live.chaos.client import AT_EASE, HURRY, KEEP
from meshlock.live.chaos.majority import across
from meshlock.live.chaos.plan import PlannedFault
from meshlock.live.chaos.processes import ClientSlot
from meshlock.live.chaos.record import now
from meshlock.live.machine.loop import within

FOUND_OUT = 0.03
"""Seconds after the death of a supposed holder: then the token is not on its way any more."""

RESTARTED_ALONE = 0.7
"""Share of restarts under a client after which there is no quorum without the one that is back."""

READ = 0.1
"""Seconds in which a client that was granted permits has asked once more."""

GIVES_WAY = ("conflict", "pool stopped")
"""What agents log of the former pool when they meet the one that was reset."""

TRIES = 3
"""So often a client is looked for where the token is, which may move meanwhile."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from meshlock.live.chaos.run import Chaos


@asynccontextmanager
async def keeper(
    chaos: Chaos, slots: list[ClientSlot], draw: float
) -> AsyncIterator[ClientSlot | None]:
    """The first of these clients that has permits, and keeps them, when its lease was just renewed.
    All others ask without a pause until this is left."""
    cluster, lease = chaos.cluster, chaos.plan.lease
    served = cluster.served()
    ours = [one for one in slots if one.node in served and one in chaos.slots_at(one.node)]
    first = int(draw * len(ours))
    in_turn = [*ours[first:], *ours[:first]]

    def holds() -> list[ClientSlot]:
        cluster.read_on()
        return [one for one in in_turn if one.name in cluster.state.open]

    cluster.say(ours, KEEP)
    cluster.say(cluster.in_mood(AT_EASE), HURRY)
    kept = (await within(2 * lease, holds, 0.01))[:1]
    cluster.say([one for one in ours if one not in kept], HURRY)
    since = now() + READ

    def renewed() -> bool:
        holds()
        return cluster.renewed_at.get(kept[0].name, 0.0) > since

    if kept:
        await within(lease, renewed, 0.01)
    try:
        yield kept[0] if kept and kept[0] in holds() else None
    finally:
        cluster.say([*cluster.in_mood(HURRY), *kept], AT_EASE)


async def kill_holder(chaos: Chaos, event: PlannedFault) -> None:
    """Of the token: the grant of one of its clients outlives it."""
    cluster = chaos.cluster
    for tries in reversed(range(TRIES)):
        name = await chaos.whom(event)
        if name is None:
            continue
        async with keeper(chaos, chaos.slots_at(name), event.draw) as kept:
            here = name in await cluster.holders()
            if not chaos.may_miss(name) or not (here or tries == 0):
                continue
            t = cluster.kill_agent(name)
            await asyncio.sleep(FOUND_OUT)
            under = f"{name} under {kept.name}" if kept is not None else name
            if await cluster.holders():
                chaos.note("agent killed", t, f"{under}, which had passed the token on")
            else:
                chaos.strike(event, t, under)
            await asyncio.sleep(event.seconds)
        await chaos.restart(name, event.wiped)
        return
    chaos.skip(event)


async def restart_under(chaos: Chaos, event: PlannedFault) -> None:
    """An agent whose client goes on, to the end of the lease that it knows. The others have no
    quorum without it, for some are paused: when it is back it must not vote yet. Or all of them are
    awake, and the holder of the token leaves then, which begins an epoch."""
    cluster = chaos.cluster
    holders = await within(chaos.plan.lease, cluster.holders)
    slots = [slot for slot in cluster.slots if slot.node not in holders]
    for node in {slot.node for slot in slots}:
        await cluster.agents[node].prepare()
    async with keeper(chaos, slots, event.draw) as slot:
        if slot is None or not chaos.may_miss(slot.node):
            chaos.skip(event)
            return
        holders = [one for one in await cluster.holders() if one != slot.node]
        others = [one for one in cluster.state.awake() if one not in (slot.node, *holders)]
        paused = others[: len(chaos.plan.nodes) // 2] if event.draw < RESTARTED_ALONE else []
        for name in paused:
            cluster.pause(cluster.agents[name])
        t = cluster.kill_agent(slot.node)
        chaos.strike(event, t, f"{slot.node}, under {slot.name},")
        await chaos.restart(slot.node)
        for name in filter(chaos.may_miss, holders[:1] if not paused else []):
            t = await cluster.dismiss_agent(name)
            chaos.note("agent left", t, f"{name}, when {slot.node} was back")
            await chaos.restart(name)
        await asyncio.sleep(event.seconds if paused else 0.0)
        for name in paused:
            cluster.go_on(cluster.agents[name])


async def strand(chaos: Chaos, event: PlannedFault) -> None:
    """A minority is cut off, and its clients use what they have until it is lost."""
    cluster, side = chaos.cluster, event.sides[-1]
    links = across(chaos.plan.links, event.sides)
    await within(chaos.plan.within, lambda: cluster.stands_without((), links))  # some are late
    slots = [slot for slot in cluster.slots if slot.node in side]
    async with keeper(chaos, slots, event.draw):
        cluster.say(slots, KEEP)
        await chaos.cut(event, links, " ".join(side))
        cluster.say(slots, AT_EASE)


async def crowd(chaos: Chaos, event: PlannedFault) -> None:
    """All ask in a hurry, and one is killed that has permits and has asked since it read so."""
    cluster = chaos.cluster
    async with keeper(chaos, cluster.slots, event.draw) as slot:
        if slot is None:
            chaos.skip(event)
            return
        held = cluster.state.open.get(slot.name, 0)
        chaos.strike(event, cluster.kill_client(slot), f"without {slot.name}", held)
        await asyncio.sleep(event.seconds)
        cluster.start_client(slot)


# -- disks ------------------------------------------------------------------------------------


async def give_birth(chaos: Chaos, event: PlannedFault) -> None:
    """An agent comes back without its disk, and reaches no other: it must not make the pool.
    Its clients would keep what it granted them."""
    cluster = chaos.cluster
    name = await chaos.whom(event)
    if name is None:
        chaos.skip(event)
        return
    t = cluster.kill_agent(name)
    chaos.strike(event, t, f"{name}, which reaches no other,")
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
    cluster, often = chaos.cluster, chaos.plan.lease / 30
    left = [name for name in cluster.state.awake() if name not in event.nodes]
    if chaos.changing or not left or not {*event.nodes} <= {*cluster.state.awake()}:
        chaos.skip(event)
        return
    chaos.changing = True
    cluster.write(lines.ChangingLine(t=now()))
    chaos.strike(event, now(), " ".join(event.nodes))
    for name in event.nodes:
        cluster.kill_agent(name)
    await asyncio.sleep(event.seconds)
    for name in event.nodes:
        await chaos.restart(name, wiped=True)
        await within(2 * chaos.plan.within, partial(knows_pool, chaos, name), often)
    reset = partial(cluster.agents[left[0]].change, "reset", chaos.plan.lease)
    await within(2 * chaos.plan.within, reset, often)  # the judge says what it means if it is not
    chaos.note("reset", now(), f"by {left[0]}")
    for agent in cluster.agents.values():
        agent.forgiven.update(GIVES_WAY)
    if not await cluster.grow():
        chaos.fail(left[0], "reset the pool, and not all nodes are members of it")
    chaos.changing = False
    cluster.write(lines.SettledLine(t=now()))


async def knows_pool(chaos: Chaos, name: str) -> bool:
    return bool((await chaos.cluster.agents[name].status() or {}).get("members"))
