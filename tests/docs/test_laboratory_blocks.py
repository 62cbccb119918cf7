"""What the pages tell people to type works as printed: algorithms, laboratory and studies."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import PAGES, blocks, laboratory, named
from terminal import run_page

MINE = [page for page in PAGES if laboratory(page) and any(one.counts for one in blocks(page))]


@pytest.mark.parametrize("page", MINE, ids=map(named, MINE))
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path / "page")
