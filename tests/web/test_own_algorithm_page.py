"""A student's own file in a real browser: drive it, compare it, play its counterexample."""

import re
from pathlib import Path

import pytest
from browser import served, shows, until
from click.testing import CliRunner
from test_player import desk_with

from meshlock.algorithms.outside import load
from meshlock.algorithms.registry import ALGORITHMS
from meshlock.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "laboratory" / "own-algorithm.md"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The broken lock of the tutorial."""
    known = dict(ALGORITHMS)
    path = tmp_path / "mine.py"
    path.write_text(re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1])
    load(str(path))
    yield path
    ALGORITHMS.clear()
    ALGORITHMS.update(known)


def test_a_broken_lock_is_driven_compared_and_seen_to_fail(browser, mine, tmp_path):
    way = tmp_path / "way.jsonl"
    words = ["check", "--algorithm", str(mine), "--nodes", "3", "--trace", str(way)]
    assert CliRunner().invoke(app, words).exit_code == 1
    with served(desk_with(way)) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page.goto(address)
        until(page, "window.meshlock?.shown === 0")
        shows(page, "h1", "served is violated")
        page.keyboard.press("ArrowRight")
        until(page, "meshlock.shown === 1")
        shows(page, "#pane-step", "mine.py")
        until(page, "document.querySelectorAll('#pane-step .code li.lit').length > 0")
        page.click("#try-new")
        until(page, "meshlock.run.about.driven && meshlock.shown === 0")
        page.select_option("#try-algorithm", "mine")
        page.click("#try-start")
        until(page, "meshlock.run.setup.algorithm === 'mine' && meshlock.shown === 0")
        page.click("#random-request")
        until(page, "meshlock.run.steps > 0 && meshlock.shown === meshlock.run.steps")
        page.goto(f"{address}/compare?left=mine&right=raymond&nodes=8&requests=20&seed=1")
        until(page, "window.meshlock?.rows && meshlock.shown === 0")
        shows(page, "#side-0 h2", "mine")
        page.keyboard.press("End")
        until(page, "meshlock.shown === meshlock.rows.length - 1")
        shows(page, "#differences", "served")
        page.close()
