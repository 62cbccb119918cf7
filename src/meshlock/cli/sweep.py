"""meshlock sweep: all runs of a study, on all cores or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshlock.cli import output
from meshlock.cli.flags import JSON
from meshlock.errors import Attempt, Refused
from meshlock.settings import REQUIRED, argument, option

if TYPE_CHECKING:
    from meshlock.sweep.study import Study
    from meshlock.sweep.sweep import Make, Summary


def sweep(
    study: Path = argument(REQUIRED, "Run this study (TOML). A list in the file is an axis."),
    out: Path | None = option(None, "Write the results to this folder. [default: STUDY.sweep]"),
    workers: int | None = option(
        None, "Use this many processes of this machine. [default: one per core]"
    ),
    dask: str | None = option(
        None, "Run on the cluster of this dask scheduler: tcp://HOST:8786.", metavar="ADDRESS"
    ),
    json: bool = JSON,
) -> None:
    """Run every point of a study with every seed, and write tables, plots and a report.

    Example: meshlock sweep studies/cost-against-n.toml --out results

    Every run is kept as soon as it ends (runs.jsonl): after Ctrl-C, a crash or a full disk the same
    command goes on from there.
    """
    from meshlock.sweep.report import write_tables
    from meshlock.sweep.study import read_study
    from meshlock.sweep.sweep import make_all
    from meshlock.sweep.workers import on_this_machine

    if dask is not None and workers is not None:
        raise Refused("Choose one of --workers and --dask: a cluster has its own workers.")
    folder = out if out is not None else Path(f"{study.stem}.sweep")
    kept = folder / "runs.jsonl"
    make = on_cluster(dask) if dask is not None else on_this_machine(workers)
    read = read_study(study)
    try:
        with output.progress("runs") as look:
            found = make_all(read, make, look, kept)
    except KeyboardInterrupt:
        click.echo(f"Stopped. Runs that ended are in {kept}; the same command goes on.", err=True)
        raise click.exceptions.Exit(130) from None
    write_tables(read, found, folder)
    text = write_report(read, found, folder, f"meshlock sweep {study}")
    broken = sum(summary.broken for summary in found)
    if not json:
        click.echo(f"Tables and plots are in {folder}.", err=True)
    output.report(json, as_json(read, found, folder), lambda: text, code=broken > 0)


def on_cluster(address: str) -> Make:
    from meshlock.sweep import workers

    try:
        import distributed  # noqa: F401
    except ImportError:
        raise Refused("--dask needs dask.distributed: pip install 'meshlock[cluster]'.") from None
    return lambda runs, events: workers.on_cluster(runs, events, address)


def write_report(study: Study, found: list[Summary], folder: Path, command: str) -> str:
    from meshlock.sweep.plots import can_draw, draw
    from meshlock.sweep.report import report

    figures = []
    if can_draw():
        for plot in study.plots:
            figures.append(f"{plot.name}.svg")
            draw(study, plot, found, folder / figures[-1])
    else:
        click.echo("No plots: they need matplotlib, pip install 'meshlock[plot]'.", err=True)
    text = report(study, found, command, figures)
    with Attempt(f"write to {folder}"):
        (folder / "report.md").write_text(text, encoding="utf-8")
    return text


def as_json(study: Study, found: list[Summary], folder: Path) -> dict[str, Any]:
    from meshlock.sweep.runs import command

    points = []
    for summary in found:
        means = {}
        for measure, got in summary.estimates.items():
            law = {"law": summary.laws[measure]} if measure in summary.laws else {}
            means[measure] = {"mean": got and got.mean, "half": got and got.half, **law}
        points.append(
            {
                **summary.point.labels,
                "runs": len(summary.results),
                "broken": summary.broken,
                "measures": means,
            }
        )
    return {
        "title": study.title,
        "out": str(folder),
        "runs": sum(len(summary.results) for summary in found),
        "points": points,
        "broken": [
            {"why": result.broken, "command": command(result.line.values)}
            for summary in found
            for result in summary.results
            if result.broken
        ],
    }
