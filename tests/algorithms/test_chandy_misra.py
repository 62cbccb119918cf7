"""Chandy and Misra's forks: the node that ate last has them, and gives them up."""

from __future__ import annotations

import pytest
from laboratory import prepare, run

from meshlock.algorithms.chandy_misra import ChandyMisraNode


@pytest.mark.parametrize("nodes", [2, 3, 8, 32])
def test_one_at_a_time_half_of_the_forks_are_elsewhere(nodes: int) -> None:
    light = run("chandy-misra", nodes, "serial", 6000)
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx(nodes - 1, rel=0.03)
    assert light.mean_wait == pytest.approx(2 * (1 - 1 / nodes), rel=0.03)
    assert light.messages["REQUEST"] == light.messages["FORK"]


@pytest.mark.parametrize("nodes", [2, 5, 13])
def test_at_saturation_every_fork_is_elsewhere(nodes: int) -> None:
    heavy = run("chandy-misra", nodes, "saturated", 200 * nodes)
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(2 * (nodes - 1), rel=0.01)
    assert heavy.synchronisation_delay == 1.0
    assert max(heavy.shares) - min(heavy.shares) <= 1


def test_random_delays_on_links_that_keep_no_order() -> None:
    for seed in range(60):
        load = "poisson:0.3" if seed % 2 else "saturated"
        more = {"delay": "uniform:0,5", "links": "unordered", "seed": seed}
        mixed = run("chandy-misra", 2 + seed % 7, load, 60, hold="exp:1", **more)
        assert (mixed.entries, mixed.violated) == (60, {})


def test_the_order_never_has_a_circle() -> None:
    """Of a fork at rest: dirty, its owner gives way; clean, the other one does."""
    ready = prepare("chandy-misra", 5, "poisson:0.5", 200, delay="uniform:0,3", seed=3)
    while ready.run(1):
        before: dict[int, set[int]] = {site: set() for site in range(5)}
        for node in ready.nodes:
            assert isinstance(node, ChandyMisraNode)
            for site in node.forks:
                first, last = (site, node.me) if site in node.dirty else (node.me, site)
                before[first].add(last)
        left = set(range(5))
        while left:
            free = [site for site in left if not any(site in before[other] for other in left)]
            assert free
            left -= set(free)
