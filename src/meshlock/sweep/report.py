"""The report of a study in Markdown, with the commands that make it and its broken runs again.

Beside it are tables for other programs, in CSV: one row per run, one row per point.

They are the same, byte by byte, wherever the study was run; what the machine did is in runs.jsonl.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from meshlock import __version__
from meshlock.errors import Attempt
from meshlock.properties.sentences import counted
from meshlock.sweep.measures import BROKEN, measured
from meshlock.sweep.runs import command
from meshlock.sweep.study import Study
from meshlock.sweep.sweep import Panel, Summary, panels_of

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


MOST_BROKEN = 20
"""Points that are listed with a broken run and its command; results.csv has them all."""

WIDEST = 8
"""Columns of a table; with more values of x than this, or one series, they go down instead."""


def report(study: Study, found: list[Summary], make_again: str, figures: list[str]) -> str:
    runs = sum(len(summary.results) for summary in found)
    seeds = len(study.seeds)
    lines = [f"# {study.title}", ""]
    if study.about:
        lines += [study.about, ""]
    how = f"{counted(len(found), 'point')}, {counted(seeds, 'seed')} each, {runs} runs."
    if seeds > 1:
        how += " Figures are means over seeds ± half of the 95 % confidence interval."
    lines += [how, f"Made by meshlock {__version__}: `{make_again}`", ""]
    for name in figures:
        lines += [f"![{study.title}]({name})", ""]
    lines += broken_runs(found)
    for plot in study.plots:
        for row in panels_of(study, plot, found):
            for panel in row:
                lines += table(panel, plot.x)
    return "\n".join(lines).rstrip() + "\n"


def table(panel: Panel, x: str) -> list[str]:
    heading = f"## {panel.title[:1].upper()}{panel.title[1:]}"
    if panel.unit:
        heading += f" ({panel.unit})"
    names = list(panel.series)
    laws = [
        name
        for name in names
        if any(panel.measure in summary.laws for summary in panel.series[name].values())
    ]
    grid: list[list[str]] = [["", *[str(x_label) for x_label in panel.xs]]]
    grid[0][0] = x
    for name in names:
        points = panel.series[name]
        label = name or "measured"
        grid.append([label, *[cell(points.get(at), panel.measure) for at in panel.xs]])
        if name in laws:
            grid.append(
                [f"*{label}, law*", *[law(points.get(at), panel.measure) for at in panel.xs]]
            )
    if len(grid) == 2 or WIDEST < len(panel.xs) >= len(grid):
        grid = [list(column) for column in zip(*grid, strict=True)]
    rows = [f"| {' | '.join(row)} |" for row in grid]
    return [heading, "", rows[0], "|---" * len(grid[0]) + "|", *rows[1:], ""]


def cell(summary: Summary | None, measure: str) -> str:
    if summary is None:
        return ""
    got = summary.estimates[measure]
    words = []
    if got is not None:
        words.append(number(got.mean) if got.half is None else plus_minus(got.mean, got.half))
    if summary.mark and measure != BROKEN:
        words.append(f"**{summary.mark}**")
    return " ".join(words) or "–"


def law(summary: Summary | None, measure: str) -> str:
    if summary is None or measure not in summary.laws:
        return ""
    return f"*{number(summary.laws[measure])}*"


def number(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def plus_minus(mean: float, half: float) -> str:
    return number(mean) if half <= 1e-9 * abs(mean) else f"{number(mean)} ± {half:.2g}"


def broken_runs(found: list[Summary]) -> list[str]:
    points = [summary for summary in found if summary.broken]
    if not points:
        return ["No run broke a property or left a request unserved.", ""]
    lines = [
        f"**{sum(summary.broken for summary in points)} runs are broken**: they broke a property, "
        "left requests unserved or failed. They are marked ✗ and are part of no mean. One of each "
        "point:",
        "",
    ]
    for summary in points[:MOST_BROKEN]:
        labels = ", ".join(f"{axis} {label}" for axis, label in summary.point.labels.items())
        first = next(result for result in summary.results if result.broken)
        lines.append(f"- {labels}, seed {first.seed}: {first.broken} ({summary.mark})")
        lines.append(f"  `{command(first.line.values)}`")
    if len(points) > MOST_BROKEN:
        lines.append(f"- and {len(points) - MOST_BROKEN} more points, see results.csv")
    return [*lines, ""]
