"""What a run measured, by name; and what several runs of one point say together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from math import fsum, sqrt
from typing import Any

from meshlock.errors import Refused

NAMES: dict[str, tuple[str, str]] = {
    "messages_per_entry": ("messages", "per entry"),
    "link_crossings_per_entry": ("link crossings", "per entry"),
    "token_hops_per_entry": ("token hops", "per entry"),
    "waiting.mean": ("waiting, mean", "time units"),
    "waiting.p50": ("waiting, median", "time units"),
    "waiting.p95": ("waiting, 95th percentile", "time units"),
    "waiting.p99": ("waiting, 99th percentile", "time units"),
    "waiting.max": ("waiting, longest", "time units"),
    "sync_delay_mean": ("synchronisation delay, mean", "time units"),
    "priority_violations.base": ("overtakings, base priority", "pairs"),
    "priority_violations.aged": ("overtakings, aged priority", "pairs"),
    "priority_violations.known": ("overtakings known where decided", "entries"),
    "use_rate": ("use rate of the permits", "share"),
    "fairness": ("fairness between nodes", "Jain's index"),
    "deadline_misses": ("deadlines missed", "entries"),
    "priority_changes": ("priorities changed while waiting", "requests"),
    "part_releases": ("releases of a part", "releases"),
    "connected_share": ("time in which all are connected", "share"),
    "unserved": ("requests left unserved", "requests"),
    "sim_time": ("virtual time", "time units"),
    "recovery.majority_served_share": ("a connected majority has the token", "share of its time"),
    "recovery.served_share.mean": ("nodes that can reach the token", "share"),
    "recovery.served_share.worst": ("the worst node can reach the token", "share"),
    "recovery.idle_share": ("permits out of use", "share"),
    "recovery.outages.worst": ("outage, longest", "time units"),
    "recovery.time_to_recover.median": ("time to recover, median", "time units"),
    "recovery.lost_grants": ("grants whose lease ran out", "grants"),
    "recovery.map_crossings_per_entry": ("link crossings for the link map", "per entry"),
    "recovery.lease_messages_at_rest": ("lease messages at rest", "per time unit"),
    "broken_share": ("runs that broke a property or left requests", "share"),
}
"""How a measure is called in print, and its unit. Any other figure can be named as well."""

BROKEN = "broken_share"
"""The share of a point's runs that are broken: the only measure in which broken runs count."""

UNLIKE = ("cpu_s", "messages_per_cpu_s")
"""Figures that are not the same wherever a run is made."""


SPREAD = r"(mean|p50|p95|p99|max)"
PATHS = re.compile(
    "|".join(
        [
            r"nodes|permits|requested|entries|excused|messages\.[A-Z_]+",
            rf"waiting\.{SPREAD}|waiting_by_(priority|want)\.-?\d+\.{SPREAD}",
            r"link_changes\.(up|down)|undelivered\.(returned|lost|late)",
            r"recovery\.(epochs|permits|crashes|partitions|member_changes|birth|majority_share)",
            r"recovery\.(orphaned_grants|lost_requests|\w+_with_path|long_enough\.(recover|queue))",
            r"recovery\.(outages|time_to_recover)\.(count|median|worst)",
            r"recovery\.served_share\.best",
        ]
    )
)
"""Numbers in the JSON of a run that have no name in print."""


def refuse_unknown(measure: str) -> None:
    for path in measure.split(" / "):
        if path not in NAMES and path not in UNLIKE and not PATHS.fullmatch(path):
            close = get_close_matches(path, NAMES, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "the JSON of simulate has all."
            raise Refused(f"There is no measure '{path}': {hint}")
        if path in UNLIKE:
            raise Refused(
                f"'{path}' differs from machine to machine and is no measure of a study; "
                f"runs.jsonl has it."
            )


FORMS = {
    r"waiting_by_(\w+)\.(\d+)\.mean": (r"waiting with \1 \2, mean", "time units"),
    r"waiting_by_(\w+)\.(\d+)\.max": (r"waiting with \1 \2, longest", "time units"),
    r"messages\.([A-Z_]+) / entries": (r"\1 messages", "per entry"),
}
"""The same for families of measures."""

AXES = {
    "workload": "requests per client and time unit",
    "lease": "time units",
    "delay": "time units",
    "hold": "time units",
    "patience": "grants",
    "crashes": "time units between crashes",
    "mobility": "squares per time unit",
}
"""Units of settings."""


def named(measure: str) -> tuple[str, str]:
    """How it is called in print, and its unit."""
    first, slash, second = measure.partition(" / ")
    for form, (words, unit) in FORMS.items():
        if re.fullmatch(form, measure):
            return re.sub(form, words, measure), unit
    if slash and second == "entries" and first in NAMES:
        return NAMES[first][0], f"{NAMES[first][1]} per entry"
    return NAMES.get(measure, (measure, ""))


def measured(figures: dict[str, Any], measure: str) -> float | None:
    """A figure by its path, ``waiting.p95``, or a quotient: ``messages.LINK / entries``."""
    first, slash, second = measure.partition(" / ")
    value = figure(figures, first)
    if not slash:
        return value
    divisor = figure(figures, second)
    return value / divisor if value is not None and divisor else None


def figure(figures: dict[str, Any], path: str) -> float | None:
    value: Any = figures
    for step in path.split("."):
        if isinstance(value, dict) and path.startswith("messages.") and step not in value:
            return 0.0  # no message of this kind was sent
        value = value.get(step) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) else None


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """All figures by their paths; lists as texts."""
    if isinstance(value, dict):
        inside = f"{path}." if path else ""
        return {key: one for name in value for key, one in flat(value[name], inside + name).items()}
    if isinstance(value, list | tuple):
        return {path: ", ".join(map(str, value))}
    return {} if value is None else {path: value}


def why_broken(figures: dict[str, Any] | None, failed: str) -> str:
    """Why a run must not be averaged with others; empty if it may."""
    if figures is None:
        return failed
    reasons = [f"violates {', '.join(figures['violated'])}"] if figures["violated"] else []
    if figures["unserved"]:
        reasons.append(f"leaves {figures['unserved']} requests unserved")
    return " and ".join(reasons)


@dataclass(frozen=True)
class Estimate:
    """The mean over seeds and half of its 95 % confidence interval."""

    mean: float
    half: float | None  # None where one run says nothing about the others


def estimate(values: list[float]) -> Estimate | None:
    count = len(values)
    if count == 0:
        return None
    mean = fsum(values) / count
    if count == 1:
        return Estimate(mean, None)
    variance = fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Estimate(mean, student(count - 1) * sqrt(variance / count))


STUDENT = (12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216, 2.22814)
"""Student's t at 97.5 % for 1 to 10 degrees of freedom."""


def student(freedom: int) -> float:
    """Student's t at 97.5 %: a table, and from 11 on Cornish and Fisher's series (to 1e-5)."""
    if freedom <= len(STUDENT):
        return STUDENT[freedom - 1]
    z = 1.959963985
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
