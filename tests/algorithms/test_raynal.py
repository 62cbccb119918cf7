"""Raynal's k out of M: between two and three messages per site, and Ricart-Agrawala for M = 1."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.algorithms.actor import Effect, Enter
from meshlock.algorithms.raynal import NotUsed, RaynalNode, Request
from meshlock.topology.graphs import Complete


@pytest.mark.parametrize("permits", [1, 3])
@pytest.mark.parametrize("nodes", [2, 5, 20])
def test_without_contention_two_messages_per_site(nodes: int, permits: int) -> None:
    light = run("raynal", nodes, "serial", 500, permits=permits, want=f"1-{permits}")
    others = 500 * (nodes - 1)
    assert light.messages == {"REQUEST": others, "NOT_USED": others}
    assert light.mean_wait == 2.0
    assert light.violated == {}


@pytest.mark.parametrize("workload", ["saturated", "poisson:0.1"])
def test_of_one_permit_it_is_ricart_and_agrawala(workload: str) -> None:
    counted = run("raynal", 7, workload, 700, delay="uniform:0.5,1.5")
    agreed = run("ricart-agrawala", 7, workload, 700, delay="uniform:0.5,1.5")
    assert counted.messages == {
        "REQUEST": agreed.messages["REQUEST"],
        "NOT_USED": agreed.messages["REPLY"],
    }
    assert counted.mean_wait == agreed.mean_wait
    assert counted.synchronisation_delay == agreed.synchronisation_delay


@pytest.mark.parametrize("nodes", [4, 8, 16])
def test_at_saturation_with_two_permits_almost_three_messages_per_site(nodes: int) -> None:
    heavy = run("raynal", nodes, "saturated", 2000, permits=2)
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(3 * (nodes - 1) - 0.5, rel=0.002)
    assert heavy.synchronisation_delay == 1.0
    assert max(heavy.shares) - min(heavy.shares) <= 2


def test_random_delays_on_links_that_keep_no_order() -> None:
    for seed in range(60):
        nodes, permits = 2 + seed % 6, 1 + seed % 4
        mixed = run(
            "raynal",
            nodes,
            "poisson:0.3" if seed % 2 else "saturated",
            60,
            permits=permits,
            want=f"1-{permits}",
            delay="uniform:0,5",
            hold="exp:1",
            links="unordered",
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})
        assert 2 * (nodes - 1) <= mixed.messages_per_entry <= 3 * (nodes - 1)


def test_permits_released_one_by_one_let_others_in() -> None:
    out: list[Effect] = []
    zero, one = RaynalNode(0, out, Complete(2), 3), RaynalNode(1, out, Complete(2), 3)

    def deliver() -> list[int]:
        """All that is under way; who enters."""
        entered: list[int] = []
        while out:
            effect = out.pop(0)
            if isinstance(effect, Enter):
                entered.append(effect.client)
            elif isinstance(effect, (Request, NotUsed)):
                (zero, one)[effect.receiver].receive(effect)
        return entered

    zero.request(1, 3, 0)
    assert deliver() == [1]
    one.request(2, 2, 0)
    assert deliver() == []
    zero.release_some(1, 1)
    assert deliver() == []
    zero.release_some(1, 1)
    assert deliver() == [2]
    zero.release(1)
    assert deliver() == []
    assert (one.used, one.in_use) == ([0, 0], 0)
