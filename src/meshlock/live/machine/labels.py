"""By what name a request is known in the whole mesh, and since when.

In a ledger it stands with the number of the client on its node and the time of its grant, as one
text: recovery carries it along and does not read it. Imports little: clients of the agent use it.
"""

from __future__ import annotations

import os
import sys
import time

LONGEST = 96
"""Characters."""

LONGEST_NOTE = LONGEST + 64

KNOWN: dict[int, str] = {}
"""By process, for programs that fork."""


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


NONE_YET = "-"

DIGITS = 16
"""Of a number in a note."""
VALUE = 32
"""Digits of the value in a commitment."""


def note(client: int, label: str) -> str:
    """Of a grant that is made now; its commitment follows when the token leaves."""
    return f"{client} {int(time.time() * 1000)} {NONE_YET} {label}"


def read(note: str) -> tuple[int, float, str]:
    """Client, seconds of the wall clock, label; of a node that wrote something else, that."""
    try:
        client, since, _, label = note.split(" ", 3)
        return int(client), int(since) / 1000, label
    except ValueError:
        return 0, 0, note


def is_note(note: str) -> bool:
    """Is it as :func:`note` writes it, or :func:`committed`?"""
    words = note.split(" ", 3)
    if len(words) != 4 or words[3] != fitting(words[3]) or not is_commitment(words[2]):
        return False
    return all(one.isascii() and one.isdecimal() and len(one) <= DIGITS for one in words[:2])


def is_commitment(word: str) -> bool:
    """Is it none yet, or a number of permits and a value in hexadecimal digits?"""
    number, _, value = word.partition(".")
    digits = number.isdecimal() and len(number) <= DIGITS and len(value) == VALUE
    return word == NONE_YET or (word.isascii() and digits and value.isalnum())


def commitment(note: str) -> str:
    """A word; empty where there never is one."""
    words = note.split(" ", 3)
    return words[2] if len(words) == 4 else ""


def committed(note: str, commitment: str) -> str:
    """The same with another one, if it has one."""
    words = note.split(" ", 3)
    return " ".join([*words[:2], commitment, words[3]]) if len(words) == 4 else note
