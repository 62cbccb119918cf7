"""What a sweep costs beside its runs, and what a second worker brings.

    python benchmarks/sweep.py            # about two minutes on an idle machine

Overhead is CPU time: all that the command and its processes used, beyond the runs themselves.
Throughput is time on the clock, so it says something on an idle machine only. On a busy one, runs
that sleep for a second tell at least how well workers are kept at work (--asleep does only this).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import meshlock

RUNS = 24
STUDY = """
algorithm = "raymond"
nodes = 127
topology = "tree"
requests = {requests}
repetitions = {runs}
"""


def sweep(folder: Path, requests: int, runs: int, workers: int) -> tuple[float, float, float]:
    """Seconds on the clock, CPU seconds in all, and those of the runs."""
    (folder / "study.toml").write_text(STUDY.format(requests=requests, runs=runs))
    out = folder / f"{requests}-{runs}-{workers}"
    command = [sys.executable, "-m", "meshlock", "sweep", str(folder / "study.toml")]
    command += ["--out", str(out), "--workers", str(workers)]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    if status:
        raise SystemExit("The sweep failed.")
    with (out / "runs.jsonl").open() as file:
        of_runs = sum(json.loads(line)["cpu_s"] for line in file)
    return seconds, used.ru_utime + used.ru_stime, of_runs


SLEEPER = """
import time
from meshlock.sweep import runs
make = runs.simulation
def simulation(settings, trace):
    time.sleep(1.0)
    return make(settings, trace)
runs.simulation = simulation
"""


def asleep() -> None:
    """Runs of a second that need no CPU: by one process, two, and two workers of a cluster."""
    from meshlock.sweep.workers import on_cluster, on_cores

    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(SLEEPER)
        here = str(Path(meshlock.__file__).parents[1])
        os.environ["PYTHONPATH"] = os.pathsep.join([name, here])
        runs: list[dict[str, str | int]] = [
            {"nodes": 3, "requests": 10, "seed": seed} for seed in range(RUNS)
        ]
        for workers in (1, 2):
            tell(f"{workers} processes", clocked(on_cores(runs, 0, workers), workers), workers)
        file = folder / "scheduler.json"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        dask = [sys.executable, "-m", "dask"]
        said = ["--host", "127.0.0.1", "--no-dashboard"]
        cluster = [
            subprocess.Popen(
                [*dask, "scheduler", "--port", "0", "--scheduler-file", str(file), *said], **quiet
            )
        ]
        try:
            while not file.exists():
                time.sleep(0.1)
            address = json.loads(file.read_text())["address"]
            alone = ["--nthreads", "1", "--no-nanny", *said]
            cluster += [
                subprocess.Popen([*dask, "worker", address, *alone], cwd=name, **quiet)
                for _ in range(2)
            ]
            from dask.distributed import Client

            with Client(address) as client:
                client.wait_for_workers(2)
            tell("a cluster of 2", clocked(on_cluster(runs, 0, address), 2), 2)
        finally:
            for process in cluster:
                process.kill()


def clocked(lines: Iterator[bytes], workers: int) -> float:
    """Seconds for each run, from the first runs' end (all workers end theirs then) to the last."""
    for _ in range(workers):
        next(lines)
    began = time.monotonic()
    count = sum(1 for _ in lines)
    return (time.monotonic() - began) / count


def tell(who: str, each: float, workers: int) -> None:
    print(f"{who}: {1 / each:.2f} sleeping runs per second, {each * workers - 1:.1%} overhead")


def main() -> None:
    asleep()
    if "--asleep" in sys.argv:
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        _, _, one = sweep(folder, 5_000, 1, 1)
        requests = int(5_000 / one)  # a second each
        _, fixed, short = sweep(folder, 10, RUNS, 2)
        clock = {}
        for workers in (1, 2):
            clock[workers], spent, of_runs = sweep(folder, requests, RUNS, workers)
            print(f"{workers} processes, {RUNS} runs of {of_runs / RUNS:.2f} CPU seconds:")
            each = (spent - fixed - of_runs + short) / of_runs
            print(f"  {clock[workers]:.1f} s on the clock; CPU overhead {each:.1%}, and the start")
        print(f"two processes are {clock[1] / clock[2]:.2f} times as fast as one")
        print(f"start, {RUNS} empty runs, tables, plot and report: {fixed - short:.1f} CPU seconds")
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
