"""Goscinski's token: Suzuki and Kasami's cost, and the most urgent first."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.algorithms.actor import Effect
from meshlock.algorithms.goscinski import GoscinskiNode, Request, Token
from meshlock.topology.graphs import Complete


@pytest.mark.parametrize("nodes", [2, 5, 13])
def test_it_costs_what_suzuki_and_kasami_cost(nodes: int) -> None:
    for workload in ("serial", "saturated"):
        sorted_queue = run("goscinski", nodes, workload, 1000, priority="1-9")
        plain = run("suzuki-kasami", nodes, workload, 1000, priority="1-9")
        assert sorted_queue.violated == {}
        assert sorted_queue.messages == plain.messages
    assert sorted_queue.messages_per_entry == pytest.approx(nodes, rel=0.01)
    assert sorted_queue.synchronisation_delay == 1.0


def test_random_delays_on_links_that_keep_no_order() -> None:
    for seed in range(60):
        mixed = run(
            "goscinski",
            2 + seed % 6,
            "poisson:0.3" if seed % 2 else "saturated",
            60,
            priority="1-9",
            delay="uniform:0,5",
            hold="exp:1",
            links="unordered",
            seed=seed,
        )
        assert (mixed.entries, mixed.violated) == (60, {})


def test_the_queue_is_in_order_of_priority_and_of_arrival() -> None:
    out: list[Effect] = []
    zero = GoscinskiNode(0, out, Complete(6))
    zero.request(1, 1, 0)
    for sender, priority in [(1, 4), (2, 9), (3, 7), (4, 9)]:
        request = Request(0, 1, priority)
        request.sender = sender
        zero.receive(request)
    zero.release(1)
    token = out[-1]
    assert isinstance(token, Token)
    assert (token.receiver, token.queue) == (2, ((4, 9), (3, 7), (1, 4)))
