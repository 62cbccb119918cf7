"""The monitor knows the highest priority that waits, however requests come and go."""

from random import Random

import pytest

from meshlock.properties.leases import LeaseMonitor, numbered
from meshlock.properties.monitor import Monitor
from meshlock.properties.promises import PromisedOrder


@pytest.mark.parametrize("priorities", [2, 1_000_000])
def test_the_next_entry_is_due_to_the_highest_that_waits(priorities):
    chance, waiting = Random(priorities), []
    monitor = Monitor(1, PromisedOrder(True, True, 0.0))
    for _ in range(5_000):
        deed = chance.random()
        if deed < 0.5 or not waiting:
            waiting.append(monitor.asks(0, chance.randrange(priorities)))
        elif deed < 0.6:
            monitor.withdraws(waiting.pop(chance.randrange(len(waiting))), deed < 0.55)
        elif deed < 0.7:
            monitor.changes(chance.choice(waiting), chance.randrange(priorities), deed < 0.65)
            monitor.moved()
        else:
            monitor.quiet()
            highest = max(waiting, key=lambda one: one.priority)
            assert monitor.due_priority == highest.priority
            waiting.remove(highest)
            monitor.enters(0.0, 0, 1, highest)
            monitor.leaves(1)
    assert monitor.violated == {}


def test_a_lower_one_that_goes_first_is_reported():
    monitor = Monitor(1, PromisedOrder(True, True, 0.0))
    low = monitor.asks(0, 1)
    monitor.asks(0, 2)
    monitor.quiet()
    monitor.enters(3.0, 0, 1, low)
    assert list(monitor.violated) == ["order"]


@pytest.mark.parametrize(
    ("there", "violated"), [([1], ["order"]), ([1, 2], []), ([2], []), ([], [])]
)
def test_permits_that_are_sent_must_be_for_the_highest_that_waits(there, violated):
    """Or for a client at its node; one that enters with them later is not judged once more."""
    monitor = Monitor(2, PromisedOrder(True, True, 0.0))
    asked = {priority: monitor.asks(1 if priority in there else 0, priority) for priority in (1, 2)}
    monitor.quiet()
    monitor.lends(3.0, 1, [asked[priority] for priority in there])
    monitor.enters(4.0, 0, 1, asked[1])
    assert list(monitor.violated) == violated


@pytest.mark.parametrize(
    ("grants", "violated"),
    [
        ([("sent", 1), ("sent", 1), ("enters", 3)], []),
        ([("sent", 1), ("enters", 3)], ["order"]),  # 8 waits at node 1
        ([("sent", 1), ("sent", 2)], ["order"]),
        ([("sent", 1), ("over", 0), ("enters", 3)], []),  # by whom need not have heard of all
        ([("sent", 1), ("sent", 1), ("sent", 2), ("enters", 3)], ["order"]),
    ],
)
def test_of_several_grants_in_one_step_all_are_judged(grants, violated):
    monitor = Monitor(9, PromisedOrder(True, True, 0.0))
    asked = {p: monitor.asks(node, p) for p, node in ((9, 1), (8, 1), (3, 0), (2, 2))}
    monitor.quiet()
    for what, number in grants:
        if what == "sent":
            monitor.lends(1.0, number, [one for one in asked.values() if one.node == number])
        elif what == "enters":
            monitor.enters(1.0, 0, 1, asked[number])
        else:
            monitor.moved()
    monitor.moved()
    monitor.enters(2.0, 2, 1, asked[2])  # nothing is due any more
    assert list(monitor.violated) == violated


def test_a_grant_that_is_sent_is_made_then_and_used_once():
    monitor = LeaseMonitor(3)
    monitor.lends_under(1.0, 0, numbered(5))
    monitor.granted(2.0, 0, 1, 1, 9.0, numbered(6), 3)
    monitor.granted(3.0, 1, 2, 1, 9.0, numbered(5), 3)
    assert monitor.violated == {}
    monitor.granted(4.0, 1, 3, 1, 9.0, numbered(5), 3)
    assert list(monitor.violated) == ["fences"]


@pytest.mark.parametrize("waited", [True, False])
def test_only_grants_since_it_asked_make_a_request_older(waited):
    monitor = Monitor(1, PromisedOrder(True, True, 0.01, stamped=True))
    low = monitor.asks(0, 1) if waited else None
    for _ in range(1_000):
        monitor.enters(1.0, 0, 1, monitor.asks(0, 5))
        monitor.leaves(1)
    if low is None:
        low = monitor.asks(0, 1)
    monitor.asks(0, 5)
    monitor.quiet()
    monitor.enters(3.0, 0, 1, low)
    assert list(monitor.violated) == ([] if waited else ["order"])


@pytest.mark.parametrize("patience", [1, 3, 7, 100])
def test_one_that_is_lower_by_a_step_is_judged_exactly(patience):
    """In whole numbers: a third cannot be written as a float."""
    for made in range(patience * 5, patience * 5 + 30):
        for priority in (2, 3, 4):
            monitor = Monitor(1, PromisedOrder(True, True, 1 / patience, stamped=True))
            monitor.grants = made
            monitor.asks(0, 4)
            asked = monitor.asks(0, priority)
            monitor.quiet()
            monitor.enters(3.0, 0, 1, asked)
            wrong = priority == 2 or (priority == 3 and made % patience == 0)
            assert ("order" in monitor.violated) == wrong
