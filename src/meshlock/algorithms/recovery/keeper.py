"""The token in one epoch: how it comes and goes, and what is struck out of its ledger.

Rules 1, 9, 10 and 17. To these parts a message of the algorithm inside is something that carries
the token or permits; they never touch the node inside.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import NIL, Frozen, Message
from meshlock.algorithms.recovery.holding import HeldToken
from meshlock.algorithms.recovery.inside import Inside
from meshlock.algorithms.recovery.member import PoolMember
from meshlock.algorithms.recovery.messages import Accepted, Inner, Received, Returned, Sent
from meshlock.algorithms.recovery.records import (
    ANY_BOOT,
    NEVER,
    Entry,
    Fence,
    Parts,
    ReleasedPart,
    Returns,
    Unaccepted,
    new,
    new_entry,
    same,
)
from meshlock.algorithms.recovery.terms import Notes
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import Variables, by_key, special, unordered

MOST_TAKEN = 64
"""Grants that are told apart from later ones at least, should they arrive in another order."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Loans:
    """Grants to clients of other nodes, while the token stays (rule 17): those that were lent here,
    until they are acknowledged or returned; those that were borrowed here, until that was
    acknowledged. Each is accepted once."""

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


LOANS_VARIABLES = Variables(
    special("taken", freeze_taken, thaw_taken),
    special("lent", freeze_lent, thaw_lent),
)


@mypyc_attr(allow_interpreted_subclasses=True)
class TokenKeeper:
    def __init__(self, member: PoolMember, inside: Inside, loans: Loans, notes: Notes) -> None:
        self.member = member
        self.inside = inside
        self.loans = loans
        self.notes = notes
        # grants that are over, or a part, and not yet known to be struck out; what is kept of each
        self.returning: dict[Fence, int] = {}
        self.former: dict[Fence, int] = {}  # entries of a former life, to be returned later
        self.pending: set[ReleasedPart] = (
            set()
        )  # what the node inside has back, but not with its token
        self.receipts: dict[int, int] = {}  # who sent us the token, at which hop: to be told
        self.struck: dict[int, Returns] = {}  # what was struck out, what is left: to be told

    # -- the token moves ---------------------------------------------------------------------------

    def may_give(self, message: Message) -> bool:
        token = self.member.holding.token
        return token is not None and self.member.usable() and message.permits() == token.free

    def give(self, message: Message) -> None:
        """Rule 1."""
        member, holding = self.member, self.member.holding
        token = holding.token
        assert token is not None
        token.hop += 1
        if len(token.ledger) > 0:
            token.ledger = self.notes.handed(token.ledger)
        receiver = self.inside.node_at(message.receiver)
        boot = self.boot_of(receiver)
        sent: Unaccepted = new(Unaccepted, (token.state(), receiver, boot))
        holding.token = None
        holding.unaccepted = sent
        holding.unaccepted_message = message
        holding.unaccepted_until = token.until
        holding.holder = receiver
        holding.holder_hop = token.hop
        member.hear(receiver)
        left = token.until - member.now
        member.send(Inner(receiver, member.adopted, boot, message, sent.state, left))

    def send_again(self, linked: set[int]) -> None:
        """Rule 10: a token of which we do not know that it arrived, the very same: it is accepted
        once. Where it cannot be lost, and must not overtake, ask."""
        member, holding = self.member, self.member.holding
        sent, message = holding.unaccepted, holding.unaccepted_message
        if sent is None or message is None or sent.state.epoch != member.promised:
            return
        if member.terms.fixed or sent.receiver in linked:
            member.send(Sent(sent.receiver, sent.state.epoch, sent.state.hop))
            return
        left = holding.unaccepted_until - member.now
        if left > 0:
            boot = sent.boot
            member.send(Inner(sent.receiver, member.adopted, boot, message, sent.state, left))

    def boot_of(self, node: int) -> int:
        """The life of that participant that takes part in the epoch, as far as we know."""
        member = self.member
        hello = member.hellos.get(node)
        if member.terms.fixed and (hello is None or not same(hello[0], member.adopted)):
            boots = self.inside.boots  # a node that comes late has missed who came before
            return boots.get(node, ANY_BOOT) if boots.get(member.me) == member.boot else ANY_BOOT
        return hello[1] if hello is not None else ANY_BOOT

    def accept(self, inner: Inner) -> bool:
        """A token with its state: it is ours, unless it was before."""
        state, member = inner.state, self.member
        if state is None:
            return False
        if (state.epoch, state.hop) <= member.hop_seen:
            if state.epoch == member.hop_seen[0]:
                member.send(
                    Accepted(inner.sender, state.epoch, state.hop)
                )  # the first one was lost
            return False
        member.hop_seen = (state.epoch, state.hop)
        holding = member.holding
        holding.clear_unaccepted()
        token = holding.token = HeldToken(state, arrives_until(member.now, inner))
        if same(state.epoch, member.adopted):
            token.epoch = member.adopted
        holding.holder = member.me
        holding.holder_hop = state.hop
        member.hear(member.me)
        self.receipts[inner.sender] = state.hop
        self.absorb()
        if len(self.returning) > 0:
            for fence in list(self.returning):
                self.is_struck(fence, token.left(fence))
        if (token.until - member.now) * 3 < 2 * member.terms.lease:
            member.extend()  # what members answered us before is good for the token as well
        return True

    def receive_sent(self, sent: Sent) -> None:
        if self.member.hop_seen >= (sent.epoch, sent.hop):
            self.member.send(Accepted(sent.sender, sent.epoch, sent.hop))

    def receive_accepted(self, accepted: Accepted) -> None:
        """The sender of a token never takes it back; it only learns that it has arrived."""
        sent = self.member.holding.unaccepted
        if sent is not None and (sent.state.epoch, sent.state.hop) == (
            accepted.epoch,
            accepted.hop,
        ):
            self.member.holding.clear_unaccepted()

    # -- permits come back -------------------------------------------------------------------------

    def go_on_with(self, entries: tuple[Entry, ...]) -> None:
        """With what the first ledger says is ours; what we do not hold, or not any more, is over,
        or will be: commands of a former life may still run."""
        member = self.member
        missing: dict[Fence, int] = {}
        for entry in entries:
            if entry.node == member.me and not entry.lapsing:
                grant = member.grants.get(entry.fence)
                if grant is not None and grant.until > member.now:
                    grant.epoch = member.adopted
                    if grant.permits < entry.permits:
                        self.returning[entry.fence] = grant.permits
                else:
                    missing[entry.fence] = 0
        if member.quiet():
            self.former.update(missing)
        else:
            self.returning.update(missing)

    def bring_back(self, had: bool, returned: Parts) -> None:
        """Rule 9: permits have come to the node inside, which had the token before, or not."""
        if had and self.member.holding.token is not None:
            for part in returned:
                self.strike(part)
        else:
            self.pending.update(returned)

    def strike(self, part: ReleasedPart) -> None:
        member, fence = self.member, part.fence
        token = member.holding.token
        assert token is not None
        owner, left = token.strike(part)
        self.is_struck(fence, left)
        if left == 0:
            self.loans.is_over(fence)
        if owner not in (NIL, member.me):
            self.struck[owner] = (*self.struck.get(owner, ()), (fence, left))

    def is_struck(self, fence: Fence, left: int) -> None:
        """The ledger says that this number is out."""
        if self.returning.get(fence, NIL) >= left:
            del self.returning[fence]

    def absorb(self) -> None:
        """The token is here, and with it all permits that came ahead of it."""
        if len(self.pending) > 0:
            pending, self.pending = self.pending, set()
            for part in sorted(pending):
                self.strike(part)

    def take_pending(self, permits: int) -> Parts:
        """Rule 9: pending parts of this number of permits; which of them does not matter."""
        if permits == 0:
            return ()
        pending = self.pending
        if sum([part.permits for part in pending]) == permits:
            self.pending = set()
            return tuple(sorted(pending))
        taken: dict[int, Parts] = {0: ()}  # for each sum, some that make it
        for part in sorted(pending):
            for total, chosen in list(taken.items()):
                if total + part.permits not in taken:
                    taken[total + part.permits] = (*chosen, part)
        found = taken.get(permits, ())
        pending.difference_update(found)
        return found

    def receive_returned(self, message: Returned) -> None:
        if message.epoch == self.member.adopted:
            for fence, left in message.fences:
                self.is_struck(fence, left)

    def is_idle(self) -> bool:
        """Is there nothing to be said or returned?"""
        open_ends = len(self.receipts) + len(self.struck) + len(self.returning) + len(self.former)
        return open_ends == 0 and self.member.holding.unaccepted is None

    def acknowledge(self) -> None:
        """What arrived and what was struck out: nobody waits for that, so it goes together."""
        member = self.member
        for sender, hop in sorted(self.receipts.items()):
            member.send(Accepted(sender, member.adopted, hop))
        for owner, fences in sorted(self.struck.items()):
            member.send(Returned(owner, member.adopted, fences))
        self.receipts = {}
        self.struck = {}


def freeze_unaccepted(part: TokenKeeper, now: int) -> Frozen:
    holding = part.member.holding
    if holding.unaccepted is None:
        return ()
    if holding.unaccepted_message is None:  # it is not sent again
        return (holding.unaccepted, (), 0)
    left = max(0, holding.unaccepted_until - now)
    return (holding.unaccepted, holding.unaccepted_message.freeze(), left)


def thaw_unaccepted(part: TokenKeeper, frozen: Any) -> None:
    holding = part.member.holding
    holding.clear_unaccepted()
    holding.unaccepted_until = NEVER
    if frozen:
        holding.unaccepted, message, holding.unaccepted_until = frozen
        if message:
            receiver = frozen[0].receiver
            holding.unaccepted_message = part.inside.message(receiver, message)


KEEPER_VARIABLES = Variables(
    special("unaccepted", freeze_unaccepted, thaw_unaccepted),
    by_key("returning"),
    by_key("former"),
    unordered("pending"),
    by_key("receipts"),
    by_key("struck"),
)
