"""What a second process brings to a search of the checker: time on the clock, one beside two.

    .venv-compiled/bin/python benchmarks/workers.py      # about three minutes on an idle machine

Each search is run with one process and with two, in turns, start of the program included; the
table has medians, and of the speed-ups of all turns the lowest and the highest. On a machine that
is not idle, or has one core, the figures mean nothing: its load is told.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time

SEARCHES = {
    "Raymond, line of 8; safety, served": "--algorithm raymond --topology line --nodes 8 "
    "--property safety --property served",
    "jiang, line of 3, k = 2, two changes": "--algorithm jiang --topology line --nodes 3 "
    "--permits 2 --changes 2",
    "jiang, line of 5, k = 2": "--algorithm jiang --topology line --nodes 5 --permits 2",
    "Naimi-Trehel, 7 nodes": "--algorithm naimi-trehel --nodes 7",
}


def once(search: str, workers: int) -> tuple[float, float, str]:
    """Seconds on the clock, CPU seconds, and what the search says of its size."""
    command = [sys.executable, "-m", "meshlock", "check", *SEARCHES[search].split()]
    command += ["--workers", str(workers), "--max-states", "4000000"]
    began, before = time.monotonic(), os.times()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds, after = time.monotonic() - began, os.times()
    size = re.search(r"([\d,]+) states, [\d,]+ transitions, depth \d+", done.stdout)
    if done.returncode or size is None:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    cpu = after.children_user + after.children_system
    return seconds, cpu - before.children_user - before.children_system, size[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="of each search; default 3")
    turns = parser.parse_args().turns
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before\n")
    print("| search | states | one process | two | CPU of one, of two | speed-up (range) |")
    print("|---|---|---|---|---|---|")
    for search in SEARCHES:
        pairs = [(once(search, 1), once(search, 2)) for _ in range(turns)]
        if len({size for pair in pairs for _, _, size in pair}) > 1:
            sys.exit(f"{search}: not all searches found the same.")
        one, two = ([pair[which] for pair in pairs] for which in (0, 1))
        ratios = [first[0] / second[0] for first, second in pairs]
        walls = [statistics.median(run[0] for run in runs) for runs in (one, two)]
        cpus = [statistics.median(run[1] for run in runs) for runs in (one, two)]
        states = one[0][2].partition(" ")[0]
        print(
            f"| {search} | {states} | {walls[0]:.1f} s | {walls[1]:.1f} s | {cpus[0]:.1f}, "
            f"{cpus[1]:.1f} s | {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
