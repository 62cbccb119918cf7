"""Shell completion: the scripts for bash, zsh and fish, and the names that are completed.

The scripts are typer's. The shell is named and not guessed: a guess looks at the parent process,
and fails in containers, in scripts and where output goes to a file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

VARIABLE = "_MESHLOCK_COMPLETE"
"""Set by the scripts when they ask what can come next."""

PATIENCE = 0.5
"""Seconds that the agent has to say which pools there are."""


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def show(shell: Shell | None) -> None:
    if shell is not None:
        from typer._completion_shared import get_completion_script

        typer.echo(
            get_completion_script(prog_name="meshlock", complete_var=VARIABLE, shell=shell.value)
        )
        raise typer.Exit


ShowCompletion = Annotated[
    Shell | None,
    typer.Option(
        "--show-completion",
        callback=show,
        is_eager=True,
        help="Print the completion script of this shell.",
    ),
]


# What can come next; typer keeps what begins as the user has begun.


def algorithms() -> list[tuple[str, str]]:
    from meshlock.algorithms.registry import ALGORITHMS

    return [(name, entry.title) for name, entry in ALGORITHMS.items()]


def mutants() -> list[tuple[str, str]]:
    from meshlock.algorithms.mutants.catalogue import MUTANTS

    return [(name, mutant.mistake) for name, mutant in MUTANTS.items()]


def scenarios() -> list[tuple[str, str]]:
    from meshlock.simulate.scenario import names, scenario

    return [(name, scenario(name).title) for name in names()]


def pools(ctx: typer.Context) -> list[str]:
    known = status(ctx).get("pools", {})
    return [name for name in sorted(known) if known[name]["known"]]


def nodes(ctx: typer.Context) -> list[str]:
    return sorted(status(ctx).get("map", {}))


def status(ctx: typer.Context) -> dict[str, Any]:
    """Of the agent that the command would ask; nothing, if it does not answer."""
    from meshlock.errors import Refused
    from meshlock.live.interfaces.asking import Connection

    try:
        agent = Connection(ctx.params.get("socket"))
        agent.socket.settimeout(PATIENCE)
        return agent.ask("GET", "/v1/status")
    except (Refused, TimeoutError):
        return {}


def prepare() -> None:
    """Have typer speak its own protocol if a completion script asks; else cost nothing."""
    import os

    if VARIABLE in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
