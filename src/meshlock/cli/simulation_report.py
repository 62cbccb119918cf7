"""A simulation's figures for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from meshlock.cli import output
from meshlock.simulate.engine import Simulation
from meshlock.simulate.recovery import RecoverySimulation
from meshlock.simulate.report import histogram

BAR = 32


def print_report(run: Simulation, figures: dict[str, Any], finished: bool) -> None:
    console = Console()
    console.print(Group(*parts(run, figures, finished)))


def parts(run: Simulation, figures: dict[str, Any], finished: bool) -> list[Table | Text]:
    title = Text(f"{run.algorithm.title}", style="bold")
    if isinstance(run, RecoverySimulation):
        title.append(
            f"\n{run.algorithm.name}, with recovery by {len(run.lives.members)} members",
            style="not bold",
        )
    k = figures["permits"]
    title.append(
        f"\n{figures['nodes']} nodes, {k} permit{'s' if k > 1 else ''}, seed {figures['seed']}; "
        f"{figures['entries']} entries in {figures['sim_time']:.6g} time units",
        style="not bold",
    )
    if not finished:
        title.append("\nInterrupted: these are the figures so far.", style="yellow")
    return [
        title,
        Text(),
        messages(figures),
        Text(),
        waiting(figures),
        *shape(run),
        *recovery(figures),
        verdict(run, figures),
    ]


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

    def row(name: str, spread: dict[str, float]) -> None:
        table.add_row(name, *[f"{spread[key]:.4g}" for key in ("mean", "p50", "p95", "p99", "max")])

    row("all", figures["waiting"])
    levels = figures["waiting_by_priority"]
    if 1 < len(levels) <= 12:
        for level, spread in sorted(levels.items(), key=lambda item: -int(item[0])):
            row(f"priority {level}", spread)
    wants = figures["waiting_by_want"]
    if 1 < len(wants) <= 12:
        for want, spread in wants.items():
            row(f"want {want}", spread)
    return table


def shape(run: Simulation) -> list[Table | Text]:
    """A small histogram of the waiting times."""
    bins = histogram(run.measures.waits, 8)
    if len(bins) < 2:
        return [Text()]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right", style="dim")
    table.add_column()
    table.add_column(justify="right", style="dim")
    most = max(count for _, _, count in bins)
    for low, high, count in bins:
        table.add_row(f"{low:.4g} - {high:.4g}", "█" * round(BAR * count / most), f"{count:,}")
    return [Text(), table, Text()]


def recovery(figures: dict[str, Any]) -> list[Table | Text]:
    """What faults and leases cost, where nodes recover."""
    found = figures.get("recovery")
    if found is None:
        return []
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")

    def row(name: str, value: str) -> None:
        table.add_row(name, value)

    row("crashes, cuts, epochs", f"{found['crashes']}, {found['partitions']}, {found['epochs']}")
    for name, title in (
        ("outages", "no token anywhere"),
        ("time_to_recover", "majority without a token"),
    ):
        times = found[name]
        if times["count"]:
            row(
                title,
                f"{times['count']} times, median {times['median']:.4g}, worst {times['worst']:.4g}",
            )
        else:
            row(title, "never, after the first")
    share = found["served_share"]
    row("nodes could be served", f"{share['worst']:.1%} to {share['best']:.1%} of the time")
    row("a majority was connected", f"{found['majority_share']:.1%} of the time")
    row("permits idle for leases", f"{found['idle_share']:.1%}")
    row(
        "grants lost, orphaned; requests lost",
        f"{found['lost_grants']}, {found['orphaned_grants']}; {found['lost_requests']}",
    )
    if found["lease_messages_at_rest"] is not None:
        row("lease messages per time, at rest", f"{found['lease_messages_at_rest']:.4g}")
    owed = found["requests_with_path"]
    row("had a path to a majority for long", "not counted" if owed is None else f"{owed:,}")
    row("unserved, of these with a path", f"{figures['unserved']}, {found['unserved_with_path']}")
    return [table, Text()]


def verdict(run: Simulation, figures: dict[str, Any]) -> Text:
    violated = run.monitor.violated
    if violated:
        text = Text("Violated:", style="bold red")
        for name, sentence in violated.items():
            text.append(f"\n  {name}: {sentence}", style="red")
        return text
    measures = run.measures
    sync = measures.sync_total / measures.sync_count if measures.sync_count else 0.0
    checked = "safety"
    if isinstance(run, RecoverySimulation):
        checked += ", leases, fences, one token per epoch, conservation"
    elif run.balanced:
        checked += ", one token, conservation"
    if run.monitor.ordered or (isinstance(run, RecoverySimulation) and run.order is not None):
        checked += ", order"
    excused = ""
    if run.excused:
        which = "1 request waits" if run.excused == 1 else f"{run.excused} requests wait"
        excused = f"; {which} in a part of the network without the token or some of the permits"
    return Text.assemble(
        f"synchronisation delay {sync:.4g}, use rate {figures['use_rate']:.3f}\n",
        (f"no violation of {checked}{excused}", "green"),
    )
