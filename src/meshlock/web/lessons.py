"""A lesson: a Markdown file in which blocks of a scenario are played, and the text between is told.

What follows a block is told at the step at which the block ends. The page understands paragraphs,
lists, questions (a list of ``- [ ]`` and ``- [x]``, then a quotation that explains the answer) and
a link to a riddle.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from meshlock.algorithms.registry import find
from meshlock.check.riddles import riddles
from meshlock.errors import Attempt, Refused
from meshlock.simulate.player import Player
from meshlock.simulate.scenario import Scenario
from meshlock.trace.writer import TraceWriter
from meshlock.web.driving import Growing
from meshlock.web.index import Index

FOLDER = Path(__file__).with_name("lessons")
BLOCK = re.compile(r"^```scenario\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RIDDLE = re.compile(r"(?<=\(riddle:)[a-z0-9/-]+(?=\))")


class Told(Player):
    """Notes after every line of the script how many steps have been taken."""

    def __init__(self, script: Scenario) -> None:
        self.growing = Growing()
        super().__init__(script, find(script.algorithm), TraceWriter(self.growing, True))
        self.taken: dict[int, int] = {}

    @property
    def index(self) -> Index:
        assert self.growing.index is not None  # the run has written the set-up
        return self.growing.index

    def act(self, number: int, words: list[str]) -> None:
        super().act(number, words)
        self.taken[number] = self.index.steps


def script_of(text: str) -> str:
    """The blocks alone, each line where it stands in the text."""
    lines, inside = [], False
    for line in text.split("\n"):
        inside = line == "```scenario" or (inside and line != "```")
        lines.append(line if inside and line != "```scenario" else "")
    return "\n".join(lines)


def title_of(text: str) -> str:
    heading = re.search(r"^# (.+)$", text, re.MULTILINE)
    return heading[1] if heading else ""


def numbered(found: re.Match[str]) -> str:
    """The number of a riddle, which a lesson names by its mutant."""
    for riddle in riddles():
        if riddle.mutant.name == found[0]:
            return str(riddle.number)
    raise Refused(f"The mutant '{found[0]}' is no riddle.")


class Lesson:
    def __init__(self, name: str, text: str) -> None:
        self.title = title_of(text) or name
        if not BLOCK.search(text):
            raise Refused(f"The lesson {name} has no block that begins with ```scenario.")
        player = Told(Scenario(name, script_of(text)))
        run = player.play()
        if run.unmet:
            raise Refused(f"The lesson {name} expects what does not happen: {run.unmet[0]}")
        self.index = player.index
        self.parts = self.told(text, player.taken)

    def told(self, text: str, taken: dict[int, int]) -> list[tuple[int, str]]:
        """Every piece of text, and the step at which it is told."""
        parts: list[tuple[int, str]] = []
        begin = 0
        for end in [*BLOCK.finditer(text), None]:
            piece = text[begin : end.start() if end else len(text)]
            line = text[:begin].count("\n") + 1
            step = max([steps for number, steps in taken.items() if number < line], default=0)
            piece = re.sub(r"^# .+$", "", piece, flags=re.MULTILINE).strip()
            if piece:
                parts.append((step, RIDDLE.sub(numbered, piece)))
            begin = end.end() if end else 0
        return parts

    def shown(self) -> dict[str, Any]:
        return {"title": self.title, "parts": self.parts}


def names() -> list[str]:
    """The lessons that come with meshlock, in the order of a course."""
    return sorted(path.stem for path in FOLDER.glob("*.md"))


def titles() -> dict[str, str]:
    return {name: title_of((FOLDER / f"{name}.md").read_text("utf-8")) for name in names()}


def lesson(name: str) -> Lesson:
    """A lesson by its name, or by the path of its file."""
    path = FOLDER / f"{name}.md" if name in names() else Path(name)
    if path.suffix != ".md":
        raise Refused(f"There is no lesson '{name}': choose one of {', '.join(names())}.")
    with Attempt(f"read {path}"):
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise Refused(f"{path} is not a text: name a lesson in Markdown.") from None
    return Lesson(path.stem, text)
