"""meshlock compare: several algorithms, one scenario, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from meshlock.cli import completion

ROWS = {
    "messages per entry": ("messages_per_entry", None),
    "link crossings per entry": ("link_crossings_per_entry", None),
    "token hops per entry": ("token_hops_per_entry", None),
    "waiting, mean": ("waiting", "mean"),
    "waiting, p95": ("waiting", "p95"),
    "waiting, max": ("waiting", "max"),
    "synchronisation delay": ("sync_delay_mean", None),
    "overtakings, base priority": ("priority_violations", "base"),
    "overtakings, aged priority": ("priority_violations", "aged"),
    "... known where decided": ("priority_violations", "known"),
    "use rate": ("use_rate", None),
    "fairness (Jain)": ("fairness", None),
    "deadlines missed": ("deadline_misses", None),
    "connected share": ("connected_share", None),
    "unserved": ("unserved", None),
}


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Algorithms, each with options if need be: jiang, jiang:moves=broadcast, "
            "general-scheme:behaviour=proxy,queue=lift ...",
            autocompletion=completion.algorithms,
        ),
    ],
    scenario: Annotated[
        Path | None, typer.Option(help="A scenario file (TOML) with what they have in common.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of meshlock simulate as NAME=VALUE (repeat)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the figures to this .png.")] = None,
) -> None:
    """Run several algorithms on the same scenario and print their measures side by side.

    Example: meshlock compare jiang reverse-link raymond --set topology=links:30 --set nodes=15
    """
    from meshlock.cli.output import print_json, setting_pairs
    from meshlock.cli.simulate import simulate_with_progress
    from meshlock.errors import Refused
    from meshlock.simulate.report import figures
    from meshlock.simulate.settings import Settings, read_scenario

    if plot is not None:
        from meshlock.cli.plot import draw, refuse_if_impossible

        refuse_if_impossible(plot)
    common = read_scenario(scenario) if scenario is not None else {}
    common.update(setting_pairs("--set", setting or []))
    results: dict[str, dict[str, Any]] = {}
    for name in names:
        algorithm, _, options = name.partition(":")
        own = setting_pairs(name, options.split(",") if options else [])
        if name in results:
            raise Refused(f"'{name}' is named twice.")
        settings = Settings({**common, **own, "algorithm": algorithm})
        run, cpu, finished = simulate_with_progress(settings, None, False)
        if not finished:
            raise typer.Exit(130)
        results[name] = figures(run, settings.number("seed"), cpu)
    if json:
        print_json({"scenario": common, "results": results})
    else:
        print_table(results)
    if plot is not None:
        draw(results, plot)
    bad = any(result["violated"] or result["unserved"] for result in results.values())
    raise typer.Exit(1 if bad else 0)


def print_table(results: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for name in results:
        table.add_column(name, justify="right", overflow="fold")
    kinds = sorted({kind for result in results.values() for kind in result["messages"]})
    for kind in kinds:
        cells = []
        for result in results.values():
            count = result["messages"].get(kind)
            entries = result["entries"] or 1
            cells.append("" if count is None else f"{count / entries:.3f}")
        table.add_row(f"{kind} per entry", *cells)
    for label, (key, part) in ROWS.items():
        values = []
        for result in results.values():
            value = result.get(key)
            values.append(value[part] if part and value is not None else value)
        if all(value is None for value in values):
            continue
        table.add_row(label, *["" if value is None else f"{value:.4g}" for value in values])
    levels = {level for result in results.values() for level in result["waiting_by_priority"]}
    if 1 < len(levels) <= 12:
        for level in sorted(levels, key=int, reverse=True):
            cells = []
            for result in results.values():
                spread = result["waiting_by_priority"].get(level)
                cells.append(f"{spread['mean']:.4g}" if spread else "")
            table.add_row(f"waiting, priority {level}", *cells)
    violated = [", ".join(result["violated"]) or "nothing" for result in results.values()]
    table.add_row("violated", *violated)
    Console().print(table)
