"""Nodes in a row, each link over a relay that can be cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from meshlock import Node
from meshlock.live.links.mesh import split
from meshlock.live.links.relay import Relay

Line = tuple[dict[str, Node], list[Relay]]


@asynccontextmanager
async def line(names: str = "abcd", dead: float = 0.5) -> AsyncIterator[Line]:
    """a - b - c - d."""
    async with AsyncExitStack() as stack:
        nodes: dict[str, Node] = {}
        relays: list[Relay] = []
        for name in names:
            peers = []
            if nodes:
                relay = await Relay(*split(list(nodes.values())[-1].address)).start()
                stack.push_async_callback(relay.close)
                relays.append(relay)
                peers = [relay.address]
            nodes[name] = node = Node(name, peers=peers, dead=dead)
            await node.start()
            stack.push_async_callback(node.vanish)
        yield nodes, relays


async def until(true: Callable[[], bool], seconds: float = 5.0) -> float:
    """How long it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while not true():
        assert loop.time() - began < seconds
        await asyncio.sleep(0.002)
    return loop.time() - began
