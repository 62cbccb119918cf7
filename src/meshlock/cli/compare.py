"""meshlock compare: a sweep over algorithms, one run each, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from meshlock.cli import output
from meshlock.cli.flags import JSON, named_values
from meshlock.errors import Refused
from meshlock.settings import REQUIRED, argument, option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from meshlock.simulate.run_settings import Values
    from meshlock.sweep.study import Study
    from meshlock.sweep.sweep import Result

AXIS = "compared"


def compare(
    names: tuple[str, ...] = argument(
        REQUIRED,
        "Compare these algorithms, with options where needed: jiang, "
        "jiang:moves=broadcast, general-scheme:behaviour=proxy,queue=lift ...",
    ),
    scenario: Path | None = option(
        None, "Read the settings that they have in common from this file (TOML)."
    ),
    settings: dict[str, str] = option(
        {}, "Set a setting of 'meshlock simulate' as NAME=VALUE. May be repeated.", "--set"
    ),
    json: bool = JSON,
) -> None:
    """Run several algorithms on the same scenario and print their measures side by side.

    Example: meshlock compare jiang reverse-link raymond --set topology=links:30 --set nodes=15

    For more seeds, loads or sizes write a study: meshlock sweep --help.
    """
    from meshlock.simulate.run_settings import as_values
    from meshlock.simulate.settings import read_scenario
    from meshlock.sweep.sweep import make_all
    from meshlock.sweep.workers import one_by_one

    common = read_scenario(scenario) if scenario is not None else {}
    common.update(as_values(settings))
    with output.progress("runs") as look:
        found = make_all(study_of(names, common), one_by_one, look)
    results = {str(summary.point.labels[AXIS]): summary.results[0] for summary in found}
    for result in results.values():
        if result.line.figures is None:
            raise Refused(result.line.failed)
    figures = {name: result.line.figures for name, result in results.items()}
    broken = any(result.broken for result in results.values())
    record = {"scenario": common, "results": figures}
    output.report(json, record, lambda: side_by_side(results), code=broken)


def study_of(names: tuple[str, ...], common: Values) -> Study:
    from meshlock.simulate.run_settings import as_values
    from meshlock.simulate.settings import run_settings
    from meshlock.sweep.study import study

    run_settings(common)  # refuses what is no setting, such as what only studies have
    cases: list[Values] = []
    for name in names:
        algorithm, options = split(name)
        own = as_values(named_values(name, options.split(",") if options else []))
        if name in [case["name"] for case in cases]:
            raise Refused(f"'{name}' is named twice.")
        cases.append({**own, "algorithm": algorithm, "name": name})
    return study({**common, AXIS: cases}, "compare")


def split(name: str) -> tuple[str, str]:
    """The algorithm and its options, of ``jiang:moves=silent`` or ``mine.py:name:moves=silent``."""
    algorithm, _, options = name.rpartition(":")
    return (algorithm, options) if "=" in options else (name, "")


def side_by_side(results: dict[str, Result]) -> RenderableType:
    from meshlock.sweep.measures import NAMES, measured

    table = output.table("")
    for name, result in results.items():
        table.add_column(f"✗ {name}" if result.broken else name, justify="right", overflow="fold")
    every: list[dict[str, Any]] = [result.line.figures or {} for result in results.values()]
    for kind in sorted({kind for figures in every for kind in figures["messages"]}):
        counts = [figures["messages"].get(kind) for figures in every]
        shares = [
            "" if count is None else f"{count / (figures['entries'] or 1):.3f}"
            for count, figures in zip(counts, every, strict=True)
        ]
        table.add_row(f"{kind} per entry", *shares)
    for measure, words in NAMES.items():
        values = [measured(figures, measure) for figures in every]
        if any(value is not None for value in values):
            cells = ["" if value is None else f"{value:.4g}" for value in values]
            table.add_row(", ".join(words), *cells)
    levels = {level for figures in every for level in figures["waiting_by_priority"]}
    if 1 < len(levels) <= 12:
        for level in sorted(levels, key=int, reverse=True):
            means = [measured(figures, f"waiting_by_priority.{level}.mean") for figures in every]
            cells = ["" if mean is None else f"{mean:.4g}" for mean in means]
            table.add_row(f"waiting, priority {level}", *cells)
    table.add_row("violated", *[", ".join(figures["violated"]) or "nothing" for figures in every])
    broken = [
        f"✗ {name} {result.broken}: its figures are of what it served."
        for name, result in results.items()
        if result.broken
    ]
    return output.group(table, *broken)
