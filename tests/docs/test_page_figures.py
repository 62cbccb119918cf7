"""The figures of checks in the pages are those that the commands give, as far as that is quick.

``make test-whole`` compares those up to 300,000 states, ``campaigns/figures.py --most 20000000``
all of them, and ``--write`` corrects the pages.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

from whole import WHOLE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "campaigns"))
    return importlib.import_module("figures")


def test_figures_are_as_the_commands_say(script: ModuleType) -> None:
    marked = [one for page in script.pages() for one in script.figures(page)]
    most = 300_000 if WHOLE else script.QUICK
    quick = [one for one in marked if one.states() <= most]
    assert len(quick) > 10 and len(marked) > len(quick)
    assert [text for one in quick for text in one.wrong(one.found(most))] == []


def test_those_that_take_longer_are_in_the_text_all_the_same(script: ModuleType) -> None:
    marked = [one for page in script.pages() for one in script.figures(page)]
    assert [text for one in marked for text in one.wrong(one.said)] == []


COUNTED = re.compile(r"[\d,]*\d states")
ELSEWHERE = {"how-it-works/checker.md", "laboratory/page.md"}
"""Of limits and speed, not of what a command explores to its end."""


def test_every_number_of_states_is_marked(script: ModuleType) -> None:
    unmarked = []
    for page in script.pages():
        name = page.relative_to(ROOT / "docs").as_posix()
        if name in ELSEWHERE or name.startswith(("studies/", "appendices/")):
            continue
        text = page.read_text(encoding="utf-8")
        known = {f"{number:,}" for one in script.figures(page) for number in one.said.values()}
        shown = COUNTED.findall(script.MARK.sub("", text))
        unmarked += [f"{name}: {each}" for each in shown if each.split()[0] not in known]
    assert unmarked == []


def test_what_was_found_is_written(script: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    mark = "<!-- figures: 11 states, 2 steps to order: meshlock check --topology line -->\n"
    page.write_text(f"# A\n\n{mark}In 2 steps of 11 states.\n\n# B\n\n11 of 2\n", encoding="utf-8")
    (one,) = script.figures(page)
    assert one.said == {"states": 11, "steps to order": 2}
    assert one.section == "In 2 steps of 11 states.\n"
    found = {"states": 1234, "steps to order": 3}
    assert len(one.wrong(found)) == 2
    page.write_text(one.written(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    (one,) = script.figures(page)
    assert one.said == found and not one.wrong(found)
    assert page.read_text(encoding="utf-8").endswith(
        "In 3 steps of 1,234 states.\n\n# B\n\n11 of 2\n"
    )
