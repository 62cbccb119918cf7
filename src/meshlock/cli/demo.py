"""meshlock demo: real nodes on this machine, nothing to configure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from meshlock.cli import output
from meshlock.cli.flags import JSON
from meshlock.errors import Refused
from meshlock.settings import option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from meshlock.live.demo.run import Demo


def demo(
    seconds: float = option(9.0, "Run for this many seconds."),
    seed: int = option(1, "Set the seed of the workload and of the cuts."),
    trace: Path | None = option(None, "Write the merged trace to this file."),
    json: bool = JSON,
) -> None:
    """Run six real processes that share three permits over TLS while links are cut.

    Example: meshlock demo
    """
    import sys
    from tempfile import TemporaryDirectory

    from meshlock.live.demo.run import LOOK_EVERY, Demo, figures
    from meshlock.live.machine.loop import run, watch

    if trace is not None and not trace.parent.is_dir():
        raise Refused(f"Cannot write the trace to {trace}: there is no folder {trace.parent}.")
    with TemporaryDirectory(prefix="meshlock-demo-") as folder:

        async def show() -> Demo:
            demonstration = Demo(Path(folder), seconds, seed)
            with output.picture(not json and sys.stdout.isatty()) as redraw:
                await watch(demonstration.run(), lambda: redraw(picture, demonstration), LOOK_EVERY)
            return demonstration

        demonstration = run(show())
        merged = trace or Path(folder) / "merged.jsonl"
        demonstration.merge(merged)
        found = figures(merged, demonstration)
    good = found["holds"] and found["unserved"] == 0
    output.report(json, found, lambda: summary(found, trace), code=not good)


COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")


def picture(demo: Demo) -> RenderableType:
    from time import monotonic

    from meshlock.live.demo.run import PERMITS, PRIORITIES

    headings = ("node", "links", "token", "holds", "waiting, by priority", "entries>")
    table = output.table(*headings, steady=True)
    holders = [state for state in demo.states if state.get("token")]
    newest = max([state["at"] for state in holders], default=0.0)  # the others have passed it on
    for number, state in enumerate(demo.states):
        links = output.text()
        for link in demo.links:
            if number in link:
                other = demo.names[link[0] + link[1] - number]
                up = other in state.get("up", ())
                links.append(other, style="green" if up else "red strike").append(" ")
        waiting = [state.get("waiting", []).count(priority) for priority in PRIORITIES]
        table.add_row(
            output.text(demo.names[number], style=COLOURS[number]),
            links,
            output.text("◆" if state.get("token") and state["at"] == newest else "", style="bold"),
            output.text("■" * sum(state.get("holding", ())), style=COLOURS[number]),
            "  ".join(f"{p}:{'·' * n:<1}" for p, n in zip(PRIORITIES, waiting, strict=True)),
            f"{state.get('entries', 0):,}",
        )
    title = output.text(
        f"{len(demo.names)} processes share {PERMITS} permits, mutual TLS; {demo.phase}, "
        f"{monotonic() - demo.began:.0f} s",
        style="bold",
    )
    remark = "What the nodes said last, up to 0.1 s ago; the audit judges what they recorded."
    news = output.text("\n".join([remark, "", *demo.news[-5:]]), style="dim")
    return output.group(title, output.text(), table, output.text(), news)


def summary(found: dict[str, Any], trace: Path | None) -> RenderableType:
    table = output.table("waited for the permits", "entries>", "p50>", "p95>", "max>")
    for priority, spread in found["waiting_by_priority"].items():
        times = [f"{spread[key] * 1000:.1f} ms" for key in ("p50", "p95", "max")]
        table.add_row(f"priority {priority}", f"{spread['entries']:,}", *times)
    lines = output.text(
        f"\n{found['entries']} entries, {found['messages_per_entry']:.1f} messages per entry, "
        f"{found['cuts']} cuts, {found['unserved']} requests unserved\n"
    )
    if found["holds"]:
        checked = ", ".join(found["checked"])
        lines.append(f"The audit of the merged traces finds no violation of {checked}.", "green")
    for name, sentence in found["violated"].items():
        lines.append(f"{name} violated: {sentence}\n", "bold red")
    if trace is not None:
        lines.append(f"\nThe trace is in {trace}: meshlock audit {trace}", "dim")
    return output.group(output.text(), table, lines)
