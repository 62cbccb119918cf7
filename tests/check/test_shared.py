"""Several processes find what one finds."""

import os
import signal

import pytest

from meshlock.check import shared
from meshlock.check.arguments import judged, setup
from meshlock.check.verdict import checking
from meshlock.errors import Refused
from waiting import LIMIT

LINE = {"topology": "line", "nodes": 3}
SET_UPS = {
    "raymond": {"algorithm": "raymond", "topology": "line", "nodes": 4},
    "naimi-trehel": {"algorithm": "naimi-trehel", "nodes": 4},
    "unordered": {"algorithm": "ricart-agrawala", "nodes": 3, "links": "unordered"},
    "changes": {"algorithm": "jiang", **LINE, "requests": ["0:1@1", "2:1@2"], "flips": 1},
    "custody": {
        "algorithm": "jiang",
        **LINE,
        "requests": ["0:1@1", "2:1@2"],
        "flips": 1,
        "failures": "custody",
        "options": {"raises": "1"},
    },
    "deadlock": {
        "algorithm": "jiang-printed",
        **LINE,
        "requests": ["2:1@5", "1:1@6", "0:1@1"],
    },
    "crashes": {
        "algorithm": "raymond",
        **LINE,
        "requests": ["0:1@1", "2:1@2"],
        "members": "all",
        "crashes": 1,
    },
    "forgets who it promised": {
        "algorithm": "recovery/renews-the-dead",
        **LINE,
        "requests": ["0:1@1", "2:1@2"],
        "members": "all",
        "crashes": 1,
    },
}


opened = []


@pytest.fixture(autouse=True)
def closed():
    yield
    while opened:
        opened.pop().close()


def found(words, workers, most=30_000):
    verdict = checking(setup(**words), judged([]), most, workers=workers)
    while verdict.run(1000):
        pass
    opened.append(verdict.explorer)
    return verdict


def figures(verdict):
    explorer = verdict.explorer
    lengths = {it.name: len(it.labels) for it in verdict.violations()}
    if verdict.setup.faults is not None:
        lengths.pop("served", 0)  # of some states, which are not the same
    return explorer.count(), explorer.transitions, explorer.depth, verdict.holds(), lengths


@pytest.fixture
def soon(monkeypatch):
    """No search is too small to be shared."""
    monkeypatch.setattr(shared, "ALONE", 100)


@pytest.mark.parametrize("name", SET_UPS)
def test_counts_and_verdicts_are_the_same_whatever_the_number(name, soon):
    words = SET_UPS[name]
    alone = found(words, 1)
    assert alone.complete()
    for workers in (2, 3):
        together = found(words, workers)
        assert isinstance(together.explorer, shared.Shared) and together.explorer.pipes
        assert figures(together) == figures(alone)


def test_a_counterexample_can_be_told(soon):
    together = found(SET_UPS["deadlock"], 2)
    told = together.figures(1.0)["violations"]
    assert told and all(len(it["steps"]) >= it["length"] for it in told)
    [served] = [it for it in together.violations() if it.name == "served"]
    states = served.states
    for k, label in enumerate(served.labels):
        together.model.expand(states[k])
        assert states[k + 1] == together.model.successors[together.model.labels.index(label)]


def test_a_small_search_needs_nobody(monkeypatch):
    verdict = found(SET_UPS["raymond"], 8)
    assert verdict.holds() and not verdict.explorer.pipes


def test_it_ends_where_it_is_told_to(soon):
    verdict = found(SET_UPS["crashes"], 2, most=2_000)
    assert not verdict.complete() and not verdict.holds()
    assert 1_000 <= verdict.explorer.count() < 14_244


def test_what_goes_round_is_searched_by_one(soon):
    words = {"algorithm": "raymond", **LINE, "repeat": True}
    verdict = found(words, 2)
    assert verdict.holds() and "One process is used" in verdict.remark


def test_a_process_that_is_killed_is_told_of(soon):
    words = {**SET_UPS["crashes"], "crashes": 2}
    verdict = checking(setup(**words), judged([]), 10**6, workers=2)
    while not verdict.explorer.pipes:
        verdict.run(100)
    os.kill(verdict.explorer.processes[1].pid, signal.SIGKILL)
    with pytest.raises(Refused, match="ended early"):
        for _ in range(int(LIMIT)):
            assert verdict.run(1000)
    verdict.explorer.close()
