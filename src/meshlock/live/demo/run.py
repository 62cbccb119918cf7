"""The demonstration: real processes, real links with TLS, some of which are cut.

Every link runs over a :class:`~meshlock.live.links.relay.Relay` in this process, so that it can
be cut; the nodes know nothing of that. In the end the traces that the nodes
wrote are put together and judged by the same audit as every other trace.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import msgspec

from meshlock.errors import Refused
from meshlock.live.demo.node import POOL, DemoOrders
from meshlock.live.links.certificates import Authority
from meshlock.live.links.dialler import split
from meshlock.live.links.relay import Relay
from meshlock.live.machine.error_text import error_text
from meshlock.properties import monitor
from meshlock.trace.audit import Audit
from meshlock.trace.files import trace_file
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace

NAMES = ("ada", "ben", "cyd", "dov", "eva", "fay")
LINKS = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (0, 3), (1, 4))
"""A ring with two chords: nobody sees everybody."""

PERMITS = 3
PRIORITIES = (1, 5, 9)
FINISH = 8.0
"""Seconds that the last requests may take when no new ones are made."""


SETTLE = 0.3
"""Seconds for permits that are on their way back when the last client leaves."""


class Process:
    """One node, as the demonstration sees it."""

    def __init__(self, name: str, within: Sequence[str] = ()) -> None:
        self.name = name
        self.within = within  # a command that runs another, as in "ip netns exec ..."
        self.process: asyncio.subprocess.Process | None = None
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.address.add_done_callback(lambda heard: heard.cancelled() or heard.exception())
        self.done = asyncio.Event()
        self.ready = asyncio.Event()
        self.state: dict[str, Any] = {}
        self.reading: asyncio.Task[None] | None = None

    async def start(self, orders: DemoOrders, log: Path) -> None:
        with log.open("wb") as errors:
            self.process = await asyncio.create_subprocess_exec(
                *self.within,
                sys.executable,
                "-m",
                "meshlock.live.demo.node",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is for us; they end with their input
            )
        self.reading = asyncio.create_task(self.read())
        self.send(orders)

    def send(self, order: Any) -> None:
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")

    async def read(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        while line := await self.process.stdout.readline():
            said = msgspec.json.decode(line, type=dict[str, Any])
            if "address" in said and not self.address.done():
                self.address.set_result(said["address"])
            elif "done" in said:
                self.done.set()
            else:
                self.state = said
                self.ready.set()
        if not self.address.done():
            self.address.set_exception(RuntimeError(f"{self.name} did not start"))

    async def stop(self) -> None:
        """Its input ends; if that does not end it, it is killed."""
        if self.process is None or self.process.stdin is None:
            return
        with contextlib.suppress(ConnectionError):
            self.process.stdin.close()
        try:
            async with asyncio.timeout(3.0):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        if self.reading is not None:
            await self.reading


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
        self.processes = [Process(name) for name in names]
        self.relays: dict[tuple[int, int], Relay] = {}
        self.cut: set[tuple[int, int]] = set()
        self.cuts = 0
        self.phase = "starting"
        self.news: list[str] = []
        self.began = monotonic()
        self.missing = 0  # messages with a token or permits that never arrived

    async def run(self) -> None:
        try:
            await self.start()
            self.phase = "sharing"
            for process in self.processes:
                process.send({"work": True})
            await self.cut_now_and_then()
            self.phase = "finishing"
            for process in self.processes:
                process.send({"finish": True})
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FINISH):
                    await asyncio.gather(*[process.done.wait() for process in self.processes])
                    await asyncio.sleep(SETTLE)
        finally:
            self.phase = "judging"
            await asyncio.gather(*[process.stop() for process in self.processes])
            await asyncio.gather(*[relay.close() for relay in self.relays.values()])

    async def start(self) -> None:
        for process, orders in zip(self.processes, self.orders(), strict=True):
            await process.start(orders, self.folder / f"{process.name}.log")
        addresses = [await process.address for process in self.processes]
        for one, other in self.links:
            relay = await Relay(*split(addresses[one])).start()
            self.relays[one, other] = relay
            self.processes[other].send({"connect": relay.address})
        async with asyncio.timeout(10.0):
            await asyncio.gather(*[process.ready.wait() for process in self.processes])

    def orders(self) -> list[DemoOrders]:
        """What each node is told at first; makes its certificate too."""
        certificates, traces = self.folder / "certs", self.folder / "traces"
        certificates.mkdir()
        traces.mkdir()
        authority = Authority.new()
        authority.save(certificates / "ca")
        for name in self.names:
            authority.issue(name).save(certificates / name)
        return [
            DemoOrders(
                name=name,
                certificates=str(certificates),
                trace=str(traces),
                permits=PERMITS,
                founder=number == 0,
                clients=list(PRIORITIES),
                seed=self.seed,
            )
            for number, name in enumerate(self.names)
        ]

    async def cut_now_and_then(self) -> None:
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
            self.report(f"the connection {names} breaks")
            relay.reset()
            return
        self.report(f"the link {names} is cut for {length:g} s")
        self.cut.add(link)
        relay.cut()
        await asyncio.sleep(length)
        relay.heal()
        self.cut.discard(link)

    def report(self, news: str) -> None:
        self.news.append(f"{monotonic() - self.began:5.1f} s  {news}")

    def merge(self, path: Path) -> None:
        done = all(process.done.is_set() for process in self.processes)
        parts = (self.folder / "traces").glob(f"{POOL}.*.jsonl")
        try:
            with trace_file(path) as file:
                self.missing = merge(parts, file, ended=done)
        except OSError as error:
            raise Refused(f"Cannot write the trace to {path}: {error_text(error)}.") from None


async def watch(demo: Demo, look: Callable[[Demo], None]) -> None:
    """Run the demonstration, and look at it ten times a second."""
    work = asyncio.create_task(demo.run())
    try:
        while not work.done():
            look(demo)
            await asyncio.wait([work], timeout=0.1)
        look(demo)
    finally:
        if not work.done():
            work.cancel()
        await work


# -- what was found, from the trace alone ---------------------------------------------------------


def figures(path: Path, demo: Demo) -> dict[str, Any]:
    verdict = Audit(Trace(path))
    asked: dict[int, tuple[int, float]] = {}  # client: priority, when
    waits: dict[int, list[float]] = {}
    messages: dict[str, int] = {}
    for line in Trace(path).events():
        if line.event == "request":
            asked[line.client] = (int(line.priority), line.t)
        elif line.event == "enter":
            priority, since = asked.pop(line.client)
            waits.setdefault(priority, []).append(line.t - since)
        elif line.event == "send":
            messages[line.message] = messages.get(line.message, 0) + 1
    violated = dict(verdict.monitor.violated)
    if demo.missing:
        violated["conservation"] = f"{demo.missing} message(s) with permits never arrived"
    judged = [name for name in monitor.NAMES if name != "neighbours" and name not in violated]
    return {
        "nodes": len(demo.processes),
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
