"""The figures of docs/appendices/jiang-costs.md: ageing, moves, link changes, cost of an entry.

python benchmarks/jiang_costs.py        # about two minutes, less if compiled
"""

from __future__ import annotations

from typing import Any

from meshlock.simulate.engine import Simulation
from meshlock.simulate.settings import run_settings, simulation

KINDS = ("REQUEST", "TOKEN", "LINK", "UPDATE", "RELEASE")


def finished(**given: Any) -> Simulation:
    run = simulation(run_settings({"algorithm": "jiang", **given}), None)
    run.start()
    while run.run(100_000):
        pass
    run.finish()
    assert not run.monitor.violated, run.monitor.violated
    return run


def per_entry(run: Simulation) -> str:
    entries = run.measures.entries
    counts = [run.measures.messages.get(kind, 0) / entries for kind in KINDS]
    return " | ".join(f"{count:.2f}" for count in counts) + f" | {sum(counts):.1f}"


def ageing() -> None:
    print("ageing | overtakings | known | wait of 9 | of 1, mean | of 1, longest | messages")
    for kind, patience in (
        *[("stamped", patience) for patience in (10, 30, 100, 1000)],
        ("printed", 10),
        ("printed", 100),
        ("none", 100),
    ):
        run = finished(
            nodes=20,
            topology="links:40",
            permits=3,
            want="1-3",
            priority="1-9",
            hold="5",
            requests=12_000,
            ageing=kind,
            patience=str(patience),
        )
        measures = run.measures
        low, high = measures.by_priority[1], measures.by_priority[9]
        figures = (
            f"{measures.base.pairs / measures.entries:.2f}",
            f"{measures.known / measures.entries:.3f}",
            f"{sum(high) / len(high):.0f}",
            f"{sum(low) / len(low):.0f}",
            f"{max(low):.0f}",
            f"{sum(measures.messages.values()) / measures.entries:.1f}",
        )
        print(f"{kind}, patience {patience} | {' | '.join(figures)}")


def moves() -> None:
    print(f"\nmoves | {' | '.join(KINDS)} | all")
    for topology in ("complete", "links:40", "geometric:0.35"):
        for load in ("serial", "saturated"):
            for kind in ("quiet", "broadcast", "silent"):
                run = finished(
                    nodes=24, topology=topology, workload=load, requests=4000, moves=kind
                )
                print(f"{topology}, {load}, {kind} | {per_entry(run)}")


def changes() -> None:
    print("\nmessages per entry, mean of three seeds | quiet | silent | broadcast")
    for mobility in ("none", "flips:0.05", "flips:0.5"):
        for topology in ("complete", "links:40", "grid:4x6"):
            figures = []
            for kind in ("quiet", "silent", "broadcast"):
                total = 0.0
                for seed in (1, 2, 3):
                    run = finished(
                        nodes=24,
                        topology=topology,
                        permits=3,
                        want="1-3",
                        priority="1-9",
                        workload="saturated",
                        requests=1000,
                        moves=kind,
                        seed=seed,
                        **({} if mobility == "none" else {"mobility": mobility}),
                    )
                    total += sum(run.measures.messages.values()) / run.measures.entries
                figures.append(f"{total / 3:.1f}")
            print(f"{topology}, {mobility} | {' | '.join(figures)}")


def entries() -> None:
    print(f"\nnodes, degree, k, load | {' | '.join(KINDS)} | all")
    setups = [(n, 4.0, 3, load) for load in ("serial", "saturated") for n in (16, 64, 256)]
    setups += [(64, degree, 3, "saturated") for degree in (2.5, 8.0, 16.0)]
    setups += [(64, 4.0, 1, "saturated"), (64, 4.0, 6, "saturated"), (64, 4.0, 3, "poisson:0.01")]
    for nodes, degree, permits, load in setups:
        run = finished(
            nodes=nodes,
            topology=f"links:{int(nodes * degree / 2)}",
            permits=permits,
            want=f"1-{permits}",
            priority="1-9",
            workload=load,
            requests=max(3000, 20 * nodes),
        )
        print(f"{nodes}, {degree:g}, {permits}, {load} | {per_entry(run)}")


if __name__ == "__main__":
    ageing()
    moves()
    changes()
    entries()
