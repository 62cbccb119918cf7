"""Figures of a run, with the names that the command line promises."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

from meshlock.algorithms.amounts import fields
from meshlock.algorithms.steps import without_unit
from meshlock.simulate.engine import Simulation
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.measures_by_kind import MeasuresByKind
from meshlock.simulate.recovery import RecoverySimulation


def spread(times: Sequence[float]) -> dict[str, float]:
    """Mean, percentiles (nearest rank) and maximum."""
    if not times:
        return {"mean": 0.0, "p50": 0.0, "p95": 0.0, "p99": 0.0, "max": 0.0}
    ordered = sorted(times)
    count = len(ordered)

    def rank(share: float) -> float:
        return ordered[ceil(share * count) - 1]

    return {
        "mean": sum(ordered) / count,
        "p50": rank(0.50),
        "p95": rank(0.95),
        "p99": rank(0.99),
        "max": ordered[-1],
    }


def jain(counts: Sequence[int]) -> float:
    """Jain's index of fairness: 1 if all are equal, 1/n if one has everything."""
    total = sum(counts)
    if total == 0:
        return 1.0
    return total * total / (len(counts) * sum(count * count for count in counts))


def figures(run: Simulation, seed: int, cpu: float) -> dict[str, Any]:
    measures = run.measures
    messages = sum(measures.messages.values())
    entries = measures.entries
    per_entry = messages / entries if entries else 0.0
    levels = sorted(measures.by_priority.items())
    if not measures.ranked:
        levels = [(run.workload.priorities[0], measures.waits)]
    wants = sorted(measures.by_want.items())
    if not measures.sized and entries:
        wants = [(run.workload.least, measures.waits)]
    write = str if run.kinds is None else run.kinds.write
    result: dict[str, Any] = {
        "algorithm": run.algorithm.name,
        "options": without_unit(run.options),
        "nodes": run.network.size,
        "permits": run.permits if run.kinds is None else run.kinds.outward(run.permits),
        "seed": seed,
        "requested": measures.requested,
        "entries": entries,
        "unserved": measures.waiting,
        "messages": dict(sorted(measures.messages.items())),
        "messages_per_entry": per_entry,
        "link_crossings_per_entry": measures.crossings / entries if entries else 0.0,
        "waiting": spread(measures.waits),
        "waiting_by_priority": {str(level): spread(times) for level, times in levels},
        "waiting_by_want": {write(want): spread(times) for want, times in wants},
        "sync_delay_mean": (
            measures.sync_total / measures.sync_count if measures.sync_count else 0.0
        ),
        "priority_violations": {
            "base": measures.base.pairs,
            "aged": measures.aged.pairs,
            "known": measures.known,
        },
        "token_hops_per_entry": measures.messages.get("TOKEN", 0) / entries if entries else 0.0,
        "use_rate": measures.used / run.capacity() if run.now > 0.0 else 0.0,
        "fairness": jain(measures.entries_by_node),
        "violated": list(run.monitor.violated),
        "connected_share": run.connected_share(),
        "sim_time": run.now,
        "cpu_s": cpu,
        "messages_per_cpu_s": messages / cpu if cpu > 0.0 else 0.0,
        "recovery": run.figures() if isinstance(run, RecoverySimulation) else None,
    }
    if run.kinds is not None and isinstance(measures, MeasuresByKind) and run.now > 0.0:
        numbers = zip(run.kinds.names, measures.used_by_kind, fields(run.permits), strict=True)
        result["use_rate_by_kind"] = {
            name: used / (number * run.now) for name, used, number in numbers
        }
    if isinstance(run, MobileSimulation) and not isinstance(run, RecoverySimulation):
        result["link_changes"] = {"up": run.ups, "down": run.downs}
        result["excused"] = run.excused
        result["undelivered"] = {
            "returned": run.returned,
            "lost": run.dropped,
            "late": run.late,
        }
    if run.workload.raises > 0.0:
        result["priority_changes"] = measures.changed
    if run.workload.parts > 0.0:
        result["part_releases"] = measures.parts
    if run.workload.deadlines is not None:
        result["deadline_misses"] = measures.missed
    return result
