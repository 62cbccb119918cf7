"""The command ``meshlock``; every command is a module beside this one.

Only the module of the command that runs is imported, and those import only click; all else they
import when they run.
"""

from __future__ import annotations

import sys

import click

from meshlock.cli.flags import Commands
from meshlock.errors import Refused


def version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from importlib.util import find_spec

        from meshlock import __version__

        engine = find_spec("meshlock.simulate.engine")
        compiled = engine is not None and not (engine.origin or "").endswith(".py")
        flavour = "compiled" if compiled else "pure Python"
        click.echo(f"meshlock {__version__} ({flavour}, Python {sys.version.split()[0]})")
        ctx.exit()


app = Commands(
    "meshlock",
    "Share k identical permits among machines without a server, and study how.",
    {
        "algorithms": "algorithms:algorithms",
        "mutants": "mutants:mutants",
        "riddle": "riddle:riddle",
        "simulate": "simulate:simulate",
        "compare": "compare:compare",
        "sweep": "sweep:sweep",
        "scenario": "scenario:scenario",
        "check": "check:check",
        "replay": "replay:replay",
        "shrink": "replay:shrink",
        "audit": "audit:audit",
        "convert": "convert:convert",
        "demo": "demo:demo",
        "agent": "agent:agent",
        "exec": "exec:command",
        "status": "status:status",
        "top": "status:top",
        "chaos": "chaos:chaos",
        "lesson": "view:lesson",
        "view": "view:view",
        "certs": "certs:certs",
        "pool": "pool:pool",
    },
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=version,
            help="Print the version and whether it is compiled.",
        ),
    ],
)


def run() -> None:
    """Start the program; what a user can mend is one sentence and exit 2, never a traceback."""

    try:
        sys.exit(app.main(prog_name="meshlock", standalone_mode=False))
    except Refused as error:
        click.echo(f"meshlock: {error}", err=True)
        sys.exit(2)
    except click.UsageError as error:
        click.echo(usage(error), err=True)
        sys.exit(2)
    except click.Abort as error:  # Ctrl-C, or a question that nobody answered
        if isinstance(error.__cause__, KeyboardInterrupt):
            sys.exit(130)
        click.echo("Aborted!", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone
        sys.exit(141)


def usage(error: click.UsageError) -> str:
    """What is wrong with the flags, and where to look; the whole help if there are none."""
    text = error.format_message()
    if "\n" in text:
        return text
    stop = "" if text.endswith((".", "?", "?)")) else "."
    where = error.ctx.command_path if error.ctx is not None else "meshlock"
    return f"meshlock: {text}{stop} See '{where} --help'."
