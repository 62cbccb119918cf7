"""A disk that takes its time, for :mod:`layer_world`: what stands behind a promise waits for it.

As in a live pool: the latest promise stands for all before it, proposals and the ends of leases
wait for nothing, and a ledger for the promise of its epoch only. A disk that fails tries again.
"""

from __future__ import annotations

from random import Random

from meshlock.algorithms.actor import Effect, Enter, Lost, Message, Save
from meshlock.algorithms.recovery.messages import Hello, Inner, Ledger, Propose
from meshlock.algorithms.recovery.records import NO_EPOCH, Durable

RETRY = 30
"""Ticks until a disk tries again what it failed to write."""

Asked = tuple[Effect, int]
"""What a node asked for, and when."""


class SlowDisk:
    """Writes take up to ``slowest`` ticks, with 0 none; the share ``fail`` of them fails."""

    def __init__(self, seed: str, slowest: int, fail: float) -> None:
        self.random = Random(seed)
        self.slowest = slowest
        self.fail = fail
        self.kept: Durable | None = None  # on disk
        self.writing: Durable | None = None
        self.due = 0
        self.unsaved: Durable | None = None
        self.waiting: list[Asked] = []  # for what is being written, and ...
        self.behind: list[Asked] = []  # ... for what comes next
        self.delayed = 0

    def pass_on(self, effects: list[Effect], now: int) -> list[Effect]:
        """What can be done at once."""
        at_once: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Save):
                self.keep(effect.record, now)
            elif not self.is_behind() or self.may_pass(effect):
                at_once.append(effect)
                if isinstance(effect, Lost):
                    self.forget(effect.client)
            else:
                self.delayed += 1
                line = self.waiting if self.unsaved is None else self.behind
                line.append((effect, now))
        return at_once

    def is_behind(self) -> bool:
        return self.writing is not None or self.unsaved is not None

    def may_pass(self, effect: Effect) -> bool:
        if isinstance(effect, Ledger):
            on_disk = self.kept.promised if self.kept is not None else NO_EPOCH
            return effect.first.epoch <= on_disk
        return isinstance(effect, Propose | Lost)

    def forget(self, client: int) -> None:
        """Its lease has ended before it could be told of it."""
        self.waiting = [one for one in self.waiting if not is_entry(one[0], client)]
        self.behind = [one for one in self.behind if not is_entry(one[0], client)]

    def keep(self, keep: Durable, now: int) -> None:
        if self.slowest == 0 and not self.is_behind():
            self.kept = keep
            return
        self.unsaved = keep
        if self.writing is None:
            self.write_next(now)

    def write_next(self, now: int) -> None:
        if self.unsaved is not None:
            self.writing, self.unsaved = self.unsaved, None
            self.waiting += self.behind
            self.behind = []
            self.due = now + self.random.randint(1, max(1, self.slowest))

    def is_written(self, now: int) -> bool:
        """Then what waits for it is done, and after that whatever is asked for meanwhile."""
        if self.writing is None or self.due > now:
            return False
        if self.random.random() < self.fail:
            self.waiting = [one for one in self.waiting if not is_repeated(one[0])]
            self.due = now + RETRY
            return False
        self.kept = self.writing
        return True

    def go_on(self, now: int) -> None:
        self.writing = None
        self.write_next(now)

    def crash(self) -> None:
        """What was being written may be on disk then, but nothing behind it was said."""
        if self.writing is not None and self.random.random() < 0.3:
            self.kept = self.writing


def is_entry(effect: Effect, client: int) -> bool:
    return isinstance(effect, Enter) and effect.client == client


def is_repeated(effect: Effect) -> bool:
    """What recovery says itself is said again anyway."""
    return isinstance(effect, Message) and not isinstance(effect, Hello | Inner)
