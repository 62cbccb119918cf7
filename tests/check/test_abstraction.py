"""Heights are only compared, so their order is all that a state need keep of them."""

from __future__ import annotations

import pytest
from checks import ask, counts, explore

from meshlock.check.abstraction import Compared, applies
from meshlock.check.explorer import Explorer
from meshlock.check.questions import judged
from meshlock.check.system import System


@pytest.mark.parametrize(
    ("topology", "nodes", "requests"),
    [("line", 3, ["0", "1", "2"]), ("line", 3, ["0", "0", "2", "2"]), ("ring", 4, ["1", "3"])],
)
def test_every_step_has_its_like(topology: str, nodes: int, requests: list[str]) -> None:
    """Ranking and then stepping is stepping and then ranking, in every state there is."""
    system = System(ask("reverse-link", topology, nodes, requests=requests), judged([]))
    compared = Compared(system)
    explorer = Explorer(system, 100_000)
    while explorer.run(10_000):
        pass
    for state in explorer.states:
        system.expand(state)
        ranked = {compared.ranked(successor) for successor in system.successors}
        compared.expand(compared.ranked(state))
        assert set(compared.successors) == ranked


def test_two_nodes_that_ask_for_ever_come_round() -> None:
    checking = explore(ask("reverse-link", "line", 2, repeat=True))
    assert checking.holds()
    assert counts(checking) == (28, 58, 12)
    assert checking.explorer.backward > 0


def test_without_it_there_is_no_end() -> None:
    system = System(ask("reverse-link", "line", 2, repeat=True), judged([]))
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
    assert applies(System(ask("reverse-link", "line", 3), judged([])))
    assert not applies(System(ask("reverse-link", "line", 3, flips=1), judged([])))
    assert not applies(System(ask("raymond", "line", 3), judged([])))
