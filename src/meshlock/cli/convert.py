"""meshlock convert: a trace for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import click

from meshlock.errors import Attempt, Refused
from meshlock.settings import REQUIRED, argument, option


def convert(
    trace: Path = argument(REQUIRED, "Convert this trace."),
    to: str = option(REQUIRED, "Write this format: mermaid, shiviz, itf, csv or html."),
    output: Path = option(REQUIRED, "Write to this file.", "--output", "-o"),
) -> None:
    """Convert a trace to a Mermaid sequence diagram, ShiViz log, ITF states, CSV, or one HTML
    file that plays it without a server.

    Example: meshlock convert run.jsonl --to html -o run.html
    """
    from io import TextIOWrapper

    from meshlock.simulate.rerun import give_states, refuse_too_large
    from meshlock.trace.convert import FORMATS
    from meshlock.trace.files import replacing
    from meshlock.trace.reader import Trace

    if to not in (*FORMATS, "html"):
        raise Refused(f"--to is one of {', '.join(FORMATS)} or html, not '{to}'.")
    with Attempt(f"write {output}"):
        source = Trace(trace)
        if to in ("itf", "html"):
            refuse_too_large(source)
        if to == "itf" and not give_states(source):
            raise Refused(
                f"{trace} records no states, and its algorithm run again does not do what it says "
                f"(is it of a live pool with members, or of another version?): record the run "
                f"with --trace-states."
            )
        with replacing(output) as file, TextIOWrapper(file, "utf-8", newline="") as text:
            remark = page(trace, text) if to == "html" else FORMATS[to](source, text)
    if remark:
        click.echo(f"{output}: {remark}", err=True)


def page(trace: Path, out: TextIO) -> str:
    from meshlock.web.export import exported
    from meshlock.web.index import open_trace

    index = open_trace(trace)
    out.write(exported(index, index.about()))
    return ""
