"""Live nodes with one rule undone: the judges of live nodes must notice each.

Those of recovery are the mutants of the checker, in the real pool; the others are in what carries
the algorithm: the pool's adapter, its disk, its clock, and the links.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import msgspec

from meshlock.algorithms import direct, steps
from meshlock.algorithms.actor import Effect, Lost, Save
from meshlock.algorithms.ageing import NoAgeing
from meshlock.algorithms.direct import DirectNode
from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.algorithms.mutants.mutant import Mutant
from meshlock.algorithms.mutants.patches import PACKAGE, Patched
from meshlock.algorithms.ranked import Asked
from meshlock.algorithms.recovery import member, proposal, timers
from meshlock.algorithms.recovery.autopilot import Autopilot
from meshlock.algorithms.recovery.catching_up import CatchingUp
from meshlock.algorithms.recovery.epoch import EpochState
from meshlock.algorithms.recovery.keeper import TokenKeeper
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.member import PoolMember
from meshlock.algorithms.recovery.messages import Renew, Suggest
from meshlock.algorithms.recovery.proposal import Proposal
from meshlock.algorithms.recovery.records import NEVER, NO_EPOCH, Change, Life, ReleasedPart
from meshlock.live.interfaces import http, sessions
from meshlock.live.interfaces.registry import Registry
from meshlock.live.links.frames import Carry
from meshlock.live.links.mesh import Mesh
from meshlock.live.links.session import LinkSession
from meshlock.live.pools import adapter, members, waiting
from meshlock.live.pools.adapter import Adapter, Measures
from meshlock.live.pools.birth import Expected
from meshlock.live.pools.change_requests import ChangeRequests
from meshlock.live.pools.members import Disk, LayerRunner
from meshlock.live.pools.participation import Participation
from meshlock.live.pools.pool import LocalPool
from meshlock.live.pools.promises import Promised, Promises


class Sabotage(NamedTuple):
    """What is replaced by what: by a value, a mutant, or a patch of the recovery layer.
    ``test``: one that fails under it, where chaos and simulations do not notice it."""

    name: str
    what: str
    patches: list[tuple[Any, str, Any]]
    test: str = ""

    def possible(self) -> bool:
        """Nothing in a compiled module can be replaced."""
        return not any(compiled(place) for place, _, _ in self.patches)


def compiled(place: Any) -> bool:
    module = sys.modules[place.__module__] if isinstance(place, type) else place
    return not str(module.__file__).endswith(".py")


@contextmanager
def sabotaged(sabotage: Sabotage) -> Iterator[None]:
    assert sabotage.possible(), "it would replace something in a compiled module"
    with ExitStack() as stack:
        for place, name, instead in sabotage.patches:
            if isinstance(instead, Mutant):
                instead = instead.layer
            elif isinstance(instead, str):
                instead = Patched(sabotage.name, instead).module(f"{PACKAGE}.recovery.layer").Layer
            stack.enter_context(mock.patch.object(place, name, instead))
        yield


# -- the pool's adapter --------------------------------------------------------------------------


def revoke_silently(pool: Adapter, number: int) -> None:
    waiter = pool.clients.pop(number)
    if waiter.grant is not None:
        waiter.grant.ended = True


def until_and_more(self: LayerRunner, client: int) -> float | None:
    until = honest_until(self, client)
    return None if until is None else until + self.configuration.lease / 4e6


def wait_for_no_disk(self: Disk, effects: list[Effect]) -> list[Effect]:
    """What stands behind a promise leaves before it is written."""
    honest_pass_on(self, [effect for effect in effects if isinstance(effect, Save)])
    return [effect for effect in effects if not isinstance(effect, Save)]


def write_the_first_only(self: Promises, promised: Promised) -> bool:
    """The disk keeps what is old."""
    path = self.folder / f"{promised.pool.pool}.promised"
    return True if path.exists() else honest_write(self, promised)


def write_what_fails(self: Promises, promised: Promised) -> bool:
    """A write that fails is not noticed."""
    honest_write(self, promised)
    return True


def deliver_without_age(self: Adapter, sender: str, frame: Any, shape: Any) -> None:
    with mock.patch.object(Mesh, "age", lambda mesh, stamp: 0):
        honest_deliver(self, sender, frame, shape)


def keep_after_release(self: Adapter, number: int) -> None:
    """The clients' table is cleaned, and the algorithm is not told."""
    del self.clients[number]


def withdraw_nothing(self: Adapter, waiter: Any) -> None:
    """A client that gives up stays in the queue, and is let in without anybody being there."""
    self.clients.pop(waiter.number, None)


def release_the_whole(self: Adapter, number: int, permits: int) -> None:
    """The algorithm is told that all permits are back; the client goes on with the rest."""
    self.clients[number].want -= permits
    self.before().release(number)
    self.carry_out("leave", {"client": number})


def release_at_once(self: LocalPool) -> None:
    """Clients of a node that leaves may not have heard of it."""
    honest_close(self)
    for number in list(self.adapter.clients):
        self.expire(number)


def name_the_first(self: Adapter, slots: tuple[int, ...]) -> tuple[str, ...]:
    assert self.configuration is not None
    return self.configuration.names[: len(slots)]


def later_is_closer(priority: int, left: float | None, step: int) -> int:
    counts = honest_urgency(priority, left, step)
    return counts if left is None else (2 * priority + 1) * step - counts


def two_steps(priority: int, left: float | None, step: int) -> int:
    return honest_urgency(priority, left, step) + (0 if left is None else 2 * step)


def meet_all(self: Measures, met: bool) -> None:
    self.met += 1


def rerank_in_words(self: Adapter, waiter: Any) -> bool:
    honest_rerank(self, waiter)
    return True


def ask_alike(self: Adapter, waiter: Any) -> None:
    with mock.patch.object(waiter, "priority", 0):
        honest_submit(self, waiter)


def remember_nothing(self: Participation, replaced: int | None = None) -> bool:
    return False


def pass_on_unmade(self: Disk, effects: list[Effect]) -> list[Effect]:
    """The first promise of a new pool, which says which one it is, is not written."""
    if self.on_disk == NO_EPOCH and self.members.founding:
        return [effect for effect in effects if not isinstance(effect, Save)]
    return honest_pass_on(self, effects)


def receive_anything(self: Adapter, sender: str, frame: Any) -> None:
    honest_receive(self, sender, msgspec.structs.replace(frame, identity=self.identity))


async def make_in_writing(_: ChangeRequests, self: LayerRunner, change: Change) -> None:
    """A change is called made as soon as it is in a ledger, whatever becomes of that."""
    pace = self.node.timers
    while not change.is_made(self.node.member.config):
        pace.change = change
        self.set_time()
        self.sleep_until_due()
        try:
            await asyncio.sleep(self.mesh.heartbeat)
        finally:
            pace.change = None


async def leave_with_all(self: Participation, heir: str | None) -> None:
    pass


def open_without_lock(self: Promises) -> None:
    self.folder.mkdir(parents=True, exist_ok=True)


honest_close = LocalPool.close
honest_submit = Adapter.submit
honest_rerank = Adapter.rerank
honest_urgency = steps.urgency
honest_receive = Adapter.receive
honest_until = LayerRunner.until
honest_write = Promises.write
honest_pass_on = Disk.pass_on
honest_deliver = Adapter.deliver

# -- links ---------------------------------------------------------------------------------------


def take_repeats(self: LinkSession, frame: Carry) -> bool:
    self.acknowledge(frame.acknowledged)
    self.received = max(self.received, frame.number)
    self.custody_received = max(self.custody_received, frame.custody)
    return True


def begin_without_custody(self: LinkSession, generation: int, kept: int) -> None:
    self.custody.clear()
    self.custody_bytes = 0
    honest_begin(self, generation, kept)


def meet_without_looking(self: LinkSession, boot: int) -> None:
    """What was for a process that is gone goes to the one that took its place."""
    self.peer_boot = boot


honest_begin = LinkSession.begin

# -- recovery, beside the mutants ----------------------------------------------------------------


def fewer(names: tuple[int, ...]) -> int:
    return max(1, len(names) // 2)


class AnswersForOldEpochs(Layer):
    def receive_renew(self, renew: Renew) -> None:
        promised = self.member.promised
        self.member.promised = min(promised, renew.epoch)
        super().receive_renew(renew)
        self.member.promised = max(promised, self.member.promised)


class NeverTells(Layer):
    """Leases run out, and nobody hears of it."""

    def expire(self) -> None:
        before = len(self.out)
        super().expire()
        self.out[before:] = [one for one in self.out[before:] if not isinstance(one, Lost)]


def vote_though_forgetful(self: PoolMember) -> bool:
    return self.is_member() and not self.quiet()


def count_all(self: Proposal) -> bool:
    for node, report in self.reports.items():
        self.reports[node] = report._replace(forgot=False)
    return honest_may_close(self)


def renew_by_the_clock(self: timers.Timers) -> None:
    renewed_at = self.renewed_at
    honest_observe(self)
    self.renewed_at = renewed_at


def ask_only_now_and_then(self: CatchingUp, node: int) -> None:
    if self.member.promised == self.member.adopted:
        honest_tell_epoch(self, node)


def replace_nobody(self: Autopilot, gone_since: dict[int, int], voters: list[int]) -> Change | None:
    return honest_change(self, {}, voters)


def stay_alone(self: Autopilot, gone_since: dict[int, int], voters: list[int]) -> Change | None:
    return None


def wanted_at_once(
    self: Autopilot, asked: Change | None, gone_since: dict[int, int], voters: list[int]
) -> Change | None:
    return asked or self.change(gone_since, voters)


honest_change = Autopilot.change
honest_may_close = Proposal.may_close
honest_observe = timers.Timers.observe
honest_tell_epoch = CatchingUp.tell_epoch
honest_receive_suggest = CatchingUp.receive_suggest
honest_strike = TokenKeeper.strike


def ignore_higher_promises(self: CatchingUp, suggest: Suggest) -> None:
    if suggest.epoch <= self.member.promised:
        honest_receive_suggest(self, suggest)


def strike_by_amount(self: TokenKeeper, part: ReleasedPart) -> None:
    token = self.member.holding.token
    assert token is not None
    left = max(0, token.left(part.fence) - part.permits)
    honest_strike(self, part._replace(left=left))


def lease_by_two(self: PoolMember) -> int:
    """Our own vote and one answer are enough, but for a new epoch."""
    proposes = self.proposal is not None and not self.proposal.confirmed
    if proposes or len(self.members) == 1:
        return honest_leased_until(self)
    heard = self.holding.heard
    stamps = [heard[one] for one in self.members if one in heard]
    return max(stamps, default=NEVER - self.terms.lease) + self.terms.lease


WAIT_OUT_HALF = """
@@ recovery/epoch.py
-        waited_out = member.now >= proposal.closed_at + self.terms.wait
+        waited_out = member.now >= proposal.closed_at + self.terms.wait // 2
"""


def speak_at_once(self: PoolMember, life: Life) -> None:
    honest_start(self, life)
    if life.kept is not None:
        self.quiet_until = self.now


def line_up_in_front(self: DirectNode, asked: Asked) -> None:
    """Before its equals."""
    place = 0
    while place < len(self.queue) and self.queue[place][2] > 0 and self.queue[place][4] > asked[4]:
        place += 1
    self.queue.insert(place, (*asked[:5], 0))


def forget_as_granted(self: DirectNode, node: int) -> bool:
    found = honest_forget(self, node)
    self.queue = [(*asked[:5], asked[5] if asked[2] > 0 else 0) for asked in self.queue]
    self.ahead = [(*one[:6], one[6] and one[3] > 0) for one in self.ahead]
    return found


honest_forget = DirectNode.forget
honest_leased_until = PoolMember.leased_until
honest_start = PoolMember.start

# -- agents --------------------------------------------------------------------------------------


def end_without_release(self: sessions.Session) -> None:
    del self.sessions[self.name]
    self.over = True
    self.news.set()


def notify_of_leases_only(
    self: sessions.Session, event: str, grant: str, until: float | None = None
) -> None:
    if event != "lost":
        honest_notify(self, event, grant, until)


honest_notify = sessions.Session.notify

AGENTS = [
    Sabotage(
        "one-answer-renews",
        "one answer renews a lease, so a minority renews forever",
        [(PoolMember, "leased_until", lease_by_two)],
    ),
    Sabotage(
        "half-the-wait",
        "a new token is made after half the wait",
        [(members, "Layer", WAIT_OUT_HALF)],
    ),
    Sabotage(
        "last-come-first-served",
        "of equal requests the last one goes first, and none becomes more urgent with time",
        [
            (direct, "ageing_of", lambda options: NoAgeing(1, 1)),
            (DirectNode, "line_up", line_up_in_front),
        ],
    ),
    Sabotage(
        "strikes-out-as-granted",
        "a request whose priority changed counts as granted after its node was unreachable",
        [(DirectNode, "forget", forget_as_granted)],
        "algorithms/test_direct.py::test_what_was_changed_and_struck_out_counts_when_it_is_asked_for_again",
    ),
    Sabotage(
        "no-quiet-with-a-disk",
        "a restarted node that has its disk has no quiet period",
        [(PoolMember, "start", speak_at_once)],
    ),
    Sabotage(
        "keeps-for-the-dead",
        "an agent keeps the permits of a client that died",
        [(sessions.Session, "release", end_without_release)],
        "live/interfaces/test_http.py::test_a_session_that_ends_releases_what_its_client_was_seen_to_have",
    ),
    Sabotage(
        "tells-no-session",
        "an agent does not notify its client that a grant is lost",
        [(sessions.Session, "notify", notify_of_leases_only)],
        "live/interfaces/test_http.py::test_a_session_hears_of_its_losses_by_long_poll",
    ),
    Sabotage(
        "founds-alone",
        "a node makes the pool though it reaches none of its peers",
        [(Registry, "expected", lambda self: Expected(1))],
        "live/births/test_births.py::test_who_reaches_nobody_that_it_names_grants_nothing",
    ),
    Sabotage(
        "always-ready",
        "an agent says that it is ready whatever happens",
        [(http, "unready", lambda pool: "")],
        "live/interfaces/test_http.py::test_healthy_and_ready",
    ),
    Sabotage(
        "ready-with-a-quorum",
        "a pool whose token is dead is ready as soon as a quorum is back",
        [(timers.Timers, "stalls", timers.Timers.is_blocked)],
        "live/pools/test_readiness.py::test_a_quorum_that_returns_is_ready_when_somebody_can_be_served",
    ),
]

ADAPTERS = [
    Sabotage(
        "tells-no-client",
        "a client is not notified that its lease is lost",
        [(Adapter, "revoke", revoke_silently)],
    ),
    Sabotage(
        "layer-tells-nobody",
        "leases expire without a notification",
        [(members, "Layer", NeverTells)],
    ),
    Sabotage(
        "lease-too-long",
        "clients are told that their lease ends a quarter of a lease later than it does",
        [(LayerRunner, "until", until_and_more)],
    ),
    Sabotage(
        "waits-for-no-disk",
        "messages that depend on a promise are sent before it is on disk",
        [(Disk, "pass_on", wait_for_no_disk)],
        "live/pools/test_slow_disk.py::test_who_cannot_write_its_promise_down_lets_nobody_in_and_no_fence_comes_again",
    ),
    Sabotage(
        "remembers-the-first",
        "only the first promise is written",
        [(Promises, "write", write_the_first_only)],
    ),
    Sabotage(
        "full-disk-is-fine",
        "a promise that could not be written is sent all the same",
        [(Promises, "write", write_what_fails)],
        "live/pools/test_slow_disk.py::test_who_cannot_write_its_promise_down_lets_nobody_in_and_no_fence_comes_again",
    ),
    Sabotage(
        "ageless-messages",
        "the travel time of a token is not counted",
        [(Adapter, "deliver", deliver_without_age)],
        "live/pools/test_late_tokens.py::test_the_time_under_way_is_not_added_to_the_lease",
    ),
    Sabotage(
        "releases-nothing",
        "permits that a client releases stay in the ledger",
        [(Adapter, "leave", keep_after_release)],
    ),
    Sabotage(
        "forgets-who-gave-up",
        "a client that withdrew its request is granted permits, and nobody releases them",
        [(Adapter, "withdraw", withdraw_nothing)],
    ),
    Sabotage("no-drift", "clocks are taken to run at the same rate", [(members, "DRIFT", 0.0)]),
    Sabotage(
        "takes-repeats",
        "a link accepts messages twice",
        [(LinkSession, "take", take_repeats)],
        "live/links/test_session.py::test_gaps_and_impossible_acknowledgements_are_faults",
    ),
    Sabotage(
        "loses-custody",
        "what is unacknowledged is not sent on the next link",
        [(LinkSession, "begin", begin_without_custody)],
        "live/links/test_session.py::test_a_token_that_had_not_arrived_comes_when_the_link_returns",
    ),
    Sabotage(
        "gives-the-rest-away",
        "a client that releases a part of its permits releases all",
        [(Adapter, "release_some", release_the_whole)],
    ),
    Sabotage(
        "frees-at-leaving",
        "a node that leaves releases what its clients may still use",
        [(LocalPool, "close", release_at_once)],
    ),
    Sabotage(
        "names-the-first",
        "a grant names the first of the permits, not its own",
        [(Adapter, "slot_names", name_the_first)],
    ),
    Sabotage(
        "latest-deadline-first",
        "of two deadlines, the later one is the more urgent",
        [(adapter, "urgency", later_is_closer)],
        "live/pools/test_deadlines.py::test_priority_decides_then_the_deadline_then_who_came_first",
    ),
    Sabotage(
        "never-rises",
        "a request does not become more urgent as its deadline comes closer",
        [(waiting.Rises, "wake", lambda self: None)],
        "live/pools/test_deadlines.py::test_a_request_rises_as_its_deadline_comes_closer",
    ),
    Sabotage(
        "misses-nothing",
        "a deadline counts as met whenever its request is granted",
        [(Measures, "judges", meet_all)],
        "live/pools/test_deadlines.py::test_deadlines_are_counted_as_met_or_missed",
    ),
    Sabotage(
        "ranks-a-deadline-above-priority",
        "a deadline counts for two steps of priority",
        [(adapter, "urgency", two_steps)],
        "live/pools/test_deadlines.py::test_priority_decides_then_the_deadline_then_who_came_first",
    ),
    Sabotage(
        "says-it-was-changed",
        "a change that the algorithm cannot make counts as made",
        [(Adapter, "rerank", rerank_in_words)],
        "live/pools/test_deadlines.py::test_a_change_that_the_algorithm_cannot_make_is_refused_in_a_sentence",
    ),
    Sabotage(
        "ignores-priority",
        "all requests have the same priority",
        [(Adapter, "submit", ask_alike)],
        "live/pools/test_order.py",
    ),
    Sabotage(
        "makes-it-again",
        "a restarted founder makes the pool again instead of rejoining it",
        [(Participation, "remember", remember_nothing)],
        "live/births/test_new_pools.py::test_the_maker_comes_back_to_what_it_made",
    ),
    Sabotage(
        "grants-before-it-is-made",
        "a new pool grants before its identity is on disk",
        [(Disk, "pass_on", pass_on_unmade)],
        "live/births/test_new_pools.py::test_the_maker_comes_back_to_what_it_made",
    ),
    Sabotage(
        "reads-other-pools",
        "messages of another pool with the same name are accepted",
        [(Adapter, "receive", receive_anything)],
        "live/births/test_new_pools.py::test_messages_of_another_pool_of_that_name_are_not_read",
    ),
    Sabotage(
        "changed-in-writing",
        "permits count as changed before anybody has confirmed it",
        [(ChangeRequests, "make", make_in_writing)],
        "live/pools/test_resize.py::test_a_change_that_was_only_written_down_is_not_made_yet",
    ),
    Sabotage(
        "changes-after-all",
        "a change that was not made in time is made later, and nobody is told",
        [(PoolMember, "drop_change", lambda self, change: None)],
        "live/pools/test_change_requests.py::test_what_did_not_change_in_time_changes_later_only_if_that_is_said",
    ),
    Sabotage(
        "leaves-with-all",
        "a node that leaves takes the token along",
        [(Participation, "hand_over", leave_with_all)],
        "live/pools/test_leases.py::test_a_node_that_leaves_hands_the_token_on",
    ),
    Sabotage(
        "shares-its-disk",
        "two processes may be the same node",
        [(Promises, "open", open_without_lock)],
        "live/births/test_new_pools.py::test_two_processes_are_not_the_same_node",
    ),
    Sabotage(
        "sends-to-another-life",
        "messages for a process that ended are delivered to its successor",
        [(LinkSession, "meet", meet_without_looking)],
        "live/links/test_session.py::test_a_process_that_forgot_is_not_sent_what_its_former_life_may_have_had",
    ),
    Sabotage(
        "asks-no-more",
        "a node whose request was struck out while it was unreachable does not ask again when told",
        [(EpochState, "receive_forgotten", lambda self, message: None)],
        "algorithms/test_recovery_pace.py::test_who_was_gone_without_noticing_is_told_to_ask_again",
    ),
    Sabotage(
        "knows-no-higher-promise",
        "members ignore that a node which is no member promised a higher epoch than theirs",
        [(CatchingUp, "receive_suggest", ignore_higher_promises)],
        "algorithms/test_recovery_pace.py::test_who_is_no_member_and_promised_to_the_dead_is_served_again",
    ),
    Sabotage(
        "waits-for-former-lives",
        "a node that is no member waits for an epoch that was proposed before a restart",
        [(timers.Timers, "is_stranded", lambda self, now: False)],
        "algorithms/test_recovery_pace.py::test_who_is_no_member_and_promised_to_a_former_life_is_served_again",
    ),
    Sabotage(
        "adds-who-is-gone",
        "a node that is to become a member and cannot be reached is not waited for",
        [(Autopilot, "wanted", wanted_at_once)],
        "algorithms/test_autopilot.py::test_a_node_that_stops_before_it_is_added_costs_no_epoch_and_is_added_when_it_is_back",
    ),
    Sabotage(
        "strikes-by-amount",
        "a part of a grant that comes back twice is struck out twice",
        [(TokenKeeper, "strike", strike_by_amount)],
        "algorithms/test_recovery_rules.py::test_the_story_of_the_rule_ends_well",
    ),
    Sabotage(
        "renews-by-the-clock",
        "a node that adopts an epoch renews its leases when it would have anyway",
        [(timers.Timers, "observe", renew_by_the_clock)],
        "live/pools/test_pauses.py::test_a_pause_shorter_than_the_lease_costs_nothing",
    ),
    Sabotage(
        "asks-now-and-then",
        "a node that is back while an epoch is proposed is asked for its report when that is "
        "repeated",
        [(CatchingUp, "tell_epoch", ask_only_now_and_then)],
        "algorithms/test_recovery_pace.py"
        "::test_who_is_back_while_an_epoch_is_proposed_is_asked_for_its_report",
    ),
    Sabotage(
        "deaf-when-stopped",
        "a node whose pool has stopped for another is not told who has no vote",
        [(adapter, "READ_WHEN_STOPPED", "")],
        "live/pools/test_lost_disks.py"
        "::test_a_reset_is_followed_by_nodes_that_think_of_a_quorum_still",
    ),
    Sabotage(
        "replaces-nobody",
        "a member that stays away is not replaced",
        [(Autopilot, "change", replace_nobody)],
    ),
    Sabotage("stays-alone", "no node becomes a member", [(Autopilot, "change", stay_alone)]),
    Sabotage(
        "counts-who-forgot",
        "a member that has forgotten who the members are has a vote",
        [
            (PoolMember, "votes", vote_though_forgetful),
            (Proposal, "may_close", count_all),
        ],
        "algorithms/test_autopilot.py::test_who_forgot_does_not_help_a_minority_that_is_behind",
    ),
    Sabotage(
        "quorum-too-small",
        "two of five are a quorum",
        [(place, "majority", fewer) for place in (timers, member, proposal)],
    ),
    Sabotage(
        "answers-for-old-epochs",
        "a member answers for an epoch below its promise",
        [(members, "Layer", AnswersForOldEpochs)],
    ),
]


RECOVERY = [
    Sabotage(mutant.name, mutant.mistake, [(members, "Layer", mutant)])
    for mutant in MUTANTS.values()
    if mutant.in_recovery
]
SABOTAGES = {sabotage.name: sabotage for sabotage in AGENTS + ADAPTERS + RECOVERY}
