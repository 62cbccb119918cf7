"""Several processes find what one finds."""

import os
import signal

import pytest
from checks import FOR_EVER, LARGE, SET_UPS, figures

from meshlock.check.arguments import judged, setup
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from waiting import LIMIT


@pytest.mark.parametrize("name", SET_UPS)
def test_the_same_states_come_in_the_same_order(name, found, in_memory, soon):
    assert in_memory(name).complete()
    for workers in (2, 3):
        together = found(SET_UPS[name], workers=workers)
        assert together.explorer.helpers.pipes
        assert figures(together) == figures(in_memory(name))
        assert together.explorer.backward == in_memory(name).explorer.backward


def test_a_small_search_needs_nobody(found):
    verdict = found(SET_UPS["raymond"], workers=8)
    assert verdict.holds() and not verdict.explorer.helpers.pipes


@pytest.mark.parametrize("most", [2_000, 7_777])
@pytest.mark.parametrize("workers", [2, 3])
def test_it_ends_in_the_same_state_where_it_is_told_to(workers, most, found, soon):
    verdict = found(LARGE, most, workers=workers)
    assert not verdict.complete() and not verdict.holds()
    assert figures(verdict) == figures(found(LARGE, most))


def test_cycles_are_found_together(found, soon):
    """Le Lann's token goes round while nobody asks."""
    words = {"algorithm": "lelann", "topology": "ring", "nodes": 5}
    together, alone = found(words, workers=2), found(words)
    assert together.explorer.helpers.pipes and together.holds()
    assert figures(together) == figures(alone)
    assert together.explorer.edges == alone.explorer.edges
    assert together.explorer.parents == alone.explorer.parents


def test_what_goes_round_is_searched_by_one(found, soon):
    verdict = found(FOR_EVER["served"], workers=2)
    assert verdict.holds() and "One process is used" in verdict.remark


def test_a_process_that_is_killed_is_told_of(soon):
    words = {**LARGE, "crashes": 2}
    verdict = Checking(setup(**words), judged([]), 10**6, workers=2)
    while not verdict.explorer.helpers.pipes:
        verdict.run(100)
    os.kill(verdict.explorer.helpers.processes[0].pid, signal.SIGKILL)
    with pytest.raises(Refused, match="ended early"):
        for _ in range(int(LIMIT)):
            assert verdict.run(1000)
    verdict.explorer.close()
