"""The demonstration: real agents, real links with TLS, some of which are cut.

Every link runs over a :class:`~meshlock.live.chaos.relay.Relay` in this process, so that it can
be cut; the agents know nothing of that. Their clients are here. In the end the traces that the
agents wrote are put together and judged by the same audit as every other trace.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from meshlock.live.chaos.processes import POOL, Agent
from meshlock.live.chaos.relay import Relay
from meshlock.live.interfaces.async_client import Client, aconnect
from meshlock.live.links.certificates import Authority
from meshlock.properties import monitor
from meshlock.properties.sentences import counted
from meshlock.trace.audit import Audit
from meshlock.trace.files import trace_file
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace

NAMES = ("ada", "ben", "cyd", "dov", "eva", "fay")
LINKS = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 3), (1, 4))
"""A ring with two chords: no node is linked to all others."""

PERMITS = 3
PRIORITIES = (1, 5, 9)
"""Of the clients of each agent."""

PATIENCE = "10"
"""Grants that one has waited for which count as a step of priority: quick, for a short show."""

LOOK_EVERY = 0.1
FINISH = 8.0
"""Seconds that the last requests may take when no new ones are made."""

SETTLE = 0.3
"""Seconds for permits that are on their way back when the last client leaves."""


class Demo:
    def __init__(
        self,
        folder: Path,
        seconds: float,
        seed: int,
        names: Sequence[str] = NAMES,
        links: Sequence[tuple[int, int]] = LINKS,
    ) -> None:
        self.folder = folder
        self.names = names
        self.links = links
        self.seconds = seconds
        self.random = Random(seed)
        self.seed = seed
        self.agents = [Agent(name, folder, folder) for name in names]
        self.relays: dict[tuple[int, int], Relay] = {}
        self.cut: set[tuple[int, int]] = set()
        self.cuts = 0
        self.news = "starting"
        self.began = monotonic()
        self.finishing = self.served = False
        self.missing = 0  # messages with a token or permits that never arrived

    async def run(self) -> None:
        clients: list[Client] = []
        work: list[asyncio.Task[None]] = []
        try:
            self.configure()
            for one, other in self.links:
                self.relays[one, other] = await self.agents[other].dial(self.agents[one])
            await asyncio.gather(*[agent.start() for agent in self.agents])
            for agent in self.agents:
                clients.append(await aconnect(str(agent.socket)))
            work = [
                asyncio.create_task(self.work(client, priority, Random(f"{self.seed}:{name}")))
                for name, client in zip(self.names, clients, strict=True)
                for priority in PRIORITIES
            ]
            await self.disturb()
            self.finishing = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FINISH):
                    await asyncio.gather(*work)
                    self.served = True
                    await asyncio.sleep(SETTLE)
        finally:
            for task in work:
                task.cancel()
            for agent in self.agents:
                agent.kill()
            for client in clients:
                await client.close()
            await asyncio.gather(*[relay.close() for relay in self.relays.values()])

    def configure(self) -> None:
        """Makes the certificates, too."""
        certificates, traces = self.folder / "certs", self.folder / "traces"
        certificates.mkdir()
        traces.mkdir()
        authority = Authority.new()
        authority.save(certificates / "ca")
        for number, agent in enumerate(self.agents):
            authority.issue(agent.name).save(certificates / agent.name)
            given = {"certificates": str(certificates), "trace": str(traces), "state": "none"}
            agent.settings |= given
            agent.pool = {
                "permits": PERMITS,
                "founder": number == 0,
                "options": {"patience": PATIENCE},
                "recovery": "none",
            }

    async def work(self, client: Client, priority: int, random: Random) -> None:
        """Think, ask for some of the permits, hold them a little, and again."""
        while not self.finishing:
            await asyncio.sleep(random.uniform(0.0, 0.3))
            want = random.randint(1, PERMITS)
            async with client.pool(POOL).acquire(want, priority=priority):
                await asyncio.sleep(random.uniform(0.002, 0.02))

    async def disturb(self) -> None:
        """One link after the other: some for a moment, some for long enough to be missed."""
        end = monotonic() + self.seconds
        while monotonic() < end - 1.5:
            await asyncio.sleep(self.random.uniform(0.2, 0.6))
            link = self.random.choice([link for link in self.links if link not in self.cut])
            length = self.random.choice((0.0, 0.2, 0.9, 1.4))
            await self.interrupt(link, length)
        await asyncio.sleep(max(0.0, end - monotonic()))

    async def interrupt(self, link: tuple[int, int], length: float) -> None:
        relay = self.relays[link]
        names = f"{self.names[link[0]]} - {self.names[link[1]]}"
        self.cuts += 1
        if length == 0.0:
            self.news = f"the connection {names} breaks"
            relay.reset()
            return
        self.news = f"the link {names} is cut for {length:g} s"
        self.cut.add(link)
        relay.cut()
        await asyncio.sleep(length)
        relay.heal()
        self.cut.discard(link)

    def merge(self, path: Path) -> None:
        parts = (self.folder / "traces").glob(f"{POOL}.*.jsonl")
        with trace_file(path) as file:
            self.missing = merge(parts, file, ended=self.served)


# -- what was found, from the trace alone ---------------------------------------------------------


def figures(path: Path, demo: Demo) -> dict[str, Any]:
    verdict = Audit(Trace(path))
    asked: dict[int, tuple[int, float]] = {}  # client: priority, when
    waits: dict[int, list[float]] = {}
    messages: dict[str, int] = {}
    for line in Trace(path).events():
        if line.event == "request":
            asked[line.client] = (int(line.priority), line.t)
        elif line.event == "withdraw":  # it asks again, to wait
            del asked[line.client]
        elif line.event == "enter":
            priority, since = asked.pop(line.client)
            waits.setdefault(priority, []).append(line.t - since)
        elif line.event == "send":
            messages[line.message] = messages.get(line.message, 0) + 1
    violated = dict(verdict.monitor.violated)
    if demo.missing:
        violated["conservation"] = f"{counted(demo.missing, 'message')} with permits never arrived"
    judged = [name for name in monitor.NAMES if name != "neighbours" and name not in violated]
    return {
        "nodes": len(demo.names),
        "permits": verdict.trace.setup["permits"],
        "entries": verdict.entries,
        "unserved": len(asked),
        "messages": messages,
        "messages_per_entry": sum(messages.values()) / max(1, verdict.entries),
        "waiting_by_priority": {str(p): spread(waits[p]) for p in sorted(waits, reverse=True)},
        "cuts": demo.cuts,
        "holds": not violated,
        "violated": violated,
        "checked": judged,
    }


def spread(values: list[float]) -> dict[str, float]:
    values = sorted(values)
    last = len(values) - 1
    return {
        "entries": len(values),
        "p50": values[last // 2],
        "p95": values[int(last * 0.95)],
        "max": values[last],
    }
