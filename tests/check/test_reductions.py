"""A reduction may leave out states, never a verdict."""

from __future__ import annotations

import pytest
from checks import ask, with_algorithm

from meshlock.algorithms.actor import Actor, Algorithm, Assumptions, Effect, Network
from meshlock.algorithms.general_scheme import AlwaysProxy, Request, SchemeNode, Token
from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.queues import Fifo
from meshlock.algorithms.registry import ALGORITHMS
from meshlock.check.arguments import judged
from meshlock.check.explorer import Explorer
from meshlock.check.mutants import properties_of, setup_of
from meshlock.check.persistent import Reduced
from meshlock.check.plain import Plain
from meshlock.check.setup import SetUp
from meshlock.check.verdict import Checking
from whole import WHOLE

MOST = 200_000

DEADLY = [
    mutant
    for mutant in MUTANTS.values()
    if mutant.breaks and not mutant.large and not mutant.in_recovery  # nothing is reduced
]


def reduced(what: SetUp, *names: str) -> Explorer:
    """The reduced graph alone, without the full one that follows where it finds something."""
    found = Explorer(Reduced(Plain(what, judged(list(names)))), MOST)
    while found.run(1_000) and not found.violations:
        pass
    return found


def full(what: SetUp, *names: str, most: int = MOST) -> Explorer:
    found = Explorer(Plain(what, judged(list(names))), most)
    while found.run(1_000) and not found.violations:
        pass
    return found


@pytest.mark.parametrize("mutant", DEADLY, ids=[mutant.name for mutant in DEADLY])
def test_a_reduced_check_still_kills_the_mutant(mutant: Mutant) -> None:
    checking = Checking(
        setup_of(mutant, mutant.algorithm), judged(properties_of(mutant)), MOST, "por"
    )
    if checking.remark.startswith("No reduction"):
        return  # it is the search of tests/check/test_mutants.py
    while checking.run(10) and not checking.violations():
        pass
    if mutant.name == "jiang/without-R8":  # breaks an invariant of single states, nothing else
        assert "downhill left out" in checking.summary()
    else:
        assert checking.violations()


@pytest.mark.parametrize("mutant", DEADLY, ids=[mutant.name for mutant in DEADLY])
def test_and_without_order_it_agrees_with_the_full_graph(mutant: Mutant) -> None:
    what = setup_of(mutant, mutant.algorithm)
    if what.changes:
        pytest.skip("with link changes nothing is reduced")
    names = ("safety", "one-token", "conservation", "served")
    whole = full(what, *names, most=MOST if WHOLE else 6_000)
    if whole.violations or whole.complete():
        assert bool(reduced(what, *names).violations) == bool(whole.violations)


@pytest.mark.parametrize("mutant", DEADLY, ids=[mutant.name for mutant in DEADLY])
def test_with_symmetry_the_mutant_dies_too(mutant: Mutant) -> None:
    checking = Checking(
        setup_of(mutant, mutant.algorithm), judged(properties_of(mutant)), MOST, "symmetry"
    )
    while not checking.remark and checking.run(10) and not checking.violations():
        pass
    if checking.remark:  # then it is the search of tests/check/test_mutants.py
        assert checking.remark.startswith("Symmetry is not used")
    else:
        assert checking.violations()


@pytest.mark.parametrize(
    ("algorithm", "topology", "nodes", "links", "states", "alike"),
    [
        ("naimi-trehel", "complete", 4, "fifo", 1260, 232),
        ("centralized", "star", 5, "fifo", 4335, 290),
        ("general-scheme", "complete", 4, "unordered", 9845, 1723),
        ("raymond", "star", 4, "fifo", 920, 185),
        ("raymond", "line", 4, "fifo", 981, 981),
    ],
)
def test_states_alike_but_for_names_are_one(
    algorithm: str, topology: str, nodes: int, links: str, states: int, alike: int
) -> None:
    counted = []
    for reduction in ("none", "symmetry"):
        what = ask(algorithm, topology, nodes, links=links)
        checking = Checking(what, judged([]), MOST, reduction)
        while checking.run(10_000):
            pass
        assert checking.holds()
        assert not checking.remark
        counted.append(checking.explorer.count())
    assert counted == [states, alike]


class Prefers(SchemeNode):
    """Serves the smallest name first."""

    def serve(self) -> None:
        self.waiting.items = sorted(self.waiting.items[self.waiting.head :])
        self.waiting.head = 0
        super().serve()


def test_an_algorithm_that_prefers_names_is_caught_and_checked_in_full() -> None:
    def make(
        network: Network, permits: int, options: dict[str, str], out: list[Effect]
    ) -> list[Actor]:
        return [
            Prefers(me, out, network.father(me), AlwaysProxy(), Fifo())
            for me in range(network.size)
        ]

    algorithm = Algorithm(
        "prefers", "", "", "mutex", make, (Request, Token), assumes=Assumptions(routed=True)
    )
    what = with_algorithm(ask("centralized", "star", 5), algorithm)
    checking = Checking(what, judged([]), MOST, "symmetry")
    while checking.run(10_000):
        pass
    assert checking.remark == (
        "Symmetry is not used: nodes 0 and 0 do not do the same in the same place."
    )
    assert checking.holds()
    assert checking.explorer.count() == full(what).count()


def sound() -> list[Algorithm]:
    return [entry for entry in ALGORITHMS.values() if "printed" not in entry.name]


@pytest.mark.parametrize("entry", sound(), ids=lambda entry: entry.name)
@pytest.mark.parametrize("topology", ["complete", "line"])
def test_what_holds_in_full_holds_reduced(entry: Algorithm, topology: str) -> None:
    if topology == "line" and (entry.assumes.complete_graph or entry.name == "lelann"):
        pytest.skip("needs another network")
    what = ask(entry.name, topology, 3)
    whole, part = full(what, "safety", "served"), reduced(what, "safety", "served")
    assert bool(whole.violations) == bool(part.violations)
    if not whole.violations:
        assert part.count() <= whole.count()


def test_raymond_on_a_line_of_six_has_five_times_fewer_states() -> None:
    what = ask("raymond", "line", 6)
    assert full(what).count() == 43329
    assert reduced(what).count() == 8227


def test_a_reduced_check_that_finds_something_tells_the_shortest_way() -> None:
    mutant = next(mutant for mutant in MUTANTS.values() if mutant.origin.name == "raymond")
    lengths = []
    for reduction in ("none", "por"):
        checking = Checking(setup_of(mutant, mutant.algorithm), judged([]), MOST, reduction)
        while checking.run(10_000):
            pass
        lengths.append([(found.name, len(found.labels)) for found in checking.violations()])
    assert lengths[0] == lengths[1] != []


def test_auto_reduces_where_a_node_parts_the_others() -> None:
    line, complete = ask("raymond", "line", 4), ask("suzuki-kasami", "complete", 3)
    for what, states in ((line, reduced(line).count()), (complete, full(complete).count())):
        checking = Checking(what, judged([]), MOST, "auto")
        while checking.run(10_000):
            pass
        assert checking.holds() and checking.explorer.count() == states
        assert ("seldom saves time" in checking.remark) == (what is complete)
