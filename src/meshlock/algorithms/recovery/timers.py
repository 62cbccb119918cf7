"""When to do what: the timing of recovery, for simulated and live nodes alike.

The other parts say what is right at any moment; this says what is wise, and nothing here can make
anything unsafe: it answers when it is time for something, and :mod:`.layer` does it. It reads the
member and the epoch; it changes neither, but for what no handler reads, and sends only what is best
effort. The runner wakes the node when ``wake_at`` says so, some thirty times per lease, and three
times while nothing is going on (``rests_until``); it draws ``chance``, a number from 0 to 1.

**A lease is renewed** when a third of it is over, and asked for again every sixth while no member
answers. So members hear of the token's holder three times per lease, and its renewals name it.

**Reasons to propose an epoch** are listed in docs/how-it-works/recovery.md; ``own_reason`` and
``shared_reason`` find them. Waiting for one's turn is none. *Gone* means unreachable for a GRACE: a
link which comes back at once costs nothing.

**Turns.** Where all see the same reason, the member with the lowest number of those that are
not gone proposes at once, the next a STEP later, and so on. A promise counts as having heard of a
proposer. A proposal is repeated three times per lease until enough have promised, and its ledger
until enough have confirmed it (PATIENCE): disks may be slower than leases are long. A member that
proposed in vain tries again after two leases or three, then twice as many, and so on; if two have
chosen the same number, soon and at random. Without a quorum no member proposes. A node that comes
back from such a time, from a pause, or to a token that died meanwhile, listens for half a lease
first: by then it has heard of an epoch that others made without it.

**Closing.** As soon as all nodes that are not gone have reported, or a tenth of a lease after a
majority has: a ledger that is written without the token's holder costs a lease. Half a lease after,
if a node has not reported that needs to, to have a vote (rule 16).
"""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.amounts import fits, in_all, positive
from meshlock.algorithms.recovery.autopilot import Autopilot
from meshlock.algorithms.recovery.epoch import EpochState
from meshlock.algorithms.recovery.messages import Forgotten
from meshlock.algorithms.recovery.proposal import Proposal
from meshlock.algorithms.recovery.records import (
    MINTING,
    MOST_GRANTS,
    NEVER,
    NO_EPOCH,
    Change,
    Epoch,
    Fence,
    Unaccepted,
    majority,
)
from meshlock.algorithms.subclassing import mypyc_attr

GRACE = 20
"""Parts of a lease."""
STEP = 20

WAKES = 30
"""Per lease."""
RESTING = 3
"""Parts of a lease: so long a node may sleep while nothing is going on."""
LONG_RUN = 10
"""Leases."""
NO_DOUBTS = -1
NOT_BACK = -1
PATIENCE = 4
"""Leases: so long the members have to confirm a ledger."""
FEW = "too few members have promised"
SUGGESTED = "a node that is not a member asked for a new epoch"
FOUND = "the lost token was found"
LEFT_OUT = "a grant here is not in the ledger of the epoch"


def by_number(node: int) -> str:
    return f"node {node}"


@mypyc_attr(allow_interpreted_subclasses=True)
class Timers:
    """What the runner tells for sentences only: ``second``, how many of its units of time make
    one, and ``called``, the name of a member."""

    def __init__(self, epoch: EpochState) -> None:
        self.epoch = epoch  # the layer gives us each new one
        self.member = member = epoch.member
        self.clients = epoch.clients
        self.news = epoch.news
        self.second = 1_000_000_000
        self.called: Callable[[int], str] = by_number
        self.lease = member.terms.lease
        self.grace = self.lease // GRACE
        self.step = self.lease // STEP
        self.rest = max(1, self.lease // WAKES)
        self.autopilot = Autopilot(member)
        self.change: Change | None = None  # of members or permits, asked for by somebody; or ...
        self.wanted: Change | None = None  # ... if there is none, the one of the autopilot
        self.above = 0  # the epochs of another pool that ours has outlived
        self.began = False
        self.woken_at = 0
        self.listens_until = 0
        self.renewed_at = 0
        self.repeated_at = 0
        self.suggested_at = 0
        self.quorum_at = -1  # since when our proposal could be closed
        self.gone_since: dict[int, int] = {}
        # of an open algorithm: whose requests were struck out here, and since when it is back
        self.forgotten: dict[int, int] = {}
        self.seen = NO_EPOCH  # the epoch adopted, and since when
        self.adopted_at = 0
        self.minted_at = -1  # since when its token should be there
        self.blocked_at = NEVER  # when nobody could be served here for the last time
        self.unaccepted: Unaccepted | None = None  # the token not accepted, and since when
        self.unaccepted_at = 0
        self.returning_since: dict[Fence, int] = {}
        # of an open algorithm: since when a request of ours may be lost, and with whom it may be
        self.doubts_since = NO_DOUBTS
        self.lives: dict[int, tuple[Epoch, int, bool]] = {}
        self.asked_at = 0
        self.reason = ""  # the one that counts now, and when we act on it
        self.due = 0
        self.tries = 0

    def wake_at(self) -> int:
        """After every call of the node, so it compares and does not count."""
        member, token = self.member, self.member.holding.token
        now = member.now
        due = now + self.rest
        if token is not None and 0 < (token.until - now) * 2 < self.lease:
            due = min(due, self.renewed_at + self.lease // 6 + 1)  # it may not stay
        for grant in member.grants.values():
            if grant.until < due:
                due = grant.until
        if (self.clients.unasked.places and self.epoch.active()) or (
            member.proposal is not None
            and member.proposal.may_close()
            and (self.quorum_at < 0 or self.all_reported())
        ):
            due = now
        if due < now:
            due = now
        return self.woken_at + 1 if self.began and due <= self.woken_at else due

    def rests_until(self) -> int:
        """Nobody asks, holds, returns, proposes or is unreachable: then a runner may let the
        node sleep this long, and wakes it when ``unreachable`` or ``change`` is set."""
        member, token = self.member, self.member.holding.token
        if not self.began or member.quiet() or member.proposal is not None:
            return member.now
        epoch = self.epoch
        if not epoch.active() or not epoch.keeper.is_idle():
            return member.now
        busy = len(self.clients.waiting) + len(member.grants) + len(epoch.lapsing)
        if busy + len(member.unreachable) + len(self.gone_since) > 0:
            return member.now
        if self.reason != "" or self.change is not None or self.wanted is not None:
            return member.now
        due = member.now + self.lease // RESTING
        if token is not None:
            return min(due, token.until - 2 * self.lease // 3)
        return min(due, member.heard_at + self.lease) if member.is_member() else due

    # -- what happened -------------------------------------------------------------------------

    def begin(self) -> None:
        """At the first time."""
        if not self.began:
            now = self.member.now
            self.began = True
            self.adopted_at = self.woken_at = self.listens_until = now
            self.renewed_at = self.repeated_at = self.suggested_at = now - self.lease

    def observe(self) -> None:
        member, now = self.member, self.member.now
        if member.adopted != self.seen:
            self.forgotten = {}  # all ask anew
        for other in list(self.gone_since):
            if other not in member.unreachable:
                del self.gone_since[other]
                self.doubts_since = now
                self.news.tell_epoch(other)
                if other in self.forgotten:
                    self.forgotten[other] = now
                    member.send(Forgotten(other, member.adopted))
        for other in member.unreachable:
            if other not in self.gone_since:
                self.gone_since[other] = now
                self.doubts_since = now
                if self.epoch.forget(other):
                    self.forgotten[other] = NOT_BACK
        self.look_for_doubts(now)
        for other, since in list(member.voteless.items()):
            if now - since >= 2 * self.lease:
                del member.voteless[other]
        if member.adopted != self.seen:
            if member.first is not None:
                for one in member.first.participants:  # rule 16
                    member.voteless.pop(one.node, None)
            self.seen = member.adopted
            self.adopted_at = now
            self.renewed_at = now - self.lease  # leases ran on while the epoch was made
            self.minted_at = -1
            self.tries = 0
            if self.wanted is not None and self.change is None:
                # by this epoch a new node has learned the members: the next may make it one
                self.due = min(self.due, now + self.lease // 6)
        if self.minted_at < 0 and (
            member.holding.holder_hop >= 0 or now - self.adopted_at >= member.terms.wait
        ):
            self.minted_at = now
        self.look_at_change()
        reached = self.reached()
        has_quorum = len(reached) >= majority(member.members)
        self.autopilot.observe(self.epoch.inner is not None and has_quorum)
        self.wanted = self.autopilot.wanted(self.change, self.gone_since, reached)
        if member.holding.unaccepted != self.unaccepted:
            self.unaccepted = member.holding.unaccepted
            self.unaccepted_at = now
        self.returning_since = {
            fence: self.returning_since.get(fence, now) for fence in self.epoch.keeper.returning
        }
        paused = (now - self.woken_at) * 3 > 2 * self.lease
        if paused or not (has_quorum or self.is_stranded(now)):
            self.listens_until = now + self.lease // 2
        if self.is_blocked(now):
            self.blocked_at = now
        self.woken_at = now

    def young_returns(self) -> set[Fence]:
        """Grants that were returned just now."""
        now, since = self.member.now, self.returning_since
        return {fence for fence, at in since.items() if (now - at) * 3 < self.lease}

    def tell_forgotten(self, now: int) -> None:
        """For a lease, for it may be lost. That they were gone, they need not have noticed: a link
        may be silent in one direction only, or be back before they look."""
        for other, since in list(self.forgotten.items()):
            if since != NOT_BACK and now - since >= self.lease:
                del self.forgotten[other]
            elif since not in (NOT_BACK, now) and other not in self.gone_since:
                self.member.send(Forgotten(other, self.member.adopted))

    def look_for_doubts(self, now: int) -> None:
        """A node that is gone, or that was, or that has started anew, may have had what this node
        asked for; and in the long run anything may have happened to it. It asks again as soon as it
        has heard where the token is, so that this is a short way."""
        member = self.member
        if member.hellos != self.lives:
            self.lives = dict(member.hellos)
            self.doubts_since = now
        elif now - self.asked_at >= LONG_RUN * self.lease:
            self.asked_at = self.doubts_since = now
        if self.doubts_since != NO_DOUBTS and member.heard_at > self.doubts_since:
            self.doubts_since = NO_DOUBTS
            self.asked_at = now
            self.epoch.ask_again()

    def is_gone(self, other: int, now: int) -> bool:
        since = self.gone_since.get(other)
        return since is not None and now - since >= self.grace

    # -- leases --------------------------------------------------------------------------------

    def is_time_to_renew(self) -> bool:
        """When a third of a lease is over; every sixth if nobody answers."""
        member, now = self.member, self.member.now
        if (now - self.renewed_at) * 6 < self.lease:
            return False
        ends = member.running_leases()
        if len(ends) == 0 or (min(ends) - now) * 3 > 2 * self.lease:
            return False
        self.renewed_at = now
        return True

    def is_time_to_repeat(self) -> bool:
        """Three times per lease."""
        if (self.member.now - self.repeated_at) * 3 < self.lease:
            return False
        self.repeated_at = self.member.now
        return True

    def repeat_news(self) -> None:
        """What nobody may have heard. What we asked for may be lost, or there may be no token; and
        a node that is no member hears of the holder by asking."""
        member = self.member
        waits = member.terms.open and len(self.clients.waiting) > 0
        doubts = self.doubts_since != NO_DOUBTS and waits
        if (self.stalls(member.now) or doubts) and not member.is_member():
            self.news.ask_one(True)
        self.tell_forgotten(member.now)
        self.news.tell_voteless()
        if self.may_succeed(member.now):
            member.remind()

    # -- epochs --------------------------------------------------------------------------------

    def is_time_to_close(self) -> bool:
        member, now = self.member, self.member.now
        if member.proposal is None or not member.proposal.may_close():
            self.quorum_at = -1
            return False
        if self.quorum_at < 0:
            self.quorum_at = now
        parts = 2 if self.gives_votes(member.proposal) else 10
        return (now - self.quorum_at) * parts >= self.lease or self.all_reported()

    def gives_votes(self, proposal: Proposal) -> bool:
        """Is there anybody who may have a vote by this epoch, but has not reported yet: a member
        that has forgotten, or a node that is to become one?"""
        new = [proposal.change.add] if proposal.change is not None else []
        return any(
            one != NIL and one not in proposal.reports and one not in self.member.unreachable
            for one in new + self.voteless()
        )

    def may_succeed(self, now: int) -> bool:
        """Our proposal: once it is closed, only those who have reported can confirm it."""
        member, proposal = self.member, self.member.proposal
        if proposal is None or not proposal.closed:
            return proposal is not None
        reached = [one for one in self.reached() if one in proposal.reports]
        in_time = now - proposal.closed_at < PATIENCE * self.lease
        return in_time and len(reached) >= majority(member.members)

    def all_reported(self) -> bool:
        """Have all nodes that can be reached?"""
        member = self.member
        reports = member.proposal.reports if member.proposal is not None else {}
        return all(other in reports or other in member.unreachable for other in member.terms.nodes)

    def is_time_to_propose(self, chance: float) -> bool:
        """Where we may not propose, the members are asked to."""
        member, token, now = self.member, self.member.holding.token, self.member.now
        shared = self.shared_reason(now)
        reason = shared or self.own_reason(now)
        if reason == "":
            self.reason = ""
            return False
        left_out = reason == LEFT_OUT
        if not member.is_member() or member.forgot or (left_out and member.quiet()):
            if (now >= self.listens_until or left_out) and (
                now - self.suggested_at
            ) * 6 >= self.lease:
                self.suggested_at = now
                self.news.suggest(shared == "")
            return False
        if not member.votes() or not self.quorum_reached():
            self.reason = ""
            return False
        if member.proposal is not None and member.proposal.may_close():
            return False
        news = reason in (LEFT_OUT, FOUND) and self.reason != reason
        if news or self.reason == "" or (self.reason == FEW and reason != FEW):
            self.due = max(now, self.listens_until)
            if left_out:  # we have heard of the epoch that others made
                self.due = now + self.turn()
            elif shared:
                self.due += self.turn()
            elif reason != FOUND and token is not None and token.until <= now:
                self.due += self.lease // 2
            if self.tries > 0:
                self.due += int(chance * self.lease)
        self.reason = reason
        if member.crossed:
            member.crossed = False
            self.due = min(self.due, now + int(chance * self.lease) // 3)
        if now < self.due:
            return False
        self.tries += 1
        self.due = now + (2 * self.lease + int(chance * self.lease) << min(self.tries - 1, 3))
        self.quorum_at = -1
        return True

    def turn(self) -> int:
        """How long the members before us have the first word."""
        member = self.member
        gone = member.unreachable
        before = [one for one in member.members if one < member.me and one not in gone]
        return min(len(before) * self.step, self.lease // 2)

    def quorum_reached(self) -> bool:
        return len(self.reached()) >= majority(self.member.members)

    def reached(self) -> list[int]:
        """The members that can be asked for their vote, and have one."""
        member = self.member
        gone = member.unreachable
        return [one for one in member.members if one not in gone and self.has_vote(one)]

    def voteless(self) -> list[int]:
        """The members that can be reached and have no vote, as far as we know."""
        member = self.member
        gone = member.unreachable
        return [one for one in member.members if one not in gone and not self.has_vote(one)]

    def has_vote(self, node: int) -> bool:
        """Rule 16."""
        member = self.member
        return not member.forgot if node == member.me else node not in member.voteless

    def is_stranded(self, now: int) -> bool:
        """Does nobody make the epoch that we promised? Then we hear of no lower one, and only a
        higher one can have us."""
        member = self.member
        return member.promised > member.adopted and now - member.heard_at >= self.lease

    def own_reason(self, now: int) -> str:
        """What only we know."""
        member, token = self.member, self.member.holding.token
        if member.proposal is not None:
            return "" if member.proposal.closed else FEW
        if token is None:
            sent = member.holding.unaccepted
            if sent is not None and sent.state.epoch == member.promised:
                if (now - self.unaccepted_at) * 2 >= self.lease:
                    return f"{self.called(sent.receiver)} does not acknowledge the token"
                return ""
            return self.lost_reason(now) or self.change_reason(now)
        if token.until == NEVER and member.adopted == member.promised:
            return FOUND
        if token.until <= now:
            return "the lease of the token here ran out"
        if token.grants > MOST_GRANTS // 2:
            return "the epoch has made about as many grants as its fences can count"
        if self.epoch.disagrees():
            return "the token and its ledger disagree"
        if member.paused() and fits(0, token.free):
            return "enough permits were released since the pool was made smaller"
        if now < member.suggested_until:
            return SUGGESTED
        for entry in token.ledger:
            if (now - self.epoch.loans.lent.get(entry.fence, now)) * 2 >= self.lease:
                return f"{self.called(entry.node)} does not acknowledge a grant"
            if not entry.lapsing and self.is_gone(entry.node, now):
                return f"{self.called(entry.node)} has permits and is unreachable"
            if entry.lapsing and (
                self.is_gone(token.epoch.proposer, now)
                or now - self.adopted_at > 2 * member.terms.wait
            ):
                return "lapsed permits were not returned"
        return self.participant_reason(now) or self.lost_reason(now) or self.change_reason(now)

    def lost_reason(self, now: int) -> str:
        """Rule 14: what the algorithm inside cannot get over."""
        member = self.member
        if self.minted_at < 0 or member.adopted != member.promised or member.first is None:
            return ""  # whatever it is, the token may still do it
        since = min(self.returning_since.values(), default=now)
        if now - max(since, self.minted_at) >= self.lease:
            return "returned permits did not arrive"
        if member.holding.holder_hop > MINTING and any(
            grant.epoch != member.adopted and grant.until > now for grant in member.grants.values()
        ):
            return LEFT_OUT
        if self.epoch.loans.missed:
            return "a grant came after the end of its lease"
        late = (now - self.minted_at) * 3 >= self.lease
        if self.epoch.inner is None and not member.quiet() and late:
            return "this node takes no part in the epoch yet"
        if member.forgot and member.is_member() and not member.quiet():
            return "this node does not know the members"
        return ""

    def participant_reason(self, now: int) -> str:
        """Rule 14: an algorithm for fixed networks cannot do without any participant."""
        first = self.member.first
        if self.member.terms.closed and first is not None and first.epoch == self.member.promised:
            for participant in first.participants:
                if self.is_gone(participant.node, now):
                    return f"{self.called(participant.node)} is unreachable"
        return ""

    def look_at_change(self) -> None:
        """A change that has been made is done; the last member cannot be removed."""
        change, config = self.change, self.member.config
        if change is not None and (change.is_made(config) or config.members == (change.remove,)):
            self.change = None

    def change_reason(self, now: int) -> str:
        """A change is made where the token is reported: its holder must be within reach. If another
        member has just begun an epoch, perhaps for the same reason, let its token be made first: of
        two who propose in turn neither would find one."""
        member = self.member
        outdone = member.adopted.counter <= self.above
        if (self.wanted is None and not outdone) or not member.is_member():
            return ""
        if not member.usable():
            settled = self.minted_at >= 0 and member.adopted == member.promised
            if not settled or now - self.minted_at < self.lease // 3 + 4 * self.turn():
                return ""
        if self.wanted is None:
            return "another pool of this name has higher fences"
        permits = self.wanted.permits > 0 or len(self.wanted.names) > 0
        return f"the {'permits' if permits else 'members'} are to change"

    def shared_reason(self, now: int) -> str:
        """What others are likely to see as well."""
        member = self.member
        if member.proposal is not None or member.holding.token is not None:
            return ""
        if now < member.suggested_until:
            return SUGGESTED
        holder = self.holder()
        if holder != NIL and self.is_gone(holder, now):
            what = "had the token" if member.promised == member.adopted else "proposed an epoch"
            return f"{self.called(holder)}, which {what}, is unreachable"
        if member.is_member() and now - member.heard_at >= self.lease:
            return "the token was not seen for a lease"
        if self.is_stranded(now):
            return "the epoch that this node promised was not made"
        return self.participant_reason(now)

    def holder(self) -> int:
        """Who has the token or proposes an epoch, as far as we know."""
        member = self.member
        return NIL if member.heard_of == member.me else member.heard_of

    # -- sentences -----------------------------------------------------------------------------

    def seconds(self, time: int) -> str:
        return f"{max(0, time) / self.second:.1f} s"

    def why(self, now: int) -> str:
        """In a sentence: what a client of this node waits for; empty if nobody waits."""
        member, token = self.member, self.member.holding.token
        if len(self.clients.waiting) == 0:
            return ""
        obstacle = self.obstacle(now)
        if obstacle:
            return obstacle
        if token is not None and member.usable():
            if token.free == 0:
                return "all permits are in use"
            free = in_all(token.free)
            return f"{free} permits are free, and requests ahead are served first"
        holder = self.holder()
        if holder == NIL:
            return "the holder of the token is not known yet"
        return f"waiting for the token (holder: {self.called(holder)})"

    def quorum_lost(self) -> str:
        """That there is none, as far as is known here; empty if there is one."""
        members, reached, voteless = self.member.members, self.reached(), self.voteless()
        if len(members) == 0:
            return "no quorum has said who the members are; reset the pool if most lost their state"
        if len(reached) >= majority(members):
            return ""
        if len(voteless) == 0:
            return f"quorum lost: {len(reached)} of {len(members)} members reachable"
        names = " and ".join([self.called(one) for one in voteless])
        return (
            f"quorum lost: {len(reached)} of {len(members)} members reachable with a vote; "
            f"{names} lost the state; reset the pool if that is final"
        )

    def stalls(self, now: int) -> bool:
        """Is nobody served here for now, and not for want of permits? It is over when this node
        hears of a token that grants: with a quorum alone nobody is served yet."""
        member = self.member
        if self.is_blocked(now):
            return True
        heard = member.holding.holder_hop > MINTING and member.heard_at > self.blocked_at
        return not member.usable() and not heard

    def is_blocked(self, now: int) -> bool:
        """Does this node know that nobody is served?"""
        member = self.member
        if not self.quorum_reached():
            return True
        if member.holding.token is not None:
            return not member.usable()
        return not self.epoch.active() or self.shared_reason(now) != ""

    def obstacle(self, now: int) -> str:
        """Why no client is served here; empty if the token may come."""
        member, token = self.member, self.member.holding.token
        lost = self.quorum_lost()
        if lost:
            return lost
        proposal = member.proposal
        if proposal is not None and proposal.closed and proposal.confirmed:
            left = proposal.closed_at + member.terms.wait - now
            return f"the token was lost; a new one is made in {self.seconds(left)}"
        if proposal is not None:
            return "a new epoch is proposed, waiting for the reports of members"
        if token is not None and member.usable():
            if not fits(0, token.free):
                over = in_all(positive(-token.free))
                return f"the pool was made smaller: {over} too many are still in use"
            return ""
        if member.quiet() and not self.epoch.active():
            left = member.quiet_until - now
            return f"restarted, in its quiet period for {self.seconds(left)} more"
        reason = self.reason or self.shared_reason(now) or self.own_reason(now)
        if reason != "" and member.is_member():
            return f"{reason}; a new epoch will be proposed"
        if reason != "":
            return f"{reason}; this node asks the members for a new epoch"
        if member.promised > member.adopted:
            return f"{self.called(self.holder())} has proposed a new epoch, waiting for it"
        return ""
