"""What a simulation is made of, in one object."""

from __future__ import annotations

from dataclasses import dataclass

from meshlock.algorithms.actor import Algorithm
from meshlock.simulate.durations import Duration
from meshlock.simulate.workload import Workload
from meshlock.topology.graphs import Topology
from meshlock.topology.mobility.changes import Changes
from meshlock.trace.writer import TraceWriter


@dataclass
class RunSetup:
    algorithm: Algorithm
    options: dict[str, str]  # settled
    network: Topology
    permits: int
    workload: Workload
    delay: Duration  # per link
    hold: Duration
    fifo: bool = True
    seed: int = 1
    changes: Changes | None = None  # None: the links stay as they are
    trace: TraceWriter | None = None
