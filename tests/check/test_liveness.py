"""Nobody waits for ever while others go round, unless the algorithm lets them."""

from __future__ import annotations

from array import array

import pytest
from checks import ask, explore, with_algorithm

from meshlock.algorithms.general_scheme import Request, SchemeNode, Token, TransitWhileHolding
from meshlock.algorithms.interface import Algorithm, Effect, Network, Node
from meshlock.algorithms.queues import Fifo
from meshlock.check.lasso import components
from meshlock.check.story import pages


def test_components_with_a_cycle() -> None:
    """0 -> 1 -> 2 -> 0 and 2 -> 3 -> 4, 4 -> 4, 5 alone."""
    edges = array("I", [1, 2, 0, 3, 4, 4])
    offsets = array("Q", [0, 1, 2, 4, 5, 6, 6])
    assert [sorted(part) for part in components(6, edges, offsets)] == [[4], [0, 1, 2]]


class Stack(Fifo):
    """Last come, first served."""

    def pop(self) -> int:
        return self.items.pop()


def stacked() -> Algorithm:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Node]:
        return [
            SchemeNode(me, out, network.father(me), TransitWhileHolding(), Stack())
            for me in range(network.size)
        ]

    return Algorithm("stacked", "", "", "mutex", make, (Request, Token))


def test_one_request_each_is_served_even_from_a_stack() -> None:
    assert explore(with_algorithm(ask("raymond", "star", 4), stacked())).holds()


def test_asking_again_and_again_three_leaves_starve_a_fourth() -> None:
    checking = explore(
        with_algorithm(
            ask("raymond", "star", 5, requests=["1", "2", "3", "4"], repeat=True), stacked()
        )
    )
    (found,) = checking.violations()
    assert found.name == "liveness"
    starved = int(found.text.split()[1])
    lines = pages(checking.system, found)
    turn = lines.index("  -- from here on it goes round for ever --")
    entering = {line.split()[-1] for line in lines[turn:] if "ENTERS" in line}
    assert entering == {f"{client})" for client in {1, 2, 3, 4} - {starved}}


@pytest.mark.parametrize("algorithm", ["raymond", "naimi-trehel", "centralized", "lelann"])
@pytest.mark.parametrize("links", ["fifo", "unordered"])
def test_asking_again_and_again_everybody_is_served(algorithm: str, links: str) -> None:
    topology = "ring" if algorithm == "lelann" else "complete"
    checking = explore(ask(algorithm, topology, 3, repeat=True, links=links))
    assert checking.holds()
    assert checking.explorer.backward > 0


def test_a_token_that_circles_is_no_excuse_only_while_it_is_delivered() -> None:
    """Le Lann's idle token goes round for ever, and yet nobody starves: messages arrive."""
    assert explore(ask("lelann", "ring", 3)).holds()
