"""Two changes of members at once, by two members: the pinned set-ups, and what they would find."""

from __future__ import annotations

import pytest
from checks import finish

from meshlock.algorithms.recovery.messages import Ledger
from meshlock.algorithms.recovery.records import NO_EPOCH, FirstLedger
from meshlock.check.crashing_nodes import Crashing
from meshlock.check.manifest import PinnedSetUp, entries, found
from meshlock.check.world import World
from meshlock.errors import Refused
from whole import WHOLE

TWICE = "recovery/reports-a-token-twice"


def has_two_changes(entry: PinnedSetUp) -> bool:
    table = entry.table
    return len(table.get("member_changes", [])) == 2 and table.get("proposers") == [0, 1]


SETUPS = [entry for entry in entries() if has_two_changes(entry)]
EVEN = [entry for entry in SETUPS if int(entry.table["members"]) % 2 == 0]


def test_there_are_two_adds_two_removals_and_one_of_each() -> None:
    kinds = [(entry.table["members"], *entry.table["member_changes"]) for entry in SETUPS]
    assert kinds == [
        ("2", "remove 0", "add 2"),
        ("2", "add 2", "add 3"),
        ("3", "remove 0", "add 3"),
        ("4", "remove 0", "remove 1"),
    ]


@pytest.mark.parametrize("entry", SETUPS, ids=PinnedSetUp.title)
def test_one_token_remains(entry: PinnedSetUp) -> None:
    """In all states, or in twice as many as are seen until a token reported twice is found."""
    most = entry.states + 1 if WHOLE else 12_000
    checking = entry.checking(most)
    if entry.states < most:
        finish(checking)
        assert found(checking) == entry.pinned
    while checking.explorer.run(10_000):
        pass
    assert not checking.violations()


@pytest.mark.parametrize("entry", EVEN, ids=PinnedSetUp.title)
def test_of_an_even_number_of_members_two_tokens_remain_if_one_is_reported_twice(
    entry: PinnedSetUp,
) -> None:
    """Of an odd number, majorities of both changes have a member in common."""
    checking = PinnedSetUp({**entry.table, "algorithm": TWICE}).checking(entry.states + 1)
    while not checking.violations() and checking.run(1_000):
        pass
    assert [violation.name for violation in checking.violations()][:1] == ["one-token"]


@pytest.mark.parametrize(("algorithm", "most"), [("direct", 1), (TWICE, 2)])
def test_one_ledger_counts_a_token(algorithm: str, most: int) -> None:
    """This is what the proof of one token rests on; two epochs may have ledgers all the same."""
    checking = PinnedSetUp({**SETUPS[0].table, "algorithm": algorithm}).checking(100_000)
    while checking.explorer.run(10_000):
        pass
    model, explorer = checking.model, checking.explorer
    assert isinstance(model, Crashing)
    worlds = [model.world(explorer.state(number)) for number in range(explorer.count())]
    assert max(times_counted(model, world) for world in worlds) == most


def times_counted(model: Crashing, world: World) -> int:
    """How many ledgers, adopted or under way, count the same token."""
    ledgers: set[FirstLedger] = set()
    for i in range(model.size):
        if model.at(world, i).up:
            node = model.layers.make(i)
            node.thaw(model.at(world, i).state)
            ledgers |= {node.member.first} if node.member.first is not None else set()
    for carried in model.mailboxes.messages[world.box]:
        if isinstance(carried.message, Ledger):
            ledgers.add(carried.message.first)
    found = [ledger.before for ledger in ledgers if ledger.before != NO_EPOCH]
    return max([found.count(epoch) for epoch in found], default=0)


CLOSED = ["request 1", "deliver REQUEST 1>0", "deliver TOKEN 0>1", "remove 2 by 1"]
CLOSED += ["deliver PROPOSE 1>0", "deliver PROMISE 0>1", "close 1"]


def test_a_ledger_is_confirmed_only_by_members_that_know_it() -> None:
    """Else node 0, which goes by the members before, could replace the token together with 2, while
    node 1 removes node 0 as well and goes on alone. An answer to a renewal is a promise: its
    sender need not have the ledger. So a proposer does not renew before."""
    words = {"algorithm": "direct", "topology": "complete", "nodes": 3, "members": "all"}
    words |= {"requests": ["1"], "stay": [1], "proposals": 1, "proposers": [1]}
    words |= {"member_changes": ["remove 2"], "renewals": "travel", "handshakes": "any"}
    model = PinnedSetUp({**words, "lead": CLOSED}).checking(1).model
    assert isinstance(model, Crashing)
    world = model.beginning()
    assert model.at(world, 1).members == (0, 1) and model.at(world, 0).members == (0, 1, 2)
    with pytest.raises(Refused, match="'renew 1' is not possible here"):
        model.lead(world, "renew 1")
    world = model.lead(world, "deliver LEDGER 1>0")
    assert model.at(world, 0).members == (0, 1) and model.at(world, 1).held is None
    world = model.lead(world, "deliver CONFIRM 0>1")
    assert model.at(world, 1).held is not None
    model.lead(world, "renew 1")
