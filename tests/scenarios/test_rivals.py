"""D1, K1 and M1: as we read the papers it goes well; as they can be read, it does not."""

import pytest

from meshlock.simulate.player import play

READINGS = {
    "D1": ("singhal-dynamic/asks-by-its-clock", "safety"),
    "K1": ("raynal/counts-twice", "served"),
    "M1": ("mueller/goes-on-along-the-tree", "served"),
}


@pytest.mark.parametrize("name", READINGS)
def test_the_algorithm_does_as_it_should(name):
    outcome = play(name)
    assert outcome.good, outcome.transcript


@pytest.mark.parametrize("name", READINGS)
def test_the_other_reading_fails(name):
    mutant, violated = READINGS[name]
    outcome = play(name, mutant)
    assert list(outcome.violated) == [violated]
    assert not outcome.good
