"""Nodes that crash, under the one checker: what it asks, what it refuses, what it tells."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from checks import ask

from meshlock.check import serving
from meshlock.check.arguments import judged
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.manifest import PinnedSetUp, entries
from meshlock.check.model import Fault
from meshlock.check.serving import Sample, ticks_to_serve
from meshlock.check.story import pages
from meshlock.check.verdict import Checking
from meshlock.errors import Refused

ROOT = Path(__file__).parents[2]


def explored(algorithm: str, **words: object) -> Checking:
    what = ask(algorithm, "line", 3, **{"members": "all", **words})
    check = Checking(what, judged([]), 100_000)
    while check.run(10_000):
        pass
    return check


@pytest.mark.parametrize("algorithm", ["raymond", "naimi-trehel", "jiang"])
def test_a_node_crashes_and_all_properties_hold(algorithm: str) -> None:
    check = explored(algorithm, requests=["2"], crashes=1)
    assert check.holds()
    assert "every request is served within" in check.summary()


@pytest.mark.parametrize("permits", [1, 2])
def test_who_is_no_member_is_served_whoever_has_crashed(permits: int) -> None:
    """Node 3 asks node 0, who has passed the token on and is gone; renewals go to members only."""
    what = ask("direct", "complete", 4, permits=permits, members="3", crashes=1, crashing=[0])
    check = Checking(what, judged([]), 20_000)
    while check.run(10_000):
        pass
    assert check.violations() == []


def test_faults_need_members() -> None:
    with pytest.raises(
        Refused, match="--crashes is only for nodes that recover: add --members all"
    ):
        ask("raymond", "line", 3, crashes=1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"members": "4"}, "--members takes auto, all, or a number up to 3, not '4'"),
        ({"members": "all", "lease": 3, "wait": 2}, "--lease is at least 1 tick"),
        ({"members": "all", "renewals": "fly"}, "--renewals is meet or travel, not 'fly'"),
        ({"members": "all", "member_changes": ["add 7"]}, "--member-change takes 'add N'"),
        ({"members": "all", "resizes": [0]}, "--resize takes a number of permits"),
        ({"members": "all", "flips": 1}, "links fail by --cuts"),
        ({"members": "all", "crashing": [5]}, "There is no node 5"),
        ({"members": "all", "proposers": [-1]}, "There is no node -1: nodes are 0 to 2"),
    ],
)
def test_what_makes_no_sense_is_refused(words: dict[str, object], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        ask("jiang", "line", 3, **words)


def test_algorithms_without_a_token_do_not_recover() -> None:
    with pytest.raises(Refused, match="has no token"):
        ask("lamport", "complete", 3, members="all")


def test_choices_that_are_not_explored_where_nodes_recover_are_refused() -> None:
    with pytest.raises(Refused, match=r"does not try every way: name one, as .* behaviour=transit"):
        ask("general-scheme", "line", 3, members="all")
    ask("general-scheme", "line", 3, members="all", options={"behaviour": "transit"})


def test_a_step_that_cannot_happen_is_refused_with_what_can() -> None:
    what = ask("raymond", "line", 3, requests=["0"], members="all", lead=["crash 0"])
    with pytest.raises(Refused, match="--lead 'crash 0' is not possible here: use one of request"):
        Crashing(what, judged([])).initial()


def test_a_counterexample_is_a_story() -> None:
    what = ask("recovery/does-not-wait", "complete", 3, requests=["0"], members="all", proposals=1)
    check = Checking(what, judged(["one-token"]), 100_000)
    while not check.explorer.violations and check.run(1):
        pass
    story = "\n".join(pages(check.model, check.violations()[0]))
    assert "proposes an epoch" in story
    assert "writes the ledger of its epoch" in story
    assert "sends PROMISE(" in story


def test_a_node_that_stays_down_is_done_without() -> None:
    what = ask("raymond", "complete", 3, requests=["2"], members="all", crashes=1)
    model = Crashing(what, judged([]))
    world = model.lead(model.beginning(), "crash 0")
    assert ticks_to_serve(model, world) > 0


def test_time_can_be_bounded() -> None:
    none = explored("raymond", requests=["2"], crashes=1, ticks=0).explorer.count()
    one = explored("raymond", requests=["2"], crashes=1, ticks=1).explorer.count()
    assert none < one < explored("raymond", requests=["2"], crashes=1).explorer.count()


# -- campaigns ---------------------------------------------------------------------------------


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "campaigns"))
    return importlib.import_module("recovery_walks")


def test_some_walks_of_every_algorithm_find_nothing(walks: ModuleType) -> None:
    for algorithm in walks.RECOVERING:
        tally = walks.walk(algorithm, 0, 11, 60)
        assert (tally.steps, tally.served, tally.wrong) == (660, 2, 0), tally.story
        assert tally.entries > 0
        assert tally.epochs > 0


def test_a_walk_tells_what_it_found(walks: ModuleType) -> None:
    what = ask("recovery/votes-at-once", "complete", 3, members="all", requests=["0"], crashes=1)
    walk = walks.Walk(Crashing(what, judged([])), walks.Random(0))
    walk.go(5)
    walk.wrong = [walks.Fault("safety", "an example", 0)]
    assert len([line for line in walk.story() if line.startswith("--lead")]) == 5


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "campaigns"))
    return importlib.import_module("recovery_check").BOOK


def test_all_wide_set_ups_are_pinned_and_none_is_violated(wide: Any) -> None:
    titles = [PinnedSetUp(row).title() for row in wide.setups()]
    assert len(titles) == len(set(titles))
    assert list(wide.read()) == titles
    assert not [row for row in wide.read().values() if "violated" in row]


def test_no_wide_set_up_is_in_the_manifest_too(wide: Any) -> None:
    assert not {entry.title() for entry in entries()} & wide.read().keys()


def test_the_page_shows_the_wide_set_ups(wide: Any) -> None:
    page = (ROOT / "docs" / "appendices" / "checker-counts.md").read_text(encoding="utf-8")
    assert wide.table(list(wide.read().values())) in page


def test_what_a_failing_try_has_sent_goes_with_no_other_step(monkeypatch) -> None:
    check = explored("direct", requests=["0:1@1"])
    model, found = check.model, []

    def fails(*_: object) -> int:
        model.layers.out.append(object())
        raise ValueError("a mistake")

    def finds(number: int, fault: Fault) -> None:
        found.append((fault.name, list(model.layers.out)))

    monkeypatch.setattr(serving, "ticks_to_serve", fails)
    monkeypatch.setattr(check.explorer, "found", finds)
    assert not Sample(model, check.explorer).run()
    assert found == [("served", [])]
