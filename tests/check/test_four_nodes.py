"""Four nodes and links that change: a sample of what campaigns/four_nodes.py has pinned."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from meshlock.check.manifest import PinnedSetUp, found

ROOT = Path(__file__).parents[2]
FEW = 100_000


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "campaigns"))
    return importlib.import_module("four_nodes").BOOK


def test_the_smallest_are_as_pinned(book: Any) -> None:
    rows = [row for row in book.read().values() if row["states"] <= FEW]
    assert rows
    for row in rows:
        checking = PinnedSetUp(row).checking(row["states"] + 1)
        while checking.run(10_000):
            pass
        assert checking.holds()
        assert found(checking) == PinnedSetUp(row).pinned


def test_nothing_that_is_pinned_is_violated(book: Any) -> None:
    pinned = book.read()
    assert pinned.keys() <= {PinnedSetUp(row).title() for row in book.setups()}
    assert not [row for row in pinned.values() if "violated" in row]


def test_the_page_shows_what_is_pinned(book: Any) -> None:
    page = (ROOT / "docs" / "appendices" / "checker-counts.md").read_text(encoding="utf-8")
    assert book.table(list(book.read().values())) in page
