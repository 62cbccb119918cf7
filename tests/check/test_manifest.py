"""The pinned counts, as far as they are quick to see again; --manifest reruns them all."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks import finish

from meshlock.algorithms.registry import ALGORITHMS
from meshlock.check.manifest import PinnedSetUp, entries, found, table
from whole import WHOLE

MOST_STATES = 15_000 if WHOLE else 5_000
PINNED = entries()
QUICK = [entry for entry in PINNED if entry.states <= MOST_STATES]


@pytest.mark.parametrize("entry", QUICK, ids=PinnedSetUp.title)
def test_counts_are_as_pinned(entry: PinnedSetUp) -> None:
    checking = entry.checking(entry.states + 1)
    finish(checking)
    assert found(checking) == entry.pinned
    assert checking.holds() == (not entry.pinned[3])


@pytest.mark.parametrize("entry", QUICK, ids=PinnedSetUp.title)
def test_the_reduced_check_gives_the_same_verdict(entry: PinnedSetUp) -> None:
    checking = entry.checking(entry.states + 1, "por")
    if checking.remark.startswith("No reduction"):
        return  # it is the search whose counts are pinned
    finish(checking)
    assert checking.holds() == (not entry.pinned[3])


def test_every_algorithm_is_pinned() -> None:
    pinned = {entry.table["algorithm"] for entry in PINNED}
    assert set(ALGORITHMS) <= pinned


def test_the_page_shows_the_manifest() -> None:
    page = Path(__file__).parents[2] / "docs" / "appendices" / "checker-counts.md"
    assert table(PINNED) in page.read_text(encoding="utf-8")
