"""What a person must read stays short: all pages but the reference and the appendices."""

from __future__ import annotations

import re

from pages import ROOT

MOST = 62_000
"""Half of the 112,000 that there were, and 6,000 for what meshlock has learned since: kinds of
permits, models of other locks, properties of one's own, the laboratory in a browser, lessons,
drop-ins."""
DOCS = ROOT / "docs"
LOOKED_UP = {"reference", "appendices", "papers.md"}
"""Folders, and a page, that are made from the code or looked up."""
NOT_READ = re.compile(
    r"<!-- made from the code: begin -->.*?<!-- made from the code: end -->"
    r"|<!--.*?-->|^```mermaid\n.*?^```$",
    re.DOTALL | re.MULTILINE,
)
"""Tables made from the code, marks for the tests, and the source of pictures."""


def words(text: str) -> int:
    """In prose, tables and blocks of code; what has no letter and no digit is none."""
    return sum(bool(re.search(r"\w", word)) for word in NOT_READ.sub("", text).split())


def test_what_a_person_must_read_is_short() -> None:
    counts = {
        page.relative_to(DOCS).as_posix(): words(page.read_text(encoding="utf-8"))
        for page in DOCS.rglob("*.md")
        if page.relative_to(DOCS).parts[0] not in LOOKED_UP
    }
    longest = sorted(counts.items(), key=lambda item: -item[1])[:20]
    print("\n".join(f"{count:6,} {name}" for name, count in longest))
    assert sum(counts.values()) <= MOST, f"{sum(counts.values()):,} words: {longest}"


def test_words_are_counted_as_a_reader_does() -> None:
    text = "Two words | -- <!-- not run: these\nare hidden -->\n```mermaid\nnor this\n```\n"
    assert words(text) == 2
    assert words(f"{text}```sh\nmake test\n```") == 5  # with the language of the block
