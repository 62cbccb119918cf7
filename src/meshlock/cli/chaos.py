"""meshlock chaos: real agents, killed, paused and cut off, and judged by what was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from meshlock.cli import output
from meshlock.cli.flags import JSON
from meshlock.errors import Refused
from meshlock.settings import option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from meshlock.live.chaos.plan import Plan

NEWS_EVERY = 0.25


def chaos(
    nodes: int = option(5, "Run this many agents. All are members of the pool."),
    members: str = option(
        "all",
        "Choose the members: all (by name), or auto (a majority makes the pool, and "
        "all become members).",
    ),
    permits: int = option(3, "Set the number of permits of the pool."),
    lease: float = option(3.0, "Set the lease in seconds."),
    seconds: float = option(
        120, "Inject faults for this many seconds. Start and quiet end are extra."
    ),
    seed: int = option(1, "Set the seed of the plan and of the workload."),
    topology: str | None = option(
        None,
        "Link the agents as chords (a ring with links across), or as in "
        "'meshlock simulate'. Default: chords; complete with --members auto.",
    ),
    clients_per_node: int = option(2, "Run this many programs that use the permits."),
    within: float | None = option(
        None, "Require a grant within this many seconds after a fault. Default: three leases."
    ),
    keep: Path | None = option(None, "Keep plan, record and logs in this new folder."),
    plan: Path | None = option(None, "Carry out this plan. It has all other settings."),
    json: bool = JSON,
) -> None:
    """Kill, pause, partition and restart real agents by a seeded plan, and judge what happens.

    Example: meshlock chaos --seconds 60 --seed 7 --keep /tmp/chaos-7
    """
    from meshlock.live.chaos.figures import figures
    from meshlock.live.chaos.judge import judge
    from meshlock.live.chaos.plan import load, make
    from meshlock.live.chaos.record import read

    if members not in ("all", "auto"):
        raise Refused(f"--members is all or auto, not '{members}'.")
    auto = members == "auto"
    drawn = (
        load(plan)
        if plan is not None
        else make(seed, nodes, permits, lease, seconds, topology, clients_per_node, within, auto)
    )
    with workplace(keep) as (folder, sockets):
        carry_out(drawn, folder, sockets)
        record = read(folder / "record.jsonl")
    verdict = judge(record)
    found = {
        "seed": drawn.seed,
        "nodes": len(drawn.nodes),
        "permits": drawn.permits,
        "lease": drawn.lease,
        "within": drawn.within,
        **figures(record, verdict),
        "violated": verdict.violated,
        "violations": [f"{v.at:.3f} s  {v.property}: {v.sentence}" for v in verdict.violations],
    }
    output.report(json, found, lambda: summary(found, keep), code=bool(verdict.violated))


@contextmanager
def workplace(keep: Path | None) -> Iterator[tuple[Path, Path]]:
    """A folder for the run and a short one for its sockets, whose paths must not be long."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="meshlock-chaos-") as passing:
        folder = keep or Path(passing) / "run"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise Refused(f"{folder} exists already: --keep needs a new folder.") from None
        except OSError as error:
            raise Refused(f"Cannot make {folder}: {error.strerror}.") from None
        yield folder.absolute(), Path(passing)


def carry_out(plan: Plan, folder: Path, sockets: Path) -> None:
    import asyncio
    import signal
    from time import monotonic

    from meshlock.live.chaos.plan import save
    from meshlock.live.chaos.run import Chaos
    from meshlock.live.machine.loop import run, watch

    save(plan, folder / "plan.json")

    async def show() -> None:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        work = Chaos(plan, folder, sockets)
        with output.progress("chaos") as move:

            def show_progress() -> None:
                gone = min(monotonic() - work.began, plan.seconds)
                news = work.news[-1].strip() if work.news else work.phase
                move(int(gone), int(plan.seconds), f"{work.cluster.granted:,} grants; {news}")

            await watch(work.run(), show_progress, NEWS_EVERY)

    try:
        run(show())
    except asyncio.CancelledError:
        raise click.exceptions.Exit(143) from None


def summary(found: dict[str, Any], keep: Path | None) -> RenderableType:
    table = output.table("fault", "struck>", "alone>", "next grant>", "worst>", "idle>", "worst>")
    for kind, count in found["faults"].items():
        times = found["recovery"][kind]
        row = [part[key] for part in (times, times["idle"]) for key in ("median", "worst")]
        table.add_row(kind, str(count), str(times["measured"]), *map(seconds_of, row))
    back = [
        f"{seconds_of(times['median'])}, at worst {seconds_of(times['worst'])}, after {kind}"
        for kind, times in found["permits_back"].items()
    ]
    late = found["late_writes"]
    lines = output.text(
        f"\n{found['kills']} kills, {found['pauses']} pauses, {found['partitions']} partitions, "
        f"{found['restarts']} restarts ({found['restarts_without_memory']} without memory), "
        f"{found['grants']:,} grants in {found['seconds']:.0f} s, "
        f"{found['leases_lost']} of them revoked before they were released\n"
        f"Longest stall {seconds_of(found['longest_stall'])} with a quorum and free permits, "
        f"{seconds_of(found['longest_without_grant'])} whatever the reason\n"
        f"Permits back: {'; '.join(back)}\n"
        f"{late['made']} writes after the end of a lease, of which the resource refused "
        f"{late['refused']}\n\n"
    )
    if found["violated"]:
        for violation in found["violations"][:20]:
            lines.append(f"{violation}\n", "red")
        lines.append(f"Violated: {', '.join(found['violated'])}. ", "bold red")
        lines.append(f"Seed {found['seed']}.")
    else:
        from meshlock.live.chaos.judge import RULES

        lines.append(f"The record shows no violation of {', '.join(RULES)}.", "green")
    if keep is not None:
        lines.append(f"\nPlan, record and logs are in {keep}.", "dim")
    return output.group(table, lines)


def seconds_of(time: float | None) -> str:
    return "-" if time is None else f"{time:.2f} s"
