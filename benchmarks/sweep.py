"""What a sweep costs beside its runs, and what a second process brings.

    python benchmarks/sweep.py            # about a minute on an idle machine

Overhead is CPU time: all that the command and its processes used, beyond the runs themselves.
Throughput is time on the clock, so it says something on an idle machine only.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

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
    with (out / "cpu.csv").open() as file:
        of_runs = sum(float(row["cpu_s"]) for row in csv.DictReader(file))
    return seconds, used.ru_utime + used.ru_stime, of_runs


def main() -> None:
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
