"""The papers' figures as scenarios: what the paper says beside what happened."""

from pathlib import Path

import pytest

from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.simulate.player import Player, play
from meshlock.simulate.scenario import Scenario, names

TRANSCRIPTS = Path(__file__).parent / "figures"

FIGURES = ["jiang-figure-1", "jiang-figure-2", "scheme-figure-4", "scheme-figures-2-3"]


def test_these_are_all():
    assert [name for name in names() if "figure" in name] == FIGURES


@pytest.mark.parametrize("name", FIGURES)
def test_what_happened_is_what_the_paper_says(name):
    outcome = play(name)
    assert outcome.good, outcome.transcript
    assert "  paper: " in outcome.transcript


@pytest.mark.parametrize("name", ["scheme-figures-2-3", "scheme-figure-4", "jiang-figure-1"])
def test_step_by_step(name):
    written = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")
    assert play(name).transcript == written


def test_the_example_of_figures_2_and_3_in_the_numbers_of_the_figures():
    figures = play("scheme-figures-2-3").figures()
    assert figures["entries"] == [8]
    assert "  8: leaves [transit]" in figures["transcript"]


def test_if_all_are_transit_the_last_keeps_the_token_as_the_report_remarks():
    text = "nodes 8\nnumbered from 1\ntree 8>7>6>5>4>3>2>1\nbehaviour transit\n"
    text += "request 8\nfinish\nexpect token 8\nexpect tree 1>8 2>8 3>8 4>8 5>8 6>8 7>8\n"
    assert Player(Scenario("transit", text), find("general-scheme")).play().good


def test_without_the_link_there_is_no_short_cut():
    outcome = play("scheme-figure-4", options={"behaviour": "proxy"})
    assert "hops 3: no, crossed: 4" in outcome.unmet


def test_an_algorithm_above_routing_is_for_a_network_that_does_not_change():
    with pytest.raises(Refused, match="for networks that do not change"):
        play("jiang-figure-2", "naimi-trehel")
