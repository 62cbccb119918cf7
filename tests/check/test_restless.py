"""Le Lann's token is on its way before anybody asks, and never rests."""

from __future__ import annotations

import io

from checks import ask, counts, explore

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.check.mutants import setup_of
from meshlock.check.retold import write_trace


def test_the_ring_is_sound_and_its_states_are_few() -> None:
    checking = explore(ask("lelann", "ring", 3))
    assert checking.holds()
    assert counts(checking) == (108, 207, 11)


def test_a_trace_tells_who_set_the_token_going() -> None:
    greedy = MUTANTS["lelann/keeps-the-token"]
    checking = explore(setup_of(greedy, greedy.algorithm))
    (violation,) = checking.violations()
    assert violation.name == "served"
    sink = io.BytesIO()
    write_trace(checking.model, violation, sink)
    lines = sink.getvalue().decode().splitlines()
    assert '"event":"start"' in lines[1]
    assert '"event":"send"' in lines[2]
