"""The monitor knows the highest priority that waits, however requests come and go."""

from random import Random

import pytest

from meshlock.properties.monitor import Monitor
from meshlock.properties.promises import Promises


@pytest.mark.parametrize("priorities", [2, 1_000_000])
def test_the_next_entry_is_due_to_the_highest_that_waits(priorities):
    chance, waiting = Random(priorities), []
    monitor = Monitor(1, Promises(True, True, 0.0))
    for _ in range(5_000):
        deed = chance.random()
        if deed < 0.5 or not waiting:
            waiting.append(chance.randrange(priorities))
            monitor.asks(waiting[-1])
        elif deed < 0.6:
            monitor.withdraws(waiting.pop(chance.randrange(len(waiting))))
        else:
            monitor.quiet()
            assert monitor.due_priority == max(waiting)
            waiting.remove(max(waiting))
            monitor.enters(0.0, 0, 1, monitor.due_priority)
            monitor.leaves(1)
    assert monitor.violated == {}


def test_a_lower_one_that_goes_first_is_reported():
    monitor = Monitor(1, Promises(True, True, 0.0))
    monitor.asks(1)
    monitor.asks(2)
    monitor.quiet()
    monitor.enters(3.0, 0, 1, 1)
    assert list(monitor.violated) == ["order"]
