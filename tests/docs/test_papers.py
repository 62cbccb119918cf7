"""Every reference of docs/papers.md leads to what it names: source, scenario, property, mutant."""

from __future__ import annotations

import re

import pytest
from pages import ROOT

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.registry import ALGORITHMS
from meshlock.check.arguments import PROPERTIES, TIES
from meshlock.simulate.scenario import FOLDER

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
SOURCES = sorted(set(re.findall(r"\[`([^`]+)`\]\(\.\./((?:src|examples)/[^)#]+\.py)\)", PAGE)))
ALGORITHM_PAGES = sorted(set(re.findall(r"\[`([^`]+)`\]\(algorithms/([^)#]+)\.md\)", PAGE)))


def named(word: str) -> list[str]:
    """What follows the word, or its plural, in code: as in "scenarios `J1`, `J1b`; R2"."""
    runs = re.findall(rf"\b{word}s? ((?:`[^`]+`(?:, | and | to )?)+)", PAGE)
    return sorted({name for run in runs for name in re.findall("`([^`]+)`", run)})


@pytest.mark.parametrize(("name", "path"), SOURCES)
def test_what_the_source_is_said_to_have_is_there(name: str, path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    if name.startswith("# "):
        assert re.search(rf"{name}\b", text)
    elif name.endswith(".py"):
        assert path.endswith(name)
    else:
        last = name.rpartition(".")[2]
        assert re.search(rf"^ *(?:(?:def|class) {last}\b|{last}\b.* = )", text, re.MULTILINE)


@pytest.mark.parametrize(("name", "page"), ALGORITHM_PAGES)
def test_pages_are_of_the_algorithms_that_they_are_named_after(name: str, page: str) -> None:
    assert name == page and name in ALGORITHMS


def test_scenarios_properties_and_mutants_are_there() -> None:
    scenarios = {path.stem for path in FOLDER.iterdir()}
    named_here = named("scenario") + named("property")
    assert len(named_here) > 20
    assert set(named("scenario")) <= scenarios
    assert set(named("property") + named("properties")) <= {*PROPERTIES, TIES}
    assert set(named("mutant")) <= set(MUTANTS)


def test_every_line_of_the_listing_has_its_handler_on_the_page() -> None:
    """The printed edition marks each line by handler and number; the page names each handler."""
    printed = (ROOT / "src/meshlock/algorithms/jiang_printed.py").read_text(encoding="utf-8")
    handlers = set(re.findall(r"# (\w+) 1\b", printed))
    assert len(handlers) > 12
    assert {name for name in handlers if f"`# {name} 1`" not in PAGE} == set()


def test_the_scheme_s_scenarios_and_jiang_s_are_all_on_the_page() -> None:
    ours = re.compile(r"[JR]\d+b?|jiang-figure-.*|scheme-figure.*")
    shown = {name for path in FOLDER.iterdir() if ours.fullmatch(name := path.stem)}
    assert shown - set(re.findall("`([^`]+)`", PAGE)) == set()
