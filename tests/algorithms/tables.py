"""Tables of decisions: text files in ``tables/``, read by the tests of what decides.

A case is a name in brackets, lines ``WORD REST`` of what is given, and after ``=>`` what must come
of it. A line that begins with # is a remark.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("tables")


class Case(NamedTuple):
    name: str
    given: list[tuple[str, str]]
    expected: str


def cases(table: str) -> list[Case]:
    found: list[Case] = []
    for line in (FOLDER / f"{table}.txt").read_text("utf-8").splitlines():
        word, _, rest = line.strip().partition(" ")
        if not word or word == "#":
            continue
        if word.startswith("["):
            found.append(Case(line.strip("[] "), [], ""))
        elif word == "=>":
            found[-1] = found[-1]._replace(expected=rest)
        else:
            found[-1].given.append((word, rest))
    assert all(case.expected for case in found)
    return found
