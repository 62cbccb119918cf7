"""Random runs by the ten thousand: is anything ever unsafe, stuck or lost?

    python campaigns/campaign.py scheme --runs 10000
    python campaigns/campaign.py jiang --runs 20000
    python campaigns/campaign.py jiang --choose moves=silent --choose failures=custody

Every run draws its own settings from its number, so a finding is named by that number and
can be run again: ``python campaigns/campaign.py jiang --only 4711``. With ``jiang``, the
printed algorithm runs on the static draws as well, to be compared. Prints what was counted;
exit 1 if anything was found.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random
from typing import Any

from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.settings import run_settings, simulation

MOST_EVENTS = 300_000


def scheme(number: int) -> dict[str, Any]:
    """The general scheme: any behaviour at any moment, channels that keep no order."""
    draw = Random(f"scheme {number}")
    return {
        "algorithm": "general-scheme",
        "nodes": draw.randint(1, 8),
        "topology": draw.choice(["line", "star", "tree", "complete"]),
        "behaviour": draw.choice(
            ["random", "random", "random", "shortcut", "gateway", "raymond", "proxy", "transit"]
        ),
        "queue": draw.choice(["fifo", "lift"]),
        "clients": draw.randint(1, 2),
        "workload": draw.choice(["saturated", f"poisson:{draw.uniform(0.05, 2):.3f}"]),
        "requests": draw.randint(1, 60),
        "links": "unordered",
        "delay": draw.choice(["exp:1", "uniform:0.1,3"]),
        "hold": draw.choice(["0", "0.5", "exp:1"]),
        "seed": number,
    }


def jiang(number: int) -> dict[str, Any]:
    """Jiang on networks at rest, flipping, moving, and falling apart for a while."""
    draw = Random(f"jiang {number}")
    nodes = draw.randint(2, 20)
    permits = draw.randint(1, 6)
    given: dict[str, Any] = {
        "algorithm": "jiang",
        "nodes": nodes,
        "topology": f"links:{draw.randint(nodes - 1, min(nodes * (nodes - 1) // 2, 3 * nodes))}",
        "permits": permits,
        "want": f"1-{draw.randint(1, permits)}",
        "priority": draw.choice(["0", "1-2", "1-9", "deadline:uniform:1,50"]),
        "clients": draw.randint(1, 3),
        "workload": draw.choice(["saturated", f"poisson:{draw.uniform(0.01, 1):.3f}"]),
        "requests": draw.randint(1, 150),
        "delay": draw.choice(["1", "exp:1", "uniform:0.1,3"]),
        "hold": draw.choice(["0", "1", "exp:3"]),
        "ageing": draw.choice(["stamped", "stamped", "printed", "none"]),
        "moves": draw.choice(["quiet", "quiet", "silent", "broadcast"]),
        "backfill": draw.choice(["off", "off", "on"]),
        "seed": number,
    }
    kind = draw.choice(["static", "flips", "waypoint", "partitions"])
    if kind == "flips":
        given["mobility"] = f"flips:{draw.choice([0.05, 0.5, 3])}"
    elif kind == "waypoint":
        given["mobility"] = f"waypoint:{draw.choice([0.01, 0.1])},{draw.uniform(0.6, 0.9):.3f}"
    elif kind == "partitions":
        reach = draw.uniform(0.2, 0.5)
        given["mobility"] = draw.choice(
            [
                f"flips:{draw.choice([0.05, 0.5, 3])}",
                f"waypoint:{draw.choice([0.01, 0.1])},{reach:.3f}",
            ]
        )
        given["partitions"] = "healed"
        given["changes-until"] = f"{draw.uniform(10, 500):.1f}"
    if kind != "static":
        given["failures"] = draw.choice(["drain", "return", "custody"])
        if given["failures"] == "custody":
            given["notice"] = draw.choice(["0", "1", "exp:1", "exp:5", "uniform:0,20"])
    changing = Random(f"jiang changes {number}")
    if given["priority"] != "0" and changing.random() < 0.5:
        given["raise"] = "0.2"
    if given["want"] != "1-1" and changing.random() < 0.5:
        given["release-part"] = "0.3"
    return given


def drawn(what: str, number: int, chosen: dict[str, str]) -> dict[str, Any]:
    given = {"scheme": scheme, "jiang": jiang}[what](number) | chosen
    if given.get("failures", "drain") != "custody":
        given.pop("notice", None)
    return given


def play(given: dict[str, Any]) -> tuple[str, int, str]:
    """What came of it (ok, unsafe, stuck, out of order, endless), entries, and a sentence."""
    run = simulation(run_settings(given), None)
    run.start()
    while run.run(20_000):
        if run.events > MOST_EVENTS:
            return "endless", run.measures.entries, f"{run.events} events"
    run.finish()
    violated = dict(run.monitor.violated)
    if run.in_flight == 0 and not violated:  # else the token may be on its way
        if sum(node.tokens() for node in run.nodes) != 1:
            return "unsafe", run.measures.entries, "there is not one token at the end"
        free = sum(node.free_permits() for node in run.nodes)
        if not run.measures.waiting and free != run.permits:
            return "unsafe", run.measures.entries, f"{free} of {run.permits} permits at the end"
    stuck = violated.pop("served", None)
    if violated.keys() - {"order"}:
        return "unsafe", run.measures.entries, str(violated)
    if stuck or run.measures.entries != given["requests"]:
        return "stuck", run.measures.entries, str(stuck)
    if violated:
        return "out of order", run.measures.entries, str(violated)
    changes = run.ups + run.downs if isinstance(run, MobileSimulation) else 0
    return "ok", run.measures.entries, "changed" if changes else ""


def batch(
    what: str, chosen: dict[str, str], numbers: range
) -> list[tuple[int, str, str, int, str]]:
    results = []
    for number in numbers:
        given = drawn(what, number, chosen)
        results.append((number, given["algorithm"], *play(given)))
        if what == "jiang" and "mobility" not in given:
            options = ("ageing", "moves", "backfill", "raise", "release-part")
            plain = {key: value for key, value in given.items() if key not in options}
            results.append(
                (number, "jiang-printed", *play({**plain, "algorithm": "jiang-printed"}))
            )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["scheme", "jiang"])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--choose", action="append", default=[], help="NAME=VALUE: keep it, do not draw it"
    )
    options = parser.parse_args()
    chosen = dict(choice.split("=", 1) for choice in options.choose)
    if options.only is not None:
        given = drawn(options.what, options.only, chosen)
        print(given)
        print(*play(given))
        return
    started = time.time()
    counts: Counter[tuple[str, str]] = Counter()
    entries: Counter[str] = Counter()
    changed = 0
    findings = []
    last = options.first + options.runs
    batches = [range(a, min(a + 50, last)) for a in range(options.first, last, 50)]
    play_all = partial(batch, options.what, chosen)
    with ProcessPoolExecutor(options.processes) as pool:
        for done, results in enumerate(pool.map(play_all, batches), 1):
            for number, algorithm, outcome, served, text in results:
                counts[algorithm, outcome] += 1
                entries[algorithm] += served
                changed += text == "changed"
                if outcome != "ok" and algorithm != "jiang-printed":
                    findings.append(f"run {number}: {outcome}: {text}")
            if sys.stderr.isatty():
                print(f"\r{done * 50} of {options.runs}", end="", file=sys.stderr)
    for algorithm in sorted(entries):
        kinds = {kind: n for (name, kind), n in sorted(counts.items()) if name == algorithm}
        total = sum(kinds.values())
        print(f"{algorithm}: {total} runs, {entries[algorithm]} entries: {kinds}")
    print(f"{changed} of the runs had link changes; {time.time() - started:.0f} s")
    print(*findings[:20], sep="\n")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
