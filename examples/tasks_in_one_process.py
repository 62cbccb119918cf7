"""Ten asyncio tasks share four pens; the urgent ones wait least.

No network here: one node without peers is a prioritized h-out-of-k semaphore.
"""

from __future__ import annotations

import asyncio

import meshlock


async def draw(pens: meshlock.Pool, task: int) -> None:
    want, priority = 1 + task % 3, 9 if task % 5 == 0 else 1
    async with pens.acquire(want, priority=priority) as grant:
        print(f"task {task} draws with {want} (priority {priority}, fence {grant.fence})")
        await asyncio.sleep(0.05)


async def main() -> None:
    async with meshlock.Node("studio", state=None) as node:
        pens = node.pool("pens", permits=4)
        await asyncio.gather(*[draw(pens, task) for task in range(10)])


asyncio.run(main())
