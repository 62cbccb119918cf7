"""Recovery in virtual time: crashes, a partition, and networks that move; writes a table.

    python benchmarks/recovery_sim.py [FILE.tsv] [FILE.ns_movements:RANGE] [FILE.movements.gz:RANGE]

The files are contact traces and movements to run over, besides the workloads that need none.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

from meshlock.simulate.recovering import Figures, Plan, Recovering
from meshlock.topology.mobility import bonnmotion, ns2, one_simulator
from meshlock.topology.mobility.changes import Change, Changes, LinkChange, Planned
from meshlock.topology.mobility.contacts import Contacts


def everybody(size: int) -> list[tuple[int, int]]:
    return [(one, other) for one in range(size) for other in range(one + 1, size)]


def split(size: int, minority: set[int], down: float, up: float) -> Changes:
    """The network falls into two parts at one time and heals at another, in seconds."""
    between = [(a, b) for a, b in everybody(size) if (a in minority) != (b in minority)]
    plan: list[Change] = [LinkChange(down, False, a, b) for a, b in between]
    plan += [LinkChange(up, True, a, b) for a, b in between]
    return Planned(plan)


def row(name: str, plan: Plan, figures: Figures, cpu: float) -> str:
    after_birth = figures.outages[1:]
    middle = f"{median(after_birth) / 1000:.1f}" if after_birth else "-"
    worst = f"{max(after_birth) / 1000:.1f}" if after_birth else "-"
    share = figures.served_share
    messages = sum(figures.messages.values()) / (plan.until / 1000)
    return (
        f"| {name} | {plan.lease / 1000:g} | {figures.crashes} | {figures.requests} | "
        f"{figures.grants} | {figures.lost_grants} | {len(after_birth)} | {middle} | {worst} | "
        f"{figures.longest_wait / 1000:.1f} | {figures.majority_share:.1%} | "
        f"{min(share):.1%} to {max(share):.1%} | {figures.idle_share:.1%} | {messages:.2f} | "
        f"{len(figures.violated)} | {cpu:.1f} |"
    )


HEAD = (
    "| run | lease s | crashes | requests | grants | grants lost | outages | median s | worst s | "
    "longest wait s | majority there | could be served | permits idle | messages/s | violations | "
    "CPU s |\n" + "|---" * 16 + "|"
)


def workloads() -> list[tuple[str, Plan, list[tuple[int, int]], Changes | None]]:
    full = everybody(5)
    runs: list[tuple[str, Plan, list[tuple[int, int]], Changes | None]] = [
        ("5 nodes, k = 3, no fault", Plan(5, 3), full, None),
        ("5 nodes, k = 1, a crash every 20 s", Plan(5, 1, crash_every=20_000), full, None),
        ("5 nodes, k = 3, a crash every 20 s", Plan(5, 3, crash_every=20_000), full, None),
        ("the same, leases of 1 s", Plan(5, 3, crash_every=20_000, lease=1000), full, None),
        ("5 nodes, k = 3, 2 cut off for 100 s", Plan(5, 3), full, split(5, {0, 1}, 200, 300)),
    ]
    return runs


def moving(spec: str) -> tuple[str, Plan, list[tuple[int, int]], Changes]:
    path, _, radius = spec.partition(":")
    file = Path(path)
    if file.name.endswith(".tsv"):
        size = one_simulator.count(file, None)
        trace = one_simulator.OneContacts(file, size)
        plan = Plan(size, 1, lease=60_000, think=600_000, hold=10_000, until=359_190_000)
        return f"{file.name}, {size} nodes", plan, trace.links, trace
    read = ns2.read if file.name.endswith(".ns_movements") else bonnmotion.read
    contacts = Contacts(read(file, None), float(radius), False)
    size = contacts.motion.size
    return f"{file.name}, {size} nodes, range {radius}", Plan(size, 2), contacts.links, contacts


def kill_the_holder(runs: int) -> None:
    took: list[float] = []
    for seed in range(1, runs + 1):
        plan = Plan(5, 3, kill_holder_at=60_000, down_for=1_000_000_000, until=120_000, seed=seed)
        after = Recovering(plan, everybody(5)).run().replaced_after
        took.append(after / 1000 if after >= 0 else float("inf"))
    print(
        f"\nholder killed, {runs} runs, leases of 3 s: a usable token after {min(took):.1f} to "
        f"{max(took):.1f} s, median {median(took):.1f} s"
    )


def steady(size: int) -> None:
    figures = Recovering(Plan(size, 3, think=10_000_000, until=120_000), everybody(size)).run()
    renewals = figures.messages["RENEW"] + figures.messages["STILL"]
    after_birth = 120 - figures.outages[0] / 1000
    print(f"idle token, {size} members: {renewals / after_birth:.1f} messages per second")


def main() -> int:
    print(HEAD)
    violated = 0
    for name, plan, links, changes in [*workloads(), *[moving(spec) for spec in sys.argv[1:]]]:
        began = time.process_time()
        figures = Recovering(plan, links, changes).run()
        print(row(name, plan, figures, time.process_time() - began), flush=True)
        violated += len(figures.violated)
    kill_the_holder(30)
    for size in (5, 20, 50):
        steady(size)
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main())
