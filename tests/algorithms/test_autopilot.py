"""Pools that were made, and members that choose themselves: in worlds of layered nodes."""

from __future__ import annotations

import pytest
from layer_stories import ALGORITHMS, GROWING, Story, links
from layer_world import LEASE, WAIT, World, Wrong
from undone import patched

from meshlock.algorithms.actor import Message
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.records import Change
from meshlock.algorithms.recovery.terms import Rules

RULES = Rules(5, LEASE, 3 * LEASE)


def world(size: int, shape: str = "complete", algorithm: str = "jiang", **more: object) -> World:
    rules = more.pop("rules", RULES)
    return World(algorithm, size, links(shape, size), rules=rules, **more)  # type: ignore[arg-type]


def members(world: World, node: int = 0) -> tuple[int, ...]:
    return world.nodes[node].member.members


def until(world: World, size: int, node: int = 0) -> None:
    end = world.now + 60 * LEASE
    while len(members(world, node)) != size:
        assert world.now < end, f"{members(world, node)} are the members"
        world.tick(end)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_pool_that_was_just_made_grants_at_once(algorithm: str) -> None:
    here = world(3, algorithm=algorithm)
    here.ask(0)
    assert here.now == 0 and len(here.held) == 1


@pytest.mark.parametrize("algorithm", ["jiang", "reverse-link"])
def test_where_links_may_change_who_comes_is_served_before_its_words_count(algorithm: str) -> None:
    here = world(3, "line", algorithm)
    here.ask(2)
    assert here.until_served(WAIT // 2)


def test_a_restarted_maker_waits_as_anybody_does() -> None:
    here = world(2)
    here.run(10)
    here.crash(0)
    here.start(0)
    began = here.now
    here.ask(0)
    assert here.until_served(4 * WAIT) and here.now - began >= WAIT


def test_a_maker_that_lost_its_disk_does_not_make_it_again() -> None:
    """The only member has forgotten that it was one: nobody may grant any more."""
    here = world(3)
    here.run(10)
    here.crash(0)
    here.start(0, forget=True)
    here.ask(0)
    assert not here.until_served(20 * LEASE)
    assert here.usable() == []


def test_members_grow_by_two_up_to_five() -> None:
    for size, expected in {1: 1, 2: 1, 3: 3, 4: 3, 5: 5, 6: 5, 7: 5}.items():
        here = world(size)
        here.run(20 * LEASE)
        assert len(members(here)) == expected, size
        assert all(members(here, node) == members(here) for node in members(here))


def test_a_pool_has_three_members_two_leases_after_three_have_met() -> None:
    here = world(3, rules=Rules(5, 10 * LEASE, 30 * LEASE))
    here.run(LEASE // 2)
    assert len(members(here)) == 1
    here.run(LEASE * 3 // 2)
    assert len(members(here)) == 3


def test_of_more_nobody_becomes_a_member_before_it_has_stayed() -> None:
    here = world(5, rules=Rules(5, 10 * LEASE, 30 * LEASE))
    here.run(9 * LEASE)
    assert len(members(here)) == 3
    until(here, 5)


def test_who_is_not_willing_is_not_promoted() -> None:
    here = world(4)
    here.nodes[3].timers.autopilot.willing = here.nodes[2].timers.autopilot.willing = False
    here.run(20 * LEASE)
    assert members(here) == (0,)


def test_a_dead_member_is_replaced_only_if_somebody_is_there() -> None:
    here = world(4)
    until(here, 3)
    here.run(5 * LEASE)
    (spare,) = set(range(4)) - set(members(here))
    dead = members(here)[1]
    here.crash(dead)
    here.run(15 * LEASE)
    assert spare in members(here)
    assert dead not in members(here) and len(members(here)) == 3
    (other,) = [one for one in members(here) if one not in (0, spare)]
    here.crash(other)
    here.run(20 * LEASE)
    assert other in members(here) and len(members(here)) == 3
    here.ask(0)
    assert here.until_served(10 * LEASE)


def test_a_short_absence_replaces_nobody() -> None:
    here = world(4)
    until(here, 3)
    here.run(5 * LEASE)
    before = members(here)
    for _ in range(5):
        here.crash(before[2])
        here.run(LEASE)
        here.start(before[2])
        here.run(2 * LEASE)
    assert members(here) == before


def test_a_member_that_forgot_votes_again_after_an_epoch_of_the_others() -> None:
    here = world(3)
    until(here, 3)
    here.run(2 * LEASE)
    here.crash(2)
    here.start(2, forget=True)
    here.run(3)
    node = here.nodes[2]
    assert node.member.forgot and not node.member.votes()
    here.run(6 * LEASE)
    assert not node.member.forgot and here.ready(2).member.votes()


class Distant(World):
    """What node 2 says takes a tenth of a lease, and more."""

    def fly(self, message: Message, sent: int, delay: int) -> None:
        super().fly(message, sent, delay + (LEASE // 6 if message.sender == 2 else 0))


def test_a_slow_member_that_forgot_is_waited_for() -> None:
    """Epochs that begin without its report would give it no vote, and it would ask for more."""
    here = Distant("direct", 3, links("complete", 3), rules=RULES)
    until(here, 3)
    here.run(2 * LEASE)
    here.crash(2)
    here.start(2, forget=True)
    before = len(here.epochs)
    here.run(4 * LEASE)
    assert here.ready(2).member.votes() and len(here.epochs) - before <= 3


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_random_worlds_whose_members_choose_themselves(algorithm: str) -> None:
    for seed in range(5):
        Story(algorithm, seed, rules=GROWING).tell()


def test_two_who_want_the_members_changed_do_not_stop_each_other() -> None:
    """A world in which one is asked for what the other wants by itself, links are slow, and each
    began an epoch before the token of the other's was made."""
    Story("jiang", 5075, rules=GROWING, more=False).tell()


# -- rule 16 undone -----------------------------------------------------------------------------


VOTES_THOUGH_IT_FORGOT = """
@@ recovery/member.py
-        return self.is_member() and not self.quiet() and not self.forgot
+        return self.is_member() and not self.quiet()
@@
-        if promise.report.forgot:
-            self.voteless[promise.sender] = self.now
@@ recovery/proposal.py
-            if node in members and not report.forgot and report.votes
+            if node in members and report.votes
@@ recovery/catching_up.py
-                    member.send(Voteless(node))
+                    pass
"""


def test_a_node_that_stops_before_it_is_added_costs_no_epoch_and_is_added_when_it_is_back() -> None:
    """World 300559 of suzuki-kasami: a new epoch began every twentieth of a lease, for ever."""
    here = world(4, "star", rules=Rules(1, LEASE, 3 * LEASE))
    here.run(2 * LEASE)
    here.crash(1)
    here.nodes[0].timers.change = Change(add=1)
    here.run(LEASE)
    before = here.nodes[0].member.adopted
    here.run(20 * LEASE)
    assert here.nodes[0].member.adopted == before and members(here) == (0,)
    assert here.nodes[0].timers.change == Change(add=1)
    here.start(1)
    until(here, 2, node=1)
    assert members(here) == members(here, 1) == (0, 1)


def changed(here: World, node: int, change: Change) -> None:
    """That node has the members change."""
    pace = here.nodes[node].timers
    pace.change = change
    end = here.now + 60 * LEASE
    while pace.change is not None:
        assert here.now < end, f"{members(here, node)} are the members"
        here.tick(end)


def isolate(here: World, part: set[int]) -> None:
    for a, b in sorted(here.all_links):
        here.set_link(a, b, (a in part) == (b in part))


def a_stale_member_and_one_that_forgot(make: type[Layer]) -> World:
    """Node 0 missed two changes, which ended with {1, 2, 3}. It still goes by {0, 1, 2}, and meets
    node 1 there, which has lost its disk; 2 and 3 are a majority elsewhere."""
    here = world(4, make=make, rules=Rules(1, LEASE, 99 * LEASE))
    for node in here.nodes:
        node.timers.autopilot.willing = False  # nobody but this story chooses members
    here.run(2 * LEASE)
    changed(here, 0, Change(add=1))
    changed(here, 1, Change(add=2))
    here.run(LEASE)
    isolate(here, {0})
    changed(here, 1, Change(add=3))
    changed(here, 1, Change(remove=0))
    here.crash(1)
    isolate(here, {0, 1})
    here.start(1, forget=True)
    here.run(30 * LEASE)
    return here


def test_who_forgot_does_not_help_a_minority_that_is_behind() -> None:
    here = a_stale_member_and_one_that_forgot(Layer)
    (holder,) = here.usable()
    assert holder in (2, 3) and members(here, 2) == (1, 2, 3)
    assert members(here, 0) == (0, 1, 2) and here.nodes[1].member.forgot
    here.ask(1)
    isolate(here, set())  # together again
    assert here.until_served(30 * LEASE)
    here.run(2 * LEASE)
    assert members(here, 1) == (1, 2, 3) and not here.nodes[1].member.forgot


def test_if_it_voted_there_would_be_two_tokens() -> None:
    with pytest.raises(Wrong, match="tokens at"):
        a_stale_member_and_one_that_forgot(patched(VOTES_THOUGH_IT_FORGOT))


ADDS_WHO_HAS_NOT_REPORTED = """
@@ recovery/proposal.py
-            return len(self.terms.members) > 0
+            return True
"""


def one_that_became_a_member_while_it_was_slow(make: type[Layer]) -> World:
    """Node 2 has joined, but no epoch has told it who the members are, and it is paused while it is
    to become one. As soon as it has, it restarts, and another member loses its disk."""
    here = world(3, make=make, rules=Rules(1, LEASE, 99 * LEASE))
    here.run(LEASE // 2)
    here.asleep.add(2)
    changed(here, 0, Change(add=1))
    here.nodes[0].timers.change = Change(add=2)
    here.run(10 * LEASE)
    here.asleep.discard(2)
    until(here, 3)
    here.crash(2)
    here.start(2)
    here.crash(1)
    here.start(1, forget=True)
    here.run(2 * LEASE)
    here.ask(0)
    return here


def test_one_lost_disk_of_three_stops_nobody_however_young_the_members_are() -> None:
    here = one_that_became_a_member_while_it_was_slow(Layer)
    assert here.until_served(10 * LEASE)


def test_it_would_if_members_did_not_know_that_they_are() -> None:
    here = one_that_became_a_member_while_it_was_slow(patched(ADDS_WHO_HAS_NOT_REPORTED))
    assert here.nodes[2].member.forgot and not here.until_served(30 * LEASE)


MAKES_IT_AGAIN = """
@@ recovery/layer.py
         member.start(life)
+        if life.boot > 1 and life.kept is None and self.me == 0:
+            self.start(life._replace(boot=1, alone=True, founds=True))
"""
"""Without a disk it takes its pool for new."""


def test_a_pool_made_again_under_its_identity_would_grant_twice() -> None:
    here = world(2, make=patched(MAKES_IT_AGAIN))
    here.ask(0)
    here.crash(0)
    here.start(0, forget=True)
    with pytest.raises(Wrong, match="2 of 1 permits in use"):
        here.ask(0)
