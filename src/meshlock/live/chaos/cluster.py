"""The agents, the wires between them and the clients, and what can be done to them.

Every link runs over a :class:`~meshlock.live.chaos.relay.Relay` in this process, so that it can be
cut without the agents' knowing. Everything that is done is written to the record.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from meshlock.live.chaos import record as lines
from meshlock.live.chaos.client import ClientOrders
from meshlock.live.chaos.majority import Link, able
from meshlock.live.chaos.plan import Plan
from meshlock.live.chaos.processes import POOL, Agent, ClientSlot, Seat
from meshlock.live.chaos.record import RECORD, Follower, RecordLine, SetUpLine, Writer, now
from meshlock.live.chaos.relay import Relay
from meshlock.live.chaos.resource import Resource
from meshlock.live.chaos.stalls import StallState
from meshlock.live.machine.loop import within

Answer = TypeVar("Answer")

LONGEST_FAREWELL = 10.0
LEFT_WITH_IT = "left without handing over the token"
"""What an agent logs of that."""

GROWTH = 20
"""Leases within which all nodes become members."""


class Cluster:
    def __init__(self, plan: Plan, folder: Path, sockets: Path) -> None:
        self.plan = plan
        self.folder = folder
        self.client_log = folder / "clients.log"
        self.record = Writer(folder / RECORD)
        self.follower = Follower(folder / RECORD)
        self.resource = Resource.make(folder)
        (folder / "secret").write_text(secrets.token_urlsafe(24) + "\n")
        self.agents = {name: Agent(name, folder, sockets) for name in plan.nodes}
        given: dict[str, Any] = {"permits": plan.slots, "lease": plan.lease}
        most = {"most-members": len(plan.nodes), "promote-after": plan.lease / 10}
        for agent in self.agents.values():
            agent.settings["secret-file"] = str(folder / "secret")
            agent.pool = {**given, **(most if plan.auto else {"members": plan.nodes})}
        self.slots = [
            ClientSlot(node, place) for node in plan.nodes for place in range(plan.clients_per_node)
        ]
        self.relays: dict[Link, Relay] = {}  # of a link (a, b) to a, and of (b, a) to b
        self.cuts: dict[Link, int] = {}  # how often it is cut just now
        self.renewed_at: dict[str, float] = {}  # client: when its lease was, for the last time
        self.granted = 0
        known = {name: getattr(plan, name) for name in SetUpLine.__struct_fields__[1:]}
        set_up = SetUpLine(t=now(), **known)
        self.state = StallState(set_up)
        self.write(set_up)

    def write(self, line: RecordLine) -> None:
        self.record.write(line)
        self.state.take(line)

    def read_on(self) -> None:
        """In the record: what clients say."""
        for line in self.follower.news():
            if isinstance(line, lines.RequestLine):
                self.state.take(line)
                self.granted += isinstance(line, lines.GrantedLine)
                if isinstance(line, lines.RenewedLine):
                    self.renewed_at[line.c] = line.t

    # -- beginning and end -----------------------------------------------------------------

    async def start(self) -> None:
        """No agent reaches another at first, and all clients ask. Then links come up one by one, so
        that the pool is made while some see others and not all."""
        for one, other in self.plan.links:
            for link in ((one, other), (other, one)):
                self.relays[link] = await self.agents[link[1]].dial(self.agents[link[0]])
                self.relays[link].cut()
        await asyncio.gather(*[self.start_agent(name) for name in self.plan.nodes])
        for slot in self.slots:
            self.start_client(slot)
        self.write(lines.CutLine(t=now(), links=self.plan.links))
        late = Random(f"{self.plan.seed}:links")
        for link in late.sample(self.plan.links, len(self.plan.links)):
            await asyncio.sleep(late.uniform(0.0, self.plan.lease / len(self.plan.links)))
            for relay in self.of_link(link):
                relay.heal()
            self.write(lines.Healed(t=now(), links=[link]))
        if self.plan.auto:
            await self.grow()

    def of_link(self, link: Link) -> list[Relay]:
        return [self.relays[link], self.relays[link[1], link[0]]]

    async def grow(self) -> bool:
        """Until all are members; False if that is not soon."""

        async def have_grown() -> bool:
            pools = await asyncio.gather(*[one.status() for one in self.agents.values()])
            return all(len((one or {}).get("members", ())) == len(pools) for one in pools)

        lease = self.plan.lease
        return bool(await within(GROWTH * lease, have_grown, lease / 10))

    async def close(self) -> None:
        for seat in (*self.slots, *self.agents.values()):
            seat.kill()
        await asyncio.gather(*[relay.close() for relay in self.relays.values()])
        self.follower.close()
        self.record.close()
        self.resource.close()

    # -- agents ----------------------------------------------------------------------------

    async def start_agent(self, name: str, wiped: bool = False) -> None:
        agent = self.agents[name]
        rate = self.plan.rate(name, agent.starts)
        await agent.start(rate, wiped)
        self.write(lines.Up(t=now(), node=name, rate=rate, wiped=wiped))

    def kill(self, seat: Seat) -> float:
        t = now()
        seat.at_work.kill()
        seat.child = None
        return t

    def pause(self, seat: Seat) -> float:
        t = now()
        seat.at_work.send_signal(signal.SIGSTOP)
        self.write(lines.Stopped(t=t, who=seat.name))
        return t

    def go_on(self, seat: Seat) -> None:
        """If it still stands there, paused."""
        if seat.child is not None and seat.name in self.state.stopped:
            seat.child.send_signal(signal.SIGCONT)
            self.write(lines.Continued(t=now(), who=seat.name))

    def kill_agent(self, name: str) -> float:
        t = self.kill(self.agents[name])
        self.write(lines.Down(t=t, node=name))
        return t

    async def dismiss_agent(self, name: str) -> float:
        """SIGTERM: it leaves in good order, if it can in time; it cannot where it is cut off."""
        child = self.agents[name].at_work
        t = now()
        alone = name not in self.served()
        self.write(lines.Down(t=t, node=name))
        child.terminate()
        while child.poll() is None and now() < t + LONGEST_FAREWELL:
            await asyncio.sleep(0.01)
            alone = alone or name not in self.served([name])
        if alone:
            self.agents[name].forgiven.add(LEFT_WITH_IT)
        child.kill()
        self.agents[name].child = None
        return t

    async def look_for_votes(self) -> None:
        """Which of those that lost their disks say that they are members with a vote?"""
        for name in sorted(self.state.voteless.intersection(self.state.awake())):
            pool = await self.agents[name].status() or {}
            if name in pool.get("members", ()) and name not in pool["members_without_vote"]:
                self.write(lines.VoteLine(t=now(), node=name))

    def stands_without(self, names: Iterable[str], links: Iterable[Link] = ()) -> bool:
        """Would a majority be left if these were out of order too?"""
        gone, cut = set(names), set(links)
        left = [name for name in self.state.awake() if name not in gone]
        whole = [link for link in self.state.whole() if link not in cut]
        return bool(able(self.plan.nodes, left, whole, self.state.without_vote(now())))

    def served(self, leaving: Iterable[str] = ()) -> set[str]:
        """The nodes that can reach a majority."""
        return able(self.plan.nodes, [*self.state.awake(), *leaving], self.state.whole())

    async def holders(self) -> list[str]:
        """Agents that say they have the token."""
        found = await self.ask_awake(Agent.status)
        return [name for name, pool in found.items() if pool and pool.get("token_here")]

    async def ask_awake(self, ask: Callable[[Agent], Awaitable[Answer]]) -> dict[str, Answer]:
        """All agents that are awake, at once."""
        awake = self.state.awake()
        found = await asyncio.gather(*[ask(self.agents[name]) for name in awake])
        return dict(zip(awake, found, strict=True))

    # -- clients ---------------------------------------------------------------------------

    def start_client(self, slot: ClientSlot) -> None:
        name = f"{slot.node}.{slot.place}.{slot.life}"
        slot.start(self.orders(name, slot.node), self.client_log)

    def orders(self, name: str, node: str, take_all: bool = False) -> ClientOrders:
        plan, socket, folder = self.plan, str(self.agents[node].socket), str(self.folder)
        return ClientOrders(
            name, node, socket, POOL, plan.permits, plan.lease, plan.seed, folder, take_all
        )

    def kill_client(self, slot: ClientSlot) -> float:
        t = self.kill(slot)
        self.write(lines.Died(t=t, c=slot.name))
        return t

    def say(self, slots: Iterable[ClientSlot], mood: bytes) -> None:
        """How they are to work, those that run."""
        for slot in slots:
            if slot.child is not None and slot.running:
                slot.mood = mood
                slot.child.say(mood)

    def in_mood(self, mood: bytes) -> list[ClientSlot]:
        return [slot for slot in self.slots if slot.mood == mood]

    def nodes_with_permits(self) -> set[str]:
        self.read_on()
        return {slot.node for slot in self.slots if slot.name in self.state.open}

    # -- links -----------------------------------------------------------------------------

    def cut(self, links: list[Link], silent: bool, one_way: bool = False) -> float:
        t = now()
        fresh = [link for link in links if link not in self.state.cut]
        for link in links:
            self.cuts[link] = self.cuts.get(link, 0) + 1
            for relay in self.of_link(link):
                if one_way:
                    relay.deafen()
                else:
                    relay.cut()
                if not silent:
                    relay.reset()
        self.write(lines.CutLine(t=t, links=fresh, silent=silent))
        return t

    def heal(self, links: list[Link]) -> None:
        whole = []
        for link in links:
            self.cuts[link] -= 1
            if not self.cuts[link]:
                for relay in self.of_link(link):
                    relay.heal()
                whole.append(link)
        self.write(lines.Healed(t=now(), links=whole))
