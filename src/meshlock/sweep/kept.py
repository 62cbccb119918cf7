"""The file to which every finished run is appended, so that a second start goes on from there."""

from __future__ import annotations

import fcntl
from pathlib import Path
from types import TracebackType

from meshlock.errors import Attempt, Refused
from meshlock.sweep.runs import RunLine, read_line


class Kept:
    """Lines of JSON, one per run; use it with ``with``. One sweep at a time may write.

    What was being written when the machine or the process stopped is no whole line: it is cut
    off, and its run is made again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with Attempt(f"write to {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self.file = path.open("a+b", buffering=0)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.close()
            raise Refused(
                f"Another sweep is writing to {path.parent}: wait until it ends."
            ) from None
        self.lines = self.read()

    def read(self) -> dict[str, RunLine]:
        self.file.seek(0)
        found: dict[str, RunLine] = {}
        whole = 0
        for text in self.file.readlines():
            if text.endswith(b"\n"):
                whole += len(text)
                line = read_line(text)
                if line is not None:
                    found[line.key] = line
        self.file.truncate(whole)
        return found

    def add(self, text: bytes) -> None:
        try:
            written = self.file.write(text)
        except OSError as error:
            raise self.cannot(error.strerror) from None
        if written != len(text):
            raise self.cannot("no space left")

    def cannot(self, why: str | None) -> Refused:
        return Refused(
            f"Cannot write to {self.path}: {why}. {len(self.lines)} runs are kept; the same "
            f"command goes on from there."
        )

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.file.close()
