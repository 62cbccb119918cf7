"""Whole runs on links whose ends learn of changes by themselves."""

from __future__ import annotations

import io

import pytest

from meshlock.errors import Refused
from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.writer import TraceWriter
from runs import finished

FLIPPING = {
    "algorithm": "jiang",
    "nodes": 9,
    "topology": "links:14",
    "permits": 3,
    "want": "1-2",
    "priority": "1-5",
    "delay": "exp:1",
    "hold": "exp:1",
    "mobility": "flips:1",
    "failures": "custody",
    "requests": 300,
}


@pytest.mark.parametrize("algorithm", ["jiang", "reverse-link"])
@pytest.mark.parametrize("mobility", ["flips:1", "waypoint:0.05,0.6"])
def test_everybody_is_served_and_nothing_is_lost(algorithm: str, mobility: str) -> None:
    given = {**FLIPPING, "algorithm": algorithm, "mobility": mobility}
    if algorithm == "reverse-link":
        given |= {"permits": 1, "want": "1"}
    run = finished(**given, notice="uniform:0,5")
    assert run.monitor.violated == {}
    assert run.measures.entries == 300
    assert run.late > 5 and run.dropped > 50


@pytest.mark.parametrize("moves", ["quiet", "silent", "broadcast"])
def test_partitions_that_heal(moves: str) -> None:
    for seed in range(4):
        healing = {"partitions": "healed", "changes-until": "150", "seed": seed, "moves": moves}
        run = finished(**{**FLIPPING, **healing, "mobility": "waypoint:0.05,0.3"}, notice="exp:5")
        assert run.monitor.violated == {}
        assert run.measures.entries == 300


def test_when_ends_notice_does_not_change_who_wants_what() -> None:
    """Random streams of their own: with no change of links, custody is like any other."""
    still = {**FLIPPING, "mobility": "flips:0.000001"}
    drained = finished(**{**still, "failures": "drain"})
    kept = finished(**still)
    assert kept.measures.messages == drained.measures.messages
    assert kept.now == drained.now


def test_notice_is_for_custody_alone() -> None:
    with pytest.raises(Refused, match="add --failures custody, or leave it out"):
        simulation(run_settings({**FLIPPING, "failures": "drain", "notice": "1"}), None)
    with pytest.raises(Refused, match="drain, return or custody, not 'hope'"):
        simulation(run_settings({**FLIPPING, "failures": "hope"}), None)


def traced(**given: object) -> bytes:
    sink = io.BytesIO()
    finished(TraceWriter(sink, False), **{**FLIPPING, **given})
    return sink.getvalue()


def test_the_same_seed_gives_the_same_run() -> None:
    assert traced(seed=5, requests=100) == traced(seed=5, requests=100) != traced(seed=6)


def test_a_pinned_run() -> None:
    given = {"algorithm": "reverse-link", "permits": 1, "want": "1", "seed": 3}
    run = finished(**{**FLIPPING, **given}, notice="exp:2")
    assert run.measures.messages == {"REQUEST": 886, "TOKEN": 214, "LINK": 2638}
    assert (run.late, run.dropped, run.ups, run.downs) == (35, 423, 629, 629)
