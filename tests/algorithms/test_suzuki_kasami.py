"""Suzuki-Kasami keeps the laws of its literature."""

from __future__ import annotations

import pytest
from laboratory import run


@pytest.mark.parametrize("nodes", [5, 16])
def test_an_entry_costs_all_or_nothing(nodes: int) -> None:
    light = run("suzuki-kasami", nodes, "serial", 4000)
    moves = light.messages["TOKEN"]
    assert light.violated == {}
    assert light.messages["REQUEST"] == moves * (nodes - 1)
    assert light.messages_per_entry == pytest.approx(nodes - 1, rel=0.02)
    assert light.mean_wait == 2 * moves / light.entries


@pytest.mark.parametrize("nodes", [5, 16])
def test_at_saturation_every_entry_costs_all_and_follows_after_one_delay(nodes: int) -> None:
    heavy = run("suzuki-kasami", nodes, "saturated", 1000 * nodes)
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(nodes, rel=0.001)
    assert heavy.synchronisation_delay == 1.0
    assert max(heavy.shares) - min(heavy.shares) <= 2


def test_unordered_links_harm_nobody() -> None:
    for seed in range(100):
        mixed = run(
            "suzuki-kasami",
            2 + seed % 6,
            "poisson:0.2",
            60,
            delay="uniform:0,5",
            links="unordered",
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})
