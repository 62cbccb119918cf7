"""Fresh entries are stamped together: what comes of their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from meshlock.algorithms.queues import FRESH, SETTLED, STAMPED, Entry, Ranked

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
