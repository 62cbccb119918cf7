"""Settled and fresh entries, and crowds: what comes of their order."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshlock.algorithms.ranked import FRESH, MOST_FRESH, SETTLED, TOP, Met, Ranked, RankedRequest

ROWS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 3), st.booleans(), st.integers(0, 4)),
    max_size=40,
)


def filled(rows: list[tuple[int, int, bool, int]]) -> Ranked:
    """Of neighbours and clients; what is fresh came when that many grants were known."""
    queue = Ranked()
    known = 0
    for number, (neighbour, priority, fresh, more) in enumerate(rows):
        known += more
        rank = 5 * priority - known
        age, base = (FRESH, 5 * priority) if fresh else (SETTLED, 0)
        neighbour = number if neighbour >= 0 else -1  # each has one entry
        queue.push(RankedRequest(neighbour, number, 1, priority, rank, age, base))
    return queue


@given(ROWS, st.integers(0, 200), st.integers(0, 3), st.none() | st.integers(-200, 0))
def test_fresh_entries_keep_their_place_among_equals(
    rows: list[tuple[int, int, bool, int]], fall: int, priority: int, allowed: int | None
) -> None:
    queue = filled(rows)
    token = Met(fall, priority, allowed)
    everyone = sorted(queue.all(), key=lambda entry: entry.arrival)
    fresh = [entry for entry in everyone if entry.age == FRESH]
    ranks = {entry: token.rank(entry) if entry in fresh else entry.rank for entry in everyone}
    expected = sorted(everyone, key=lambda entry: -ranks[entry])

    queue.rank_fresh(token)
    assert queue.entries == expected and queue.fresh == []
    assert {entry: entry.rank for entry in expected} == ranks
    for entry in fresh:
        assert (entry.age, entry.base) == (SETTLED, 0)
    for earlier, later in pairwise(everyone):
        if earlier.priority == later.priority:
            assert earlier in fresh or later in fresh or earlier.rank >= later.rank

    again = Ranked()
    again.thaw(queue.freeze())
    assert again.freeze() == queue.freeze()


@given(ROWS)
def test_the_first_ones_are_the_first_of_either_kind(
    rows: list[tuple[int, int, bool, int]],
) -> None:
    queue = filled(rows)
    for most in (0, 1, 3, 50):
        top = queue.top(most)
        assert len(top) == min(most, len(rows))
        assert [one for one in top if one.age == FRESH] == queue.fresh[
            : sum(one.age == FRESH for one in top)
        ]
    while not queue.is_empty():
        first = queue.first()
        assert [first] == queue.top(1)
        rivals = [*queue.entries[:1], *queue.fresh[:1]]
        assert first is min(rivals, key=lambda one: (-one.rank, one.arrival))
        queue.remove(first)


@given(ROWS, st.integers(0, 39), st.integers(0, 3))
def test_an_entry_that_changes_keeps_its_age_and_its_arrival(
    rows: list[tuple[int, int, bool, int]], which: int, priority: int
) -> None:
    queue = filled(rows)
    if which >= len(rows):
        return
    entry = next(one for one in queue.all() if one.client == which)
    age, arrival = entry.rank - 5 * entry.priority, entry.arrival
    queue.change(entry, 2, priority, 5 * (priority - entry.priority))
    assert (entry.want, entry.priority, entry.arrival) == (2, priority, arrival)
    assert entry.rank - 5 * priority == age
    assert queue.entries == sorted(queue.entries, key=lambda one: (-one.rank, one.arrival))
    assert queue.fresh == sorted(queue.fresh, key=lambda one: (-one.base, one.arrival))
    again = Ranked()
    again.thaw(queue.freeze())
    assert [one.client for one in again.all()] == [one.client for one in queue.all()]
    assert again.freeze() == queue.freeze()


def test_a_few_among_many_are_settled_like_many() -> None:
    queue = Ranked()
    for number in range(100):
        queue.push(RankedRequest(-1, number, 1, number % 10, number % 10))
    queue.push(RankedRequest(-1, 100, 1, 9, 9, FRESH, 9))
    queue.push(RankedRequest(-1, 101, 1, 5, 5, FRESH, 5))
    queue.rank_fresh(Met(3))
    clients = [entry.client for entry in queue.entries]
    assert clients.index(100) == 40 and clients[39] == 96  # behind all of rank 6
    assert clients.index(101) == 81 and clients[80] == 92  # behind all of rank 2


class Plain:
    """The same by the definition: rank, arrival and base of each client, and which are fresh."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, int, int]] = {}
        self.fresh: set[int] = set()

    def order(self) -> list[int]:
        settled = [client for client in self.rows if client not in self.fresh]
        return sorted(settled, key=lambda client: (-self.rows[client][0], self.rows[client][1]))

    def settle(self, fall: int) -> None:
        for client in self.fresh:
            rank, arrival, base = self.rows[client]
            self.rows[client] = (min(rank, base - fall), arrival, base)
        self.fresh = set()


@pytest.mark.parametrize("seed", range(4))
def test_a_crowd_is_in_the_order_in_which_few_would_be(seed: int) -> None:
    random = Random(seed)
    queue, plain = Ranked(), Plain()
    client = known = 0
    for _ in range(6):
        for _ in range(random.choice([5, 1500, 2500])):
            client += 1
            known += random.random() < 0.01
            priority, fresh = random.randrange(4), random.random() < 0.95
            base, age = 50 * priority, FRESH if fresh else SETTLED
            queue.push(RankedRequest(-1, client, 1, priority, base - known, age, base))
            plain.rows[client] = (base - known, client, base)
            if fresh:
                plain.fresh.add(client)
        for gone in random.sample(list(plain.rows), min(300, len(plain.rows))):
            queue.remove(queue.own[gone])
            del plain.rows[gone]
            plain.fresh.discard(gone)
        known += random.randint(0, 120)
        queue.rank_fresh(Met(known - 49))
        plain.settle(known - 49)
        assert queue.fresh == []
        for _ in range(random.choice([20, 200])):
            expected = plain.order()[:TOP]
            if not expected:
                break
            top = queue.entries[:TOP]
            assert [(one.client, one.rank) for one in top] == [
                (one, plain.rows[one][0]) for one in expected
            ]
            assert queue.first() is top[0] and queue.find(expected[-1]) is top[-1]
            queue.remove(queue.own[expected[0]])
            del plain.rows[expected[0]]
    assert len(queue) == len(queue.own) == len(plain.rows)
    again = Ranked()
    again.thaw(queue.freeze())
    assert [one.client for one in again.entries] == plain.order()


def test_no_more_than_some_of_a_crowd_are_settled_at_once() -> None:
    queue = Ranked()
    for number in range(4 * MOST_FRESH):
        queue.push(RankedRequest(-1, number, 1, number % 10, number % 10, FRESH, number % 10))
    queue.rank_fresh(Met(3))
    settled = [entry for entry in queue.own.values() if entry.age == SETTLED]
    assert TOP <= len(settled) <= MOST_FRESH
