"""The report of a study in Markdown, with the commands that make it and its broken runs again."""

from __future__ import annotations

from meshlock import __version__
from meshlock.properties.sentences import counted
from meshlock.sweep.measures import BROKEN
from meshlock.sweep.runs import command
from meshlock.sweep.study import Study
from meshlock.sweep.sweep import Panel, Summary, panels_of

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
