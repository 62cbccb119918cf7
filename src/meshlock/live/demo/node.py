"""One process of the demonstration: a node with a few busy clients.

It is told what to do on standard input and reports on standard output, a JSON object per
line. When its input ends it ends too, so nothing outlives the demonstration.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random
from time import monotonic
from typing import Any

import msgspec

from meshlock.live.interfaces.node import Node
from meshlock.live.machine.loop import run
from meshlock.live.pools.grants import Pool

POOL = "docks"
PATIENCE = "10"
"""Grants that one has waited for which count as a step of priority: quick, for a short show."""

REPORT_EVERY = 0.1


class DemoOrders(msgspec.Struct):
    """The first line of input."""

    name: str
    certificates: str
    trace: str
    permits: int
    founder: bool
    clients: list[int]  # one for each priority given
    seed: int
    listen: str = "127.0.0.1:0"


def say(**what: Any) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


async def client(pool: Pool, priority: int, random: Random, stop: asyncio.Event) -> None:
    """Think, ask for some of the permits, hold them a little, and again."""
    assert pool.permits is not None
    while not stop.is_set():
        await asyncio.sleep(random.uniform(0.0, 0.3))
        want = random.randint(1, pool.permits)
        async with pool.acquire(want, priority=priority):
            await asyncio.sleep(random.uniform(0.002, 0.02))


def report(node: Node) -> None:
    status = node.status()
    pool = status["pools"].get(POOL, {"known": False})
    if pool["known"]:
        say(
            at=monotonic(),
            up=sorted(peer for peer, link in status["links"].items() if link["up"]),
            token=pool["token_here"],
            free=pool["free_here"],
            holding=[grant["want"] for grant in pool["holding"]],
            waiting=[waiter["priority"] for waiter in pool["waiting"]],
            entries=pool["entries"],
        )


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    orders = msgspec.json.decode(await reader.readline(), type=DemoOrders)
    random = Random(f"{orders.seed}:{orders.name}")
    node = Node(
        orders.name,
        listen=orders.listen,
        certificates=orders.certificates,
        trace=orders.trace,
        state=None,
        min_links=0,
    )
    await node.start()
    pool = node.pool(
        POOL,
        orders.permits,
        founder=orders.founder,
        options={"patience": PATIENCE},
        recovery="none",
    )
    say(address=node.address)
    stop = asyncio.Event()
    clients: list[asyncio.Task[None]] = []
    reporting = asyncio.create_task(report_often(node))
    while line := await reader.readline():
        order = msgspec.json.decode(line, type=dict[str, Any])
        if "connect" in order:
            node.connect(order["connect"])
        elif "work" in order:
            await node.pools[POOL].ready.wait()
            clients = [
                asyncio.create_task(client(pool, priority, random, stop))
                for priority in orders.clients
            ]
        elif "finish" in order:
            stop.set()
            await asyncio.gather(*clients)
            report(node)
            say(done=True)
    reporting.cancel()
    await node.vanish()


async def report_often(node: Node) -> None:
    while True:
        report(node)
        await asyncio.sleep(REPORT_EVERY)


if __name__ == "__main__":
    run(main())
