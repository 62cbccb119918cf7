"""Hours of chaos in virtual time, with sound nodes or with sabotaged ones.

    python campaigns/virtual_chaos.py [--runs N] [--first SEED] [--seconds S]
    python campaigns/virtual_chaos.py --sabotage all     # or names: until one is caught

One seed is one run, so a finding can be run again; nothing must be found without a sabotage, and
every sabotage must be. Runs, judge and sabotages are those of the tests (tests/live), which run a
few of them.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "live"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from sabotages import SABOTAGES, Sabotage, sabotaged
from virtual_chaos import chaos

MEMORY = Path("/dev/shm")


def found(seed: int, seconds: float, counts: dict[str, int]) -> str:
    """What the judge says of this run; empty if nothing is wrong."""
    state = Path(tempfile.mkdtemp(dir=MEMORY if MEMORY.is_dir() else None))
    try:
        for _, what, _ in chaos(state, seed, seconds):
            counts[what] = counts.get(what, 0) + 1
    except Exception as error:
        return f"{type(error).__name__} {error}"
    finally:
        shutil.rmtree(state, ignore_errors=True)
    return ""


def sound(first: int, runs: int, seconds: float) -> int:
    counts: dict[str, int] = {}
    wrong = 0
    began = process_time()
    for seed in range(first, first + runs):
        finding = found(seed, seconds, counts)
        if finding:
            wrong += 1
            print(f"seed {seed}: {finding}", flush=True)
    hours = runs * seconds / 3600
    print(f"{runs} runs, {hours:.1f} hours, {process_time() - began:.0f} s of CPU: {wrong} wrong")
    print(", ".join(f"{what} {counts[what]}" for what in sorted(counts)))
    return wrong


def caught(sabotage: Sabotage, first: int, runs: int, seconds: float) -> bool:
    began = process_time()
    with sabotaged(sabotage):
        for seed in range(first, first + runs):
            finding = found(seed, seconds, {})
            if finding:
                break
    after = f"seed {seed}, {process_time() - began:.0f} s" if finding else "no"
    print(f"{sabotage.name:42} {after:18} {finding[:110]}", flush=True)
    return finding != ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--sabotage", nargs="*", default=[])
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # else a seed would be another run every time
        os.execve(
            sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    logging.disable(logging.CRITICAL)
    if not given.sabotage:
        return 1 if sound(given.first, given.runs, given.seconds) else 0
    names = list(SABOTAGES) if given.sabotage == ["all"] else given.sabotage
    outcomes = [caught(SABOTAGES[one], given.first, given.runs, given.seconds) for one in names]
    print(f"{sum(outcomes)} of {len(outcomes)} caught")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
