"""All messages under way at a time, as one number; and its number after each change to it."""

from __future__ import annotations

from typing import Any, cast

from meshlock.check import kinds
from meshlock.check.links import Pair
from meshlock.check.mail import WORTHLESS, Carried, Mail
from meshlock.check.model import Part
from meshlock.check.words import Word
from meshlock.check.world import Step

Loose = tuple[int, ...]
Lines = tuple[tuple[Pair, tuple[int, ...]], ...]
"""Sender and receiver, and the messages in their order; sorted, and none is empty."""

EMPTY = 0

TAKE, POP, ADD, PUSH, AGE = range(5)
"""What happens to a mailbox: a loose message is taken away or added, of those on the same track
only the latest stays; one at the head of a line is taken away, or added at its end; or a tick
passes, which the clock of a node misses."""


class Mailboxes:
    def __init__(self, mail: Mail) -> None:
        self.mail = mail
        self.numbers: dict[tuple[Loose, Lines], int] = {}
        # of each mailbox, by its number
        self.loose: list[Loose] = []
        self.lines: list[Lines] = []
        self.messages: list[list[Carried]] = []  # all of them
        self.tokens: list[list[Carried]] = []  # those of them that carry a token
        self.hasty: list[bool] = []  # is a handshake loose, or at the head of a line?
        self.steps: list[list[Step]] = []  # what can arrive
        self.changed: dict[tuple[int, int, int], int] = {}  # what became of a mailbox
        self.kept: dict[tuple[int, tuple[int, ...]], int] = {}
        self.number((), ())

    def number(self, loose: Loose, lines: Lines) -> int:
        known = self.numbers.setdefault((loose, lines), len(self.loose))
        if known == len(self.loose):
            carried = self.mail.carried
            soon = loose + tuple([line[0] for _, line in lines])
            messages = [carried[one] for one in loose]
            for _, line in lines:
                messages += [carried[one] for one in line]
            tokens = []
            for one in messages:
                if one.inner is not None and one.inner.state is not None:
                    tokens.append(one)
            self.loose.append(loose)
            self.lines.append(lines)
            self.messages.append(messages)
            self.tokens.append(tokens)
            self.hasty.append(any(carried[one].handshake for one in soon))
            arrivals = [(kinds.DELIVER, one) for one in loose]
            self.steps.append(arrivals + [(kinds.NEXT, line[0]) for _, line in lines])
        return known

    def meaning(self, box: int) -> Part:
        """What is under way, as all processes know it."""
        loose = tuple(sorted([self.mail.word(one) for one in self.loose[box]], key=hash))
        words = [
            (pair, tuple([self.mail.word(one) for one in line])) for pair, line in self.lines[box]
        ]
        return loose, tuple(words)

    def number_of(self, part: Part) -> int:
        loose, lines = cast("tuple[tuple[Word, ...], tuple[tuple[Pair, Any], ...]]", part)
        numbers = sorted([self.mail.heard(one) for one in loose])
        heard = [(pair, tuple([self.mail.heard(one) for one in line])) for pair, line in lines]
        return self.number(tuple(numbers), tuple(heard))

    def line(self, box: int, pair: Pair) -> tuple[int, ...]:
        return dict(self.lines[box]).get(pair, ())

    def after(self, change: int, box: int, subject: int) -> int:
        """What becomes of a mailbox; ``subject``: the message, or the slow node."""
        key = (change, box, subject)
        known = self.changed.get(key, -1)
        if known < 0:
            known = self.changed[key] = self.work_out(change, box, subject)
        return known

    def work_out(self, change: int, box: int, subject: int) -> int:
        loose, carried = self.loose[box], self.mail.carried
        if change == AGE:
            older = {self.mail.age(one, subject) for one in loose} - {WORTHLESS}
            lines = [
                (pair, tuple([self.mail.age(one, subject) for one in line]))
                for pair, line in self.lines[box]
            ]
            return self.number(tuple(sorted(older)), tuple(lines))
        if change == TAKE:
            return self.number(tuple([one for one in loose if one != subject]), self.lines[box])
        if change == ADD:
            track = carried[subject].track
            others = [one for one in loose if not track or carried[one].track != track]
            return self.number(tuple(sorted({*others, subject})), self.lines[box])
        pair = carried[subject].pair
        line = self.line(box, pair)
        return self.with_line(box, pair, line[1:] if change == POP else (*line, subject))

    def with_line(self, box: int, pair: Pair, line: tuple[int, ...]) -> int:
        """With this line in the place of the one there was between these."""
        lines = dict(self.lines[box])
        lines.pop(pair, None)
        if line:
            lines[pair] = line
        return self.number(self.loose[box], tuple(sorted(lines.items())))

    def discard(self, box: int, messages: tuple[int, ...]) -> int:
        """Without any of these."""
        known = self.kept.get((box, messages), -1)
        if known < 0:
            known = self.kept[box, messages] = self.sift(box, messages)
        return known

    def sift(self, box: int, messages: tuple[int, ...]) -> int:
        loose = tuple([one for one in self.loose[box] if one not in messages])
        lines: list[tuple[Pair, tuple[int, ...]]] = []
        for pair, line in self.lines[box]:
            kept = tuple([one for one in line if one not in messages])
            if kept:
                lines.append((pair, kept))
        return self.number(loose, tuple(lines))
