"""meshlock simulate: run an algorithm in the laboratory and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshlock.cli.flags import JSON
from meshlock.cli.mutants import MUTANT, WITHOUT, chosen
from meshlock.cli.output import progress, report
from meshlock.errors import Refused
from meshlock.settings import argument, option
from meshlock.simulate.run_settings import RunSettings

if TYPE_CHECKING:
    from rich.console import RenderableType

    from meshlock.simulate.engine import Simulation


def simulate(
    *,
    scenario: Path | None = argument(
        None, "Read settings from this file (TOML). Flags override it."
    ),
    given: RunSettings,
    mutant: str | None = MUTANT,
    without: tuple[str, ...] = WITHOUT,
    behaviour: str | None = option(
        None,
        "Choose how nodes of general-scheme behave: proxy, transit, raymond, random, shortcut, "
        "open-cube, gateway.",
    ),
    queue: str | None = option(
        None, "Choose how nodes of general-scheme order requests: fifo or lift."
    ),
    options: dict[str, str] = option(
        {},
        "Set an option of the algorithm as NAME=VALUE (see 'meshlock algorithms --json'). May be "
        "repeated.",
        "--option",
    ),
    json: bool = JSON,
    trace: Path | None = option(None, "Write every event to this file."),
    trace_states: bool = option(False, "Write what each step changed, too."),
    verify_determinism: bool = option(
        False, "Run again in another process and compare every event."
    ),
) -> None:
    """Simulate an algorithm and report what it cost.

    Example: meshlock simulate --algorithm raymond --topology tree --nodes 31 --requests 5000

    All times are in one unit, that of --delay. With nodes that crash:
    meshlock simulate --nodes 5 --permits 3 --members all --crashes 2000 --workload poisson:0.01
    """
    from meshlock.simulate.report import figures as run_figures
    from meshlock.simulate.run_settings import as_values
    from meshlock.simulate.settings import read_scenario, run_settings

    values = read_scenario(scenario) if scenario is not None else {}
    values.update(given.given_keys())
    of_scheme = {"behaviour": behaviour, "queue": queue}
    values.update({name: text for name, text in of_scheme.items() if text is not None})
    values.update(as_values(options))
    named = chosen(str(values["algorithm"]) if "algorithm" in values else None, mutant, without)
    if named is not None:
        values["algorithm"] = named
    if "nodes" in given.given and given.nodes < 1:
        raise Refused("There must be at least one node: use --nodes 1 or more.")
    settings = run_settings(values)
    run, cpu, finished = simulate_with_progress(settings, trace, trace_states)
    figures = run_figures(run, settings.seed, cpu)
    if not finished:
        figures["interrupted"] = True
    if verify_determinism and finished:
        from meshlock.cli.determinism import first_divergence

        divergence = first_divergence(settings)
        figures["deterministic"] = divergence is None
        if divergence is not None:
            figures["violated"].append("determinism")
            click.echo(divergence, err=True)

    def shown() -> RenderableType:
        from meshlock.cli.simulation_report import run_report

        return run_report(run, figures)

    unserved = figures["unserved"] > figures.get("excused", 0)
    code = 1 if figures["violated"] or unserved else 0
    report(json, figures, shown, code if finished else 130)


def simulate_with_progress(
    settings: RunSettings, path: Path | None, states: bool
) -> tuple[Simulation, float, bool]:
    """Run to the end, or to Ctrl-C: the run, its CPU time, and whether it is whole."""
    from meshlock.simulate.settings import simulation
    from meshlock.trace.files import trace_file
    from meshlock.trace.writer import TraceWriter

    if path is None:
        return run_to_end(simulation(settings, None))
    with trace_file(path) as file:
        return run_to_end(simulation(settings, TraceWriter(file, states)))


def run_to_end(run: Simulation) -> tuple[Simulation, float, bool]:
    from meshlock.simulate.whole_run import whole_run

    with progress("simulating") as move:
        stretch = whole_run(run, lambda: move(run.measures.entries, run.workload.requests))
    return run, stretch.cpu, not stretch.interrupted
