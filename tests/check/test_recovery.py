"""Recovery under every interleaving of small bounds: nothing breaks, and every undone rule does."""

from __future__ import annotations

from pathlib import Path

import pytest
from meshlock.algorithms.recovery.node import RecoveryNode

from meshlock.check.explorer import Explorer
from meshlock.check.recovery import Bounds, RecoveryModel, Unplayable
from meshlock.check.recovery_mutants import MUTANTS, RecoveryMutant

LIST = Path(__file__).parents[2] / "docs" / "mutants.md"
NAMES = [mutant.name for mutant in MUTANTS]
LONGEST = 30  # ticks after the last fault within which all must be served and all permits free


def explored(model: RecoveryModel, most: int = 400_000) -> Explorer:
    explorer = Explorer(model, most)
    while explorer.run(10_000):
        pass
    return explorer


# -- the original holds ----------------------------------------------------------------------

PINNED = [
    ("nothing fails", Bounds(proposals=0, wants={0: 1, 1: 1}), 2_112, 7_248, 15),
    (
        "a healthy token is replaced",
        Bounds(wants={1: 1}, proposers=(2,), leaves=False),
        27_164,
        119_793,
        24,
    ),
    (
        "the holder crashes, disks survive",
        Bounds(wants={0: 1}, proposers=(1,), crashes=1, crashing=(0,), leaves=False),
        53_032,
        212_589,
        27,
    ),
    (
        "one crash, and the disk may be gone",
        Bounds(wants={}, proposers=(1,), crashes=1, crashing=(2,), forgets=1),
        18_146,
        70_856,
        22,
    ),
    ("two proposers duel", Bounds(wants={}, proposals=2, proposers=(1, 2)), 43_355, 168_597, 22),
    (
        "the holder duels with another",
        Bounds(wants={}, proposals=2, proposers=(0, 1)),
        29_555,
        113_644,
        22,
    ),
    (
        "birth, with a duel",
        Bounds(wants={}, proposals=2, proposers=(0, 1), born=True),
        35_980,
        142_025,
        26,
    ),
    (
        "a clock misses a tick",
        Bounds(wants={0: 1}, proposers=(2,), slow=1, lease=2, wait=3, leaves=False),
        25_258,
        136_069,
        23,
    ),
    (
        "renewals travel",
        Bounds(wants={}, proposers=(2,), detached=True),
        40_270,
        257_904,
        27,
    ),
    (
        "two permits for two",
        Bounds(permits=2, wants={0: 1, 1: 1}, proposals=0),
        15_641,
        64_818,
        19,
    ),
    (
        "a client that is no member",
        Bounds(1, 1, proposals=2, wants={1: 1}, crashes=1, leaves=False),
        46_631,
        167_932,
        26,
    ),
    (
        "three clients of two nodes, two priorities",
        Bounds(clients=((1, 1, 0), (1, 1, 1), (2, 1, 0)), proposals=0, leaves=False),
        13_446,
        50_703,
        18,
    ),
    (
        "of two clients of a node one gives up",
        Bounds(clients=((1, 1, 0), (1, 1, 1)), proposals=0, withdraws=1),
        20_927,
        92_269,
        15,
    ),
    (
        "a token in doubt is sent again, twice",
        Bounds(wants={1: 1}, proposals=0, repeats=2),
        3_737,
        16_569,
        14,
    ),
    (
        "a member is added to two, the holder may crash",
        Bounds(2, 1, wants={}, changes=((True, 2),), proposers=(0,), crashes=1, crashing=(0,)),
        1_387,
        4_326,
        18,
    ),
    (
        "a member is added to three",
        Bounds(3, 1, wants={}, changes=((True, 3),), proposers=(0,)),
        6_115,
        24_377,
        21,
    ),
    (
        "one of three is removed",
        Bounds(wants={}, proposers=(0,), changes=((False, 2),), crashes=1, crashing=(1,)),
        9_029,
        29_955,
        22,
    ),
    (
        "one of two is removed while it proposes, and may crash",
        Bounds(2, wants={}, proposals=2, changes=((False, 1),), crashes=1),
        8_925,
        21_950,
        22,
    ),
]


@pytest.mark.parametrize(
    ("bounds", "states", "transitions", "depth"),
    [row[1:] for row in PINNED],
    ids=[row[0] for row in PINNED],
)
def test_every_state_within_the_bounds_is_sound(
    bounds: Bounds, states: int, transitions: int, depth: int
) -> None:
    explorer = explored(RecoveryModel(bounds))
    assert explorer.complete()
    assert list(explorer.violations) == []
    assert (explorer.count(), explorer.transitions, explorer.depth) == (states, transitions, depth)


# -- mutants ---------------------------------------------------------------------------------


def died(mutant: RecoveryMutant) -> str:
    """By which property, after how many steps, those that lead in included."""
    model = RecoveryModel(mutant.bounds, mutant.make, mutant.script)
    explorer = Explorer(model, 400_000)
    while not explorer.violations and explorer.run(1):
        pass
    lead = len(mutant.script)
    found = sorted(explorer.violations.values(), key=lambda one: len(one.labels))
    if found:
        return f"{found[0].name} | {lead + len(found[0].labels)}"
    for number in range(explorer.count()):
        if model.rounds_to_serve(explorer.states[number], LONGEST) < 0:
            return f"served | {lead + len(explorer.way(number)[1])}"
    return "survives | "


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_every_undone_rule_shows_as_the_list_says(mutant: RecoveryMutant) -> None:
    row = f"| {mutant.name} | {mutant.mistake} | {died(mutant)} |"
    assert row in LIST.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_with_the_rule_in_force_the_same_bounds_are_sound(mutant: RecoveryMutant) -> None:
    model = RecoveryModel(mutant.bounds, RecoveryNode, mutant.script)
    explorer = explored(model)
    assert explorer.complete()
    assert list(explorer.violations) == []
    if f"| {mutant.name} | {mutant.mistake} | served |" in LIST.read_text(encoding="utf-8"):
        assert min(model.rounds_to_serve(state, LONGEST) for state in explorer.states) >= 0


# -- when faults stop ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "worst"),
    [
        (Bounds(wants={0: 1, 1: 1}, crashes=1, losses=1), 9),
        (Bounds(permits=2, wants={0: 1, 1: 2}, crashes=1, forgets=1, losses=1), 9),
        (Bounds(1, 1, wants={1: 1}, proposals=2, crashes=2), 6),
    ],
    ids=["k = 1", "k = 2, disks may be gone", "a client that is no member"],
)
def test_when_faults_stop_everybody_is_served(bounds: Bounds, worst: int) -> None:
    model = RecoveryModel(bounds)
    explorer = explored(model, 4_000)
    ticks = [model.rounds_to_serve(state, LONGEST) for state in explorer.states[::4]]
    assert min(ticks) == 0
    assert max(ticks) == worst


# -- scripts ---------------------------------------------------------------------------------


def test_a_step_that_cannot_happen_is_refused_with_what_can() -> None:
    model = RecoveryModel(Bounds(wants={0: 1}), RecoveryNode, ["crash 0"])
    with pytest.raises(Unplayable, match="'crash 0' cannot happen here; what can: ask 0, "):
        model.initial()
