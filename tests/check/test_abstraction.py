"""Heights, counts and ranks are only compared: how they compare is all that a state need keep."""

from __future__ import annotations

import pytest
from checks import ask, counts, explore

from meshlock.check.abstraction import Compared, Scale, applies
from meshlock.check.arguments import judged
from meshlock.check.explorer import Explorer
from meshlock.check.plain import Plain
from whole import WHOLE


@pytest.mark.parametrize(
    ("topology", "nodes", "requests"),
    [("line", 3, ["0", "1", "2"]), ("line", 3, ["0", "0", "2", "2"]), ("ring", 4, ["1", "3"])],
)
def test_every_step_has_its_like(topology: str, nodes: int, requests: list[str]) -> None:
    """Ranking and then stepping is stepping and then ranking, in every state there is."""
    system = Plain(ask("reverse-link", topology, nodes, requests=requests), judged([]))
    compared = Compared(system)
    explorer = Explorer(system, 100_000)
    while explorer.run(10_000):
        pass
    for state in explorer.states:
        system.expand(state)
        ranked = {compared.alike(successor) for successor in system.successors}
        compared.expand(compared.alike(state))
        assert set(compared.successors) == ranked


@pytest.mark.parametrize(
    ("topology", "permits", "requests", "options"),
    [
        ("line", 1, ["0:1@2", "1:1@2", "2:1@1"], {"ageing": "none"}),
        ("line", 1, ["0:1@2", "1:1@2", "2:1@1"], {"ageing": "printed", "patience": "2"}),
        ("line", 1, ["0:1@2", "1:1@2", "2:1@1"], {"patience": "1"}),
        ("line", 1, ["0:1@2", "1:1@2", "2:1@1"], {"patience": "3"}),
        ("complete", 2, ["0:1@2", "1:1@4", "2:2@1"], {"patience": "1"}),
        ("complete", 2, ["0:1@2", "1:1@4", "2:2@1"], {"patience": "2", "moves": "silent"}),
        ("line", 2, ["0:1@2", "1:1@4", "2:2@1"], {"patience": "2", "backfill": "on"}),
    ],
)
def test_every_step_of_jiang_has_its_like(
    topology: str, permits: int, requests: list[str], options: dict[str, str]
) -> None:
    """The same where counts and ranks are compared, in the first states of an endless run."""
    setup = ask(
        "jiang", topology, 3, permits=permits, requests=requests, options=options, repeat=True
    )
    system = Plain(setup, judged([]))
    compared = Compared(system)
    explorer = Explorer(system, 6_000 if WHOLE else 2_000)
    while explorer.run(10_000):
        pass
    for state in explorer.states:
        system.expand(state)
        alike = [compared.alike(successor) for successor in system.successors]
        labels = system.labels[:]
        compared.expand(compared.alike(state))
        assert compared.successors == alike
        assert compared.labels == labels


def test_a_node_that_has_not_heard_for_long_is_as_one_that_has_not_heard_for_some_time() -> None:
    """Counts and ranks that are 100 and 1000 apart come near, in the same order."""
    system = Plain(
        ask("jiang", "line", 2, requests=["0@1", "1@3"], options={"patience": "4"}), judged([])
    )
    found = Scale(True)
    found.counts = dict.fromkeys((1007, 1005, 900), 0)
    found.ranks = dict.fromkeys((12 - 1003, 4 - 1000, 8), 0)
    scale = Compared(system).scale(found)
    assert scale.counts == {1007: 3, 1005: 1, 900: -16}
    assert scale.ranks == {12 - 1003: 12 + 1, 4 - 1000: 4 + 4, 8: 36}


def test_two_nodes_that_ask_for_ever_come_round() -> None:
    checking = explore(ask("reverse-link", "line", 2, repeat=True))
    assert checking.holds()
    assert counts(checking) == (28, 58, 12)
    assert checking.explorer.backward > 0


def test_without_it_there_is_no_end() -> None:
    system = Plain(ask("reverse-link", "line", 2, repeat=True), judged([]))
    explorer = Explorer(system, 5000)
    while explorer.run(1000):
        pass
    assert not explorer.complete()


def test_three_nodes_come_round_as_long_as_links_are_not_flooded() -> None:
    checking = explore(ask("reverse-link", "line", 3, repeat=True, capacity=2))
    assert checking.holds()
    assert counts(checking) == (862, 2812, 34)
    assert checking.summary().endswith("hold with at most 2 messages on a link.")


def test_where_links_change_heights_are_left_alone() -> None:
    assert applies(Plain(ask("reverse-link", "line", 3), judged([])))
    assert not applies(Plain(ask("reverse-link", "line", 3, flips=1), judged([])))
    assert not applies(Plain(ask("raymond", "line", 3), judged([])))
