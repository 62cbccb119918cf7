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

from meshlock.live.demo.run import SETTLE, Demo, Process, figures
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


async def story(line: Line, folder: Path) -> Demo:
    names = [f"n{place}" for place in range(SIZE)]
    demo = Demo(folder, 0.0, 1, names, [])
    demo.processes = [
        Process(name, ["ip", "netns", "exec", line.name(place)]) for place, name in enumerate(names)
    ]
    try:
        for process, orders in zip(demo.processes, demo.orders(), strict=True):
            orders.listen = f"0.0.0.0:{PORT}"
            await process.start(orders, folder / f"{process.name}.log")
            await process.address
        for place in range(1, SIZE):
            demo.processes[place].send({"connect": f"{line.address(place - 1, 0)}:{PORT}"})
        await asyncio.gather(*[process.ready.wait() for process in demo.processes])
        for process in demo.processes:
            process.send({"work": True})
        await asyncio.sleep(3)
        for link in (1, 2):
            entered = [process.state["entries"] for process in demo.processes]
            line.cut(link)
            demo.cuts += 1
            await asyncio.sleep(2)
            line.heal(link)
            await asyncio.sleep(3)
            now = [process.state["entries"] for process in demo.processes]
            assert all(a < b for a, b in zip(entered, now, strict=True)), (entered, now)
        for process in demo.processes:
            process.send({"finish": True})
        async with asyncio.timeout(20):
            await asyncio.gather(*[process.done.wait() for process in demo.processes])
        await asyncio.sleep(SETTLE)
    finally:
        await asyncio.gather(*[process.stop() for process in demo.processes])
    return demo


def main() -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        line = stack.enter_context(Line(SIZE))
        demo = run(story(line, folder))
        merged = folder / "merged.jsonl"
        demo.merge(merged)
        found = figures(merged, demo)
    print(json.dumps(found, indent=2))
    return 0 if found["holds"] and not found["unserved"] else 1


if __name__ == "__main__":
    sys.exit(main())
