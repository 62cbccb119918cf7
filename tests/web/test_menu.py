"""What the menu offers can be opened, every entry of it."""

from pathlib import Path

import pytest

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.errors import Refused
from meshlock.simulate.run_settings import RunSettings
from meshlock.simulate.scenario import names
from meshlock.sweep.study import read_study
from meshlock.web import opening

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.mark.parametrize("name", names())
def test_every_scenario_is_played(name):
    index = opening.scenario_run(name, "")
    assert index.steps > 5
    assert index.about()["states"]


def test_a_scenario_is_played_by_another_algorithm():
    assert not opening.scenario_run("J1", "jiang").violated
    index = opening.scenario_run("J1", "jiang-printed")
    assert index.setup["algorithm"] == "jiang-printed"
    assert [found["property"] for found in index.violated] == ["order", "served"]


def test_every_study_has_an_example_and_every_example_a_study():
    assert sorted(opening.examples()) == sorted(path.stem for path in STUDIES.glob("*.toml"))


@pytest.mark.parametrize("name", opening.examples())
def test_the_example_of_a_study_asks_its_question(name):
    example = opening.examples()[name]
    points = read_study(STUDIES / f"{name}.toml").points
    assert any(
        point.values.get("algorithm", RunSettings.algorithm) == example["algorithm"]
        for point in points
    )
    assert {*example} - {"title", "nodes", "algorithm"} <= {
        key for point in points for key in point.values
    }
    index = opening.example_run(name)
    assert 100 < index.steps < 5000
    assert not index.unjudged


def found(name):
    search = opening.Counterexample(name)
    steps = list(search.progress())
    return search.index, steps


@pytest.mark.parametrize("name", [*MUTANTS][::9])
def test_the_shortest_counterexample_of_a_mutant(name):
    mutant = MUTANTS[name]
    if not mutant.breaks or mutant.large:
        pytest.skip("it breaks nothing, or the search takes minutes")
    index, _ = found(name)
    assert mutant.breaks in [each["property"] for each in index.violated]
    unnoticed = len(mutant.case.get("changes", []))  # by itself a link's change is no node's step
    assert index.steps >= mutant.steps - unnoticed


def test_a_search_says_how_far_it_is_and_that_it_takes_too_long(monkeypatch):
    monkeypatch.setattr(opening, "MOST_STATES", 3000)
    search = opening.Counterexample("jiang/without-R10")
    said = []
    with pytest.raises(Refused, match=r"takes too long here: .* meshlock check --mutant jiang/wit"):
        said.extend(search.progress())
        pytest.fail("it was found")
    assert search.index is None
    progress = opening.Counterexample("jiang/without-R10").progress()
    assert "states" in next(progress)


def test_what_is_not_in_the_menu_is_refused():
    for wrong in (
        lambda: opening.scenario_run("../J1", ""),
        lambda: opening.scenario_run("J1", "nothing"),
        lambda: opening.example_run("nothing"),
        lambda: opening.Counterexample("nothing"),
    ):
        with pytest.raises(Refused, match=r"There is no|Unknown"):
            wrong()


def test_permits_of_several_kinds_are_drawn_alike_and_told_by_kind():
    index, _ = found("direct/counts-all-kinds-together")
    assert index.setup["permits"] == {"gpu": 1, "licence": 1} and not index.unjudged
    for step in range(index.steps + 1):
        for _, _, want, _, _, _ in index.snapshot(step).shown()["clients"]:
            assert isinstance(want, int)
    assert index.snapshot(0).shown()["free"] == [[0, 2]]
