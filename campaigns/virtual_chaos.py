"""Hours of chaos in virtual time, with sound nodes or with sabotaged ones.

    python campaigns/virtual_chaos.py [--runs N] [--first SEED] [--seconds S]
    python campaigns/virtual_chaos.py --sabotage all  # the table of docs/appendices/sabotages.md

One seed is one run, so a finding can be run again; nothing must be found without a sabotage, and
every sabotage must be. A sabotage (``NAME``, or ``NAME@SEED`` to begin there) is tried in some
runs of chaos; if these do not notice it, in some random set-ups of the simulator, where its
mistake is in recovery; and if that does not either, by the test that is named beside it. With
``--runs 0 --simulate 0`` these tests alone are tried, which takes a minute or two. Runs, judge and
sabotages are those of the tests (tests/live), which run a few of them.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import shutil
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "live"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import pytest
from recovery_campaign import STORM, setup
from sabotages import SABOTAGES, Sabotage, sabotaged
from virtual import FIRST_MOMENT
from virtual_chaos import chaos

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.simulate.recovery import RecoverySimulation
from meshlock.simulate.settings import run_settings, simulation

ROOT = Path(__file__).parents[1]
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


# -- sabotages ------------------------------------------------------------------------------------


def by_chaos(sabotage: Sabotage, first: int, runs: int, seconds: float) -> str:
    began = process_time()
    for run in range(runs):
        finding = found(first + run, seconds, {})
        if finding:
            rule = re.match(r"Wrong (\w+): at ([\d.]+)", finding)
            at = float(rule[2]) - FIRST_MOMENT if rule else seconds
            what = rule[1] if rule else finding.split(" ", 1)[0]
            took = f"{run * seconds + at:.0f} s, {process_time() - began:.0f} s of CPU"
            return f"chaos: *{what}* | {took}, seed {first + run}"
    return ""


def by_simulation(sabotage: Sabotage, most: float) -> str:
    if sabotage.name not in MUTANTS:
        return ""
    began, number = process_time(), 0
    while process_time() - began < most:
        run = simulation(run_settings(setup(number)), None)
        assert isinstance(run, RecoverySimulation)
        finding = ""
        try:
            run.start()
            while run.run(2000) and len(run.agenda) < STORM and not run.monitor.violated:
                pass
            finding = next(iter(run.monitor.violated), "")
        except Exception as error:
            finding = type(error).__name__
        if finding:
            took = f"{process_time() - began:.0f} s of CPU"
            return f"simulator: *{finding}* | {number + 1} set-ups, {took}"
        number += 1
    return ""


def by_test(sabotage: Sabotage) -> str:
    if sabotage.name in MUTANTS:
        return f"checker: *{MUTANTS[sabotage.name].breaks}* | {MUTANTS[sabotage.name].steps} steps"
    if sabotage.test == "":
        return ""
    words = ["-x", "-p", "no:cacheprovider", str(ROOT / "tests" / sabotage.test)]
    with redirect_stdout(StringIO()):
        if pytest.main(words) != pytest.ExitCode.TESTS_FAILED:
            return ""
    file, _, name = sabotage.test.partition("::")
    return f"test: `{name or Path(file).name}` | at once"


def caught(word: str, first: int, runs: int, seconds: float, most: float) -> bool:
    name, _, seed = word.partition("@")
    sabotage = SABOTAGES[name]
    with sabotaged(sabotage):
        how = by_chaos(sabotage, int(seed or first), runs, seconds)
        how = how or by_simulation(sabotage, most) or by_test(sabotage)
    print(f"| {sabotage.name} | {sabotage.what} | {how or '**nobody** | '} |", flush=True)
    return how != ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--simulate", type=float, default=60.0, help="seconds of CPU")
    parser.add_argument("--sabotage", nargs="*", default=[])
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # else a seed would be another run every time
        known = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.argv], known)
    logging.disable(logging.CRITICAL)
    if not given.sabotage:
        return 1 if sound(given.first, given.runs, given.seconds) else 0
    words = list(SABOTAGES) if given.sabotage == ["all"] else given.sabotage
    print("| sabotage | rule undone | noticed by | after |\n|---|---|---|---|")
    effort = (given.first, given.runs, given.seconds, given.simulate)
    outcomes = [caught(word, *effort) for word in words]
    print(f"\n{sum(outcomes)} of {len(outcomes)} noticed")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
