"""meshlock beside what people use today, phase by phase, judged by one ruler.

Redis (permits as items of a list, BLPOP and RPUSH), PostgreSQL (advisory locks) and etcd (its lock
service, by HTTP) are started on free loopback ports with their data in memory. What cannot be had
is a row that says why, and so is what fails; the rest goes on.

    apt-get install redis-server postgresql etcd-server; pip install redis 'psycopg[binary]'

meshlock is as users have it: permits under leases that a majority of three members renews, promises
kept in a folder. *TLS* adds what protects links elsewhere than on loopback, *compiled* is the same
from the compiled wheel (`make .venv-compiled/done`), *jiang* runs that algorithm instead of direct,
*agent* is three agents whose clients are programs (`meshlock.connect`), *no leases* is the pool of
the papers.

Every client is a process of its own. Those that are nodes have entered once before it counts: a
pool takes a lease to be born, and a node up to a second to take part. A client notes when it asked,
entered and left; hand-overs, fairness and violations are found from those stamps, of whatever
peer.

    python benchmarks/peers.py                      # everything once, about five minutes
    python benchmarks/peers.py --rounds 3 --docs    # medians; tables and picture into the docs
    python benchmarks/peers.py --only meshlock redis --phase held contended

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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import expovariate
from typing import Any

from live import (
    PATIENCE,
    Failed,
    Fleet,
    Stint,
    busy_seconds,
    complete,
    handovers,
    most_inside,
    now,
    percentile,
    raw_hop,
)

ROOT = Path(__file__).parents[1]
COMPILED = ROOT / ".venv-compiled" / "bin" / "python"
"""Where the compiled wheel is installed, if it is."""

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


@contextlib.contextmanager
def etcd_server(folder: Path) -> Iterator[tuple[int, int]]:
    port, other = free_port(), free_port()
    here, there = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{other}"
    command = [program("etcd"), "--data-dir", str(folder / "data"), "--log-level", "error"]
    command += ["--listen-client-urls", here, "--advertise-client-urls", here]
    command += ["--listen-peer-urls", there, "--initial-advertise-peer-urls", there]
    command += ["--initial-cluster", f"default={there}"]
    with running(command, port) as pid:
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


def redis_client(
    where: str, name: str, permits: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import redis

    host, port = where.split(":")
    link = redis.Redis(host=host, port=int(port), socket_timeout=None)
    if link.setnx(f"{name}:made", 1):
        link.rpush(name, *range(permits))

    def acquire() -> None:
        while link.blpop([name], 30) is None:
            pass

    return acquire, lambda: link.rpush(name, 0)


def postgresql_client(
    where: str, name: str, permits: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import psycopg

    host, port = where.split(":")
    words = f"host={host} port={port} user=bench dbname=postgres"
    cursor = psycopg.connect(words, autocommit=True).cursor()
    return (
        lambda: cursor.execute("select pg_advisory_lock(%s)", (LOCK,)),
        lambda: cursor.execute("select pg_advisory_unlock(%s)", (LOCK,)),
    )


def etcd_client(where: str, name: str, permits: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    from base64 import b64encode
    from http.client import HTTPConnection

    link = HTTPConnection(where)
    lock = b64encode(name.encode()).decode()

    def ask(what: str, **body: Any) -> dict[str, Any]:
        link.request("POST", f"/v3/{what}", json.dumps(body))
        return json.loads(link.getresponse().read())  # type: ignore[no-any-return]

    lease = ask("lease/grant", TTL=60)["ID"]
    keys: list[str] = []
    return (
        lambda: keys.append(ask("lock/lock", name=lock, lease=lease)["key"]),
        lambda: ask("lock/unlock", key=keys.pop()),
    )


def zookeeper_client(
    where: str, name: str, permits: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    from kazoo.client import KazooClient

    link = KazooClient(hosts=where)
    link.start()
    lock = link.Lock(f"/{name}") if permits == 1 else link.Semaphore(f"/{name}", permits)
    return lock.acquire, lock.release


def agent_client(
    socket: str, name: str, permits: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    import meshlock

    pool = meshlock.connect(socket).pool("pens")
    grants: list[Any] = []
    return lambda: grants.append(pool.acquire()), lambda: grants.pop().release()


CLIENTS: dict[str, Callable[[str, str, int], tuple[Callable[[], Any], Callable[[], Any]]]] = {
    "redis": redis_client,
    "postgresql": postgresql_client,
    "etcd": etcd_client,
    "zookeeper": zookeeper_client,
    "agent": agent_client,
}


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def client(kind: str, where: str, name: str, permits: int) -> None:
    """Obeys the same orders as a node in live.py, and gives the same stamps."""
    try:
        obey(*CLIENTS[kind](where, name, permits))
    except Exception as error:  # whatever a client library raises is one row of the table
        say(failed=f"{type(error).__name__}: {error}")


def obey(acquire: Callable[[], Any], release: Callable[[], Any]) -> None:
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
            if stint.think:
                time.sleep(expovariate(1 / stint.think))
        say(**stint.result())


class Clients(Fleet):
    """Processes that ask servers: one for all, or each in turn the next of them."""

    def __init__(
        self,
        kind: str,
        servers: list[Any],
        name: str,
        size: int,
        permits: int,
        inside: Sequence[list[str]] = (),
    ) -> None:
        command = [sys.executable, __file__, "--client", kind]
        self.processes = [
            subprocess.Popen(
                [
                    *(inside[number] if inside else []),
                    *command,
                    str(servers[number % len(servers)]),
                    name,
                    str(permits),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for number in range(size)
        ]
        with self.ended_by_failure():
            for number in range(size):
                self.hear(number)
            time.sleep(0.3)


class Agents(Clients):
    """Three agents that are linked, and clients on them."""

    def __init__(self, folder: Path, size: int, permits: int) -> None:
        ports = [free_port() for _ in range(3)]
        self.agents = []
        for number, port in enumerate(ports):
            words = ["agent", "--name", f"n{number}", "--listen", f"127.0.0.1:{port}"]
            words += [word for other in ports[:number] for word in ("--peer", f"127.0.0.1:{other}")]
            words += [
                "--socket",
                str(folder / f"{number}.sock"),
                "--state",
                str(folder / f"n{number}"),
            ]
            words += ["--members", "n0,n1,n2", "--pool", f"pens={permits}", "--log-level", "error"]
            self.agents.append(subprocess.Popen([sys.executable, "-m", "meshlock", *words]))
        try:
            sockets = [folder / f"{number}.sock" for number in range(3)]
            end = time.monotonic() + PATIENCE
            while not all(place.is_socket() for place in sockets):
                if time.monotonic() > end or any(agent.poll() is not None for agent in self.agents):
                    raise Failed("an agent does not start")
                time.sleep(0.05)
            super().__init__("agent", sockets, "pens", size, permits)
        except BaseException:
            self.end_agents()
            raise
        self.work([0], work=0.01, hold=0)

    def server_seconds(self) -> float:
        return sum(server_seconds(agent.pid) for agent in self.agents)

    def end_agents(self) -> None:
        for agent in self.agents:
            agent.kill()
            agent.wait()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.end_agents()


# -- peers: how to make a fleet of each ------------------------------------------------------


class Peer:
    """``fleet(phase, size, permits)`` makes the clients; ``pid`` is the server's, if any."""

    def __init__(self, fleet: Callable[[str, int, int], Fleet], pid: int = 0) -> None:
        self.fleet = fleet
        self.pid = pid

    def server_seconds(self, fleet: Fleet) -> float:
        if isinstance(fleet, Agents):
            return fleet.server_seconds()
        return server_seconds(self.pid) if self.pid else 0.0


def compiled_python() -> str:
    where = "import meshlock.live.pools.adapter as adapter, uvloop; print(adapter.__file__)"
    if COMPILED.exists():
        done = subprocess.run([COMPILED, "-c", where], capture_output=True, text=True, check=False)
        if done.stdout.strip().endswith(".so"):
            return str(COMPILED)
    raise Missing("no compiled wheel is installed here: make .venv-compiled/done")


@contextlib.contextmanager
def leases_peer(
    folder: Path, tls: bool = False, compiled: bool = False, algorithm: str = ""
) -> Iterator[Peer]:
    """A pool that survives crashes; three members, so that two are a majority."""
    python = compiled_python() if compiled else sys.executable

    def fleet(phase: str, size: int, permits: int) -> Fleet:
        size = max(size, 3)
        place = Path(tempfile.mkdtemp(dir=folder))
        made = Fleet(size, complete(size), tls, permits, 3, place, python, algorithm)
        # such a pool takes a while to be born, and a node to take part
        made.work(list(range(size)), work=0.01, hold=0)
        return made

    yield Peer(fleet)


@contextlib.contextmanager
def agent_peer(folder: Path) -> Iterator[Peer]:
    yield Peer(lambda phase, size, k: Agents(Path(tempfile.mkdtemp(dir=folder)), size, k))


@contextlib.contextmanager
def bare_peer(folder: Path) -> Iterator[Peer]:
    yield Peer(lambda phase, size, permits: Fleet(size, complete(size), False, permits))


def served(kind: str, server: Callable[[Path], Any]) -> Callable[[Path], Any]:
    @contextlib.contextmanager
    def peer(folder: Path) -> Iterator[Peer]:
        with server(folder) as (port, pid):
            yield Peer(
                lambda phase, size, k: Clients(kind, [f"127.0.0.1:{port}"], phase, size, k), pid
            )

    return peer


PEERS: dict[str, Callable[[Path], contextlib.AbstractContextManager[Peer]]] = {
    "meshlock": leases_peer,
    "meshlock TLS": lambda folder: leases_peer(folder, tls=True),
    "meshlock compiled": lambda folder: leases_peer(folder, compiled=True),
    "meshlock compiled TLS": lambda folder: leases_peer(folder, tls=True, compiled=True),
    "meshlock compiled jiang": lambda folder: leases_peer(folder, compiled=True, algorithm="jiang"),
    "meshlock agent": agent_peer,
    "meshlock no leases": bare_peer,
    "redis": served("redis", redis_server),
    "postgresql": served("postgresql", postgresql_server),
    "etcd": served("etcd", etcd_server),
}

SERVERS = ("redis", "postgresql", "etcd")
ONE_PERMIT = ("postgresql", "etcd")
"""Whose locks have no more."""

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
        server = peer.server_seconds(fleet)
        machine, started = busy_seconds(), time.monotonic()
        results = fleet.work(list(range(size)), work=seconds, hold=hold)
        server = peer.server_seconds(fleet) - server
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


# -- tables ----------------------------------------------------------------------------------

COLUMNS = {  # of the table that is printed: key, heading, format
    "entries_per_s": ("entries/s", "{:,.0f}"),
    "cpu_us_per_entry": ("CPU us", "{:,.0f}"),
    "handover_us_p50": ("hand-over p50", "{:,.0f} us"),
    "handover_us_p99": ("p99", "{:,.0f} us"),
    "handover_hops": ("hops", "{:.0f}"),
    "fair_min_over_max": ("fairness", "{:.2f}"),
    "cycle_us_p50": ("cycle p50", "{:,.0f} us"),
    "seconds": ("recovers", "{:.2f} s"),
    "others_busy_cores": ("others", "{:.1f} cores"),
}
LINE = "{:<12}{:<22}" + "{:>14}" * len(COLUMNS)

ROWS = [  # of the table in the documentation
    ("8 clients, k = 1: entries per second", "contended", "entries_per_s"),
    ("CPU per entry, server included", "contended", "cpu_us_per_entry"),
    ("hand-over to a waiter, p50", "contended", "handover_us_p50"),
    ("... p99", "contended", "handover_us_p99"),
    ("... in raw hops", "contended", "handover_hops"),
    ("fairness, fewest over most entries", "contended", "fair_min_over_max"),
    ("3 clients that hold for 5 ms: hand-over p50", "held", "handover_us_p50"),
    ("8 clients, k = 3: entries per second", "semaphore", "entries_per_s"),
    ("CPU per entry", "semaphore", "cpu_us_per_entry"),
    ("fairness", "semaphore", "fair_min_over_max"),
    ("one client: cycle", "uncontended", "cycle_us_p50"),
    ("the holder is killed: the waiter enters after", "crash", "seconds"),
]
UNITS = {"cpu_us_per_entry": "{:,.0f} us"}
LESS_IS_BETTER = ("us", "hops", "seconds")
PICTURE = ROOT / "docs" / "pictures" / "peers.svg"


def line(phase: str, name: str, row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{phase:<12}{name:<22}  failed: {row['failed']}"
    if "waited_s" in row:
        return f"{phase:<12}{name:<22}  nobody has entered for {row['waited_s']:g} s"
    cells = [form.format(row[key]) if key in row else "" for key, (_, form) in COLUMNS.items()]
    bad = f"  {row['violations']} TOO MANY INSIDE" if row.get("violations") else ""
    return LINE.format(phase, name, *cells) + bad


class Figures:
    """What was measured, and why what is missing is."""

    def __init__(self, names: list[str]) -> None:
        self.rows: list[dict[str, Any]] = []
        self.missing: dict[str, str] = {}
        self.names = names
        self.load = os.getloadavg()[0]

    def median(self, name: str, phase: str, key: str) -> float | None:
        rows = [row for row in self.rows if (row["peer"], row["phase"]) == (name, phase)]
        values = [row[key] for row in rows if key in row]
        return statistics.median(values) if values else None

    def cell(self, name: str, phase: str, key: str) -> str:
        value = self.median(name, phase, key)
        if value is not None:
            return UNITS.get(key, COLUMNS[key][1]).format(value)
        if name in self.missing:
            return "not had here"
        if phase == "semaphore" and name in ONE_PERMIT:
            return "one permit only"
        rows = [row for row in self.rows if (row["peer"], row["phase"]) == (name, phase)]
        if any("waited_s" in row for row in rows):
            return "never"
        return "failed" if rows else ""

    def best(self, phase: str, key: str, names: Sequence[str]) -> str | None:
        """Of those: who has the best figure."""
        values = {name: self.median(name, phase, key) for name in names if name in self.names}
        known = {name: value for name, value in values.items() if value is not None}
        if not known:
            return None
        less = any(word in key for word in LESS_IS_BETTER) and key != "entries_per_s"
        return min(known, key=lambda name: known[name] if less else -known[name])

    def busy(self) -> list[float]:
        return sorted(row["others_busy_cores"] for row in self.rows if "others_busy_cores" in row)

    def state_of_the_machine(self) -> str:
        busy = self.busy() or [0.0]
        usual = max(0.0, statistics.median(busy))
        return (
            f"{os.cpu_count()} cores, load {self.load:.1f} before the run; other work took "
            f"{usual:.1f} cores (up to {busy[-1]:.1f}) while it was measured"
        )

    def table(self, rows: list[tuple[str, str, str]]) -> list[str]:
        lines = [
            "| | " + " | ".join(self.names) + " |",
            "|---" * (len(self.names) + 1) + "|",
        ]
        for title, phase, key in rows:
            best = self.best(phase, key, self.names)
            cells = [self.cell(name, phase, key) for name in self.names]
            cells = [
                f"**{cell}**" if name == best else cell
                for name, cell in zip(self.names, cells, strict=True)
            ]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
        return lines

    def ratios(self) -> list[str]:
        """Ours as multiples of the best server's."""
        ours = [name for name in self.names if name.startswith("meshlock")]
        lines = ["", "| multiple of the best server's | " + " | ".join(ours) + " |"]
        lines.append("|---" * (len(ours) + 1) + "|")
        for title, phase, key in ROWS[:4] + ROWS[6:9]:
            server = self.best(phase, key, SERVERS)
            if server is None:
                continue
            theirs = self.median(server, phase, key) or 1.0
            values = [self.median(name, phase, key) for name in ours]
            cells = ["" if value is None else f"{value / theirs:.2f}" for value in values]
            lines.append(f"| {title} ({server}) | " + " | ".join(cells) + " |")
        return lines

    def markdown(self, rounds: int, scale: float, picture: str) -> str:
        turns = "one turn" if rounds == 1 else f"medians of {rounds} turns"
        python = f"Python {sys.version.split()[0]}"
        lines = [
            f"One run, the peers in turn, every client a process, {turns} at scale {scale:g}. "
            f"{self.state_of_the_machine()}. {python}.",
            "",
            *self.table(ROWS),
            *self.ratios(),
        ]
        lines += [f"\n{name}: {reason}." for name, reason in self.missing.items()]
        return "\n".join([*lines, "", f"![entries per second and CPU per entry]({picture})"])

    def draw(self, path: Path) -> None:
        import matplotlib

        matplotlib.use("svg")
        import matplotlib.pyplot as pyplot

        panels = [
            ("contended", "entries_per_s", "8 clients, k = 1: entries/s"),
            ("semaphore", "entries_per_s", "8 clients, k = 3: entries/s"),
            ("contended", "cpu_us_per_entry", "k = 1: CPU per entry, us"),
        ]
        figure, axes = pyplot.subplots(1, len(panels), figsize=(12, 3.2), layout="constrained")
        for axis, (phase, key, title) in zip(axes, panels, strict=True):
            values = [self.median(name, phase, key) or 0.0 for name in self.names]
            colours = ["tab:blue" if name.startswith("mesh") else "tab:gray" for name in self.names]
            bars = axis.barh(self.names, values, color=colours)
            axis.bar_label(bars, fmt="{:,.0f}", padding=2, fontsize=8)
            axis.invert_yaxis()
            axis.margins(x=0.15)
            axis.set_title(title, fontsize=10)
            axis.tick_params(labelsize=8)
            if axis is not axes[0]:
                axis.set_yticklabels([])
        figure.savefig(path)

    def write_docs(self, rounds: int, scale: float) -> None:
        for page in sorted((ROOT / "docs").rglob("*.md")):
            picture = os.path.relpath(PICTURE, page.parent)
            replace_between_marks(page, self.markdown(rounds, scale, picture))
        self.draw(PICTURE)


def replace_between_marks(page: Path, text: str, name: str = "peers") -> None:
    """If there are any on that page."""
    begin, last = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    head, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    _, end, tail = rest.partition(last)
    if mark and end:
        page.write_text(f"{head}{begin}{text}\n{last}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--phase", nargs="*", default=list(PHASES), choices=list(PHASES))
    parser.add_argument("--rounds", type=int, default=1, help="so often all over again")
    parser.add_argument("--scale", type=float, default=1.0, help="times the length of a phase")
    parser.add_argument("--out", type=Path, help="write the figures to this file too")
    parser.add_argument("--docs", action="store_true", help="write into docs/, and its picture")
    given = parser.parse_args()
    figures = Figures(given.only)
    with contextlib.ExitStack() as stack:
        peers: dict[str, Peer] = {}
        for name in given.only:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
            folder.chmod(0o755)
            try:
                peers[name] = stack.enter_context(PEERS[name](folder))
            except Exception as reason:  # whatever it is, the others can be had
                figures.missing[name] = str(reason) or type(reason).__name__
                print(f"{'':<12}{name:<22}  left out: {figures.missing[name]}", flush=True)
        print(LINE.format("", "", *[heading for heading, _ in COLUMNS.values()]), flush=True)
        for round_ in range(given.rounds):
            for phase in given.phase:
                for name, peer in peers.items():
                    if phase == "semaphore" and name in ONE_PERMIT:
                        continue
                    if phase == "crash" and round_ > 0:
                        continue  # it takes long, and says the same every time
                    row: dict[str, Any] = {"peer": name, "phase": phase, "round": round_}
                    try:
                        row |= measure(peer, phase, given.scale)
                    except Exception as error:  # one row; the rest goes on
                        row["failed"] = str(error) or type(error).__name__
                    figures.rows.append(row)
                    print(line(phase, name, row), flush=True)
                    if given.out:
                        given.out.write_text(json.dumps(figures.rows, indent=2) + "\n")
    print(figures.state_of_the_machine())
    if given.rounds > 1:
        print(figures.markdown(given.rounds, given.scale, str(PICTURE)))
    if given.docs:
        figures.write_docs(given.rounds, given.scale)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        client(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        main()
