"""The (h,k)-arbiter: its quorums meet as they must, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from laboratory import run

from meshlock.algorithms.actor import Effect, Enter, Message
from meshlock.algorithms.arbiter import ArbiterNode, left_out
from meshlock.topology.graphs import Complete


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


class Sites:
    """Sites whose messages arrive in the order of sending, all of them at once."""

    def __init__(self, size: int, permits: int) -> None:
        self.out: list[Effect] = []
        self.nodes = [ArbiterNode(me, self.out, Complete(size), permits) for me in range(size)]

    def __getitem__(self, site: int) -> ArbiterNode:
        return self.nodes[site]

    def deliver(self, most: int = 1000) -> list[int]:
        """This number of messages arrives; who enters."""
        entered: list[int] = []
        while self.out and most > 0:
            effect = self.out.pop(0)
            if isinstance(effect, Enter):
                entered.append(effect.client)
            elif isinstance(effect, Message):
                self.nodes[effect.receiver].receive(effect)
                most -= 1
        return entered + [effect.client for effect in self.out if isinstance(effect, Enter)]


def test_permits_released_one_by_one_let_others_in() -> None:
    sites = Sites(2, 3)
    sites[0].request(1, 3, 0)
    assert sites.deliver() == [1]
    sites[1].request(2, 2, 0)
    assert sites.deliver() == []
    sites[0].release_some(1, 1)
    assert sites.deliver() == []
    sites[0].release_some(1, 1)
    assert sites.deliver() == [2]
    sites[0].release(1)
    sites[1].release(2)
    assert sites.deliver() == []
    assert [node.granted for node in sites.nodes] == [[], []]


def test_a_part_does_not_let_in_more_than_there_are_permits() -> None:
    """3 of 5 sites grant all three permits, but of 5 requests for one, 4 sites each, four could
    then be in."""
    sites = Sites(5, 3)
    sites[0].request(1, 3, 0)
    assert sites.deliver() == [1]
    for site in (1, 2, 3):
        sites[site].request(site + 1, 1, 0)
    assert sites.deliver() == []
    sites[0].release_some(1, 2)
    entered = sites.deliver()
    assert len(entered) == 2
    for client in entered:
        sites[client - 1].release(client)
    assert len(sites.deliver()) == 1


def test_a_part_is_free_before_earlier_requests_that_wait_for_it() -> None:
    """Of 7 sites 6 asks four for three permits, and one more when it keeps two of them; there, two
    requests that were made before are granted already, and wait for what 6 releases."""
    sites = Sites(7, 3)
    for site in (3, 5):
        sites[site].request(site + 1, 1, 0)
    earlier, sites.out[:] = sites.out[:], []
    sites[6].request(7, 3, 0)
    assert sites.deliver() == [7]
    sites.out += earlier
    assert sites.deliver() == []
    assert [claim[1] for claim in sites[3].granted] == [3, 5]
    sites[6].release_some(7, 1)
    assert len(sites.deliver()) == 1


def test_who_leaves_before_its_part_is_free_leaves_nothing_behind() -> None:
    for most in range(12):
        sites = Sites(3, 2)
        sites[0].request(1, 2, 0)
        assert sites.deliver() == [1]
        sites[0].release_some(1, 1)
        sites.deliver(most)
        sites[0].release(1)
        sites[0].request(2, 2, 0)
        assert sites.deliver() == [2]
        sites[0].release(2)
        assert sites.deliver() == []
        assert [(node.granted, node.queue) for node in sites.nodes] == [([], [])] * 3
