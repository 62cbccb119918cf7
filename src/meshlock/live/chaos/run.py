"""A run: the plan, carried out; then quiet, in which all who wait must be served."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from time import monotonic
from typing import Any

from meshlock.errors import Refused
from meshlock.live.chaos import episodes
from meshlock.live.chaos import record as lines
from meshlock.live.chaos.cluster import Cluster
from meshlock.live.chaos.majority import across
from meshlock.live.chaos.plan import CROWD, Plan, PlannedFault
from meshlock.live.chaos.processes import Agent, ClientSlot, last_line
from meshlock.live.chaos.record import now
from meshlock.live.machine.loop import within

WHERE_PERMITS_ARE = 0.7
"""Share of faults of agents and nodes that strike where a client holds permits just then."""


async def repeat(action: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await action()


class Chaos:
    def __init__(self, plan: Plan, folder: Path, sockets: Path) -> None:
        self.plan = plan
        self.cluster = Cluster(plan, folder, sockets)
        self.began = monotonic()
        self.phase = "starting"
        self.news: list[str] = []
        self.faults: dict[str, int] = {}
        self.skipped = 0
        self.changing = False  # members

    async def run(self) -> None:
        cluster = self.cluster
        watching: list[asyncio.Task[None]] = []
        try:
            await cluster.start()
            for action, seconds in (
                (self.watch_processes, 0.1),
                (self.watch_health, 1.0),
                (cluster.look_for_votes, self.plan.lease / 30),
            ):
                watching.append(asyncio.create_task(repeat(action, seconds)))
            self.phase = "waiting for the first grant"  # without one the judge has its finding
            if await within(2 * self.plan.within, lambda: cluster.granted):
                self.phase = "chaos"
                await self.carry_out_plan()
            self.phase = "quiet"
            await self.quiet()
        finally:
            self.phase = "judging"
            for task in watching:  # it would start again what is about to end
                task.cancel()
            await cluster.close()

    async def carry_out_plan(self) -> None:
        began = now()
        async with asyncio.TaskGroup() as faults:
            for event in self.plan.events:
                await asyncio.sleep(began + event.at - now())
                faults.create_task(EPISODES.get(event.fault, Chaos.disturb_node)(self, event))
            await asyncio.sleep(began + self.plan.seconds - now())

    async def watch_processes(self) -> None:
        """A process that ends by itself is a finding; it is started again all the same."""
        cluster = self.cluster
        cluster.read_on()
        for name in list(cluster.state.up):
            agent = cluster.agents[name]
            if not agent.running:
                self.fail(name, f"ended by itself: {agent.last_words()}")
                cluster.kill_agent(name)
                await self.restart(name)
        for slot in cluster.slots:
            if slot.child is not None and slot.child.poll():  # 0 is the quiet end
                self.fail(slot.name, f"ended by itself: {last_line(cluster.client_log)}")
                cluster.kill_client(slot)
                if self.phase == "chaos":
                    cluster.start_client(slot)

    async def watch_health(self) -> None:
        """What all agents that are awake say of themselves."""
        for name, ready in (await self.cluster.ask_awake(Agent.ready)).items():
            if ready is not None:
                self.cluster.write(lines.ReadyLine(t=now(), node=name, ready=ready))

    async def restart(self, name: str, wiped: bool = False) -> None:
        try:
            await self.cluster.start_agent(name, wiped)
        except Refused as error:
            self.fail(name, str(error))
        else:
            self.report(f"{name} is back")

    def fail(self, name: str, why: str) -> None:
        self.cluster.write(lines.FailedLine(t=now(), node=name, why=why))
        self.report(f"{name} {why}")

    # -- faults ----------------------------------------------------------------------------

    async def disturb_node(self, event: PlannedFault) -> None:
        name = await self.whom(event)
        if name is None:
            self.skip(event)
        else:
            await (self.kill if event.kind.kills else self.pause)(event, name)

    async def whom(self, event: PlannedFault) -> str | None:
        """The holder of the token, if it is meant; else often one whose clients hold permits, or
        the one the plan names, or the next that can be spared."""
        cluster, names = self.cluster, self.plan.nodes
        if event.nodes:
            first = names.index(event.nodes[0])
            candidates = [*names[first:], *names[:first]]
            holding = cluster.nodes_with_permits()
            if event.draw < WHERE_PERMITS_ARE:
                candidates.sort(key=lambda name: name not in holding)
        else:
            candidates = await within(self.plan.lease, cluster.holders)
        for name in candidates:
            if self.may_miss(name):
                return name
        return None

    def may_miss(self, name: str) -> bool:
        """Is it awake, and can it be spared?"""
        spared = self.changing and self.plan.auto  # the pool may have one member
        return (
            name in self.cluster.state.awake()
            and self.cluster.stands_without([name])
            and not spared
        )

    async def kill(self, event: PlannedFault, name: str) -> None:
        cluster = self.cluster
        slots = self.slots_at(name) if event.fault == "kill-node" else []
        cluster.read_on()
        held = sum(cluster.state.open.get(slot.name, 0) for slot in slots)
        if event.fault == "leave":
            t = await cluster.dismiss_agent(name)
        else:
            t = cluster.kill_agent(name)  # first, or it would release what its clients held
        for slot in slots:
            cluster.kill_client(slot)
        self.strike(event, t, name, held)
        await asyncio.sleep(event.seconds)
        await self.restart(name, event.wiped)
        for slot in slots:
            cluster.start_client(slot)

    async def pause(self, event: PlannedFault, name: str) -> None:
        cluster = self.cluster
        agent = cluster.agents[name]
        slots = self.slots_at(name) if event.fault == "pause-node" else []
        t = cluster.pause(agent)
        for slot in slots:
            cluster.pause(slot)
        self.strike(event, t, name)
        await asyncio.sleep(event.seconds)
        for seat in (agent, *slots) if event.draw < 0.5 else (*slots, agent):
            cluster.go_on(seat)  # who wakes first sees the other still asleep

    def slots_at(self, name: str) -> list[ClientSlot]:
        """The clients of this node to which nothing else has happened."""
        return [
            slot
            for slot in self.cluster.slots
            if slot.node == name and slot.running and slot.name not in self.cluster.state.stopped
        ]

    async def disturb_client(self, event: PlannedFault) -> None:
        cluster = self.cluster
        slot = await self.client_with_permits(event.draw)
        if slot is None:
            self.skip(event)
            return
        held = cluster.state.open[slot.name]
        kills = event.fault == "kill-client"
        t = (cluster.kill_client if kills else cluster.pause)(slot)
        self.strike(event, t, f"{slot.name}, which had {held},", held)
        await asyncio.sleep(event.seconds)
        (cluster.start_client if kills else cluster.go_on)(slot)

    async def client_with_permits(self, draw: float) -> ClientSlot | None:
        """One whose agent lives, for the others are at the end of their lease anyway."""
        cluster = self.cluster

        def those() -> list[ClientSlot]:
            cluster.read_on()
            awake, held = cluster.state.awake(), cluster.state.open
            slots = [slot for node in awake for slot in self.slots_at(node)]
            return [slot for slot in slots if slot.name in held]

        found = await within(self.plan.lease, those, 0.01)
        return found[int(draw * len(found))] if found else None

    async def cut_links(self, event: PlannedFault) -> None:
        if event.link is not None:
            await self.cut(event, [event.link], f"link {' - '.join(event.link)}")
        else:
            sides = " | ".join(" ".join(side) for side in event.sides)
            await self.cut(event, across(self.plan.links, event.sides), f"partition {sides}")

    async def cut(self, event: PlannedFault, links: list[tuple[str, str]], name: str) -> None:
        cluster = self.cluster
        if event.seconds and not cluster.stands_without((), links):
            self.skip(event)
            return
        how = "one way" if event.one_way else "silently" if event.silent else "abruptly"
        self.strike(event, cluster.cut(links, event.silent, event.one_way), f"{name} {how}")
        await asyncio.sleep(event.seconds)
        cluster.heal(links)

    async def no_majority(self, event: PlannedFault) -> None:
        cluster = self.cluster
        nodes = [name for name in event.nodes if name in cluster.state.awake()]
        links = across(self.plan.links, event.sides) if event.sides else []
        self.strike(event, now(), "cut apart" if links else "paused" if event.silent else "killed")
        if links:
            cluster.cut(links, event.silent)
        for name in nodes:
            if event.silent:
                cluster.pause(cluster.agents[name])
            else:
                cluster.kill_agent(name)
        await asyncio.sleep(event.seconds)
        cluster.heal(links)
        for name in nodes:
            cluster.go_on(cluster.agents[name])
        await asyncio.gather(*[self.restart(name) for name in nodes if not event.silent])

    # -- changes of the pool ---------------------------------------------------------------

    async def resize(self, event: PlannedFault) -> None:
        """To fewer permits, and back."""
        permits = 1 + int(event.draw * (self.plan.permits - 1))
        self.strike(event, now(), f"{permits} permits")
        if await self.set_permits(permits):
            await asyncio.sleep(event.seconds)
        await self.restore_permits()

    async def restore_permits(self) -> None:
        while not await self.set_permits(self.plan.permits) and self.phase == "chaos":
            await asyncio.sleep(self.plan.lease / 3)

    async def set_permits(self, permits: int) -> bool:
        cluster = self.cluster
        cluster.write(lines.Resizing(t=now(), permits=permits))
        for name in cluster.state.awake()[:1]:
            if await cluster.agents[name].change("permits", self.plan.lease, permits=permits):
                cluster.write(lines.Resized(t=now(), permits=permits))
                return True
        return False

    async def change_members(self, event: PlannedFault) -> None:
        """Two other members each remove one, at the same moment; then each adds one again."""
        cluster, names = self.cluster, event.nodes
        by = [name for name in cluster.state.awake() if name not in names][:2]
        if len(by) < 2 or self.changing:
            self.skip(event)
            return
        self.changing = True
        cluster.write(lines.ChangingLine(t=now()))
        self.strike(event, now(), f"{' '.join(by)} remove {' '.join(names)}")
        await asyncio.gather(
            *[
                cluster.agents[one].change("members", self.plan.lease, remove=name)
                for one, name in zip(by, names, strict=True)
            ]
        )
        await asyncio.sleep(event.seconds)
        await self.restore_members()

    async def restore_members(self) -> None:
        """Until all nodes are members again, by the nodes that are up; several may add at once."""
        cluster, lease = self.cluster, self.plan.lease
        end = now() + 2 * self.plan.within
        if self.plan.auto:
            return
        while self.changing and (self.phase == "chaos" or now() < end):
            awake = cluster.state.awake()
            missing = await self.missing()
            if missing == []:
                self.changing = False
                cluster.write(lines.SettledLine(t=now()))
                return
            able = [name for name in awake if name not in (missing or ())]
            await asyncio.gather(
                *[
                    cluster.agents[one].change("members", lease, add=name)
                    for one, name in zip(able, missing or (), strict=False)
                ],
                asyncio.sleep(lease / 3),
            )

    async def missing(self) -> list[str] | None:
        """Nodes that are no members, by the latest that any node knows; None: none says."""
        found = [one for one in (await self.cluster.ask_awake(Agent.status)).values() if one]
        told = [one for one in found if one.get("members")]
        if not told:
            return None
        members = max(told, key=lambda one: one["epoch"] or 0)["members"]
        return [name for name in self.plan.nodes if name not in members]

    # -- the end ---------------------------------------------------------------------------

    async def quiet(self) -> None:
        """Nothing is done any more: who waits must be served, and all permits be there."""
        cluster, plan = self.cluster, self.plan
        await self.restore_permits()
        await self.restore_members()
        self.report("no more faults")
        await episodes.crowd(
            self, PlannedFault(plan.seconds, "crowd", CROWD * plan.lease, draw=0.5)
        )
        cluster.write(lines.Quiet(t=now()))
        await asyncio.sleep(plan.lease)
        for slot in cluster.slots:
            if slot.child is not None:
                slot.child.finish()
        await within(2 * plan.within, lambda: not any(slot.running for slot in cluster.slots))
        last = [ClientSlot(node, plan.clients_per_node) for node in plan.nodes]
        for slot in last:
            orders = cluster.orders(f"{slot.node}.last", slot.node, take_all=True)
            slot.start(orders, cluster.client_log)
        cluster.slots += last
        await within(2 * plan.within, lambda: not any(slot.running for slot in last))
        took_all = [slot.node for slot in last if slot.at_work.poll() == 0]
        for agent in cluster.agents.values():
            for said in agent.said():
                if said.get("level") == "error" and said["event"] not in agent.forgiven:
                    self.fail(agent.name, f"failed: {said['event']}")
        cluster.write(lines.End(t=now(), accepted=cluster.resource.accepted(), took_all=took_all))
        cluster.read_on()

    # -- what is told ----------------------------------------------------------------------

    def note(self, kind: str, t: float, about: str, held: int = 0) -> None:
        self.faults[kind] = self.faults.get(kind, 0) + 1
        self.cluster.write(lines.FaultLine(t=t, kind=kind, who=about, held=held))
        self.report(f"{kind}: {about}")

    def strike(self, event: PlannedFault, t: float, about: str, held: int = 0) -> None:
        wiped = ", without its disk" if event.wiped else ""
        self.note(event.kind.name, t, f"{about} for {event.seconds:.1f} s{wiped}", held)

    def skip(self, event: PlannedFault) -> None:
        self.skipped += 1
        self.report(f"{event.fault} skipped: no node or client is up for it")

    def report(self, news: str) -> None:
        self.news.append(f"{monotonic() - self.began:6.1f} s  {news}")


EPISODES: dict[str, Callable[[Chaos, PlannedFault], Coroutine[Any, Any, None]]] = {
    "no-majority": Chaos.no_majority,
    "resize": Chaos.resize,
    "rivals": Chaos.change_members,
    "kill-client": Chaos.disturb_client,
    "pause-client": Chaos.disturb_client,
    "partition": Chaos.cut_links,
    "cut-link": Chaos.cut_links,
    "break-link": Chaos.cut_links,
    "kill-holder": episodes.kill_holder,
    "restart": episodes.restart_under,
    "strand": episodes.strand,
    "crowd": episodes.crowd,
    "birth": episodes.give_birth,
    "reset": episodes.lose_most_disks,
}
"""How faults are carried out; all others are done to a node."""
