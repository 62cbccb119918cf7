"""Nodes in a row, in virtual time, each link over a wire that can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from virtual import Network, Wire

from meshlock import Node

Line = tuple[dict[str, Node], list[Wire]]


@asynccontextmanager
async def line(network: Network, names: str = "abcd", dead: float = 0.5) -> AsyncIterator[Line]:
    """a - b - c - d."""
    async with AsyncExitStack() as stack:
        nodes: dict[str, Node] = {}
        wires: list[Wire] = []
        for name in names:
            peers = []
            if nodes:
                wires.append(network.wire(list(nodes.values())[-1].address))
                peers = [wires[-1].address]
            nodes[name] = node = Node(name, peers=peers, dead=dead, min_links=0)
            await node.start()
            stack.push_async_callback(node._local.vanish)
        yield nodes, wires
