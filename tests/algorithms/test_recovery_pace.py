"""Recovery at its pace: who proposes when, who is told what, and how soon all is well again."""

from __future__ import annotations

from types import FunctionType

import pytest
from layer_machines import INSIDE, LEASE, NOTICE, POLL, SEVERAL, WAIT, Machines, everybody_near

from meshlock.algorithms.actor import Enter
from meshlock.algorithms.recovery.messages import Propose, content
from meshlock.algorithms.recovery.records import NO_EPOCH, Change, Epoch
from meshlock.algorithms.recovery.terms import Terms
from meshlock.algorithms.recovery.timers import Timers
from meshlock.algorithms.registry import find

LITTLE = LEASE // 3
BIRTH = Epoch(1, 0, 1)

inside = pytest.mark.parametrize("inside", INSIDE)
several = pytest.mark.parametrize("inside", SEVERAL)
OPEN = ("jiang", "direct")
fixed = pytest.mark.parametrize("inside", ("direct", "naimi-trehel"))


def born(inside: str, permits: int = 1, size: int = 3, others: int = 0) -> Machines:
    machines = Machines(inside, permits, size, others)
    machines.run_until_usable()
    return machines


def several_permits(inside: str, permits: int) -> int:
    return permits if inside in SEVERAL else 1


def hold(machines: Machines, holder: int, *others: int) -> None:
    """One permit each, and the token is at ``holder``: it stays with who asked first where grants
    are sent to others, and else goes to who asked last."""
    lends = machines.terms.algorithm.name == "direct"
    for me in (holder, *others) if lends else (*others, holder):
        machines.ask(me)
    assert machines.holders() == [holder] and len(machines.granted) == 1 + len(others)


# -- how soon --------------------------------------------------------------------------------


@inside
def test_a_pool_is_born_after_the_quiet_period_and_one_wait_by_one_proposal(inside: str) -> None:
    machines = Machines(inside, size=5)
    assert machines.run_until_usable() <= 2 * WAIT + LITTLE
    assert machines.epochs() == {BIRTH}


@inside
def test_who_has_nothing_to_do_may_sleep_until_a_lease_has_to_be_renewed(inside: str) -> None:
    machines = born(inside)
    machines.run(2 * LEASE)
    (holder,) = machines.holders()
    for me in range(3):
        node = machines.at(me)
        assert node.member.now < node.timers.rests_until() <= node.member.now + LEASE // 3
    node = machines.at(holder)
    assert (
        node.member.holding.token is not None
        and node.timers.rests_until() <= node.member.holding.token.until - 2 * LEASE // 3
    )
    machines.ask(holder)  # something is going on
    assert node.timers.rests_until() == node.member.now
    machines.leave(holder)
    assert node.timers.rests_until() > node.member.now
    node.cannot_reach({(holder + 1) % 3})
    assert node.timers.rests_until() == node.member.now
    node.cannot_reach(set())
    node.timers.change = Change(permits=5)
    assert node.timers.rests_until() == node.member.now


@inside
def test_a_killed_holder_is_replaced_within_two_leases_by_one_proposal(inside: str) -> None:
    machines = born(inside, several_permits(inside, 2), size=5)
    machines.ask(3)
    assert machines.holders() == [3]
    machines.kill(3)
    assert machines.run_until_usable() <= NOTICE + WAIT + LITTLE < 2 * LEASE
    assert {epoch.counter for epoch in machines.epochs()} == {2}


@inside
def test_a_killed_holder_that_is_back_at_once_is_missed_all_the_same(inside: str) -> None:
    machines = born(inside, several_permits(inside, 2), size=5)
    machines.ask(3)
    machines.kill(3)
    machines.start(3)
    assert machines.run_until_usable() <= LEASE // 2 + WAIT + LITTLE < 2 * LEASE


@several
def test_the_permits_of_a_killed_client_come_back_and_others_notice_nothing(inside: str) -> None:
    machines = born(inside, permits=3, size=5)
    hold(machines, 1, 2, 3)
    machines.run(LEASE)  # everybody has heard by now who has the token
    assert machines.free() == 0
    machines.kill(3)
    without = 0
    for _ in range(0, NOTICE + WAIT + LITTLE, POLL):
        machines.run(POLL)
        if inside == "jiang":
            without += machines.holders() != [1]
        else:  # where the network is fixed, any member may propose, and then has the token
            without += not machines.holders()
    assert without == 1  # from the proposal to the wake after it
    assert machines.free() == 1
    assert machines.lost == []


def test_a_token_lost_with_its_link_is_sent_again_another_way() -> None:
    machines = born("jiang", permits=2)
    machines.held_back = {"TOKEN"}
    machines.ask(2)
    machines.held_back = set()
    assert [content(message).kind for message in machines.kept] == ["TOKEN"]
    assert machines.holders() == []
    machines.sever(0, 2)
    machines.run(LEASE // 3 + POLL)
    assert machines.clients() == [(2, 7)]
    machines.deliver_kept()  # it was not lost, only late
    assert machines.clients() == [(2, 7)] and machines.free() == 1
    assert machines.epochs() == {BIRTH}


@fixed
def test_a_token_without_a_way_waits_for_one(inside: str) -> None:
    machines = born(inside)
    machines.held_back = {"TOKEN"}
    machines.ask(2)
    machines.held_back = set()
    machines.cut(2)
    machines.run(POLL)
    machines.heal()
    machines.deliver_kept()
    machines.run(LEASE)
    assert machines.clients() == [(2, 7)]
    assert machines.epochs() == {BIRTH}


@inside
def test_an_accepted_that_was_lost_costs_no_epoch_and_the_token_is_taken_once(inside: str) -> None:
    machines = born(inside, several_permits(inside, 2))
    machines.dropped = {"ACCEPTED"}
    machines.ask(2)
    machines.dropped = set()
    assert machines.nodes[0].member.holding.unaccepted is not None
    machines.run(LEASE)
    assert machines.nodes[0].member.holding.unaccepted is None
    assert machines.epochs() == {BIRTH}
    assert machines.holders() == [2] and machines.lost == []


@inside
def test_a_holder_whose_proposal_came_to_nothing_hands_its_token_over_all_the_same(
    inside: str,
) -> None:
    machines = born(inside, size=5)
    machines.at(0).propose()
    machines.out.clear()  # nobody heard it
    machines.nodes[3].member.highest = machines.nodes[0].member.promised
    machines.propose(3)
    machines.run(POLL)
    assert machines.holders() == [3]


@inside
def test_a_holder_that_proposes_twice_loses_nothing(inside: str) -> None:
    machines = born(inside, size=5)
    machines.at(0).propose()
    machines.out.clear()
    machines.propose(0)
    machines.run(POLL)
    assert machines.holders() == [0]


# -- no reason -------------------------------------------------------------------------------


@inside
def test_waiting_for_ones_turn_is_no_reason_to_propose(inside: str) -> None:
    machines = born(inside)
    machines.ask(0)
    machines.ask(1)
    machines.run(10 * LEASE)
    assert machines.epochs() == {BIRTH}
    assert machines.clients() == [(0, 7)] and machines.lost == []


def test_a_restarted_member_that_had_nothing_joins_without_an_epoch() -> None:
    """Where links may change: rule 13."""
    machines = born("jiang", permits=2)
    machines.ask(0)
    machines.kill(2)
    machines.start(2)
    machines.run(2 * LEASE)
    assert machines.epochs() == {BIRTH}
    machines.ask(2)
    assert machines.clients() == [(0, 7), (2, 7)]
    assert machines.epochs() == {BIRTH}


@several
def test_the_permits_of_a_former_life_come_back_after_its_last_command(inside: str) -> None:
    """Its node takes no part before the next epoch, which it proposes when it may."""
    machines = born(inside, permits=2)
    hold(machines, 0, 2)
    machines.kill(2)
    machines.start(2)
    machines.run(WAIT - POLL)
    assert machines.free() == 0  # a command of its former life may still run
    machines.run(2 * LEASE)
    assert machines.free() == 1 and machines.lost == []
    machines.ask(2)
    assert machines.clients()[2:] == [(2, 7)]


@inside
def test_who_was_cut_off_comes_back(inside: str) -> None:
    """Without a new epoch where nodes may come and go; else with one, for they take no part in
    it."""
    machines = born(inside, size=5)
    machines.ask(0)
    machines.cut(0, 1)
    machines.run(3 * LEASE)
    assert machines.lost == [(0, machines.granted[0][2])]
    assert machines.nodes[1].member.promised == BIRTH  # no majority, no proposal
    (holder,) = machines.holders()
    assert holder not in (0, 1)
    epoch = machines.nodes[holder].member.adopted
    assert epoch.counter == 2
    machines.heal()
    machines.run(2 * LEASE)
    if inside in OPEN:
        assert machines.epochs() == {epoch}
    else:
        assert {epoch.counter for epoch in machines.epochs()} == {3}
    machines.ask(1)
    assert machines.clients() == [(0, 7), (1, 7)]


@several
def test_who_is_back_while_an_epoch_is_proposed_is_asked_for_its_report(inside: str) -> None:
    """The proposal waits for it, but for less than the time after which it is repeated."""
    machines = born(inside, permits=2)
    hold(machines, 0, 2)
    machines.cut(2)
    machines.held_back = {"PROMISE"}
    while machines.nodes[0].member.proposal is None:
        machines.run(POLL)
    machines.held_back = set()
    machines.heal()
    machines.deliver_kept()
    machines.run(2 * LEASE)
    assert machines.lost == [] and machines.free() == 0
    assert {epoch.counter for epoch in machines.epochs()} == {2}


@inside
def test_a_paused_member_listens_before_it_proposes(inside: str) -> None:
    machines = born(inside)
    asleep = machines.nodes[0]
    machines.kill(0)  # its links time out
    machines.run(4 * LEASE)
    (epoch,) = machines.epochs()
    assert epoch.counter == 2
    del machines.down_since[0]
    machines.nodes[0] = asleep
    for other in (1, 2):
        machines.unlink(0, other)
        machines.link(0, other)
    machines.run(2 * LEASE)
    if inside in OPEN:
        assert machines.epochs() == {epoch}
    else:  # it takes no part in the one that was made without it
        assert {epoch.counter for epoch in machines.epochs()} == {3}
    assert len(machines.holders()) == 1


@pytest.mark.parametrize("doubts", [True, False])
def test_who_waits_asks_again_when_a_node_has_restarted(
    doubts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an open algorithm a request may be lost with any node that forwards it."""
    if not doubts:
        if not isinstance(Timers.look_for_doubts, FunctionType):
            pytest.skip("replaces a method of a compiled class")
        monkeypatch.setattr(Timers, "look_for_doubts", lambda self, now: None)
    machines = born("direct", size=5)
    machines.dropped = {"REQUEST"}
    machines.ask(4)
    machines.dropped = set()
    machines.crash(3)
    machines.start(3)
    machines.run(2 * LEASE)
    assert machines.who() == ([4] if doubts else [])
    assert len(machines.epochs()) == 1


def test_whoever_cannot_be_reached_is_not_waited_for() -> None:
    machines = born("direct", size=5)
    machines.ask(0)
    machines.ask(4)
    machines.ask(3)
    machines.kill(4)
    machines.run(LEASE)
    machines.leave(0)
    assert machines.who() == [0, 3]
    assert len(machines.epochs()) == 1


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("permits", [1, 2])
def test_who_was_gone_without_noticing_is_told_to_ask_again(lost: bool, permits: int) -> None:
    """A link may be silent in one direction only, or be back before its other end looks."""
    machines = born("direct", permits, size=5)
    machines.ask(0, want=permits)
    machines.ask(4, priority=5)
    machines.ask(3)
    machines.missed = {0: 4}
    machines.run(POLL)
    assert all(want == 0 for node, _, want, *_ in machines.nodes[0].epoch.inner.queue if node == 4)
    machines.missed = {}
    machines.dropped = {"FORGOTTEN"} if lost else set()
    machines.run(POLL)
    machines.dropped = set()
    machines.run(LEASE)
    told = machines.sent.count("FORGOTTEN")
    machines.leave(0)
    assert machines.who()[:2] == [0, 4]
    assert len(machines.epochs()) == 1
    machines.run(2 * LEASE)
    assert 1 < machines.sent.count("FORGOTTEN") <= told + 1


def test_who_asked_for_nothing_is_told_nothing_when_it_is_back() -> None:
    machines = born("direct", size=5)
    machines.ask(0)
    machines.ask(4)
    machines.withdraw(4)
    machines.missed = {0: 4}
    machines.run(POLL)
    machines.missed = {}
    machines.run(LEASE)
    assert "FORGOTTEN" not in machines.sent


# -- those who may not propose ---------------------------------------------------------------


@several
def test_a_client_that_is_no_member_gets_members_to_propose(inside: str) -> None:
    machines = born(inside, permits=2, others=2)
    hold(machines, 3, 4)
    machines.kill(4)
    machines.run(NOTICE + WAIT + LITTLE)
    assert machines.free() == 1
    assert machines.lost == []


def propose_to(machines: Machines, proposer: int, *receivers: int) -> None:
    """Its PROPOSE arrives there and nowhere else, and its own promise is not on disk yet."""
    machines.at(proposer).propose()
    said = [effect for _, effect in machines.said(proposer) if isinstance(effect, Propose)]
    for message in said:
        if message.receiver in receivers:
            machines.deliver(message)


@inside
def test_who_is_no_member_and_promised_to_the_dead_is_served_again(inside: str) -> None:
    """The members know nothing of that epoch: it tells them, and they propose a higher one."""
    machines = born(inside, others=2)
    machines.held_back = {"PROMISE"}
    propose_to(machines, 1, 3)
    machines.held_back = set()
    machines.crash(1)
    machines.ask(3)
    assert "a new epoch will be proposed" not in why(machines, 3)
    machines.run(LEASE)
    assert machines.who() == [3]


@inside
def test_who_is_no_member_and_promised_to_a_former_life_is_served_again(inside: str) -> None:
    """A lone member dies before its promise is on disk, and is back at once: it makes an epoch of
    the same number, which is lower if its boot is. Nobody is unreachable."""
    machines = born(inside, size=1, others=2)
    machines.boots[0] = 100
    machines.kill(0)
    machines.start(0)
    machines.run(3 * LEASE)
    propose_to(machines, 0, 2)
    machines.boots[0] = 50
    machines.cut(2)
    machines.kill(0)
    machines.start(0)
    machines.run(2 * WAIT)
    machines.heal()
    assert (
        machines.nodes[2].member.promised
        > machines.nodes[0].member.promised
        == machines.nodes[1].member.adopted
    )
    machines.ask(2)
    machines.run(LEASE)
    machines.ask(1)
    machines.leave(2)
    assert machines.who() == [2, 1]


@inside
@pytest.mark.parametrize("dead", [False, True])
def test_who_does_not_know_the_members_any_more_gets_word_to_them(inside: str, dead: bool) -> None:
    """It knows one that is none since, and hands on what it says; or that is dead."""
    machines = born(inside, size=1, others=3)
    machines.cut(3)
    machines.nodes[0].timers.change = Change(add=1)
    machines.run(LEASE)
    machines.nodes[1].timers.change = Change(remove=0)
    machines.run(2 * LEASE)
    assert machines.nodes[0].member.members == machines.nodes[1].member.members == (1,)
    machines.nodes[3].member.promised = Epoch(90, 2, 7)
    if dead:
        machines.crash(0)
    machines.heal()
    machines.ask(3)
    machines.run(3 * LEASE)
    assert machines.who() == [3]


# -- order -----------------------------------------------------------------------------------


@several
def test_the_most_urgent_is_served_first_whichever_node_it_is_on(inside: str) -> None:
    machines = born(inside)
    machines.ask(0)
    machines.ask(1, client=1)
    machines.ask(2, priority=5, client=2)
    machines.ask(1, priority=9, client=3)
    machines.leave(0)
    machines.leave(1, client=3)
    machines.leave(2, client=2)
    assert machines.clients() == [(0, 7), (1, 3), (2, 2), (1, 1)]


def test_the_most_urgent_of_a_node_is_served_first_where_it_takes_one_at_a_time() -> None:
    machines = born("naimi-trehel")
    machines.ask(0)
    machines.ask(1, client=1)  # this one asks inside, and keeps its turn
    machines.ask(1, client=2)
    machines.ask(1, priority=5, client=3)
    machines.leave(0)
    machines.leave(1, client=1)
    machines.leave(1, client=3)
    assert machines.clients() == [(0, 7), (1, 1), (1, 3), (1, 2)]


@several
def test_who_wants_less_does_not_overtake(inside: str) -> None:
    machines = born(inside, permits=2)
    machines.ask(0)
    machines.ask(1, want=2)
    machines.ask(2)
    assert machines.clients() == [(0, 7)]
    machines.leave(0)
    machines.leave(1)
    assert machines.clients() == [(0, 7), (1, 7), (2, 7)]


@several
def test_nobody_starves_behind_higher_priorities(inside: str) -> None:
    machines = born(inside)
    machines.ask(0)
    machines.ask(1, client=1)
    for _ in range(101):
        holder = machines.granted[-1][0]
        machines.ask(2 if holder == 0 else 0, priority=1)
        machines.leave(holder)
        if machines.clients()[-1] == (1, 1):
            break
    assert (1, 1) in machines.clients()
    assert len(machines.granted) > 90  # one step of priority is worth a hundred grants


@several
def test_a_request_withdrawn_leaves_no_ghost(inside: str) -> None:
    machines = born(inside, permits=2)
    machines.ask(0)
    machines.ask(1, want=2)
    machines.ask(2)
    assert machines.withdraw(1)
    assert machines.clients() == [(0, 7), (2, 7)]
    assert not machines.withdraw(2)  # it has what it wanted


def test_a_request_withdrawn_in_vain_lets_the_next_one_in() -> None:
    """naimi-trehel cannot take a request back: who gave up is let in and leaves at once."""
    machines = born("naimi-trehel")
    machines.ask(0)
    machines.ask(1)
    machines.ask(2)
    assert machines.withdraw(1)
    assert not machines.withdraw(1)
    machines.leave(0)
    assert machines.clients() == [(0, 7), (2, 7)]


# -- members ---------------------------------------------------------------------------------


@inside
def test_a_member_is_added_and_another_removed_while_clients_go_on(inside: str) -> None:
    permits = several_permits(inside, 2)
    machines = born(inside, permits, size=2, others=1)
    machines.ask(1)
    machines.nodes[0].timers.change = Change(add=2)
    machines.run(LEASE)
    assert {node.member.members for node in machines.nodes.values()} == {(0, 1, 2)}
    machines.nodes[0].timers.change = Change(remove=1)
    machines.run(LEASE)
    assert {node.member.members for node in machines.nodes.values()} == {(0, 2)}
    assert machines.nodes[0].timers.change is None
    assert not machines.nodes[1].member.is_member()
    assert machines.lost == []
    machines.kill(2)
    machines.run(2 * LEASE)
    assert machines.holders() == []  # it counts
    machines.start(2)
    assert machines.nodes[2].member.members == (0, 2)  # and remembers that it does
    machines.run(4 * LEASE)
    assert machines.free() == permits


# -- permits ---------------------------------------------------------------------------------


@several
def test_more_permits_are_granted_at_once_and_stay(inside: str) -> None:
    machines = born(inside, permits=1)
    machines.ask(1)
    machines.ask(2)
    assert machines.who() == [1]
    machines.nodes[0].timers.change = Change(permits=3)
    machines.run(LEASE)
    assert machines.who() == [1, 2] and machines.lost == []
    assert machines.free() == 1
    machines.kill(0)  # an epoch later everybody still knows
    machines.run(4 * LEASE)
    machines.leave(1)
    machines.leave(2)
    machines.run(4 * LEASE)
    assert machines.free() == 3
    machines.start(0)
    assert machines.nodes[0].member.config.permits == 3


@several
def test_fewer_than_are_held_grants_nothing_until_enough_came_back(inside: str) -> None:
    machines = born(inside, permits=3, size=4)
    for me in (0, 1, 2, 3):
        machines.ask(me)
    machines.nodes[0].timers.change = Change(permits=1)
    machines.run(2 * LEASE)
    assert machines.who() == [0, 1, 2] and machines.lost == []
    assert {node.member.config.permits for node in machines.nodes.values()} == {1}
    (holder,) = machines.holders()
    machines.nodes[holder].clients.waiting.setdefault(9, (1, 0, 0, 0))
    why = machines.nodes[holder].timers.why(machines.now)
    assert why == "the pool was made smaller: 2 too many are still in use"
    machines.nodes[holder].clients.waiting.pop(9, None)
    for me in (1, 0):
        machines.leave(me)
        machines.run(LEASE)
        assert len(machines.who()) == 3
    machines.leave(2)
    machines.run(LEASE)
    assert machines.who() == [0, 1, 2, 3]


@several
def test_too_much_that_is_out_is_free_when_its_node_is_dead_for_a_lease(inside: str) -> None:
    machines = born(inside, permits=2)
    machines.ask(1)
    machines.ask(2)
    machines.nodes[0].timers.change = Change(permits=1)
    machines.run(LEASE)
    machines.kill(1)
    machines.kill(2)
    machines.start(1)
    machines.run(6 * LEASE)
    assert machines.free() == 1


@several
def test_whoever_wants_more_than_there_are_waits_and_may_give_up(inside: str) -> None:
    machines = born(inside, permits=3)
    machines.ask(1, want=2)
    machines.ask(2, want=3)
    machines.ask(2, want=2, client=8)
    machines.nodes[0].timers.change = Change(permits=2)
    machines.run(LEASE)
    machines.leave(1)
    machines.run(LEASE)
    assert machines.clients() == [(1, 7), (2, 8)]
    assert machines.withdraw(2, 7)
    machines.ask(0, want=3)
    machines.leave(2, 8)
    machines.nodes[1].timers.change = Change(permits=3)
    machines.run(LEASE)
    assert machines.clients() == [(1, 7), (2, 8), (0, 7)]


def test_permits_that_differ_from_the_start_are_a_conflict() -> None:
    machines = Machines("direct", 1)
    machines.run(LEASE // 2)
    machines.nodes[2].member.config = machines.nodes[2].member.config._replace(permits=2)
    machines.run(2 * LEASE)
    assert machines.conflicts


def test_the_last_member_is_not_removed() -> None:
    machines = born("direct", size=1)
    machines.nodes[0].timers.change = Change(remove=0)
    machines.run(LEASE)
    assert machines.nodes[0].member.members == (0,)
    epochs = machines.epochs()
    machines.run(10 * LEASE)
    assert machines.epochs() == epochs  # it is not tried for ever


@inside
def test_a_member_with_another_lease_is_refused_and_both_hear_why(inside: str) -> None:
    machines = born(inside, size=5)
    machines.kill(4)
    terms = machines.terms
    other = Terms(
        *(terms.nodes, terms.members, 1, 2 * LEASE, 2 * WAIT),
        *(find(inside), terms.options, everybody_near),
    )
    machines.start(4, other)
    machines.run(4 * LEASE)
    assert machines.nodes[4].member.adopted == NO_EPOCH
    assert (4, 0) in machines.conflicts
    assert len(machines.holders()) == 1


# -- sentences -------------------------------------------------------------------------------


@inside
def test_why_one_waits_is_said_in_a_sentence(inside: str) -> None:
    machines = Machines(inside, size=5)
    machines.ask(1)
    machines.run(1860)
    assert why(machines, 1) == "restarted, in its quiet period for 1.2 s more"
    machines.run(1300)
    assert why(machines, 0) == ""  # nobody waits here
    machines.ask(0)
    assert why(machines, 0).startswith("the token was lost; a new one is made in 3")
    machines.run(WAIT)
    first = machines.granted[0][0]  # 0 or 1
    other = 1 - first
    assert machines.who() == [first]
    machines.ask(first, client=8)
    assert why(machines, first) == "all permits are in use"
    assert why(machines, other) == f"waiting for the token (holder: node {first})"
    machines.leave(first)
    machines.leave(machines.granted[1][0], client=machines.granted[1][1])
    assert len(machines.granted) == 3 and why(machines, 0) == why(machines, 1) == ""
    machines.ask(0, client=9)
    machines.cut(0, 1)
    machines.run(POLL)
    assert why(machines, 0) == "quorum lost: 2 of 5 members reachable"


def why(machines: Machines, me: int) -> str:
    return machines.at(me).timers.why(machines.now)


@inside
def test_all_permits_are_in_use(inside: str) -> None:
    machines = born(inside)
    machines.ask(0)
    machines.ask(0, client=8)
    assert why(machines, 0) == "all permits are in use"


COSTS = {
    "direct": ["REQUEST", "TOKEN"],
    "jiang": ["REQUEST", "TOKEN", "LINK"],
    "naimi-trehel": ["REQUEST", "TOKEN"],
}


@inside
def test_no_message_is_sent_at_an_idle_holder_and_as_many_as_inside_for_a_far_client(
    inside: str,
) -> None:
    machines = born(inside)
    machines.at(0).request(7, 1, 0)
    assert [type(effect) for effect in machines.out] == [Enter]
    machines.carry(0)
    machines.leave(0)
    machines.sent.clear()
    machines.ask(2)
    assert sorted(machines.sent) == sorted(COSTS[inside])
    machines.leave(2)
    assert len(machines.sent) == len(COSTS[inside])
    machines.run(POLL)
    assert machines.sent.count("ACCEPTED") == 1  # receipts go when the node wakes, together


# -- what is lost or late --------------------------------------------------------------------


@inside
def test_a_lost_promise_is_given_again_with_the_token_that_it_surrendered(inside: str) -> None:
    machines = born(inside, size=3)
    machines.ask(1)
    machines.leave(1)
    assert machines.holders() == [1]
    machines.dropped = {"PROMISE"}
    machines.at(0).member.suggested_until = machines.now + LEASE
    machines.run(2 * POLL)
    assert machines.holders() == []
    machines.dropped = set()
    assert machines.run_until_usable() <= LEASE // 3 + LITTLE  # no lease is waited out
    assert {epoch.counter for epoch in machines.epochs()} == {2}


@inside
def test_ledgers_are_sent_until_they_are_confirmed(inside: str) -> None:
    """As if every disk took a lease and a half for it."""
    machines = born(inside, size=3)
    machines.dropped = {"CONFIRM"}
    machines.propose(0)
    machines.run(LEASE + LEASE // 2)
    machines.dropped = set()
    machines.run_until_usable()
    assert {epoch.counter for epoch in machines.epochs()} == {2}
