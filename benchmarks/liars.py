"""What proofs cost, and what an admitted node that floods can make another keep.

``python benchmarks/liars.py`` prints CPU time per message, of all nodes together (they are in one
process, in a row a - b - c), over a link and through the node in the middle; and by how much a node
grows that a liar with a good certificate sends messages of pools that nobody knows.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from meshlock import Node
from meshlock.live.links.certificates import Authority
from meshlock.live.links.dialler import split
from meshlock.live.links.frames import VERSION, Carry, Content, HelloFrame, pack
from meshlock.live.links.link import Splitter
from meshlock.live.links.security import by_certificate

MESSAGES, BURST, ROUNDS = 2000, 50, 5
CONTENT = Content("inbox", 0, "ANYTHING", b"x" * 100)


class Inbox:
    def __init__(self, node: Node) -> None:
        self.count = 0
        node._local.mesh.receivers["inbox"] = self

    def receive(self, sender: str, frame: Any) -> None:
        self.count += 1


async def row(certificates: Path | None) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    for name in "abc":
        peers = [list(nodes.values())[-1].address] if nodes else []
        nodes[name] = Node(name, peers=peers, certificates=certificates, dead=60.0, state=None)
        await nodes[name].start()
    while not nodes["a"]._local.mesh.link_map.reaches("c") or not nodes[
        "c"
    ]._local.mesh.link_map.reaches("a"):
        await asyncio.sleep(0.01)
    return nodes


async def measure(nodes: dict[str, Node], how: str) -> float:
    """Microseconds of CPU per message."""
    mesh = nodes["a"]._local.mesh
    inbox = Inbox(nodes["c" if how == "routed" else "b"])
    began = time.process_time()
    for sent in range(BURST, MESSAGES + BURST, BURST):
        for _ in range(BURST):
            if how == "link":
                mesh.send("b", CONTENT)
            else:
                mesh.router.send("c" if how == "routed" else "b", CONTENT)
        mesh.flush()
        while inbox.count < sent:
            await asyncio.sleep(0)
    return (time.process_time() - began) / MESSAGES * 1e6


async def costs(certificates: Path) -> None:
    for protected in (None, certificates):
        nodes = await row(protected)
        found: dict[str, list[float]] = {"link": [], "neighbour": [], "routed": []}
        for _ in range(ROUNDS):
            for how, times in found.items():
                times.append(await measure(nodes, how))
        for node in nodes.values():
            await node._local.vanish()
        text = ", ".join(f"{how} {statistics.median(times):.1f}" for how, times in found.items())
        print(f"{'TLS' if protected else 'plain'}: {text} us of CPU per message")


def flood(address: str, certificates: Path) -> None:
    """Messages in custody of as many pools as there may be, over as many links as it takes."""

    async def story() -> None:
        place = certificates / "m"
        files = certificates / "ca.crt", place.with_suffix(".crt"), place.with_suffix(".key")
        security = by_certificate(*files)
        payload, number = b"x" * 60_000, 0
        for life in range(40):
            host, port = split(address)
            reader, writer = await asyncio.open_connection(
                host, port, ssl=security.client, server_hostname=""
            )
            splitter = Splitter(1 << 20)
            while not list(splitter.feed(await reader.read(4096))):
                pass
            writer.write(pack(HelloFrame(VERSION, "m", 7 + life, 0, 0, False, 0)))
            drained = asyncio.ensure_future(reader.read())
            try:
                for count in range(1, 1601):
                    number += 1
                    pool = f"pool{number // 16}"
                    writer.write(pack(Carry(count, 0, 0, True, pool, 0, "ANYTHING", payload)))
                    await writer.drain()
            except (ConnectionError, OSError):
                pass
            drained.cancel()
            writer.close()
            await asyncio.sleep(0.1)

    asyncio.run(story())


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def memory(certificates: Path) -> None:
    async with Node("a", certificates=certificates, state=None) as a:
        before = resident()
        liar = multiprocessing.get_context("spawn").Process(
            target=flood, args=(a.address, certificates)
        )
        liar.start()
        most = before
        while liar.is_alive():
            await asyncio.sleep(0.1)
            most = max(most, resident())
        print(f"flood: grew by {most - before:.0f} MB, refused {a.status()['refused']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        authority = Authority.new()
        authority.save(place / "ca")
        for one in "abcm":
            authority.issue(one).save(place / one)
        if "memory" not in sys.argv[1:]:
            asyncio.run(costs(place))
        if "costs" not in sys.argv[1:]:
            asyncio.run(memory(place))
