"""Naimi and Trehel's original: its laws, and the variant of the general scheme beside it."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.algorithms.actor import NIL, Effect, Enter, Message
from meshlock.algorithms.naimi_trehel import NaimiTrehelNode
from meshlock.topology.graphs import Complete

ORIGINAL = "naimi-trehel-original"


@pytest.mark.parametrize("nodes", [2, 8, 64])
def test_one_at_a_time_it_costs_the_harmonic_number_as_the_variant_does(nodes: int) -> None:
    light = run(ORIGINAL, nodes, "serial", 20_000)
    harmonic = sum(1 / i for i in range(1, nodes))
    assert light.violated == {}
    assert light.messages_per_entry == pytest.approx(harmonic, rel=0.02)
    assert light.messages == run("naimi-trehel", nodes, "serial", 20_000).messages


@pytest.mark.parametrize("nodes", [2, 3, 4, 8, 16])
def test_at_saturation_just_under_four(nodes: int) -> None:
    heavy = run(ORIGINAL, nodes, "saturated", 400 * nodes, hold="3")
    assert heavy.violated == {}
    assert heavy.messages_per_entry == pytest.approx(4 - 6 / (nodes + 1), rel=0.005)
    assert heavy.synchronisation_delay == 1.0
    assert max(heavy.shares) - min(heavy.shares) <= 1


def test_links_that_keep_no_order_harm_nobody() -> None:
    for seed in range(60):
        load = "poisson:0.3" if seed % 2 else "saturated"
        more = {"delay": "uniform:0,5", "links": "unordered", "seed": seed}
        mixed = run(ORIGINAL, 2 + seed % 7, load, 60, hold="exp:1", **more)
        assert (mixed.entries, mixed.violated) == (60, {})


class Row(Complete):
    """Each node's father is the one before."""

    def father(self, node: int) -> int:
        return node - 1 if node > 0 else NIL


def test_the_worst_tree_is_a_line_and_one_request_makes_it_flat() -> None:
    out: list[Effect] = []
    line = [NaimiTrehelNode(me, out, Row(6)) for me in range(6)]
    line[5].request(1, 1, 0)
    sent = 0
    while out:
        effect = out.pop(0)
        if isinstance(effect, Message):
            sent += 1
            line[effect.receiver].receive(effect)
        else:
            assert isinstance(effect, Enter)
    assert sent == 6
    assert [node.father for node in line] == [5, 5, 5, 5, 5, NIL]
