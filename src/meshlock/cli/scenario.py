"""meshlock scenario: play a schedule by hand and show every step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshlock.cli.mutants import Mutant, Without, chosen

if TYPE_CHECKING:
    from meshlock.simulate.by_hand import Outcome


def scenario(
    name: Annotated[
        str | None, typer.Argument(help="J1, J1b, J2 ... (see --list), or a script (.txt).")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="See meshlock algorithms; jiang unless said.")
    ] = None,
    mutant: Mutant = None,
    without: Without = None,
    list_: Annotated[bool, typer.Option("--list", help="What scenarios there are.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    trace: Annotated[Path | None, typer.Option(help="Write every event to this file.")] = None,
) -> None:
    """Play a scripted schedule and show who was served and who was not.

    Example: meshlock scenario J1 --algorithm jiang-printed
    """
    from meshlock.algorithms.registry import Refused
    from meshlock.cli.output import print_json
    from meshlock.simulate import by_hand

    if list_:
        titles = {each: by_hand.scenario(each).title for each in by_hand.names()}
        if json:
            print_json([{"scenario": each, "title": titles[each]} for each in titles])
        else:
            for each, title in titles.items():
                typer.echo(f"{each:<4} {title}")
        return
    if name is None:
        raise Refused("Name a scenario, such as J1; meshlock scenario --list shows them all.")
    outcome = played(name, chosen(algorithm, mutant, without) or "jiang", trace)
    if json:
        print_json(outcome.figures())
    else:
        report(outcome)
    raise typer.Exit(0 if outcome.good else 1)


def played(name: str, algorithm: str, path: Path | None) -> Outcome:
    from meshlock.algorithms.registry import Refused
    from meshlock.simulate import by_hand
    from meshlock.trace.writer import TraceWriter

    if path is None:
        return by_hand.play(name, algorithm)
    try:
        with path.open("wb") as file:
            return by_hand.play(name, algorithm, TraceWriter(file, False))
    except OSError as error:
        raise Refused(f"Cannot write the trace to {path}: {error.strerror}.") from None


def report(outcome: Outcome) -> None:
    from meshlock.simulate.by_hand import listed

    typer.echo(f"{outcome.scenario.name}: {outcome.scenario.title}")
    typer.echo(f"played by {outcome.algorithm.name}\n")
    typer.echo(outcome.transcript)
    typer.echo(f"entered in this order: {listed(outcome.entries)}")
    if outcome.unserved:
        typer.echo(f"waiting for ever: {listed(outcome.unserved)}")
    for property_, sentence in outcome.violated.items():
        typer.echo(f"{property_} VIOLATED {sentence}")
    typer.echo("as it should be" if outcome.good else "NOT as it should be")
