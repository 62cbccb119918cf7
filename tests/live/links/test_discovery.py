"""Nodes that know nobody find each other on the local network (here: the loopback of one)."""

from __future__ import annotations

import pytest

from waiting import LIMIT, eventually, run

pytest.importorskip("zeroconf")

from meshlock import Node
from meshlock.live.interfaces.discovery import Discovery


def test_nodes_find_each_other_and_share() -> None:
    async def story() -> None:
        loopback = ["127.0.0.1"]
        async with Node("a") as a, Node("b") as b, Node("c") as c:
            a.pool("docks", permits=1)
            async with Discovery(a, loopback), Discovery(b, loopback), Discovery(c, loopback):
                async with c.pool("docks").acquire(timeout=LIMIT):
                    pass
                nodes = (a, b, c)
                await eventually(lambda: all(len(node.status()["links"]) >= 2 for node in nodes))

    run(story)
