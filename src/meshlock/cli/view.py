"""meshlock view: the page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from meshlock.cli.algorithms import Outside, load_all
from meshlock.cli.flags import Argument, Option


def view(
    trace: Annotated[Path | None, Argument(help="Play this trace.")] = None,
    port: Annotated[int, Option(help="Serve the page at this port. 0: any free port.")] = 8765,
    browser: Annotated[bool, Option(help="Open the page in a browser.")] = True,
    algorithm: Outside = None,
) -> None:
    """Play a trace in the browser; without one, drive a small run step by step.

    Example: meshlock view run.jsonl
    """
    from meshlock.web.serving import serve

    load_all(algorithm)
    serve(trace, port, browser)
