"""What waits for a disk that hangs: what is to be written, and the messages behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from meshlock.check.mail import WORTHLESS, Mail
from meshlock.check.world import Disk, Writes


def to_write(writes: Writes, disk: Disk) -> Writes:
    """With one more thing to write."""
    if len(writes) < 2:
        return (*writes, (disk, ()))
    return (writes[0], (disk, writes[1][1]))


def behind(writes: Writes, message: int, mail: Mail) -> Writes:
    """With this message behind the last of them; as in a mailbox, loose ones are there once, and of
    those on the same track only the latest."""
    disk, messages = writes[-1]
    carried = mail.carried[message]
    if not carried.ordered:
        track = carried.track
        messages = tuple(
            [
                one
                for one in messages
                if one != message and (not track or mail.carried[one].track != track)
            ]
        )
    return (*writes[:-1], (disk, (*messages, message)))


def a_tick_later(writes: Writes, mail: Mail, slow: int) -> Writes:
    found: list[tuple[Disk, tuple[int, ...]]] = []
    for disk, messages in writes:
        older = [mail.age(message, slow) for message in messages]
        found.append((disk, tuple([one for one in older if one != WORTHLESS])))
    return tuple(found)


def translated(hanging: tuple[Any, ...], of: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The same with something else for each message: its number, or its word."""
    return tuple(
        [
            (i, tuple([(disk, tuple([of(one) for one in row])) for disk, row in writes]))
            for i, writes in hanging
        ]
    )
