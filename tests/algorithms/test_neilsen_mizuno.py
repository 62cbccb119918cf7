"""Neilsen-Mizuno: requests along the tree, the token straight to its next user."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.topology.specification import network


@pytest.mark.parametrize("nodes", [4, 10, 40])
def test_on_a_star_three_messages_or_two_or_none(nodes: int) -> None:
    """3 from leaf to leaf, 2 if one of them is the centre, 0 at the holder."""
    leaves = nodes - 1
    law = (3 * leaves * (leaves - 1) + 2 * 2 * leaves) / nodes**2
    light = run("neilsen-mizuno", nodes, "serial", 10_000, topology="star")
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx(law, rel=0.02)


@pytest.mark.parametrize("topology", ["line", "tree", "ring", "grid:4x4"])
def test_one_request_at_a_time_costs_the_way_and_the_token(topology: str) -> None:
    """The tree is the breadth-first tree from node 0."""
    nodes = 16
    light = run("neilsen-mizuno", nodes, "serial", 10_000, topology=topology)
    graph = network(topology, nodes, 1)
    above: list[list[int]] = []
    for node in range(nodes):
        way = [node]
        while way[-1] != 0:
            way.append(graph.father(way[-1]))
        above.append(way)
    distances = [len(set(one) ^ set(other)) for one in above for other in above]
    law = sum(far + 1 for far in distances if far) / nodes**2
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx(law, rel=0.02)


def test_at_saturation_the_next_enters_after_one_delay_and_all_get_their_share() -> None:
    heavy = run("neilsen-mizuno", 10, "saturated", 4000)
    assert heavy.violated == {}
    assert heavy.synchronisation_delay == 1.0
    assert heavy.shares == [400] * 10
    assert heavy.messages_per_entry < 3


def test_unordered_links_harm_nobody() -> None:
    for seed in range(100):
        mixed = run(
            "neilsen-mizuno",
            2 + seed % 6,
            "poisson:0.2",
            60,
            topology=("line", "star", "complete", "tree")[seed % 4],
            delay="uniform:0,5",
            links="unordered",
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})
