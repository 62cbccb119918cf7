"""By what name a request is known in the whole mesh.

Imports little: clients of the agent use it.
"""

from __future__ import annotations

import os
import sys

LONGEST = 96  # characters
LONGEST_NOTE = LONGEST + 64

KNOWN: dict[int, str] = {}  # by process, for programs that fork


def default() -> str:
    """User, host, program and process."""
    process = os.getpid()
    if process not in KNOWN:
        KNOWN.clear()
        KNOWN[process] = of_command(sys.argv)
    return KNOWN[process]


def of_command(command: list[str]) -> str:
    """The same, of another program than this one."""
    program = os.path.basename(command[0] if command else "") or "python"  # noqa: PTH119
    return fitting(f"{user()}@{os.uname().nodename} {program}[{os.getpid()}]")


def user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without a name
        return str(os.getuid())


def fitting(label: str) -> str:
    """On one line, and no longer than it may be."""
    if not label.isprintable():
        label = "".join([one if one.isprintable() else "?" for one in label])
    return label[:LONGEST]
