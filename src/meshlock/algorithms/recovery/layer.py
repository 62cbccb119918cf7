"""Recovery: what keeps k permits k when nodes crash, restart and fall silent.

**Problem.** The papers assume that no node fails. Here any node may stop at any moment and
come back with or without its memory, and any message may be late, lost or doubled. Then the
token may be gone, a client may be gone with its permits, and a part of the network may be
cut off and not know it.

**Idea.** One mechanism for all of these: a new *epoch*. Permits are only good under a
*lease*, which a quorum of the members renews, and a member that has promised a higher
epoch renews no lower one. Whoever sees no progress proposes an epoch; members promise it
and report, in one step, what they hold, and surrender the token if they have it. From a
quorum of reports the proposer writes the *ledger* of the new epoch: which grants are
kept. Everything else lapses: it counts as in use for one more lease, and is free then. The
ledger is sent to all, and the answers to it are the first lease of the new epoch. With the
old token surrendered the new one can be used at once; without it, one lease later.

**A layer.** Who gets the token next, and how it finds its way, is the business of *any* token
algorithm: for every epoch there is a fresh node of it inside. All safety is here: the token's
state (epoch, hop, free permits, ledger, count of grants) and its lease belong to the layer and go
with every message of the algorithm that carries its token; a client is let in only while they
allow it. The algorithm inside is responsible for service and order only.

**Assumptions.** The members are known, and a quorum of them can be reached for service
(not for safety). Clocks of different nodes may show different times; they run at rates that
differ by a bounded factor: who holds counts ``lease``, who waits counts ``wait``, and the
runner chooses them so that ``wait`` on any clock is never shorter than ``lease`` on any other.
The carrier of a token can bound the time it was under way. A client stops when it is told
that its grant is lost, or by its own clock when the lease it knows ends; a resource that
checks fences is safe even from clients that do not.

===============  ===========================================================================
here             meaning
===============  ===========================================================================
epoch            (counter, proposer, its boot), compared in that order
boot             a number that this node never had before, drawn at every start
promised         the highest epoch promised or answered; *durable*: see Keep
answered         the highest epoch for which this member has answered a renewal
adopted, first   the epoch whose ledger we have seen, and that ledger, as it was at first
quiet_until      after a start we neither vote, report nor propose before
heard            for each member, when we sent the latest renewal that it answered
hop_seen         (epoch, hop) of the latest token that we had in hand
unaccepted       a token that we sent, that nobody has acknowledged and that we have not reported
returning        grants that are over, or a part, and not yet known to be struck out of the ledger
holder           the last we know of where the token is, or will be
holder_hop       the token's hop of which we know that; only news of a later one counts
config           of the latest epoch adopted: members, permits (k), lease; *durable*
inner            the node inside; None: we take no part in the epoch adopted
stand_ins        at the founder: clients inside that stand for entries of the first ledger
pending          parts of grants that the node inside has back, but not with its token
withheld         what the node inside has said and must wait for a token that is good
receipts         who sent us the token, at which hop, and is to be told that it arrived
struck           what was struck out, and whom to tell
lent, borrowed   grants that were made here to clients of other nodes, or there to clients of ours,
                 and not yet known to have arrived
taken, missed    which of those to clients of ours were accepted, by number: each is, once; and
                 whether one came after the end of its lease
early            messages for a node inside that is not there yet
near, hellos     the neighbours, and what they told of their epoch
===============  ===========================================================================

**Where time is.** ``now`` is a whole number of whatever unit the runner likes, by this node's own
clock. A lease is a deadline, and :meth:`~Layer.wake` does what is due, when :mod:`.pace`
thinks it wise. A renewal carries the time of its sending and every answer brings it back, so an
answer means: *at that time or later I had promised nothing higher*. The lease runs from the
majority-th latest of these times; no rounds need to be numbered, and an answer cannot be
taken for a later one.

**The rules**, each marked where it acts. The numbers are those of docs/how-it-works/recovery.md.

1.  The token's state and lease belong to the layer and go with every message that carries the
    token of the algorithm inside.
2.  Adopting an epoch throws the node inside away and makes a new one. The founder, who proposed
    the epoch, starts with all permits; for each entry of the ledger a *stand-in* asks there and
    enters at once. Then the waiting clients ask anew, with the age they have.
3.  A grant of the first ledger ends by RETURN to the founder, whose stand-in leaves; a lapsing
    one when its time is over.
4.  The first ledger never changes: anybody may hand it on.
5.  HELLO goes over every link that forms, and on adoption. To the algorithm inside a link is up
    while both ends take part in the same epoch.
6.  In fixed networks messages for an epoch not adopted yet wait for it; where nodes may come and
    go (an *open* algorithm), also for a receiver that does not take part yet.
7.  Messages inside are for one epoch and one life of the receiver; of an open algorithm only the
    token is, for anybody may forward the rest. After a promise the node inside is not called again.
8.  Who is let in, a token, and what stands behind it to the same receiver, waits until the
    token is minted and its lease runs.
9.  Permits that come back are struck out if the *inner* node had the token before; else they are
    pending, and go along with the next permits that it sends, or with the token. Each part of a
    grant names its permits by number, so that twice is as good as once, in any order.
10. A token on a failed link arrives late, once, or never; the sender does not take it back.
11. A client that gave up when its entry could not be stopped any more is let in and leaves at once.
12. A node takes part in an epoch if the ledger names its boot, or does not name it at all and its
    disk knows that it never was in it.
13. Or, where links may change or nodes may come and go, if the ledger as it is now, from the
    holder, names no former life of it, and it is not its founder. In an open algorithm it tells all
    its life, and takes no token of a hop that it was told of.
14. Reasons to propose: see :mod:`.pace`.
15. If more is out than the new epoch has permits, it is a pause: the token stays with the founder,
    free permits are below 0 and grow with what comes back, and nobody asks inside. When they are
    not below 0 any more the founder proposes the next epoch. Where permits have names, an epoch may
    have others: what is out under a name that is no more stays out until it comes back, and counts;
    only names that there are and that are not out are granted.
16. A pool may be *made* by one node: its only member, with a token of no epoch, surrendered at once
    to the first one. No grant of it can exist before, so nothing is waited out. The others know no
    members until they hear of an epoch. Whoever does not know, or has forgotten, does not vote, nor
    does its report count, until it has adopted an epoch for which this life of it has reported:
    a quorum of others has told who the members are. Nobody becomes a member before.
17. An algorithm may *lend*: grant to a client of another node while its token stays. The entry is
    in the ledger before the message leaves, and the grant is good for what was left of the token's
    lease then, less the time under way; from then on its node renews it like any other. Each is
    accepted once, and none that was made before the holder told a node that comes late what is out.
    The receiver acknowledges it, or returns it, and the token does not leave before. If it does
    neither, or if its lease had ended when it came, that is a reason to propose.
18. All grants whose lease runs are reported, also those that the epoch goes on without. They are
    kept if the token is found and its ledger names them: whoever could free them has surrendered
    it. That there is one is a reason to propose.
19. Who adopts an epoch that has found no token, and has one, surrenders it late. If no other was
    made yet, it counts as found, but lets nobody in before the next epoch.
"""

from __future__ import annotations

from meshlock.algorithms.clients import ClientQueue
from meshlock.algorithms.interface import NIL, Conflict, Effect, Enter, Lost, Message
from meshlock.algorithms.recovery.messages import (
    Accepted,
    AskLedger,
    Confirm,
    Copy,
    Forgotten,
    Hello,
    Higher,
    Ledger,
    Offer,
    Promise,
    Propose,
    Received,
    Refuse,
    Renew,
    Return,
    Returned,
    Sent,
    Suggest,
    Voteless,
)
from meshlock.algorithms.recovery.pace import Pace
from meshlock.algorithms.recovery.quorum import Quorum
from meshlock.algorithms.recovery.records import (
    ANY_BOOT,
    GRANTS,
    MINTING,
    MOST_GRANTS,
    NEVER,
    NO_EPOCH,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
    Part,
    Parts,
    Seal,
    TokenState,
    fence_number,
    new_entry,
    new_fence,
    new_part,
    new_unaccepted,
    same,
)
from meshlock.algorithms.recovery.state import Grant, HeldToken, Proposal, Terms
from meshlock.algorithms.subclassing import mypyc_attr

MOST_EARLY = 1000
MOST_TAKEN = 64
"""Grants that are told apart from later ones at least, should they arrive in another order."""
AT_ONCE = 500
"""So many of those who wait ask anew in one step when an epoch begins."""


def layer(me: int, out: list[Effect], terms: Terms) -> Layer:
    """A node of this pool; with a mistake, if its algorithm is a mutant of recovery."""
    made = (terms.algorithm.layer or Layer)(me, out, terms)
    assert isinstance(made, Layer)
    return made


@mypyc_attr(allow_interpreted_subclasses=True)
class Layer(Quorum):
    def __init__(self, me: int, out: list[Effect], terms: Terms) -> None:
        super().__init__(me, out, terms)
        self.pace = Pace(self)

    # -- clients -------------------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.resume(client, want, priority, 0)

    def resume(self, client: int, want: int, priority: int, age: int) -> None:
        self.arrivals += 1
        self.waiting[client] = (want, priority, age, self.arrivals)
        self.line.put(client, priority, self.arrivals)
        if self.active():
            self.submit(client)

    def submit(self, client: int) -> None:
        if self.terms.algorithm.many_clients:
            if self.may_ask(client):
                self.ask_inside(client)
        else:
            self.serve_next()

    def may_ask(self, client: int) -> bool:
        """Rule 15; and what is more than there are permits can only wait for another epoch."""
        return not self.paused() and self.wants(client) <= self.config.permits

    def serve_next(self) -> None:
        """Where the algorithm takes one client at a time: the next of ours, if none is in."""
        if self.serving == NIL and len(self.waiting) > 0 and self.active():
            first = self.line.first()
            if self.may_ask(first):  # where the algorithm takes one at a time, all want as much
                self.serving = first
                self.ask_inside(first)

    def ask_inside(self, client: int) -> None:
        assert self.inner is not None
        want, priority, age, _ = self.waiting[client]
        self.inner.resume(client, want, priority, age)
        self.carry_out()

    def withdraw(self, client: int) -> bool:
        """A waiting client gives up; False if it does not wait (any more)."""
        if client not in self.waiting:
            return False
        want, asked = self.waiting[client][0], self.has_asked(client)
        self.stops_waiting(client)
        if self.active() and asked:
            assert self.inner is not None
            if self.inner.withdraw(client):
                self.carry_out()
                self.is_served(client)
            else:
                self.leaving[client] = want  # rule 11
        return True

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        if client not in self.waiting:
            return False
        if self.active() and self.has_asked(client):
            assert self.inner is not None
            changed = self.inner.change_priority(client, want, priority)
            self.carry_out()
            algorithm = self.terms.algorithm
            if not changed and algorithm.priorities and not algorithm.many_clients:
                return False
            # Else it was let in inside, or priorities count only here: if it has to ask anew.
        if client in self.waiting:  # else it was let in
            _, _, age, arrival = self.waiting[client]
            self.waiting[client] = (want, priority, age, arrival)
            self.line.change(client, priority)
            self.unasked.change(client, priority)
        return True

    def has_asked(self, client: int) -> bool:
        """The node inside, for a client that waits."""
        if not self.terms.algorithm.many_clients:
            return self.serving == client
        return self.may_ask(client) and client not in self.unasked.places

    def stops_waiting(self, client: int) -> None:
        del self.waiting[client]
        self.line.remove(client)
        self.unasked.remove(client)

    def release(self, client: int) -> None:
        for fence, grant in self.grants.items():
            if grant.client == client:
                del self.grants[fence]
                self.end(fence, grant, grant.permits, 0)
                return

    def release_some(self, client: int, permits: int) -> None:
        """The last of its slots."""
        for fence, grant in self.grants.items():
            if grant.client == client and permits < grant.permits:
                grant.permits -= permits
                grant.slots = grant.slots[: grant.permits]
                self.end(fence, grant, permits, grant.permits)
                return

    def end(self, fence: Fence, grant: Grant, permits: int, left: int) -> None:
        """A grant is over, or a part of it: the ledger must hear of it, unless its epoch is over
        too."""
        if not same(grant.epoch, self.adopted):
            return
        self.returning[fence] = left
        if not self.active():
            return  # whoever promised has reported it: the next ledger tells us what to do
        if same(fence.epoch, self.adopted):
            self.leave_inside(grant.client, fence, permits, left)
        else:
            self.return_kept(fence, left)

    # -- the node inside -----------------------------------------------------------------------

    def leave_inside(self, client: int, fence: Fence, permits: int, left: int = 0) -> None:
        inner = self.inner
        assert inner is not None
        had = inner.tokens() > 0
        if left > 0:
            inner.release_some(client, permits)
        else:
            inner.release(client)
        self.bring_back(had, (new_part(fence, left, permits),))
        self.carry_out()
        if left == 0:
            self.is_served(client)

    def is_served(self, client: int) -> None:
        if self.serving == client:
            self.serving = NIL
            self.serve_next()

    def bring_back(self, had: bool, returned: Parts) -> None:
        """Rule 9: permits have come to the node inside, which had the token before, or not."""
        if had and self.token is not None:
            for part in returned:
                self.strike(part)
        else:
            self.pending.update(returned)

    def strike(self, part: Part) -> None:
        token = self.token
        assert token is not None
        fence = part.fence
        owner, left = token.strike(part)
        self.is_struck(fence, left)
        if left == 0 and self.lent.pop(fence, None) is not None:
            self.count_lent()
        if owner not in (NIL, self.me):
            self.struck[owner] = (*self.struck.get(owner, ()), (fence, left))

    def is_struck(self, fence: Fence, left: int) -> None:
        """The ledger says that so many are out."""
        if self.returning.get(fence, NIL) >= left:
            del self.returning[fence]

    def absorb(self) -> None:
        """The token is here, and with it all permits that came ahead of it."""
        if len(self.pending) > 0:
            pending, self.pending = self.pending, set()
            for part in sorted(pending):
                self.strike(part)

    def carry_out(self) -> None:
        """Do what the node inside asked for, in order, as far as the token's state allows."""
        out = self.inside.out
        if len(out) == 0:
            return
        effects = out[:]
        out.clear()
        withheld = self.withheld
        left: list[tuple[int, Fence, int]] = []
        for effect in effects:
            if isinstance(effect, Message):
                if self.closed:
                    self.inside.departing(effect)
                carries = effect.tokens() == 1
                lends = effect.lends() > 0
                if not carries and not lends:
                    returned = self.take_pending(effect.permits())
                    boot = self.boot_of(effect.receiver) if not self.open else ANY_BOOT
                    effect.seal = Seal(self.adopted, boot, None, 0, returned)
                if len(withheld) > 0 or (carries and not self.may_give(effect)):
                    withheld.append(effect)
                elif carries:
                    self.give(effect)
                elif lends and not self.may_lend(effect):
                    withheld.append(effect)
                elif lends:
                    self.lend(effect)
                else:
                    self.out.append(effect)
            elif isinstance(effect, Enter) and self.is_awaited(effect.client):
                if self.is_lent(effect.client):
                    left += self.let_in_lent(effect.client)
                elif len(withheld) > 0 or not self.may_let_in(effect.client):
                    withheld.append(effect)
                else:
                    left += self.let_in(effect.client)
        if len(withheld) > 0:
            self.flush()
        for client, fence, want in left:
            self.leave_inside(client, fence, want)

    def flush(self) -> None:
        """Rule 8."""
        withheld, self.withheld = self.withheld, []
        blocked = False
        behind: set[int] = set()
        left: list[tuple[int, Fence, int]] = []
        for effect in withheld:
            if isinstance(effect, Enter):
                if not self.is_awaited(effect.client):
                    continue
                if not blocked and self.may_let_in(effect.client):
                    left += self.let_in(effect.client)
                    continue
                blocked = True
            elif isinstance(effect, Message):
                passes = effect.receiver not in behind
                lends = effect.lends() > 0
                if effect.tokens() == 0 and not lends and passes:
                    self.out.append(effect)
                    continue
                if lends and passes and not blocked and self.may_lend(effect):
                    self.lend(effect)
                    continue
                if effect.tokens() == 1 and passes and not blocked and self.may_give(effect):
                    self.give(effect)
                    continue
                blocked = blocked or effect.tokens() == 1 or lends
                behind.add(effect.receiver)
            self.withheld.append(effect)
        for client, fence, want in left:
            self.leave_inside(client, fence, want)

    def may_let_in(self, client: int) -> bool:
        token = self.token
        if token is None or not self.usable() or token.grants >= MOST_GRANTS:
            return False
        return self.wants(client) <= token.free

    def is_awaited(self, client: int) -> bool:
        """Not a stand-in, which has its entry already, and nobody whom an algorithm makes up."""
        return client in self.waiting or client in self.leaving

    def wants(self, client: int) -> int:
        return self.waiting[client][0] if client in self.waiting else self.leaving[client]

    def let_in(self, client: int) -> list[tuple[int, Fence, int]]:
        """The result: those that leave at once (rule 11)."""
        token = self.token
        assert token is not None
        want = self.wants(client)
        token.grants += 1
        token.free -= want
        fence = new_fence(token.epoch, token.grants)
        slots = token.first_slots(want, self.config) if self.terms.slots else ()
        label = self.label(client)
        token.ledger = (*token.ledger, new_entry(self.me, fence, want, slots, label))
        if self.leaving.pop(client, 0) > 0:
            self.returning[fence] = 0
            return [(client, fence, want)]
        self.stops_waiting(client)
        self.grants[fence] = Grant(client, want, token.epoch, token.until, slots, label)
        number, permits = fence_number(fence), self.config.permits
        self.out.append(Enter(client, number, token.until, permits, slots))
        return []

    def may_lend(self, message: Message) -> bool:
        token = self.token
        if token is None or not self.usable() or token.grants >= MOST_GRANTS:
            return False
        return message.lends() <= token.free

    def lend(self, message: Message) -> None:
        """Rule 17."""
        token = self.token
        assert token is not None
        want = message.lends()
        token.grants += 1
        token.free -= want
        fence = new_fence(token.epoch, token.grants)
        slots = token.first_slots(want, self.config) if self.terms.slots else ()
        entry = new_entry(message.receiver, fence, want, slots, self.label(NIL))
        token.ledger = (*token.ledger, entry)
        self.lent[fence] = self.now
        message.seal = Seal(self.adopted, ANY_BOOT, None, token.until - self.now, (), entry)
        self.out.append(message)

    def count_lent(self) -> None:
        """Rule 17: the token does not leave while a grant may be under way."""
        if self.inner is not None:
            waiting = [one for one in self.withheld if isinstance(one, Message) and one.lends() > 0]
            self.inner.unacknowledged(len(self.lent) + len(waiting))

    def is_lent_to_us(self, seal: Seal, lent: Entry) -> bool:
        """Rule 17: a grant whose lease runs, and that was not here before."""
        number, taken = lent.fence.number, self.taken
        if lent.node != self.me or lent.fence.epoch != self.adopted or self.token is not None:
            return False
        if number <= self.last_taken and (number <= taken[0] or number in taken):
            return False
        if self.arrives_until(seal) <= self.now:
            self.missed = True
            return False
        taken.append(number)
        self.last_taken = max(self.last_taken, number)
        if len(taken) > 2 * MOST_TAKEN:
            taken.sort()
            del taken[:-MOST_TAKEN]
        return True

    def is_lent(self, client: int) -> bool:
        """Is this step about a grant of what that client wants, and for nobody else yet?"""
        if self.arrived is None:
            return False
        entry, _ = self.arrived
        whole = new_part(entry.fence, 0, entry.permits)
        return whole in self.pending and entry.permits == self.wants(client)

    def let_in_lent(self, client: int) -> list[tuple[int, Fence, int]]:
        """As if the token were here."""
        assert self.arrived is not None
        entry, until = self.arrived
        fence, want = entry.fence, entry.permits
        self.pending.remove(new_part(fence, 0, want))
        if self.leaving.pop(client, 0) > 0:
            self.returning[fence] = 0
            return [(client, fence, want)]
        self.stops_waiting(client)
        label = self.label(client)
        self.grants[fence] = Grant(client, want, self.adopted, until, entry.slots, label)
        number, permits = fence_number(fence), self.config.permits
        self.out.append(Enter(client, number, until, permits, entry.slots))
        return []

    def may_give(self, message: Message) -> bool:
        token = self.token
        return token is not None and self.usable() and message.permits() == token.free

    def give(self, message: Message) -> None:
        """Rule 1."""
        token = self.token
        assert token is not None
        token.hop += 1
        token.ledger = self.handed(token.ledger)
        receiver = message.receiver
        boot = self.boot_of(receiver)
        self.token = None
        self.unaccepted = new_unaccepted(token.state(), receiver, boot)
        self.unaccepted_message = message
        self.unaccepted_until = token.until
        self.holder = receiver
        self.holder_hop = token.hop
        self.hear(receiver)
        message.seal = Seal(self.adopted, boot, self.unaccepted.state, token.until - self.now)
        self.out.append(message)

    def send_again(self) -> None:
        """Rule 10: a token of which we do not know that it arrived, the very same: it is accepted
        once. Where it cannot be lost, and must not overtake, ask."""
        sent, message = self.unaccepted, self.unaccepted_message
        if sent is None or message is None or sent.state.epoch != self.promised:
            return
        if self.fixed or sent.receiver in self.linked:
            self.send(Sent(sent.receiver, sent.state.epoch, sent.state.hop))
            return
        if self.unaccepted_until <= self.now:
            return
        again = self.inside.message(sent.receiver, message.freeze())
        left = self.unaccepted_until - self.now
        again.seal = Seal(self.adopted, sent.boot, sent.state, left)
        self.send(again)

    def boot_of(self, node: int) -> int:
        """The life of that participant that takes part in the epoch, as far as we know."""
        hello = self.hellos.get(node)
        if self.fixed and (hello is None or not same(hello[0], self.adopted)):
            boots = self.inside.boots  # who comes late has missed who came before
            return boots.get(node, ANY_BOOT) if boots.get(self.me) == self.boot else ANY_BOOT
        return hello[1] if hello is not None else ANY_BOOT

    def take_pending(self, permits: int) -> Parts:
        """Rule 9: pending parts of so many permits; which of them does not matter."""
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

    # -- messages inside -----------------------------------------------------------------------

    def receive_inner(self, message: Message, seal: Seal) -> None:
        if not self.is_addressed(seal):
            return
        ours = same(seal.epoch, self.adopted)
        if self.fixed and not ours and seal.epoch > self.adopted and seal.epoch >= self.promised:
            self.wait_for_epoch(message)
            return
        inner = self.inner
        if not ours and seal.epoch < self.adopted:
            self.inform(message.sender)
        if inner is None and self.open and seal.epoch == self.adopted == self.promised:
            self.wait_for_epoch(message)
            return
        if inner is None or not self.is_of_our_epoch(seal):
            return
        carries = message.tokens() == 1
        if not self.fixed and not carries and message.sender not in self.linked:
            return  # of a link that has failed since
        had = inner.tokens() > 0
        if carries and not self.accept(message.sender, seal):
            return
        if len(seal.returned) > 0:
            self.bring_back(had, seal.returned)
        lent = seal.lent
        if lent is not None:
            if not self.is_lent_to_us(seal, lent):
                return
            self.pending.add(new_part(lent.fence, 0, lent.permits))
            self.borrowed[lent.fence] = (message.sender, self.now, False)
            self.arrived = (lent, self.arrives_until(seal))
        if self.closed:
            sender = message.sender
            self.inside.arriving(message)
            inner.receive(message)
            message.sender, message.receiver = sender, self.me
        else:
            inner.receive(message)
        self.carry_out()
        self.arrived = None

    def is_of_our_epoch(self, seal: Seal) -> bool:
        """Rule 7."""
        return same(seal.epoch, self.adopted) and self.active()

    def is_addressed(self, seal: Seal) -> bool:
        return seal.boot == self.boot or (self.open and seal.boot == ANY_BOOT)

    def wait_for_epoch(self, message: Message) -> None:
        """Rule 6. What is good for a time cannot wait; nobody sends it who was not asked, in that
        epoch."""
        seal = message.seal
        if seal is not None and not seal.is_timed() and len(self.early) < MOST_EARLY:
            self.early.append(message)
        self.ask_ledger(message.sender)

    def accept(self, sender: int, seal: Seal) -> bool:
        """A token with its state: it is ours, unless it was before."""
        state = seal.state
        if state is None:
            return False
        if not self.is_new(state):
            if state.epoch == self.hop_seen[0]:
                self.send(Accepted(sender, state.epoch, state.hop))  # the first one was lost
            return False
        self.hop_seen = (state.epoch, state.hop)
        self.unaccepted = None
        self.unaccepted_message = None
        self.token = HeldToken(state, self.arrives_until(seal))
        if same(state.epoch, self.adopted):
            self.token.epoch = self.adopted
        self.holder = self.me
        self.holder_hop = state.hop
        self.hear(self.me)
        self.receipts[sender] = state.hop
        self.absorb()
        if len(self.returning) > 0:
            for fence in list(self.returning):
                self.is_struck(fence, self.token.left(fence))
        if (self.token.until - self.now) * 3 < 2 * self.terms.lease:
            self.extend()  # what members answered us before is good for the token as well
        return True

    def is_new(self, state: TokenState) -> bool:
        return (state.epoch, state.hop) > self.hop_seen

    def arrives_until(self, seal: Seal) -> int:
        return self.now + seal.left - seal.travelled

    def receive_sent(self, sent: Sent) -> None:
        if self.hop_seen >= (sent.epoch, sent.hop):
            self.send(Accepted(sent.sender, sent.epoch, sent.hop))

    def receive_accepted(self, accepted: Accepted) -> None:
        """The sender of a token never takes it back; it only learns that it has arrived."""
        sent = self.unaccepted
        if sent is not None and (sent.state.epoch, sent.state.hop) == (
            accepted.epoch,
            accepted.hop,
        ):
            self.unaccepted = None
            self.unaccepted_message = None

    # -- a new epoch ---------------------------------------------------------------------------

    def adopt(self, first: FirstLedger, holder: int) -> None:
        """Rules 2 and 4."""
        self.look_back(first)
        late = self.report() if self.is_late(first) else None
        self.config = first.config
        if self.forgot and self.reported(first):
            self.forgot = False  # rule 16
        if first.epoch > self.promised:
            self.rise(first.epoch)
        else:
            self.keep()
        if late is not None:
            self.send(Promise(first.epoch.proposer, first.epoch, late))
        self.adopted = self.promised if first.epoch == self.promised else first.epoch
        self.first = first
        self.holder = holder
        self.holder_hop = MINTING
        self.token = None
        self.unaccepted = None
        self.unaccepted_message = None
        self.heard.clear()
        self.returning = {}
        self.former = {}
        self.inner = None
        self.serving = NIL
        self.leaving = {}
        self.stand_ins = {}
        self.lapsing = set()
        self.pending = set()
        self.withheld = []
        self.receipts = {}
        self.struck = {}
        self.taken = [0]
        self.last_taken = 0
        self.missed = False
        self.lent = {}
        self.borrowed = {}
        self.linked = set()
        if self.open:
            self.hellos = {one: told for one, told in self.hellos.items() if told[0] >= first.epoch}
        self.settle(first.kept)
        if self.may_take_part(first):
            self.take_part(first, first.epoch.proposer, MINTING)
        else:
            self.early = []
            self.say_hello()
            for client in self.waiting:
                self.keep_age(client)
        if holder != self.me:
            self.repeat()

    def is_late(self, first: FirstLedger) -> bool:
        """Rule 19: have we a token that nobody has reported to that epoch, which has none?"""
        return self.token is not None and first.before == NO_EPOCH != self.token.epoch

    def look_back(self, first: FirstLedger) -> None:
        """Who waits takes its age along, in grants of all nodes if the old token was found."""
        for client in self.unasked.clients():
            self.keep_age(client)
        self.unasked = ClientQueue(self.terms.units)
        self.outgoing = self.inner
        self.outgoing_grants = 0
        if self.first is not None and first.before == self.adopted:
            self.outgoing_grants = self.first.stand_ins + first.grants

    def keep_age(self, client: int) -> None:
        if self.outgoing is not None:
            want, priority, age, arrival = self.waiting[client]
            age = max(age, self.outgoing.waited(client, self.outgoing_grants))
            self.waiting[client] = (want, priority, age, arrival)

    def settle(self, entries: tuple[Entry, ...]) -> None:
        """Go on with what the ledger says is ours; what we do not hold, or not any more, is
        over, or will be."""
        missing: dict[Fence, int] = {}
        for entry in entries:
            if entry.node == self.me and not entry.lapsing:
                grant = self.grants.get(entry.fence)
                if grant is not None and grant.until > self.now:
                    grant.epoch = self.adopted
                    if grant.permits < entry.permits:
                        self.returning[entry.fence] = grant.permits
                else:
                    missing[entry.fence] = 0
        self.disown(missing)

    def disown(self, missing: dict[Fence, int]) -> None:
        """Entries of ours that we do not hold; commands of a former life may still run."""
        if self.quiet():
            self.former.update(missing)
        else:
            self.returning.update(missing)

    def reported(self, first: FirstLedger) -> bool:
        """Did we, in this life?"""
        return any(one.node == self.me and one.boot == self.boot for one in first.participants)

    def may_take_part(self, first: FirstLedger) -> bool:
        """Rule 12."""
        for participant in first.participants:
            if participant.node == self.me:
                return participant.boot == self.boot
        return not self.closed and NO_EPOCH < self.remembered < first.epoch

    def is_new_to(self, copy: Copy) -> bool:
        """Rule 13."""
        if self.closed or copy.ledger is None or copy.first.epoch.proposer == self.me:
            return False
        epoch = copy.first.epoch
        return all(entry.node != self.me or entry.fence.epoch != epoch for entry in copy.ledger)

    def take_part(self, first: FirstLedger, holder: int, hop: int, number: int = NIL) -> None:
        self.inner = self.inside.node(first, holder, hop, number)
        self.chooses = self.inner.choices() > 1
        proposal = self.proposal
        if proposal is not None and proposal.epoch == first.epoch:
            for entry in (*proposal.kept, *proposal.lapsing):
                self.let_stand_in(entry)
        self.say_hello()
        self.ask_anew()
        early, self.early = self.early, []
        for message in early:
            if message.seal is not None and message.seal.epoch == self.adopted:
                self.receive_inner(message, message.seal)

    def ask_anew(self) -> None:
        self.unasked = self.line.copy()
        self.ask_more()

    def ask_more(self) -> None:
        """Whoever waited through a change of epoch; of a crowd the first, then the next."""
        for _ in range(min(AT_ONCE, len(self.unasked))):
            if len(self.unasked) > 0:
                client = self.unasked.take()
                self.keep_age(client)
                self.submit(client)
        if len(self.unasked) == 0:
            self.outgoing = None

    def let_stand_in(self, entry: Entry) -> None:
        assert self.inner is not None
        client = NIL - 1 - len(self.stand_ins)
        self.stand_ins[entry.fence] = (client, entry.permits)
        if entry.lapsing:
            self.lapsing.add(entry.fence)
        if self.paused():
            return
        if not self.terms.algorithm.many_clients:
            self.serving = client
        self.inner.request(client, entry.permits, 0)
        self.carry_out()

    # -- the new token -------------------------------------------------------------------------

    def mint(self) -> None:
        proposal = self.proposal
        if proposal is None or not proposal.confirmed or proposal.until <= self.now:
            return
        if proposal.usable is None and not self.waited_out(proposal):
            return
        self.proposal = None
        ledger = self.minted(proposal.kept + proposal.lapsing)
        free = self.config.permits - sum([entry.permits for entry in ledger])
        self.hop_seen = (proposal.epoch, 0)
        self.holder_hop = 0
        until = NEVER if proposal.late else proposal.until  # those inside do not know what is out
        self.token = HeldToken(TokenState(proposal.epoch, 0, free, ledger, 0), until)
        self.lapsed_at = proposal.closed_at + self.terms.wait
        self.absorb()
        self.let_lapse()
        self.flush()

    def waited_out(self, proposal: Proposal) -> bool:
        """Is every lease over that a member answered before it promised?"""
        return self.now >= proposal.closed_at + self.terms.wait

    def let_lapse(self) -> None:
        """Rule 3."""
        if len(self.lapsing) > 0 and self.token_was_made() and self.now >= self.lapsed_at:
            for fence in sorted(self.lapsing):
                self.leave_stand_in(fence)

    def token_was_made(self) -> bool:
        return self.active() and self.proposal is None

    # -- grants of the first ledger ------------------------------------------------------------

    def return_kept(self, fence: Fence, left: int) -> None:
        """Rule 3."""
        founder = self.adopted.proposer
        if founder == self.me:
            self.leave_stand_in(fence, left)
        else:
            self.send(Return(founder, self.adopted, fence, left, self.me, GRANTS))

    def leave_stand_in(self, fence: Fence, left: int = 0) -> None:
        """What is left goes by what the owner says, so that twice is as good as once."""
        client, permits = self.stand_ins.get(fence, (NIL, 0))
        if permits <= left or not self.active():
            return
        if left > 0:
            self.stand_ins[fence] = (client, left)
        else:
            del self.stand_ins[fence]
            self.lapsing.discard(fence)
        if self.paused():
            self.bring_back(True, (new_part(fence, left, permits - left),))
        else:
            self.leave_inside(client, fence, permits - left, left)

    def receive_return(self, message: Return) -> None:
        if self.adopted != self.promised or message.epoch > self.adopted:
            return
        fence, left = message.fence, message.left
        if message.epoch < self.adopted:
            self.inform(message.node)
            return
        if self.stand_ins.get(fence, (NIL, 0))[1] > left and fence not in self.lapsing:
            self.leave_stand_in(fence, left)
        elif self.token is not None:
            if self.token.left(fence) <= left:
                self.send(Returned(message.node, message.epoch, ((fence, left),)))
        elif message.node != self.me and self.holder_hop > message.hop:
            hop = self.holder_hop
            for node in self.onward():
                self.send(Return(node, message.epoch, fence, left, message.node, hop))

    def receive_returned(self, message: Returned) -> None:
        if message.epoch == self.adopted:
            for fence, left in message.fences:
                self.is_struck(fence, left)

    def acknowledge(self) -> None:
        """What arrived and what was struck out: nobody waits for that, so it goes together."""
        for sender, hop in sorted(self.receipts.items()):
            self.send(Accepted(sender, self.adopted, hop))
        for owner, fences in sorted(self.struck.items()):
            self.send(Returned(owner, self.adopted, fences))
        self.receipts = {}
        self.struck = {}
        if len(self.borrowed) > 0:
            self.acknowledge_grants(False)

    def acknowledge_grants(self, again: bool) -> None:
        """Those that are still here, at once and ``again`` for a lease, for it may be lost; for the
        others, what is returned says as much."""
        received: dict[int, tuple[tuple[Fence, str], ...]] = {}
        for fence, (sender, since, told) in sorted(self.borrowed.items()):
            grant = self.grants.get(fence)
            if grant is None or self.now - since >= self.terms.lease:
                del self.borrowed[fence]
            elif again or not told:
                ours = new_entry(self.me, fence, grant.permits, grant.slots, grant.label)
                label = self.handed((ours,))[0].label
                received[sender] = (*received.get(sender, ()), (fence, label))
                self.borrowed[fence] = (sender, since, True)
        for sender, fences in received.items():
            self.send(Received(sender, self.adopted, fences))

    def receive_received(self, message: Received) -> None:
        if self.token is not None and message.epoch == self.adopted:
            for fence, label in message.received:
                if self.token.name(fence, message.sender, label):
                    self.lent.pop(fence, None)
            self.count_lent()
            self.ask_again()

    # -- nodes that come and go -----------------------------------------------------------------

    def present(self, hop: int) -> None:
        """The first ledger does not name this life: so that whoever sends us the token knows it.
        And whatever was sent to a former life, of tokens only later ones than this can be ours."""
        if self.open:
            self.hop_seen = (self.adopted, hop)
            for node in self.terms.nodes:
                if node != self.me and node not in self.unreachable:
                    self.send(Hello(node, self.adopted, self.boot, True))

    def learn(self, holder: int, epoch: Epoch, hop: int) -> None:
        super().learn(holder, epoch, hop)
        if epoch == self.adopted and hop == self.holder_hop:
            self.tell_holder()

    def tell_holder(self) -> None:
        """An algorithm that is open may go by what renewals say."""
        if self.open and self.active() and self.holder_hop > MINTING:
            assert self.inner is not None
            self.inner.holder_is(self.holder, self.holder_hop)

    def forget(self, node: int) -> bool:
        if not self.open or not self.active():
            return False
        assert self.inner is not None
        asked = self.inner.forget(node)
        self.carry_out()
        return asked

    def receive_forgotten(self, message: Forgotten) -> None:
        """We need not have noticed that we were gone."""
        if message.epoch == self.adopted:
            self.ask_again()

    def ask_again(self) -> None:
        if self.open and self.active():
            assert self.inner is not None
            self.inner.ask_again()
            self.carry_out()

    # -- links ---------------------------------------------------------------------------------

    def link_up(self, peer: int) -> None:
        self.near.add(peer)
        if self.fixed and len(self.members) == 0:
            self.ask_ledger(peer)
        elif not self.fixed:
            self.send(Hello(peer, self.adopted, self.boot, self.inner is not None))

    def link_down(self, peer: int) -> None:
        self.near.discard(peer)
        if not self.fixed:
            self.hellos.pop(peer, None)
            self.unlink(peer)

    def say_hello(self) -> None:
        """Rule 5."""
        if not self.fixed:
            for peer in sorted(self.near):
                self.send(Hello(peer, self.adopted, self.boot, self.inner is not None))
            for peer in sorted(self.near):
                self.link_inside(peer)

    def receive_hello(self, hello: Hello) -> None:
        peer = hello.sender
        told = (hello.epoch, hello.boot, hello.inside)
        if self.open and hello.epoch >= self.adopted:
            self.hellos[peer] = told
        if self.fixed or peer not in self.near or self.hellos.get(peer) == told:
            return
        self.unlink(peer)
        self.hellos[peer] = told
        if hello.epoch > self.adopted and hello.epoch >= self.promised:
            self.ask_ledger(peer)
        self.link_inside(peer)

    def link_inside(self, peer: int) -> None:
        hello = self.hellos.get(peer)
        if hello is None or self.inner is None or peer in self.linked:
            return
        epoch, _, inside = hello
        if self.active() and inside and epoch == self.adopted:
            self.linked.add(peer)
            self.inner.link_up(peer)
            self.carry_out()

    def unlink(self, peer: int) -> None:
        if peer not in self.linked:
            return
        self.linked.discard(peer)
        if self.active() and self.inner is not None:
            lost = [one for one in self.withheld if is_to(one, peer)]
            self.withheld = [one for one in self.withheld if not is_to(one, peer)]
            for message in lost:  # rule 8: it never left
                if isinstance(message, Message) and message.tokens() + message.permits() > 0:
                    if message.seal is not None:
                        self.pending.update(message.seal.returned)
                        message.seal = None
                    self.inner.undelivered(message)
            self.inner.link_down(peer)
            self.carry_out()

    # -- what we missed ------------------------------------------------------------------------

    def ask_ledger(self, node: int, where: bool = False) -> None:
        """``where``: who takes part, and is answered by the first ledger alone, wants to hear of
        the holder all the same."""
        self.send(AskLedger(node, self.me, self.boot, MINTING if where else GRANTS))

    def receive_ask(self, ask: AskLedger) -> None:
        """Anybody knows the first ledger, only the holder what is out now."""
        if self.died(ask.node, ask.boot):
            self.heard_at = min(self.heard_at, self.now - self.terms.lease // 2)
        first, token = self.first, self.token
        if self.adopted != self.promised or first is None or ask.node == self.me:
            return
        if token is not None and not NEVER < token.until <= self.now:
            number = self.inner.number_of(ask.node) if self.inner is not None else NIL
            hop, grants = token.hop, token.grants
            self.send(Copy(ask.node, first, token.ledger, hop, grants, max(0, number), ask.boot))
            return
        self.inform(ask.node)
        named = any(one.node == ask.node and one.boot == ask.boot for one in first.participants)
        wanted = ask.hop >= MINTING or not (named or self.closed)
        if wanted and self.holder_hop > ask.hop:
            for node in self.onward():
                self.send(AskLedger(node, ask.node, ask.boot, self.holder_hop))

    def inform(self, node: int) -> None:
        """That node speaks of an epoch that is over (rule 4)."""
        if self.adopted == self.promised and self.first is not None:
            self.send(Copy(node, self.first, None, GRANTS, 0, 0, 0))

    def died(self, node: int, boot: int) -> bool:
        """Did whom we took for the holder, or the proposer, restart? Then it is neither."""
        if self.promised > self.adopted:
            return node == self.promised.proposer and boot != self.promised.boot
        return node == self.holder and (self.holder_hop > MINTING or boot != self.adopted.boot)

    def receive_copy(self, copy: Copy) -> None:
        """Like a LEDGER, but it renews nothing: nobody waits for our answer."""
        first = copy.first
        if first.epoch < self.promised or (copy.ledger is not None and copy.boot != self.boot):
            return
        if not self.fits(first.config):
            self.out.append(Conflict(copy.sender, first.config))
            return
        if copy.ledger is not None:
            self.hear(copy.sender)
        if first.epoch > self.adopted:
            self.adopt(first, first.epoch.proposer)
        if self.inner is None and first.epoch == self.adopted and self.is_new_to(copy):
            self.present(copy.hop)
            self.taken = [copy.grants]
            self.last_taken = copy.grants
            self.take_part(first, copy.sender, copy.hop, copy.number)
        if copy.hop > self.holder_hop:
            self.holder = copy.sender
            self.holder_hop = copy.hop
            self.tell_holder()

    def onward(self) -> list[int]:
        """To the holder, as far as we know; never to several, for each might send it back here."""
        if self.holder not in (NIL, self.me) and self.holder not in self.unreachable:
            return [self.holder]
        return []

    def repeat(self) -> None:
        """Messages get lost: say again what nobody has acted upon."""
        if self.adopted == self.promised:
            for fence, left in sorted(self.returning.items()):
                if self.pace.is_young(fence):
                    continue  # its release is hardly there
                if fence.epoch != self.adopted:
                    self.return_kept(fence, left)
                for node in self.onward():
                    if fence in self.returning:
                        hop = self.holder_hop
                        self.send(Return(node, self.adopted, fence, left, self.me, hop))
        self.send_again()
        self.acknowledge_grants(True)
        self.collect()
        # members hear the holder renew; but that they restarted, others learn by the question
        missed = self.adopted < self.promised or self.inner is None
        asked = self.informants()
        if missed and (not self.member or self.adopted == NO_EPOCH < self.promised):
            for node in asked:
                self.ask_ledger(node)
        elif not self.member and len(self.waiting) > 0 and len(asked) > 0:
            self.ask_ledger(asked[self.me % len(asked)])

    def ask_where(self, stalls: bool) -> None:
        """What we asked for may be lost, or there may be no token; and who is no member hears of
        the holder by asking."""
        asked, waits = self.informants(), self.open and len(self.waiting) > 0
        if (stalls or waits) and not self.member and len(asked) > 0:
            self.ask_ledger(asked[self.me % len(asked)], True)

    # -- time ----------------------------------------------------------------------------------

    def wake(self, chance: float) -> None:
        self.pace.wake(chance)

    def wake_at(self) -> int:
        return self.pace.wake_at()

    def expire(self) -> None:
        """End what is over, and acknowledge what came."""
        self.acknowledge()
        for fence, grant in sorted(self.grants.items()):
            if grant.until <= self.now:
                del self.grants[fence]
                self.out.append(Lost(grant.client, fence_number(fence)))
                self.end(fence, grant, grant.permits, 0)
        proposal = self.proposal
        if proposal is not None and proposal.closed:
            end = proposal.until if proposal.confirmed else proposal.told_at + self.terms.lease
            if end <= self.now:
                self.proposal = None
            else:
                self.mint()
        if len(self.former) > 0 and not self.quiet():
            self.returning.update(self.former)
            self.former = {}
            self.repeat()
        self.let_lapse()
        if self.active():
            self.ask_more()

    # -- messages ------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        if message.seal is not None:
            self.receive_inner(message, message.seal)
        elif isinstance(message, Confirm):
            self.receive_confirm(message)
        elif isinstance(message, Renew):
            self.receive_renew(message)
        elif isinstance(message, Accepted):
            self.receive_accepted(message)
        elif isinstance(message, Returned):
            self.receive_returned(message)
        elif isinstance(message, Received):
            self.receive_received(message)
        elif isinstance(message, Sent):
            self.receive_sent(message)
        elif isinstance(message, Forgotten):
            self.receive_forgotten(message)
        elif isinstance(message, Return):
            self.receive_return(message)
        elif isinstance(message, Hello):
            self.receive_hello(message)
        elif isinstance(message, Propose):
            self.receive_propose(message)
        elif isinstance(message, Promise):
            self.receive_promise(message)
        elif isinstance(message, AskLedger):
            self.receive_ask(message)
        elif isinstance(message, Copy):
            self.receive_copy(message)
        elif isinstance(message, Suggest):
            self.receive_suggest(message)
        elif isinstance(message, Voteless):
            self.receive_voteless(message)
        elif isinstance(message, Offer):
            self.receive_offer(message)
        elif isinstance(message, Refuse):
            self.receive_refuse(message)
        elif isinstance(message, Higher):
            self.receive_higher(message)
        elif isinstance(message, Ledger):
            self.receive_ledger(message)

    # -- what observers may ask ----------------------------------------------------------------

    def choices(self) -> int:
        return self.inner.choices() if self.inner is not None else 1

    def choose(self, choice: int) -> None:
        if self.inner is not None and choice < self.inner.choices():
            self.inner.choose(choice)

    def tokens(self) -> int:
        return 1 if self.usable() else 0

    def free_permits(self) -> int:
        return max(0, self.token.free) if self.token is not None and self.usable() else 0

    def known_priority(self) -> int | None:
        return self.inner.known_priority() if self.inner is not None else None

    def altitude(self) -> tuple[int, ...] | None:
        return self.inner.altitude() if self.inner is not None else None

    def waited(self, client: int, grants: int = 0) -> int:
        age = self.waiting[client][2] if client in self.waiting else 0
        return max(age, self.inner.waited(client, grants) if self.inner is not None else 0)

    def disagrees(self) -> bool:
        """Is the token here, but not for the node inside, or with other permits?"""
        inner, token = self.inner, self.token
        if token is None or inner is None or not self.usable() or self.paused():
            return False
        if len(self.withheld) > 0 or inner.tokens() == 0:
            return True
        return inner.free_permits() != token.free


def is_to(effect: Effect, peer: int) -> bool:
    return isinstance(effect, Message) and effect.receiver == peer
