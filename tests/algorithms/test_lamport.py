"""Lamport's algorithm keeps its laws, and needs the order that it asks for."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.algorithms.actor import Effect, Enter, Message
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.topology.graphs import Complete


@pytest.mark.parametrize("nodes", [2, 5, 12])
@pytest.mark.parametrize("workload", ["serial", "saturated"])
def test_three_messages_per_other_site_at_any_load(nodes: int, workload: str) -> None:
    busy = run("lamport", nodes, workload, 1200)
    others = nodes - 1
    assert busy.violated == {}
    assert busy.messages == {
        "REQUEST": 1200 * others,
        "ACK": 1200 * others,
        "RELEASE": 1200 * others,
    }


def test_the_next_enters_one_delay_after_a_release_and_all_get_their_share() -> None:
    heavy = run("lamport", 6, "saturated", 1200)
    assert heavy.synchronisation_delay == 1.0
    assert heavy.shares == [200] * 6


def test_alone_a_site_waits_for_one_round_trip() -> None:
    assert run("lamport", 6, "serial", 500).mean_wait == 2.0


def test_random_delays_on_links_that_keep_the_order() -> None:
    for seed in range(100):
        mixed = run(
            "lamport", 2 + seed % 5, "poisson:0.2", 60, delay="uniform:0,5", hold="1", seed=seed
        )
        assert (mixed.entries, mixed.violated) == (60, {})


def test_unordered_links_are_refused() -> None:
    with pytest.raises(Refused, match="--links fifo"):
        run("lamport", 3, "saturated", 10, links="unordered")


def test_an_ack_that_overtakes_a_request_lets_two_sites_in() -> None:
    """Why: 1 has had something younger from everybody, and 0's older request is still out."""
    out: list[Effect] = []
    zero, one = find("lamport").make(Complete(2), 1, {}, out)
    zero.request(1, 1, 0)
    one.request(2, 1, 0)
    _late, from_one = list(out)
    out.clear()
    assert isinstance(from_one, Message)
    zero.receive(from_one)
    ack, entry = list(out)
    out.clear()
    assert isinstance(entry, Enter)
    assert entry.client == 1
    assert isinstance(ack, Message)
    one.receive(ack)
    (second,) = list(out)
    assert isinstance(second, Enter)
    assert second.client == 2
