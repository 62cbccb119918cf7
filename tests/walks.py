"""Which files something passes on its way: those whose functions run, with the rest to come, at the
moments that are named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import meshlock

ROOT = f"{Path(meshlock.__file__).parent}/"


class Walk:
    def __init__(self, moments: list[Any]) -> None:
        self.passed: dict[str, None] = {}
        self.entered: Counter[str] = Counter()
        self.moments = {moment.__code__ for moment in moments}
        self.seen: set[CodeType] = set()

    def note(self, frame: FrameType | None, event: str, _: object) -> None:
        if event != "call" or frame is None or not frame.f_code.co_filename.startswith(ROOT):
            return
        file = frame.f_code.co_filename[len(ROOT) :]
        self.entered[file] += 1
        if frame.f_code not in self.moments:
            return
        self.seen.add(frame.f_code)
        files = []
        while frame is not None:
            if frame.f_code.co_filename.startswith(ROOT):
                files.append(frame.f_code.co_filename[len(ROOT) :])
            frame = frame.f_back
        self.passed.update(dict.fromkeys(reversed(files)))

    def show(self) -> None:
        for place, file in enumerate(self.passed, 1):
            print(f"{place:3}  {file}")
        print(f"{len(self.passed)} files on the walk, {len(self.entered)} with all that they call")
