"""Robots share a crossing that one of them fits into; who must be elsewhere first goes first.

    python examples/robot_crossing.py

Every robot is a node of its own; here all are in one process, so that it can be seen on one
machine. A request says by when it is needed (``deadline``, in seconds from now), and gives up then
(``timeout``): the robot goes round by the bridge, and knows why.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import meshlock

ARRIVE = {"mail": 300.0, "bread": 200.0, "courier": 100.0}
"""In this order, with the seconds until they must have crossed."""

MEMBERS = ["tram", "hurry", "mail"]
"""Named here, so that the pool does not change its members in the middle of the story."""


async def cross(name: str, crossing: meshlock.Pool, deadline: float) -> None:
    try:
        async with crossing.acquire(deadline=deadline, timeout=deadline, label=name) as grant:
            print(f"{name} crosses (fence {grant.fence})")
            await asyncio.sleep(0.05)
    except meshlock.NotInTime as why:
        print(f"{name} takes the bridge: {why}")


async def main() -> None:
    async with AsyncExitStack() as stack:
        tram = await stack.enter_async_context(meshlock.Node("tram", state=None))
        crossing = tram.pool("crossing", permits=1, members=MEMBERS)
        robots: dict[str, meshlock.Pool] = {}
        for name in ("hurry", *ARRIVE):
            node = meshlock.Node(name, peers=[tram.address], state=None)
            await stack.enter_async_context(node)
            # the same line everywhere
            robots[name] = node.pool("crossing", permits=1, members=MEMBERS)
            async with robots[name].acquire(timeout=60, label=name):
                print(f"{name} has come over")

        async with crossing.acquire(label="tram"):
            print("the tram stands on the crossing")
            await cross("hurry", robots["hurry"], deadline=0.3)
            crossings = [
                asyncio.ensure_future(cross(name, robots[name], deadline))
                for name, deadline in ARRIVE.items()
            ]
            while len((await crossing.picture())["waiting"]) < len(ARRIVE):
                await asyncio.sleep(0.05)
            print("three robots wait; the tram leaves")
        await asyncio.gather(*crossings)


asyncio.run(main())
