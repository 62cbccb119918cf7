"""What the pages tell people to type works as printed: README, guides and operations."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from pages import PAGES, ROOT, RUN, SHOWN, blocks, laboratory, named
from terminal import run_page

EXTRAS = re.compile(r"pip install '?(?:\.|meshlock)\[([\w,]+)\]")
WITH_BLOCKS = [page for page in PAGES if any(block.counts for block in blocks(page))]
MINE = [page for page in WITH_BLOCKS if not laboratory(page)]


@pytest.mark.parametrize("page", MINE, ids=map(named, MINE))
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path / "page")


def test_every_block_says_its_language() -> None:
    wrong = [
        f"{block.where} {block.language or 'is indented, or has no language'}"
        for page in PAGES
        for block in blocks(page)
        if block.language not in (*RUN, *SHOWN)
    ]
    assert wrong == []


def test_every_block_is_run_or_says_why_not() -> None:
    found = [block for page in PAGES for block in blocks(page) if block.counts]
    left = [block for block in found if not block.runs]
    print(f"\n{len(found)} blocks: {len(found) - len(left)} run, {len(left)} say why not:")
    for block in left:
        print(f"  {block.where}: {block.marks['not run']}")
    assert [block.where for block in left if len(block.marks["not run"].split()) < 2] == []
    assert len(left) * 4 < len(found)


def test_pip_is_told_of_extras_that_there_are() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    named_extras = {
        extra
        for page in PAGES
        for said in re.findall(
            r"pip install '?(?:\.|meshlock)\[([\w,]+)\]", page.read_text("utf-8")
        )
        for extra in said.split(",")
    }
    assert {"live", "web"} <= named_extras <= extras


def test_make_is_told_of_targets_that_there_are() -> None:
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert targets is not None
    named_targets = {
        target
        for page in PAGES
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {"demo", "test"} <= named_targets <= set(targets[1].split())
