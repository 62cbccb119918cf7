"""The (h,k)-arbiter: its quorums meet as they must, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from laboratory import run

from meshlock.algorithms.arbiter import ArbiterNode, left_out
from meshlock.algorithms.interface import Effect, Enter, Message


def too_many(permits: int, wants: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The requests, the largest first, that are too many together, and not without the last."""
    for want in range(wants[-1] if wants else permits, 0, -1):
        if sum(wants) + want > permits:
            yield (*wants, want)
        else:
            yield from too_many(permits, (*wants, want))


@pytest.mark.parametrize("permits", range(1, 9))
def test_requests_that_are_too_many_leave_out_fewer_sites_than_there_are(permits: int) -> None:
    for size in range(1, 30):
        for wants in too_many(permits):
            assert sum(left_out(size, want, permits) for want in wants) < size


def test_what_is_enough_for_requests_of_one_size_is_not_for_mixed_ones() -> None:
    def tempting(size: int, want: int, permits: int) -> int:
        return (size - 1) // (permits // want + 1)

    for permits in range(1, 9):
        for want in range(1, permits + 1):
            assert tempting(7, want, permits) * (permits // want + 1) < 7
    assert (3, 2, 2) in too_many(5)
    assert sum(tempting(7, want, 5) for want in (3, 2, 2)) == 7


def test_of_all_permits_a_majority_and_of_one_almost_everybody() -> None:
    sizes = [13 - left_out(13, want, 4) for want in (1, 2, 3, 4)]
    assert sizes == [11, 10, 9, 7]
    assert [5 - left_out(5, 1, permits) for permits in (1, 2, 4)] == [3, 4, 5]


@pytest.mark.parametrize(("nodes", "permits", "want"), [(5, 1, 1), (9, 2, 1), (9, 2, 2), (9, 4, 3)])
def test_three_messages_per_member(nodes: int, permits: int, want: int) -> None:
    others = nodes - left_out(nodes, want, permits) - 1
    for workload in ("serial", "saturated"):
        done = run("arbiter", nodes, workload, 500, permits=permits, want=str(want))
        assert done.violated == {}
        assert done.messages == dict.fromkeys(("REQUEST", "GRANT", "RELEASE"), 500 * others)
        if workload == "serial":
            assert done.mean_wait == 2.0


def test_grants_are_given_back_where_requests_of_different_size_cross() -> None:
    mixed = run("arbiter", 4, "saturated", 2000, permits=3, want="1-3")
    assert (mixed.entries, mixed.violated) == (2000, {})
    assert mixed.messages["INQUIRE"] >= mixed.messages["YIELD"] > 0
    assert mixed.messages["GRANT"] == mixed.messages["REQUEST"] + mixed.messages["YIELD"]


def test_random_delays_on_links_that_keep_the_order() -> None:
    for seed in range(60):
        permits = 1 + seed % 5
        mixed = run(
            "arbiter",
            2 + seed % 7,
            "poisson:0.3" if seed % 2 else "saturated",
            60,
            permits=permits,
            want=f"1-{permits}",
            delay="uniform:0,5",
            hold="exp:1",
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})


def test_permits_released_one_by_one_let_others_in() -> None:
    out: list[Effect] = []
    nodes = [ArbiterNode(me, out, 2, 3) for me in range(2)]

    def deliver() -> list[int]:
        """All that is under way; who enters."""
        entered: list[int] = []
        while out:
            effect = out.pop(0)
            if isinstance(effect, Enter):
                entered.append(effect.client)
            elif isinstance(effect, Message):
                nodes[effect.receiver].receive(effect)
        return entered

    nodes[0].request(1, 3, 0)
    assert deliver() == [1]
    nodes[1].request(2, 2, 0)
    assert deliver() == []
    nodes[0].release_some(1, 1)
    assert deliver() == []
    nodes[0].release_some(1, 1)
    assert deliver() == [2]
    nodes[0].release(1)
    nodes[1].release(2)
    assert deliver() == []
    assert [node.granted for node in nodes] == [[], []]
