"""One run of a sweep: its settings in, one line of JSON out. Workers anywhere do just this.

The lines are kept in a file.
"""

from __future__ import annotations

import fcntl
import os
import traceback
from functools import cache
from hashlib import sha256
from pathlib import Path
from shlex import quote
from socket import gethostname
from typing import Any

import msgspec

import meshlock
from meshlock.algorithms.outside import load
from meshlock.errors import Attempt, Refused
from meshlock.simulate.engine import Simulation
from meshlock.simulate.report import figures
from meshlock.simulate.run_settings import RunSettings, Values
from meshlock.simulate.settings import run_settings, simulation
from meshlock.simulate.whole_run import whole_run

PACKAGES = ("algorithms", "properties", "simulate", "topology", "trace")
"""What a run is made of."""


class RunLine(msgspec.Struct, omit_defaults=True):
    """What is kept of a run."""

    key: str
    values: Values
    figures: dict[str, Any] | None = None
    failed: str = ""
    again: bool = False  # not the run's fault: the next start tries it again
    cpu_s: float = 0.0
    where: str = ""


class TooLong(Exception):
    pass


@cache
def code() -> str:
    """A digest of the program that makes the runs."""
    digest = sha256()
    root = Path(meshlock.__file__).parent
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def key_of(values: Values, events: int) -> str:
    """Two runs with the same key give the same figures: the same program, settings and files."""
    digest = sha256(f"{code()} {events}".encode())
    for name, value in sorted(values.items()):
        digest.update(f"\0{name}\0{value}".encode())
        if Path(str(value)).suffix and os.path.isfile(str(value)):  # noqa: PTH113
            digest.update(sha256(Path(str(value)).read_bytes()).digest())
    return digest.hexdigest()[:32]


def settings_of(values: Values) -> RunSettings:
    """With an algorithm of a file, that file is loaded, wherever this is."""
    if "algorithm" in values:
        values = {**values, "algorithm": load(str(values["algorithm"]))}
    return run_settings(values)


def line_of(values: Values, events: int) -> bytes:
    """Make the run; whatever goes wrong in it is said in its line."""
    line = RunLine(key_of(values, events), values)
    try:
        settings = settings_of(values)
        run = simulation(settings, None)
        stretch = whole_run(run, lambda: refuse_too_long(run, events))
        if stretch.interrupted:
            raise KeyboardInterrupt
        line.cpu_s = stretch.cpu
        line.figures = figures(run, settings.seed, stretch.cpu)
    except Refused as error:
        line.failed = str(error)
    except TooLong:
        line.failed = f"Broken off: it did not end within {events} events."
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}, line {frame.lineno}"
        line.failed = f"{type(error).__name__}: {error} ({where})"
    line.where = f"{gethostname()}:{os.getpid()}"
    return msgspec.json.encode(line) + b"\n"


def refuse_too_long(run: Simulation, events: int) -> None:
    if events and run.events >= events:
        raise TooLong


def failed_line(values: Values, events: int, why: str) -> bytes:
    """Of a run whose worker cannot report its result."""
    line = RunLine(key_of(values, events), values, failed=why, again=True)
    return msgspec.json.encode(line) + b"\n"


def read_line(text: bytes) -> RunLine | None:
    """None if it is no whole line."""
    try:
        return msgspec.json.decode(text, type=RunLine)
    except msgspec.DecodeError:
        return None


def flags_of(values: Values) -> list[str]:
    """The words of ``meshlock simulate`` that give these settings."""
    words = []
    for name, value in values.items():
        known = name in RunSettings.keys
        words += [f"--{name}", str(value)] if known else ["--option", f"{name}={value}"]
    return words


def command(values: Values) -> str:
    """The command that makes this run again."""
    return " ".join(["meshlock", "simulate", *map(quote, flags_of(values))])


class Kept:
    """The file to which every finished run is appended: a second start goes on from there.

    It has a line of JSON per run; one sweep at a time may write, until it is closed.

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

    def close(self) -> None:
        self.file.close()
