"""Why two changes of members at once are safe, checked by enumeration: see ``may_change``."""

from __future__ import annotations

from itertools import combinations

import pytest
from member_epochs import MemberEpochs

from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.recovery.proposal import changed_members
from meshlock.algorithms.recovery.records import Change, majority
from whole import WHOLE

MOST_MEMBERS = 5
Members = tuple[int, ...]


def changes(members: Members) -> list[Members]:
    """What one change makes of them; of the nodes that are no members any two stand for all."""
    nodes = range(len(members) + 2)
    found = [changed_members(members, Change(add=node)) for node in nodes if node not in members]
    found += [changed_members(members, Change(remove=node)) for node in members]
    return [after for after in found if after != members]


def can_miss_each_other(one: Members, other: Members) -> bool:
    """Is there a majority of each that has no member of the other's?"""
    return any(
        set(quorum).isdisjoint(rival)
        for quorum in combinations(one, majority(one))
        for rival in combinations(other, majority(other))
    )


@pytest.mark.parametrize("count", range(1, MOST_MEMBERS + 1))
def test_majorities_before_and_after_one_change_meet(count: int) -> None:
    members = tuple(range(count))
    for after in changes(members):
        assert not can_miss_each_other(members, after)


@pytest.mark.parametrize("count", range(1, MOST_MEMBERS + 1))
def test_majorities_of_two_changes_can_miss_each_other_where_members_are_even(count: int) -> None:
    pairs = combinations(changes(tuple(range(count))), 2)
    apart = [can_miss_each_other(one, other) for one, other in pairs]
    assert all(apart) if count % 2 == 0 else not any(apart)


SMALL = [(3, 2, 2), (4, 2, 2), (4, 3, 2), (4, 4, 2), (3, 3, 3)]
SMALL += [(3, 2, 3), (5, 4, 2)] if WHOLE else []
"""Nodes, members, epochs after the first."""


@pytest.mark.parametrize(("nodes", "members", "epochs"), SMALL)
def test_confirmed_epochs_know_each_other(nodes: int, members: int, epochs: int) -> None:
    states, wrong = MemberEpochs(nodes, members, epochs).explore()
    assert states > 1000
    assert not wrong


@pytest.mark.parametrize(("nodes", "members", "epochs"), SMALL)
def test_they_do_not_if_a_token_is_reported_twice(nodes: int, members: int, epochs: int) -> None:
    """With an odd number of members the first of three epochs makes it even."""
    _, wrong = MemberEpochs(nodes, members, epochs, once=False).explore()
    assert ("does not know" in wrong) == ((members, epochs) != (3, 2))


@pytest.mark.parametrize(("nodes", "members", "epochs"), [(3, 2, 2), (4, 4, 2), (3, 3, 3)])
def test_nor_if_members_change_without_the_token(nodes: int, members: int, epochs: int) -> None:
    unconfirmed = MUTANTS["recovery/changes-unconfirmed"].layer
    _, wrong = MemberEpochs(nodes, members, epochs, unconfirmed).explore()
    assert "does not know" in wrong
