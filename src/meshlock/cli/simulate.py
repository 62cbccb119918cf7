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
        Path | None, Argument(help="Read settings from this file (TOML). Flags override it.")
    ] = None,
    algorithm: Annotated[
        str | None,
        Option(
            help="Run this algorithm: a name (see 'meshlock algorithms') or a file.py.",
            complete=completion.algorithms,
        ),
    ] = None,
    mutant: Mutant = None,
    without: Without = None,
    nodes: Annotated[int | None, Option(help="Set the number of nodes.")] = None,
    topology: Annotated[
        str | None,
        Option(
            help="Link the nodes as line, ring, star, tree, grid:RxC, complete, "
            "edges:0-1,1-2, random:P, links:COUNT, geometric:RANGE, or as a file "
            "says (.graphml, .edgelist, .json)."
        ),
    ] = None,
    permits: Annotated[int | None, Option(help="Set k, the number of permits.")] = None,
    want: Annotated[
        str | None,
        Option(help="Set how many permits a request asks for: 2, or 1-3 for a random number."),
    ] = None,
    priority: Annotated[
        str | None,
        Option(
            help="Set the priority of requests (larger is more urgent): 5, or 1-9 for a "
            "random one, or deadline:TIME, earliest first."
        ),
    ] = None,
    raise_: Annotated[
        str | None,
        Option(
            "--raise",
            help="Change the priority of this share of requests while they wait, up or down, "
            "such as 0.1.",
        ),
    ] = None,
    release_part: Annotated[
        str | None,
        Option(
            help="Release this share of the grants for several permits in two parts, such as 0.1."
        ),
    ] = None,
    workload: Annotated[
        str | None,
        Option(help="Choose when clients request: serial, saturated or poisson:RATE (per client)."),
    ] = None,
    requests: Annotated[int | None, Option(help="Stop after this many requests in all.")] = None,
    clients: Annotated[int | None, Option(help="Set the number of clients per node.")] = None,
    delay: Annotated[
        str | None,
        Option(help="Set how long a message takes on a link: a time, uniform:A,B or exp:MEAN."),
    ] = None,
    hold: Annotated[
        str | None, Option(help="Set how long a client holds its permits: as --delay.")
    ] = None,
    links: Annotated[
        str | None,
        Option(help="Choose whether links keep the order of messages: fifo or unordered."),
    ] = None,
    mobility: Annotated[
        str | None,
        Option(
            help="Change links over time: none, flips:RATE, waypoint:SPEED,RANGE, "
            "walk:..., gauss-markov:..., manhattan:..., or a file (.ns_movements, "
            ".movements[.gz], .tsv)."
        ),
    ] = None,
    radio_range: Annotated[
        str | None, Option("--range", help="Set the radio range, for files of movements.")
    ] = None,
    partitions: Annotated[
        str | None,
        Option(
            help="Choose whether the network may be partitioned: prevented, allowed, or "
            "healed at the end of changes."
        ),
    ] = None,
    failures: Annotated[
        str | None,
        Option(
            help="Choose what becomes of messages on a failing link: drain (delivered "
            "first), return (to their sender) or custody (those with permits arrive "
            "late, as between live nodes)."
        ),
    ] = None,
    notice: Annotated[
        str | None,
        Option(
            help="Set how long an end of a link takes to notice a change, with --failures custody."
        ),
    ] = None,
    changes_until: Annotated[str | None, Option(help="Stop changes of links at this time.")] = None,
    seed: Annotated[
        int | None, Option(help="Set the seed. The same seed gives the same run.")
    ] = None,
    behaviour: Annotated[
        str | None,
        Option(
            help="Choose how nodes of general-scheme behave: proxy, transit, raymond, "
            "random, shortcut, open-cube, gateway."
        ),
    ] = None,
    queue: Annotated[
        str | None, Option(help="Choose how nodes of general-scheme order requests: fifo or lift.")
    ] = None,
    option: Annotated[
        list[str] | None,
        Option(
            help="Set an option of the algorithm as NAME=VALUE (see 'meshlock algorithms "
            "--json'). May be repeated."
        ),
    ] = None,
    members: Annotated[
        str | None,
        Option(
            help="Survive crashes and partitions, with any token algorithm: a quorum of "
            "these members (auto, all, or a number) renews leases and replaces a "
            "lost token."
        ),
    ] = None,
    lease: Annotated[
        str | None,
        Option(help="Set how long a lease lasts, in the unit of --delay."),
    ] = None,
    crashes: Annotated[
        str | None,
        Option(
            help="Crash nodes: EVERY[,DOWN], the mean time between two crashes, and until "
            "a restart."
        ),
    ] = None,
    disks_lost: Annotated[
        str | None, Option(help="Lose the disk in this share of crashes, such as 0.1.")
    ] = None,
    cuts: Annotated[
        str | None,
        Option(help="Cut the network in two at random: EVERY,LASTS, mean times."),
    ] = None,
    permits_change: Annotated[
        str | None,
        Option(help="Change the number of permits, with --members: TIME:K[,TIME:K...]."),
    ] = None,
    members_change: Annotated[
        str | None,
        Option(
            help="Add and remove members: TIME:+NODE or TIME:-NODE[,...]. Several at one time are "
            "made by different members."
        ),
    ] = None,
    clock_skew: Annotated[
        str | None, Option(help="Let clocks run fast or slow by up to this share, such as 0.01.")
    ] = None,
    until: Annotated[
        str | None, Option(help="Stop at this time even if clients wait, with --members.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print one JSON object.")] = False,
    trace: Annotated[Path | None, Option(help="Write every event to this file.")] = None,
    trace_states: Annotated[
        bool, Option("--trace-states", help="Write what each step changed, too.")
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
        "raise": raise_,
        "release-part": release_part,
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
        "members-change": members_change,
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
    unserved = figures["unserved"] > figures.get("excused", 0)
    raise click.exceptions.Exit(1 if figures["violated"] or unserved else 0)


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
    from meshlock.trace.files import trace_file
    from meshlock.trace.writer import TraceWriter

    if path is None:
        return go(simulation(settings, None))
    try:
        with trace_file(path) as file:
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
