"""R10 and R11: repairs of rules of our own. With them everybody is served in order; undone, not."""

from pathlib import Path

import pytest

from meshlock.simulate.player import play

TRANSCRIPTS = Path(__file__).parent / "undone"

MOVES = ("quiet", "silent", "broadcast")
UNDONE = {"R10": "jiang/without-R10", "R10b": "jiang/without-R10", "R11": "jiang/without-R11"}


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("name", UNDONE)
def test_jiang_passes(name, moves):
    outcome = play(name, "jiang", options={"moves": moves})
    assert outcome.good, outcome.transcript


@pytest.mark.parametrize("name", UNDONE)
def test_undone_it_fails_step_by_step_as_written_down(name):
    written = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")
    assert play(name, UNDONE[name]).transcript == written


@pytest.mark.parametrize("moves", ["quiet", "silent"])
def test_without_r10_the_token_goes_after_a_request_that_has_been_served(moves):
    outcome = play("R10", "jiang/without-R10", options={"moves": moves})
    assert outcome.entries == [2, 3, 0, 1]
    assert "order" in outcome.violated
    assert outcome.unmet == ["before 1 0: no, entered: 2 3 0 1"]


def test_without_r10_broadcast_moves_are_in_order():
    assert play("R10", "jiang/without-R10", options={"moves": "broadcast"}).good


@pytest.mark.parametrize("moves", MOVES)
def test_without_r10_a_request_served_by_way_of_another_misleads_however_the_token_moves(moves):
    outcome = play("R10b", "jiang/without-R10", options={"moves": moves})
    assert outcome.entries == [2, 1, 2, 1, 0]
    assert "order" in outcome.violated


@pytest.mark.parametrize("moves", MOVES)
def test_without_r11_somebody_waits_for_ever_however_the_token_moves(moves):
    outcome = play("R11", "jiang/without-R11", options={"moves": moves})
    assert outcome.unserved == [2]
    assert "served" in outcome.violated


def test_r11_needs_no_special_bound():
    assert play("R11", "jiang", options={"raises": "16"}).good
    assert play("R11", "jiang/without-R11", options={"raises": "16"}).unserved == [2]
