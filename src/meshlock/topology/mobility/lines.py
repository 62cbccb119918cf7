"""Lines of a trace file, one at a time, whatever the file really holds."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import IO, cast

from meshlock.errors import Refused

MOST_NODES = 1_000_000
MOST_PLACES = 5_000_000
"""Movements come node by node or out of order, so all are kept; contacts are not."""


class Lines:
    """Reads a file line by line and says what is wrong with the line at hand."""

    def __init__(self, path: Path, longest: int) -> None:
        self.path = path
        self.longest = longest
        self.number = 0

    def bad(self, problem: str) -> Refused:
        end = "" if problem.endswith("?") else "."
        return Refused(f"{self.path}, line {self.number}: {problem}{end}")

    def __iter__(self) -> Iterator[str]:
        """Every line that is neither empty nor a comment (#)."""
        self.number = 0
        try:
            with self.open() as file:
                while line := self.read(file):
                    text = line.partition("#")[0].strip()
                    if text:
                        yield text
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            raise Refused(f"{self.path} cannot be read: {reason}.") from None

    def open(self) -> IO[bytes]:
        if self.path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        return self.path.open("rb")

    def read(self, file: IO[bytes]) -> str:
        self.number += 1
        try:
            line = file.readline(self.longest + 1)
        except EOFError:
            raise self.bad("the compressed file is cut off here; fetch it again") from None
        except (gzip.BadGzipFile, zlib.error):
            raise self.bad("the compressed file is damaged; fetch it again") from None
        if len(line) > self.longest:
            raise self.bad(f"longer than {self.longest:,} characters, so not such a file")
        try:
            text = line.decode("ascii")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise self.bad("not text, so the file is damaged or of another kind")
        return text

    def figure(self, text: str, what: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise self.bad(f"{what} '{short(text)}' is not a number") from None
        if not isfinite(value) or abs(value) > 1e15:
            raise self.bad(f"{what} {short(text)} is too large")
        return value

    def time(self, text: str, before: float) -> float:
        value = self.figure(text, "the time")
        if value < 0.0:
            raise self.bad(f"the time {short(text)} is negative")
        if value < before:
            raise self.bad(f"the time {short(text)} lies before {before:g}, which came earlier")
        return value

    def node(self, text: str, nodes: int | None) -> int:
        if not text.isdecimal():
            raise self.bad(f"'{short(text)}' is not a node, which is a number from 0")
        value = int(text) if len(text) < 10 else MOST_NODES
        if nodes is not None and value >= nodes:
            raise self.bad(f"node {value} is unknown: with {nodes} nodes the last is {nodes - 1}")
        if value >= MOST_NODES:
            raise self.bad(f"node {short(text)} is beyond the {MOST_NODES:,} that are kept")
        return value


def short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
