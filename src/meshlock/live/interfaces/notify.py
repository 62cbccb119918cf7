"""Tell systemd how the agent is, with the datagrams of sd_notify(3).

Without ``NOTIFY_SOCKET`` in the environment nothing is sent. ``WATCHDOG=1`` comes from a timer of
the event loop, so that an agent whose loop hangs is restarted.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping
from logging import WARNING

from meshlock.live.machine.error_text import error_text
from meshlock.live.machine.logs import log_event


class Service:
    """The agent as systemd sees it; use it with ``with``, around everything else."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.place = environment.get("NOTIFY_SOCKET", "")
        self.watched = watchdog(environment)
        self.failed = False
        self.timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Service:
        if self.place and self.watched is not None:
            self.beat(self.watched / 2)
        return self

    def __exit__(self, *_: object) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def ready(self) -> None:
        """The agent listens: systemd starts what comes after it."""
        self.send("READY=1")

    def stopping(self) -> None:
        """The agent leaves; the watchdog is fed until it has left."""
        self.send("STOPPING=1")

    def beat(self, every: float) -> None:
        self.timer = asyncio.get_running_loop().call_later(every, self.beat, every)
        self.send("WATCHDOG=1")

    def send(self, line: str) -> None:
        """What cannot be sent is logged once: the agent does its work without systemd, too."""
        if not self.place:
            return
        place = "\0" + self.place[1:] if self.place.startswith("@") else self.place
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto(line.encode(), place)
        except OSError as error:
            if not self.failed:
                self.failed = True
                log_event(
                    WARNING, "systemd not notified", socket=self.place, reason=error_text(error)
                )


def watchdog(environment: Mapping[str, str]) -> float | None:
    """Seconds within which systemd expects a message of this process; None: it does not ask."""
    microseconds = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(microseconds) / 1e6 if microseconds.isdecimal() and int(microseconds) else None
