"""Say that somebody was refused, but let no flood of them become a flood of lines."""

from __future__ import annotations

import time
from logging import WARNING

from meshlock.live.machine.logs import log_event

LINES_PER_SECOND = 10


class Refusals:
    def __init__(self) -> None:
        self.total = 0
        self.second = 0
        self.lines = 0
        self.silent = 0
        self.last = ""  # in brackets, for a sentence

    def note(self, who: str, reason: str) -> None:
        self.total += 1
        self.last = f" ({who.rpartition(':')[0] or who} was refused: {reason})"
        second = int(time.monotonic())
        if second != self.second:
            if self.silent:
                log_event(WARNING, "refused", more=self.silent)
            self.second, self.lines, self.silent = second, 0, 0
        if self.lines < LINES_PER_SECOND:
            self.lines += 1
            log_event(WARNING, "refused", peer=who, reason=reason)
        else:
            self.silent += 1
