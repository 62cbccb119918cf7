"""Nobody waits for ever while others go round, unless the algorithm lets them."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from checks import ask, explore, with_algorithm

from meshlock.algorithms.actor import Actor, Algorithm, Effect, Network
from meshlock.algorithms.general_scheme import Request, SchemeNode, Token, TransitWhileHolding
from meshlock.algorithms.queues import Fifo
from meshlock.check.lasso import components
from meshlock.check.retold import write_trace
from meshlock.check.story import pages
from meshlock.check.verdict import Checking
from meshlock.cli.replay import read
from whole import WHOLE


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
    ) -> list[Actor]:
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
    lines = pages(checking.model, found)
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


HIGH_AND_LOW = ["0:1@2", "1:1@2", "2:1@1"]
"""Two of priority 2, and one of priority 1 that has to wait for them."""

LOW_WANTS_BOTH = ["0:1@2", "1:1@2", "2:2@1"]


def competition(topology: str, permits: int, **options: str) -> Checking:
    """Three nodes ask for ever, two of them with the higher priority."""
    requests = HIGH_AND_LOW if permits == 1 else LOW_WANTS_BOTH
    options = {"patience": "1", **options}
    return explore(
        ask("jiang", topology, 3, permits=permits, requests=requests, options=options, repeat=True)
    )


@pytest.mark.parametrize("topology", ["line", "complete"])
@pytest.mark.parametrize("permits", [1, 2])
def test_by_priority_alone_two_starve_a_third(topology: str, permits: int) -> None:
    checking = competition(topology, permits, ageing="none")
    assert checking.complete()
    (found,) = checking.violations()
    assert found.name == "liveness"
    assert found.text.startswith("client 3 waits for ever")
    lines = pages(checking.model, found)
    turn = lines.index("  -- from here on it goes round for ever --")
    entering = {line.split()[-1] for line in lines[turn:] if "ENTERS" in line}
    assert entering == {"1)", "2)"}


@pytest.mark.parametrize(
    ("ageing", "permits", "topology"),
    [("stamped", 1, "complete"), ("stamped", 2, "line")]
    + [("printed", 1, "line"), ("printed", 2, "complete")]
    + [("stamped", 1, "line"), ("stamped", 2, "complete")] * WHOLE
    + [("printed", 1, "complete"), ("printed", 2, "line")] * WHOLE,
)
def test_with_ageing_nobody_starves_however_long_others_compete(
    topology: str, permits: int, ageing: str
) -> None:
    """Theorem 3 where the competition never ends, seen to the end."""
    checking = competition(topology, permits, ageing=ageing)
    assert checking.holds()
    assert checking.explorer.backward > 0


def test_starvation_is_told_with_heights_and_counts_as_they_are(tmp_path: Path) -> None:
    """The way to a lasso is found among ranks and played again in the simulator."""
    checking = competition("line", 1, ageing="none")
    trace = tmp_path / "starves.jsonl"
    with trace.open("wb") as file:
        write_trace(checking.model, checking.violations()[0], file)
    schedule, entries = read(trace)
    assert schedule.play(strict=True).outcome().entries == entries
