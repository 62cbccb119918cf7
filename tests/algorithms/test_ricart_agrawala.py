"""Ricart-Agrawala keeps the laws of its literature."""

from __future__ import annotations

import pytest
from laboratory import run


@pytest.mark.parametrize("nodes", [2, 5, 12])
@pytest.mark.parametrize("workload", ["serial", "saturated"])
def test_two_messages_per_other_site_at_any_load(nodes: int, workload: str) -> None:
    busy = run("ricart-agrawala", nodes, workload, 1200)
    assert busy.violated == {}
    assert busy.messages == {"REQUEST": 1200 * (nodes - 1), "REPLY": 1200 * (nodes - 1)}


def test_the_next_enters_one_delay_after_a_release_and_all_get_their_share() -> None:
    heavy = run("ricart-agrawala", 6, "saturated", 1200)
    assert heavy.synchronisation_delay == 1.0
    assert heavy.shares == [200] * 6


def test_alone_a_site_waits_for_one_round_trip() -> None:
    assert run("ricart-agrawala", 6, "serial", 500).mean_wait == 2.0


def test_unordered_links_harm_nobody() -> None:
    for seed in range(100):
        mixed = run(
            "ricart-agrawala",
            2 + seed % 6,
            "poisson:0.2",
            60,
            delay="uniform:0,5",
            links="unordered",
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})
