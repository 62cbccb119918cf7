"""Messages in words: what two processes, or two runs of one handler, may share of a message."""

from __future__ import annotations

from typing import Any, cast

from meshlock.algorithms.actor import Frozen, Message
from meshlock.algorithms.recovery.records import Seal

Word = tuple[type[Message], int, int, Frozen, Frozen]
"""A message as all processes know it."""


def copy(message: Message) -> Message:
    """A message of its own, so that no handler can change what others will receive."""
    twin: Message = type(message)(message.receiver, *message.freeze()[1:])
    twin.sender = message.sender
    twin.seal = message.seal
    return twin


def word(message: Message) -> Word:
    seal = () if message.seal is None else message.seal.freeze()
    return type(message), message.sender, message.receiver, message.freeze()[1:], seal


def spoken(words: Word) -> Message:
    """The message that was put into words."""
    kind, sender, receiver, fields, seal = words
    message: Message = kind(receiver, *fields)
    message.sender = sender
    if seal:
        message.seal = Seal(*cast("tuple[Any, ...]", seal))
    return message
