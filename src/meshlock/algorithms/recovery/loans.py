"""Grants to clients of other nodes, while the token stays (rule 17).

Those that were lent here, until they are acknowledged or returned; those that were borrowed here,
until that was acknowledged. Each is accepted once. Nothing here touches the node inside.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import Frozen
from meshlock.algorithms.recovery.freezing import Declared, special
from meshlock.algorithms.recovery.member import PoolMember
from meshlock.algorithms.recovery.messages import Inner, Received
from meshlock.algorithms.recovery.records import Entry, Fence, new_entry
from meshlock.algorithms.recovery.terms import Notes
from meshlock.algorithms.subclassing import mypyc_attr

MOST_TAKEN = 64
"""Grants that are told apart from later ones at least, should they arrive in another order."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Loans:
    def __init__(self, member: PoolMember, notes: Notes) -> None:
        self.member = member
        self.notes = notes
        self.lent: dict[Fence, int] = {}  # not known to have arrived, since when
        self.changed = False  # they have, in this step
        # by whom, since when, and whether we said so
        self.borrowed: dict[Fence, tuple[int, int, bool]] = {}
        self.taken = [0]  # numbers of grants lent to us; none below the first ...
        self.last_taken = 0  # ... and the highest
        self.missed = False  # one came after the end of its lease
        self.arrived: tuple[Entry, int] | None = None  # in one step: until when

    def begin_after(self, grants: int) -> None:
        """A node that comes late accepts none that was made before."""
        self.taken = [grants]
        self.last_taken = grants

    def is_over(self, fence: Fence) -> None:
        """It has arrived, or it was returned."""
        if self.lent.pop(fence, None) is not None:
            self.changed = True

    def borrow(self, inner: Inner, lent: Entry) -> bool:
        """Is it a grant to us whose lease runs, and that was not here before? Then it is here."""
        member = self.member
        number, taken = lent.fence.number, self.taken
        if lent.node != member.me or lent.fence.epoch != member.adopted:
            return False
        if member.holding.token is not None:
            return False
        if number <= self.last_taken and (number <= taken[0] or number in taken):
            return False
        until = arrives_until(member.now, inner)
        if until <= member.now:
            self.missed = True
            return False
        taken.append(number)
        self.last_taken = max(self.last_taken, number)
        if len(taken) > 2 * MOST_TAKEN:
            taken.sort()
            del taken[:-MOST_TAKEN]
        self.borrowed[lent.fence] = (inner.sender, member.now, False)
        self.arrived = (lent, until)
        return True

    def acknowledge(self, again: bool) -> None:
        """Those that are still here, at once and ``again`` for a lease, for it may be lost; for the
        others, what is returned says as much."""
        if len(self.borrowed) == 0:
            return
        member = self.member
        received: dict[int, tuple[tuple[Fence, str], ...]] = {}
        for fence, (sender, since, told) in sorted(self.borrowed.items()):
            grant = member.grants.get(fence)
            if grant is None or member.now - since >= member.terms.lease:
                del self.borrowed[fence]
            elif again or not told:
                ours = new_entry(member.me, fence, grant.permits, grant.slots, grant.label)
                label = self.notes.handed((ours,))[0].label
                received[sender] = (*received.get(sender, ()), (fence, label))
                self.borrowed[fence] = (sender, since, True)
        for sender, fences in received.items():
            member.send(Received(sender, member.adopted, fences))

    def receive_received(self, message: Received) -> bool:
        """True if we have the token, and so may go by it."""
        token = self.member.holding.token
        if token is None or message.epoch != self.member.adopted:
            return False
        for fence, label in message.received:
            if token.name(fence, message.sender, label):
                self.is_over(fence)
        return True


def arrives_until(now: int, inner: Inner) -> int:
    """The end of the lease of what comes now."""
    return now + inner.left - inner.travelled


def freeze_taken(part: Loans, now: int) -> Frozen:
    return (part.missed, *part.taken)


def thaw_taken(part: Loans, frozen: Any) -> None:
    missed, *part.taken = frozen
    part.last_taken = max(part.taken)
    part.missed = missed == 1


def freeze_lent(part: Loans, now: int) -> Frozen:
    """Grants that are not acknowledged here, and those that we shall acknowledge."""
    if not part.member.terms.moves_early:
        return ()
    untold = [(fence, one[0]) for fence, one in part.borrowed.items() if not one[2]]
    return (tuple(sorted(part.lent)), tuple(sorted(untold)))


def thaw_lent(part: Loans, frozen: Any) -> None:
    lent, borrowed = frozen or ((), ())
    part.lent = dict.fromkeys(lent, 0)
    part.borrowed = {fence: (sender, 0, False) for fence, sender in borrowed}
    part.arrived = None


LOANS_VARIABLES = Declared(
    special("taken", freeze_taken, thaw_taken),
    special("lent", freeze_lent, thaw_lent),
)
