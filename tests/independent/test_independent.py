"""The independent judge finds nothing in jiang, and finds what it should in jiang's mutants."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.registry import find
from meshlock.errors import Refused

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "campaigns"))

PAGE = (ROOT / "docs" / "appendices" / "independent-judge.md").read_text(encoding="utf-8")
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


def test_direct_keeps_every_rule() -> None:
    outcomes = list(campaign("direct").runs(range(300)))
    assert [(outcome.number, outcome.text) for outcome in outcomes if outcome.rule] == []


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_clients_do_all_that_they_can(algorithm: str) -> None:
    outcomes = list(campaign(algorithm).runs(range(100)))
    done = sum([outcome.done for outcome in outcomes], Counter())
    for action in ("ask", "leave", "release_part", "change_priority", "withdraw"):
        assert done[action] > 10, action
    assert sum(outcome.ties for outcome in outcomes) > 500
    from driver.setup import Draw

    setups = [campaign(algorithm).setup(Draw(number)) for number in range(100)]
    assert 20 < sum(setup.deadlines for setup in setups) < 40


@pytest.mark.parametrize("algorithm", ["raynal", "arbiter"])
def test_parts_are_released_without_a_token(algorithm: str) -> None:
    outcomes = list(campaign(algorithm).runs(range(200)))
    assert [(outcome.number, outcome.text) for outcome in outcomes if outcome.rule] == []
    assert sum([outcome.done for outcome in outcomes], Counter())["release_part"] > 20


def test_the_table_has_every_mutant_of_jiang_and_direct() -> None:
    driven = [
        name
        for name, mutant in MUTANTS.items()
        if name.partition("/")[0] in ("jiang", "direct")
        and ":" not in str(mutant.case.get("permits", 1))  # it drives one kind of permits
    ]
    assert [row[0] for row in TABLE] == [name.removeprefix("jiang/") for name in driven]


def test_all_are_caught_whose_mistake_shows_outside_a_node() -> None:
    assert {row[0] for row in TABLE} - {row[0] for row in CAUGHT} == {
        "without-R3",
        "without-R7",
        "without-R8",
        "without-R9",
    }


@pytest.mark.parametrize(("undone", "first", "by"), [(row[0], row[3], row[4]) for row in CAUGHT])
def test_the_first_run_of_the_table_shows_the_mistake(undone: str, first: str, by: str) -> None:
    """If messages change, so do runs: then ``campaigns/independent.py --table --write``."""
    name = undone if "/" in undone else f"jiang/{undone}"
    assert campaign(name).run(int(first)).rule in by.split()


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


def driven(algorithm: str, permits: int = 1, **options: str) -> Any:
    """What a judge must know of a run on three nodes."""
    what = {"algorithm": find(algorithm), "permits": permits, "size": 3, "changing": True}
    return SimpleNamespace(**what, options={"ageing": "stamped", "patience": "100", **options})


def judge_of(algorithm: str, *asked: tuple[int, int, int], permits: int = 1, **options: str) -> Any:
    """Client 1 of node 0 is inside, where the token is; these ask, one after the other, while
    nothing is in flight: client, node and priority."""
    from driver.judge import Judge

    judge = Judge(driven(algorithm, permits, **options))
    judge.asks(1, 0, permits, 5, 0)
    judge.enters(1, 0, 1)
    judge.moved(True)
    judge.quiet(0)
    for client, node, priority in asked:
        judge.asks(client, node, 1, priority, 0)
        judge.moved(True)
        judge.quiet(0)
    return judge


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_of_equals_the_first_goes_first(algorithm: str) -> None:
    from driver.judge import Violation

    judge = judge_of(algorithm, (2, 1, 5), (3, 2, 5))
    judge.leaves(1)
    with pytest.raises(Violation, match=r"client 3 of node 2 .* enters before client 2 of node 1"):
        judge.enters(3, 2, 2)


def test_who_stands_behind_another_is_not_known_to_the_holder_of_jiang() -> None:
    """3 asks while another waits elsewhere with the same priority; so 4 may go before it."""
    for algorithm, holds in (("jiang", True), ("direct", False)):
        judge = judge_of(algorithm, (2, 1, 5), (3, 2, 5), (4, 1, 5), permits=2)
        judge.leaves(1)
        judge.enters(2, 1, 2)
        assert judge.first(judge.waiting[3], judge.waiting[4]) == (not holds)


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_a_raise_lets_nobody_else_in(algorithm: str) -> None:
    from driver.judge import Violation

    judge = judge_of(algorithm, (2, 0, 5), (3, 0, 3))
    judge.leaves(1)
    judge.moved(True)
    judge.changes(2, 9)
    with pytest.raises(Violation, match="order: client 3 of node 0"):
        judge.enters(3, 0, 2)


@pytest.mark.parametrize(("closer", "counts"), [(530, True), (521, False)])
def test_a_deadline_counts_for_less_than_a_step(closer: int, counts: bool) -> None:
    """By no less than the age that any request may have: one grant was made."""
    from driver.judge import Violation

    judge = judge_of("jiang", (2, 1, 520), (3, 2, closer), unit="grant")
    judge.leaves(1)
    if not counts:
        judge.enters(2, 1, 2)
        return
    with pytest.raises(Violation, match="order: client 2 of node 1"):
        judge.enters(2, 1, 2)


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_until_all_have_heard_of_a_change_both_priorities_count(algorithm: str) -> None:
    from driver.judge import Violation

    judge = judge_of(algorithm, (2, 1, 5), (3, 2, 3))
    judge.changes(2, 1)
    judge.moved(False)
    judge.leaves(1)
    judge.enters(2, 1, 2)  # the token was sent when it was 5
    judge = judge_of(algorithm, (2, 1, 5), (3, 2, 3))
    judge.changes(2, 1)
    judge.moved(True)
    judge.quiet(0)
    judge.leaves(1)
    with pytest.raises(Violation, match="order: client 2 of node 1"):
        judge.enters(2, 1, 2)


def test_a_part_is_free() -> None:
    judge = judge_of("direct", (2, 1, 5), permits=3)
    judge.releases_part(1, 2)
    assert (judge.held, judge.inside[1].want) == (1, 1)
    judge.enters(2, 1, 2)
    judge.leaves(1)
    assert judge.held == 1


@pytest.mark.parametrize("second", [1, 2])
def test_all_grants_of_a_step_from_rest_are_judged(second: int) -> None:
    from driver.judge import Judge, Violation

    judge = Judge(driven("direct", permits=3))
    judge.asks(1, 0, 2, 5, 0)
    judge.enters(1, 0, 1)
    for client, node, priority in [(2, 1, 9), (3, 1, 8), (4, 2, 3)]:
        judge.asks(client, node, 1, priority, 0)
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


@pytest.mark.parametrize(("algorithm", "node"), [("jiang", 1), ("jiang", 0), ("direct", 1)])
def test_others_may_enter_where_the_token_goes_for_one_that_became_less_urgent(
    algorithm: str, node: int
) -> None:
    """There or on the way, if each node has a queue of its own. In direct the queue goes along."""
    from driver.judge import Violation

    judge = judge_of(algorithm, (2, 1, 5), (3, node, 2), (4, 2, 3), ageing="none")
    judge.changes(2, 1)  # nothing was in flight; now word of it is
    judge.moved(False)
    judge.leaves(1)
    if algorithm == "jiang":
        judge.enters(3, node, 2)  # the token was sent when node 1 asked for 5
    else:
        with pytest.raises(Violation, match="order: client 3 of node 1"):
            judge.enters(3, node, 2)


def test_in_the_step_that_makes_a_request_less_urgent_only_the_next_may_enter() -> None:
    from driver.judge import Violation

    judge = judge_of("jiang", (2, 0, 5), (3, 0, 2), (4, 0, 3), ageing="none")
    judge.leaves(1)
    judge.moved(True)
    judge.changes(2, 1)
    with pytest.raises(Violation, match="order: client 3 of node 0"):
        judge.enters(3, 0, 2)


@pytest.mark.parametrize("by", ["grant", "token"])
def test_an_entry_is_by_the_grant_whose_fence_it_has(by: str) -> None:
    """The token may overtake a grant. Who enters by it leaves the grant to the one that it is for,
    which was first: so it is passed by nobody."""
    judge = judge_of("direct", (2, 1, 5), (3, 1, 5), (4, 2, 5), permits=2)
    judge.releases_part(1, 1)
    grant = judge.lends(1)
    judge.moved(False)
    if by == "grant":
        judge.arrives(1, grant)
    judge.enters(2 if by == "grant" else 3, 1, grant if by == "grant" else grant + 1)
    assert judge.made == (grant if by == "grant" else grant + 1)
    assert judge.lent[1] == (set() if by == "grant" else {grant})
    judge.leaves(1)
    if by == "token":
        judge.lends(2)  # to 4: a grant for 2 is on its way


def test_a_grant_is_for_the_oldest_where_waiting_counts() -> None:
    """Client 2 of node 1 asked two grants before 4, which has one step of two grants more."""
    from driver.judge import Judge

    judge = Judge(driven("direct", permits=4, patience="2"))
    judge.asks(1, 0, 4, 5, 0)
    judge.enters(1, 0, 1)
    judge.moved(True)
    judge.quiet(0)
    for number, (client, node, priority) in enumerate([(2, 1, 1), (3, 2, 1), (4, 1, 2)]):
        judge.made += 2 if number == 2 else 0  # of others
        judge.made += number == 1
        judge.asks(client, node, 1, priority, 0)
        judge.moved(True)
        judge.quiet(0)
    assert [judge.least(judge.waiting[client]) for client in (2, 3, 4)] == [1, 0, 0]
    judge.leaves(1)
    judge.lends(1)  # to 2, not to 4
    judge.lends(2)


@pytest.mark.parametrize("behind", [False, True])
def test_who_stood_behind_an_older_one_of_its_priority_may_count_as_old(behind: bool) -> None:
    from driver.judge import Judge, Violation

    judge = Judge(driven("jiang", permits=1, patience="3"))
    judge.asks(1, 0, 1, 9, 0)
    judge.enters(1, 0, 1)
    judge.made = 12  # of which node 1 knows none
    if behind:
        judge.asks(5, 1, 1, 4, 0)
    for client, node, priority in [(2, 1, 4), (3, 2, 6)]:
        judge.asks(client, node, 1, priority, 0)
    judge.moved(True)
    judge.quiet(0)
    if behind:
        judge.withdraws(5)
        judge.quiet(0)
    judge.leaves(1)
    if behind:
        judge.enters(2, 1, 2)
    else:
        with pytest.raises(Violation, match="order: client 2 of node 1"):
            judge.enters(2, 1, 2)


@pytest.mark.parametrize("older", [False, True])
def test_who_stands_behind_an_older_one_of_lower_priority_is_known_by_its_step(older: bool) -> None:
    """With a patience of 3, client 2 counts for 6 - 1, and client 3 of the same node for 9 - 4. Of
    client 2 the holder may have been told 3, the lowest of that step, which is as much as 4."""
    from driver.judge import Judge, Violation

    judge = Judge(driven("jiang", permits=1, patience="3"))
    judge.asks(1, 0, 1, 9, 0)
    judge.enters(1, 0, 1)
    asked = [(4, 2, 1, 1), (2, 1, 2, 1), (3, 1, 3, 4)]
    for client, node, priority, made in asked if older else [asked[0], asked[2]]:
        judge.made = made
        judge.asks(client, node, 1, priority, 0)
        judge.moved(True)
        judge.quiet(0)
    judge.made = 5
    judge.quiet(0)
    judge.leaves(1)
    if older:
        judge.enters(4, 2, 6)
    else:
        with pytest.raises(Violation, match="order: client 4 of node 2"):
            judge.enters(4, 2, 6)
