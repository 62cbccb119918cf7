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


def demo(
    seconds: float = option(9.0, "Run for this many seconds."),
    seed: int = option(1, "Set the seed of the workload and of the cuts."),
    trace: Path | None = option(None, "Write the merged trace to this file."),
    json: bool = JSON,
) -> None:
    """Run six real processes that share three permits over TLS while links are cut.

    Example: meshlock demo
    """
    from tempfile import TemporaryDirectory
    from time import monotonic

    from meshlock.live.demo.run import LOOK_EVERY, Demo, figures
    from meshlock.live.machine.loop import run, watch

    if trace is not None and not trace.parent.is_dir():
        raise Refused(f"Cannot write the trace to {trace}: there is no folder {trace.parent}.")
    with TemporaryDirectory(prefix="meshlock-demo-") as folder:
        demonstration = Demo(Path(folder), seconds, seed)
        with output.progress("demo") as move:

            def show_progress() -> None:
                gone = min(monotonic() - demonstration.began, seconds)
                move(int(gone), int(seconds), demonstration.news)

            run(watch(demonstration.run(), show_progress, LOOK_EVERY))
        merged = trace or Path(folder) / "merged.jsonl"
        demonstration.merge(merged)
        found = figures(merged, demonstration)
    good = found["holds"] and found["unserved"] == 0
    output.report(json, found, lambda: summary(found, trace), code=not good)


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
