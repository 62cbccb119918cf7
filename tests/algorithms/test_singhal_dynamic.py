"""Singhal's dynamic structure: of two sites, one asks the other."""

from __future__ import annotations

import pytest
from laboratory import prepare, run

from meshlock.algorithms.singhal_dynamic import SinghalDynamicNode


@pytest.mark.parametrize("nodes", [2, 3, 8, 32])
def test_one_at_a_time_half_of_the_others_are_asked(nodes: int) -> None:
    light = run("singhal-dynamic", nodes, "serial", 6000)
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx(nodes - 1, rel=0.03)
    assert light.mean_wait == pytest.approx(2 * (1 - 1 / nodes), rel=0.03)
    forks = run("chandy-misra", nodes, "serial", 6000)
    assert light.messages["REQUEST"] == light.messages["REPLY"] == forks.messages["FORK"]


@pytest.mark.parametrize("nodes", [2, 5, 13])
def test_at_saturation_everybody_is_asked(nodes: int) -> None:
    heavy = run("singhal-dynamic", nodes, "saturated", 200 * nodes)
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(2 * (nodes - 1), rel=0.01)
    assert heavy.synchronisation_delay == 1.0
    assert max(heavy.shares) - min(heavy.shares) <= 1


def test_random_delays_on_links_that_keep_no_order() -> None:
    for seed in range(60):
        load = "poisson:0.3" if seed % 2 else "saturated"
        more = {"delay": "uniform:0,5", "links": "unordered", "seed": seed}
        mixed = run("singhal-dynamic", 2 + seed % 7, load, 60, hold="exp:1", **more)
        assert (mixed.entries, mixed.violated) == (60, {})


def test_of_any_two_sites_one_must_ask_the_other() -> None:
    ready = prepare("singhal-dynamic", 6, "poisson:0.5", 200, delay="uniform:0,3", seed=3)
    while ready.run(1):
        sets: list[set[int]] = []
        for node in ready.nodes:
            assert isinstance(node, SinghalDynamicNode)
            sets.append(node.request_set)
        for one in range(6):
            assert all(other in sets[one] or one in sets[other] for other in range(one))


def test_the_last_one_in_asks_nobody() -> None:
    ready = prepare("singhal-dynamic", 4, "serial", 40)
    while ready.run(1):
        pass
    asked = sorted(
        [len(node.request_set) for node in ready.nodes if isinstance(node, SinghalDynamicNode)]
    )
    assert asked == [0, 1, 2, 3]
