"""Tables for other programs, in CSV: one row per run, one row per point.

They are the same, byte by byte, wherever the study was run; what the machine did is in runs.jsonl.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from meshlock.errors import Attempt
from meshlock.sweep.measures import BROKEN, measured
from meshlock.sweep.study import Study
from meshlock.sweep.sweep import Summary

Cell = str | int | float | None


def write_tables(study: Study, found: list[Summary], folder: Path) -> None:
    write_csv(folder / "results.csv", *runs_table(study, found))
    write_csv(folder / "summary.csv", *points_table(study, found))


def runs_table(study: Study, found: list[Summary]) -> tuple[list[str], list[list[Cell]]]:
    measures = [measure for measure in study.measures if measure != BROKEN]
    names = [*study.axes, "seed", "broken", "requested", "entries", "unserved", *measures]
    rows: list[list[Cell]] = []
    for summary in found:
        labels = [summary.point.labels[axis] for axis in study.axes]
        for result in summary.results:
            figures: dict[str, Any] = result.line.figures or {}
            counts = [figures.get(name) for name in ("requested", "entries", "unserved")]
            values = [measured(figures, measure) if figures else None for measure in measures]
            rows.append([*labels, result.seed, result.broken, *counts, *values])
    return names, rows


def points_table(study: Study, found: list[Summary]) -> tuple[list[str], list[list[Cell]]]:
    """Means of the runs that are not broken, with the ends of the 95 % confidence interval."""
    with_law = [m for m in study.measures if any(m in summary.laws for summary in found)]
    names = [*study.axes, "runs", "broken"]
    for measure in study.measures:
        names += [measure, f"{measure} low", f"{measure} high"]
        names += [f"{measure} law"] if measure in with_law else []
    rows: list[list[Cell]] = []
    for summary in found:
        row: list[Cell] = [summary.point.labels[axis] for axis in study.axes]
        row += [len(summary.results), summary.broken]
        for measure in study.measures:
            got = summary.estimates[measure]
            if got is None or got.half is None:
                row += [got.mean if got else None, None, None]
            else:
                row += [got.mean, got.mean - got.half, got.mean + got.half]
            row += [summary.laws.get(measure)] if measure in with_law else []
        rows.append(row)
    return names, rows


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    with Attempt(f"write to {path}"), path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
