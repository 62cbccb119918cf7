"""Maekawa's voting: its quorums, its laws, its deadlock and the repair."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.algorithms.maekawa import PLANES, quorum
from meshlock.errors import Refused


@pytest.mark.parametrize("nodes", [*range(1, 40), *PLANES, 100])
def test_any_two_quorums_meet_and_everybody_is_in_its_own(nodes: int) -> None:
    quorums = [set(quorum(me, nodes)) for me in range(nodes)]
    for me, mine in enumerate(quorums):
        assert me in mine
        assert len(mine) < 2 * nodes**0.5 + 1
        for other in quorums:
            assert mine & other


@pytest.mark.parametrize("nodes", PLANES)
def test_in_a_plane_two_quorums_share_one_member_and_all_work_alike(nodes: int) -> None:
    size = len(PLANES[nodes])
    assert nodes == (size - 1) ** 2 + (size - 1) + 1
    quorums = [set(quorum(me, nodes)) for me in range(nodes)]
    for me in range(nodes):
        assert len(quorums[me]) == size
        assert sum(me in members for members in quorums) == size
        for other in range(me):
            assert len(quorums[me] & quorums[other]) == 1


@pytest.mark.parametrize(("nodes", "size"), [(3, 2), (4, 3), (7, 3), (9, 5), (13, 4), (16, 7)])
def test_without_contention_three_messages_per_member(nodes: int, size: int) -> None:
    light = run("maekawa", nodes, "serial", 500)
    others = 500 * (size - 1)
    assert light.messages == {"REQUEST": others, "LOCKED": others, "RELEASE": others}
    assert light.mean_wait == 2.0
    assert light.violated == {}


@pytest.mark.parametrize(("nodes", "size"), [(9, 5), (13, 4), (16, 7)])
def test_under_contention_votes_are_asked_back_at_most_six_messages_per_member(
    nodes: int, size: int
) -> None:
    mixed = run("maekawa", nodes, "poisson:0.02", 2000, delay="uniform:0.5,1.5", hold="exp:1")
    assert (mixed.entries, mixed.violated) == (2000, {})
    assert 3 * (size - 1) < mixed.messages_per_entry < 6 * (size - 1)
    assert mixed.messages["INQUIRE"] > mixed.messages["YIELD"] > 0
    assert mixed.messages["LOCKED"] == mixed.messages["REQUEST"] + mixed.messages["YIELD"]


@pytest.mark.parametrize(("nodes", "size"), [(9, 5), (13, 4), (16, 7)])
def test_at_saturation_every_request_fails_once_and_waits_its_turn(nodes: int, size: int) -> None:
    """REQUEST, FAILED, LOCKED, RELEASE: the queues are long, so nobody comes too early."""
    heavy = run("maekawa", nodes, "saturated", 2000)
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(4 * (size - 1), rel=0.01)
    assert max(heavy.shares) - min(heavy.shares) <= 2


def test_the_next_enters_two_delays_after_a_release() -> None:
    """RELEASE to the common member, LOCKED from there."""
    assert run("maekawa", 9, "saturated", 2000).synchronisation_delay == 2.0


def test_random_delays_on_links_that_keep_the_order() -> None:
    for seed in range(150):
        mixed = run(
            "maekawa",
            2 + seed % 9,
            "poisson:0.3" if seed % 2 else "saturated",
            80,
            delay="uniform:0,5",
            hold="exp:1",
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (80, {})


def test_without_the_repair_three_sites_hold_a_vote_each_and_wait_for_ever() -> None:
    stuck = run("maekawa-bare", 3, "saturated", 30)
    assert stuck.entries == 0
    assert stuck.violated == {"served": "at 1: 3 requests wait and nothing can happen"}
    assert run("maekawa", 3, "saturated", 30).entries == 30


def test_an_inquiry_that_overtakes_its_vote_is_lost_so_links_must_keep_the_order() -> None:
    with pytest.raises(Refused, match="--links fifo"):
        run("maekawa", 4, "saturated", 30, links="unordered")
