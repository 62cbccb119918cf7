"""The checker finds every mistake that we could think of, and nothing in the originals."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshlock.algorithms.registry import ALGORITHMS
from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.check.recovery_mutants import MUTANTS as RECOVERY
from meshlock.check.questions import judged
from meshlock.check.verdict import Checking

LIST = Path(__file__).parents[2] / "docs" / "mutants.md"
NAMES = [mutant.name for mutant in MUTANTS]


def row(mutant: Mutant) -> str:
    """The mutant's line in the list: by which property it dies, and after how many steps."""
    checking = Checking(mutant.setup(mutant.algorithm), judged([]), 500_000)
    while not checking.explorer.violations and checking.run(1):
        pass
    found = checking.violations()
    died = f"{found[0].name} | {len(found[0].labels)}" if found else "survives | "
    return f"| {mutant.name} | {mutant.mistake} | {died} |"


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_every_mutant_dies_as_the_list_says(mutant: Mutant) -> None:
    assert row(mutant) in LIST.read_text(encoding="utf-8").splitlines()


def test_the_list_knows_no_survivors_and_nobody_else() -> None:
    lines = LIST.read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    undone = [mutant.name for mutant in RECOVERY]  # see test_recovery.py
    assert sorted(row[0] for row in rows) == sorted([*NAMES, *undone, "mutant", "mutant"])
    assert not any("survives" in row for row in rows)


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_the_original_is_sound_in_the_same_set_up(mutant: Mutant) -> None:
    checking = Checking(mutant.setup(mutant.origin), judged([]), 500_000)
    while checking.run(10_000):
        pass
    assert checking.holds()


def test_every_sound_algorithm_has_three_mutants_or_more() -> None:
    origins = [mutant.origin.name for mutant in MUTANTS]
    unsound = {"maekawa-bare", "jiang-printed"}
    assert {name for name in ALGORITHMS if origins.count(name) < 3} == unsound
