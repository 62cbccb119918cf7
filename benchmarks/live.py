"""Live nodes by the figures: hand-over, throughput, fairness, cost per entry, idle cost.

Every phase runs real processes on loopback, with and without TLS. Latencies are also given
as multiples of one raw TCP hop (half a round trip of a blocking socket, both ends on one
core), measured just before each phase, because machines differ and are noisy.

    python benchmarks/live.py                  # everything, about three minutes
    python benchmarks/live.py handover idle    # some phases
    python benchmarks/live.py --plain          # without TLS only
    python benchmarks/live.py --patience 300   # wait for other work on the machine to end

Phases: holder (a), handover (b), contended (c), trees (d), idle (e).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import expovariate
from typing import Any

from meshlock import Node
from meshlock.live.machine.loop import run

now = time.monotonic_ns
MARGIN = 300_000_000
"""Nanoseconds of work before what counts, and after it."""

PATIENCE = 60.0
"""Seconds after which a process that says nothing has failed."""

SECRET = "a secret for one benchmark run"


class Failed(Exception):
    """A process of a fleet did not do what it was told."""


# -- the floor -----------------------------------------------------------------------------


def raw_hop(rounds: int = 4000) -> float:
    """Microseconds of one message over a blocking TCP socket, both ends on one core."""
    server = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    os.sched_setaffinity(0, {0})
    if child == 0:
        link = server.accept()[0]
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := link.recv(64):
            link.sendall(data)
        os._exit(0)
    link = socket.create_connection(server.getsockname())
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(rounds):
        begin = now()
        link.sendall(b"x" * 32)
        link.recv(64)
        times.append(now() - begin)
    link.close()
    os.waitpid(child, 0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return sorted(times)[rounds // 2] / 2000


# -- other people's work on the same machine ------------------------------------------------


def busy_cores(seconds: float) -> float:
    before, begin = busy_seconds(), time.monotonic()
    time.sleep(seconds)
    return (busy_seconds() - before) / (time.monotonic() - begin)


def busy_seconds() -> float:
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def wait_for_quiet(patience: float) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end and busy_cores(0.5) > 0.25:
        pass


# -- one node in its own process -----------------------------------------------------------


async def worker(
    name: str,
    protected: bool,
    permits: int,
    folder: str,
    algorithm: str,
    listen: str,
    members: list[str],
) -> None:
    """Told what to do line by line; writes the stamps of its grants at the end.

    With a ``folder`` the node is as users have it: it keeps its promises there, and takes a link
    for dead as soon as it does unless told otherwise.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, daemon=True).start()

    def say(**what: Any) -> None:
        print(json.dumps(what), flush=True)

    secret = SECRET if protected else None
    made = (
        Node(name, state=Path(folder) / name, secret=secret, listen=listen)
        if folder
        else Node(name, state=None, secret=secret, dead=5.0, min_links=0)
    )
    async with made as node:
        if members:
            pool = node.pool("pens", permits, members=members, algorithm=algorithm or None)
        else:
            pool = node.pool("pens", permits, founder=name == "n0", recovery="none")
        kept = []
        say(address=node.address)
        while line := await lines.get():
            order = json.loads(line)
            if "connect" in order:
                node.connect(order["connect"])
            elif "ready" in order:
                await pool._source.ready.wait()
                while len(pool._source.peers.near) < order["ready"]:
                    await asyncio.sleep(0.01)
                say(ready=True)
            elif "work" in order:
                stint = Stint(order, lambda: sum(pool._source.adapter.measures.sent.values()))
                while stint.goes_on():
                    asked = now()
                    grant = await pool.acquire()
                    got = now()
                    if order["hold"]:
                        await asyncio.sleep(order["hold"])
                    left = now()
                    grant.release()
                    stint.note(asked, got, left)
                    if stint.think:
                        await asyncio.sleep(expovariate(1 / stint.think))
                # more than a pipe holds: said here, it would keep this node from passing the token
                # on for which the client that is read first still waits
                sent = pool._source.adapter.measures.sent
                await asyncio.to_thread(say, **stint.result(), kinds=sent)
            elif "acquire" in order:
                kept.append(await pool.acquire())
                say(got=now())
            elif "cpu" in order:
                say(cpu=cpu_seconds(), bytes=bytes_on_loopback())


class Stint:
    """What one client does while all are at work: everybody starts before it counts and goes on
    after it, because who is alone for a moment takes thousands of permits in that moment."""

    def __init__(self, order: dict[str, Any], sent: Callable[[], int] = lambda: 0) -> None:
        self.begin = order["begin"]
        self.end = self.begin + int(order["work"] * 1e9)
        self.think: float = order.get("think", 0.0)  # seconds between two requests, on average
        self.sent = sent
        self.stamps: list[tuple[int, int, int]] = []
        self.spent: list[tuple[float, int]] = []  # CPU and messages, at the beginning and end

    def goes_on(self) -> bool:
        at = now()
        if at >= (self.end if self.spent else self.begin) and len(self.spent) < 2:
            self.spent.append((cpu_seconds(), self.sent()))
        return at < self.end + MARGIN

    def note(self, asked: int, got: int, left: int) -> None:
        if self.begin <= got < self.end:
            self.stamps.append((asked, got, left))

    def result(self) -> dict[str, Any]:
        (cpu, sent), (cpu_then, sent_then) = self.spent[0], self.spent[-1]
        return {"stamps": self.stamps, "cpu": cpu_then - cpu, "sent": sent_then - sent}


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def bytes_on_loopback() -> int:
    for line in Path("/proc/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[0])
    return 0


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime + cpu_seconds()


class Fleet:
    """Processes n0, n1, ... with these links between them."""

    margin = MARGIN
    """Nanoseconds of work before what counts."""

    def __init__(
        self,
        size: int,
        links: list[tuple[int, int]],
        protected: bool,
        permits: int,
        members: int = 0,
        folder: Path | None = None,
        python: str = sys.executable,
        algorithm: str = "",
        inside: Sequence[list[str]] = (),
        listen: Sequence[str] = (),
    ) -> None:
        """``inside``: what runs a command on the host of each, ``listen``: where each listens."""
        command = [python, __file__, "--worker"]
        names = [f"n{number}" for number in range(members)]
        place = str(folder) if folder is not None else ""
        set_up = [str(int(protected)), str(permits), place, algorithm]
        here = listen or ["127.0.0.1:0"] * size
        self.processes = [
            subprocess.Popen(
                [
                    *(inside[number] if inside else []),
                    *command,
                    f"n{number}",
                    *set_up,
                    here[number],
                    *names,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(size)
        ]
        with self.ended_by_failure():
            addresses = [self.hear(number)["address"] for number in range(size)]
            for one, other in links:
                self.tell(other, connect=addresses[one])
            for number in range(size):
                self.tell(number, ready=sum(number in link for link in links))
            for number in range(size):
                self.hear(number)
            time.sleep(0.3)

    @contextmanager
    def ended_by_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.__exit__()
            raise

    def tell(self, number: int, **order: Any) -> None:
        stdin = self.processes[number].stdin
        assert stdin is not None
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()

    def hear(self, number: int, patience: float = PATIENCE) -> dict[str, Any]:
        stdout = self.processes[number].stdout
        assert stdout is not None
        if not select.select([stdout], [], [], patience)[0]:
            raise Failed(f"client {number} has said nothing for {patience:g} s")
        line = stdout.readline()
        if not line:
            raise Failed(f"client {number} has ended")
        said: dict[str, Any] = json.loads(line)
        if "failed" in said:
            raise Failed(f"client {number}: {said['failed']}")
        return said

    def work(self, who: list[int], **order: Any) -> list[dict[str, Any]]:
        order["begin"] = now() + self.margin
        for number in who:
            self.tell(number, **order)
        return [self.hear(number) for number in who]

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def complete(size: int) -> list[tuple[int, int]]:
    return [(one, other) for other in range(size) for one in range(other)]


def ring(size: int) -> list[tuple[int, int]]:
    return [(number, (number + 1) % size) for number in range(size)]


def star(size: int) -> list[tuple[int, int]]:
    return [(0, number) for number in range(1, size)]


def tree(size: int) -> list[tuple[int, int]]:
    return [((number - 1) // 2, number) for number in range(1, size)]


SHAPES = {"complete": complete, "star": star, "tree": tree, "ring": ring}


# -- judging stamps ------------------------------------------------------------------------


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def handovers(results: list[dict[str, Any]]) -> list[float]:
    """Microseconds from a release to the next entry of somebody who was waiting by then."""
    entries = sorted((got, asked, left) for r in results for asked, got, left in r["stamps"])
    releases = sorted(entry[2] for entry in entries)
    times, place = [], 0
    for got, asked, _ in entries:
        while place + 1 < len(releases) and releases[place + 1] <= got:
            place += 1
        if releases and releases[place] <= got and asked < releases[place]:
            times.append((got - releases[place]) / 1000)
    return times


def most_inside(results: list[dict[str, Any]]) -> int:
    changes = [(got, 1) for r in results for _, got, _ in r["stamps"]]
    changes += [(left, -1) for r in results for _, _, left in r["stamps"]]
    inside = most = 0
    for _, change in sorted(changes):
        inside += change
        most = max(most, inside)
    return most


# -- phases --------------------------------------------------------------------------------


def holder(protected: bool) -> dict[str, Any]:
    """(a) acquire and release where the token rests."""

    async def measure() -> dict[str, Any]:
        secret = SECRET if protected else None
        async with (
            Node("n0", state=None, secret=secret) as a,
            Node("n1", state=None, secret=secret, peers=[a.address]),
        ):
            pool = a.pool("pens", 1, recovery="none")
            while "n1" not in pool._source.peers.near:
                await asyncio.sleep(0.01)
            sent, times = dict(pool._source.adapter.measures.sent), []
            for _ in range(20_000):
                begin = now()
                async with pool.acquire():
                    pass
                times.append((now() - begin) / 1000)
            assert pool._source.adapter.measures.sent == sent, "it sent messages"
            return {"cycle_us_p50": percentile(times, 0.5), "cycle_us_p99": percentile(times, 0.99)}

    return run(measure())


def handover(protected: bool) -> dict[str, Any]:
    """(b) two neighbours, each holding for 5 ms: the machine is idle in between."""
    hop = raw_hop()
    with Fleet(2, [(0, 1)], protected, 1) as fleet:
        times = handovers(fleet.work([0, 1], work=4.0, hold=0.005))
    p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
    return {
        "hop_us": hop,
        "handovers": len(times),
        "us_p50": p50,
        "us_p99": p99,
        "hops_p50": p50 / hop,
        "hops_p99": p99 / hop,
    }


def contended(protected: bool, permits: int, shape: str, size: int = 8) -> dict[str, Any]:
    """(c) every process asks again as soon as it has left."""
    hop = raw_hop()
    with Fleet(size, SHAPES[shape](size), protected, permits) as fleet:
        results = fleet.work(list(range(size)), work=5.0, hold=0)
    counts = [len(result["stamps"]) for result in results]
    entries, times = sum(counts), handovers(results)
    return {
        "hop_us": hop,
        "entries_per_s": entries / 5.0,
        "fair_min_over_max": min(counts) / max(counts),
        "hops_p50": percentile(times, 0.5) / hop,
        "hops_p99": percentile(times, 0.99) / hop,
        "cpu_us_per_entry": sum(result["cpu"] for result in results) / entries * 1e6,
        "messages_per_entry": sum(result["sent"] for result in results) / entries,
        "violations": max(0, most_inside(results) - permits),
    }


def trees(protected: bool, size: int) -> dict[str, Any]:
    """(d) a binary tree whose nodes ask now and then."""
    with Fleet(size, tree(size), protected, 3) as fleet:
        results = fleet.work(list(range(size)), work=4.0, hold=0.02)
    entries = sum(len(result["stamps"]) for result in results)
    waits = [(got - asked) / 1000 for r in results for asked, got, _ in r["stamps"]]
    return {
        "entries": entries,
        "messages_per_entry": sum(result["sent"] for result in results) / entries,
        "cpu_us_per_entry": sum(result["cpu"] for result in results) / entries * 1e6,
        "wait_ms_p50": percentile(waits, 0.5) / 1000,
        "wait_ms_p99": percentile(waits, 0.99) / 1000,
    }


def idle(protected: bool) -> dict[str, Any]:
    """(e) a node with four links, and nobody wants anything."""
    with Fleet(5, star(5), protected, 1) as fleet:
        before = fleet.work([0], cpu=True)[0]
        time.sleep(5.0)
        after = fleet.work([0], cpu=True)[0]
    return {
        "cpu_share_percent": (after["cpu"] - before["cpu"]) / 5.0 * 100,
        "bytes_per_s_of_its_four_links": (after["bytes"] - before["bytes"]) / 5.0,
    }


def phases(protected: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "holder": lambda: holder(protected),
        "handover": lambda: handover(protected),
        "idle": lambda: idle(protected),
    }
    for permits in (1, 3):
        for shape in SHAPES:
            found[f"contended k={permits} {shape}"] = lambda permits=permits, shape=shape: (
                contended(protected, permits, shape)
            )
    for size in (8, 32, 64):
        found[f"trees {size}"] = lambda size=size: trees(protected, size)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", nargs="*", help="the beginnings of the phases' names")
    parser.add_argument("--plain", action="store_true", help="without TLS only")
    parser.add_argument("--tls", action="store_true", help="with TLS only")
    parser.add_argument(
        "--patience", type=float, default=0.0, help="seconds to wait for a quiet machine, per phase"
    )
    parser.add_argument("--out", type=Path, help="write the figures to this file too")
    given = parser.parse_args()
    kinds = [given.tls] if given.plain or given.tls else [False, True]
    results: dict[str, Any] = {}
    for protected in kinds:
        for name, measure in phases(protected).items():
            if given.phase and not any(name.startswith(phase) for phase in given.phase):
                continue
            title = f"{name}{', TLS' if protected else ''}"
            wait_for_quiet(given.patience)
            machine, ours = busy_seconds(), children_seconds()
            results[title] = figures = measure()
            others = busy_seconds() - machine - (children_seconds() - ours)
            figures["others_busy_s"] = others
            rounded = {key: round(value, 2) for key, value in figures.items()}
            print(f"{title}: {json.dumps(rounded)}", flush=True)
    if given.out:
        given.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        name, protected, permits, folder, algorithm, listen, *members = sys.argv[2:]
        run(worker(name, protected == "1", int(permits), folder, algorithm, listen, members))
    else:
        main()
