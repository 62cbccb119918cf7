"""The checker finds every mistake that we could think of, and nothing in the originals."""

from __future__ import annotations

from collections import Counter

import pytest
from checks import ask, explore

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.registry import ALGORITHMS
from meshlock.check.arguments import judged
from meshlock.check.mutants import properties_of, setup_of
from meshlock.check.structure import NAMES as INVARIANTS
from meshlock.check.verdict import Checking
from meshlock.errors import Refused
from whole import WHOLE

SMALL = [mutant for mutant in MUTANTS.values() if not mutant.large]
DEADLY = [mutant for mutant in SMALL if mutant.breaks]


SetUpKey = tuple[str, str, tuple[str, ...]]
SEEN: Counter[SetUpKey] = Counter()
"""How many states were seen in a set-up until its mutants died."""

SOUND: set[tuple[SetUpKey, bool]] = set()
"""Set-ups of several mutants in which the original was explored already, and whether to the end."""


def named(mutants: list[Mutant]) -> list[str]:
    return [mutant.name for mutant in mutants]


def judged_of(mutant: Mutant) -> set[str]:
    """An invariant breaks before anything comes of it; a mutant names one of the two."""
    every = judged(properties_of(mutant))
    return every if mutant.breaks in INVARIANTS else every - set(INVARIANTS)


def set_up_of_original(mutant: Mutant) -> SetUpKey:
    return mutant.origin.name, repr(mutant.case), tuple(properties_of(mutant))


@pytest.mark.parametrize("mutant", SMALL, ids=named(SMALL))
def test_every_mutant_breaks_what_it_says_in_so_many_steps(mutant: Mutant) -> None:
    check = Checking(setup_of(mutant, mutant.algorithm), judged_of(mutant), 500_000)
    while not check.explorer.violations and check.run(1):
        pass
    lead = len(mutant.case.get("lead", []))
    found = [(each.name, lead + len(each.labels)) for each in check.violations()]
    SEEN[set_up_of_original(mutant)] = max(SEEN[set_up_of_original(mutant)], check.explorer.count())
    if mutant.breaks:
        assert found[:1] == [(mutant.breaks, mutant.steps)]
    else:
        assert check.holds()


@pytest.mark.parametrize("mutant", DEADLY, ids=named(DEADLY))
def test_the_original_is_sound_in_the_same_set_up(mutant: Mutant) -> None:
    if mutant.prevents:
        with pytest.raises(Refused, match=f"'{mutant.prevents}' is not possible here"):
            Checking(setup_of(mutant, mutant.origin), judged_of(mutant), 500_000)
        return
    key = set_up_of_original(mutant)
    to_the_end = WHOLE or mutant.breaks in ("served", "liveness")
    if (key, to_the_end) in SOUND:
        return
    SOUND.add((key, to_the_end))
    most = 500_000 if WHOLE else max(500, min(SEEN[key], 3_000))
    check = Checking(setup_of(mutant, mutant.origin), judged_of(mutant), most)
    while check.run(10_000) if to_the_end else check.explorer.run(10_000):
        pass  # what is judged when a search has ended is judged for mutants that break it
    assert check.holds() if WHOLE else not check.explorer.violations


def test_every_sound_algorithm_has_three_mutants_or_more() -> None:
    origins = [mutant.origin.name for mutant in MUTANTS.values() if mutant.breaks]
    unsound = {"maekawa-bare", "jiang-printed"}
    assert {name for name in ALGORITHMS if origins.count(name) < 3} == unsound


def test_a_neighbour_has_two_entries_only_without_r3_and_r10() -> None:
    """R10 withdraws a request before it is made again, so that R3 alone changes nothing."""

    def states(undone: str) -> int:
        checking = explore(
            ask(
                f"jiang/without-{undone}",
                "line",
                3,
                requests=["0:1@1", "2:1@5", "1:1@3"],
                changes=["up 0-2", "down 1-2"],
            )
        )
        assert checking.holds()
        return checking.explorer.count()

    assert states("R3+R10") > states("R10")
