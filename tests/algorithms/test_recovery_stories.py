"""Recovery told as stories: three members, times in milliseconds, nodes that are cut off."""

from __future__ import annotations

import pytest
from layer_machines import INSIDE, LEASE, POLL, SEVERAL, WAIT, Machines, born, number
from layer_twin import Twin

from meshlock.algorithms import direct
from meshlock.algorithms.actor import Enter, Message, Save
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import AskLedger, Confirm, Inner, Promise, Renew, Return
from meshlock.algorithms.recovery.records import (
    GRANTS,
    Change,
    Epoch,
    Fence,
    fence_number,
)

inside = pytest.mark.parametrize("inside", INSIDE)
several = pytest.mark.parametrize("inside", SEVERAL)


@inside
def test_birth_is_a_restart_of_everybody_and_nobody_is_the_founder(inside: str) -> None:
    machines = Machines(inside)
    machines.change_epoch(0)
    assert machines.nodes[0].member.proposal is None  # quiet: no word of ours counts yet
    machines.pass_time(WAIT)
    machines.change_epoch(0)
    assert machines.holders() == []  # no token was found: wait
    machines.pass_time(WAIT)
    assert machines.holders() == [0]
    machines.ask(2)
    assert machines.granted == [(2, 7, number(1, 0, 1, 1))]


@inside
def test_an_idle_holder_lets_its_client_in_without_a_message(inside: str) -> None:
    machines = born(inside)
    machines.at(0).request(7, 1, 0)
    assert [type(effect) for effect in machines.out] == [Enter]


@inside
def test_a_killed_holder_is_replaced_one_lease_later_and_fences_grow(inside: str) -> None:
    machines = born(inside)
    machines.ask(0)
    machines.crash(0)
    machines.ask(1)
    machines.change_epoch(1)
    machines.pass_time(WAIT - POLL)
    assert machines.granted == [(0, 7, number(1, 0, 1, 1))]  # its command may still run
    machines.pass_time(POLL)
    assert machines.granted[1:] == [(1, 7, number(2, 1, 1, 1))]
    assert machines.granted[1][2] > machines.granted[0][2]


@inside
def test_a_living_token_changes_hands_at_once_and_grants_go_on(inside: str) -> None:
    permits = 2 if inside in SEVERAL else 1
    machines = born(inside, permits)
    machines.ask(0)
    machines.change_epoch(1)
    assert machines.holders() == [1]
    machines.ask(1)
    assert len(machines.granted) == permits
    machines.pass_time(5 * LEASE)
    assert machines.lost == []
    machines.leave(0)
    assert len(machines.granted) == 2


@inside
def test_a_holder_that_is_cut_off_stops_before_another_starts(inside: str) -> None:
    machines = born(inside)
    machines.ask(0)
    machines.cut(0)
    machines.change_epoch(1)
    machines.ask(1)
    machines.pass_time(LEASE)
    assert machines.lost == [(0, number(1, 0, 1, 1))]
    assert len(machines.granted) == 1
    machines.pass_time(WAIT - LEASE)
    assert machines.who() == [0, 1]


@inside
def test_the_side_without_a_majority_stands_still_and_heals_by_itself(inside: str) -> None:
    machines = born(inside)
    machines.isolate()
    machines.ask(0)
    machines.pass_time(LEASE)
    assert machines.holders() == []
    machines.heal()
    machines.ask(1)
    machines.change_epoch(1)  # the dead token is surrendered, and is as good as new
    assert machines.who() == [0, 1]
    assert machines.lost == [(0, machines.granted[0][2])]


@inside
def test_who_left_while_an_epoch_changed_gives_back_in_the_new_one(inside: str) -> None:
    machines = born(inside)
    machines.ask(0)
    machines.propose(1)  # node 0 has reported its grant ...
    machines.leave(0)  # ... and only then it ends
    machines.close(1)
    machines.ask(2)
    assert machines.who() == [0, 2]


def test_a_restarted_member_is_quiet_and_remembers_its_promise() -> None:
    machines = born()
    machines.change_epoch(1)
    machines.crash(2)
    machines.held_back = {"ASK"}
    machines.start(2)
    node, epoch = machines.nodes[2], Epoch(2, 1, 1)
    assert node.member.promised == epoch
    assert answers(machines, epoch) == []
    machines.now += WAIT
    assert answers(machines, Epoch(1, 0, 1)) == []  # lower than what the disk says
    assert answers(machines, epoch) == [Confirm]


def answers(machines: Machines, epoch: Epoch) -> list[type]:
    """Of node 2, when a client elsewhere renews."""
    renew = Renew(2, epoch, 1, GRANTS, machines.now)
    renew.sender = 1
    machines.at(2).receive(renew)
    said = [type(effect) for effect in machines.out]
    machines.out.clear()
    return said


def test_a_promise_is_on_disk_before_it_is_given() -> None:
    machines = born()
    machines.at(1).propose()
    to_2 = next(one for one in machines.out if isinstance(one, Message) and one.receiver == 2)
    machines.out.clear()
    machines.at(2).receive(to_2)
    assert [type(effect) for effect in machines.out] == [Save, Promise]


@inside
def test_a_late_answer_gives_a_lease_from_the_time_of_its_question(inside: str) -> None:
    """Renewals are not numbered: each answer carries the time of what it answers."""
    machines = born(inside)
    node, epoch, then = machines.nodes[0], Epoch(1, 0, 1), machines.now
    token = node.member.holding.token
    assert token is not None
    machines.cut(0)
    machines.pass_time(LEASE - POLL)
    late = Confirm(0, epoch, 1, then + 3 * POLL, 1)
    late.sender = 1
    machines.at(0).receive(late)
    assert token.until == then + 3 * POLL + LEASE
    older = Confirm(0, epoch, 1, then + POLL, 1)
    older.sender = 2
    machines.at(0).receive(older)
    assert token.until == then + 3 * POLL + LEASE


@inside
def test_a_node_is_the_same_after_freeze_and_thaw_whatever_the_clock_shows(inside: str) -> None:
    machines = born(inside, 2 if inside in SEVERAL else 1)
    machines.ask(1)
    machines.ask(2)
    for step in range(4):
        for me, node in machines.nodes.items():
            state = machines.at(me).freeze()
            assert len(state) == len(node.variables)
            assert Twin(Layer, node).node.freeze() == state
        if step == 0:
            machines.propose(2)
        elif step == 1:
            machines.close(2)
        else:
            machines.pass_time(POLL)


def test_a_request_that_comes_back_to_its_sender_asks_for_nothing_more() -> None:
    """It was sent when the token was elsewhere, and was handed on to where the token is now:
    here, where another client waits meanwhile, for more than is free."""
    machines = born("direct", permits=3)
    machines.ask(2)
    machines.ask(0)
    node = machines.nodes[2]
    machines.ask(2, want=3, client=8)
    assert len(machines.granted) == 2 and machines.holders() == [2] and machines.free() == 1
    late = direct.Request(2, 2, 1, 1, 1, 9, 900, 0, False)
    inner = Inner(2, node.member.adopted, node.member.boot, late)
    inner.sender = 1
    machines.deliver(inner)
    assert len(machines.granted) == 2 and machines.free() == 1
    machines.leave(0)
    machines.leave(2)
    assert machines.who() == [2, 0, 2]


@inside
def test_what_others_say_is_handed_on_to_one_node_or_to_nobody(inside: str) -> None:
    """To several, it would come back from each of them, and again, ever more often."""
    machines = Machines(inside, size=3, others=1)
    asked = AskLedger(3, 0, 1, GRANTS)
    asked.sender = 0
    machines.at(3).receive(asked)
    assert machines.out == []  # it knows nothing of an epoch
    machines.ask(3)
    machines.at(3).repeat()
    assert [effect.receiver for effect in machines.out if isinstance(effect, Message)] == [0, 1, 2]
    machines.carry(3)
    machines.pass_time(WAIT)
    machines.change_epoch(0)
    machines.pass_time(WAIT)
    machines.leave(3)
    machines.ask(1)
    node = machines.at(3)  # which knows whom it gave the token to
    over = Return(3, node.member.adopted, Fence(Epoch(1, 0, 1), 1), 0, 0, GRANTS)
    over.sender = 0
    node.receive(over)
    assert [type(effect) for effect in machines.out] == [Return]
    machines.out.clear()
    asked.boot += 1
    node.receive(asked)
    passed_on = [effect.receiver for effect in machines.out if isinstance(effect, AskLedger)]
    assert len(passed_on) <= 1


def test_the_number_of_a_fence_grows_as_the_fence_does() -> None:
    fences = [
        Fence(Epoch(4, 9, 1), 0),
        Fence(Epoch(4, 9, 1), 7),
        Fence(Epoch(5, 2, 1), 1),
        Fence(Epoch(5, 2, 1), 2**23 - 1),
        Fence(Epoch(2**30 - 1, 0, 3), 1),
    ]
    numbers = [fence_number(fence) for fence in fences]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] < 2**53


def token_under_way(inside: str, size: int = 2, others: int = 2) -> Machines:
    """From node 0 to the last node, which asked for it; it does not arrive."""
    machines = born(inside, size=size, others=others)
    machines.held_back = {"TOKEN"}
    machines.ask(size + others - 1)
    assert machines.nodes[0].member.holding.unaccepted is not None
    return machines


def propose_change(machines: Machines, me: int, **change: int) -> None:
    machines.at(me).propose(Change(**change))
    machines.carry(me)


@inside
def test_a_token_under_way_is_surrendered_to_one_of_two_changes_of_members(inside: str) -> None:
    """Two members of two add a member each, and then cannot reach each other. Node 0 had sent the
    token to node 3, which says to both that it will never accept it."""
    machines = token_under_way(inside)
    propose_change(machines, 1, add=2)
    machines.cut(0, 3)
    machines.close(1)
    assert machines.holders() == [1]
    propose_change(machines, 0, add=3)
    machines.close(0)
    assert machines.holders() == [1]
    assert machines.nodes[1].member.members == (0, 1, 2)
    assert machines.nodes[0].member.members == (0, 1)
    machines.run(5 * LEASE)
    assert machines.holders() == [1]
    machines.heal()
    machines.run(LEASE)
    machines.deliver_kept()
    machines.held_back = set()
    machines.run(2 * LEASE)
    assert machines.who() == [3]
    assert not machines.overbooked()


@inside
def test_a_token_under_way_that_only_its_sender_reported_to_a_proposer_that_died_is_waited_out(
    inside: str,
) -> None:
    machines = token_under_way(inside, size=3, others=1)
    machines.propose(1)
    machines.crash(1)
    machines.change_epoch(2)
    assert machines.holders() == []
    assert machines.nodes[2].member.proposal is not None
    machines.held_back = set()
    machines.pass_time(WAIT)
    assert machines.holders() == [3] and machines.who() == [3]


@inside
def test_a_token_under_way_that_only_its_senders_own_proposal_has_seen_is_surrendered_again(
    inside: str,
) -> None:
    machines = token_under_way(inside, size=3, others=1)
    machines.held_back = {"TOKEN", "PROMISE", "PROPOSE"}
    machines.propose(0)
    assert machines.nodes[0].member.holding.unaccepted is None
    machines.held_back = {"TOKEN"}
    machines.nodes[1].member.highest = machines.nodes[0].member.promised
    machines.change_epoch(1)
    assert machines.nodes[0].member.proposal is None
    first = machines.nodes[1].member.first
    assert first is not None and first.before == Epoch(1, 0, 1)  # its token was found, and
    assert machines.nodes[1].member.hop_seen == (first.epoch, 0)  # nothing is waited out
