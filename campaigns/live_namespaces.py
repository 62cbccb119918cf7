"""A line of five network namespaces shares permits, is cut in the middle, and heals.

Needs root and iproute2. Neighbours are joined by veth pairs and nothing is routed, so the
ends of the line reach each other through the nodes between them or not at all. A cut takes
one end of a pair down, as when a cable is pulled.

    sudo python campaigns/live_namespaces.py
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from meshlock.live.demo.run import Demo, figures
from meshlock.live.machine.loop import run

SIZE = 5
PORT = 7400
PREFIX = f"ml{os.getpid() % 10000}"


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


class Line:
    """Namespaces in a row, made on entering and removed on leaving."""

    def __init__(self, size: int) -> None:
        self.size = size

    def name(self, place: int) -> str:
        return f"{PREFIX}n{place}"

    def address(self, link: int, end: int) -> str:
        return f"10.213.{link}.{end + 1}"

    def __enter__(self) -> Line:
        for place in range(self.size):
            ip("netns", "add", self.name(place))
            ip("-n", self.name(place), "link", "set", "lo", "up")
        for link in range(self.size - 1):
            ends = [f"{PREFIX}{link}a", f"{PREFIX}{link}b"]
            ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
            for end, device in enumerate(ends):
                space = self.name(link + end)
                ip("link", "set", device, "netns", space)
                ip("-n", space, "addr", "add", f"{self.address(link, end)}/30", "dev", device)
                ip("-n", space, "link", "set", device, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for place in range(self.size):
            ip("netns", "del", self.name(place), check=False)

    def cut(self, link: int) -> None:
        ip("-n", self.name(link), "link", "set", f"{PREFIX}{link}a", "down")

    def heal(self, link: int) -> None:
        ip("-n", self.name(link), "link", "set", f"{PREFIX}{link}a", "up")


class InNamespaces(Demo):
    """Each agent in its own, and the links between them instead of relays."""

    def __init__(self, folder: Path, line: Line) -> None:
        super().__init__(folder, 0.0, 1, [f"n{place}" for place in range(SIZE)], [])
        self.line = line

    async def start_relays(self) -> None:
        for place, agent in enumerate(self.agents):
            agent.within = ["ip", "netns", "exec", self.line.name(place)]
            agent.settings["listen"] = f"0.0.0.0:{PORT}"
            if place:
                agent.peers.append(f"{self.line.address(place - 1, 0)}:{PORT}")

    async def disturb(self) -> None:
        await asyncio.sleep(3)
        for link in (1, 2):
            entered = [state["entries"] for state in self.states]
            self.line.cut(link)
            self.cuts += 1
            await asyncio.sleep(2)
            self.line.heal(link)
            await asyncio.sleep(3)
            now = [state["entries"] for state in self.states]
            assert all(a < b for a, b in zip(entered, now, strict=True)), (entered, now)


def main() -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        line = stack.enter_context(Line(SIZE))
        demo = InNamespaces(folder, line)
        run(demo.run())
        merged = folder / "merged.jsonl"
        demo.merge(merged)
        found = figures(merged, demo)
    print(json.dumps(found, indent=2))
    return 0 if found["holds"] and not found["unserved"] else 1


if __name__ == "__main__":
    sys.exit(main())
