"""The pages that people read, and their blocks of code with the marks before them.

A mark is an HTML comment directly before a block; readers do not see it:

    <!-- not run: WHY -->              the only way not to be run
    <!-- run with: OPTIONS -->         added to each meshlock command of the block: smaller bounds
    <!-- run first: COMMANDS -->       what the page takes for granted, such as a running agent
    <!-- run elsewhere -->             in a terminal of its own, where it goes on: agents, pages
    <!-- run elsewhere: south -->      at another machine: another home, other ports
    <!-- exits: CODES -->              exit codes other than 0 that the block is there to show
    <!-- file: NAME -->                the block is the content of this file
    <!-- patch: NAME -->               the block says what changes in this file
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(ROOT / "examples").rglob("*.md"),
    ]
)
SHELL = ("console", "sh", "bash")
RUN = (*SHELL, "python")
SHOWN = ("text", "mermaid", "toml", "json", "ini", "yaml", "diff", "js", "go")
"""Languages of blocks that show something, and run nothing."""

MARKS = ("not run", "run with", "run first", "run elsewhere", "exits", "file", "patch")
MARK = re.compile(rf"<!-- ({'|'.join(MARKS)})(?:: ?(.*?))? ?-->", re.DOTALL)


@dataclass
class Block:
    page: Path
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"{named(self.page)}:{self.line}"

    @property
    def counts(self) -> bool:
        """Is it of those that are to be run?"""
        return self.language in RUN

    @property
    def runs(self) -> bool:
        return self.counts and "not run" not in self.marks


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def blocks(page: Path) -> list[Block]:
    """Fenced and indented ones; these have no language."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    for token in MarkdownIt().disable("inline").parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block":
            marks |= {mark: text.strip() for mark, text in MARK.findall(token.content)}
        elif token.type in ("fence", "code_block"):
            assert token.map is not None
            line = token.map[0] + 1
            found.append(Block(page, line, token.info.strip(), token.content, marks))
            marks = {}
        elif token.content:
            assert not marks, f"{named(page)}: no block behind {marks}"
    return found


def laboratory(page: Path) -> bool:
    """Pages about runs of the laboratory, and not of live nodes: half of the work."""
    return bool({"algorithms", "studies", "laboratory"} & set(page.parts))
