"""Events come in order of time, and those of one time in the order in which they were put there."""

from random import Random

import pytest

from meshlock.simulate.agenda import MOST, Agenda


def some(agenda):
    return agenda.events[-1] is not None or agenda.refill()


def take(agenda):
    return -agenda.times.pop(), agenda.events.pop()


@pytest.mark.parametrize("times", [3, 1_000, 10**9])
def test_as_a_stable_sort_would_have_it(times):
    chance = Random(times)
    agenda, expected = Agenda(), []
    for number in range(8 * MOST):
        at = float(chance.randrange(times))
        agenda.add(at, number)
        expected.append((at, number))
    assert len(agenda) == len(expected)
    taken = []
    while some(agenda):
        taken.append(take(agenda))
    assert taken == sorted(expected)
    assert len(agenda) == 0


def test_events_are_put_in_while_others_are_taken():
    chance = Random(1)
    agenda, waiting, now = Agenda(), [], 0.0
    for number in range(6_000):
        at = now + chance.choice([0.0, 1.0, chance.random(), 50 * chance.random()])
        agenda.add(at, number)
        waiting.append((at, number))
        if chance.random() < (0.3 if number < 3_000 else 0.9):
            assert some(agenda)
            now, event = take(agenda)
            first = min(waiting)
            assert (now, event) == first
            waiting.remove(first)
    assert len(agenda) == len(waiting)


def test_a_cleared_agenda_is_empty():
    agenda = Agenda()
    for number in range(5 * MOST):
        agenda.add(float(number), number)
    agenda.clear()
    assert len(agenda) == 0
    assert not some(agenda)
