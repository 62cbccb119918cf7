"""Fresh entries are stamped together: what comes of their order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshlock.algorithms.queues import FRESH, MOST_FRESH, SETTLED, STAMPED, TOP, Entry, Ranked

ROWS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 3), st.booleans(), st.integers(0, 4)),
    max_size=40,
)


@given(ROWS, st.integers(0, 12), st.integers(0, 6))
def test_they_come_behind_what_has_their_rank_already(
    rows: list[tuple[int, int, bool, int]], grants: int, trust: int
) -> None:
    queue = Ranked()
    for number, (neighbour, priority, fresh, known) in enumerate(rows):
        rank = 5 * priority
        age, claim = (FRESH, rank - known) if fresh else (SETTLED, rank)
        queue.push(Entry(neighbour, number, 1, priority, rank, age, claim))
    before = list(queue.entries)
    old = [entry for entry in before if entry.age != FRESH]
    new = [entry for entry in before if entry.age == FRESH]
    ranks = {entry: entry.rank for entry in old}
    ranks |= {entry: min(entry.claim, entry.rank - grants + trust) for entry in new}
    expected = sorted([*old, *new], key=lambda entry: -ranks[entry])

    queue.settle(grants, trust)
    assert queue.entries == expected
    assert {entry: entry.rank for entry in expected} == ranks
    assert queue.fresh == {}
    for entry in new:
        assert entry.age == (SETTLED if entry.neighbour == -1 else STAMPED)
        assert entry.claim == entry.rank
    assert all(queue.entries[queue.place(entry)] is entry for entry in expected)

    again = Ranked()
    again.thaw(queue.freeze())
    assert again.freeze() == queue.freeze()


def test_a_few_among_many_are_stamped_like_many() -> None:
    queue = Ranked()
    for number in range(100):
        queue.push(Entry(-1, number, 1, number % 10, number % 10))
    queue.push(Entry(-1, 100, 1, 9, 9, FRESH))
    queue.push(Entry(-1, 101, 1, 5, 5, FRESH))
    queue.settle(4, 1)
    clients = [entry.client for entry in queue.entries]
    assert clients.index(100) == 40 and clients[39] == 96  # behind all of rank 6
    assert clients.index(101) == 81 and clients[80] == 92  # behind all of rank 2


class Plain:
    """The same by the definition: rank, arrival and claim of each client, and who is fresh."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, int, int]] = {}
        self.fresh: set[int] = set()
        self.arrivals = 0

    def order(self) -> list[int]:
        return sorted(self.rows, key=lambda client: (-self.rows[client][0], self.rows[client][1]))

    def push(self, client: int, rank: int, claim: int, fresh: bool) -> None:
        self.arrivals += 1
        self.rows[client] = (rank, self.arrivals, claim)
        if fresh:
            self.fresh.add(client)

    def remove(self, client: int) -> None:
        del self.rows[client]
        self.fresh.discard(client)

    def settle(self, fall: int) -> None:
        for client in self.order():
            if client in self.fresh:
                rank, _, claim = self.rows[client]
                self.arrivals += 1
                rank = min(claim, rank - fall)
                self.rows[client] = (rank, self.arrivals, rank)
        self.fresh = set()


@pytest.mark.parametrize("claims", [0, 7])
@pytest.mark.parametrize("seed", range(4))
def test_a_crowd_is_in_the_order_in_which_few_would_be(seed: int, claims: int) -> None:
    random = Random(seed)
    queue, plain = Ranked(), Plain()
    client = 0
    for _ in range(6):
        for _ in range(random.choice([5, 1500, 2500])):
            client += 1
            rank, fresh = 5 * random.randrange(4), random.random() < 0.95
            claim = rank - random.randint(0, claims) if fresh else rank
            queue.push(Entry(-1, client, 1, 0, rank, FRESH if fresh else SETTLED, claim))
            plain.push(client, rank, claim, fresh)
        for gone in random.sample(list(plain.rows), min(300, len(plain.rows))):
            queue.remove(queue.own[gone])
            plain.remove(gone)
        if random.random() < 0.8:
            grants, trust = random.randint(0, 12), random.randint(0, 6)
            queue.settle(grants, trust)
            plain.settle(grants - trust)
            assert not queue.is_fresh()
        for _ in range(random.choice([20, 200])):
            if not plain.rows:
                break
            top, expected = queue.entries[:TOP], plain.order()[:TOP]
            ranks = [plain.rows[one][0] for one in expected]
            assert [one.rank for one in top] == ranks
            if claims == 0:
                assert [one.client for one in top] == expected
            found = queue.find(expected[-1])
            assert found is not None and found.rank == ranks[-1]
            queue.remove(queue.own[expected[0]])
            plain.remove(expected[0])
    assert len(queue) == len(queue.own) == len(plain.rows)
    whole = [(one.client, one.rank, one.age == FRESH) for one in thawed(queue).entries]
    assert sorted(whole) == sorted(
        (one, row[0], one in plain.fresh) for one, row in plain.rows.items()
    )
    if claims == 0:
        assert [one for one, _, _ in whole] == plain.order()


def thawed(queue: Ranked) -> Ranked:
    """With all of its entries in one list."""
    again = Ranked()
    again.thaw(queue.freeze())
    again.freeze()
    return again


def test_no_more_than_some_of_a_crowd_are_stamped_at_once() -> None:
    queue = Ranked()
    for number in range(4 * MOST_FRESH):
        queue.push(Entry(-1, number, 1, number % 10, number % 10, FRESH))
    queue.settle(4, 1)
    stamped = [entry for entry in queue.own.values() if entry.age == SETTLED]
    assert MOST_FRESH <= len(stamped) <= MOST_FRESH + 2 * TOP
