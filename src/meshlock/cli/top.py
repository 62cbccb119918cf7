"""meshlock top: the same as status, again and again."""

from __future__ import annotations

from typing import Annotated

import typer


def top(
    socket: Annotated[str | None, typer.Option(help="The agent's unix socket.")] = None,
    every: Annotated[float, typer.Option(help="Seconds between two looks.")] = 0.5,
) -> None:
    """Watch links, pools and who waits; Ctrl-C ends it.

    Example: meshlock top
    """
    import time

    from rich.console import Console
    from rich.live import Live

    from meshlock.cli.status import picture
    from meshlock.live.asking import Ask

    agent = Ask(socket)
    first = agent.ask(do="status")["status"]
    try:
        with Live(picture(first), console=Console(), screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(picture(agent.ask(do="status")["status"]), refresh=True)
    except KeyboardInterrupt:
        pass
