"""Faults for which the stage is set first, so that a mistake in the rule that they try must show;
and faults of disks.

A client in the right place has permits, keeps them, and has used its connection since it read so.
Its lease was renewed a moment ago, and all others ask for the rest without a pause. Only then does
the fault strike: whatever is granted too early is granted while that client still holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
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


async def keeper(chaos: Chaos, slots: list[ClientSlot], draw: float) -> ClientSlot | None:
    """The first of these clients that has permits, and keeps them, when its lease was just renewed.
    All others ask without a pause, until :func:`ease`."""
    cluster, lease = chaos.cluster, chaos.plan.lease
    served = cluster.served()
    ours = [one for one in slots if one.node in served and one in chaos.slots_at(one.node)]
    first = int(draw * len(ours))
    in_turn = [*ours[first:], *ours[:first]]

    def holds() -> list[ClientSlot]:
        return [one for one in in_turn if one.name in cluster.state.open]

    cluster.say(ours, KEEP)
    cluster.say(cluster.in_mood(AT_EASE), HURRY)
    await until(chaos, lambda: holds() != [], 2 * lease)
    found = holds()
    cluster.say([one for one in ours if one not in found[:1]], HURRY)
    if not found:
        return None
    since = now() + READ
    renewed = cluster.renewed_at
    await until(chaos, lambda: renewed.get(found[0].name, 0.0) > since, lease)
    return found[0] if found[0] in holds() else None


def ease(chaos: Chaos, kept: ClientSlot | None) -> None:
    cluster = chaos.cluster
    cluster.say(cluster.in_mood(HURRY), AT_EASE)
    if kept is not None:
        cluster.say([kept], AT_EASE)


async def until(chaos: Chaos, condition: Callable[[], bool], seconds: float) -> None:
    """What the record says, or this number of seconds."""

    def is_so() -> bool:
        chaos.cluster.look()
        return condition()

    await within(seconds, is_so, 0.01)


async def kill_holder(chaos: Chaos, event: PlannedFault) -> None:
    """Of the token: the grant of one of its clients outlives it."""
    cluster = chaos.cluster
    kept: ClientSlot | None = None
    name: str | None = None
    for _ in range(TRIES):
        name = await chaos.whom(event)
        if name is not None:
            kept = await keeper(chaos, chaos.slots_at(name), event.draw)
            if name in await cluster.holders():
                break
            ease(chaos, kept)
    if name is None or not chaos.may_miss(name):
        ease(chaos, kept)
        chaos.skip(event)
        return
    t = cluster.kill_agent(name)
    await asyncio.sleep(FOUND_OUT)
    kind = "agent killed" if await cluster.holders() else "holder killed"
    wiped = ", without its disk" if event.wiped else ""
    under = f" under {kept.name}" if kept is not None else ""
    chaos.note(kind, t, f"{name}{under} for {event.seconds:.1f} s{wiped}")
    await asyncio.sleep(event.seconds)
    ease(chaos, kept)
    await chaos.restart(name, event.wiped)


async def restart_under(chaos: Chaos, event: PlannedFault) -> None:
    """An agent whose client goes on, to the end of the lease that it knows. The others have no
    quorum without it, for some are paused: when it is back it must not vote yet. Or all of them are
    awake, and the holder of the token leaves then, which begins an epoch."""
    cluster = chaos.cluster
    holders = await within(chaos.plan.lease, cluster.holders)
    slots = [slot for slot in cluster.slots if slot.node not in holders]
    for node in {slot.node for slot in slots}:
        await cluster.agents[node].prepare()
    slot = await keeper(chaos, slots, event.draw)
    if slot is None or not chaos.may_miss(slot.node):
        ease(chaos, slot)
        chaos.skip(event)
        return
    holders = [one for one in await cluster.holders() if one != slot.node]
    others = [one for one in cluster.state.awake() if one not in (slot.node, *holders)]
    paused = others[: len(chaos.plan.nodes) // 2] if event.draw < RESTARTED_ALONE else []
    for name in paused:
        cluster.pause(cluster.agents[name])
    t = cluster.kill_agent(slot.node)
    chaos.note("agent restarted", t, f"{slot.node}, under {slot.name}")
    await chaos.restart(slot.node)
    for name in filter(chaos.may_miss, holders[:1] if not paused else []):
        t = await cluster.dismiss_agent(name)
        chaos.note("agent left", t, f"{name}, when {slot.node} was back")
        await chaos.restart(name)
    await asyncio.sleep(event.seconds if paused else 0.0)
    for name in paused:
        cluster.go_on(cluster.agents[name])
    ease(chaos, slot)


async def strand(chaos: Chaos, event: PlannedFault) -> None:
    """A minority is cut off, and its clients use what they have until it is lost."""
    cluster, side = chaos.cluster, event.sides[-1]
    links = across(chaos.plan.links, event.sides)
    await within(chaos.plan.within, lambda: cluster.stands_without((), links))  # some are late
    slots = [slot for slot in cluster.slots if slot.node in side]
    kept = await keeper(chaos, slots, event.draw)
    cluster.say(slots, KEEP)
    await chaos.cut(event, links, " ".join(side))
    cluster.say(slots, AT_EASE)
    ease(chaos, kept)


async def crowd(chaos: Chaos, event: PlannedFault) -> None:
    """All ask in a hurry, and one is killed that has permits and has asked since it read so."""
    cluster = chaos.cluster
    slot = await keeper(chaos, cluster.slots, event.draw)
    if slot is None:
        chaos.skip(event)
    else:
        held = cluster.state.open.get(slot.name, 0)
        t = cluster.kill_client(slot)
        chaos.note("crowd", t, f"for {event.seconds:.1f} s, without {slot.name}", held)
        await asyncio.sleep(event.seconds)
        cluster.start_client(slot)
    ease(chaos, None)


# -- disks ------------------------------------------------------------------------------------


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
    left = [name for name in cluster.state.awake() if name not in event.nodes]
    if chaos.changing or not left or not {*event.nodes} <= {*cluster.state.awake()}:
        chaos.skip(event)
        return
    chaos.changing = True
    cluster.write(lines.ChangingLine(t=now()))
    chaos.note("most disks lost", now(), " ".join(event.nodes))
    for name in event.nodes:
        cluster.kill_agent(name)
    await asyncio.sleep(event.seconds)
    for name in event.nodes:
        await chaos.restart(name, wiped=True)
        await until_so(chaos, partial(knows_pool, chaos, name))
    await until_so(chaos, lambda: cluster.agents[left[0]].change("reset", chaos.plan.lease))
    chaos.note("reset", now(), f"by {left[0]}")
    for agent in cluster.agents.values():
        agent.forgiven.update(GIVES_WAY)
    if not await cluster.grow():
        chaos.fail(left[0], "reset the pool, and not all nodes are members of it")
    chaos.changing = False
    cluster.write(lines.SettledLine(t=now()))


async def knows_pool(chaos: Chaos, name: str) -> bool:
    return bool((await chaos.cluster.agents[name].status() or {}).get("members"))


async def until_so(chaos: Chaos, condition: Callable[[], Awaitable[bool]]) -> None:
    """The judge says what it means if that does not come."""
    await within(2 * chaos.plan.within, condition, chaos.plan.lease / 30)
