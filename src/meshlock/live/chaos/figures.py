"""What a run was like, in figures: how much was done, and how long it took to recover.

The recovery from a fault is the time until the next grant anywhere; answers that were under
way when it struck do not count. ``idle`` is how much of it nothing excuses: often the permits
are in use meanwhile, by clients who know nothing of the fault.

Measured are faults that struck alone, with a majority left: if another came shortly before, or
before service resumed, the time may belong to either.
``longest_stall`` counts all of them: the longest time in which a majority was there, a client
with it waited, all that was asked for was free, and no client got it; ``resumed_within`` is the
same, counted anew from every fault: what is judged.

When a client is killed while it holds permits, they are *back* when the others hold all k at
once: its agent gives them back if it lives; if the whole node is killed, its lease must end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from meshlock.live.chaos import record as lines
from meshlock.live.chaos.judge import RecordVerdict, Use
from meshlock.live.chaos.record import FaultLine, RecordLine, SetUpLine
from meshlock.live.chaos.resource import REFUSED

UNDER_WAY = 0.1
"""Seconds in which an answer may still arrive that was given before the fault."""


AFTERMATH = 2
"""Leases after which what a fault left behind has lapsed."""


def figures(record: Sequence[RecordLine], verdict: RecordVerdict) -> dict[str, Any]:
    set_up = record[0]
    assert isinstance(set_up, SetUpLine)
    faults = [line for line in record if isinstance(line, FaultLine)]
    grants = [line.t for line in record if isinstance(line, lines.GrantedLine)]
    late = [line for line in record if isinstance(line, lines.Wrote) and line.late]
    unserved = [line.why for line in record if isinstance(line, lines.NotServed)]
    starts = [line for line in record if isinstance(line, lines.Up)]
    lease = set_up.lease
    held = totals(verdict.uses)
    full = [time for time, total in held if total >= set_up.permits]
    stalls = [stall for stall in verdict.stalls if grants and stall.begin >= grants[0]]
    return {
        "seconds": round(record[-1].t - set_up.t, 1),
        "kills": counted(faults, "killed"),
        "pauses": counted(faults, "paused"),
        "partitions": counted(faults, "partition"),
        "faults": {kind: counted(faults, kind) for kind in sorted({f.kind for f in faults})},
        "restarts": len(starts) - len(set_up.nodes),
        "restarts_without_memory": sum(line.wiped for line in starts),
        "requests": len(verdict.uses),
        "grants": len(grants),
        "leases_lost": sum(isinstance(line, lines.LostLine | lines.Expired) for line in record),
        "timeouts": unserved.count("timeout"),
        "agent_gone": unserved.count("gone"),
        "first_grant": round(grants[0] - set_up.t, 3) if grants else None,
        "longest_stall": longest([stall.idle for stall in stalls]),
        "resumed_within": longest([stall.inexcusable for stall in stalls]),
        "longest_without_grant": longest([stall.seconds for stall in stalls]),
        "recovery": {
            kind: recoveries(kind, faults, grants, verdict)
            for kind in sorted({fault.kind for fault in faults})
        },
        "permits_back": {
            kind: spread(
                [end - one.t for one, end in until_next(kind, faults, full, lease) if one.held]
            )
            for kind in ("client killed", "node killed")
        },
        "late_writes": {
            "made": len(late),
            "refused": sum(line.outcome == REFUSED for line in late),
        },
        "most_permits": max((total for _, total in held), default=0),
    }


def counted(faults: list[FaultLine], word: str) -> int:
    return sum(fault.kind.endswith(word) for fault in faults)


def longest(times: list[float]) -> float | None:
    return round(max(times), 3) if times else None


def spread(times: list[float]) -> dict[str, Any]:
    if not times:
        return {"measured": 0, "median": None, "worst": None}
    return {
        "measured": len(times),
        "median": round(median(times), 3),
        "worst": round(max(times), 3),
    }


def recoveries(
    kind: str, faults: list[FaultLine], grants: list[float], verdict: RecordVerdict
) -> dict[str, Any]:
    found, idle = [], []
    begins = [stall.begin for stall in verdict.stalls]
    for fault, end in until_next(kind, faults, grants, verdict.set_up.lease, UNDER_WAY):
        stall = verdict.stalls[bisect_right(begins, fault.t + UNDER_WAY) - 1]
        if stall.majority:
            found.append(end - fault.t)
            idle.append(stall.idle)
    return {**spread(found), "idle": spread(idle)}


def until_next(
    kind: str, faults: list[FaultLine], moments: list[float], lease: float, after: float = 0.0
) -> Iterator[tuple[FaultLine, float]]:
    """Each fault of this kind and the next of these moments, if no other fault struck until then,
    and long enough before."""
    for fault in faults:
        place = bisect_right(moments, fault.t + after)
        if fault.kind != kind or place == len(moments):
            continue
        begin, end = fault.t - AFTERMATH * lease, moments[place]
        if not any(other is not fault and begin <= other.t < end for other in faults):
            yield fault, end


def totals(uses: list[Use]) -> list[tuple[float, int]]:
    """How many permits were valid from each moment on."""
    changes: list[tuple[float, int]] = []
    for use in uses:
        for begin, end in use.spans:
            moments = [begin, *[when for when, _ in use.parts if begin < when < end]]
            held = [0, *[use.held(moment) for moment in moments], 0]
            changes += [
                (time, after - before)
                for time, before, after in zip([*moments, end], held, held[1:], strict=False)
            ]
    changes.sort()
    found, total = [], 0
    for time, change in changes:
        total += change
        found.append((time, total))
    return found
