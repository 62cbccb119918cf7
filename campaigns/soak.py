"""Work for a long time, and see that nothing grows.

    python campaigns/soak.py --minutes 30

Three agents on this machine, with TLS, leases and everything else as by default, serve programs
that come and go: they ask with priorities, in vain, for parts, and give back in parts; somebody
looks at the pool all the time; the first agent writes a trace that is kept short. The third agent
is killed and restarted every two minutes, by turns with a farewell. Of the first two, after every
minute: memory, open files, threads, CPU per entry; of the whole: entries, how long a program
waited, the bytes of all that is kept on disk. Nothing may be higher in the last third than in the
second by more than is said in `GROWTH`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import meshlock

MESHLOCK = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
AGENTS = ("a", "b", "c")
WORKERS = 2
"""Programs at each agent."""

BREAK = 0.02
"""Seconds between two requests of one program, in the mean."""

TRACE_LIMIT = 2_000_000
GROWTH = {"MB": 1.05, "files": 1.1, "threads": 1.1, "kept kB": 1.25, "us": 1.5, "p50 ms": 2.0}
SLACK = {"MB": 1.0, "files": 4, "threads": 2, "kept kB": 200, "us": 100, "p50 ms": 2.0}


def worker(socket: str, seed: int) -> None:
    """Ask until the end of the input; a line of figures every five seconds."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    choice, waited, due = random.Random(seed), [], time.monotonic() + 5
    while True:
        try:
            with meshlock.connect(socket) as agent:
                docks = agent.pool("docks")
                for _ in range(200):
                    began = time.monotonic()
                    try:
                        want = choice.randint(1, 3)
                        limit = choice.choice((0, 0.05, 10, 10))
                        grant = docks.acquire(want, priority=choice.randint(0, 5), timeout=limit)
                    except TimeoutError:
                        pass
                    else:
                        waited.append(time.monotonic() - began)
                        time.sleep(choice.random() * 0.004)
                        if want > 1:
                            grant.release(1)
                        grant.release()
                    time.sleep(choice.expovariate(1 / BREAK))
                    if time.monotonic() > due:
                        print(json.dumps(waited), flush=True)
                        waited, due = [], time.monotonic() + 5
        except (meshlock.Refused, OSError):
            time.sleep(0.2)


class Soak:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict.fromkeys(AGENTS, 0)
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.waited: list[float] = []
        (folder / "secret").write_text(secrets.token_urlsafe(24))

    def start(self, name: str) -> None:
        place = self.folder / name
        words = ["agent", "--name", name, "--secret-file", str(self.folder / "secret")]
        words += ["--listen", f"127.0.0.1:{self.ports[name]}", "--state", str(place / "state")]
        words += ["--socket", str(place / "socket"), "--pool", "docks=3", "--log-level", "warning"]
        words += ["--lease", "3", "--promote-after", "3"]
        if name == "a":
            words += ["--trace", str(place / "trace"), "--trace-limit", str(TRACE_LIMIT)]
        for peer in AGENTS:
            if peer != name and self.ports[peer]:
                words += ["--peer", f"127.0.0.1:{self.ports[peer]}"]
        place.mkdir(exist_ok=True)
        with (place / "log").open("a") as log:
            self.processes[name] = subprocess.Popen(MESHLOCK + words, stdout=log, stderr=log)
        while True:
            try:
                with meshlock.connect(str(place / "socket")) as agent:
                    said = agent.status()
                break
            except (meshlock.Refused, OSError):
                if self.processes[name].poll() is not None:
                    sys.exit(f"agent {name} ended:\n{(place / 'log').read_text()}")
                time.sleep(0.1)
        self.ports[name] = int(said["address"].rsplit(":", 1)[1])

    def employ(self, name: str, number: int) -> None:
        words = [sys.executable, __file__, "--worker", str(self.folder / name / "socket")]
        child = subprocess.Popen(
            [*words, "--seed", str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes[f"worker {name}{number}"] = child

        def read() -> None:
            assert child.stdout is not None
            for line in child.stdout:
                self.waited.extend(json.loads(line))

        threading.Thread(target=read, daemon=True).start()

    def look(self) -> None:
        with meshlock.connect(str(self.folder / "b" / "socket")) as agent:
            agent.pool("docks").picture()
            agent.status()

    def end(self) -> None:
        for process in self.processes.values():
            if process.stdin is not None:
                process.stdin.close()
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait()


def kept(folder: Path) -> float:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "log"]
    return sum(path.stat().st_size for path in files) / 1e3


def figures(process: int) -> dict[str, float]:
    place = Path(f"/proc/{process}")
    said = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
    spent = int((place / "schedstat").read_text().split()[0]) / 1e3
    found = {"MB": int(said["VmRSS"].split()[0]) / 1e3, "threads": int(said["Threads"])}
    return found | {"files": len(list((place / "fd").iterdir())), "us": spent}


def soak(minutes: float, minute: float) -> int:
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="soak-", dir="/tmp") as name:
        work = Soak(Path(name))
        try:
            for agent in AGENTS:
                work.start(agent)
            for agent in AGENTS:
                for number in range(WORKERS):
                    work.employ(agent, number)
            before = {agent: figures(work.processes[agent].pid)["us"] for agent in "ab"}
            for number in range(1, int(minutes) + 1):
                end = time.monotonic() + minute
                while time.monotonic() < end:
                    time.sleep(1)
                    work.look()
                waited, work.waited = sorted(work.waited), []
                row: dict[str, float] = {"entries": len(waited)}
                if waited:
                    row["p50 ms"] = 1e3 * waited[len(waited) // 2]
                    row["p99 ms"] = 1e3 * waited[len(waited) * 99 // 100]
                for agent in "ab":
                    now = figures(work.processes[agent].pid)
                    spent, before[agent] = now["us"] - before[agent], now["us"]
                    now["us"] = spent / max(1, len(waited))
                    row |= {f"{agent} {key}": value for key, value in now.items()}
                row["kept kB"] = kept(Path(name))
                rows.append(row)
                said = "  ".join(f"{key} {value:.4g}" for key, value in row.items())
                print(f"{number:3}  {said}  load {os.getloadavg()[0]:.1f}", flush=True)
                if number % 2 == 0:
                    third = work.processes["c"]
                    third.send_signal(signal.SIGKILL if number % 4 else signal.SIGTERM)
                    third.wait()
                    work.start("c")
        finally:
            work.end()
        for agent in AGENTS:
            log = (Path(name) / agent / "log").read_text()
            print(f"{agent}: {len(log.splitlines())} lines of log")
            if "Traceback" in log:
                print(log)
                return 1
    return judged(rows)


def judged(rows: list[dict[str, float]]) -> int:
    third = len(rows) // 3
    columns: dict[str, list[float]] = defaultdict(list)
    for row in rows[third:]:
        for key, value in row.items():
            columns[key].append(value)
    grown = 0
    for key, values in columns.items():
        limit = GROWTH.get(key) or GROWTH.get(key.split(" ", 1)[-1])
        if limit is None:
            continue
        slack = SLACK.get(key) or SLACK[key.split(" ", 1)[-1]]
        earlier = statistics.median(values[: len(values) // 2])
        later = statistics.median(values[len(values) // 2 :])
        wrong = later > earlier * limit + slack
        grown += wrong
        print(f"{key:10} {earlier:10.4g} {later:10.4g}  {'GROWS' if wrong else 'flat'}")
    return int(grown > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--minute", type=float, default=60, help="seconds, to try this out")
    parser.add_argument("--worker")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.worker:
        worker(chosen.worker, chosen.seed)
    else:
        sys.exit(soak(chosen.minutes, chosen.minute))
