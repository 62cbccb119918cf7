"""meshlock beside what people use today, phase by phase, judged by one ruler.

Redis (permits as items of a list, BLPOP and RPUSH) and PostgreSQL (advisory locks) are the
quickest of their kind. Each is started on a free loopback port with its data in memory, and
is left out, with the reason, where its server or its Python client is missing:

    apt-get install redis-server postgresql; pip install redis 'psycopg[binary]'

Every client is a process of its own. It notes when it asked, entered and left; hand-overs,
fairness and violations are found from those stamps, whoever made them.

    python benchmarks/peers.py                      # everything, about four minutes
    python benchmarks/peers.py --rounds 9 --scale .4    # short turns, for a machine with other work
    python benchmarks/peers.py --only meshlock "redis tokens" --phase held contended

Phases: uncontended (one client), contended (8, k = 1), held (3 clients, 5 ms each: the machine
is idle in between), semaphore (8, k = 3), crash (the holder is killed: how long until the
waiter enters). A *hop* is one raw TCP message with both ends on one core, an *idle hop* one that
is sent 5 ms after the last, to a process that sleeps; both are measured beside each phase.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import pwd
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from live import (
    Fleet,
    Stint,
    busy_seconds,
    complete,
    handovers,
    most_inside,
    now,
    percentile,
    raw_hop,
    star,
)

LOCK = 4711
"""PostgreSQL knows its advisory locks by number."""


class Missing(Exception):
    """This peer cannot be measured here; the text says why."""


# -- the floor -------------------------------------------------------------------------------


def idle_hop(rounds: int = 200) -> float:
    """Microseconds of one message to a process that has slept for 5 ms, wherever it runs."""
    server = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        link = server.accept()[0]
        while link.recv(64):
            link.sendall(now().to_bytes(8))
        os._exit(0)
    link = socket.create_connection(server.getsockname())
    times = []
    for _ in range(rounds):
        time.sleep(0.005)
        begin = now()
        link.sendall(b"x" * 32)
        times.append((int.from_bytes(link.recv(64)) - begin) / 1000)
    link.close()
    os.waitpid(child, 0)
    return percentile(times, 0.5)


# -- servers ---------------------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def program(name: str) -> str:
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), Path("/usr/sbin")]
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, places)))
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


def need(module: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        raise Missing(f"the Python module {module} is not installed") from None


@contextlib.contextmanager
def running(command: list[str], port: int, **how: Any) -> Iterator[int]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how)
    try:
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    raise Missing(f"{command[0]} does not start") from None
                time.sleep(0.05)
        time.sleep(0.5)
        yield process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


@contextlib.contextmanager
def redis_server(folder: Path) -> Iterator[tuple[int, int]]:
    need("redis")
    port = free_port()
    quiet = ["--save", "", "--appendonly", "no", "--dir", str(folder)]
    command = [program("redis-server"), "--bind", "127.0.0.1", "--port", str(port), *quiet]
    with running(command, port) as pid:
        yield port, pid


@contextlib.contextmanager
def postgresql_server(folder: Path) -> Iterator[tuple[int, int]]:
    need("psycopg")
    initdb, postgres = program("initdb"), program("postgres")
    how: dict[str, Any] = {"cwd": folder}
    if os.getuid() == 0:  # which it refuses to run as
        owner = pwd.getpwnam("postgres")
        how |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    data, port = folder / "data", free_port()
    subprocess.run(
        [initdb, "-D", str(data), "-A", "trust", "-U", "bench", "-N"],
        check=True,
        capture_output=True,
        **how,
    )
    settings = ["listen_addresses=127.0.0.1", "unix_socket_directories="]
    options = [word for setting in settings for word in ("-c", setting)]
    with running([postgres, "-D", str(data), "-p", str(port), *options], port, **how) as pid:
        yield port, pid


def server_seconds(pid: int) -> float:
    """CPU of a server and its children, those that are gone included."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = place.read_text().rpartition(")")[2].split()
            if int(place.parent.name) == pid:
                ticks += sum(map(int, words[11:15]))
            elif int(words[1]) == pid:
                ticks += sum(map(int, words[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


# -- clients of servers, one process each ----------------------------------------------------


def redis_client(port: int, name: str, permits: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import redis

    link = redis.Redis(port=port)
    if link.setnx(f"{name}:made", 1):
        link.rpush(name, *range(permits))
    return lambda: link.blpop([name], 30), lambda: link.rpush(name, 0)


def postgresql_client(
    port: int, name: str, permits: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import psycopg

    where = f"host=127.0.0.1 port={port} user=bench dbname=postgres"
    cursor = psycopg.connect(where, autocommit=True).cursor()
    return (
        lambda: cursor.execute("select pg_advisory_lock(%s)", (LOCK,)),
        lambda: cursor.execute("select pg_advisory_unlock(%s)", (LOCK,)),
    )


CLIENTS = {"redis": redis_client, "postgresql": postgresql_client}


def client(kind: str, port: int, name: str, permits: int) -> None:
    """Obeys the same orders as a node in live.py, and gives the same stamps."""
    acquire, release = CLIENTS[kind](port, name, permits)

    def say(**what: Any) -> None:
        print(json.dumps(what), flush=True)

    say(ready=True)
    for line in sys.stdin:
        order = json.loads(line)
        if "acquire" in order:
            acquire()
            say(got=now())
            continue
        stint = Stint(order)
        while stint.goes_on():
            asked = now()
            acquire()
            got = now()
            if order["hold"]:
                time.sleep(order["hold"])
            left = now()
            release()
            stint.note(asked, got, left)
        say(**stint.result())


class Clients(Fleet):
    """Processes that ask one server."""

    def __init__(self, kind: str, port: int, name: str, size: int, permits: int) -> None:
        command = [sys.executable, __file__, "--client", kind, str(port), name, str(permits)]
        self.processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(size)
        ]
        for number in range(size):
            self.hear(number)
        time.sleep(0.3)


# -- peers: how to make a fleet of each ------------------------------------------------------


class Peer:
    """``fleet(phase, size, permits)`` makes the clients; ``pid`` is the server's, if any."""

    def __init__(self, fleet: Callable[[str, int, int], Fleet], pid: int = 0) -> None:
        self.fleet = fleet
        self.pid = pid

    def server_seconds(self) -> float:
        return server_seconds(self.pid) if self.pid else 0.0


@contextlib.contextmanager
def meshlock_peer(
    folder: Path, links: Callable[[int], list[tuple[int, int]]] = complete, tls: bool = False
) -> Iterator[Peer]:
    yield Peer(lambda phase, size, permits: Fleet(size, links(size), tls, permits))


@contextlib.contextmanager
def leases_peer(folder: Path) -> Iterator[Peer]:
    """A pool that survives crashes; three members, so that two are a majority."""

    def fleet(phase: str, size: int, permits: int) -> Fleet:
        size = max(size, 3)
        made = Fleet(size, complete(size), False, permits, members=3)
        made.work([0], work=0.01, hold=0)  # such a pool takes a while to be born
        return made

    yield Peer(fleet)


@contextlib.contextmanager
def redis_peer(folder: Path) -> Iterator[Peer]:
    with redis_server(folder) as (port, pid):
        yield Peer(lambda phase, size, k: Clients("redis", port, phase, size, k), pid)


@contextlib.contextmanager
def postgresql_peer(folder: Path) -> Iterator[Peer]:
    with postgresql_server(folder) as (port, pid):
        yield Peer(lambda phase, size, k: Clients("postgresql", port, phase, size, k), pid)


PEERS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Peer]]] = {
    "meshlock": meshlock_peer,
    "meshlock star": lambda folder: meshlock_peer(folder, links=star),
    "meshlock leases": leases_peer,
    "meshlock TLS": lambda folder: meshlock_peer(folder, tls=True),
    "redis tokens": redis_peer,
    "postgresql advisory": postgresql_peer,
}

PHASES = {  # clients, permits, seconds of work, seconds each holds
    "uncontended": (1, 1, 2.0, 0.0),
    "contended": (8, 1, 5.0, 0.0),
    "held": (3, 1, 2.5, 0.005),
    "semaphore": (8, 3, 5.0, 0.0),
    "crash": (2, 1, 0.0, 0.0),
}


# -- phases ----------------------------------------------------------------------------------


def measure(peer: Peer, phase: str, scale: float) -> dict[str, Any]:
    size, permits, seconds, hold = PHASES[phase]
    seconds *= scale
    hop = raw_hop()
    sleepy = idle_hop() if hold else 0.0
    with peer.fleet(phase, size, permits) as fleet:
        if phase == "crash":
            return crash(fleet)
        server = peer.server_seconds()
        machine, started = busy_seconds(), time.monotonic()
        results = fleet.work(list(range(size)), work=seconds, hold=hold)
        server = peer.server_seconds() - server
        busy = (busy_seconds() - machine) / (time.monotonic() - started)
    ours = sum(result["cpu"] for result in results) + server
    counts = [len(result["stamps"]) for result in results]
    entries, times = sum(counts), handovers(results)
    cycles = [
        (then - asked) / 1000
        for result in results
        for (asked, *_), (then, *_) in zip(result["stamps"], result["stamps"][1:], strict=False)
    ]
    found = {
        "entries_per_s": entries / seconds,
        "fair_min_over_max": min(counts) / max(counts),
        "cpu_us_per_entry": ours / entries * 1e6,
        "cycle_us_p50": percentile(cycles, 0.5),
        "hop_us": hop,
        "violations": max(0, most_inside(results) - permits),
        "others_busy_cores": busy - ours / seconds,
    }
    if times and permits == 1:
        p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
        found |= {"handover_us_p50": p50, "handover_us_p99": p99, "handover_hops": p50 / hop}
        if hold:
            found |= {"idle_hop_us": sleepy, "handover_idle_hops": p50 / sleepy}
    return found


def crash(fleet: Fleet, patience: float = 10.0) -> dict[str, Any]:
    """Seconds from the death of the holder to the entry of the waiter."""
    fleet.work([0], acquire=True)
    fleet.tell(1, acquire=True)
    time.sleep(1.0)
    begin = now()
    fleet.processes[0].kill()
    if not select.select([fleet.processes[1].stdout], [], [], patience)[0]:
        return {"recovered": False, "waited_s": patience}
    return {"recovered": True, "seconds": (fleet.hear(1)["got"] - begin) / 1e9}


def summarise(results: list[dict[str, Any]]) -> None:
    """The median of each figure over all rounds."""
    for phase, name in dict.fromkeys((row["phase"], row["peer"]) for row in results):
        rows = [row for row in results if (row["phase"], row["peer"]) == (phase, name)]
        medians = {
            key: round(statistics.median(row[key] for row in rows if key in row), 3)
            for key in rows[0]
            if isinstance(rows[0][key], float)
        }
        print(f"median of {len(rows)}: {phase}, {name}: {json.dumps(medians)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--phase", nargs="*", default=list(PHASES), choices=list(PHASES))
    parser.add_argument("--rounds", type=int, default=1, help="so often all over again")
    parser.add_argument("--scale", type=float, default=1.0, help="times the length of a phase")
    parser.add_argument("--out", type=Path, help="write the figures to this file too")
    given = parser.parse_args()
    results: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        peers: dict[str, Peer] = {}
        for name in given.only:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
            folder.chmod(0o755)
            try:
                peers[name] = stack.enter_context(PEERS[name](folder))
            except Missing as reason:
                print(f"{name}: left out, {reason}", flush=True)
        for round_ in range(given.rounds):
            for phase in given.phase:
                for name, peer in peers.items():
                    if name.startswith("postgresql") and phase == "semaphore":
                        continue  # an advisory lock has one permit
                    figures = measure(peer, phase, given.scale)
                    results.append({"peer": name, "phase": phase, "round": round_, **figures})
                    rounded = {
                        key: round(value, 3) if isinstance(value, float) else value
                        for key, value in figures.items()
                    }
                    print(f"{phase}, {name}: {json.dumps(rounded)}", flush=True)
    if given.rounds > 1:
        summarise(results)
    if given.out:
        given.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        client(sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
    else:
        main()
