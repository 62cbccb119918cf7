"""What changing networks cost, in CPU time: python benchmarks/mobile.py [--quick]

1. 200 nodes on random waypoints, 100,000 entries of jiang: CPU seconds (the goal is 60,
   compiled).
2. Cost per message from 100 to 10,000 nodes of equal degree, at rest and with flips.
3. Cost per link change of each way to change links.
"""

from __future__ import annotations

import gc
import sys
from math import pi, sqrt
from time import process_time

from meshlock.simulate import engine
from meshlock.simulate.settings import run_settings, simulation
from meshlock.topology.mobility.changes import LinkChange
from meshlock.topology.mobility.specification import mobility
from meshlock.topology.specification import network

DEGREE = 8
COMMON: dict[str, str | int] = {
    "algorithm": "jiang",
    "permits": 3,
    "want": "1-3",
    "priority": "1-9",
    "seed": 7,
}


def measure(title: str, **more: str | int) -> None:
    run = simulation(run_settings({**COMMON, **more}), None)
    gc.collect()
    gc.disable()
    started = process_time()
    run.start()
    while run.run(200_000):
        pass
    cpu = process_time() - started
    gc.enable()
    messages = sum(run.measures.messages.values())
    changes = getattr(run, "ups", 0) + getattr(run, "downs", 0)
    print(
        f"{title:34} {cpu:8.2f} s  {run.measures.entries:7} entries  {messages:9} messages "
        f"{1e6 * cpu / messages:6.2f} us each  {changes:8} link changes",
        flush=True,
    )


def changes_alone(spec: str, nodes: int, count: int) -> None:
    found = mobility(spec, network(f"links:{DEGREE // 2 * nodes}", nodes, 7), nodes, 7)
    assert found is not None
    started = process_time()
    for _ in range(count):
        change = found.changes.next()
        if not isinstance(change, LinkChange):
            continue
        if change.up:
            found.graph.connect(change.one, change.other)
        else:
            found.graph.cut(change.one, change.other)
    cpu = process_time() - started
    print(f"{spec:34} {nodes:6} nodes  {1e6 * cpu / count:7.2f} us per link change", flush=True)


def main() -> None:
    quick = "--quick" in sys.argv
    flavour = "pure Python" if (engine.__file__ or "").endswith(".py") else "compiled"
    print(f"{flavour}; goal of the first line: 60 s compiled")
    entries = 2_000 if quick else 100_000
    measure(
        "200 nodes, waypoint:0.0001,0.15",
        nodes=200,
        requests=entries,
        mobility="waypoint:0.0001,0.15",
    )
    for nodes in (100, 1_000) if quick else (100, 1_000, 10_000):
        few = entries // 5
        topology = f"links:{DEGREE // 2 * nodes}"
        measure(f"{nodes} nodes at rest", nodes=nodes, requests=few, topology=topology)
        measure(
            f"{nodes} nodes, flips:0.05",
            nodes=nodes,
            requests=few,
            topology=topology,
            mobility="flips:0.05",
        )
    for nodes in (100, 1_000):
        radius = round(sqrt(3 * DEGREE / (pi * nodes)), 4)
        for model in ("waypoint", "walk", "gauss-markov", "manhattan"):
            changes_alone(f"{model}:0.01,{radius}", nodes, 5_000 if quick else 100_000)
    for nodes in (100, 1_000, 10_000):
        changes_alone("flips:10", nodes, 5_000 if quick else 100_000)


if __name__ == "__main__":
    main()
