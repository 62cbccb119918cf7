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

from meshlock.live.interfaces.local_node import LocalNode
from meshlock.live.interfaces.node import Node
from meshlock.live.machine.error_text import error_text
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.status import Status
from meshlock.properties.sentences import counted

EVERY = 5.0
"""Seconds between two looks at the status, if systemd asks for no watchdog."""


class Service:
    """The agent as systemd sees it; use it with ``with``, around everything else."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self.place = environment.get("NOTIFY_SOCKET", "")
        self.watched = watchdog(environment)
        self.node: LocalNode | None = None
        self.status = ""
        self.failed = False
        self.timer: asyncio.TimerHandle | None = None
        self.socket: socket.socket | None = None

    def __enter__(self) -> Service:
        if self.place:
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self.socket.setblocking(False)
            self.beat()
        return self

    def __exit__(self, *_: object) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.socket is not None:
            self.socket.close()

    def ready(self, node: Node) -> None:
        """The agent listens: systemd starts what comes after it."""
        self.node = node._local
        self.status = summary(node.status())
        self.send("READY=1", f"STATUS={self.status}")

    def stopping(self) -> None:
        """The agent leaves; the watchdog is fed until it has left."""
        self.node = None
        self.send("STOPPING=1", "STATUS=Leaving the mesh.")

    def beat(self) -> None:
        every = EVERY if self.watched is None else self.watched / 2
        self.timer = asyncio.get_running_loop().call_later(every, self.beat)
        if self.watched is not None:
            self.send("WATCHDOG=1")
        if self.node is not None:
            self.node.mesh.failures.run("notify", self.send_status, self.node)

    def send_status(self, node: LocalNode) -> None:
        status = summary(node.status())
        if status != self.status:
            self.status = status
            self.send(f"STATUS={status}")

    def send(self, *lines: str) -> None:
        """What cannot be sent is logged once: the agent does its work without systemd, too."""
        if self.socket is None:
            return
        place = "\0" + self.place[1:] if self.place.startswith("@") else self.place
        try:
            self.socket.sendto("\n".join(lines).encode(), place)
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


def summary(status: Status) -> str:
    """The status of a node in one sentence, for ``systemctl status``."""
    up = sum(link["up"] for link in status["links"].values())
    pools = [pool for pool in status["pools"].values() if pool["known"]]
    held = sum(grant["want"] for pool in pools for grant in pool["holding"])
    waiting = sum(pool["queued"] for pool in pools)
    lost = [
        f"{name}: {pool['unready']}"
        for name, pool in sorted(status["pools"].items())
        if pool.get("unready")
    ]
    figures = [
        counted(up, "link") + " up",
        counted(len(pools), "pool"),
        counted(held, "permit") + " held here",
        counted(waiting, "request") + " waiting here",
    ]
    return "; ".join([", ".join(figures), *lost]) + "."
