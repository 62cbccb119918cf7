"""meshlock top: the same as status, refreshed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from meshlock.cli.flags import SOCKET
from meshlock.errors import Refused
from meshlock.settings import option

WINDOW = 5.0
"""Seconds over which entries per second are counted, so that the figure can be read."""


def top(
    socket: str | None = SOCKET,
    every: float = option(0.5, "Set the seconds between two refreshes.", least=0.05),
) -> None:
    """Watch pools, holders, waiting clients and links; q or Ctrl-C ends it.

    Example: meshlock top
    """
    from rich.console import Console
    from rich.live import Live

    from meshlock.cli.status import picture, read_status
    from meshlock.live.interfaces.agent_connection import Connection

    agent = Connection(socket)
    console = Console()
    if not console.is_terminal:
        raise Refused("top needs a terminal to draw on: use 'meshlock status', or its --json.")
    past: list[tuple[float, dict[str, int]]] = []
    try:
        with keys() as ended, Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                found = read_status(agent)
                clients = max(3, console.height - len(found["pools"]) - len(found["links"]) - 9)
                live.update(picture(found, rates(past, found), clients), refresh=True)
                if ended(every):
                    break
    except KeyboardInterrupt:
        pass


def rates(past: list[tuple[float, dict[str, int]]], found: dict[str, Any]) -> dict[str, float]:
    """Entries per second of each pool since the oldest look that is remembered."""
    import time

    now = time.monotonic()
    entries = {name: pool.get("entries", 0) for name, pool in found["pools"].items()}
    past.append((now, entries))
    while len(past) > 2 and now - past[1][0] >= WINDOW:
        past.pop(0)
    then, before = past[0]
    if len(past) == 1:
        return {}
    return {
        name: (count - before.get(name, count)) / (now - then) for name, count in entries.items()
    }


@contextmanager
def keys() -> Iterator[Any]:
    """Wait this number of seconds; true as soon as q is pressed."""
    import os
    import select
    import sys
    import termios
    import time
    import tty

    if not sys.stdin.isatty():
        yield lambda seconds: time.sleep(seconds)
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def pressed(seconds: float) -> bool:
        ready, _, _ = select.select([keyboard], [], [], seconds)
        typed = os.read(keyboard, 64) if ready else b"nothing"
        return not typed or b"q" in typed.lower()

    try:
        tty.setcbreak(keyboard)
        yield pressed
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
