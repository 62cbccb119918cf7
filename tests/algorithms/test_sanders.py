"""Sanders' information structures: known algorithms as instances, and what each one costs."""

from __future__ import annotations

import pytest
from laboratory import run

from meshlock.algorithms.sanders import InformationStructure
from meshlock.check.arguments import judged, setup
from meshlock.check.verdict import Checking

STRUCTURES = ["groups", "ricart-agrawala", "maekawa", "central"]


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 9, 13, 20])
def test_any_two_sites_exclude_each_other(name: str, size: int) -> None:
    structure = InformationStructure(size, name)
    for i in range(size):
        assert set(structure.informs[i]) <= set(structure.requests[i])
        assert all(structure.excludes(i, j) for j in range(size) if j != i)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("size", [4, 9, 13])
def test_without_contention_two_messages_to_ask_and_one_to_tell(name: str, size: int) -> None:
    light = run("sanders", size, "serial", 1000, structure=name)
    structure = InformationStructure(size, name)
    asked = told = 0
    for me, share in enumerate(light.shares):
        asked += share * len(set(structure.requests[me]) - {me})
        told += share * len(set(structure.informs[me]) - {me})
    expected = {"REQUEST": asked, "LOCKED": asked, "RELEASE": told}
    assert light.messages == {kind: count for kind, count in expected.items() if count}
    assert light.violated == {}


@pytest.mark.parametrize("workload", ["serial", "saturated", "poisson:0.1"])
def test_of_ricart_and_agrawala_every_message_and_no_more(workload: str) -> None:
    instance = run("sanders", 7, workload, 700, structure="ricart-agrawala")
    original = run("ricart-agrawala", 7, workload, 700)
    assert instance.messages["REQUEST"] == original.messages["REQUEST"]
    assert instance.messages["LOCKED"] == original.messages["REPLY"]
    assert set(instance.messages) == {"REQUEST", "LOCKED"}
    assert instance.mean_wait == original.mean_wait


def test_of_ricart_and_agrawala_every_state() -> None:
    def counts(algorithm: str, options: dict[str, str]) -> tuple[int, int, int]:
        checking = Checking(
            setup(algorithm=algorithm, nodes=3, options=options), judged([]), 10_000
        )
        while checking.run(10_000):
            pass
        found = checking.explorer
        assert checking.holds()
        return found.count(), found.transitions, found.depth

    instance = counts("sanders", {"structure": "ricart-agrawala"})
    assert instance == counts("ricart-agrawala", {})


@pytest.mark.parametrize("name", STRUCTURES)
def test_random_delays_on_links_that_keep_the_order(name: str) -> None:
    for seed in range(40):
        load = "poisson:0.3" if seed % 2 else "saturated"
        more = {"delay": "uniform:0,5", "seed": seed, "structure": name}
        mixed = run("sanders", 2 + seed % 8, load, 60, hold="exp:1", **more)
        assert (mixed.entries, mixed.violated) == (60, {})
