"""Requests straight to the token: what its trail of pointers costs, and whom it serves."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.algorithms.direct import DirectNode, Request
from meshlock.algorithms.interface import Effect, Enter


def ramanujan(n: int) -> float:
    """Q(n) = 1 + (n-1)/n + (n-1)(n-2)/n^2 + ... (Knuth, TAOCP 1, 1.2.11.3)."""
    total, term = 0.0, 1.0
    for j in range(n):
        total += term
        term *= (n - 1 - j) / n
    return total


@pytest.mark.parametrize("nodes", [2, 3, 8, 32])
def test_the_trail_to_the_token_has_ramanujans_length(nodes: int) -> None:
    light = run("direct", nodes, "serial", 20_000)
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx(ramanujan(nodes) - 1 / nodes, rel=0.02)


@pytest.mark.parametrize("nodes", [4, 16, 64])
def test_at_saturation_an_entry_costs_two_messages(nodes: int) -> None:
    heavy = run("direct", nodes, "saturated", 100 * nodes, hold="5")
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(2.0, rel=0.02)
    assert heavy.synchronisation_delay == 1.0
    assert max(heavy.shares) - min(heavy.shares) <= 2


def test_links_that_keep_no_order_harm_nobody() -> None:
    for seed in range(100):
        mixed = run(
            "direct",
            2 + seed % 6,
            "poisson:0.2",
            60,
            permits=1 + seed % 3,
            want=f"1-{1 + seed % 3}",
            priority="1-9",
            clients=1 + seed % 2,
            delay="uniform:0,5",
            links="unordered",
            topology=["complete", "line", "star"][seed % 3],
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})


def test_a_withdrawal_that_overtakes_its_request_is_remembered() -> None:
    """Else the request holds up whoever is behind it until all that it wants is free."""
    out: list[Effect] = []
    holder = DirectNode(0, out, 2, 0)
    holder.request(1, 1, 1)
    holder.receive(Request(0, 1, 2, 0, 0, 0, 0, 0))  # node 1 wants nothing any more ...
    holder.receive(Request(0, 1, 1, 2, 9, 9, 0, 0))  # ... than these two permits
    holder.request(2, 1, 1)
    assert [effect.client for effect in out if isinstance(effect, Enter)] == [1, 2]
