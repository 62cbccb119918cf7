"""meshlock scenario: play a scripted schedule and show every step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from meshlock.cli.flags import JSON
from meshlock.cli.mutants import MUTANT, WITHOUT
from meshlock.cli.output import report
from meshlock.errors import Refused
from meshlock.settings import argument, option

if TYPE_CHECKING:
    from meshlock.simulate.driven import DrivenRun


def scenario(
    name: str | None = argument(
        None,
        "Play this scenario: J1, J1b, J2 ... (see --list), or a file (.txt).",
    ),
    algorithm: str | None = option(
        None,
        "Run this algorithm: a name (see 'meshlock algorithms') or a file.py. "
        "Default: the scenario's.",
    ),
    mutant: str | None = MUTANT,
    without: tuple[str, ...] = WITHOUT,
    options: dict[str, str] = option(
        {},
        "Set an option of the algorithm as NAME=VALUE; overrides the scenario's. May be repeated.",
        "--option",
    ),
    seed: int | None = option(None, "Use this seed for what the scenario leaves to chance."),
    list_: bool = option(False, "List the scenarios.", "--list"),
    json: bool = JSON,
    trace: Path | None = option(None, "Write every event to this file."),
) -> None:
    """Play a scenario and show which clients were served.

    Example: meshlock scenario J1 --algorithm jiang-printed
    """

    if list_:
        listing(json)
        return
    if name is None:
        raise Refused("Name a scenario, such as J1; meshlock scenario --list shows them all.")
    from meshlock.algorithms.mutants.choice import chosen
    from meshlock.simulate.player import play
    from meshlock.trace.watched import traced

    named = chosen(algorithm, mutant, without)
    with traced(trace) as writer:
        outcome = play(name, named, writer, options, seed)
    report(json, outcome.figures(), lambda: story(outcome), code=not outcome.good)


def listing(json: bool) -> None:
    from meshlock.simulate import scenario

    titles = {each: scenario.scenario(each).title for each in scenario.names()}
    listed = [{"scenario": each, "title": title} for each, title in titles.items()]
    width = max(len(each) for each in titles)
    lines = [f"{each:<{width}} {title}" for each, title in titles.items()]
    report(json, listed, lambda: "\n".join(lines))


def story(run: DrivenRun) -> str:
    listed = run.scenario.listed
    usual = {name: values[0] for name, values in run.algorithm.options.items()}
    chosen = [
        f"{name}={value}" for name, value in run.options.items() if value != usual.get(name, value)
    ]
    lines = [
        f"{run.scenario.name}: {run.scenario.title}",
        f"played by {' '.join([run.algorithm.name, *chosen])}\n",
        run.transcript,
        f"entered in this order: {listed(run.entries)}",
    ]
    if run.unserved:
        lines.append(f"waiting for ever: {listed(run.unserved)}")
    lines += [f"{name} VIOLATED {sentence}" for name, sentence in run.violated.items()]
    return "\n".join([*lines, "as it should be" if run.good else "NOT as it should be"])
