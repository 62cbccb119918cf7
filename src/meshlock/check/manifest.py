"""Set-ups whose counts are pinned: what was seen once must be seen again.

``manifest.txt`` beside this file has what follows ``meshlock check --algorithm`` for each set-up,
and below that the states, transitions and depth of its whole graph and the length of the shortest
way to each violation, if any. A change of these numbers is a change of an algorithm's behaviour or
of the checker, and must be meant.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from textwrap import wrap
from typing import Any

from meshlock.check.arguments import judged, records, setup
from meshlock.check.settings import CheckSettings, FaultSettings, JudgedSettings
from meshlock.check.verdict import Checking
from meshlock.settings import read_flags

FILE = Path(__file__).with_name("manifest.txt")
COUNTS = re.compile(
    r"(?P<states>\d+) states(?P<more> and more)?"
    r"(?:, (?P<transitions>\d+) transitions, depth (?P<depth>\d+))?"
    r"(?:; violated: (?P<violated>.+))?"
)
VIOLATED = re.compile(r"(\S+) in (\d+) steps")
NOT_FLAGS = ("algorithm", "states", "transitions", "depth", "violated", "complete")
VALUE = re.compile(r'--\S+ (?:"[^"]*"|[^-\s]\S*)')
"""A flag and its value, which stay on one line."""
WIDTH = 100

Row = dict[str, Any]
"""A set-up by the fields of its settings, and what was found."""


class PinnedSetUp:
    """One pinned set-up."""

    def __init__(self, table: Row) -> None:
        self.table = table
        self.states: int = table.get("states", 0)
        self.pinned = (
            self.states,
            table.get("transitions", 0),
            table.get("depth", 0),
            dict(table.get("violated", {})),
        )
        self.words = {name: value for name, value in table.items() if name not in NOT_FLAGS}
        self.properties: list[str] = list(self.words.pop("properties", []))

    def title(self) -> str:
        """What follows ``meshlock check --algorithm``."""
        named = JudgedSettings(properties=self.properties)
        flags = [record.flags() for record in (*records(self.words), named)]
        return " ".join([self.table["algorithm"], *filter(None, flags)])

    def text(self) -> str:
        """Its lines in a file of pinned set-ups."""
        states, transitions, depth, violated = self.pinned
        counts = f"{states} states, {transitions} transitions, depth {depth}"
        if not self.table.get("complete", True):
            counts = f"{states} states and more"
        if violated:
            ways = [f"{name} in {length} steps" for name, length in violated.items()]
            counts += f"; violated: {', '.join(ways)}"
        whole = VALUE.sub(lambda found: found[0].replace(" ", "\0"), self.title())
        lines = wrap(whole, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        return "\n".join(lines).replace("\0", " ") + f"\n  {counts}\n"

    def checking(self, most: int, reduction: str = "none") -> Checking:
        what = setup(algorithm=self.table["algorithm"], **self.words)
        return Checking(what, judged(self.properties), most, reduction)


def read(file: Path) -> list[PinnedSetUp]:
    rows: list[PinnedSetUp] = []
    words: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        counts = COUNTS.fullmatch(line.strip())
        if counts is None:
            words += shlex.split(line, comments=True)
            continue
        algorithm, *flags = words
        row: Row = {"algorithm": algorithm}
        row |= read_flags(flags, CheckSettings, FaultSettings, JudgedSettings)
        row |= {
            name: int(counts[name]) for name in ("states", "transitions", "depth") if counts[name]
        }
        row |= {"complete": False} if counts["more"] else {}
        if counts["violated"]:
            row["violated"] = {
                name: int(steps) for name, steps in VIOLATED.findall(counts["violated"])
            }
        rows.append(PinnedSetUp(row))
        words = []
    return rows


def entries() -> list[PinnedSetUp]:
    return read(FILE)


def found(checking: Checking) -> tuple[int, int, int, dict[str, int]]:
    """What there is to be pinned of a finished check."""
    explorer = checking.explorer
    violated = {way.name: len(way.labels) for way in checking.violations()}
    return explorer.count(), explorer.transitions, explorer.depth, violated


def table(rows: list[PinnedSetUp]) -> str:
    """The manifest for people, in Markdown."""
    lines = ["| set-up | states | transitions | depth | violated |", "|---|---|---|---|---|"]
    for entry in rows:
        states, transitions, depth, violated = entry.pinned
        broken = ", ".join(f"{name} in {length}" for name, length in violated.items())
        lines.append(f"| {entry.title()} | {states:,} | {transitions:,} | {depth} | {broken} |")
    return "\n".join(lines) + "\n"
