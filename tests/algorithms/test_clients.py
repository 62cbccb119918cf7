"""The queue of clients behind an algorithm that takes one at a time."""

from random import Random

from meshlock.algorithms.clients import PATIENCE, ClientQueue


def queue_of(*priorities):
    queue = ClientQueue()
    for client, priority in enumerate(priorities):
        queue.add(client, priority)
    return queue


def drained(queue):
    return [queue.take() for _ in range(len(queue))]


def test_equals_are_served_in_the_order_in_which_they_came():
    assert drained(queue_of(*[7] * 50)) == list(range(50))


def test_a_higher_priority_goes_first():
    assert drained(queue_of(1, 3, 2, 3)) == [1, 3, 2, 0]


def test_a_step_of_priority_is_worth_so_many_places_and_no_more():
    assert drained(queue_of(0, *[1] * (2 * PATIENCE))).index(0) == PATIENCE - 1


def test_the_queue_is_listed_in_the_order_of_service():
    chance = Random(1)
    queue = queue_of(*[chance.randint(-3, 3) for _ in range(200)])
    assert queue.clients() == drained(queue)


def test_who_gives_up_is_gone_and_the_others_keep_their_order():
    queue = queue_of(0, 2, 1, 2, 0)
    assert queue.remove(3)
    assert not queue.remove(3)
    assert drained(queue) == [1, 2, 0, 4]


def test_one_that_changes_keeps_its_place_among_those_that_are_as_urgent():
    queue = queue_of(1, 5, 5, 1)
    assert queue.change(0, 5)
    assert not queue.change(9, 5)
    assert drained(queue) == [0, 1, 2, 3]


def test_changes_leave_nothing_behind():
    queue = queue_of(*range(10))
    for number in range(10_000):
        queue.change(number % 10, number % 7)
    assert len(queue.heap) < 100
    assert sorted(drained(queue)) == list(range(10))
