"""Retired words stay out of what people read, and the glossary has the terms.

Searched are the strings, docstrings, comments and names of ``src/``, the page's files, the README
and the docs. What is retired, and what to say instead, is a table in the appendices; the
patterns are here, one for each of its rows, so narrow that other uses of a word pass.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from meshlock.algorithms.registry import ALGORITHMS

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
RETIRED_WORDS = ROOT / "docs" / "appendices" / "retired-words.md"

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
    "deed": r"\bdeeds?\b|\b\w+_deeds?\b|\b[Dd]eed\(",
    "errand": r"\berrands?\b",
    "moment (of a run)": r"class Moment\b|\.moment\b|\bfirst_moment\b",
    "wish": r"\bwish(es)?\b(?! (to|for))",
    "unless said, if nothing is said": r"\bunless said(?! otherwise)\b|\bif nothing is said\b",
}
"""As the table in the appendices has them, each with its pattern; case does not matter."""

MADE_FROM_CODE = ("cli.md", "api.md", "http.md")
"""The reference: its headings are names of commands, functions and calls."""

SECTIONS = (
    *("across machines", "alerts", "algorithm inside", "architecture", "beside jiang"),
    *("biased choices", "broken runs", "calls", "changing networks", "checked", "clocks"),
    *("cluster", "commands", "compared with", "compiled build", "concepts", "configuration"),
    *("costs compared", "dashboard", "endless competition", "epoch numbers", "errors"),
    *(
        "example",
        "examples",
        "expectations",
        "explored",
        "extras",
        "files",
        "findings",
        "first check",
    ),
    *("fixed networks", "harmless differences", "idea", "implementation", "larger set-ups"),
    *("layer", "live", "live nodes", "many pools", "memory", "meshlock", "new pool"),
    *("not covered", "one acquire", "one entry", "options", "output", "packages", "picture"),
    *("platforms", "programs", "results", "rules", "running pool", "runs", "scale"),
    *(
        "scenario format",
        "secrets",
        "separate parts",
        "service",
        "several processes",
        "shared",
        "simulated",
    ),
    *("small run", "special cases", "speed", "study files", "tcp port", "their agent"),
    *("time", "trace format", "two holders", "whiteboard", "who waits", "with recovery"),
    "your part",
)
"""Headings of one or two words that name a part of a page, and no term."""

TASKS = (
    *("check", "choose", "compare", "fix", "go", "install", "interrupt", "list", "name", "play"),
    *("recover", "remove", "reset", "resize", "resume", "run", "simulate", "solve", "survive"),
    *("troubleshoot", "upgrade", "use"),
)
"""The verbs with which headings of tasks begin."""


def texts() -> list[Path]:
    page = ROOT / "src" / "meshlock" / "web" / "page"
    return [
        *sorted((ROOT / "src").rglob("*.py")),
        *sorted((ROOT / "src").rglob("*.txt")),
        *sorted(path for path in page.iterdir() if path.suffix in (".js", ".html")),
        ROOT / "README.md",
        *sorted(path for path in (ROOT / "docs").rglob("*.md") if path != RETIRED_WORDS),
    ]


def cells(text: str) -> list[list[str]]:
    """Of the table in this text, without its heading."""
    table = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


def rows(title: str) -> list[list[str]]:
    """Of the table below this heading of the glossary."""
    return cells(GLOSSARY.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0])


def sections() -> list[str]:
    return re.findall(r"^## (.+)$", GLOSSARY.read_text("utf-8"), re.MULTILINE)


def terms() -> dict[str, tuple[str, str]]:
    """Each with its sentence and where it acts."""
    return {row[0].strip("*"): (row[1], row[2]) for section in sections() for row in rows(section)}


def test_the_appendix_lists_what_is_retired() -> None:
    listed = cells(RETIRED_WORDS.read_text("utf-8"))
    assert [row[0] for row in listed] == list(RETIRED)
    assert all(len(row) == 2 and row[1] for row in listed)


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_does_not_come_back(word: str) -> None:
    pattern = re.compile(RETIRED[word], re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(
        [f"'{word}' is retired, see {RETIRED_WORDS.relative_to(ROOT)}:", *found]
    )


def test_each_term_is_one_sentence_with_a_link_to_where_it_acts() -> None:
    found = terms()
    assert len(found) == sum(len(rows(section)) for section in sections()), "a term comes twice"
    for term, (sentence, link) in found.items():
        assert re.fullmatch(r"[A-Z].*\.\)?", sentence), (term, sentence)
        target = re.fullmatch(r"\[[^]]+\]\(([^)#]+)(#[\w-]+)?\)", link)
        assert target is not None, (term, link)
        assert (GLOSSARY.parent / target[1]).exists(), (term, target[1])


def headings(page: Path) -> Iterator[str]:
    for heading, token in pairwise(MarkdownIt().parse(page.read_text("utf-8"))):
        if heading.type == "heading_open":
            yield token.content


def named_in(heading: str) -> Iterator[str]:
    """The terms of a heading: its parts of one or two words that are no task and no section."""
    for part in re.split(r",? and |, ", heading.lower()):
        words = re.sub(r"^(the|a|an) ", "", part.strip()).strip(" `")
        if 1 <= len(words.split()) <= 2 and words.split()[0] not in TASKS:
            yield " ".join(words.split())


def known(term: str, terms: Collection[str]) -> bool:
    """In the singular, too."""
    ends = (("", ""), ("s", ""), ("es", ""), ("ies", "y"))
    return any(
        term.endswith(end) and term.removesuffix(end) + instead in terms for end, instead in ends
    )


def test_each_main_term_has_a_heading_in_the_concepts() -> None:
    page = ROOT / "docs" / "start" / "concepts.md"
    found = {term for heading in headings(page) for term in named_in(heading)}
    assert {"pool", "permit", "node", "token", "lease", "fence", "epoch"} <= found


def test_every_term_that_is_a_heading_is_in_the_glossary() -> None:
    """On every page: a new heading is a term, a task, or the name of a section."""
    terms_known = {*terms(), *SECTIONS, *ALGORITHMS}
    pages = [
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.name not in MADE_FROM_CODE and page.name != "report.md" and page != GLOSSARY
    ]
    assert len(pages) > 80
    missing = [
        f"{page.relative_to(ROOT)}: {term}"
        for page in sorted(pages)
        for heading in headings(page)
        for term in named_in(heading)
        if not known(term, terms_known)
    ]
    assert not missing, "\n".join(["not in docs/glossary.md:", *missing])


def test_sections_and_tasks_are_used() -> None:
    """What no heading says any more leaves the lists."""
    pages = list((ROOT / "docs").rglob("*.md"))
    found = {term for page in pages for heading in headings(page) for term in named_in(heading)}
    assert set(SECTIONS) - found == set()
