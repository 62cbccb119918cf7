"""When to do what: the timing of recovery, for simulated and live nodes alike.

:mod:`.layer` says what is right at any moment; this says what is wise, and nothing here can make
anything unsafe. The runner wakes the node when :meth:`Pace.wake_at` says so, some thirty times per
lease, and earlier if it likes, with ``chance``, a number from 0 to 1 that it draws; and it keeps
the node's ``unreachable`` up to date. One that minds what idle pools cost wakes it three times per
lease while nothing is going on (:meth:`Pace.rests_until`).

**A lease is renewed** when a third of it is over, by whoever holds something under it, and asked
for again every sixth while nobody answers. Since the token's holder is among those, members hear
of it three times per lease, and its renewals tell them who it is.

**Reasons to propose an epoch.** Our token is dead. Or it lives, and its ledger names a node that is
gone, or entries that were to lapse long ago, or disagrees with the node inside, or in a pause
enough came back (rule 15). Or members or permits are to change. Or a token that we sent was not
accepted for half a lease. Or the holder, or who proposed the epoch we promised, is gone. Or nothing
was heard of holder or proposer for a lease, or for half of one since it is known that it restarted.
Or a node that is no member promised an epoch that members know nothing of, so that it hears of
theirs no more: it tells them, and they propose a higher one.
Or permits that we returned were not struck out for a lease (rule 14). Or we take no part in the
epoch (rule 12). Or, where the nodes inside are fixed, a participant is gone. Waiting for one's turn
is none. *Gone* means unreachable for a GRACE: a link which comes back at once costs nothing.

**Turns.** Where all see the same reason, the member with the lowest number of those that are
not gone proposes at once, the next a STEP later, and so on; a promise to somebody counts as having
heard of a proposer, so the others keep still. A proposal is repeated three times per lease until
enough have promised, and its ledger until enough have confirmed it (PATIENCE): disks may be slower
than leases are long. Whoever proposed in vain tries again after two leases or three, then twice as
many, and so on; if two have chosen the same number, soon and at random. While no quorum of the
members can be reached nobody proposes. Whoever comes back from such a time, from a pause, or to a
token that died meanwhile, listens for half a lease first: by then it has heard of an epoch that
others made without it.

**Closing.** As soon as everybody who is not gone has reported, or a tenth of a lease after a
majority has: a ledger that is written without the token's holder costs a lease. Half a lease after,
if somebody has not reported who needs that to have a vote (rule 16).

So a token whose holder was killed is replaced after: the time until the runner knows it is gone, a
GRACE, a STEP or so, and ``wait``. The birth of a pool takes the silence and ``wait``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from meshlock.algorithms.interface import NIL
from meshlock.algorithms.recovery.autopilot import Autopilot
from meshlock.algorithms.recovery.messages import Forgotten
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

if TYPE_CHECKING:
    from meshlock.algorithms.recovery.layer import Layer
    from meshlock.algorithms.recovery.state import Proposal

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


class Pace:
    """What the runner tells for sentences only: ``second``, how many of its units of time make
    one, and ``called``, the name of a node."""

    def __init__(self, node: Layer) -> None:
        self.node = node
        self.second = 1_000_000_000
        self.called: Callable[[int], str] = by_number
        self.lease = node.terms.lease
        self.grace = self.lease // GRACE
        self.step = self.lease // STEP
        self.rest = max(1, self.lease // WAKES)
        self.autopilot = Autopilot(node)
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
        self.epoch = NO_EPOCH  # the one adopted, and since when
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
        node, token = self.node, self.node.token
        now = node.now
        due = now + self.rest
        if token is not None and 0 < (token.until - now) * 2 < self.lease:
            due = min(due, self.renewed_at + self.lease // 6 + 1)  # it may not stay
        for grant in node.grants.values():
            if grant.until < due:
                due = grant.until
        if (node.unasked.places and node.active()) or (
            node.proposal is not None
            and node.may_close()
            and (self.quorum_at < 0 or self.all_reported())
        ):
            due = now
        if due < now:
            due = now
        return self.woken_at + 1 if self.began and due <= self.woken_at else due

    def rests_until(self) -> int:
        """Nobody asks, holds, returns, proposes or is unreachable: then a runner may let the
        node sleep this long, and wakes it when ``unreachable`` or ``change`` is set."""
        node, token = self.node, self.node.token
        if len(node.waiting) > 0 or len(node.grants) > 0 or not self.began or node.quiet():
            return node.now
        if not node.active() or node.proposal is not None or node.unaccepted is not None:
            return node.now
        open_ends = len(node.receipts) + len(node.struck) + len(node.returning) + len(node.former)
        if open_ends + len(node.lapsing) + len(node.unreachable) + len(self.gone_since) > 0:
            return node.now
        if self.reason != "" or self.change is not None or self.wanted is not None:
            return node.now
        due = node.now + self.lease // RESTING
        if token is not None:
            return min(due, token.until - 2 * self.lease // 3)
        return min(due, node.heard_at + self.lease) if node.member else due

    def wake(self, chance: float) -> None:
        node = self.node
        now = node.now
        if not self.began:
            self.began = True
            self.adopted_at = self.woken_at = self.listens_until = now
            self.renewed_at = self.repeated_at = self.suggested_at = now - self.lease
        node.expire()
        self.observe(now)
        self.renew(now)
        if (now - self.repeated_at) * 3 >= self.lease:
            self.repeated_at = now
            node.repeat()
            stalls = self.stalls(now)
            if self.doubts_since != NO_DOUBTS or stalls:
                node.ask_where(stalls)
            self.tell_forgotten(now)
            node.tell_voteless()
            if self.may_succeed(now):
                node.remind()
        self.autopilot.offer(now)
        self.close(now)
        self.propose(now, chance)

    def observe(self, now: int) -> None:
        node = self.node
        if node.adopted != self.epoch:
            self.forgotten = {}  # all ask anew
        for other in list(self.gone_since):
            if other not in node.unreachable:
                del self.gone_since[other]
                self.doubts_since = now
                node.tell_epoch(other)
                if other in self.forgotten:
                    self.forgotten[other] = now
                    node.send(Forgotten(other, node.adopted))
        for other in node.unreachable:
            if other not in self.gone_since:
                self.gone_since[other] = now
                self.doubts_since = now
                if node.forget(other):
                    self.forgotten[other] = NOT_BACK
        self.look_for_doubts(now)
        for other, since in list(node.voteless.items()):
            if now - since >= 2 * self.lease:
                del node.voteless[other]
        if node.adopted != self.epoch:
            if node.first is not None:
                for one in node.first.participants:  # rule 16
                    node.voteless.pop(one.node, None)
            self.epoch = node.adopted
            self.adopted_at = now
            self.minted_at = -1
            self.tries = 0
            if self.wanted is not None and self.change is None:
                # by this epoch a new node has learned the members: the next may make it one
                self.due = min(self.due, now + self.lease // 6)
        if self.minted_at < 0 and (
            node.holder_hop >= 0 or now - self.adopted_at >= node.terms.wait
        ):
            self.minted_at = now
        self.look_at_change()
        self.autopilot.observe(now)
        self.wanted = self.change or self.autopilot.change(now, self.gone_since)
        if node.unaccepted != self.unaccepted:
            self.unaccepted = node.unaccepted
            self.unaccepted_at = now
        self.returning_since = {
            fence: self.returning_since.get(fence, now) for fence in node.returning
        }
        paused = (now - self.woken_at) * 3 > 2 * self.lease
        if paused or not (self.quorum_reached() or self.is_stranded(now)):
            self.listens_until = now + self.lease // 2
        if self.is_blocked(now):
            self.blocked_at = now
        self.woken_at = now

    def is_young(self, fence: Fence) -> bool:
        """Was this grant returned just now?"""
        since = self.returning_since.get(fence)
        return since is not None and (self.node.now - since) * 3 < self.lease

    def tell_forgotten(self, now: int) -> None:
        """For a lease, for it may be lost. That they were gone, they need not have noticed: a link
        may be silent in one direction only, or be back before they look."""
        for other, since in list(self.forgotten.items()):
            if since != NOT_BACK and now - since >= self.lease:
                del self.forgotten[other]
            elif since not in (NOT_BACK, now) and other not in self.gone_since:
                self.node.send(Forgotten(other, self.node.adopted))

    def look_for_doubts(self, now: int) -> None:
        """A node that is gone, or that was, or that has started anew, may have had what this node
        asked for; and in the long run anything may have happened to it. It asks again as soon as it
        has heard where the token is, so that this is a short way."""
        node = self.node
        if node.hellos != self.lives:
            self.lives = dict(node.hellos)
            self.doubts_since = now
        elif now - self.asked_at >= LONG_RUN * self.lease:
            self.asked_at = self.doubts_since = now
        if self.doubts_since != NO_DOUBTS and node.heard_at > self.doubts_since:
            self.doubts_since = NO_DOUBTS
            self.asked_at = now
            node.ask_again()

    def is_gone(self, other: int, now: int) -> bool:
        since = self.gone_since.get(other)
        return since is not None and now - since >= self.grace

    # -- leases --------------------------------------------------------------------------------

    def renew(self, now: int) -> None:
        """When a third of a lease is over; every sixth if nobody answers."""
        node = self.node
        if (now - self.renewed_at) * 6 < self.lease or not node.has_to_renew():
            return
        ends = [
            grant.until
            for grant in node.grants.values()
            if grant.epoch == node.adopted and grant.until > now
        ]
        if node.token is not None and node.token.until > now:
            ends.append(node.token.until)
        if node.proposal is not None and node.proposal.confirmed:
            ends.append(node.proposal.until)
        if (min(ends) - now) * 3 <= 2 * self.lease:
            self.renewed_at = now
            node.renew()

    # -- epochs --------------------------------------------------------------------------------

    def close(self, now: int) -> None:
        node = self.node
        if not node.may_close() or node.proposal is None:
            self.quorum_at = -1
            return
        if self.quorum_at < 0:
            self.quorum_at = now
        parts = 2 if self.gives_votes(node.proposal) else 10
        if (now - self.quorum_at) * parts >= self.lease or self.all_reported():
            node.close()

    def gives_votes(self, proposal: Proposal) -> bool:
        """Is there anybody who may have a vote by this epoch, but has not reported yet: a member
        that has forgotten, or a node that is to become one?"""
        new = [proposal.change.add] if proposal.change is not None else []
        return any(
            one != NIL and one not in proposal.reports and one not in self.node.unreachable
            for one in new + self.voteless()
        )

    def may_succeed(self, now: int) -> bool:
        """Our proposal: once it is closed, only those who have reported can confirm it."""
        node, proposal = self.node, self.node.proposal
        if proposal is None or not proposal.closed:
            return proposal is not None
        reached = [one for one in self.reached() if one in proposal.reports]
        in_time = now - proposal.closed_at < PATIENCE * self.lease
        return in_time and len(reached) >= majority(node.members)

    def all_reported(self) -> bool:
        """Has everybody who can be reached?"""
        node = self.node
        reports = node.proposal.reports if node.proposal is not None else {}
        return all(other in reports or other in node.unreachable for other in node.terms.nodes)

    def propose(self, now: int, chance: float) -> None:
        node = self.node
        shared = self.shared_reason(now)
        reason = shared or self.own_reason(now)
        if reason == "":
            self.reason = ""
            return
        if not node.member or node.forgot:
            if (now >= self.listens_until or reason == LEFT_OUT) and (
                now - self.suggested_at
            ) * 6 >= self.lease:
                self.suggested_at = now
                node.suggest(shared == "")
            return
        if not node.votes() or not self.quorum_reached():
            self.reason = ""
            return
        if node.may_close():
            return
        if self.reason == "" or (self.reason == FEW and reason != FEW):
            self.due = max(now, self.listens_until)
            if reason == LEFT_OUT:  # we have heard of the epoch that others made
                self.due = now + self.step + self.turn()
            elif shared:
                self.due += self.turn()
            elif reason != FOUND and node.token is not None and node.token.until <= now:
                self.due += self.lease // 2
            if self.tries > 0:
                self.due += int(chance * self.lease)
        self.reason = reason
        if node.crossed:
            node.crossed = False
            self.due = min(self.due, now + int(chance * self.lease) // 3)
        if now >= self.due:
            self.tries += 1
            self.due = now + (2 * self.lease + int(chance * self.lease) << min(self.tries - 1, 3))
            node.propose(self.wanted)
            self.quorum_at = -1
            self.close(now)

    def turn(self) -> int:
        """How long the members before us have the first word."""
        node = self.node
        before = [one for one in node.members if one < node.me and one not in node.unreachable]
        return min(len(before) * self.step, self.lease // 2)

    def quorum_reached(self) -> bool:
        return len(self.reached()) >= majority(self.node.members)

    def reached(self) -> list[int]:
        """The members that can be asked for their vote, and have one."""
        voteless = self.voteless()
        return [
            member
            for member in self.node.members
            if member not in self.node.unreachable and member not in voteless
        ]

    def voteless(self) -> list[int]:
        """The members that can be reached and have no vote (rule 16), as far as we know."""
        node = self.node
        return [
            member
            for member in node.members
            if member not in node.unreachable
            and (member in node.voteless if member != node.me else node.forgot)
        ]

    def is_stranded(self, now: int) -> bool:
        """Does nobody make the epoch that we promised? Then we hear of no lower one, and only a
        higher one can have us."""
        node = self.node
        return node.promised > node.adopted and now - node.heard_at >= self.lease

    def own_reason(self, now: int) -> str:
        """What only we know."""
        node, token = self.node, self.node.token
        if node.proposal is not None:
            return "" if node.proposal.closed else FEW
        if token is None:
            sent = node.unaccepted
            if sent is not None and sent.state.epoch == node.promised:
                if (now - self.unaccepted_at) * 2 >= self.lease:
                    return f"{self.called(sent.receiver)} does not acknowledge the token"
                return ""
            return self.lost_reason(now) or self.change_reason(now)
        if token.until == NEVER and node.adopted == node.promised:
            return FOUND
        if token.until <= now:
            return "the lease of the token here ran out"
        if token.grants > MOST_GRANTS // 2:
            return "the epoch has made about as many grants as its fences can count"
        if node.disagrees():
            return "the token and its ledger disagree"
        if node.paused() and token.free >= 0:
            return "enough permits were released since the pool was made smaller"
        if now < node.suggested_until:
            return SUGGESTED
        for entry in token.ledger:
            if (now - node.lent.get(entry.fence, now)) * 2 >= self.lease:
                return f"{self.called(entry.node)} does not acknowledge a grant"
            if not entry.lapsing and self.is_gone(entry.node, now):
                return f"{self.called(entry.node)} has permits and is unreachable"
            if entry.lapsing and (
                self.is_gone(token.epoch.proposer, now)
                or now - self.adopted_at > 2 * node.terms.wait
            ):
                return "lapsed permits were not returned"
        return self.participant_reason(now) or self.lost_reason(now) or self.change_reason(now)

    def lost_reason(self, now: int) -> str:
        """Rule 14: what the algorithm inside cannot get over."""
        node = self.node
        if self.minted_at < 0 or node.adopted != node.promised or node.first is None:
            return ""  # whatever it is, the token may still do it
        since = min(self.returning_since.values(), default=now)
        if now - max(since, self.minted_at) >= self.lease:
            return "returned permits did not arrive"
        if node.holder_hop > MINTING and any(
            grant.epoch != node.adopted and grant.until > now for grant in node.grants.values()
        ):
            return LEFT_OUT
        if node.missed:
            return "a grant came after the end of its lease"
        if node.inner is None and not node.quiet() and (now - self.minted_at) * 3 >= self.lease:
            return "this node takes no part in the epoch yet"
        if node.forgot and node.member and not node.quiet():
            return "this node does not know the members"
        return ""

    def participant_reason(self, now: int) -> str:
        """Rule 14: an algorithm for fixed networks cannot do without any participant."""
        first = self.node.first
        if self.node.closed and first is not None and first.epoch == self.node.promised:
            for participant in first.participants:
                if self.is_gone(participant.node, now):
                    return f"{self.called(participant.node)} is unreachable"
        return ""

    def look_at_change(self) -> None:
        """A change that has been made is done; the last member cannot be removed."""
        change, config = self.change, self.node.config
        if change is not None and (change.is_made(config) or config.members == (change.remove,)):
            self.change = None

    def change_reason(self, now: int) -> str:
        """A change is made where the token is reported: its holder must be within reach. If another
        member has just begun an epoch, perhaps for the same reason, let its token be made first: of
        two who propose in turn neither would find one."""
        node = self.node
        outdone = node.adopted.counter <= self.above
        if (self.wanted is None and not outdone) or not node.member:
            return ""
        if not node.usable():
            settled = self.minted_at >= 0 and node.adopted == node.promised
            if not settled or now - self.minted_at < self.lease // 3 + 4 * self.turn():
                return ""
        if self.wanted is None:
            return "another pool of this name has higher fences"
        permits = self.wanted.permits > 0 or len(self.wanted.names) > 0
        return f"the {'permits' if permits else 'members'} are to change"

    def shared_reason(self, now: int) -> str:
        """What others are likely to see as well."""
        node = self.node
        if node.proposal is not None or node.token is not None:
            return ""
        if now < node.suggested_until:
            return SUGGESTED
        holder = self.holder()
        if holder != NIL and self.is_gone(holder, now):
            what = "had the token" if node.promised == node.adopted else "proposed an epoch"
            return f"{self.called(holder)}, which {what}, is unreachable"
        if node.member and now - node.heard_at >= self.lease:
            return "the token was not seen for a lease"
        if self.is_stranded(now):
            return "the epoch that this node promised was not made"
        return self.participant_reason(now)

    def holder(self) -> int:
        """Who has the token or proposes an epoch, as far as we know."""
        node = self.node
        return NIL if node.heard_of == node.me else node.heard_of

    # -- sentences -----------------------------------------------------------------------------

    def seconds(self, time: int) -> str:
        return f"{max(0, time) / self.second:.1f} s"

    def why(self, now: int) -> str:
        """In a sentence: what a client of this node waits for; empty if nobody waits."""
        node = self.node
        if len(node.waiting) == 0:
            return ""
        obstacle = self.obstacle(now)
        if obstacle:
            return obstacle
        if node.token is not None and node.usable():
            if node.token.free == 0:
                return "all permits are in use"
            return f"{node.token.free} permits are free, and requests ahead are served first"
        holder = self.holder()
        if holder == NIL:
            return "the holder of the token is not known yet"
        return f"waiting for the token (holder: {self.called(holder)})"

    def quorum_lost(self) -> str:
        """That there is none, as far as is known here; empty if there is one."""
        members, reached, voteless = self.node.members, self.reached(), self.voteless()
        if len(members) == 0:
            return "who its members are is not known yet"
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
        node = self.node
        if self.is_blocked(now):
            return True
        heard = node.holder_hop > MINTING and node.heard_at > self.blocked_at
        return not node.usable() and not heard

    def is_blocked(self, now: int) -> bool:
        """Does this node know that nobody is served?"""
        node = self.node
        if self.quorum_lost():
            return True
        if node.token is not None:
            return not node.usable()
        return not node.active() or self.shared_reason(now) != ""

    def obstacle(self, now: int) -> str:
        """Why nobody is served here, whoever it is; empty if the token may come."""
        node = self.node
        lost = self.quorum_lost()
        if lost:
            return lost
        proposal = node.proposal
        if proposal is not None and proposal.closed and proposal.confirmed:
            left = proposal.closed_at + node.terms.wait - now
            return f"the token was lost; a new one is made in {self.seconds(left)}"
        if proposal is not None:
            return "a new epoch is proposed, waiting for the reports of members"
        if node.token is not None and node.usable():
            if node.token.free < 0:
                return f"the pool was made smaller: {-node.token.free} too many are still in use"
            return ""
        if node.quiet() and not node.active():
            left = node.quiet_until - now
            return f"restarted, in its quiet period for {self.seconds(left)} more"
        reason = self.reason or self.shared_reason(now) or self.own_reason(now)
        if reason != "" and node.member:
            return f"{reason}; a new epoch will be proposed"
        if reason != "":
            return f"{reason}; this node asks the members for a new epoch"
        if node.promised > node.adopted:
            return f"{self.called(self.holder())} has proposed a new epoch, waiting for it"
        return ""
