"""The figures of checks that pages name, compared with what the commands give today.

    python campaigns/figures.py                          # those that take seconds
    python campaigns/figures.py --most 20000000          # all
    python campaigns/figures.py --most 20000000 --write  # put them into the pages

Before a text stands, hidden from readers, which of its figures come from which command:
``<!-- figures: 701 states, 20 steps to served: meshlock check --algorithm ... -->``. The steps are
those of the shortest way to a violation of that property. Exit 1 if a figure is not as the command
says. The tests compare those that take seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import split

from click.testing import CliRunner

from meshlock.cli.main import app

DOCS = Path(__file__).parents[1] / "docs"
MARK = re.compile(r"<!-- figures: ([^:]*): (meshlock check [^>]*?) -->\n")
ENDS = re.compile(r"\n#|<!-- figures: ")
FIGURE = re.compile(r"([\d,]+) (states|transitions|steps to [\w-]+)")
QUICK = 20_000
"""States that take seconds."""
LIMIT = 5_000_000
"""States after which a command stops that says nothing else."""


@dataclass
class Figures:
    """Those that one command makes."""

    page: Path
    command: str
    said: dict[str, int]  # states, transitions, steps to a property
    text: str  # the mark itself
    section: str  # the text that has them

    def states(self) -> int:
        return max(self.said.values())

    def found(self, most: int) -> dict[str, int]:
        """What the command gives; nothing, if it has more states."""
        words = split(self.command)[1:]
        result = CliRunner().invoke(app, [*words, "--max-states", str(most), "--json"])
        told = json.loads(result.stdout)
        if not told["complete"] and "states" in self.said:
            return {}
        for way in told["violations"]:
            told[f"steps to {way['property']}"] = way["length"]
        return {unit: told.get(unit, 0) for unit in self.said}

    def wrong(self, found: dict[str, int]) -> list[str]:
        """What is not as it is said, in sentences."""
        where, sentences = f"{self.page.name}: ", []
        if not found:
            return [f"{where}there are more states than were seen: {self.command}"]
        for unit, number in self.said.items():
            if not re.search(rf"(?<![\d,]){number:,}(?![\d,])", self.section):
                sentences.append(f"{where}{number:,} {unit} is not in the text below")
            if found[unit] != number:
                sentences.append(f"{where}{number:,} {unit} are {found[unit]:,}: {self.command}")
        if found.get("states", 0) > LIMIT and "--max-states" not in self.command:
            sentences.append(f"{where}the command stops at its limit of {LIMIT:,} states")
        return sentences

    def written(self, page: str, found: dict[str, int]) -> str:
        """The page with what was found."""
        mark, section = self.text, self.section
        for unit, number in self.said.items():
            mark = mark.replace(f"{number:,} {unit}", f"{found[unit]:,} {unit}", 1)
            old = rf"(?<![\d,]){number:,}(?![\d,])"
            section = re.sub(old, f"{found[unit]:,}", section, count=1)
        return page.replace(self.text, mark, 1).replace(self.section, section, 1)


def figures(page: Path) -> Iterator[Figures]:
    text = page.read_text(encoding="utf-8")
    for mark in MARK.finditer(text):
        said = {unit: int(number.replace(",", "")) for number, unit in FIGURE.findall(mark[1])}
        rest = text[mark.end() :]
        while another := MARK.match(rest):  # of the same text
            rest = rest[another.end() :]
        yield Figures(page, mark[2], said, mark[0], ENDS.split(rest)[0])


def pages() -> list[Path]:
    return sorted(DOCS.rglob("*.md"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=QUICK, help="states of a check, at the most")
    parser.add_argument("--write", action="store_true", help="put what was found into the pages")
    options = parser.parse_args()
    wrong = 0
    for page in pages():
        for one in figures(page):
            if one.states() > options.most:
                print(f"not run: {one.page.name}: {one.command}")
                continue
            found = one.found(max(options.most, QUICK))
            sentences = one.wrong(found)
            wrong += len(sentences)
            print("\n".join(sentences) or f"as said: {page.name}: {one.said}", flush=True)
            if options.write and found not in ({}, one.said):
                text = page.read_text(encoding="utf-8")
                page.write_text(one.written(text, found), encoding="utf-8")
    return 1 if wrong and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
