"""meshlock replay and shrink: play a recorded run again, or make a failing one small."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshlock.cli.algorithms import OUTSIDE, load_all
from meshlock.cli.flags import JSON
from meshlock.cli.output import report
from meshlock.errors import Attempt, Refused
from meshlock.settings import REQUIRED, argument, option

if TYPE_CHECKING:
    from meshlock.simulate.schedule import Schedule


def replay(
    trace: Path = argument(REQUIRED, "Play this trace of the checker or the simulator."),
    json: bool = JSON,
    output: Path | None = option(
        None, "Write the run to this scenario file, too.", "--output", "-o"
    ),
    algorithm: tuple[str, ...] = OUTSIDE,
) -> None:
    """Play a recorded run again in the simulator, step by step, and judge it.

    Example: meshlock replay counterexample.jsonl
    """

    load_all(algorithm)
    schedule, entries = read(trace)
    play = schedule.play(strict=True)
    outcome = play.outcome()
    if outcome.entries != entries:
        raise Refused(
            f"The run came out differently: nodes {outcome.entries} entered, in the trace "
            f"{entries}. Was it recorded with another version?"
        )
    if output is not None:
        save(schedule, f"{schedule.algorithm.name}: replay of {trace.name}", output)
    steps = f"{len(schedule.actions)} steps, {len(entries)} entries, as in the trace"
    violated = [f"{name} VIOLATED {sentence}" for name, sentence in outcome.violated.items()]
    lines = [outcome.transcript, steps, *violated]
    report(json, outcome.figures(), lambda: "\n".join(lines), code=bool(violated))


def shrink(
    trace: Path = argument(REQUIRED, "Shrink the run in this trace."),
    output: Path = option(REQUIRED, "Write the result to this scenario file.", "--output", "-o"),
    algorithm: tuple[str, ...] = OUTSIDE,
) -> None:
    """Shrink a failing run to fewer nodes, requests, changes and steps with the same failure.

    Example: meshlock shrink failed.jsonl -o small.txt
    """
    from meshlock.simulate.schedule import shrink as make_small

    load_all(algorithm)
    schedule, _ = read(trace)
    small, wrong = make_small(schedule)
    save(small, f"{small.algorithm.name} violates {', '.join(sorted(wrong))}", output, "finish\n")
    click.echo(
        f"{schedule.size} nodes and {len(schedule.actions)} steps became {small.size} nodes and "
        f"{len(small.actions)} steps; still violated: {', '.join(sorted(wrong))}."
    )
    click.echo(f"See it with: meshlock scenario {output} --algorithm {small.algorithm.name}")


def read(trace: Path) -> tuple[Schedule, list[int]]:
    from meshlock.simulate import schedule
    from meshlock.trace.reader import Trace

    return schedule.read(Trace(trace))


def save(schedule: Schedule, title: str, path: Path, more: str = "") -> None:
    with Attempt(f"write {path}"):
        path.write_text(schedule.script(title) + more, encoding="utf-8")
