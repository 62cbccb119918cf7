"""meshlock simulate: run an algorithm in the laboratory and report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshlock.cli import output
from meshlock.cli.flags import JSON
from meshlock.cli.mutants import MUTANT, WITHOUT
from meshlock.cli.output import progress, report, text
from meshlock.errors import Refused
from meshlock.settings import argument, option
from meshlock.simulate.run_settings import RunSettings

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

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
    properties: tuple[str, ...] = option(
        (),
        "Judge this function of your own, too, after every step: FILE.py:NAME. May be repeated.",
        "--property",
    ),
    verify_determinism: bool = option(
        False, "Run again in another process and compare every event."
    ),
) -> None:
    """Simulate an algorithm and report what it cost.

    Example: meshlock simulate --algorithm raymond --topology tree --nodes 31 --requests 5000

    All times are in one unit, that of --delay. With nodes that crash:
    meshlock simulate --nodes 5 --permits 3 --members all --crashes 2000 --workload poisson:0.01
    """
    from meshlock.algorithms.mutants.choice import chosen
    from meshlock.simulate.report import figures as run_figures
    from meshlock.simulate.run_settings import as_values
    from meshlock.simulate.settings import read_scenario, run_settings, simulation
    from meshlock.simulate.whole_run import whole_run
    from meshlock.trace.watched import traced, watched_by

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
    watched = watched_by(properties)
    with traced(trace, trace_states, watched) as writer, progress("simulating") as move:
        run = simulation(settings, writer)
        done = whole_run(run, lambda: move(run.measures.entries, run.workload.requests))
    if watched is not None:
        run.monitor.violated.update(watched.end())
    figures = run_figures(run, settings.seed, done.cpu)
    if done.interrupted:
        figures["interrupted"] = True
    elif verify_determinism:
        divergence = first_divergence(settings)
        figures["deterministic"] = divergence is None
        if divergence is not None:
            figures["violated"].append("determinism")
            click.echo(divergence, err=True)

    unserved = figures["unserved"] > figures.get("excused", 0)
    code = 1 if figures["violated"] or unserved else 0
    report(json, figures, lambda: run_report(run, figures), 130 if done.interrupted else code)


# -- its figures for people ------------------------------------------------------------------


def run_report(run: Simulation, figures: dict[str, Any]) -> RenderableType:
    from meshlock.properties.sentences import counted
    from meshlock.simulate.recovery import RecoverySimulation

    title = text(run.algorithm.title, style="bold")
    lines = []
    k = figures["permits"]
    permits = counted(k, "permit") if run.kinds is None else f"permits {run.kinds}"
    if isinstance(run, RecoverySimulation):
        lines.append(f"{run.algorithm.name}, with recovery by {len(run.lives.members)} members")
    lines.append(
        f"{figures['nodes']} nodes, {permits}, seed {figures['seed']}; "
        f"{figures['entries']} entries in {figures['sim_time']:.6g} time units"
    )
    if figures.get("interrupted"):
        lines.append("Interrupted: these are the figures so far.")
    return output.group(
        title.append("".join(f"\n{line}" for line in lines), style="not bold"),
        *(text(), messages(figures), text(), waiting(figures), text()),
        *recovery(figures),
        verdict(run, figures),
    )


def messages(figures: dict[str, Any]) -> Table:
    table = output.table("message", "sent>", "per entry>")
    entries = figures["entries"] or 1
    for kind, count in figures["messages"].items():
        table.add_row(kind, f"{count:,}", f"{count / entries:.3f}")
    total = sum(figures["messages"].values())
    table.add_row("all", f"{total:,}", f"{figures['messages_per_entry']:.3f}", style="bold")
    return table


def waiting(figures: dict[str, Any]) -> Table:
    table = output.table("waiting", "mean>", "p50>", "p95>", "p99>", "max>")
    spreads = {"all": figures["waiting"]}
    levels, wants = figures["waiting_by_priority"], figures["waiting_by_want"]
    if 1 < len(levels) <= 12:
        spreads |= {f"priority {level}": levels[level] for level in sorted(levels, key=int)[::-1]}
    if 1 < len(wants) <= 12:
        spreads |= {f"want {want}": spread for want, spread in wants.items()}
    for name, spread in spreads.items():
        table.add_row(name, *[f"{spread[key]:.4g}" for key in ("mean", "p50", "p95", "p99", "max")])
    return table


def recovery(figures: dict[str, Any]) -> list[Table | Text]:
    """What faults and leases cost, where nodes recover."""
    found = figures.get("recovery")
    if found is None:
        return []
    outages, recovered = found["outages"], found["time_to_recover"]
    share, owed = found["served_share"], found["requests_with_path"]
    rows = {
        "crashes, cuts, epochs": f"{found['crashes']}, {found['partitions']}, {found['epochs']}",
        "no token anywhere": spans(outages),
        "majority without a token": spans(recovered),
        "nodes could be served": f"{share['worst']:.1%} to {share['best']:.1%} of the time",
        "a majority was connected": f"{found['majority_share']:.1%} of the time",
        "permits idle for leases": f"{found['idle_share']:.1%}",
        "grants lost, orphaned; requests lost": (
            f"{found['lost_grants']}, {found['orphaned_grants']}; {found['lost_requests']}"
        ),
        "lease messages per time, at rest": f"{found['lease_messages_at_rest'] or 0:.4g}",
        "had a path to a majority for long": "not counted" if owed is None else f"{owed:,}",
        "unserved, of these with a path": f"{figures['unserved']}, {found['unserved_with_path']}",
    }
    if found["lease_messages_at_rest"] is None:
        del rows["lease messages per time, at rest"]
    table = output.table("", ">")
    table.show_header = False
    for row in rows.items():
        table.add_row(*row)
    return [table, text()]


def spans(times: dict[str, Any]) -> str:
    if not times["count"]:
        return "never, after the first"
    return f"{times['count']} times, median {times['median']:.4g}, worst {times['worst']:.4g}"


def verdict(run: Simulation, figures: dict[str, Any]) -> Text:
    from math import inf

    from meshlock.simulate.recovery import RecoverySimulation

    if violated := run.monitor.violated:
        shown = text("Violated:", style="bold red")
        for name, sentence in violated.items():
            shown.append(f"\n  {name}: {sentence}", style="red")
        return shown
    checked = "safety"
    if isinstance(run, RecoverySimulation):
        checked += ", leases, slots, fences, one token per epoch, conservation"
    elif run.balanced:
        checked += ", one token, conservation"
    if run.monitor.ordered or (isinstance(run, RecoverySimulation) and run.order.slack < inf):
        checked += ", order"
    excused = ""
    if run.excused:
        which = "1 request waits" if run.excused == 1 else f"{run.excused} requests wait"
        excused = f"; {which} in a part of the network without the token or some of the permits"
    delay, used = figures["sync_delay_mean"], figures["use_rate"]
    shown = text(f"synchronisation delay {delay:.4g}, use rate {used:.3f}\n")
    return shown.append(f"no violation of {checked}{excused}", "green")


def first_divergence(settings: RunSettings) -> str | None:
    """The same settings twice, in processes with different hash seeds: a sentence that names the
    first event that differs, or None if none does."""
    import os
    import subprocess
    import sys
    from itertools import zip_longest
    from tempfile import TemporaryDirectory

    from meshlock.sweep.runs import flags_of

    values = {**settings.values(), **settings.options}
    if not values["nodes"]:
        del values["nodes"]
    command = [sys.executable, "-m", "meshlock", "simulate", *flags_of(values)]
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("first.jsonl", "second.jsonl")]
        for path, hash_seed in zip(paths, ("1", "2"), strict=True):
            subprocess.run(
                [*command, "--trace-states", "--trace", str(path)],
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                stdout=subprocess.DEVNULL,
                check=False,  # a run that violates a property has a trace, too
            )
        with paths[0].open() as first, paths[1].open() as second:
            for number, (one, other) in enumerate(zip_longest(first, second), start=1):
                if one != other:
                    return f"The runs diverge at line {number}:\n  {one}  {other}"
    return None
