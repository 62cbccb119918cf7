"""A simulation's figures for people."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from meshlock.cli import output
from meshlock.properties.sentences import counted
from meshlock.simulate.engine import Simulation
from meshlock.simulate.recovery import RecoverySimulation


def run_report(run: Simulation, figures: dict[str, Any]) -> Group:
    title = Text(run.algorithm.title, style="bold")
    k, lines = figures["permits"], []
    if isinstance(run, RecoverySimulation):
        lines.append(f"{run.algorithm.name}, with recovery by {len(run.lives.members)} members")
    lines.append(
        f"{figures['nodes']} nodes, {counted(k, 'permit')}, seed {figures['seed']}; "
        f"{figures['entries']} entries in {figures['sim_time']:.6g} time units"
    )
    if figures.get("interrupted"):
        lines.append("Interrupted: these are the figures so far.")
    return Group(
        title.append("".join(f"\n{line}" for line in lines), style="not bold"),
        Text(),
        messages(figures),
        Text(),
        waiting(figures),
        Text(),
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
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    for row in rows.items():
        table.add_row(*row)
    return [table, Text()]


def spans(times: dict[str, Any]) -> str:
    if not times["count"]:
        return "never, after the first"
    return f"{times['count']} times, median {times['median']:.4g}, worst {times['worst']:.4g}"


def verdict(run: Simulation, figures: dict[str, Any]) -> Text:
    violated = run.monitor.violated
    if violated:
        text = Text("Violated:", style="bold red")
        for name, sentence in violated.items():
            text.append(f"\n  {name}: {sentence}", style="red")
        return text
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
    delay, used = figures["sync_delay_mean"], figures["use_rate"]
    return Text.assemble(
        f"synchronisation delay {delay:.4g}, use rate {used:.3f}\n",
        (f"no violation of {checked}{excused}", "green"),
    )
