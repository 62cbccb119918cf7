"""meshlock convert: a trace for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from meshlock.cli.flags import Argument, Option


def convert(
    trace: Annotated[Path, Argument(help="Convert this trace.")],
    to: Annotated[str, Option("--to", help="Write this format: mermaid, shiviz, itf or csv.")],
    output: Annotated[Path, Option("--output", "-o", help="Write to this file.")],
) -> None:
    """Convert a trace to a Mermaid sequence diagram, ShiViz log, ITF states or CSV.

    Example: meshlock convert run.jsonl --to mermaid -o run.mmd
    """
    from meshlock.errors import Refused
    from meshlock.simulate.rerun import give_states
    from meshlock.trace.convert import FORMATS
    from meshlock.trace.reader import BadTrace, Trace

    if to not in FORMATS:
        raise Refused(f"--to is one of {', '.join(FORMATS)}, not '{to}'.")
    try:
        source = Trace(trace)
        if to == "itf" and not give_states(source):
            raise Refused(
                f"{trace} records no states, and its algorithm run again does not do what it says "
                f"(is it of a live pool with members, or of another version?): record the run "
                f"with --trace-states."
            )
        partial = output.with_name(output.name + ".part")
        try:
            with partial.open("w", encoding="utf-8", newline="") as file:
                remark = FORMATS[to](source, file)
            partial.replace(output)
        finally:
            partial.unlink(missing_ok=True)
    except BadTrace as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"Cannot write {output}: {error.strerror}.") from None
    if remark:
        click.echo(f"{output}: {remark}", err=True)
