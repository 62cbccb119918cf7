"""What leases cost live nodes: the same work in pools with members and without, turn by turn.

    python benchmarks/leases.py            # about two minutes
    python benchmarks/leases.py --tls

Hand-over (two neighbours, each holds for 5 ms), contention (eight processes, k = 1 and 3), the
cycle at an idle holder, and what a pool costs when nobody wants anything. Every figure is the
median of the rounds; "ratio" is with leases over without, of the same round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from live import SECRET, Fleet, complete, handovers, now, percentile
from meshlock import Node
from meshlock.live.machine.loop import run

BIRTH = 8.0
"""Seconds until a pool with leases of 3 s has its token, with some to spare."""


def handover(protected: bool, members: bool) -> dict[str, float]:
    with Fleet(2, [(0, 1)], protected, 1, 2 * members, algorithm="jiang") as fleet:
        time.sleep(BIRTH * members)
        times = handovers(fleet.work([0, 1], work=3.0, hold=0.005))
    return {"us_p50": percentile(times, 0.5), "us_p99": percentile(times, 0.99)}


def contended(protected: bool, members: bool, permits: int) -> dict[str, float]:
    with Fleet(8, complete(8), protected, permits, 8 * members, algorithm="jiang") as fleet:
        time.sleep(BIRTH * members)
        results = fleet.work(list(range(8)), work=3.0, hold=0)
    counts, times = [len(result["stamps"]) for result in results], handovers(results)
    return {
        "us_p50": percentile(times, 0.5),
        "us_p99": percentile(times, 0.99),
        "entries_per_s": sum(counts) / 3.0,
        "cpu_us_per_entry": sum(result["cpu"] for result in results) / sum(counts) * 1e6,
        "messages_per_entry": sum(result["sent"] for result in results) / sum(counts),
        "fair_min_over_max": min(counts) / max(counts),
    }


def holder(protected: bool, members: bool) -> dict[str, float]:
    async def measure() -> dict[str, float]:
        secret = SECRET if protected else None
        async with (
            Node("n0", state=None, secret=secret) as a,
            Node("n1", state=None, secret=secret, peers=[a.address]),
        ):
            names = ["n0"] if members else []
            recovery, lease = (None, 0.5) if members else ("none", None)
            pool = a.pool(
                "pens", 1, members=names, lease=lease, recovery=recovery, algorithm="jiang"
            )
            (await pool.acquire()).release()
            times = []
            for _ in range(20_000):
                begin = now()
                async with pool.acquire():
                    pass
                times.append((now() - begin) / 1000)
            return {"us_p50": percentile(times, 0.5), "us_p99": percentile(times, 0.99)}

    return run(measure())


def idle(protected: bool, members: bool) -> dict[str, float]:
    with Fleet(5, complete(5), protected, 1, 5 * members, algorithm="jiang") as fleet:
        time.sleep(BIRTH * members)
        before = fleet.work([0, 1, 2, 3, 4], cpu=True)
        time.sleep(5.0)
        after = fleet.work([0, 1, 2, 3, 4], cpu=True)
    cpu = sum(late["cpu"] - early["cpu"] for early, late in zip(before, after, strict=True))
    return {
        "cpu_percent_per_node": cpu / 5 / 5.0 * 100,
        "kb_per_s": (after[0]["bytes"] - before[0]["bytes"]) / 5.0 / 1000,
    }


PHASES: dict[str, Callable[[bool, bool], dict[str, float]]] = {
    "holder": holder,
    "handover": handover,
    "contended k=1": lambda protected, members: contended(protected, members, 1),
    "contended k=3": lambda protected, members: contended(protected, members, 3),
    "idle": idle,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", nargs="*", help="the beginnings of the phases' names")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for name, measure in PHASES.items():
        if given.phase and not any(name.startswith(phase) for phase in given.phase):
            continue
        rounds: list[tuple[dict[str, float], dict[str, float]]] = [
            (measure(given.tls, False), measure(given.tls, True)) for _ in range(given.rounds)
        ]
        row: dict[str, Any] = {}
        for key in rounds[0][0]:
            row[key] = {
                "without": round(statistics.median(one[key] for one, _ in rounds), 2),
                "with": round(statistics.median(other[key] for _, other in rounds), 2),
                "ratio": round(statistics.median(two[key] / one[key] for one, two in rounds), 2),
            }
        print(f"{name}: {json.dumps(row)}", flush=True)


if __name__ == "__main__":
    main()
