"""Make the runs of a study, keep them, and put together what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from meshlock.errors import Refused
from meshlock.simulate.run_settings import Values
from meshlock.sweep.kept import Kept
from meshlock.sweep.measures import BROKEN, Estimate, estimate, measured, why_broken
from meshlock.sweep.runs import RunLine, key_of, read_line
from meshlock.sweep.study import Point, Study

Make = Callable[[list[Values], int], Iterator[bytes]]
"""Makes runs and gives their lines, in any order; see :mod:`.workers`."""

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


@dataclass(frozen=True)
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


def values_of(point: Point, seed: int) -> Values:
    return {**point.values, "seed": seed}


def keep_all(study: Study, path: Path, make: Make, look: Look) -> list[Summary]:
    """Make what is missing in the file at ``path``, append it there, and sum up."""
    with Kept(path) as kept:
        return fill(study, kept.lines, kept.add, make, look)


def make_all(study: Study, make: Make, look: Look) -> list[Summary]:
    """The same without a file."""
    return fill(study, {}, lambda text: None, make, look)


def fill(
    study: Study, lines: dict[str, RunLine], keep: Callable[[bytes], None], make: Make, look: Look
) -> list[Summary]:
    """Make the runs that ``lines`` do not have, ``keep`` them, and sum up."""
    runs = [values_of(point, seed) for point in study.points for seed in study.seeds]
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
