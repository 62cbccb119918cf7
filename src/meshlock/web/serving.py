"""Serve the page on this machine until interrupted."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import webbrowser
from pathlib import Path

from meshlock.errors import Refused, setting
from meshlock.live.interfaces.server import serve_listener
from meshlock.live.interfaces.site import Site
from meshlock.web.index import open_trace
from meshlock.web.server import Desk, application


def listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise Refused(
            f"Cannot serve on port {port}: {error}; use another {setting('port')}."
        ) from None
    listener.listen()
    return listener


def serve(trace: Path | None, port: int, browser: bool) -> None:
    desk = Desk()
    if trace is not None:
        desk.runs["trace"] = open_trace(trace)
        desk.opened = "trace"
    listener = listening(port)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    sys.stderr.write(f"The page is at {address} (Ctrl-C to end).\n")
    if browser:
        webbrowser.open(address)
    asyncio.run(until_told(application(desk), listener))


async def until_told(site: Site, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = await serve_listener(site, listener)
    await stop.wait()
    await server.close()
