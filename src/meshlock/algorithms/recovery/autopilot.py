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

from typing import TYPE_CHECKING

from meshlock.algorithms.recovery.records import Change, majority

if TYPE_CHECKING:
    from meshlock.algorithms.recovery.layer import Layer
    from meshlock.algorithms.recovery.state import Rules

OFFERS_LAST = 3
"""Leases; an offer is made anew every lease."""


class Autopilot:
    def __init__(self, node: Layer) -> None:
        self.node = node
        self.rules = node.terms.rules
        self.members: tuple[int, ...] = ()
        self.changed_at = 0  # the members, or our life began
        self.part_since = -1  # since when we take part and reach a quorum
        self.offered_at = 0

    def observe(self, now: int) -> None:
        node = self.node
        if node.members != self.members:
            self.members = node.members
            self.changed_at = now
            self.offered_at = now - node.terms.lease  # another may decide now
        if node.inner is None or node.quiet() or not node.pace.quorum_reached():
            self.part_since = -1
        elif self.part_since < 0:
            self.part_since = now
        for other in list(node.offers):
            if now - node.offers[other] > OFFERS_LAST * node.terms.lease:
                del node.offers[other]

    def reached(self) -> list[int]:
        return [member for member in self.node.members if member not in self.node.unreachable]

    def patience(self, rules: Rules) -> int:
        """For how long a node must have taken part, and nothing have changed."""
        return 0 if len(self.node.members) < 3 else rules.promote_after

    # -- who is no member ----------------------------------------------------------------------

    def offer(self, now: int) -> None:
        node, rules = self.node, self.rules
        if rules is None or node.member or not node.willing or self.part_since < 0:
            return
        if now - self.part_since < self.patience(rules) or not self.is_wanted():
            return
        if now - self.offered_at >= node.terms.lease:
            self.offered_at = now
            node.offer(self.reached())

    def is_wanted(self) -> bool:
        """Is there any use for one more?"""
        assert self.rules is not None
        size = len(self.node.members)
        if size % 2 == 0 or size + 2 <= self.rules.most:
            return True
        return len(self.reached()) < size

    # -- who is a member -----------------------------------------------------------------------

    def change(self, now: int, gone_since: dict[int, int]) -> Change | None:
        """The one to be made now, if it is for us to make it."""
        node, rules, reached = self.node, self.rules, self.node.pace.reached()
        if rules is None or not node.votes() or len(reached) < majority(node.members):
            return None
        if reached[0] != node.me and not node.usable():
            return None
        members = node.members
        offers = [one for one in node.offers if one not in members and one not in node.unreachable]
        dead = [one for one in members if now - gone_since.get(one, now) >= rules.replace_after]
        if len(members) % 2 == 0:
            if len(offers) > 0:
                return Change(add=offers[0])
            if len(dead) > 0:
                return Change(remove=dead[0])
            if now - self.changed_at >= rules.replace_after:
                return Change(remove=max([one for one in members if one != node.me]))
        elif now - self.changed_at >= self.patience(rules):
            if len(dead) > 0 and len(offers) > 0:
                return Change(remove=dead[0])
            if len(members) + 2 <= rules.most and len(offers) > 1:
                return Change(add=offers[0])
        return None
