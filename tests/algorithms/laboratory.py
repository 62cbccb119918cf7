"""One simulated run and its figures, as the laws of the literature name them."""

from __future__ import annotations

from dataclasses import dataclass

from meshlock.simulate.engine import Simulation
from meshlock.simulate.settings import run_settings, simulation


@dataclass
class Run:
    """What came of a simulation."""

    entries: int
    messages: dict[str, int]
    messages_per_entry: float
    synchronisation_delay: float
    mean_wait: float
    shares: list[int]
    violated: dict[str, str]


def prepare(
    algorithm: str, nodes: int, workload: str, requests: int, **more: str | int
) -> Simulation:
    """A run that is ready for its first step; ``more`` as in a scenario file."""
    given: dict[str, str | int] = {
        "algorithm": algorithm,
        "nodes": nodes,
        "workload": workload,
        "requests": requests,
        **more,
    }
    ready = simulation(run_settings(given), None)
    ready.start()
    return ready


def figures(done: Simulation) -> Run:
    measures = done.measures
    return Run(
        measures.entries,
        dict(measures.messages),
        sum(measures.messages.values()) / measures.entries if measures.entries else 0.0,
        measures.sync_total / measures.sync_count if measures.sync_count else 0.0,
        sum(measures.waits) / measures.entries if measures.entries else 0.0,
        list(measures.entries_by_node),
        done.monitor.violated,
    )


def run(algorithm: str, nodes: int, workload: str, requests: int = 4000, **more: str | int) -> Run:
    """Until every request is served or nothing more can happen."""
    ready = prepare(algorithm, nodes, workload, requests, **more)
    while ready.run(100_000):
        pass
    ready.finish()
    return figures(ready)
