"""Several processes find what one finds."""

import os
import signal

import pytest
from checks import FOR_EVER, LARGE, SET_UPS, sizes

from meshlock.check import shared
from meshlock.check.arguments import judged, setup
from meshlock.check.explorer import Explorer
from meshlock.check.lasso import components
from meshlock.check.partition import Sample, partition
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from waiting import LIMIT


@pytest.mark.parametrize("name", SET_UPS)
def test_counts_and_verdicts_are_the_same_whatever_the_number(name, found, in_memory, soon):
    assert in_memory(name).complete()
    for workers in (2, 3):
        together = found(SET_UPS[name], workers=workers)
        assert isinstance(together.explorer, shared.Shared) and together.explorer.pipes
        assert sizes(together) == sizes(in_memory(name))


def test_a_counterexample_can_be_told(found, soon):
    together = found(SET_UPS["deadlock"], workers=2)
    told = together.figures(1.0)["violations"]
    assert told and all(len(it["steps"]) >= it["length"] for it in told)
    [served] = [it for it in together.violations() if it.name == "served"]
    states = served.states
    for k, label in enumerate(served.labels):
        together.model.expand(states[k])
        assert states[k + 1] == together.model.successors[together.model.labels.index(label)]


def test_a_small_search_needs_nobody(found):
    verdict = found(SET_UPS["raymond"], workers=8)
    assert verdict.holds() and not verdict.explorer.pipes


@pytest.mark.parametrize("workers", [2, 3])
def test_it_ends_when_all_together_have_enough(workers, found, soon):
    """Or soon after: states may be on their way from one to another."""
    verdict = found(LARGE, 2_000, workers=workers)
    assert not verdict.complete() and not verdict.holds()
    assert 2_000 <= verdict.explorer.count() < 5_000 < 14_244


@pytest.mark.parametrize("workers", [2, 3])
def test_steps_back_up_are_not_yet_cycles(workers, found, in_memory, soon):
    alone = in_memory("custody").explorer
    assert alone.backward > 0 and not components(alone.count(), *alone.adjacency())
    together = found(SET_UPS["custody"], workers=workers).explorer
    assert isinstance(together, shared.Shared) and together.backward == alone.backward
    assert not together.may_have_cycles()


@pytest.mark.parametrize("workers", [2, 3])
def test_cycles_are_seen_together_and_searched_by_one(workers, found, soon):
    """Le Lann's token goes round while nobody asks."""
    words = {"algorithm": "lelann", "topology": "ring", "nodes": 5}
    search = Checking(setup(**words), judged([]), 30_000, workers=workers)
    together = search.explorer
    assert isinstance(together, shared.Shared)
    while search.explorer is together:
        assert search.run(1000)
    assert together.pipes and together.cyclic
    verdict = found(words, workers=workers)
    assert type(verdict.explorer) is Explorer and verdict.holds()


def test_what_goes_round_is_searched_by_one(found, soon):
    verdict = found(FOR_EVER["served"], workers=2)
    assert verdict.holds() and "One process is used" in verdict.remark


@pytest.mark.parametrize("count", [2, 3, 4])
def test_everybody_has_a_share_that_steps_seldom_leave(count, found):
    """Of all states, though only some of them are looked at."""
    explorer = found({"algorithm": "raymond", "topology": "line", "nodes": 5}).explorer
    model = explorer.model
    by = partition(model, explorer.states[:2000], count)
    sample = Sample(model, explorer.states)

    def owner(column):
        parts = [model.meaning(aspect.slot, sample.columns[aspect.slot][column]) for aspect in by]
        return (
            sum(aspect.share(part, count) for aspect, part in zip(by, parts, strict=True)) % count
        )

    owners = [owner(column) for column in range(len(sample.columns[0]))]
    homes = [owners[begin] for begin in sample.begins[:-1]]
    shares = sorted(homes.count(worker) / len(homes) for worker in range(count))
    assert shares[0] > 0.4 / count and shares[-1] < 1.6 / count
    moved = sum(
        owners[k] != owners[begin]
        for begin, end in zip(sample.begins, sample.begins[1:], strict=False)
        for k in range(begin + 1, end)
    )
    assert moved < len(owners) / 3


def test_a_process_that_is_killed_is_told_of(soon):
    words = {**LARGE, "crashes": 2}
    verdict = Checking(setup(**words), judged([]), 10**6, workers=2)
    while not verdict.explorer.pipes:
        verdict.run(100)
    os.kill(verdict.explorer.processes[1].pid, signal.SIGKILL)
    with pytest.raises(Refused, match="ended early"):
        for _ in range(int(LIMIT)):
            assert verdict.run(1000)
    verdict.explorer.close()
