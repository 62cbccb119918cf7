"""Shell completion: the scripts for bash, zsh and fish, and the names that are completed.

The scripts are click's. The shell is named and not guessed: a guess looks at the parent process,
and fails in containers, in scripts and where output goes to a file.
"""

from __future__ import annotations

from typing import Any

import click

from meshlock.cli.flags import Names
from meshlock.errors import Refused

VARIABLE = "_MESHLOCK_COMPLETE"
"""Set by the scripts when they ask what can come next."""

SHELLS = ("bash", "zsh", "fish")

PATIENCE = 0.5
"""Seconds that the agent has to say which pools there are."""


def show(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is not None:
        from click.shell_completion import ShellComplete, get_completion_class

        kind = get_completion_class(shell)
        assert kind is not None
        script = kind(ctx.command, {}, "meshlock", VARIABLE)
        click.echo(ShellComplete.source(script))  # that of bash would first run it, for its age
        ctx.exit()


# What can come next; the shell gets those that begin as the user has begun.


def algorithms(_: click.Context) -> Names:
    from meshlock.algorithms.registry import ALGORITHMS

    return [(name, entry.title) for name, entry in ALGORITHMS.items()]


def mutants(_: click.Context) -> Names:
    from meshlock.algorithms.mutants.catalogue import MUTANTS

    return [(name, mutant.mistake) for name, mutant in MUTANTS.items()]


def scenarios(_: click.Context) -> Names:
    from meshlock.simulate.scenario import names, scenario

    return [(name, scenario(name).title) for name in names()]


def pools(ctx: click.Context) -> Names:
    known = status(ctx).get("pools", {})
    return [(name, "") for name in sorted(known) if known[name]["known"]]


def nodes(ctx: click.Context) -> Names:
    return [(name, "") for name in sorted(status(ctx).get("map", {}))]


def status(ctx: click.Context) -> dict[str, Any]:
    """Of the agent that the command would ask; nothing, if it does not answer."""
    from meshlock.live.interfaces.agent_connection import Connection

    try:
        agent = Connection(ctx.params.get("socket"))
        agent.socket.settimeout(PATIENCE)
        return agent.ask("GET", "/v1/status")
    except (Refused, TimeoutError):
        return {}
