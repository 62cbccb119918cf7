"""meshlock riddle: find the schedule that shows what is broken."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshlock.cli.output import columns, report
from meshlock.errors import Attempt, Refused
from meshlock.settings import argument, option

if TYPE_CHECKING:
    from meshlock.check.riddles import Riddle


def riddle(
    number: int | None = argument(None, "Show the riddle of this number. Default: list all."),
    schedule: Path | None = argument(
        None, "Play this schedule, written as a scenario. -: read standard input."
    ),
    hint: bool = option(False, "Show which property can be violated."),
    solution: bool = option(False, "Show the mistake and the shortest schedule in which it shows."),
    json: bool = option(False, "Print one JSON list or object."),
) -> None:
    """Find a schedule in which a broken algorithm violates a property.

    Example: meshlock riddle 5 > mine.txt; add actions; meshlock riddle 5 mine.txt
    """
    from meshlock.check import riddles

    if number is None:
        listing(riddles.riddles(), json)
        return
    chosen = riddles.riddle(number)
    if schedule is not None:
        referee(chosen, schedule, json)
    elif hint:
        click.echo(chosen.hint())
    elif solution:
        actions, story = chosen.solution
        click.echo(f"{chosen.mistake()}\n")
        click.echo("\n".join(story))
        click.echo(f"\nAs a schedule:\n\n{actions}", nl=False)
    else:
        click.echo(chosen.script(), nl=False)


def listing(every: list[Riddle], json: bool) -> None:
    rows = [("riddle", "steps", "nodes", "a broken")]
    listed = []
    for each in every:
        nodes, steps = each.mutant.case["nodes"], each.mutant.steps
        facts = {"riddle": each.number, "algorithm": each.algorithm}
        listed.append({**facts, "nodes": nodes, "steps": steps})
        rows.append((str(each.number), str(steps), str(nodes), each.algorithm))
    report(json, listed, lambda: columns(rows))


def referee(chosen: Riddle, schedule: Path, json: bool) -> None:
    import sys

    try:
        with Attempt(f"read {schedule}"):
            given = str(schedule) == "-"
            text = sys.stdin.read() if given else schedule.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise Refused(f"{schedule} is not a text.") from None
    finding = chosen.judge(text)
    found = bool(finding.violated)
    record = {
        "riddle": chosen.number,
        "found": found,
        "violated": finding.violated,
        "steps": finding.steps,
        "shortest": chosen.shortest() if json and found else None,
    }

    def verdict() -> str:
        violated = [f"{name} VIOLATED {why}" for name, why in finding.violated.items()]
        return "\n".join([finding.transcript, *violated, chosen.verdict(finding)])

    report(json, record, verdict, code=not found)
