"""Four nodes and links that change: a sample of what campaigns/four_nodes.py has pinned."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from meshlock.check.manifest import PinnedSetUp, found

ROOT = Path(__file__).parents[2]
FEW = 100_000


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "campaigns"))
    return importlib.import_module("four_nodes")


def test_the_smallest_are_as_pinned(campaign: ModuleType) -> None:
    rows = [row for row in campaign.read().values() if row["states"] <= FEW]
    assert rows
    for row in rows:
        checking = PinnedSetUp(row).checking(row["states"] + 1)
        while checking.run(10_000):
            pass
        assert checking.holds()
        assert found(checking) == PinnedSetUp(row).pinned


def test_nothing_that_is_pinned_is_violated(campaign: ModuleType) -> None:
    pinned = campaign.read()
    assert pinned.keys() <= {campaign.title(row) for row in campaign.setups()}
    assert not [row for row in pinned.values() if "violated" in row]


def test_the_page_shows_what_is_pinned(campaign: ModuleType) -> None:
    page = (ROOT / "docs" / "appendices" / "checker-counts.md").read_text(encoding="utf-8")
    assert campaign.table(list(campaign.read().values())) in page
