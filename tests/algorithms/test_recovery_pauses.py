"""Rules 18 to 20 have their stories, as the others have in test_recovery_rules.py: nodes that are
away for less than a lease, or have just started. Undone, the same story does not end well."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from layer_machines import LEASE, POLL, WAIT, Machines, born
from undone import mutant, patched

from meshlock.algorithms.recovery.layer import Layer

Make = type[Layer]

# -- 18: a grant whose lease runs is reported, and kept if the token names it ---------------------


def who_was_away_keeps_its_grants(make: Make) -> bool:
    machines = born("direct", permits=2, make=make)
    machines.ask(0)
    machines.ask(2)
    machines.cut(2)
    machines.change_epoch(0)
    machines.pass_time(5 * POLL)
    machines.heal()
    machines.pass_time(5 * POLL)
    machines.change_epoch(1)
    machines.pass_time(2 * WAIT)
    return not machines.lost and machines.free() == 0


def without_the_token_what_lapses_is_over(make: Make) -> bool:
    """It may be freed where the token is, while who proposes does not know of it."""
    machines = born("direct", permits=2, make=make)
    machines.ask(0)
    machines.ask(2)
    machines.cut(2)
    machines.change_epoch(0)
    machines.heal()
    machines.pass_time(LEASE - 5 * POLL)
    machines.cut(0)
    machines.change_epoch(1)
    machines.pass_time(WAIT - LEASE + 7 * POLL)
    machines.ask(0, client=8)
    return machines.who() == [0, 2, 0] and not machines.overbooked()


# -- 19: a token that is reported late is not replaced --------------------------------------------


def a_token_is_found_late(make: Make) -> Machines:
    """Node 0 was away with it, and is back before node 1 has made another."""
    machines = born("direct", permits=2, make=make)
    machines.ask(0)
    machines.ask(2)
    machines.cut(0)
    machines.change_epoch(1)
    machines.pass_time(5 * POLL)
    machines.heal()
    machines.pass_time(2 * POLL)
    return machines


def who_was_away_with_the_token_keeps_its_grants(make: Make) -> bool:
    machines = a_token_is_found_late(make)
    machines.change_epoch(1)
    at_once = machines.holders() == [1] and machines.free() == 0
    machines.pass_time(2 * WAIT)
    return at_once and not machines.lost and machines.free() == 0


def the_next_epoch_begins_at_once(make: Make) -> bool:
    """Whatever the node that found it has proposed before, and when it meant to try again."""
    machines = a_token_is_found_late(make)
    timers = machines.nodes[1].timers
    timers.reason, timers.due = "the token was not seen for a lease", machines.now + 2 * LEASE
    machines.run(5 * POLL)
    return machines.holders() == [1] and machines.free() == 0


def what_it_let_out_counts(make: Make) -> bool:
    machines = a_token_is_found_late(make)
    machines.cut(0)
    machines.change_epoch(1)
    machines.ask(1)
    return machines.holders() == [1] and not machines.overbooked()


def nobody_is_let_in_before_it_is_known_inside(make: Make) -> bool:
    machines = a_token_is_found_late(make)
    return machines.nodes[1].member.holding.token is not None and not machines.holders()


def only_the_latest_token_is_found(make: Make) -> bool:
    """Node 0 missed an epoch, whose token has granted meanwhile."""
    machines = born("direct", size=5, make=make)
    machines.cut(0)
    machines.change_epoch(1)
    machines.pass_time(WAIT)
    machines.ask(1)
    machines.parts[1] = 2
    machines.unlink_parts()
    machines.change_epoch(2)
    machines.parts[0] = 0
    machines.pass_time(2 * POLL)
    machines.change_epoch(2)
    machines.ask(2)
    return machines.nodes[0].member.adopted.proposer == 2 and machines.who() == [1]


def who_was_left_out_proposes_at_once_whatever_it_wanted_before(make: Make) -> bool:
    machines = born("direct", permits=3, make=make)
    machines.ask(0)
    machines.ask(2)
    machines.cut(2)
    machines.change_epoch(0)
    machines.heal()
    machines.pass_time(5 * POLL)
    timers = machines.nodes[2].timers
    timers.reason, timers.due = "the token was not seen for a lease", machines.now + LEASE
    machines.run(5 * POLL)
    return machines.nodes[2].member.adopted.proposer == 2


# -- 20: a node in its quiet period reports what its present life has; that is no vote -------------


def a_young_node(make: Make, keeps_its_disk: bool = True) -> Machines:
    """Node 2 has restarted, and got a permit at once. The token stays, for node 0 has one too."""
    machines = born("direct", permits=3, make=make)
    machines.ask(0)
    machines.crash(2)
    if not keeps_its_disk:
        machines.disk[2] = None
        machines.floor = 100
    machines.start(2)
    machines.pass_time(POLL)
    machines.ask(2)
    assert machines.nodes[2].member.quiet() and machines.who() == [0, 2]
    return machines


def a_young_node_keeps_its_grants(make: Make) -> bool:
    machines = a_young_node(make)
    machines.change_epoch(1)
    machines.pass_time(2 * WAIT)
    return not machines.lost and machines.free() == 1


def a_young_node_that_was_away_keeps_its_grants(make: Make) -> bool:
    """Only members with a vote propose, so it asks them to."""
    machines = a_young_node(make)
    machines.cut(2)
    machines.change_epoch(1)
    machines.run(5 * POLL)
    machines.heal()
    machines.run(2 * WAIT)
    return not machines.lost


def a_young_node_hands_in_the_token(make: Make) -> bool:
    """So that the next one is there at once."""
    machines = born("jiang", make=make)
    machines.crash(2)
    machines.start(2)
    machines.pass_time(POLL)
    machines.ask(2)
    machines.change_epoch(1)
    return machines.holders() == [1] and machines.free() == 0


def what_a_former_life_holds_is_not_over(make: Make) -> bool:
    """Its command may still run, while the present life reports a grant of its own."""
    machines = born("direct", permits=3, make=make)
    machines.ask(0)
    machines.ask(2)
    machines.crash(2)
    machines.start(2)
    machines.change_epoch(0)
    machines.pass_time(POLL)
    machines.ask(2, client=8)
    machines.change_epoch(1)
    machines.ask(1)
    return machines.who() == [0, 2, 2] and machines.free() == 0


def what_it_reports_is_no_vote(make: Make) -> bool:
    machines = a_young_node(make)
    machines.cut(0)
    machines.change_epoch(1)
    return machines.nodes[1].member.adopted.proposer == 0


def it_votes_when_its_quiet_period_is_over(make: Make) -> bool:
    machines = a_young_node(make)
    machines.cut(0)
    machines.propose(1)
    machines.dropped = {"PROPOSE"}
    machines.pass_time(WAIT)
    machines.close(1)
    return machines.nodes[2].member.adopted.proposer == 1


def a_member_without_its_disk_keeps_its_grants(make: Make) -> bool:
    """It may have promised the epoch, so it has no vote; but it has what it has."""
    machines = a_young_node(make, keeps_its_disk=False)
    machines.change_epoch(1)
    kept = machines.free() == 1
    machines.pass_time(2 * WAIT)
    return kept and not machines.lost


STILL_LISTENS = """
@@ recovery/timers.py
-        news = reason in (LEFT_OUT, FOUND) and self.reason != reason
+        news = False
"""
IS_SILENT = """
@@ recovery/member.py
-        if self.quiet() and not has_anything(self):
+        if self.quiet():
"""
ASKS_NOBODY = """
@@ recovery/timers.py
-        if not member.is_member() or member.forgot or (left_out and member.quiet()):
+        if not member.is_member() or member.forgot:
"""
VOTES_WHILE_QUIET = """
@@ recovery/proposal.py
-            if node in members and not report.forgot and report.votes
+            if node in members and not report.forgot
"""
NEVER_VOTES = """
@@ recovery/layer.py
-        self.vote()
"""
REFUSES_TO_REPORT = """
@@ recovery/member.py
-            if not has_anything(self):
-                return
+            return
"""
KEEPS_WHAT_LAPSES = """
@@ recovery/member.py
-            Entry(self.me, fence, one.permits, one.epoch != self.adopted, one.slots, one.label)
+            Entry(self.me, fence, one.permits, False, one.slots, one.label)
"""
LOOKS_AT_NO_LATE_REPORT = """
@@ recovery/proposal.py
         token = report.token
+        return False
"""
GRANTS_WITH_A_LATE_TOKEN = """
@@ recovery/epoch.py
-        until = NEVER if proposal.late else proposal.until  # those inside do not know what is out
+        until = proposal.until
"""
FINDS_ANY_TOKEN = """
@@ recovery/proposal.py
-        if token is None or self.usable is not None or token.epoch != self.top:
+        if token is None or self.usable is not None:
"""

STORIES: list[tuple[Callable[[Make], bool], Make]] = [
    (who_was_away_keeps_its_grants, mutant("reports-its-epoch-alone")),
    (without_the_token_what_lapses_is_over, patched(KEEPS_WHAT_LAPSES)),
    (who_was_away_with_the_token_keeps_its_grants, patched(LOOKS_AT_NO_LATE_REPORT)),
    (the_next_epoch_begins_at_once, patched(STILL_LISTENS)),
    (what_it_let_out_counts, mutant("counts-nothing-late")),
    (nobody_is_let_in_before_it_is_known_inside, patched(GRANTS_WITH_A_LATE_TOKEN)),
    (only_the_latest_token_is_found, patched(FINDS_ANY_TOKEN)),
    (who_was_left_out_proposes_at_once_whatever_it_wanted_before, patched(STILL_LISTENS)),
    (a_young_node_keeps_its_grants, patched(IS_SILENT)),
    (a_young_node_that_was_away_keeps_its_grants, patched(ASKS_NOBODY)),
    (a_young_node_hands_in_the_token, patched(IS_SILENT)),
    (what_a_former_life_holds_is_not_over, mutant("ends-what-a-former-life-holds")),
    (what_it_reports_is_no_vote, patched(VOTES_WHILE_QUIET)),
    (it_votes_when_its_quiet_period_is_over, patched(NEVER_VOTES)),
    (a_member_without_its_disk_keeps_its_grants, patched(REFUSES_TO_REPORT)),
]


@pytest.mark.parametrize(("story", "undone"), STORIES)
def test_the_story_ends_well_and_without_the_rule_it_does_not(
    story: Callable[[Make], bool], undone: Make
) -> None:
    assert story(Layer)
    assert not story(undone)


@pytest.mark.parametrize("inside", ["direct", "jiang", "naimi-trehel"])
@pytest.mark.parametrize("away", [0, 2])
def test_by_themselves_they_go_on_as_before(inside: str, away: int) -> None:
    """At their own pace: who was away, and what it did before others noticed, is lost to nobody."""
    machines = born(inside, permits=1 if inside == "naimi-trehel" else 3, make=Layer)
    machines.ask(away)
    machines.run(LEASE)
    machines.cut(away)
    machines.run(6 * POLL)
    machines.heal()
    machines.run(4 * LEASE)
    assert not machines.lost
    machines.leave(away)
    for me in (0, 1, 2):
        machines.ask(me)
        machines.run(LEASE)
        machines.leave(me)
    assert machines.who() == [away, 0, 1, 2]
