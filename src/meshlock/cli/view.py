"""meshlock view: the page."""

from __future__ import annotations

from pathlib import Path

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
