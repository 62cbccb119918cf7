"""Ports for those who must know theirs before they listen, or listen again at the same one.

A port that the system would give to anybody who asks for some port may be taken meanwhile. These
are others, and each is kept for one process of the tests at a time.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from io import TextIOWrapper
from pathlib import Path

FIRST = 20_000
GIVEN_TO_ANYBODY = 32_768
"""By default, on Linux; BSD and macOS begin later."""

FOLDER = Path(tempfile.gettempdir()) / f"meshlock-ports-{os.getuid()}"
kept: dict[int, TextIOWrapper] = {}
"""As long as this process lives."""


def free_port() -> int:
    while True:
        port = random.randrange(FIRST, GIVEN_TO_ANYBODY)
        if port not in kept and is_free(port) and keep(port):
            return port


def free_ports(count: int) -> list[int]:
    return [free_port() for _ in range(count)]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def keep(port: int) -> bool:
    FOLDER.mkdir(exist_ok=True)
    file = (FOLDER / str(port)).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return False
    kept[port] = file
    return True
