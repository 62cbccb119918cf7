"""What belongs into one panel of a plot and one table of the report."""

from __future__ import annotations

from dataclasses import dataclass

from meshlock.sweep.measures import title
from meshlock.sweep.study import Plot, Study, Value, number_in
from meshlock.sweep.sweep import Summary


@dataclass(frozen=True)
class Panel:
    """One measure: for every series its points along x."""

    measure: str
    title: str
    xs: list[Value]
    series: dict[str, dict[Value, Summary]]


def panels_of(study: Study, plot: Plot, found: list[Summary]) -> list[list[Panel]]:
    """Rows of panels: one row per value of the axis ``panels``, one column per measure."""
    rows = study.labels(plot.panels) if plot.panels else [""]
    return [[panel(study, plot, found, measure, row) for measure in plot.measures] for row in rows]


def panel(study: Study, plot: Plot, found: list[Summary], measure: str, row: Value) -> Panel:
    series: dict[str, dict[Value, Summary]] = {}
    for summary in found:
        labels = summary.point.labels
        if plot.panels and labels[plot.panels] != row:
            continue
        words = [called(axis, labels[axis]) for axis in plot.series if str(labels[axis])]
        x = labels[plot.x] if plot.x else ""
        series.setdefault(", ".join(words), {})[x] = summary
    xs = [
        x
        for x in (study.labels(plot.x) if plot.x else [""])
        if any(x in s for s in series.values())
    ]
    name = title(measure)
    return Panel(measure, f"{called(plot.panels, row)}: {name}" if row != "" else name, xs, series)


def called(axis: str, label: Value) -> str:
    """A number alone says nothing."""
    return str(label) if number_in(label) is None else f"{axis} {label}"
