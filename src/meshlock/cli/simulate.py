"""meshlock simulate: run an algorithm in the laboratory and report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from meshlock.cli import completion
from meshlock.cli.flags import Argument, Option
from meshlock.cli.mutants import Mutant, Without, chosen

if TYPE_CHECKING:
    from meshlock.simulate.engine import Simulation
    from meshlock.simulate.settings import Settings


def simulate(
    scenario: Annotated[
        Path | None, Argument(help="A scenario file (TOML); flags override it.")
    ] = None,
    algorithm: Annotated[
        str | None,
        Option(help="See meshlock algorithms; or a file.py.", complete=completion.algorithms),
    ] = None,
    mutant: Mutant = None,
    without: Without = None,
    nodes: Annotated[int | None, Option(help="How many nodes.")] = None,
    topology: Annotated[
        str | None,
        Option(
            help="line, ring, star, tree, grid:RxC, complete, edges:0-1,1-2, random:P, "
            "links:COUNT, geometric:RANGE, or a file (.graphml, .edgelist, .json)."
        ),
    ] = None,
    permits: Annotated[int | None, Option(help="k, how many permits there are.")] = None,
    want: Annotated[str | None, Option(help="h, asked for at a time: 2 or 1-3.")] = None,
    priority: Annotated[
        str | None,
        Option(help="Larger is more urgent: 5 or 1-9; or deadline:TIME, earliest first."),
    ] = None,
    workload: Annotated[
        str | None, Option(help="serial, saturated or poisson:RATE (per client).")
    ] = None,
    requests: Annotated[int | None, Option(help="How many requests in all.")] = None,
    clients: Annotated[int | None, Option(help="Clients per node.")] = None,
    delay: Annotated[str | None, Option(help="Per link: a time, uniform:A,B or exp:MEAN.")] = None,
    hold: Annotated[str | None, Option(help="How long a client stays inside.")] = None,
    links: Annotated[str | None, Option(help="fifo or unordered.")] = None,
    mobility: Annotated[
        str | None,
        Option(
            help="none, flips:RATE, waypoint:SPEED,RANGE, walk:..., gauss-markov:..., "
            "manhattan:..., or a file (.ns_movements, .movements[.gz], .tsv)."
        ),
    ] = None,
    radio_range: Annotated[
        str | None, Option("--range", help="Radio range, for files of movements.")
    ] = None,
    partitions: Annotated[
        str | None, Option(help="prevented, allowed, or healed at the end of changes.")
    ] = None,
    failures: Annotated[
        str | None,
        Option(
            help="What is on a failing link: drain (delivered first), return (to its sender) or "
            "custody (late, as live nodes have it)."
        ),
    ] = None,
    notice: Annotated[
        str | None,
        Option(help="With custody: time until an end of a link learns of a change."),
    ] = None,
    changes_until: Annotated[str | None, Option(help="No link changes after this time.")] = None,
    seed: Annotated[int | None, Option(help="Same seed, same run.")] = None,
    behaviour: Annotated[
        str | None,
        Option(
            help="Of general-scheme: proxy, transit, raymond, random, shortcut, open-cube, gateway."
        ),
    ] = None,
    queue: Annotated[
        str | None, Option(help="Of the general scheme's nodes: fifo or lift.")
    ] = None,
    option: Annotated[
        list[str] | None,
        Option(help="Any algorithm option as NAME=VALUE; see meshlock algorithms --json."),
    ] = None,
    members: Annotated[
        str | None,
        Option(
            help="Nodes may crash and the network may part: a quorum of these members (auto, all, "
            "or how many) renews leases and replaces a lost token. With any token algorithm."
        ),
    ] = None,
    lease: Annotated[
        str | None,
        Option(help="How long permits are good without renewal; in the unit of --delay."),
    ] = None,
    crashes: Annotated[
        str | None,
        Option(help="EVERY[,DOWN]: mean time between crashes of any node, and until it is back."),
    ] = None,
    disks_lost: Annotated[
        str | None, Option(help="Share of crashes that take the disk as well, as 0.1.")
    ] = None,
    cuts: Annotated[
        str | None,
        Option(help="EVERY,LASTS: the network is cut in two at random, mean times."),
    ] = None,
    permits_change: Annotated[
        str | None,
        Option(help="TIME:K[,TIME:K...]: with --members, there are K permits from then on."),
    ] = None,
    clock_skew: Annotated[
        str | None, Option(help="Share by which clocks may run fast or slow, as 0.01.")
    ] = None,
    until: Annotated[
        str | None, Option(help="With --members: stop at this time whoever waits.")
    ] = None,
    json: Annotated[bool, Option("--json", help="One JSON object.")] = False,
    trace: Annotated[Path | None, Option(help="Write every event to this file.")] = None,
    trace_states: Annotated[
        bool, Option("--trace-states", help="Also write what each step changed.")
    ] = False,
    verify_determinism: Annotated[
        bool,
        Option(
            "--verify-determinism", help="Run again in another process and compare every event."
        ),
    ] = False,
) -> None:
    """Simulate an algorithm and report what it cost.

    Example: meshlock simulate --algorithm raymond --topology tree --nodes 31 --requests 5000

    All times are in one unit, that of --delay. With nodes that crash:
    meshlock simulate --nodes 5 --permits 3 --members all --crashes 2000 --workload poisson:0.01
    """
    from meshlock.cli.output import setting_pairs
    from meshlock.errors import Refused
    from meshlock.simulate.settings import Settings, read_scenario

    given: dict[str, str | int | None] = {
        "algorithm": algorithm,
        "nodes": nodes,
        "topology": topology,
        "permits": permits,
        "want": want,
        "priority": priority,
        "workload": workload,
        "requests": requests,
        "clients": clients,
        "delay": delay,
        "hold": hold,
        "links": links,
        "mobility": mobility,
        "range": radio_range,
        "partitions": partitions,
        "failures": failures,
        "notice": notice,
        "changes-until": changes_until,
        "seed": seed,
        "behaviour": behaviour,
        "queue": queue,
        "members": members,
        "lease": lease,
        "crashes": crashes,
        "disks-lost": disks_lost,
        "permits-change": permits_change,
        "cuts": cuts,
        "clock-skew": clock_skew,
        "until": until,
    }
    values: dict[str, str | int] = read_scenario(scenario) if scenario is not None else {}
    values.update({name: value for name, value in given.items() if value is not None})
    values.update(setting_pairs("--option", option or []))
    named = chosen(str(values["algorithm"]) if "algorithm" in values else None, mutant, without)
    if named is not None:
        values["algorithm"] = named
    if nodes is not None and nodes < 1:
        raise Refused("There must be at least one node: use --nodes 1 or more.")
    settings = Settings(values)
    run, cpu, finished = simulate_with_progress(settings, trace, trace_states)
    figures = _figures(run, settings, cpu, finished)
    if verify_determinism and finished:
        from meshlock.cli.determinism import first_divergence

        divergence = first_divergence(settings)
        figures["deterministic"] = divergence is None
        if divergence is not None:
            figures["violated"].append("determinism")
            click.echo(divergence, err=True)
    if json:
        from meshlock.cli.output import print_json

        print_json(figures)
    else:
        from meshlock.cli.simulation_report import print_report

        print_report(run, figures, finished)
    if not finished:
        raise click.exceptions.Exit(130)
    raise click.exceptions.Exit(1 if figures["violated"] or figures["unserved"] else 0)


def _figures(run: Simulation, settings: Settings, cpu: float, finished: bool) -> dict[str, Any]:
    from meshlock.simulate.report import figures

    result = figures(run, settings.number("seed"), cpu)
    if not finished:
        result["interrupted"] = True
    return result


def simulate_with_progress(
    settings: Settings, path: Path | None, states: bool
) -> tuple[Simulation, float, bool]:
    """Run to the end, or to Ctrl-C: the run, its CPU time, and whether it is whole."""
    from meshlock.errors import Refused
    from meshlock.simulate.settings import simulation
    from meshlock.trace.writer import TraceWriter

    if path is None:
        return go(simulation(settings, None))
    try:
        with path.open("wb", buffering=1 << 20) as file:
            return go(simulation(settings, TraceWriter(file, states)))
    except OSError as error:
        raise Refused(f"Cannot write the trace to {path}: {error.strerror}.") from None


def go(run: Simulation) -> tuple[Simulation, float, bool]:
    from meshlock.simulate.whole_run import whole_run

    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("simulating", total=run.workload.requests)
            stretch = whole_run(run, lambda: progress.update(bar, completed=run.measures.entries))
    else:
        stretch = whole_run(run, lambda: None)
    return run, stretch.cpu, not stretch.interrupted
