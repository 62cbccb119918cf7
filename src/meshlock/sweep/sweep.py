"""Make the runs of a study, keep them, and put together what they say, panel by panel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from meshlock.errors import Refused
from meshlock.sweep.measures import BROKEN, Estimate, estimate, flat, measured, named, why_broken
from meshlock.sweep.runs import Kept, RunLine, key_of, read_line
from meshlock.sweep.study import Plot, Point, Study, Value, number_in
from meshlock.sweep.workers import Make as Make

Look = Callable[[int, int], None]
"""Called with how many runs are done, and of how many."""


@dataclass(frozen=True)
class Result:
    """One run of a point."""

    seed: int
    line: RunLine

    @property
    def broken(self) -> str:
        """Why it must not be averaged with others; empty if it may."""
        return why_broken(self.line.figures, self.line.failed)

    def row(self) -> dict[str, Any]:
        """Its settings and figures, flat."""
        return {**self.line.values, **flat(self.line.figures), "broken": self.broken}


@dataclass(frozen=True, repr=False)
class Summary:
    """All runs of a point. Means are those of the runs that are not broken."""

    point: Point
    results: list[Result]
    estimates: dict[str, Estimate | None]
    laws: dict[str, float]

    @property
    def broken(self) -> int:
        return sum(1 for result in self.results if result.broken)

    @property
    def mark(self) -> str:
        """Empty, or what has to stand wherever this point is shown."""
        return f"✗ {self.broken} of {len(self.results)} broken" if self.broken else ""

    def difference(self, baseline: Summary, measure: str) -> Estimate | None:
        """This point less the baseline, seed by seed; a seed that is broken at one is left out."""
        others = {one.seed: one for one in baseline.results if not one.broken}
        pairs = [(one, others[one.seed]) for one in self.results if one.seed in others]
        values = [
            (measured(one.line.figures or {}, measure), measured(other.line.figures or {}, measure))
            for one, other in pairs
            if not one.broken
        ]
        return estimate(
            [one - other for one, other in values if one is not None and other is not None]
        )

    def row(self) -> dict[str, Any]:
        """Labels and means, flat, with half of each 95 % confidence interval."""
        row: dict[str, Any] = {
            **self.point.labels,
            "runs": len(self.results),
            "broken": self.broken,
        }
        for measure, found in self.estimates.items():
            row[measure] = None if found is None else found.mean
            row[f"{measure} half"] = None if found is None else found.half
        return row | {f"{measure} law": law for measure, law in self.laws.items()}

    def __repr__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.row().items())


def make_all(study: Study, make: Make, look: Look, path: Path | None = None) -> list[Summary]:
    """Make all runs and sum up. With a file, make only those it does not have, and append them."""
    if path is None:
        return fill(study, {}, lambda text: None, make, look)
    with closing(Kept(path)) as kept:
        return fill(study, kept.lines, kept.add, make, look)


def fill(
    study: Study, lines: dict[str, RunLine], keep: Callable[[bytes], None], make: Make, look: Look
) -> list[Summary]:
    runs = [{**point.values, "seed": seed} for point in study.points for seed in study.seeds]
    keys = [key_of(values, study.events) for values in runs]
    wanted = dict(zip(keys, runs, strict=True))
    missing = [values for key, values in wanted.items() if key not in lines or lines[key].again]
    done = len(wanted) - len(missing)
    look(done, len(wanted))
    for text in make(missing, study.events):
        line = read_line(text)
        if line is None or line.key not in wanted:
            raise Refused(
                f"The run made by {line.where if line else 'a worker'} has another version of "
                f"meshlock, or other files, than this process: let them be the same everywhere, "
                f"and unchanged while the sweep runs."
            )
        keep(text)
        lines[line.key] = line
        done += 1
        look(done, len(wanted))
    return summaries(study, [lines[key] for key in keys])


def summaries(study: Study, lines: list[RunLine]) -> list[Summary]:
    """``lines``: of all points in order, each with all seeds in order."""
    found = []
    given = iter(lines)
    for point in study.points:
        results = [Result(seed, next(given)) for seed in study.seeds]
        laws = {measure: study.law(measure, point) for measure in study.measures}
        found.append(
            Summary(
                point,
                results,
                {measure: over_seeds(results, measure) for measure in study.measures},
                {measure: law for measure, law in laws.items() if law is not None},
            )
        )
    return found


def over_seeds(results: list[Result], measure: str) -> Estimate | None:
    if measure == BROKEN:
        broken = sum(1 for result in results if result.broken)
        return Estimate(broken / len(results), None)  # a count, no sample of a quantity
    values = [
        measured(result.line.figures, measure)
        for result in results
        if result.line.figures is not None and not result.broken
    ]
    return estimate([value for value in values if value is not None])


# -- panels of plots and of the report --------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """One measure: for every series its points along x."""

    measure: str
    title: str
    unit: str
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
    name, unit = named(measure)
    heading = f"{called(plot.panels, row)}: {name}" if row != "" else name
    return Panel(measure, heading, unit, xs, series)


def called(axis: str, label: Value) -> str:
    """A number alone says nothing."""
    return str(label) if number_in(label) is None else f"{axis} {label}"
