"""meshlock view and lesson: the page."""

from __future__ import annotations

from pathlib import Path

import click

from meshlock.cli.algorithms import OUTSIDE, load_all
from meshlock.settings import argument, option


def view(
    trace: Path | None = argument(None, "Play this trace."),
    port: int = option(8765, "Serve the page at this port. 0: any free port."),
    browser: bool = option(True, "Open the page in a browser.", "--browser/--no-browser"),
    algorithm: tuple[str, ...] = OUTSIDE,
) -> None:
    """Play a trace in the browser; without one, drive a small run step by step.

    Example: meshlock view run.jsonl
    """
    from meshlock.web.server import serve

    load_all(algorithm)
    serve(trace, port, browser)


def lesson(
    name: str | None = argument(None, "Tell this lesson: one of the list, or a file of yours."),
    port: int = option(8765, "Serve the page at this port. 0: any free port."),
    browser: bool = option(True, "Open the page in a browser.", "--browser/--no-browser"),
    algorithm: tuple[str, ...] = OUTSIDE,
) -> None:
    """Tell a lesson step by step beside the picture; without one, list them.

    Example: meshlock lesson 02-raymond
    """
    from meshlock.web import lessons
    from meshlock.web.server import serve_lesson

    load_all(algorithm)
    if name is not None:
        serve_lesson(name, port, browser)
        return
    for each, title in lessons.titles().items():
        click.echo(f"{each:<20} {title}")
