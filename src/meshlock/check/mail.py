"""Messages between nodes that recover, as numbers: what each is, and what it is a tick later."""

from __future__ import annotations

from typing import Final, cast

from meshlock.algorithms.actor import Frozen, Message
from meshlock.algorithms.recovery.messages import (
    BEST_EFFORT,
    AskLedger,
    Confirm,
    Copy,
    Hello,
    Inner,
    Ledger,
    Renew,
    Return,
    carrier,
    content,
)
from meshlock.algorithms.recovery.records import Epoch
from meshlock.check.words import Word, copy, spoken, word

WORTHLESS: Final = -1
HANDSHAKES: Final = (Hello.kind, AskLedger.kind, Copy.kind, "LINK")

Key = tuple[int, int, Frozen]


class Carried:
    """A message on its way, and what can be said of it wherever it is."""

    __slots__ = (
        "about",
        "epoch",
        "handshake",
        "inner",
        "message",
        "number",
        "ordered",
        "pair",
        "receiver",
        "refused",
        "track",
    )

    def __init__(self, number: int, message: Message, key: Key) -> None:
        self.number = number
        self.message = message  # handlers get copies
        self.receiver = message.receiver
        self.pair = (message.sender, message.receiver)
        self.inner = message if isinstance(message, Inner) else None
        self.handshake = content(message).kind in HANDSHAKES
        self.ordered = carrier(message, changing_links=True) != BEST_EFFORT
        self.epoch = epoch_of(message)
        self.track = track(key)
        self.about = about(message)
        self.refused: tuple[dict[int, bool], ...] = ({}, {}, {})  # see check/refused.py


class Mail:
    """``lease``: after how many ticks the answer to a renewal is worth nothing."""

    def __init__(self, lease: int) -> None:
        self.lease = lease
        self.carried: list[Carried] = []
        self.numbers: dict[Key, int] = {}
        self.older: dict[tuple[int, int], int] = {}  # message, slow node: the same a tick later

    def number(self, message: Message, now: int) -> int:
        """Times in it become relative to now."""
        if now != 0:
            make_relative(message, now)
        key = (message.sender, message.receiver, message.freeze())
        known = self.numbers.get(key, -1)
        if known < 0:
            known = len(self.carried)
            self.numbers[key] = known
            self.carried.append(Carried(known, copy(message), key))
        return known

    def fresh(self, number: int) -> Message:
        return copy(self.carried[number].message)

    def word(self, number: int) -> Word:
        return word(self.carried[number].message)

    def heard(self, words: Word) -> int:
        return self.number(spoken(words), 0)

    def age(self, number: int, slow: int) -> int:
        """The same message a tick later, which that node's clock misses; or WORTHLESS."""
        known = self.older.get((number, slow))
        if known is None:
            known = self.aged(self.fresh(number), number, slow)
            self.older[number, slow] = known
        return known

    def aged(self, message: Message, number: int, slow: int) -> int:
        oldest = -self.lease
        if isinstance(message, Ledger):
            if message.sender != slow:
                message.sent = max(oldest, message.sent - 1)
        elif isinstance(message, (Renew, Confirm)):
            asker = message.sender if isinstance(message, Renew) else message.receiver
            if asker != slow:
                message.sent -= 1
                if message.sent <= oldest:
                    return WORTHLESS
        elif isinstance(message, Inner) and message.is_timed():
            message.travelled = min(message.left, message.travelled + 1)
        else:
            return number
        return self.number(message, 0)

    def name(self, number: int) -> str:
        message = self.carried[number].message
        return f"{content(message).kind} {message.sender}>{message.receiver}"


def make_relative(message: Message, now: int) -> None:
    if isinstance(message, (Renew, Ledger, Confirm)):
        message.sent -= now


def epoch_of(message: Message) -> Epoch | None:
    """The epoch that it belongs to, or is about."""
    if isinstance(message, (Ledger, Copy)):
        return message.first.epoch
    return cast(Epoch, message.freeze()[1]) if message.fields[0] == "epoch" else None


def about(message: Message) -> int:
    """The node that it is about; its sender if it names none."""
    if isinstance(message, (AskLedger, Return)):
        return message.node
    return message.sender


def track(key: Key) -> Frozen:
    """What renewals have in common of which only the latest is worth keeping; () for others.

    Its answer is given under the same condition and is worth more.
    """
    sender, receiver, frozen = key
    if frozen[0] == Renew.kind:
        return (sender, receiver, *frozen[:4])
    if frozen[0] == Confirm.kind:
        return (sender, receiver, *frozen[:3], frozen[4])
    return ()
