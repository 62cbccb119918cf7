"""Recovery in virtual time: crashes, cuts, and networks that move; writes tables.

    python benchmarks/recovery_sim.py [FILE.tsv] [FILE.ns_movements:RANGE] [FILE.movements.gz:RANGE]

The files are contact traces and movements to run over, besides the workloads that need none.
A time unit is a second: 5 ms per hop, clocks that run up to one per cent fast or slow.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

from meshlock.simulate.recovery import RecoverySimulation
from meshlock.simulate.settings import run_settings, simulation
from meshlock.topology.mobility import recorded
from meshlock.trace.writer import TraceWriter
from meshlock.world.lives import TICKS

Given = dict[str, str | int]

USUAL: Given = {
    "nodes": 5,
    "permits": 3,
    "want": "1-3",
    "members": "all",
    "lease": "3",
    "delay": "0.005",
    "hold": "exp:0.5",
    "workload": "poisson:0.5",
    "requests": 1_000_000,
}

WORKLOADS: list[tuple[str, Given]] = [
    ("no fault", {}),
    ("a crash every 20 s, for 5 s, k = 1", {"permits": 1, "want": "1", "crashes": "20,5"}),
    ("a crash every 20 s, for 5 s", {"crashes": "20,5"}),
    ("the same, leases of 1 s", {"crashes": "20,5", "lease": "1"}),
    ("a cut every 60 s, for 30 s", {"cuts": "60,30"}),
    ("both", {"crashes": "20,5", "cuts": "60,30"}),
    (
        "both, 20 nodes, 5 members",
        {"nodes": 20, "members": "5", "crashes": "20,5", "cuts": "60,30"},
    ),
]


def moving(spec: str) -> list[tuple[str, Given]]:
    """A file of contacts or movements; several leases for contacts, which are short."""
    path, _, radius = spec.partition(":")
    file = Path(path)
    if file.name.endswith(".tsv"):
        last = max(report.time for report in recorded.reports(file, None))
        return [
            (
                f"{file.name}, leases of {lease} s",
                {
                    "nodes": recorded.count(file, None),
                    "mobility": path,
                    "permits": 1,
                    "want": "1",
                    "lease": lease,
                    "hold": "10",
                    "workload": "poisson:0.00166667",
                    "until": str(last),
                },
            )
            for lease in ("20", "60")
        ]
    return [
        (
            f"{file.name}, range {radius}",
            {
                "nodes": 10,
                "mobility": path,
                "range": radius,
                "permits": 2,
                "want": "1-2",
                "hold": "0.5",
                "until": "900",
            },
        )
    ]


def prepared(trace: TraceWriter | None = None, **given: str | int) -> RecoverySimulation:
    """A run that differs in these from the usual one."""
    run = simulation(run_settings({**USUAL, **given}), trace)
    assert isinstance(run, RecoverySimulation)
    return run


def finished(run: RecoverySimulation) -> RecoverySimulation:
    run.start()
    while run.run(100_000):
        pass
    run.finish()
    return run


HEAD = (
    "| run | crashes, cuts | requests | granted | lost with a crash | waiting at the end | had a "
    "path, of these not served | no token: times, median, worst | majority without: times, "
    "median, worst | longest wait | majority there | could be served | idle | messages/s | "
    "violations | CPU s |\n" + "|---" * 16 + "|"
)


def spread(times: dict[str, float]) -> str:
    if not times["count"]:
        return "none"
    return f"{times['count']}, {times['median']:.1f}, {times['worst']:.1f}"


def row(name: str, run: RecoverySimulation, cpu: float) -> str:
    found, measures = run.figures(), run.measures
    share = found["served_share"]
    return (
        f"| {name} | {found['crashes']}, {found['partitions']} | {measures.requested} | "
        f"{measures.entries} | {found['lost_requests']} | {measures.waiting} | "
        f"{found['requests_with_path']}, {found['unserved_with_path'] + found['late_with_path']} | "
        f"{spread(found['outages'])} | "
        f"{spread(found['time_to_recover'])} | {max(measures.waits, default=0.0):.1f} | "
        f"{found['majority_share']:.1%} | {share['worst']:.1%} to {share['best']:.1%} | "
        f"{found['idle_share']:.1%} | {sum(measures.messages.values()) / run.now:.2f} | "
        f"{len(run.monitor.violated)} | {cpu:.1f} |"
    )


def replaced_after(run: RecoverySimulation, whom: str, at: float) -> float:
    """Kill the node with the token, or another one whose client holds permits, once and for good:
    how long until there is a usable token again whose ledger names nothing of that node?"""
    killed: list[object] = []
    replaced = killed_at = float("inf")

    def kill() -> None:
        nonlocal killed_at
        victims = holders = [node for node, end in run.lives.usable.items() if end > run.now]
        if whom == "client" and holders:
            inside = [client.node for client in run.present.values() if client.inside]
            victims = [node for node in inside if node not in holders]
        if not victims:
            run.later(1 / TICKS, kill)
            return
        killed.extend(run.lives.layers[victims[0]].member.grants)
        killed_at = run.now
        run.crash(victims[0])

    def is_replaced() -> bool:
        holdings = [
            run.lives.layers[node].member.holding
            for node, end in run.lives.usable.items()
            if end > run.now
        ]
        tokens = [holding.token for holding in holdings if holding.token is not None]
        return any(all(one.fence not in killed for one in token.ledger) for token in tokens)

    run.start()
    run.later(at, kill)
    while run.run(1):
        if replaced == float("inf") and killed_at <= run.now and is_replaced():
            replaced = run.now - killed_at
    run.finish()
    return replaced


def kill(whom: str, runs: int) -> None:
    took: list[float] = []
    lost = 0
    outage = 0.0
    for seed in range(1, runs + 1):
        run = prepared(until="120", seed=seed)
        took.append(replaced_after(run, whom, at=60.0))
        lost += run.recovery.lost_grants
        outage = max(outage, max(run.recovery.outages, default=0.0))
    print(
        f"{whom} killed, {runs} runs, leases of 3 s: a usable token without what it held after "
        f"{min(took):.1f} to {max(took):.1f} s, median {median(took):.1f} s; grants lost by "
        f"others: {lost}; longest time without a usable token: {outage:.1f} s"
    )


def steady(size: int) -> None:
    run = finished(prepared(nodes=size, workload="poisson:0.000001", until="300"))
    per_second = run.figures()["lease_messages_at_rest"]
    print(f"idle token, {size} members, leases of 3 s: {per_second:.1f} messages per second")


def main() -> int:
    print(HEAD)
    violated = 0
    for name, given in [*WORKLOADS, *[pair for spec in sys.argv[1:] for pair in moving(spec)]]:
        began = time.process_time()
        run = finished(prepared(**{"until": "600", **given}))
        print(row(name, run, time.process_time() - began), flush=True)
        violated += len(run.monitor.violated)
        for sentence in run.monitor.violated.items():
            print("   ", *sentence)
    print()
    kill("holder", 60)
    kill("client", 60)
    for size in (5, 20, 50):
        steady(size)
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main())
