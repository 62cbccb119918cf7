"""One name, one meaning: of classes, and of what a function is called."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

import meshlock

ROOT = Path(meshlock.__file__).parent
HOUSE = Path(__file__).parent.parent

OF_PAPERS = {
    "GrantMessage",
    "Inquire",
    "Link",
    "Release",
    "Reply",
    "Request",
    "Signal",
    "Token",
    "Update",
    "Yield",
}
"""Messages that several papers have, each with fields of its own."""

HOMONYMS = {
    "Outcome",
    "Place",
    "Sample",
}
"""Names that still have two meanings. This list only becomes shorter."""

RETIRED = re.compile(r"give_back|take_back|hang_up")
"""As the glossary retires the words."""


@cache
def modules(root: Path) -> list[tuple[str, ast.Module]]:
    return [
        (str(path.relative_to(root)), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(root.rglob("*.py"))
    ]


def homonyms(root: Path) -> dict[str, list[str]]:
    """Classes of one name in several modules; the messages of a paper are its own."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for file, tree in modules(root):
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(file)
    for name in OF_PAPERS:
        papers = [file for file in found[name] if file.count("/") == 1 and file[:4] == "algo"]
        found[name] = papers[:1] + [file for file in found[name] if file not in papers]
    return {name: files for name, files in found.items() if len(files) > 1}


def test_a_class_name_has_one_meaning() -> None:
    found = homonyms(ROOT)
    assert not {name: files for name, files in found.items() if name not in HOMONYMS}
    assert set(found) >= HOMONYMS, "these have one meaning now: take them off the list"


def test_papers_share_these_names() -> None:
    papers = [
        node.name
        for file, tree in modules(ROOT / "algorithms")
        if "/" not in file
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]
    assert {name for name in OF_PAPERS if papers.count(name) < 2} == set(), (
        "take these off the list"
    )


def identifiers(tree: ast.Module) -> Iterator[str]:
    """Every name that a module gives or uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or ""


def test_retired_words_are_no_names() -> None:
    assert not {file for file, tree in modules(ROOT) if any(map(RETIRED.search, identifiers(tree)))}


SAY_NOTHING = {"carry", "do", "found", "go", "keep", "look", "put", "settle", "tell"}
"""As names of functions; each says less than what the function does."""

STILL_SAY_NOTHING = ("check",)
"""Rooms that still have such names. This list only becomes shorter."""


def test_functions_say_what_they_do() -> None:
    found = [
        f"{file}: {node.name}"
        for file, tree in modules(ROOT)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in SAY_NOTHING
    ]
    assert not [each for each in found if not each.startswith(STILL_SAY_NOTHING)]
    for room in STILL_SAY_NOTHING:
        assert any(each.startswith(room) for each in found), f"take {room} off the list"


CLUMSY = re.compile(r"\bwhoever\b|\bso many\b|\bbefalls\b|\bfor of\b", re.IGNORECASE)


def remarks(path: Path) -> Iterator[str]:
    """The comments and docstrings of a file, lines joined."""
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield " ".join(str(node.value.value).split())


PLACES = ("src", "tests", "campaigns", "benchmarks", "proofs", "examples", "docs")


@pytest.mark.parametrize("place", PLACES)
def test_remarks_name_who_does_what(place: str) -> None:
    """What is said to readers of the source is in sentences that have a subject."""
    found = [
        f"{path.relative_to(HOUSE)}: {remark}"
        for path in sorted((HOUSE / place).rglob("*.py"))
        for remark in remarks(path)
        if CLUMSY.search(remark)
    ]
    assert not found


def test_pages_name_who_does_what() -> None:
    pages = [*HOUSE.glob("*.md"), *(HOUSE / "docs").rglob("*.md"), *ROOT.rglob("*.txt")]
    assert not [page for page in pages if CLUMSY.search(page.read_text(encoding="utf-8"))]


def test_a_homonym_is_found(tmp_path: Path) -> None:
    for file in ("one.py", "two.py"):
        (tmp_path / file).write_text("class Same:\n    pass\n")
    assert homonyms(tmp_path) == {"Same": ["one.py", "two.py"]}
