"""When to do what: the timing of recovery, for simulated and live nodes alike.

:mod:`.node` says what is right at any moment; this says what is wise, and nothing here can make
anything unsafe. The runner calls :meth:`Pace.poll` some thirty times per lease, and also after
deliveries if it likes, with ``chance``, a number from 0 to 1 that it draws; and it keeps the node's
``gone`` up to date, the set of nodes that cannot be reached.

**A lease is renewed** when a third of it is over, by whoever holds something under it, and asked
for again every sixth while nobody answers. Since the token's holder is among those, members hear
of it three times per lease, and its renewals tell them who it is.

**Reasons to propose an epoch.** Our token is dead. Or it lives, and its ledger names a node that is
gone, or entries that were to lapse long ago. Or a TOKEN that we sent was not acknowledged for half
a lease. Or the holder, or who proposed the epoch we promised, is gone. Or nothing was heard of
holder or proposer for a lease, or for half of one since it is known that it restarted. Waiting
for one's turn is none. *Gone* means for a GRACE, so that a link which comes back at once costs
nothing.

**Turns.** Where all see the same reason, the member with the lowest number of those that are
not gone proposes at once, the next a STEP later, and so on; a promise to somebody counts as having
heard of a proposer, so the others keep still. Whoever proposed in vain waits for a while at
random. While no majority of the members can be reached nobody proposes. Whoever comes back from
such a time, from a pause, or to a token that died meanwhile, listens for half a lease first: by
then it has heard of an epoch that others made without it.

**Closing.** As soon as everybody who is not gone has reported, or a tenth of a lease after a
majority has: a ledger that is written without the token's holder costs a lease.

So a token whose holder was killed is replaced after: the time until the runner knows it is gone, a
GRACE, a STEP or so, and ``wait``. The birth of a pool takes the silence and ``wait``.
"""

from __future__ import annotations

from collections.abc import Callable

from meshlock.algorithms.interface import NIL
from meshlock.algorithms.recovery.messages import MOST_GRANTS, NO_EPOCH, Change, Doubt
from meshlock.algorithms.recovery.node import RecoveryNode
from meshlock.algorithms.recovery.state import majority

GRACE = 20
"""Parts of a lease."""
STEP = 20

PLACES: list[str] = ["first", "second", "third", "fourth", "fifth", "sixth"]


def by_number(node: int) -> str:
    return f"node {node}"


class Pace:
    """What the runner tells for sentences only: ``second``, how many of its units of time make
    one, and ``called``, the name of a node."""

    def __init__(
        self,
        node: RecoveryNode,
        second: int = 1_000_000_000,
        called: Callable[[int], str] = by_number,
    ) -> None:
        self.node = node
        self.second = second
        self.called = called
        self.lease = node.pool.lease
        self.grace = self.lease // GRACE
        self.step = self.lease // STEP
        self.floor = 0  # of epochs' counters: the wall clock, for a node that has no memory
        self.change: Change | None = None  # of the members, to be made when it can be
        self.began = False
        self.polled_at = 0
        self.listens_until = 0
        self.renewed_at = 0
        self.repeated_at = 0
        self.pressed_at = 0
        self.majority_at = -1  # since when our proposal could be closed
        self.gone_since: dict[int, int] = {}
        self.epoch = NO_EPOCH  # the one adopted, and since when
        self.adopted_at = 0
        self.doubt: Doubt | None = None  # the TOKEN not acknowledged, and since when
        self.doubt_at = 0
        self.reason = ""  # the one that counts now, and when we act on it
        self.due = 0
        self.tries = 0

    def poll(self, now: int, chance: float) -> None:
        node = self.node
        if not self.began:
            self.began = True
            self.adopted_at = self.polled_at = self.listens_until = now
            self.renewed_at = self.repeated_at = self.pressed_at = now - self.lease
        node.wake(now)
        self.observe(now)
        self.renew(now)
        if (now - self.repeated_at) * 3 >= self.lease:
            self.repeated_at = now
            node.repeat(now)
        self.close(now)
        self.propose(now, chance)

    def observe(self, now: int) -> None:
        node = self.node
        for other in list(self.gone_since):
            if other not in node.gone:
                del self.gone_since[other]
        for other in node.gone:
            if other not in self.gone_since:
                self.gone_since[other] = now
                node.decide(now)  # who is gone is not waited for
        if node.adopted != self.epoch:
            self.epoch = node.adopted
            self.adopted_at = now
            self.tries = 0
        if node.doubt != self.doubt:
            self.doubt = node.doubt
            self.doubt_at = now
        paused = (now - self.polled_at) * 3 > 2 * self.lease
        if paused or not self.majority_reached():
            self.listens_until = now + self.lease // 2
        self.polled_at = now

    def is_gone(self, other: int, now: int) -> bool:
        since = self.gone_since.get(other)
        return since is not None and now - since >= self.grace

    # -- leases --------------------------------------------------------------------------------

    def renew(self, now: int) -> None:
        """When a third of a lease is over; every sixth if nobody answers."""
        node = self.node
        if (now - self.renewed_at) * 6 < self.lease or not node.has_to_renew(now):
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
            node.renew(now)

    # -- epochs --------------------------------------------------------------------------------

    def close(self, now: int) -> None:
        node = self.node
        if not node.may_close() or node.proposal is None:
            self.majority_at = -1
            return
        if self.majority_at < 0:
            self.majority_at = now
        reports = node.proposal.reports
        late = [other for other in node.pool.nodes if other not in reports]
        waited = (now - self.majority_at) * 10 >= self.lease
        if waited or all(other in node.gone for other in late):
            node.close(now)

    def propose(self, now: int, chance: float) -> None:
        node = self.node
        shared = self.shared_reason(now)
        reason = shared or self.own_reason(now)
        if reason == "":
            self.reason = ""
            return
        if not node.member:
            if now >= self.listens_until and (now - self.pressed_at) * 6 >= self.lease:
                self.pressed_at = now
                node.press(now)
            return
        if not node.votes(now) or not self.majority_reached():
            self.reason = ""
            return
        if node.may_close():
            return
        if self.reason == "":
            self.due = max(now, self.listens_until)
            if shared:
                self.due += self.turn()
            elif node.token is not None and node.token.until <= now:
                self.due += self.lease // 2
            if self.tries > 0:
                self.due += int(chance * self.lease)
        self.reason = reason
        if node.crossed:
            node.crossed = False
            self.due = min(self.due, now + int(chance * self.lease) // 3)
        if now >= self.due:
            self.tries += 1
            self.due = now + self.lease // 2 + int(chance * self.lease)
            node.propose(now, self.floor, self.change)
            self.majority_at = -1
            self.close(now)

    def turn(self) -> int:
        """How long the members before us have the first word."""
        node = self.node
        before = [one for one in node.members if one < node.me and one not in node.gone]
        return min(len(before) * self.step, self.lease // 2)

    def majority_reached(self) -> bool:
        return len(self.reached()) >= majority(self.node.members)

    def reached(self) -> list[int]:
        return [member for member in self.node.members if member not in self.node.gone]

    def own_reason(self, now: int) -> str:
        """What only we know."""
        node, token = self.node, self.node.token
        if node.proposal is not None:
            return "" if node.proposal.closed else "too few members have promised"
        if token is None:
            if node.doubt is not None and node.doubt[0][0] == node.promised:
                if (now - self.doubt_at) * 2 >= self.lease:
                    return f"{self.called(node.doubt[1])} does not acknowledge the token"
                return ""
            return self.wish()
        if token.until <= now:
            return "the lease of the token here ran out"
        if token.grants > MOST_GRANTS // 2:
            return "the epoch has made about as many grants as its fences can count"
        for other, _, _, lapsing in token.ledger:
            if not lapsing and self.is_gone(other, now):
                return f"{self.called(other)} has permits and is gone"
            if lapsing and (
                self.is_gone(token.epoch[1], now) or now - self.adopted_at > 2 * node.pool.wait
            ):
                return "permits that lapsed were not given back"
        return self.wish()

    def wish(self) -> str:
        """A change of members is made by whoever has the token: get it first."""
        change = self.change
        if change is None or not self.node.member:
            return ""
        added, other = change
        if added == (other in self.node.members):
            self.change = None
            return ""
        return "the members are to change"

    def shared_reason(self, now: int) -> str:
        """What others are likely to see as well."""
        node = self.node
        if node.proposal is not None or node.token is not None:
            return ""
        if now < node.pressed_until:
            return "a node that is no member has seen that the token or permits are lost"
        holder = self.holder()
        if holder != NIL and self.is_gone(holder, now):
            return f"{self.called(holder)}, which had the token, is gone"
        if node.member and now - node.heard_at >= self.lease:
            return "nothing was heard of the token for a lease"
        return ""

    def holder(self) -> int:
        """Who has the token or proposes an epoch, as far as we know."""
        node = self.node
        return NIL if node.heard_of == node.me else node.heard_of

    # -- telling -------------------------------------------------------------------------------

    def suspects(self) -> list[int]:
        """Nodes that cannot be reached."""
        return sorted(self.node.gone)

    def seconds(self, time: int) -> str:
        return f"{max(0, time) / self.second:.1f} s"

    def why(self, now: int) -> str:
        """In a sentence: what a client of this node waits for; empty if nobody waits."""
        node = self.node
        if len(node.waiting) == 0:
            return ""
        members, reached = node.members, self.reached()
        if len(reached) < majority(members):
            return (
                f"a majority of the members cannot be reached: {len(reached)} of {len(members)} can"
            )
        proposal = node.proposal
        if proposal is not None and proposal.closed and proposal.confirmed:
            left = proposal.closed_at + node.pool.wait - now
            return f"the token was lost; a new one is made in {self.seconds(left)}"
        if proposal is not None:
            return "a new epoch is proposed; the members' reports are awaited"
        if node.usable(now):
            return self.why_here()
        if node.silent(now):
            return f"restarted, silent for {self.seconds(node.silent_until - now)} more"
        reason = self.reason or self.shared_reason(now) or self.own_reason(now)
        if reason != "":
            return f"{reason}; a new epoch will be proposed"
        holder = self.holder()
        if node.promised > node.adopted:
            return f"{self.called(holder)} has proposed a new epoch, which is not ready yet"
        if holder == NIL:
            return "where the token is is not known yet"
        return f"{self.called(holder)} has the token, or knows the way to it; its queue decides"

    def why_here(self) -> str:
        node, token = self.node, self.node.token
        assert token is not None
        mine = node.asked()
        places = [asked[0] for asked in node.queue]
        place = places.index(node.me) if node.me in places else 0
        if place > 0:
            name = PLACES[place] if place < len(PLACES) else f"number {place + 1}"
            return f"{name} in the queue"
        if token.free == 0:
            return "all permits are in use"
        return f"{mine[2]} permits are wanted, {token.free} are free"
