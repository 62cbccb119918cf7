"""A part of `make prove`: the theorems, some rules undone, and runs from the beginning.

The rest takes a minute and a half of CPU, and is asked by `make prove`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")
PROOFS = Path(__file__).parents[2] / "proofs"
sys.path.insert(0, str(PROOFS))

import prove  # noqa: E402
import small  # noqa: E402
from prove import answer, questions  # noqa: E402
from recovery import system  # noqa: E402

ASKED = [
    one
    for one in questions()
    if one[0] in ("begins", "lemma", "fact") or one[2] in ("safety", "ledger", "latest_token")
]


@pytest.mark.parametrize("kind", ["begins", "lemma", "fact", "keeps"])
def test_it_is_proved(kind: str) -> None:
    asked = [one for one in ASKED if one[0] == kind]
    assert len(asked) >= 8
    assert [one for one in asked if answer(one)[1] != "unsat"] == []


def test_every_invariant_step_and_lemma_has_a_sentence() -> None:
    for one in (*system.invariants.values(), *system.lemmas.values(), *system.steps.values()):
        assert one.sentence.endswith("."), one.name


def test_theorems_are_proved_names() -> None:
    facts = {fact.name for facts in system.facts.values() for fact in facts}
    assert set(prove.THEOREMS) <= {*system.invariants, *system.lemmas, *facts}


@pytest.mark.parametrize(
    ("step", "part"),
    [
        ("vote", "not-quiet"),  # no quiet period
        ("mint", "waits"),  # a new token before the old leases are over
        ("renew_grant", "quorum"),  # one answer renews a lease
        ("borrow", "once"),
    ],
)
def test_a_rule_that_is_undone_is_missed(step: str, part: str) -> None:
    found = small.missed(system.steps[step], part)
    assert found is not None and found.broken


def test_what_fails_is_told_as_a_story() -> None:
    told = list(prove.story("mint", "waits"))
    assert told[0].startswith("In a world of three nodes this breaks")
    assert any(line.startswith("  step    mint(") for line in told)
    assert any(line.startswith("  after   minted(") for line in told)


@pytest.mark.parametrize("name", ["restart", "borrow"])
def test_it_can_happen_from_the_beginning(name: str) -> None:
    assert small.can_happen(small.RUNS[name]) is not None


def test_every_step_is_in_a_run() -> None:
    assert set(system.steps) == {name for run in small.RUNS.values() for name in run}
