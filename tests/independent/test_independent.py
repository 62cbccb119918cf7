"""The independent judge finds nothing in jiang, and finds what it should in jiang's mutants."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.registry import find
from meshlock.errors import Refused

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "campaigns"))

PAGE = (ROOT / "docs" / "how-it-works" / "independent-judge.md").read_text(encoding="utf-8")
ROWS = PAGE.partition("independent.py: begin -->\n")[2].partition("<!-- ")[0].splitlines()[2:]
TABLE = [[cell.strip() for cell in row.split("|")[1:-1]] for row in ROWS]
CAUGHT = [row for row in TABLE if row[2] != "0"]


def campaign(*given: Any) -> Any:
    from driver.campaign import Campaign  # makes a subclass of what may be compiled

    return Campaign(*given)


@pytest.mark.parametrize("failures", ["drain", "return", "custody"])
@pytest.mark.parametrize("moves", ["quiet", "silent", "broadcast"])
def test_jiang_keeps_every_rule(moves: str, failures: str) -> None:
    outcomes = list(campaign("jiang", (moves,), (failures,)).runs(range(100)))
    assert [(outcome.number, outcome.text) for outcome in outcomes if outcome.rule] == []
    assert {outcome.kind for outcome in outcomes} == {(moves, failures)}
    assert sum(outcome.judged for outcome in outcomes) > 200


@pytest.mark.parametrize(
    "algorithm", ["reverse-link", "general-scheme", "suzuki-kasami", "lamport"]
)
def test_other_algorithms_can_be_driven(algorithm: str) -> None:
    assert not [outcome.text for outcome in campaign(algorithm).runs(range(50)) if outcome.rule]


def test_the_table_has_every_mutant_of_jiang() -> None:
    jiang = {name.removeprefix("jiang/") for name in MUTANTS if name.startswith("jiang/")}
    assert {row[0] for row in TABLE} == jiang


def test_all_are_caught_whose_mistake_shows_outside_a_node() -> None:
    assert {row[0] for row in TABLE} - {row[0] for row in CAUGHT} == {
        "without-R3",
        "without-R7",
        "without-R8",
        "without-R9",
    }


@pytest.mark.parametrize(("undone", "first", "by"), [(row[0], row[3], row[4]) for row in CAUGHT])
def test_the_first_run_of_the_table_shows_the_mistake(undone: str, first: str, by: str) -> None:
    """If jiang's messages change, so do runs: then ``campaigns/independent.py --table --write``."""
    assert campaign(f"jiang/{undone}").run(int(first)).rule in by.split()


def test_a_run_is_the_same_every_time_and_can_be_told() -> None:
    undone, first = "jiang/without-R1", int(next(r[3] for r in CAUGHT if r[0] == "without-R1"))
    runs = campaign(undone)
    assert runs.run(first) == runs.run(first)
    told: list[str] = []
    assert runs.story(first, told.append, short=False)
    short: list[str] = []
    assert runs.story(first, short.append, short=True)
    assert len(short) <= len(told)
    assert short[-1].partition(":")[0] == told[-1].partition(":")[0] == runs.run(first).rule


def test_what_never_comes_to_rest_is_refused() -> None:
    with pytest.raises(Refused, match="lelann never comes to rest"):
        campaign("lelann").run(0)


@pytest.mark.parametrize("second", [1, 2])
def test_all_grants_of_a_step_from_rest_are_judged(second: int) -> None:
    from driver.judge import Judge, Violation

    judge = Judge(SimpleNamespace(algorithm=find("direct"), options={}, permits=3, size=3))
    judge.asks(1, 0, 2, 5)
    judge.enters(1, 0, 1)
    for client, node, priority in [(2, 1, 9), (3, 1, 8), (4, 2, 3)]:
        judge.asks(client, node, 1, priority)
    judge.moved(True)
    judge.quiet(0)
    judge.leaves(1)
    judge.lends(1)
    if second == 2:
        with pytest.raises(Violation, match="client 3 of node 1"):
            judge.lends(2)  # 8 waits at node 1
        return
    judge.lends(1)
    judge.moved(False)
    judge.lends(2)
    judge.enters(4, 2, 4)
