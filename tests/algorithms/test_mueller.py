"""Mueller's prioritized token: Naimi and Trehel's cost with priorities."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.algorithms.actor import Effect, Message
from meshlock.algorithms.mueller import MuellerNode, Request
from meshlock.topology.graphs import Complete


@pytest.mark.parametrize("nodes", [2, 8, 64])
def test_one_at_a_time_it_costs_the_harmonic_number(nodes: int) -> None:
    light = run("mueller", nodes, "serial", 20_000, priority="1-9")
    assert light.violated == {}
    harmonic = sum(1 / i for i in range(1, nodes))
    assert light.messages_per_entry == pytest.approx(harmonic, rel=0.02)


@pytest.mark.parametrize("priority", ["1", "1-9"])
@pytest.mark.parametrize("nodes", [4, 16, 64])
def test_at_saturation_an_entry_costs_two_messages(nodes: int, priority: str) -> None:
    heavy = run("mueller", nodes, "saturated", 100 * nodes, priority=priority, hold="3")
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(2.0, rel=0.03)
    assert heavy.synchronisation_delay == 1.0


@pytest.mark.parametrize(("load", "ratio"), [("0.05", 1.23), ("0.2", 0.98), ("0.4", 0.86)])
def test_what_priorities_cost_beside_the_rival_without(load: str, ratio: float) -> None:
    rival = run("naimi-trehel-original", 13, f"poisson:{load}", 4000)
    mixed = run("mueller", 13, f"poisson:{load}", 4000, priority="1-9")
    assert mixed.violated == {}
    assert mixed.messages_per_entry / rival.messages_per_entry == pytest.approx(ratio, rel=0.03)


def test_random_delays_on_links_that_keep_no_order() -> None:
    for seed in range(80):
        mixed = run(
            "mueller",
            2 + seed % 8,
            "poisson:0.3" if seed % 2 else "saturated",
            60,
            priority="1-3",
            delay="uniform:0,5",
            hold="exp:1",
            links="unordered",
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})


def test_a_request_stays_with_the_more_urgent_and_passes_the_less_urgent() -> None:
    out: list[Effect] = []
    site = MuellerNode(2, out, Complete(3))
    site.request(1, 1, 5)
    out.clear()
    site.receive(Request(2, 4, 5, 0))
    assert (out, site.queue) == ([], [(4, 5)])
    site.receive(Request(2, 3, 6, 0))
    (message,) = out
    assert isinstance(message, Message)
    assert (message.receiver, message.freeze()) == (0, ("REQUEST", 3, 6, 1))
    assert site.queue == [(4, 5)]
