"""Who should be a member of a pool whose members choose themselves.

Nothing here can make anything unsafe: what it wants is made by the same change of members, one at
a time, as if somebody had asked for it. Five rules, for an odd number of members:

**Who stays may be promoted.** A node that is no member, wants to be one and has taken part for
``promote_after`` offers itself to the members (OFFER), for as long as there is use for it. One that
restarts or cannot reach a quorum begins anew; short-lived nodes are not ``willing``.

**The first minute.** A pool that has one member stops with it. So while it has, two
others become members as soon as their words count, which is a lease after they came. Patience is
for those that are replaced.

**Growth by two.** Two members survive no more crashes than one, so the first of two is only
added when both have offered themselves; the even number in between is passed through, and if there
is nobody left to add after all, one is removed again.

**Replacement: remove, then add.** A member that is unreachable for ``replace_after`` is removed if
somebody else has offered itself, who is then added. In this order, because a quorum of the smaller
configuration are members that are known to live: of three with one dead, two are needed before and
after. With the new one added first, three of four would be needed, and a new node that fails
at once would stop the pool for good. Without somebody in its place nobody is removed: the dead may
come back, and then count again.

**No haste.** After a change nothing begins for ``promote_after``, but what was begun is ended.

One member decides, the one that has the token, or else the lowest-numbered that is reachable; and
only with a quorum. It proposes an epoch, and the change is made if the token is reported to it.
"""

from __future__ import annotations

from meshlock.algorithms.recovery.member import PoolMember
from meshlock.algorithms.recovery.messages import Offer
from meshlock.algorithms.recovery.records import Change, majority
from meshlock.algorithms.recovery.terms import Rules

OFFERS_LAST = 3
"""Leases; an offer is made anew every lease."""


class Autopilot:
    def __init__(self, member: PoolMember) -> None:
        self.member = member
        self.rules = member.terms.rules
        self.willing = True  # to be a member ourselves
        self.members: tuple[int, ...] = ()
        self.changed_at = 0  # the members, or our life began
        self.part_since = -1  # since when we take part and reach a quorum
        self.offered_at = 0
        self.offers: dict[int, int] = {}  # who would be a member, and when we heard that last

    def observe(self, takes_part: bool) -> None:
        """``takes_part``: in the epoch, and reaches a quorum."""
        member, now = self.member, self.member.now
        if member.members != self.members:
            self.members = member.members
            self.changed_at = now
            self.offered_at = now - member.terms.lease  # another may decide now
        if not takes_part or member.quiet():
            self.part_since = -1
        elif self.part_since < 0:
            self.part_since = now
        for other in list(self.offers):
            if now - self.offers[other] > OFFERS_LAST * member.terms.lease:
                del self.offers[other]

    def reached(self) -> list[int]:
        return [one for one in self.member.members if one not in self.member.unreachable]

    def patience(self, rules: Rules) -> int:
        """For how long a node must have taken part, and nothing have changed."""
        return 0 if len(self.member.members) < 3 else rules.promote_after

    # -- who is no member ----------------------------------------------------------------------

    def offer(self) -> None:
        member, rules, now = self.member, self.rules, self.member.now
        if rules is None or member.is_member() or not self.willing or self.part_since < 0:
            return
        if now - self.part_since < self.patience(rules) or not self.is_wanted(rules):
            return
        if now - self.offered_at >= member.terms.lease:
            self.offered_at = now
            for other in self.reached():
                member.send(Offer(other, member.adopted))

    def is_wanted(self, rules: Rules) -> bool:
        """Is there any use for one more?"""
        size = len(self.member.members)
        if size % 2 == 0 or size + 2 <= rules.most:
            return True
        return len(self.reached()) < size

    # -- who is a member -----------------------------------------------------------------------

    def receive_offer(self, offer: Offer) -> None:
        if offer.epoch == self.member.adopted and self.member.is_member():
            self.offers[offer.sender] = self.member.now

    def wanted(
        self, asked: Change | None, gone_since: dict[int, int], voters: list[int]
    ) -> Change | None:
        """What a user has asked for goes first. But a node that does not report cannot become a
        member, so it is waited for."""
        if asked is not None and asked.add not in self.member.unreachable:
            return asked
        return self.change(gone_since, voters)

    def change(self, gone_since: dict[int, int], voters: list[int]) -> Change | None:
        """The one to be made now, if it is for us to make it. ``voters``: the members that can be
        reached and have a vote."""
        member, rules, now = self.member, self.rules, self.member.now
        members = member.members
        if rules is None or not member.votes() or len(voters) < majority(members):
            return None
        if voters[0] != member.me and not member.usable():
            return None
        gone = member.unreachable
        offers = [one for one in self.offers if one not in members and one not in gone]
        dead = [one for one in members if now - gone_since.get(one, now) >= rules.replace_after]
        if len(members) % 2 == 0:
            if len(offers) > 0:
                return Change(add=offers[0])
            if len(dead) > 0:
                return Change(remove=dead[0])
            if now - self.changed_at >= rules.replace_after:
                return Change(remove=max([one for one in members if one != member.me]))
        elif now - self.changed_at >= self.patience(rules):
            if len(dead) > 0 and len(offers) > 0:
                return Change(remove=dead[0])
            if len(members) + 2 <= rules.most and len(offers) > 1:
                return Change(add=offers[0])
        return None
