"""Serve the page. Only this machine may ask."""

from __future__ import annotations

import asyncio
import signal
import sys
import webbrowser
from pathlib import Path

from meshlock.errors import Refused, setting
from meshlock.live.interfaces.server import serve_port
from meshlock.live.interfaces.serving import Access
from meshlock.live.interfaces.site import Site
from meshlock.web.desk import Desk
from meshlock.web.index import open_trace
from meshlock.web.lessons import lesson


def application(desk: Desk) -> Site:
    """Asked by this machine, under its own name, and by no other page."""
    return Site(desk.routes(), Access("127.0.0.1", [], None).admit)


# -- until interrupted --------------------------------------------------------------------


def serve(trace: Path | None, port: int, browser: bool) -> None:
    desk = Desk()
    if trace is not None:
        desk.shelf.runs["trace"] = open_trace(trace)
        desk.shelf.opened = "trace"
    asyncio.run(until_told(application(desk), port, browser))


def serve_lesson(name: str, port: int, browser: bool) -> None:
    desk = Desk()
    desk.shelf.opened = f"lesson:{name}"
    desk.shelf.add_lesson(desk.shelf.opened, lesson(name))
    asyncio.run(until_told(application(desk), port, browser))


async def until_told(site: Site, port: int, browser: bool) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if not 0 <= port < 1 << 16:
        raise Refused(f"There is no port {port}: use another {setting('port')}.")
    try:
        server = await serve_port(site, "127.0.0.1", port)
    except OSError as error:
        why = f"Cannot serve on port {port}: {error}; use another {setting('port')}."
        raise Refused(why) from None
    address = f"http://127.0.0.1:{server.port()}/"
    sys.stderr.write(f"The page is at {address} (Ctrl-C to end).\n")
    if browser:
        webbrowser.open(address)
    await stop.wait()
    await server.close()
