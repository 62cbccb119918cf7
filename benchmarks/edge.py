"""At the edge of one machine: many pools, many clients, many nodes; what grows and what does not.

    python benchmarks/edge.py                    # everything, about five minutes
    python benchmarks/edge.py pools nodes        # some of it
    python benchmarks/edge.py --write            # table and picture into the docs

*pools*: two nodes with many pools, one member each, and nobody wants anything; then one client
at each node shares one of them. *clients*: two nodes, one pool, some clients that ask again
as soon as they have left. *nodes*: some nodes in four processes, each with four links (two
random rings), to which they add those of the circle of names, and a pool with one member. When no
link is added any more: what an idle node costs, how long until all know that a link failed and that
it is back, and what telling them cost; then eight clients at eight nodes share the pool. No TLS, no
disk, a silent link fails after 5 s; else the defaults of a user. CPU is that of the processes, so
that other work on the machine disturbs it little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from live import cpu_seconds
from meshlock import Node
from meshlock.live.links import link_map
from meshlock.live.machine.loop import run

DOCS = Path(__file__).parent.parent / "docs"
MARK = "<!-- edge -->"
IDLE = 5.0
"""Seconds over which idle cost is measured."""

WORK = 3.0
DEAD = 5.0
"""Seconds of silence after which a link has failed: a busy machine is silent now and then."""

CALM = 3.0
"""Seconds without a change of the map, after which the links are those that stay."""

PROCESSES = 4
SIZES = {"pools": (1, 10, 100, 1000), "clients": (1, 10, 100, 1000), "nodes": (8, 25, 50, 100, 200)}


def resident() -> float:
    """Megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def until(done: Callable[[], bool], patience: float = 120.0) -> float:
    """Seconds that it took."""
    begin = time.monotonic()
    while not done():
        if time.monotonic() - begin > patience:
            raise TimeoutError("what was waited for did not happen")
        await asyncio.sleep(0.01)
    return time.monotonic() - begin


class Counts:
    """What clients did."""

    def __init__(self) -> None:
        self.entries = 0
        self.waits: list[float] = []
        self.stop = False

    async def client(self, pool: Any) -> None:
        while not self.stop:
            asked = time.monotonic()
            async with pool.acquire():
                self.entries += 1
                self.waits.append(time.monotonic() - asked)

    async def work(self, pools: list[Any]) -> dict[str, float]:
        """One client for each of these."""
        tasks = [asyncio.ensure_future(self.client(pool)) for pool in pools]
        await asyncio.sleep(0.5)
        self.entries, self.waits = 0, []
        cpu, begin = cpu_seconds(), time.monotonic()
        await asyncio.sleep(WORK)
        entries, waits = self.entries, sorted(self.waits)
        cpu, seconds = cpu_seconds() - cpu, time.monotonic() - begin
        self.stop = True
        await asyncio.gather(*tasks)
        return {
            "entries_per_s": entries / seconds,
            "cpu_us_per_entry": cpu / max(1, entries) * 1e6,
            "wait_ms_p50": waits[len(waits) // 2] * 1e3 if waits else 0.0,
            "wait_ms_p99": waits[len(waits) * 99 // 100] * 1e3 if waits else 0.0,
        }


async def idle_cost(nodes: int) -> float:
    """Percent of a core per node."""
    cpu, begin = cpu_seconds(), time.monotonic()
    await asyncio.sleep(IDLE)
    return (cpu_seconds() - cpu) / (time.monotonic() - begin) * 100 / nodes


# -- many pools, many clients ----------------------------------------------------------------


@asynccontextmanager
async def two_nodes() -> AsyncIterator[tuple[Node, Node]]:
    async with (
        Node("n0", state=None, dead=DEAD) as one,
        Node("n1", state=None, dead=DEAD, peers=[one.address]) as two,
    ):
        yield one, two


async def pools(count: int) -> dict[str, float]:
    async with two_nodes() as (one, two):
        await until(lambda: "n1" in one._local.mesh.linked and "n0" in two._local.mesh.linked)
        memory, begin, cpu = resident(), time.monotonic(), cpu_seconds()
        names = [f"p{number}" for number in range(count)]
        made = [one.pool(name, 1, most_members=1) for name in names]
        await until(lambda: all(pool._source.ready.is_set() for pool in made))
        await until(
            lambda: sum("n0" in pool.peers.near for pool in two._local.pools.values()) == count
        )
        took, cpu = time.monotonic() - begin, cpu_seconds() - cpu
        memory = resident() - memory
        await asyncio.sleep(2.0)
        idle = await idle_cost(2)
        shared = await Counts().work([one.pool("p0"), two.pool("p0")])
        return {
            "made_s": took,
            "cpu_ms_per_pool": cpu * 1e3 / count / 2,
            "kb_per_pool": memory * 1e3 / count / 2,
            "idle_cpu_percent": idle,
            **shared,
        }


async def clients(count: int) -> dict[str, float]:
    async with two_nodes() as (one, two):
        first, second = one.pool("p", 3), two.pool("p", 3)
        await until(lambda: "n1" in first._source.peers.near and "n0" in second._source.peers.near)
        memory = resident()
        mine = [first, second] * (count // 2) or [first]
        found = await Counts().work(mine)
        return {**found, "kb_per_client": (resident() - memory) * 1e3 / count}


# -- many nodes ------------------------------------------------------------------------------


def two_rings(size: int) -> set[tuple[int, int]]:
    """Links of a network with four at each node, if no link is in both rings."""
    chance = random.Random(size)
    links: set[tuple[int, int]] = set()
    for _ in range(2):
        ring = chance.sample(range(size), size)
        links |= {(min(a, b), max(a, b)) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)}
    return links


class Watched(Node):
    """Remembers when its map changed last."""

    changed_at = 0.0

    async def start(self) -> None:
        self.react = self._local.map_changed
        self._local.map_changed = self.note_change  # type: ignore[method-assign]
        await super().start()

    def note_change(self) -> None:
        self.react()
        self.changed_at = time.monotonic()


class Told:
    """Bytes of the map that were written by this process."""

    def __init__(self) -> None:
        self.bytes = 0
        self.pack = link_map.pack
        link_map.pack = self.counted

    def counted(self, frame: Any) -> bytes:
        written = self.pack(frame)
        self.bytes += len(written)
        return written


class Some:
    """The nodes of one process, told what to do line by line."""

    def __init__(self, nodes: dict[int, Watched]) -> None:
        self.nodes = nodes
        self.told = Told()
        self.cpu = cpu_seconds()

    async def know(self, size: int) -> dict[str, Any]:
        """Until all of these know the whole network, and the pool that node 0 makes."""
        nodes = self.nodes.values()
        await until(lambda: all(len(node._local.mesh.link_map.ways) == size for node in nodes))
        if 0 in self.nodes:
            self.nodes[0].pool("p", 3, most_members=1)  # else epochs would be measured, too
        await until(
            lambda: all(
                "p" in node._local.pools and node._local.pools["p"].adapter.core for node in nodes
            )
        )
        return {"memory": resident() / len(nodes)}

    async def settle(self) -> dict[str, Any]:
        """Until all take part in the pool and links are those that stay; before that, no node is
        idle, and what is told is not of one link only."""

        def is_settled(node: Watched) -> bool:
            members = node._local.pools["p"].adapter.members
            takes_part = members is not None and members.node.epoch.inner is not None
            return takes_part and time.monotonic() - node.changed_at > CALM

        await until(lambda: all(map(is_settled, self.nodes.values())))
        return {"cpu": cpu_seconds() - self.cpu, "bytes": self.told.bytes}

    async def flap(self, one: int, other: int, up: bool) -> dict[str, Any]:
        """A link fails, or returns."""
        nodes, ends, far = self.nodes.values(), f"n{one}", f"n{other}"
        self.told.bytes = 0
        begin = time.monotonic()
        if one in self.nodes:
            mesh = self.nodes[one]._local.mesh
            mesh.restore(far) if up else mesh.cut(far, 600.0)
        await until(
            lambda: all((far in node._local.mesh.link_map.links[ends]) == up for node in nodes)
        )
        last = max(node.changed_at for node in nodes)
        await asyncio.sleep(1.0)
        return {"began": begin, "knew": last, "bytes": self.told.bytes}

    async def obey(self, order: dict[str, Any]) -> dict[str, Any] | None:
        if "links" in order:
            for number, address in order["links"]:
                self.nodes[number].connect(address)
            return None
        if "know" in order:
            return await self.know(order["know"])
        if "settle" in order:
            return await self.settle()
        if "idle" in order:
            return {"idle": await idle_cost(len(self.nodes))}
        if "cut" in order:
            return await self.flap(*order["cut"], up=False)
        if "restore" in order:
            return await self.flap(*order["restore"], up=True)
        numbers = [number for number in order["work"] if number in self.nodes]
        return await Counts().work([self.nodes[number].pools["p"] for number in numbers])


async def some_nodes(numbers: list[int]) -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with AsyncExitStack() as stack:
        nodes = {}
        for number in numbers:
            nodes[number] = await stack.enter_async_context(
                Watched(f"n{number}", state=None, dead=DEAD)
            )
        some = Some(nodes)
        say(addresses={number: node.address for number, node in nodes.items()})
        while line := await lines.readline():
            answer = await some.obey(json.loads(line))
            if answer is not None:
                say(**answer)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


class Processes:
    def __init__(self, size: int) -> None:
        self.processes = [
            subprocess.Popen(
                [sys.executable, __file__, "--nodes", *map(str, range(first, size, PROCESSES))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for first in range(PROCESSES)
        ]

    def tell(self, **order: Any) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()

    def hear(self) -> list[dict[str, Any]]:
        answers = []
        for process in self.processes:
            assert process.stdout is not None
            answers.append(json.loads(process.stdout.readline()))
        return answers

    def ask(self, **order: Any) -> list[dict[str, Any]]:
        self.tell(**order)
        return self.hear()


@contextmanager
def processes(size: int) -> Iterator[Processes]:
    made = Processes(size)
    try:
        yield made
    finally:
        for process in made.processes:
            process.kill()
            process.wait()


def settle(fleet: Processes) -> list[dict[str, Any]]:
    """Until all processes say at the same time that nothing changes any more."""
    while True:
        begin = time.monotonic()
        found = fleet.ask(settle=True)
        if time.monotonic() - begin < CALM / 2:
            return found


def flap(fleet: Processes, size: int, **order: Any) -> dict[str, float]:
    """A link fails or returns: until when all knew, and what that cost."""
    found = fleet.ask(**order)
    name = next(iter(order))
    return {
        f"{name}_known_ms": (max(one["knew"] for one in found) - found[0]["began"]) * 1e3,
        f"{name}_bytes_per_node": sum(one["bytes"] for one in found) / size,
    }


def nodes(size: int) -> dict[str, float]:
    links = sorted(two_rings(size))
    with processes(size) as fleet:
        addresses = {
            int(number): address
            for one in fleet.hear()
            for number, address in one["addresses"].items()
        }
        begin = time.monotonic()
        for place, process in enumerate(fleet.processes):
            mine = [(b, addresses[a]) for a, b in links if b % PROCESSES == place]
            assert process.stdin is not None
            process.stdin.write(json.dumps({"links": mine}) + "\n")
            process.stdin.flush()
        memory = [one["memory"] for one in fleet.ask(know=size)]
        began = time.monotonic() - begin
        formed = settle(fleet)
        settled = time.monotonic() - begin
        idle = [one["idle"] for one in fleet.ask(idle=True)]
        link = links[size // 2]
        cut = flap(fleet, size, cut=[link[1], link[0]])
        back = flap(fleet, size, restore=[link[1], link[0]])
        worked = fleet.ask(work=list(range(0, size, max(1, size // 8)))[:8])
    per_node = sum(idle) / len(idle)
    return {
        "joined_s": began,
        "mb_per_node": sum(memory) / len(memory),
        "settled_s": settled,
        "formed_cpu_ms": sum(one["cpu"] for one in formed) * 1e3 / size,
        "formed_kb": sum(one["bytes"] for one in formed) / 1e3 / size,
        "idle_cpu_percent": per_node,
        **cut,
        **back,
        "entries_per_s": sum(one["entries_per_s"] for one in worked),
    }


# -- tables ----------------------------------------------------------------------------------


def measure(kind: str, size: int) -> dict[str, float]:
    if kind == "nodes":
        return nodes(size)
    command = [sys.executable, __file__, "--child", kind, str(size)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def table(kind: str, rows: dict[int, dict[str, float]]) -> str:
    sizes = list(rows)
    text = [
        f"| {kind} | {' | '.join(f'{size:,}' for size in sizes)} |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for key, words in WORDS.items():
        if key in rows[sizes[0]]:
            cells = " | ".join(written(rows[size][key]) for size in sizes)
            text.append(f"| {words} | {cells} |")
    return "\n".join(text)


WORDS = {
    "made_s": "until both nodes have all of them, s",
    "joined_s": "until all know all, and have the pool, s",
    "settled_s": "until all take part and no link is added any more, s",
    "formed_cpu_ms": "CPU of a node until then, ms",
    "formed_kb": "records of links sent until then, kB per node",
    "cpu_ms_per_pool": "CPU to make one, ms",
    "kb_per_pool": "memory of one at a node, kB",
    "kb_per_client": "memory per client, kB",
    "mb_per_node": "memory per node, the program included, MB",
    "idle_cpu_percent": "idle: CPU of a node, % of a core",
    "cut_known_ms": "a link fails: all know after, ms",
    "cut_bytes_per_node": "sent for it, bytes per node",
    "restore_known_ms": "it is back: all know after, ms",
    "restore_bytes_per_node": "sent for it, bytes per node",
    "entries_per_s": "entries per second",
    "cpu_us_per_entry": "CPU per entry, us",
    "wait_ms_p50": "wait, median, ms",
    "wait_ms_p99": "wait, 99 of 100, ms",
}


def written(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def picture(found: dict[str, dict[int, dict[str, float]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    panels = [
        ("pools", "idle_cpu_percent", "idle CPU of a node, %"),
        ("clients", "cpu_us_per_entry", "CPU per entry, us"),
        ("nodes", "idle_cpu_percent", "idle CPU of a node, %"),
        ("nodes", "cut_known_ms", "all know of a failed link, ms"),
    ]
    figure, places = pyplot.subplots(1, len(panels), figsize=(12, 2.8))
    for place, (kind, key, words) in zip(places, panels, strict=True):
        rows = found.get(kind, {})
        place.plot(list(rows), [row[key] for row in rows.values()], marker="o")
        place.set_xscale("log")
        place.set_ylim(bottom=0)
        place.set_xlabel(kind)
        place.set_title(words, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="*", default=list(SIZES))
    parser.add_argument("--most", type=int, default=10**9, help="no more of anything than this")
    parser.add_argument("--write", action="store_true", help="into docs/, and its picture")
    given = parser.parse_args()
    found: dict[str, dict[int, dict[str, float]]] = {}
    for kind in given.kind:
        for size in SIZES[kind]:
            if size > given.most:
                continue
            try:
                row = found.setdefault(kind, {})[size] = measure(kind, size)
                print(kind, size, json.dumps(row), file=sys.stderr, flush=True)
            except (subprocess.CalledProcessError, json.JSONDecodeError) as error:
                print(kind, size, "left out:", error, file=sys.stderr, flush=True)
    tables = "\n\n".join(table(kind, rows) for kind, rows in found.items())
    print(tables)
    if given.write:
        page = DOCS / "appendices" / "measurements.md"
        before, _, after = page.read_text().split(MARK)
        page.write_text(f"{before}{MARK}\n{tables}\n{MARK}{after}")
        picture(found, DOCS / "pictures" / "edge.svg")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--nodes"]:
        run(some_nodes([int(number) for number in sys.argv[2:]]))
    elif sys.argv[1:2] == ["--child"]:
        print(json.dumps(run({"pools": pools, "clients": clients}[sys.argv[2]](int(sys.argv[3])))))
    else:
        main()
