"""Recovery: what keeps k permits k when nodes crash, restart and fall silent.

**Problem.** The papers assume that no node fails. Here any node may stop at any moment and
come back with or without its memory, and any message may be late, lost or doubled. Then the
token may be gone, a client may be gone with its permits, and a part of the network may be
cut off and not know it.

**Idea.** One mechanism for all of these: a new *epoch*. Permits are only good under a
*lease*, which a majority of the members renews, and a member that has promised a higher
epoch renews no lower one. Whoever sees no progress proposes an epoch; members promise it
and report, in one step, what they hold, and hand over the token if they have it. From a
majority of reports the proposer writes the *ledger* of the new epoch: which grants are
kept. Everything else lapses: it counts as in use for one more lease, and is free then. The
ledger is sent to all, and the answers to it are the first lease of the new epoch. With the
old token in hand the new one can be used at once; without it, one lease later.

**Assumptions.** The members are known, and a majority of them can be reached for service
(not for safety). Clocks of different nodes may show different times; they run at rates that
differ by a bounded factor: who holds counts ``lease``, who waits counts ``wait``, and the
runner chooses them so that ``wait`` on any clock is never shorter than ``lease`` on any other.
The carrier of a TOKEN can bound the time it was under way. A client stops when it is told
that its grant is lost, or by its own clock when the lease it knows ends; a resource that
checks fences is safe even from clients that do not.

===============  ===========================================================================
here             meaning
===============  ===========================================================================
epoch            (counter, proposer, its boot), compared in that order
boot             a number that this node never had before, drawn at every start
promised         the highest epoch promised or answered; *durable*: see Keep
answered         the highest epoch for which this member has answered a renewal
adopted          the epoch whose ledger we have seen; our grants and our token are of this one
silent_until     after a start we neither vote, report nor propose before
heard            for each member, when we sent the latest renewal that it answered
hop_seen         (epoch, hop) of the latest TOKEN that we had in hand
doubt            a TOKEN that we sent and that nobody has acknowledged yet, and to which boot
releasing        grants that are over and whose permits the holder must hear of
guess            the last we know of where the token is, or will be: the way to the holder
guess_hop        the token's hop of which we know that; only news of a later one counts
settled          in this life we saw a ledger that names all that our former lives were granted
config           the members of the latest epoch adopted, the permits and the lease; *durable*
gone             nodes that cannot be reached, as the runner knows: none gets the token
===============  ===========================================================================

**Where time is.** Handlers take ``now``, a whole number of whatever unit the runner likes, by
this node's own clock. Nothing else here knows time: a lease is a deadline, and
:meth:`~RecoveryNode.wake` does what is due. A renewal carries the time of its sending and
every answer brings it back, so an answer means: *at that time or later I had promised
nothing higher*. The lease runs from the majority-th latest of these times; no rounds need
to be numbered, and an answer cannot be taken for a later one.

**What the runner does.** It carries messages, writes what a Keep says to disk before anything that
stands behind it in ``out`` leaves, and says in ``gone`` whom it cannot reach. When to wake, renew,
repeat, propose and close is the business of :class:`~meshlock.algorithms.recovery.pace.Pace`.

**Who gets the token next** is said in :mod:`meshlock.algorithms.recovery.order`: priorities, with
ageing. A node lines up with the best of its clients; its REQUEST goes along ``guess`` to the
holder, each step to one that had the token later than the one before, so never in a circle. The
queue travels with the token. A request withdrawn is a REQUEST for nothing; should that be
lost, the token comes here once in vain.

**A TOKEN in doubt** is sent again, the very same, until it is acknowledged or an epoch decides. Its
receiver takes it once: by its hop.

**Who missed an epoch** (it restarted, or was cut off) hears a renewal of the holder, and asks it:
WHICH. The COPY of the ledger that it gets lets it adopt the epoch like a LEDGER, but is no
renewal. The copy is taken after the question, so it names all that former lives of the asker
were granted in this epoch, for it to give back when its silence ends; a LEDGER that comes late
may not, hence ``settled``. An old COPY is harmless: it is for one boot, and until this has
adopted the epoch nobody but that node could have changed an entry of its own.

**Members** come and go one at a time, by a change of epoch: see :meth:`RecoveryNode.may_change`.

**What is simpler here than in the sketch we started from.** The promise is on disk, so a
member that restarts with its disk refuses what it refused before. With the disk gone it is
still safe for permits: it is silent for ``wait`` first, and by then no lease stands that
rested on what it forgot. For the order of fences the runner passes the wall clock as a
``floor`` of the counter where there is no disk. Three rules seem to matter only if a disk is
lost (campaigns/recovery_check.py undoes each and finds nothing wrong while disks survive,
within its bounds): a lease that ran out is not renewed, answering is a promise, and a
ledger is confirmed by the boots that promised it. They are kept, for each is one
comparison. Numbered rounds are gone (see above).
"""

from __future__ import annotations

from meshlock.algorithms.interface import NIL, Message
from meshlock.algorithms.recovery.messages import (
    GRANTS,
    MINTING,
    MOST_GRANTS,
    NEVER,
    NO_EPOCH,
    Asked,
    Change,
    Config,
    Copy,
    Entry,
    Epoch,
    Fence,
    Got,
    Granted,
    Higher,
    Keep,
    Ledger,
    Lost,
    Misfit,
    Press,
    Promise,
    Propose,
    Refuse,
    Release,
    Released,
    Renew,
    Report,
    Request,
    Still,
    Token,
    Which,
)
from meshlock.algorithms.recovery.order import best, rank
from meshlock.algorithms.recovery.reports import Reading
from meshlock.algorithms.recovery.state import (
    Grant,
    HeldToken,
    Pool,
    Proposal,
    majority,
)

__all__ = ["Grant", "HeldToken", "Pool", "Proposal", "RecoveryNode"]


class RecoveryNode(Reading):
    # -- a life begins -------------------------------------------------------------------------

    def start(self, now: int, boot: int, promised: Epoch, config: Config | None = None) -> None:
        """At birth and after every crash; the latest Keep, if the disk remembers any."""
        self.boot = boot
        self.promised = promised
        if config is not None and config[0] > NO_EPOCH:
            self.config = (config[0], config[1], self.pool.permits, self.pool.lease)
        self.silent_until = now + self.silence()
        self.hear(NIL, now)

    def hear(self, node: int, now: int) -> None:
        """Of somebody who has the token, or is about to make one."""
        self.heard_of = node
        self.heard_at = now

    def silence(self) -> int:
        """So long must no word of ours count: what we knew of leases is gone."""
        return self.pool.wait

    def silent(self, now: int) -> bool:
        return now < self.silent_until

    def votes(self, now: int) -> bool:
        return self.member and not self.silent(now)

    # -- clients -------------------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int, now: int) -> None:
        before = self.asked()
        self.waiting[client] = (want, priority, self.served)
        self.ask_anew(before, now)

    def withdraw(self, client: int, now: int) -> bool:
        """A waiting client gives up; False if it does not wait (any more)."""
        if client not in self.waiting:
            return False
        before = self.asked()
        del self.waiting[client]
        self.ask_anew(before, now)
        return True

    def release(self, client: int, now: int) -> None:
        for fence, grant in list(self.grants.items()):
            if grant.client == client:
                del self.grants[fence]
                self.give_back(fence, grant.h, grant.epoch, now)

    def give_back(self, fence: Fence, h: int, epoch: Epoch, now: int) -> None:
        """A grant is over: the holder must hear of it, unless its epoch is over too."""
        if epoch == self.adopted:
            self.releasing[fence] = h
            self.return_permits(now)

    def asked(self) -> Asked:
        """What we line up with: the best of our clients. The holder fills in since when."""
        if len(self.waiting) == 0:
            return (self.me, self.boot, 0, 0, 0, self.asks)
        want, priority, _ = self.waiting[best(self.waiting)]
        return (self.me, self.boot, want, priority, 0, self.asks)

    def ask_anew(self, before: Asked, now: int) -> None:
        if self.asked() != before:
            self.asks += 1
            self.ask(now)

    def ask(self, now: int) -> None:
        """Our request, on its way to the holder."""
        if self.token is not None and self.token.until > now:
            self.line_up(self.asked())
            self.decide(now)
        else:
            for node in self.way():
                self.send(Request(node, self.adopted, self.asked(), self.guess_hop))

    def way(self) -> list[int]:
        """To the holder, as far as we know. A member that does not know it will hear it renew, or
        propose; others ask the members."""
        known = self.onward()
        if self.member or len(known) > 0:
            return known
        return [member for member in self.members if member not in self.gone]

    def onward(self) -> list[int]:
        """The same for what others say: never to several, for each might send it back here."""
        if self.guess not in (NIL, self.me) and self.guess not in self.gone:
            return [self.guess]
        return []

    def return_permits(self, now: int) -> None:
        if self.token is not None and self.token.epoch == self.adopted:
            for fence, h in self.releasing.items():
                self.token.give_back(fence, h)
            self.releasing.clear()
            self.decide(now)
        elif len(self.releasing) > 0:
            for node in self.way():
                for fence, h in self.releasing.items():
                    self.send(Release(node, self.adopted, fence, h, self.me))

    def repeat(self, now: int) -> None:
        """Messages get lost: say again what nobody has acted upon."""
        if len(self.waiting) > 0:
            self.ask(now)
        self.return_permits(now)
        self.send_again(now)
        self.call(now)
        # members hear the holder renew; but that they restarted, others learn by the question
        missed = self.adopted < self.promised or not self.settled
        if missed and (not self.member or self.adopted == NO_EPOCH < self.promised):
            for member in self.members:
                if member != self.me and member not in self.gone:
                    self.send(Which(member, self.me, self.boot))

    # -- 1. leases -----------------------------------------------------------------------------

    def renew(self, now: int) -> None:
        """Ask all members to let our grants, our token or our proposal live on."""
        if self.promised != self.adopted or not self.has_to_renew(now):
            return
        if self.votes(now):
            self.answered = max(self.answered, self.adopted)
        hop = GRANTS
        if self.token is not None:
            hop = self.token.hop
        elif self.proposal is not None:
            hop = MINTING
        for member in self.members:
            if member != self.me:
                self.send(Renew(member, self.adopted, self.boot, hop, now))
        self.extend(now)

    def has_to_renew(self, now: int) -> bool:
        if self.token is not None and self.renewable(self.token.until, now):
            return True
        proposal = self.proposal
        if proposal is not None and proposal.confirmed and self.renewable(proposal.until, now):
            return True
        return any(
            grant.epoch == self.adopted and self.renewable(grant.until, now)
            for grant in self.grants.values()
        )

    def renewable(self, until: int, now: int) -> bool:
        """A lease that ran out is dead."""
        return now < until

    def receive_renew(self, renew: Renew, now: int) -> None:
        if renew.epoch < self.promised:
            return
        if self.votes(now):
            self.answer(renew.epoch)
            self.send(Still(renew.sender, renew.epoch, renew.boot, renew.sent, self.boot))
        if renew.hop != GRANTS:
            self.hear(renew.sender, now)
            self.learn(renew.sender, renew.epoch, renew.hop)

    def learn(self, holder: int, epoch: Epoch, hop: int) -> None:
        """Somebody has the token, or will have it: ask it what we missed."""
        if epoch > self.adopted or not self.settled:
            self.send(Which(holder, self.me, self.boot))
        if epoch == self.adopted and hop > self.guess_hop:
            self.guess = holder
            self.guess_hop = hop

    def answer(self, epoch: Epoch) -> None:
        """Answering is a promise."""
        self.rise(epoch)
        self.answered = max(self.answered, epoch)

    def receive_still(self, still: Still, now: int) -> None:
        if still.epoch != self.adopted or still.epoch != self.promised or still.boot != self.boot:
            return
        proposal = self.proposal
        if proposal is not None and not proposal.confirmed and not self.confirms(still, proposal):
            return
        sent = self.counted_from(still.sent, now)
        self.heard[still.sender] = max(sent, self.heard.get(still.sender, sent))
        self.extend(now)

    def counted_from(self, sent: int, now: int) -> int:
        """The lease runs from the sending of what was answered."""
        return sent

    def leased_until(self, now: int) -> int:
        """The end of the lease that the answers so far give us, for our epoch."""
        stamps = [self.heard[member] for member in self.members if member in self.heard]
        if self.votes(now):
            stamps.append(now)
        enough = majority(self.members)
        if len(stamps) < enough:
            return NEVER
        stamps.sort(reverse=True)
        return stamps[enough - 1] + self.pool.lease

    def extend(self, now: int) -> None:
        until = self.leased_until(now)
        if until <= now:
            return
        for grant in self.grants.values():
            if grant.epoch == self.adopted and self.renewable(grant.until, now):
                grant.until = max(grant.until, until)
        if self.token is not None and self.renewable(self.token.until, now):
            self.token.until = max(self.token.until, until)
        proposal = self.proposal
        if proposal is not None and proposal.closed:
            if not proposal.confirmed:
                proposal.confirmed = True
                proposal.until = until
            elif self.renewable(proposal.until, now):
                proposal.until = max(proposal.until, until)
            self.mint(now)

    # -- 2. promises ---------------------------------------------------------------------------

    def propose(self, now: int, floor: int = 0, change: Change | None = None) -> None:
        """``floor``: the wall clock, where promises are not on disk; else 0. ``change``: of the
        members; it is made only from an epoch that is surely confirmed, see :meth:`may_change`."""
        if not self.votes(now):
            return
        if change is not None and not self.may_change(now):
            change = None
        epoch = self.next_epoch(floor)
        report = self.promise(epoch, now)
        self.proposal = Proposal(epoch, change)
        self.proposal.reports[self.me] = report
        self.call(now)

    def call(self, now: int) -> None:
        """For reports, of those that have not given theirs: they may have been silent."""
        proposal = self.proposal
        if proposal is not None and not proposal.closed:
            self.hear(self.me, now)
            for node in self.pool.nodes:
                if node not in proposal.reports:
                    self.send(Propose(node, proposal.epoch, self.config))

    def may_change(self, now: int) -> bool:
        """Is it certain that a majority of our members knows that they are the members?

        The members belong to an epoch: whoever adopts it knows them, and remembers on disk. A
        proposer goes by the members of the latest epoch that any report knows, with its change
        made: a majority of those must promise and confirm. Why that is enough: configurations that
        differ by one member are adjacent, their majorities intersect, so an epoch of either
        sees or stops one of the other, as if there were no change. It remains that
        configurations two changes apart are never both in use. A change is made only from an
        epoch that was confirmed (its token is usable), so a majority of the members before it
        knows that epoch. Whoever goes by still older members asks a majority of them, and meets
        somebody who knows better. A change that was written but not confirmed stands behind
        every epoch confirmed after it, since what counts is the epoch adopted last and not
        the last change.
        """
        return self.usable(now)

    def next_epoch(self, floor: int) -> Epoch:
        counter = max(self.promised[0], self.highest[0], floor)
        return (counter + 1, self.me, self.boot)

    def receive_propose(self, propose: Propose, now: int) -> None:
        if propose.epoch >= self.promised and self.fits(propose.config):
            self.hear(propose.sender, now)
        if self.silent(now):
            return
        if not self.fits(propose.config):
            self.out.append(Misfit(propose.sender, propose.config))
            self.send(Refuse(propose.sender, self.config))
        elif propose.epoch[0] > self.promised[0]:  # one promise per counter: see fence_number
            report = self.promise(propose.epoch, now)
            self.send(Promise(propose.sender, propose.epoch, report))
        elif propose.epoch != self.promised:
            self.send(Higher(propose.sender, self.promised))

    def fits(self, config: Config) -> bool:
        """The members of an epoch are the same everywhere, but at birth they are from files."""
        if config[2:] != self.config[2:]:
            return False
        return config[0] != self.config[0] or config[1] == self.config[1]

    def receive_refuse(self, refuse: Refuse, now: int) -> None:
        self.out.append(Misfit(refuse.sender, refuse.config))

    def receive_press(self, press: Press, now: int) -> None:
        if press.epoch == self.promised and press.hop >= self.guess_hop:
            self.pressed_until = now + self.pool.lease // 2

    def press(self, now: int) -> None:
        """No member ourselves: ask the members for a new epoch."""
        for member in self.members:
            if member not in self.gone:
                self.send(Press(member, self.promised, self.guess_hop))

    def receive_higher(self, higher: Higher, now: int) -> None:
        self.highest = max(self.highest, higher.epoch)
        proposal = self.proposal
        if proposal is None or proposal.closed:
            return
        if proposal.epoch < higher.epoch:
            self.give_up(proposal)  # somebody else is about it
            self.hear(higher.epoch[1], now)
        elif proposal.epoch[0] == higher.epoch[0]:
            self.crossed = True

    def promise(self, epoch: Epoch, now: int) -> Report:
        """Refuse what is lower from now on, and say what we have, in one step."""
        self.rise(epoch)
        valid = [
            (fence, grant.h)
            for fence, grant in sorted(self.grants.items())
            if grant.epoch == self.adopted and grant.until > now
        ]
        papers = self.token.papers() if self.token is not None else None
        self.token = None
        self.queue = []
        top = max(self.answered, self.adopted)
        return (
            self.boot,
            top,
            self.adopted,
            tuple(valid),
            self.hop_seen,
            papers,
            self.doubt,
            self.config,
        )

    def rise(self, epoch: Epoch) -> None:
        if epoch > self.promised:
            self.promised = epoch
            self.out.append(Keep(epoch, self.config))
            if self.proposal is not None and self.proposal.epoch < epoch:
                self.give_up(self.proposal)
            self.lapsing.clear()
            self.pressed_until = NEVER

    def give_up(self, proposal: Proposal) -> None:
        """A token that only our own open proposal had seen can be handed over once more."""
        self.proposal = None
        papers = proposal.reports[self.me][5]
        if papers is not None and not proposal.closed:
            self.token = HeldToken(papers, NEVER)

    def receive_promise(self, promise: Promise, now: int) -> None:
        proposal = self.proposal
        if proposal is not None and proposal.epoch == promise.epoch and not proposal.closed:
            proposal.reports[promise.sender] = promise.report

    # -- 3. the ledger -------------------------------------------------------------------------

    def close(self, now: int) -> None:
        """A majority has promised: write the ledger. Later promises are not looked at."""
        proposal = self.proposal
        if proposal is None or not self.may_close():
            return
        reports = proposal.reports
        top = self.top(reports)
        proposal.usable = self.find_token(reports, top)
        kept = self.kept(reports, top, proposal.usable)
        proposal.kept = tuple(kept)
        proposal.lapsing = self.lapse(reports, kept, proposal.usable)
        config = (proposal.epoch, self.after(proposal), *self.config[2:])
        proposal.closed = True
        proposal.closed_at = now
        self.adopt(proposal.epoch, proposal.kept, config, self.me, now)
        self.settled = True
        self.answered = proposal.epoch
        for node in self.pool.nodes:
            if node != self.me:
                yours = reports[node][0] if node in reports else 0
                told = self.told(proposal)
                self.send(Ledger(node, proposal.epoch, told, config, yours, self.boot, now))
        self.extend(now)

    def told(self, proposal: Proposal) -> tuple[Entry, ...]:
        """What everybody may go on with: not what lapses."""
        return proposal.kept

    # -- 4. confirmation -----------------------------------------------------------------------

    def receive_ledger(self, ledger: Ledger, now: int) -> None:
        if ledger.epoch < self.promised or not self.fits(ledger.config):
            return
        self.hear(ledger.sender, now)
        if ledger.yours == self.boot:
            self.settled = True  # it was written when we had promised: no former life is in it
        if ledger.epoch > self.adopted:
            self.adopt(ledger.epoch, ledger.kept, ledger.config, ledger.sender, now)
        if self.votes(now):
            self.answer(ledger.epoch)
            self.send(Still(ledger.sender, ledger.epoch, ledger.boot, ledger.sent, self.boot))

    def confirms(self, still: Still, proposal: Proposal) -> bool:
        """Only who promised, and has not forgotten it since."""
        report = proposal.reports.get(still.sender)
        return proposal.closed and report is not None and report[0] == still.mine

    # -- 5. the new token ----------------------------------------------------------------------

    def mint(self, now: int) -> None:
        proposal = self.proposal
        if proposal is None or not proposal.confirmed or proposal.until <= now:
            return
        if proposal.usable is None and not self.waited(proposal, now):
            return
        self.proposal = None
        ledger = proposal.kept + proposal.lapsing
        free = self.pool.permits - sum([entry[2] for entry in ledger])
        self.hop_seen = (proposal.epoch, 0)
        self.guess_hop = 0
        self.token = HeldToken((proposal.epoch, 0, free, ledger, 0), proposal.until)
        self.lapsing = {entry[1]: entry[2] for entry in proposal.lapsing}
        self.lapsed_at = proposal.closed_at + self.pool.wait
        self.let_lapse(now)
        self.return_permits(now)
        self.ask(now)

    def waited(self, proposal: Proposal, now: int) -> bool:
        """Is every lease over that a member answered before it promised?"""
        return now >= proposal.closed_at + self.pool.wait

    def let_lapse(self, now: int) -> None:
        if len(self.lapsing) > 0 and now >= self.lapsed_at:
            self.releasing.update(self.lapsing)
            self.lapsing.clear()
            self.return_permits(now)

    # -- 6. a new epoch ------------------------------------------------------------------------

    def adopt(
        self, epoch: Epoch, entries: tuple[Entry, ...], config: Config, holder: int, now: int
    ) -> None:
        self.config = config
        if epoch > self.promised:
            self.rise(epoch)
        else:
            self.out.append(Keep(self.promised, config))
        self.adopted = epoch
        self.guess = holder
        self.guess_hop = MINTING
        self.token = None
        self.queue = []
        self.doubt = None
        self.heard.clear()
        self.releasing = {}
        self.former = {}
        self.settle(entries, now)
        self.speak_again(now)

    def settle(self, entries: tuple[Entry, ...], now: int) -> None:
        """Go on with what the ledger says is ours; what we do not hold, or not any more, is
        over, or will be."""
        missing: dict[Fence, int] = {}
        for node, fence, h, lapsing in entries:
            if node == self.me and not lapsing:
                grant = self.grants.get(fence)
                if grant is not None and grant.until > now:
                    grant.epoch = self.adopted
                else:
                    missing[fence] = h
        self.disown(missing, now)

    def disown(self, missing: dict[Fence, int], now: int) -> None:
        """Entries of ours that we do not hold; commands of a former life may still run."""
        if self.silent(now):
            self.former.update(missing)
        else:
            self.releasing.update(missing)

    def speak_again(self, now: int) -> None:
        """What we said in a lower epoch is forgotten."""
        if self.guess != self.me:
            self.repeat(now)

    # -- what we missed ------------------------------------------------------------------------

    def receive_which(self, which: Which, now: int) -> None:
        if self.died(which.node, which.boot):
            self.heard_at = min(self.heard_at, now - self.pool.lease // 2)
        self.tell(which.node, which.boot)

    def died(self, node: int, boot: int) -> bool:
        """Did whom we took for the holder, or the proposer, restart? Then it is neither."""
        if self.promised > self.adopted:
            return node == self.promised[1] and boot != self.promised[2]
        return node == self.guess and (self.guess_hop > MINTING or boot != self.adopted[2])

    def tell(self, node: int, boot: int) -> None:
        """That node wants the ledger as it is now: only the holder knows it."""
        if self.adopted != self.promised or node == self.me:
            return
        token, proposal = self.token, self.proposal
        # a life that is over waits for nothing
        self.queue = [asked for asked in self.queue if asked[0] != node or asked[1] == boot]
        if token is not None:
            self.send(Copy(node, token.epoch, token.ledger, self.config, token.hop, boot))
        elif proposal is not None:
            kept = self.told(proposal)
            self.send(Copy(node, proposal.epoch, kept, self.config, MINTING, boot))
        else:
            for other in self.onward():
                self.send(Which(other, node, boot))

    def receive_copy(self, copy: Copy, now: int) -> None:
        """Like a LEDGER, but it renews nothing: nobody waits for our answer."""
        if copy.boot != self.boot or copy.epoch < self.promised:
            return
        if not self.fits(copy.config):
            self.out.append(Misfit(copy.sender, copy.config))
            return
        self.hear(copy.sender, now)
        if copy.epoch > self.adopted:
            self.settled = True
            self.adopt(copy.epoch, copy.ledger, copy.config, copy.sender, now)
        elif not self.settled:
            self.settled = True
            self.settle(copy.ledger, now)
        if copy.hop > self.guess_hop:
            self.guess = copy.sender
            self.guess_hop = copy.hop

    # -- 7. requests and releases at the holder ------------------------------------------------

    def receive_request(self, request: Request, now: int) -> None:
        if request.epoch < self.adopted:
            self.tell(request.asked[0], request.asked[1])
        if request.epoch != self.adopted or request.epoch != self.promised:
            return
        if request.asked[0] == self.me:
            return  # our own, come round to us: we lined up with what we want now
        if self.token is not None:
            self.line_up(request.asked)
            self.decide(now)
        elif self.proposal is not None or request.hop > self.guess_hop:
            self.line_up(request.asked)  # we shall have the token: it may be on its way already
        else:
            for node in self.onward():
                self.send(Request(node, request.epoch, request.asked, self.guess_hop))

    def line_up(self, asked: Asked) -> None:
        """Once per node; who asks for something else keeps its age and, among equals, its place."""
        node, boot, want, priority, _, which = asked
        since = self.token.grants if self.token is not None else 0
        queue = self.queue
        place = len(queue)
        for i in range(len(queue)):
            if queue[i][0] == node:
                place = i
        wanted = 0 < want <= self.pool.permits
        if place < len(queue):
            other = queue[place]
            if other[1] == boot and other[5] > which:
                return  # it was overtaken on its way
            del queue[place]
            if other[1] == boot:
                since = other[4]
            else:
                place = len(queue)
        if wanted:
            queue.insert(place, (node, boot, want, priority, since, which))
            if len(queue) > 1:
                queue.sort(key=rank)

    def receive_release(self, release: Release, now: int) -> None:
        if self.adopted != self.promised or release.epoch > self.adopted:
            return
        if release.epoch < self.adopted:
            self.send(Released(release.node, release.epoch, release.fence))  # it is moot
        elif self.token is not None:
            self.token.give_back(release.fence, release.h)
            self.send(Released(release.node, release.epoch, release.fence))
            self.decide(now)
        elif self.proposal is not None:
            self.releasing[release.fence] = release.h  # we shall have the token
        elif release.node != self.me:
            for node in self.onward():
                self.send(Release(node, release.epoch, release.fence, release.h, release.node))

    def receive_released(self, released: Released, now: int) -> None:
        if released.epoch == self.adopted:
            self.releasing.pop(released.fence, None)

    # -- 8. the token --------------------------------------------------------------------------

    def usable(self, now: int) -> bool:
        token = self.token
        return token is not None and token.epoch == self.promised and token.until > now

    def decide(self, now: int) -> None:
        """Serve whoever ranks first; the token stays while the permits do not suffice."""
        while self.usable(now):
            token = self.token
            assert token is not None
            if len(self.gone) > 0:  # whoever comes back asks again
                self.queue = [asked for asked in self.queue if asked[0] not in self.gone]
            if len(self.queue) == 0 or self.queue[0][2] > token.free:
                return
            node, boot = self.queue[0][:2]
            if node != self.me:
                self.give(token, node, boot, now)
                return
            if token.grants == MOST_GRANTS:
                return
            self.queue.pop(0)
            if len(self.waiting) > 0:
                self.let_in(token, best(self.waiting))
                self.line_up(self.asked())

    def let_in(self, token: HeldToken, client: int) -> None:
        want = self.waiting.pop(client)[0]
        self.served += 1
        token.grants += 1
        fence = (token.epoch, token.grants)
        token.free -= want
        token.ledger = (*token.ledger, (self.me, fence, want, False))
        self.grants[fence] = Grant(client, want, token.epoch, token.until)
        self.out.append(Granted(client, fence, token.until))

    def give(self, token: HeldToken, node: int, boot: int, now: int) -> None:
        """The whole queue goes along: the receiver's own place in it, too."""
        token.hop += 1
        self.token = None
        self.doubt = (token.papers(), node, boot)
        self.doubt_queue = tuple(self.queue)
        self.doubt_until = token.until
        self.queue = []
        self.guess = node
        self.guess_hop = token.hop
        self.hear(node, now)
        self.send_again(now)

    def send_again(self, now: int) -> None:
        """A TOKEN of which we do not know that it arrived: the very same, it is taken once."""
        if self.doubt is None or self.doubt[0][0] != self.promised or self.doubt_until <= now:
            return
        papers, node, boot = self.doubt
        left = self.doubt_until - now
        self.send(Token(node, papers, self.config, boot, self.doubt_queue, left, 0))

    def receive_token(self, message: Token, now: int) -> None:
        epoch, hop, _, ledger, _ = message.papers
        if not self.is_addressed(message) or epoch < self.promised:
            return
        if not self.is_new(epoch, hop):
            if epoch == self.hop_seen[0]:
                self.send(Got(message.sender, epoch, hop))  # its first GOT was lost
            return
        if not self.fits(message.config):
            self.out.append(Misfit(message.sender, message.config))
            return
        if epoch > self.adopted:
            self.adopt(epoch, ledger, message.config, self.me, now)
        elif not self.settled:
            self.settle(ledger, now)
        self.settled = True
        self.hop_seen = (epoch, hop)
        self.doubt = None
        self.token = HeldToken(message.papers, self.arrives_until(message, now))
        self.guess = self.me
        self.guess_hop = hop
        self.hear(self.me, now)
        early = self.queue
        self.queue = list(message.queue)
        for asked in [*early, self.asked()]:
            self.line_up(asked)
        self.send(Got(message.sender, epoch, hop))
        if (self.token.until - now) * 3 < 2 * self.pool.lease:
            self.extend(now)  # what members answered us before is good for the token as well
        self.return_permits(now)  # and decide

    def is_new(self, epoch: Epoch, hop: int) -> bool:
        return (epoch, hop) > self.hop_seen

    def is_addressed(self, message: Token) -> bool:
        return message.boot == self.boot

    def arrives_until(self, message: Token, now: int) -> int:
        return now + message.left - message.travelled

    def receive_got(self, got: Got, now: int) -> None:
        """The sender of a TOKEN never takes it back; it only learns that it is not in doubt."""
        if self.doubt is not None and self.doubt[0][:2] == (got.epoch, got.hop):
            self.doubt = None

    # -- time passes ---------------------------------------------------------------------------

    def wake(self, now: int) -> None:
        """Do what is due."""
        for fence, grant in sorted(self.grants.items()):
            if grant.until <= now:
                del self.grants[fence]
                self.out.append(Lost(grant.client, fence))
                self.give_back(fence, grant.h, grant.epoch, now)
        proposal = self.proposal
        if proposal is not None and proposal.closed:
            end = proposal.until if proposal.confirmed else proposal.closed_at + self.pool.lease
            if end <= now:
                self.proposal = None
            else:
                self.mint(now)
        if len(self.former) > 0 and not self.silent(now):
            self.releasing.update(self.former)
            self.former = {}
            self.return_permits(now)
        self.let_lapse(now)

    # -- messages ------------------------------------------------------------------------------

    def receive(self, message: Message, now: int) -> None:
        if isinstance(message, Token):
            self.receive_token(message, now)
        elif isinstance(message, Request):
            self.receive_request(message, now)
        elif isinstance(message, Still):
            self.receive_still(message, now)
        elif isinstance(message, Renew):
            self.receive_renew(message, now)
        elif isinstance(message, Got):
            self.receive_got(message, now)
        elif isinstance(message, Release):
            self.receive_release(message, now)
        elif isinstance(message, Released):
            self.receive_released(message, now)
        elif isinstance(message, Propose):
            self.receive_propose(message, now)
        elif isinstance(message, Promise):
            self.receive_promise(message, now)
        elif isinstance(message, Which):
            self.receive_which(message, now)
        elif isinstance(message, Copy):
            self.receive_copy(message, now)
        elif isinstance(message, Press):
            self.receive_press(message, now)
        elif isinstance(message, Refuse):
            self.receive_refuse(message, now)
        elif isinstance(message, Higher):
            self.receive_higher(message, now)
        elif isinstance(message, Ledger):
            self.receive_ledger(message, now)

    def send(self, message: Message) -> None:
        message.sender = self.me
        self.out.append(message)
