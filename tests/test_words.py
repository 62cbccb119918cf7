"""Retired words stay out of what people read, and the glossary has the terms.

Searched are the strings, docstrings, comments and names of ``src/``, the page's files, the README
and the docs. What is retired, and what to say instead, is a table in the glossary; the patterns
are here, one for each of its rows, so narrow that other uses of a word pass.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"

RETIRED = {
    "another idea of a pool, two ideas of a pool": r"another idea of|two ideas of",
    "founded twice, two foundings": r"founded twice|two foundings",
    "nobody can listen at": r"nobody can listen",
    "no majority": r"\bno majority\b",
    "in custody": r"\bin custody\b",
    "told of, as far as told, old news": r"\bnot told (of|yet)\b|as far as told|\bold news\b",
    "none any more (of a member)": r"\bnone any more\b",
    "newborn": r"\bnewborn\b",
    "hung up, hangs up": r"\bh[au]ngs? up\b",
    "who wants what": r"\bwho wants what\b",
    "hands in": r"\bhands? in (a|the|its|their) request",
    "gives back": r"\b(give|gives|gave|given|giving) back\b",
    "takes away": r"\b(take|takes|took|taken|taking) (permits|a permit|the permits) away\b",
    "takes back (a request)": r"\brequests? (\w+ )*(be )?(take|takes|took|taken|taking) back\b"
    r"|\b(take|takes|took|taken|taking) (a|its|the) request back\b|\btake back\b",
    "of the one permit": r"\ball of the one permit\b|\bof the one permit\b",
    "of equals": r"\bof equals\b",
    "its queue decides": r"\bits queue decides\b",
    "letter": r"\bletters? (for|from|to) (a|the|another) node\b|\b(class|def) \w*[Ll]etter",
    "anteroom": r"\banteroom\b",
    "atlas": r"\batlas\b",
    "newsroom": r"\bnewsroom\b",
    "charter": r"\bcharters?\b",
    "plainly": r"\bplainly\b",
    "again and again, (repeat)": r"\bagain and again\b|\(repeat\)",
    "unless said, if nothing is said": r"\bunless said(?! otherwise)\b|\bif nothing is said\b",
}
"""As the glossary's table has them, each with its pattern; case does not matter."""

HEADINGS = re.compile(r"^#{2,4} (?:The |A |An )?([a-z][a-z, -]+)$", re.MULTILINE | re.IGNORECASE)


NO_TERMS = ("picture", "one acquire")
"""Headings of the page on concepts that name no concept."""


def texts() -> list[Path]:
    page = ROOT / "src" / "meshlock" / "web" / "page"
    return [
        *sorted((ROOT / "src").rglob("*.py")),
        *sorted((ROOT / "src").rglob("*.txt")),
        *sorted(path for path in page.iterdir() if path.suffix in (".js", ".html")),
        ROOT / "README.md",
        *sorted(path for path in (ROOT / "docs").rglob("*.md") if path != GLOSSARY),
    ]


def rows(title: str) -> list[list[str]]:
    """Of the table below this heading, without its own."""
    part = GLOSSARY.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    table = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


def sections() -> list[str]:
    titles = re.findall(r"^## (.+)$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return [title for title in titles if title != "Retired words"]


def terms() -> dict[str, tuple[str, str]]:
    """Each with its sentence and where it acts."""
    return {row[0].strip("*"): (row[1], row[2]) for section in sections() for row in rows(section)}


def test_the_glossary_lists_what_is_retired() -> None:
    assert [row[0] for row in rows("Retired words")] == list(RETIRED)
    assert all(len(row) == 2 and row[1] for row in rows("Retired words"))


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_does_not_come_back(word: str) -> None:
    pattern = re.compile(RETIRED[word], re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found, "\n".join([f"'{word}' is retired, see docs/glossary.md:", *found])


def test_each_term_is_one_sentence_with_a_link_to_where_it_acts() -> None:
    found = terms()
    assert len(found) == sum(len(rows(section)) for section in sections()), "a term comes twice"
    for term, (sentence, link) in found.items():
        assert re.fullmatch(r"[A-Z].*\.\)?", sentence), (term, sentence)
        target = re.fullmatch(r"\[[^]]+\]\(([^)#]+)(#[\w-]+)?\)", link)
        assert target is not None, (term, link)
        assert (GLOSSARY.parent / target[1]).exists(), (term, target[1])


def test_terms_in_headings_of_the_concepts_are_in_the_glossary() -> None:
    """The page on concepts has a heading for each main term."""
    page = (ROOT / "docs" / "start" / "concepts.md").read_text("utf-8")
    known = terms()
    named = [
        word.strip().lower()
        for heading in HEADINGS.findall(page)
        for word in re.split(r",| and ", heading)
    ]
    assert {"pool", "permit", "node", "token", "lease", "fence", "epoch"} <= set(named)
    assert not [word for word in named if word not in known and word not in NO_TERMS]
