"""A study file: settings of ``meshlock simulate``, some of them with many values.

A list anywhere in the file is an axis; every combination of values is a point, and every point is
run once per seed::

    title = "What priority buys"
    repetitions = 10
    nodes = 20
    priority = "1-9"
    workload = ["poisson:0.01", "poisson:0.1", "poisson:1"]
    algorithm = ["jiang", "direct"]
    measures = ["waiting.mean", "messages_per_entry"]

A list of tables is an axis, too: each table is a set of settings that go together, called by its
``name``. What a table says stands above what the file says outside of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import ceil, floor, log2, sqrt
from pathlib import Path
from typing import Any

from meshlock.algorithms.registry import find, with_defaults
from meshlock.errors import Refused
from meshlock.simulate.run_settings import RunSettings, Values
from meshlock.simulate.settings import read_table
from meshlock.sweep.measures import refuse_unknown
from meshlock.sweep.runs import settings_of

PARTS = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.Call),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub),
)


def harmonic(count: float) -> float:
    """H(m) = 1 + 1/2 + ... + 1/m."""
    return sum(1.0 / i for i in range(1, int(count) + 1))


def ramanujan(count: float) -> float:
    """Q(n) = 1 + (n-1)/n + (n-1)(n-2)/n² + ..."""
    total, term, left = 0.0, 1.0, int(count)
    while left > 0 and term > 1e-17:
        total += term
        left -= 1
        term *= left / count
    return total


def tree_distance(nodes: float) -> float:
    """Mean distance of two nodes, drawn one by one from all, of a complete binary tree."""
    count = int(nodes)
    below = [1] * count
    for node in range(count - 1, 0, -1):
        below[(node - 1) // 2] += below[node]
    return sum(2.0 * size * (count - size) for size in below[1:]) / (count * count)


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "H": harmonic,
    "Q": ramanujan,
    "tree_distance": tree_distance,
    "sqrt": sqrt,
    "log2": log2,
    "floor": floor,
    "ceil": ceil,
}


class Formula:
    """A sum or product of numbers, settings and functions; nothing else can be written."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            raise self.wrong() from None
        for part in ast.walk(tree):
            number = not isinstance(part, ast.Constant) or isinstance(part.value, int | float)
            if not isinstance(part, PARTS) or not number:
                raise self.wrong()
        self.code = compile(tree, text, "eval")

    def value(self, settings: Mapping[str, str | int]) -> float:
        names = set(self.code.co_names) - set(FUNCTIONS)
        if not names <= set(settings):
            raise self.wrong()
        try:
            numbers = {name: float(settings[name]) for name in names}
            return float(eval(self.code, {"__builtins__": {}, **FUNCTIONS}, numbers))
        except (ArithmeticError, ValueError, TypeError):
            raise Refused(f"The formula '{self.text}' has no value for {dict(settings)}.") from None

    def wrong(self) -> Refused:
        return Refused(
            f"The formula '{self.text}' may have numbers, settings of the point, + - * / **, and "
            f"{', '.join(FUNCTIONS)}."
        )


Value = str | int
Labels = dict[str, Value]

OWN = ("title", "about", "repetitions", "measures", "events", "laws", "plot")
"""What a study file says beside settings and axes."""

USUAL_MEASURES = ["messages_per_entry", "waiting.mean", "sync_delay_mean"]
MOST_RUNS = 100_000


@dataclass(frozen=True)
class Plot:
    """One figure: a panel per measure, a curve per series, the points along ``x``."""

    name: str
    x: str
    series: list[str]
    panels: str  # an axis with a row of panels for each of its values, or ""
    measures: list[str]
    log: str | None
    title: str


@dataclass(frozen=True)
class Point:
    """One combination: what it is called on each axis, and its settings without the seed."""

    labels: Labels
    values: Values


@dataclass(frozen=True)
class Study:
    title: str
    about: str
    axes: list[str]
    points: list[Point]
    seeds: list[int]
    measures: list[str]
    laws: dict[str, dict[str, Formula]] = field(default_factory=dict)
    plots: list[Plot] = field(default_factory=list)
    events: int = 0  # a run is broken off after this number; 0: never

    def labels(self, axis: str) -> list[Value]:
        """The values of an axis, in the order of the file."""
        return list(dict.fromkeys(point.labels[axis] for point in self.points))

    def law(self, measure: str, point: Point) -> float | None:
        """What the literature says, if the study has a law for this point."""
        for label in point.labels.values():
            if formula := self.laws.get(measure, {}).get(str(label)):
                return formula.value(point.values)
        return None


def read_study(path: Path) -> Study:
    return study(read_table(path), path.stem)


def study(table: dict[str, Any], name: str) -> Study:
    settings = {key: value for key, value in table.items() if key not in OWN}
    seeds = chosen_seeds(settings, table.get("repetitions"))
    points = [Point(labels, values) for labels, values in expand(settings)]
    refuse_too_many(len(points) * len(seeds))
    axes = [key for key in settings if any(key in point.labels for point in points)]
    axes += sorted({key for point in points for key in point.labels} - set(axes))
    points = [
        Point({axis: point.labels.get(axis, point.values.get(axis, "")) for axis in axes},
              point.values)
        for point in points
    ]  # fmt: skip
    refuse_wrong(points)
    measures = texts("measures", table.get("measures", USUAL_MEASURES))
    for measure in measures:
        refuse_unknown(measure)
    title = table.get("title", name)
    made = Study(
        str(title),
        str(table.get("about", "")).strip(),
        axes,
        points,
        seeds,
        measures,
        chosen_laws(table.get("laws", {})),
        events=whole("events", table.get("events", 0), 0),
    )
    plots = table.get("plot", [{}])
    if not isinstance(plots, list) or not all(isinstance(plot, dict) for plot in plots):
        raise Refused("A plot is a table of its own: begin it with [[plot]].")
    for number, plot in enumerate(plots, start=1):
        made.plots.append(chosen_plot(plot, made, name if number == 1 else f"{name}-{number}"))
    made.measures.extend(
        dict.fromkeys(
            measure for plot in made.plots for measure in plot.measures if measure not in measures
        )
    )
    names = [plot.name for plot in made.plots]
    if len(set(names)) < len(names):
        raise Refused("Two plots have the same name: give each a name of its own.")
    return made


# -- axes -----------------------------------------------------------------------------------


def expand(table: dict[str, Any]) -> list[tuple[Labels, Values]]:
    """Every combination of the table's axes; later ones vary faster, and those of tables least."""
    found: list[tuple[Labels, Values]] = [({}, {})]
    for name in sorted(table, key=lambda name: not is_tables(table[name])):
        choices = choices_of(name, table[name])
        found = [
            ({**labels, **more}, {**values, **also})
            for labels, values in found
            for more, also in ([({}, {})] if name in values else choices)  # as a table says
        ]
        refuse_too_many(len(found))
    return found


def refuse_too_many(runs: int) -> None:
    if runs > MOST_RUNS:
        raise Refused(f"A study has at most {MOST_RUNS:,} runs: use fewer values, or fewer seeds.")


def choices_of(name: str, value: Any) -> list[tuple[Labels, Values]]:
    """Of an axis its labels, and the settings that each stands for."""
    if not isinstance(value, list):
        return [({}, {name: scalar(name, value)})]
    if not value:
        raise Refused(f"The list of '{name}' is empty: name at least one value.")
    if not is_tables(value):
        return [({name: one}, {name: one}) for one in [scalar(name, each) for each in value]]
    if name in RunSettings.keys:
        raise Refused(
            f"'{name}' is a setting: give the tables of an axis another name, and '{name}' inside "
            f"them."
        )
    return [one for case in value for one in expand_case(name, case)]


def expand_case(axis: str, case: dict[str, Any]) -> list[tuple[Labels, Values]]:
    case = dict(case)
    said = ", ".join(f"{key}={value}" for key, value in case.items())
    name = str(case.pop("name", said))
    return [({axis: name, **labels}, values) for labels, values in expand(case)]


def is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def scalar(name: str, value: Any) -> Value:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Refused(f"'{name}' must be a number, a text, or a list of them.")
    return str(value) if isinstance(value, float) else value


def chosen_seeds(settings: dict[str, Any], repetitions: Any) -> list[int]:
    given = settings.pop("seed", 1)
    is_list = isinstance(given, list)
    seeds = [whole("seed", seed, 0) for seed in (given if is_list else [given])]
    if is_list and repetitions is not None:
        raise Refused("Both repetitions and a list of seeds are given: give one of them.")
    if is_list:
        if len(set(seeds)) < len(seeds):
            raise Refused("A seed is named twice.")
        return seeds
    count = whole("repetitions", 1 if repetitions is None else repetitions, 1)
    return list(range(seeds[0], seeds[0] + count))


def whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise Refused(f"'{name}' takes a whole number, {least} or more, not '{value}'.")
    return value


def texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise Refused(f"'{name}' is a list of texts.")
    return list(value)


def refuse_wrong(points: list[Point]) -> None:
    """Names and options that no run could have, before any run."""
    seen: set[tuple[Value, ...]] = set()
    for point in points:
        settings = settings_of(point.values)
        with_defaults(find(settings.algorithm), settings.options)
        key = tuple(point.labels.values())
        if key in seen:
            said = ", ".join(f"{axis} {label}" for axis, label in point.labels.items())
            raise Refused(f"Two points are the same: {said}.")
        seen.add(key)


# -- laws and plots -------------------------------------------------------------------------


def chosen_laws(table: Any) -> dict[str, dict[str, Formula]]:
    """``[laws.MEASURE]`` with a formula of the settings for each label that has a law."""
    if not isinstance(table, dict) or not all(isinstance(one, dict) for one in table.values()):
        raise Refused('Laws are written as [laws.MEASURE], with LABEL = "FORMULA" below.')
    for measure in table:
        refuse_unknown(measure)
    return {
        measure: {label: Formula(str(text)) for label, text in laws.items()}
        for measure, laws in table.items()
    }


def chosen_plot(table: dict[str, Any], study: Study, name: str) -> Plot:
    known = ("name", "title", "x", "series", "panels", "measures", "log")
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"it has {', '.join(known)}."
            raise Refused(f"A plot has no '{key}': {hint}")
    axes = study.axes
    lengths = {axis: len(study.labels(axis)) for axis in axes}
    usual = max(
        axes, key=lambda axis: (position(study, axis) is not None, lengths[axis]), default=""
    )
    x = str(table.get("x", usual))
    panels = str(table.get("panels", ""))
    series = texts("series", table.get("series", [a for a in axes if a not in (x, panels)]))
    for axis in (x, panels, *series):
        if axis and axis not in axes:
            raise Refused(
                f"A plot names the axis '{axis}'; the axes are: {', '.join(axes) or 'none'}."
            )
    missing = [axis for axis in axes if axis not in (x, panels, *series)]
    if missing:
        raise Refused(f"A plot leaves out the axis '{missing[0]}': name it in x, series or panels.")
    log = table.get("log")
    if log not in (None, "", "x", "y", "xy"):
        raise Refused("'log' of a plot is x, y, xy, or an empty text for none.")
    measures = texts("measures", table.get("measures", study.measures))
    for measure in measures:
        refuse_unknown(measure)
    title = str(table.get("title", study.title))
    return Plot(str(table.get("name", name)), x, series, panels, measures, log, title)


def position(study: Study, axis: str, panels: str = "") -> dict[Value, float] | None:
    """Where each label of the axis is on a scale of numbers; None if they have no numbers, or
    if two of one panel have the same."""
    places = {label: number_in(label) for label in study.labels(axis)}
    if any(place is None for place in places.values()):
        return None
    drawn = {(point.labels.get(panels, ""), point.labels[axis]) for point in study.points}
    if len({(panel, places[label]) for panel, label in drawn}) < len(drawn):
        return None
    return {label: place for label, place in places.items() if place is not None}


def number_in(label: Value) -> float | None:
    """8, ``0.5``, ``poisson:0.1`` or ``500,200``: the number before any comma."""
    text = str(label).rpartition(":")[2].partition(",")[0]
    try:
        return float(text)
    except ValueError:
        return None
