"""meshlock and its peers across a network: a host for each client, and hosts for the servers.

Hosts are network namespaces, joined by a switch in user space (lan_switch.c) that delays every
frame. A client of a server is alone on its host; the servers have hosts of their own: Redis and
PostgreSQL one, etcd and ZooKeeper three each, because only three survive a crash as meshlock does.
What is not installed is left out, with the reason. Needs root, iproute2, a C compiler and TAP
devices.

    apt-get install redis-server postgresql etcd-server zookeeper
    pip install redis 'psycopg[binary]' kazoo
    sudo python benchmarks/lan.py                       # all delays, 8 hosts: half an hour
    sudo python benchmarks/lan.py --delay 0.5 --k 1     # a part
    sudo python benchmarks/lan.py --hosts 24 --docs     # tables and picture into the docs

Workloads: *contended*, each client asks again at once; *now and then*, each thinks between two
requests for 40 delays on average; *host lost*, the host of the holder is cut off and all on it
killed: how long until the client that waits enters. What counts begins when all have been at work
for a while: in the first milliseconds of a race one client enters many times before the request of
another has arrived. Bytes and frames are those that the switch delivered.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from peers import COMPILED, ROOT, Clients, Missing, need, program, replace_between_marks

from live import Failed, Fleet, complete, handovers, most_inside, now, percentile

PREFIX = f"lan{os.getpid() % 10000}h"
NET = "10.77.0"
DELAYS = (0.1, 0.5, 5.0, 50.0)
PORT = 7400
PICTURE = ROOT / "docs" / "pictures" / "lan.svg"


def ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], check=check, capture_output=True)


class Host:
    def __init__(self, number: int) -> None:
        self.number = number
        self.address = f"{NET}.{number + 1}"
        self.inside = ["ip", "netns", "exec", f"{PREFIX}{number}"]

    def waits_for(self, host: Host, port: int) -> None:
        """Until that host accepts connections there."""
        code = (
            "import socket, sys, time\n"
            "for _ in range(400):\n"
            "    try: socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)\n"
            "    except OSError: time.sleep(0.1)\n"
            "    else: sys.exit()\n"
            "sys.exit(1)"
        )
        words = [*self.inside, sys.executable, "-c", code, host.address, str(port)]
        if subprocess.run(words, check=False).returncode:
            raise Missing(f"nothing accepts connections at port {port}")


class Lan:
    """Hosts on one switch, made on entering and removed on leaving."""

    def __init__(self, size: int, folder: Path) -> None:
        self.hosts = [Host(number) for number in range(size)]
        self.program = folder / "lan_switch"

    def __enter__(self) -> Lan:
        source = Path(__file__).with_name("lan_switch.c")
        subprocess.run(["cc", "-O2", "-o", str(self.program), str(source)], check=True)
        self.switch = subprocess.Popen(
            [str(self.program), PREFIX, str(len(self.hosts))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.switch.stdout is not None
        if self.switch.stdout.readline() != "ready\n":
            raise SystemExit("The switch does not start: it needs root and /dev/net/tun.")
        for host in self.hosts:
            name = f"{PREFIX}{host.number}"
            ip("netns", "add", name)
            ip("link", "set", name, "netns", name)
            ip("-n", name, "addr", "add", f"{host.address}/24", "dev", name)
            for device in (name, "lo"):
                ip("-n", name, "link", "set", device, "up")
        return self

    def __exit__(self, *_: object) -> None:
        self.switch.kill()
        self.switch.wait()
        for host in self.hosts:
            ip("netns", "del", f"{PREFIX}{host.number}", check=False)

    def order(self, line: str) -> tuple[int, int]:
        """Frames and bytes delivered so far."""
        assert self.switch.stdin is not None and self.switch.stdout is not None
        self.switch.stdin.write(line + "\n")
        self.switch.stdin.flush()
        frames, size = self.switch.stdout.readline().split()
        return int(frames), int(size)

    def shape(self, delay: float, jitter: float, loss: float, mbit: float) -> None:
        """Milliseconds, milliseconds, share of frames, megabits per second and host."""
        self.order(f"shape {delay * 1e3:.0f} {jitter * 1e3:.0f} {loss * 1e6:.0f} {mbit * 1e3:.0f}")


# -- servers on hosts of their own -------------------------------------------------------------


class Server:
    """``hosts`` run it with these commands; clients connect to ``where``, each to its own."""

    def __init__(self, kind: str, hosts: list[Host], port: int, permits: tuple[int, ...]) -> None:
        self.kind = kind
        self.hosts = hosts
        self.port = port
        self.permits = permits
        self.processes: list[subprocess.Popen[bytes]] = []

    def run(self, host: Host, *words: str, **how: Any) -> None:
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.processes.append(subprocess.Popen([*host.inside, *words], **quiet, **how))

    def where(self) -> list[str]:
        places = [f"{host.address}:{self.port}" for host in self.hosts]
        return [",".join(places)] if self.kind == "zookeeper" else places

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def redis(hosts: list[Host], folder: Path) -> Server:
    need("redis")
    server = Server("redis", hosts[:1], 6379, (1, 3))
    words = ["--bind", "0.0.0.0", "--protected-mode", "no", "--save", "", "--appendonly", "no"]
    server.run(hosts[0], program("redis-server"), *words, "--dir", str(folder))
    return server


def postgresql(hosts: list[Host], folder: Path) -> Server:
    need("psycopg")
    data, user = folder / "data", ["setpriv", "--reuid=postgres", "--regid=postgres"]
    user.append("--clear-groups")
    subprocess.run(["chown", "postgres", str(folder)], check=True)
    words = [*user, program("initdb"), "-D", str(data), "-A", "trust", "-U", "bench", "-N"]
    subprocess.run(words, check=True, capture_output=True)
    with (data / "pg_hba.conf").open("a", encoding="utf-8") as file:
        file.write(f"host all all {NET}.0/24 trust\n")
    server = Server("postgresql", hosts[:1], 5432, (1,))
    settings = ["-c", "listen_addresses=*", "-c", "unix_socket_directories="]
    server.run(hosts[0], *user, program("postgres"), "-D", str(data), *settings)
    return server


def etcd(hosts: list[Host], folder: Path) -> Server:
    server = Server("etcd", hosts, 2379, (1,))
    cluster = ",".join(f"e{host.number}=http://{host.address}:2380" for host in hosts)
    for host in hosts:
        peer, client = f"http://{host.address}:2380", f"http://{host.address}:2379"
        words = ["--name", f"e{host.number}", "--data-dir", str(folder / f"e{host.number}")]
        words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        words += ["--listen-client-urls", client, "--advertise-client-urls", client]
        words += ["--initial-cluster", cluster, "--log-level", "error"]
        words += ["--heartbeat-interval", "300", "--election-timeout", "3000"]
        server.run(host, program("etcd"), *words)
    return server


def zookeeper(hosts: list[Host], folder: Path) -> Server:
    need("kazoo")
    jars = "/usr/share/java/*:/etc/zookeeper/conf"
    java, main = program("java"), "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    if not list(Path("/usr/share/java").glob("zookeeper*.jar")):
        raise Missing("zookeeper is not installed")
    server = Server("zookeeper", hosts, 2181, (1, 3))
    for number, host in enumerate(hosts, start=1):
        place = folder / f"z{number}"
        place.mkdir()
        (place / "myid").write_text(f"{number}\n")
        lines = ["tickTime=2000", "initLimit=10", "syncLimit=5", "clientPort=2181"]
        lines += [f"dataDir={place}", "admin.enableServer=false", "maxClientCnxns=0"]
        lines += [f"server.{n}={h.address}:2888:3888" for n, h in enumerate(hosts, start=1)]
        (place / "zoo.cfg").write_text("\n".join(lines) + "\n")
        server.run(host, java, "-Xmx256m", "-cp", jars, main, str(place / "zoo.cfg"))
    return server


SERVERS = {"redis": redis, "postgresql": postgresql, "etcd": etcd, "zookeeper": zookeeper}


@contextlib.contextmanager
def running(name: str, hosts: list[Host], client: Host, folder: Path) -> Iterator[Server]:
    place = Path(tempfile.mkdtemp(dir=folder))
    place.chmod(0o755)
    server = SERVERS[name](hosts, place)
    try:
        for host in server.hosts:
            client.waits_for(host, server.port)
        time.sleep(2 if len(server.hosts) == 1 else 8)
        yield server
    finally:
        server.end()


# -- fleets ------------------------------------------------------------------------------------

OURS = {  # name: python, algorithm
    "meshlock": ("", ""),
    "meshlock compiled": ("compiled", ""),
    "meshlock compiled jiang": ("compiled", "jiang"),
}
"""All with TLS: without it meshlock links nodes of one machine only. The servers have none."""


def fleet(name: str, server: Server | None, clients: list[Host], permits: int, at: Path) -> Fleet:
    inside = [host.inside for host in clients]
    if server is not None:
        return Clients(server.kind, server.where(), f"k{permits}", len(clients), permits, inside)
    flavour, algorithm = OURS[name]
    if flavour and not COMPILED.exists():
        raise Missing("no compiled wheel is installed here: make .venv-compiled/done")
    python = str(COMPILED) if flavour else sys.executable
    size, folder = len(clients), Path(tempfile.mkdtemp(dir=at))
    listen = [f"{host.address}:{PORT}" for host in clients]
    made = Fleet(size, complete(size), True, permits, 3, folder, python, algorithm, inside, listen)
    made.work(list(range(size)), work=0.01, hold=0)
    return made


def measure(fleet: Fleet, lan: Lan, delay: float, permits: int, think: float) -> dict[str, Any]:
    size, seconds = len(fleet.processes), 5.0 if delay < 20 else 15.0
    fleet.margin = int(max(0.3e9, 30 * delay * 1e6))
    frames, sent = lan.order("count")
    begin = now()
    results = fleet.work(list(range(size)), work=seconds, hold=0, think=think)
    span = (now() - begin) / 1e9
    frames_then, sent_then = lan.order("count")
    counts = [len(result["stamps"]) for result in results]
    entries, times = sum(counts), handovers(results)
    waits = [(got - asked) / 1e6 for result in results for asked, got, _ in result["stamps"]]
    found = {
        "entries_per_s": entries / seconds,
        "fairness": min(counts) / max(counts) if max(counts) else 0.0,
        "wait_ms": percentile(waits, 0.5),
        "frames_per_entry": (frames_then - frames) / span / (entries / seconds or 1),
        "bytes_per_entry": (sent_then - sent) / span / (entries / seconds or 1),
        "violations": max(0, most_inside(results) - permits),
    }
    if times:
        found["handover_ms"] = percentile(times, 0.5) / 1000
    return found


def host_lost(fleet: Fleet, lan: Lan, holder: Host, patience: float = 90.0) -> dict[str, Any]:
    """The holder's host is cut off, and all on it is killed: when does the waiter enter?"""
    fleet.work([0], acquire=True)
    fleet.tell(1, acquire=True)
    time.sleep(3.0)
    begin = now()
    lan.order(f"cut {holder.number}")
    fleet.processes[0].kill()
    try:
        return {"recovers_s": (fleet.hear(1, patience)["got"] - begin) / 1e9}
    except Failed:
        return {"waited_s": patience}
    finally:
        lan.order(f"heal {holder.number}")


# -- tables ------------------------------------------------------------------------------------

COLUMNS = {
    "entries_per_s": ("entries/s", "{:,.0f}"),
    "handover_ms": ("hand-over ms", "{:.2f}"),
    "fairness": ("fairness", "{:.2f}"),
    "wait_ms": ("wait ms", "{:.1f}"),
    "frames_per_entry": ("frames", "{:.1f}"),
    "bytes_per_entry": ("bytes", "{:,.0f}"),
    "recovers_s": ("recovers s", "{:.1f}"),
}


def heading(row: dict[str, Any]) -> str:
    return f"{row['hosts']} hosts, {row['delay']:g} ms, k = {row['k']}, {row['workload']}"


def cells(row: dict[str, Any]) -> list[str]:
    return [form.format(row[key]) if key in row else "" for key, (_, form) in COLUMNS.items()]


def medians(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for all turns of the same thing."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((heading(row), row["peer"]), []).append(row)
    return [
        turns[0]
        | {
            key: statistics.median([turn[key] for turn in turns if key in turn])
            for key in COLUMNS
            if any(key in turn for turn in turns)
        }
        for turns in groups.values()
    ]


def table(rows: list[dict[str, Any]], missing: dict[str, str], turns: int) -> str:
    lines = [
        f"Python {sys.version.split()[0]}, {os.cpu_count()} cores for all hosts and the switch, "
        f"{'one turn' if turns == 1 else f'medians of {turns} turns'}. Delays are one way. "
        "*Frames* and *bytes* are those per entry on the network. meshlock's links have TLS, the "
        "servers' have not.",
        "",
    ]
    for title in dict.fromkeys(heading(row) for row in rows):
        shown = [row for row in rows if heading(row) == title]
        keys = [key for key in COLUMNS if any(key in row for row in shown)]
        lines.append(f"| {title} | " + " | ".join(COLUMNS[key][0] for key in keys) + " |")
        lines.append("|---" * (len(keys) + 1) + "|")
        for row in shown:
            told = "failed" if "failed" in row else "never" if "waited_s" in row else ""
            values = [COLUMNS[key][1].format(row[key]) if key in row else told for key in keys]
            lines.append(f"| {row['peer']} | " + " | ".join(values) + " |")
        lines.append("")
    return "\n".join([*lines, *[f"{name}: {reason}." for name, reason in missing.items()]])


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as pyplot

    contended = [row for row in rows if row["workload"] == "contended" and "entries_per_s" in row]
    permits = sorted({row["k"] for row in contended})
    figure, axes = pyplot.subplots(1, len(permits), figsize=(10, 3.4), layout="constrained")
    for axis, k in zip(axes if len(permits) > 1 else [axes], permits, strict=True):
        for peer in dict.fromkeys(row["peer"] for row in contended):
            line = sorted(
                (row["delay"], row["entries_per_s"])
                for row in contended
                if (row["peer"], row["k"]) == (peer, k)
            )
            ours = peer.startswith("meshlock")
            axis.plot(
                *zip(*line, strict=True) if line else ([], []),
                marker="o",
                label=peer,
                linewidth=2 if ours else 1.2,
                linestyle="-" if ours else "--",
            )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("delay of the network, one way, ms")
        axis.set_title(f"entries per second, k = {k}", fontsize=10)
    pyplot.legend(fontsize=8)
    figure.savefig(path)


# -- all of it ---------------------------------------------------------------------------------


def workloads(delay: float, permits: list[int], which: list[str]) -> Iterator[tuple[str, int]]:
    for k in permits:
        for workload in ("contended", "now and then"):
            if workload in which:
                yield workload, k
    if "host lost" in which:
        yield "host lost", 1


def rows_of(
    name: str, given: argparse.Namespace, lan: Lan, folder: Path, server: Server | None
) -> Iterator[dict[str, Any]]:
    clients = lan.hosts[: given.hosts]
    for delay in given.delay:
        for workload, k in workloads(delay, given.k, given.workload):
            if server is not None and k not in server.permits:
                continue
            row: dict[str, Any] = {"peer": name, "hosts": given.hosts, "delay": delay}
            row |= {"k": k, "workload": workload}
            lan.shape(delay, given.jitter, given.loss, given.mbit)
            try:
                with fleet(name, server, clients, k, folder) as made:
                    if workload == "host lost":
                        row |= host_lost(made, lan, clients[0])
                    else:
                        think = 0.04 * delay if workload == "now and then" else 0.0
                        row |= measure(made, lan, delay, k, think)
            except Missing:
                raise
            except Exception as error:  # one row; the rest goes on
                row["failed"] = str(error) or type(error).__name__
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*OURS, *SERVERS]
    kinds = ["contended", "now and then", "host lost"]
    parser.add_argument("--only", nargs="*", default=names, choices=names)
    parser.add_argument("--delay", nargs="*", type=float, default=list(DELAYS), help="one way, ms")
    parser.add_argument("--k", nargs="*", type=int, default=[1, 3], help="permits")
    parser.add_argument("--hosts", type=int, default=8, help="clients, each on a host")
    parser.add_argument("--workload", nargs="*", default=kinds, choices=kinds)
    parser.add_argument("--jitter", type=float, default=0.0, help="ms")
    parser.add_argument("--loss", type=float, default=0.0, help="share of frames")
    parser.add_argument("--mbit", type=float, default=0.0, help="of each host; 0: no limit")
    parser.add_argument("--turns", type=int, default=1, help="all over again, for medians")
    parser.add_argument("--out", type=Path, help="write the figures to this file too")
    parser.add_argument("--docs", action="store_true", help="write into docs/, and its picture")
    given = parser.parse_args()
    if os.getuid():
        raise SystemExit("lan.py makes network namespaces, for which it must be run as root.")
    rows: list[dict[str, Any]] = []
    missing: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        folder.chmod(0o755)
        lan = stack.enter_context(Lan(given.hosts + 3, folder))
        for _ in range(given.turns):
            for name in given.only:
                lan.shape(0.1, 0, 0, 0)
                try:
                    with contextlib.ExitStack() as served:
                        server = None
                        if name in SERVERS:
                            others = lan.hosts[given.hosts :]
                            made = running(name, others, lan.hosts[0], folder)
                            server = served.enter_context(made)
                        for row in rows_of(name, given, lan, folder, server):
                            rows.append(row)
                            told = row.get("failed") or " ".join(f"{c:>12}" for c in cells(row))
                            bad = "  TOO MANY INSIDE" if row.get("violations") else ""
                            print(f"{name:<24}{heading(row):<44}{told}{bad}", flush=True)
                            if given.out:
                                given.out.write_text(json.dumps(rows, indent=2) + "\n")
                except Missing as reason:
                    missing[name] = str(reason)
                    print(f"{name:<24}left out: {reason}", flush=True)
    shown = medians(rows)
    text = table(shown, missing, given.turns)
    if given.docs:
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            replace_between_marks(page, text, "lan")
        draw(shown, PICTURE)
    else:
        print(text)


if __name__ == "__main__":
    main()
