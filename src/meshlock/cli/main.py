"""The command ``meshlock``; every command is a module beside this one.

Those modules import only typer; all else they import when they run, so that
``meshlock --help`` is quick.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, cast

import typer

from meshlock.cli import (
    agent,
    algorithms,
    audit,
    certs,
    chaos,
    check,
    compare,
    completion,
    convert,
    demo,
    mutants,
    pool,
    replay,
    scenario,
    simulate,
    status,
    sweep,
    top,
    view,
)
from meshlock.cli import exec as exec_

app = typer.Typer(
    name="meshlock",
    help="Share k identical permits among machines without a server, and study how.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def version(asked: bool) -> None:
    if asked:
        from meshlock import __version__
        from meshlock.simulate import engine

        flavour = "pure Python" if (engine.__file__ or "").endswith(".py") else "compiled"
        typer.echo(f"meshlock {__version__} ({flavour}, Python {sys.version.split()[0]})")
        raise typer.Exit


@app.callback()
def meshlock(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=version, is_eager=True, help="Version and flavour."),
    ] = False,
    _completion: completion.ShowCompletion = None,
) -> None:
    pass


app.command()(algorithms.algorithms)
app.command()(mutants.mutants)
app.command()(simulate.simulate)
app.command()(compare.compare)
app.command()(sweep.sweep)
app.command()(scenario.scenario)
app.command()(check.check)
app.command()(replay.replay)
app.command()(replay.shrink)
app.command()(audit.audit)
app.command()(convert.convert)
app.command()(demo.demo)
app.command()(agent.agent)
app.command("exec", context_settings={"allow_interspersed_args": False})(exec_.execute)
app.command()(status.status)
app.command()(top.top)
app.command()(chaos.chaos)
app.command()(view.view)
app.add_typer(certs.certs, name="certs")
app.add_typer(pool.pool, name="pool")


WRONG_USAGE = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""UsageError, which typer exports under no name."""


def run() -> None:
    """Start the program; what a user can mend is one sentence and exit 2, never a traceback."""
    from meshlock.errors import Refused

    completion.prepare()
    try:
        sys.exit(app(prog_name="meshlock", standalone_mode=False))
    except Refused as error:
        typer.echo(f"meshlock: {error}", err=True)
        sys.exit(2)
    except WRONG_USAGE as error:
        typer.echo(usage(error), err=True)
        sys.exit(2)
    except typer.Abort:
        typer.echo("Aborted!", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone; nothing more to say
        sys.exit(141)


def usage(error: Any) -> str:
    """What is wrong with the flags, and where to look; the whole help if there are none."""
    text: str = error.format_message()
    if "\n" in text:
        return text
    stop = "" if text.endswith((".", "?")) else "."
    where = error.ctx.command_path if error.ctx is not None else "meshlock"
    return f"meshlock: {text}{stop} See '{where} --help'."
