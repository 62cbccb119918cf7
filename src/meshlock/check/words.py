"""Messages in words: what two processes, or two runs of one handler, may share of a message."""

from __future__ import annotations

from typing import Any, cast

from meshlock.algorithms.actor import Frozen, Message
from meshlock.algorithms.recovery.messages import Inner

Word = tuple[type[Message], int, int, Frozen, Any]
"""A message as all processes know it, and last the word of the one that is in it, or None. mypyc
does not compile types that contain themselves."""


def copy(message: Message) -> Message:
    """A message of its own, so that no handler can change what others will receive."""
    return spoken(word(message))


def word(message: Message) -> Word:
    inside: Word | None = None
    if isinstance(message, Inner):
        inside, fields = word(message.message), message.seal()
    else:
        fields = message.freeze()[1:]
    return type(message), message.sender, message.receiver, fields, inside


def spoken(words: Word) -> Message:
    """The message that was put into words."""
    kind, sender, receiver, fields, inside = words
    message: Message
    if inside is not None:
        epoch, boot, *rest = cast("tuple[Any, ...]", fields)
        message = Inner(receiver, epoch, boot, spoken(inside), *rest)
    else:
        message = kind(receiver, *fields)
    message.sender = sender
    return message
