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
guess            where the token went from here, or else the proposer: the way to the holder
===============  ===========================================================================

**Where time is.** Handlers take ``now``, a whole number of whatever unit the runner likes, by
this node's own clock. Nothing else here knows time: a lease is a deadline, and
:meth:`~RecoveryNode.wake` does what is due. A renewal carries the time of its sending and
every answer brings it back, so an answer means: *at that time or later I had promised
nothing higher*. The lease runs from the majority-th latest of these times; no rounds need
to be numbered, and an answer cannot be taken for a later one.

**What the runner does.** It carries messages, writes the epoch of a Keep to disk before
anything that stands behind it in ``out`` leaves, calls ``wake`` when time passes, ``renew``
every third of a lease, ``repeat`` now and then while somebody waits, and ``propose`` where
:meth:`~RecoveryNode.stalled` says so for two leases. A promise counts as progress, and after
it a runner waits two to three leases at random: a proposer that finds no token needs one lease
undisturbed, and with several who are less patient nobody ever gets it.

**Who gets the token next** is the business of the algorithms, first of all
:mod:`meshlock.algorithms.jiang`; here it is the simplest that serves everybody: requests go
along ``guess`` to the holder and are served in the order of their coming.

**What is simpler here than in the sketch we started from.** The promise is on disk, so a
member that restarts with its disk refuses what it refused before. With the disk gone it is
still safe for permits: it is silent for ``wait`` first, and by then no lease stands that
rested on what it forgot. For the order of fences the runner passes the wall clock as a
``floor`` of the counter where there is no disk. Three rules seem to matter only if a disk is
lost (benchmarks/recovery_check.py undoes each and finds nothing wrong while disks survive,
within its bounds): a lease that ran out is not renewed, answering is a promise, and a
ledger is confirmed by the boots that promised it. They are kept, for each is one
comparison. Numbered rounds are gone (see above).
"""

from __future__ import annotations

from typing import cast

from meshlock.algorithms.interface import NIL, Effect, Frozen, Message
from meshlock.algorithms.recovery.messages import (
    NEVER,
    NO_EPOCH,
    Asked,
    Doubt,
    Entry,
    Epoch,
    Fence,
    Got,
    Granted,
    Higher,
    Keep,
    Ledger,
    Lost,
    Papers,
    Promise,
    Propose,
    Release,
    Released,
    Renew,
    Report,
    Request,
    Still,
    Token,
)


class Pool:
    """What all nodes of a pool must agree on."""

    def __init__(
        self,
        nodes: tuple[int, ...],
        members: tuple[int, ...],
        permits: int,
        lease: int,
        wait: int,
    ) -> None:
        self.nodes = nodes
        self.members = members
        self.permits = permits
        self.lease = lease
        self.wait = wait
        self.majority = len(members) // 2 + 1


class Grant:
    def __init__(self, client: int, h: int, epoch: Epoch, until: int) -> None:
        self.client = client
        self.h = h
        self.epoch = epoch  # an older one than adopted: it runs out and is not renewed
        self.until = until


class HeldToken:
    def __init__(self, papers: Papers, until: int) -> None:
        self.epoch, self.hop, self.free, self.ledger, self.grants = papers
        self.until = until

    def papers(self) -> Papers:
        return (self.epoch, self.hop, self.free, self.ledger, self.grants)

    def give_back(self, fence: Fence, h: int) -> None:
        """By fence, so that twice is as good as once."""
        for entry in self.ledger:
            if entry[1] == fence:
                self.free += entry[2]
        self.ledger = tuple([entry for entry in self.ledger if entry[1] != fence])


class Proposal:
    def __init__(self, epoch: Epoch) -> None:
        self.epoch = epoch
        self.reports: dict[int, Report] = {}
        self.closed = False
        self.closed_at = NEVER
        self.usable: Papers | None = None
        self.kept: tuple[Entry, ...] = ()
        self.lapsing: tuple[Entry, ...] = ()
        self.confirmed = False
        self.until = NEVER


class RecoveryNode:
    def __init__(self, me: int, pool: Pool, out: list[Effect]) -> None:
        self.me = me
        self.pool = pool
        self.out = out
        self.member = me in pool.members
        self.boot = 0
        self.promised = NO_EPOCH
        self.answered = NO_EPOCH
        self.adopted = NO_EPOCH
        self.highest = NO_EPOCH
        self.silent_until = NEVER
        self.heard: dict[int, int] = {}
        self.grants: dict[Fence, Grant] = {}
        self.waiting: dict[int, int] = {}
        self.token: HeldToken | None = None
        self.hop_seen: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.doubt: Doubt | None = None
        self.queue: list[Asked] = []
        self.guess = NIL
        self.releasing: dict[Fence, int] = {}
        self.former: dict[Fence, int] = {}  # entries of a former life, to be released later
        self.proposal: Proposal | None = None
        self.lapsing: dict[Fence, int] = {}  # ours to release when their lease must be over
        self.lapsed_at = NEVER
        self.pressed_until = NEVER  # somebody who may not propose keeps asking

    # -- a life begins -------------------------------------------------------------------------

    def start(self, now: int, boot: int, promised: Epoch) -> None:
        """At birth and after every crash; ``promised`` is what the disk remembers, if any."""
        self.boot = boot
        self.promised = promised
        self.silent_until = now + self.silence()

    def silence(self) -> int:
        """So long must no word of ours count: what we knew of leases is gone."""
        return self.pool.wait

    def silent(self, now: int) -> bool:
        return now < self.silent_until

    def votes(self, now: int) -> bool:
        return self.member and not self.silent(now)

    # -- clients -------------------------------------------------------------------------------

    def request(self, client: int, want: int, now: int) -> None:
        self.waiting[client] = want
        self.ask(now)

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

    def ask(self, now: int) -> None:
        """Our request, on its way to the holder."""
        if len(self.waiting) == 0:
            return
        asked = (self.me, self.boot, next(iter(self.waiting.values())))
        if self.token is not None and self.token.until > now:
            self.line_up(asked)
            self.decide(now)
        elif self.guess not in (NIL, self.me):
            self.send(Request(self.guess, self.adopted, asked))
        elif not self.member:  # without an epoch, or with a dead token; a member would propose
            for member in self.pool.members:
                self.send(Request(member, self.adopted, asked))

    def return_permits(self, now: int) -> None:
        if self.token is not None and self.token.epoch == self.adopted:
            for fence, h in self.releasing.items():
                self.token.give_back(fence, h)
            self.releasing.clear()
            self.decide(now)
        elif self.guess not in (NIL, self.me):
            for fence, h in self.releasing.items():
                self.send(Release(self.guess, self.adopted, fence, h, self.me))

    def repeat(self, now: int) -> None:
        """Messages get lost: say again what nobody has acted upon."""
        self.ask(now)
        self.return_permits(now)

    # -- 1. leases -----------------------------------------------------------------------------

    def renew(self, now: int) -> None:
        """Ask all members to let our grants, our token or our proposal live on."""
        if self.promised != self.adopted or not self.has_to_renew(now):
            return
        if self.votes(now):
            self.answered = max(self.answered, self.adopted)
        for member in self.pool.members:
            if member != self.me:
                self.send(Renew(member, self.adopted, self.boot, now))
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
        if self.votes(now) and renew.epoch >= self.promised:
            self.answer(renew.epoch)
            self.send(Still(renew.sender, renew.epoch, renew.boot, renew.sent, self.boot))

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
        stamps = list(self.heard.values())
        if self.votes(now):
            stamps.append(now)
        if len(stamps) < self.pool.majority:
            return NEVER
        stamps.sort(reverse=True)
        return stamps[self.pool.majority - 1] + self.pool.lease

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

    def stalled(self, now: int) -> bool:
        """Is there a reason to propose if this lasts? A runner that sees the holder renew may
        be more patient with those who only wait for their turn."""
        if self.token is not None and self.token.until <= now:
            return True
        if now < self.pressed_until:
            return True
        return len(self.waiting) > 0 or len(self.releasing) > 0 or self.adopted == NO_EPOCH

    def propose(self, now: int, floor: int = 0) -> None:
        """``floor``: the wall clock, where promises are not on disk; else 0."""
        if not self.votes(now):
            return
        epoch = self.next_epoch(floor)
        report = self.promise(epoch, now)
        self.proposal = Proposal(epoch)
        self.proposal.reports[self.me] = report
        for node in self.pool.nodes:
            if node != self.me:
                self.send(Propose(node, epoch))

    def next_epoch(self, floor: int) -> Epoch:
        counter = max(self.promised[0], self.highest[0], floor)
        return (counter + 1, self.me, self.boot)

    def receive_propose(self, propose: Propose, now: int) -> None:
        if self.silent(now):
            return
        if propose.epoch[0] > self.promised[0]:  # one promise per counter: see fence_number
            report = self.promise(propose.epoch, now)
            self.send(Promise(propose.sender, propose.epoch, report))
        elif propose.epoch != self.promised:
            self.send(Higher(propose.sender, self.promised))

    def receive_higher(self, higher: Higher, now: int) -> None:
        self.highest = max(self.highest, higher.epoch)

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
        return (self.boot, top, self.adopted, tuple(valid), self.hop_seen, papers, self.doubt)

    def rise(self, epoch: Epoch) -> None:
        if epoch > self.promised:
            self.promised = epoch
            self.out.append(Keep(epoch))
            if self.proposal is not None and self.proposal.epoch < epoch:
                self.proposal = None
            self.lapsing.clear()

    def receive_promise(self, promise: Promise, now: int) -> None:
        proposal = self.proposal
        if proposal is not None and proposal.epoch == promise.epoch and not proposal.closed:
            proposal.reports[promise.sender] = promise.report

    # -- 3. the ledger -------------------------------------------------------------------------

    def may_close(self) -> bool:
        proposal = self.proposal
        if proposal is None or proposal.closed:
            return False
        return len(self.counted(proposal)) >= self.pool.majority

    def counted(self, proposal: Proposal) -> list[Report]:
        return [report for node, report in proposal.reports.items() if node in self.pool.members]

    def close(self, now: int) -> None:
        """A majority has promised: write the ledger. Later promises are not looked at."""
        proposal = self.proposal
        if proposal is None or not self.may_close():
            return
        top = max([report[1] for report in self.counted(proposal)])
        proposal.usable = self.find_token(proposal.reports, top)
        kept = self.kept(proposal.reports, top, proposal.usable)
        proposal.kept = tuple(kept)
        proposal.lapsing = self.lapse(proposal.reports, kept, proposal.usable)
        proposal.closed = True
        proposal.closed_at = now
        self.adopt(proposal.epoch, proposal.kept, self.me, now)
        self.answered = proposal.epoch
        for node in self.pool.nodes:
            if node != self.me:
                self.send(Ledger(node, proposal.epoch, self.told(proposal), self.boot, now))
        self.extend(now)

    def told(self, proposal: Proposal) -> tuple[Entry, ...]:
        """What everybody may go on with: not what lapses."""
        return proposal.kept

    def find_token(self, reports: dict[int, Report], top: Epoch) -> Papers | None:
        found: Papers | None = None
        for node in sorted(reports):
            papers, doubt = reports[node][5], reports[node][6]
            if papers is not None and self.is_current(papers[0], top):
                found = papers if found is None or papers[1] > found[1] else found
            if doubt is not None and self.is_current(doubt[0][0], top):
                receiver = reports.get(doubt[1])
                if receiver is not None and self.vouches(receiver, doubt):
                    found = doubt[0] if found is None or doubt[0][1] > found[1] else found
        return found

    def is_current(self, epoch: Epoch, top: Epoch) -> bool:
        """A token of a lower epoch than one that may live is worth nothing."""
        return epoch == top

    def vouches(self, receiver: Report, doubt: Doubt) -> bool:
        """Will that TOKEN never be received? Only the boot that it was sent to can say so."""
        papers, _, boot = doubt
        return receiver[0] == boot and receiver[4] < (papers[0], papers[1])

    def kept(self, reports: dict[int, Report], top: Epoch, usable: Papers | None) -> list[Entry]:
        """Grants that were reported, by nodes that belong to the latest epoch."""
        entries: list[Entry] = []
        for node in sorted(reports):
            if self.belongs(reports[node], top):
                entries += [(node, fence, h, False) for fence, h in reports[node][3]]
        if usable is not None:
            named = [entry[1] for entry in usable[3]]
            entries = [entry for entry in entries if entry[1] in named]
        entries.sort(key=fence_of)
        while sum([entry[2] for entry in entries]) > self.pool.permits:
            entries.pop(0)
        return entries

    def belongs(self, report: Report, top: Epoch) -> bool:
        return report[2] == top

    def lapse(
        self, reports: dict[int, Report], kept: list[Entry], usable: Papers | None
    ) -> tuple[Entry, ...]:
        """Of the old token's entries, those that may still be in use and are not kept."""
        if usable is None:
            return ()
        fences = [entry[1] for entry in kept]
        return tuple(
            [
                (entry[0], entry[1], entry[2], True)
                for entry in usable[3]
                if entry[1] not in fences and not self.is_free(entry, reports.get(entry[0]))
            ]
        )

    def is_free(self, entry: Entry, report: Report | None) -> bool:
        """Its node reported without it; but what was lapsing may run where nobody reports it."""
        if report is None or entry[3]:
            return False
        return entry[1] not in [fence for fence, _ in report[3]]

    # -- 4. confirmation -----------------------------------------------------------------------

    def receive_ledger(self, ledger: Ledger, now: int) -> None:
        if ledger.epoch < self.promised:
            return
        if ledger.epoch > self.adopted:
            self.adopt(ledger.epoch, ledger.kept, ledger.sender, now)
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

    def adopt(self, epoch: Epoch, entries: tuple[Entry, ...], holder: int, now: int) -> None:
        self.rise(epoch)
        self.adopted = epoch
        self.guess = holder
        self.token = None
        self.queue = []
        self.doubt = None
        self.heard.clear()
        mine = {entry[1]: entry[2] for entry in entries if entry[0] == self.me and not entry[3]}
        missing: dict[Fence, int] = {}
        for fence in sorted(mine):
            grant = self.grants.get(fence)
            if grant is not None and grant.until > now:
                grant.epoch = epoch
            else:
                missing[fence] = mine[fence]
        self.releasing = {}
        self.former = {}
        self.disown(missing, now)
        self.speak_again(now)

    def disown(self, missing: dict[Fence, int], now: int) -> None:
        """Entries of ours that we do not hold; commands of a former life may still run."""
        if self.silent(now):
            self.former = missing
        else:
            self.releasing = missing

    def speak_again(self, now: int) -> None:
        """What we said in a lower epoch is forgotten."""
        if self.guess != self.me:
            self.repeat(now)

    # -- 7. requests and releases at the holder ------------------------------------------------

    def receive_request(self, request: Request, now: int) -> None:
        if self.member and request.asked[0] not in self.pool.members:
            self.pressed_until = now + self.pool.wait
        if request.epoch != self.adopted or request.epoch != self.promised:
            return
        if self.token is not None:
            self.line_up(request.asked)
            self.decide(now)
        elif self.proposal is not None:
            self.line_up(request.asked)  # we shall have the token
        elif self.guess not in (NIL, self.me) and request.asked[0] != self.me:
            self.send(Request(self.guess, request.epoch, request.asked))

    def line_up(self, asked: Asked) -> None:
        self.queue = [other for other in self.queue if other[0] != asked[0]]
        self.queue.append(asked)

    def receive_release(self, release: Release, now: int) -> None:
        if release.epoch != self.adopted or release.epoch != self.promised:
            return
        if self.token is not None:
            self.token.give_back(release.fence, release.h)
            self.send(Released(release.node, release.epoch, release.fence))
            self.decide(now)
        elif self.proposal is not None:
            self.releasing[release.fence] = release.h  # we shall have the token
        elif self.guess not in (NIL, self.me) and release.node != self.me:
            self.send(Release(self.guess, release.epoch, release.fence, release.h, release.node))

    def receive_released(self, released: Released, now: int) -> None:
        if released.epoch == self.adopted:
            self.releasing.pop(released.fence, None)

    # -- 8. the token --------------------------------------------------------------------------

    def usable(self, now: int) -> bool:
        token = self.token
        return token is not None and token.epoch == self.promised and token.until > now

    def decide(self, now: int) -> None:
        """Serve whoever came first; the token stays while the permits do not suffice."""
        while self.usable(now) and len(self.queue) > 0:
            token = self.token
            assert token is not None
            node, boot, want = self.queue[0]
            if node == self.me:
                if len(self.waiting) > 0:
                    client, want = next(iter(self.waiting.items()))
                    if want > token.free:
                        return
                    self.let_in(token, client, want)
                self.queue.pop(0)
                if len(self.waiting) > 0:
                    self.queue.append((self.me, self.boot, 0))
            elif want > token.free:
                return
            else:
                self.queue.pop(0)
                self.give(token, node, boot, now)

    def let_in(self, token: HeldToken, client: int, want: int) -> None:
        del self.waiting[client]
        token.grants += 1
        fence = (token.epoch, token.grants)
        token.free -= want
        token.ledger = (*token.ledger, (self.me, fence, want, False))
        self.grants[fence] = Grant(client, want, token.epoch, token.until)
        self.out.append(Granted(client, fence, token.until))

    def give(self, token: HeldToken, node: int, boot: int, now: int) -> None:
        token.hop += 1
        papers = token.papers()
        self.token = None
        self.doubt = (papers, node, boot)
        self.guess = node
        self.send(Token(node, papers, boot, tuple(self.queue), token.until - now, 0))
        self.queue = []

    def receive_token(self, message: Token, now: int) -> None:
        epoch, hop, _, ledger, _ = message.papers
        if not self.is_addressed(message) or epoch < self.promised or (epoch, hop) <= self.hop_seen:
            return
        if epoch > self.adopted:
            self.adopt(epoch, ledger, message.sender, now)
        self.hop_seen = (epoch, hop)
        self.doubt = None
        self.token = HeldToken(message.papers, self.arrives_until(message, now))
        self.guess = self.me
        self.queue = list(message.queue)
        if len(self.waiting) > 0:
            self.queue.insert(0, (self.me, self.boot, 0))
        self.send(Got(message.sender, epoch, hop))
        self.return_permits(now)
        self.decide(now)

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
        if isinstance(message, Still):
            self.receive_still(message, now)
        elif isinstance(message, Renew):
            self.receive_renew(message, now)
        elif isinstance(message, Token):
            self.receive_token(message, now)
        elif isinstance(message, Got):
            self.receive_got(message, now)
        elif isinstance(message, Request):
            self.receive_request(message, now)
        elif isinstance(message, Release):
            self.receive_release(message, now)
        elif isinstance(message, Released):
            self.receive_released(message, now)
        elif isinstance(message, Propose):
            self.receive_propose(message, now)
        elif isinstance(message, Promise):
            self.receive_promise(message, now)
        elif isinstance(message, Higher):
            self.receive_higher(message, now)
        elif isinstance(message, Ledger):
            self.receive_ledger(message, now)

    def send(self, message: Message) -> None:
        message.sender = self.me
        self.out.append(message)

    # -- the whole state as a value, with all times relative to now ----------------------------

    def freeze(self, now: int) -> Frozen:
        lease = self.pool.lease
        token = self.token
        proposal = self.proposal
        return (
            self.boot,
            self.promised,
            self.answered,
            self.adopted,
            self.highest if self.highest > self.promised else NO_EPOCH,
            max(0, self.silent_until - now),
            tuple(
                sorted(
                    [(who, sent - now) for who, sent in self.heard.items() if sent + lease > now]
                )
            ),
            tuple(
                sorted(
                    [
                        (fence, grant.client, grant.h, grant.epoch, max(0, grant.until - now))
                        for fence, grant in self.grants.items()
                    ]
                )
            ),
            tuple(self.waiting.items()),
            () if token is None else (token.papers(), max(0, token.until - now)),
            self.hop_seen,
            self.doubt,
            tuple(self.queue),
            self.guess,
            tuple(sorted(self.releasing.items())),
            tuple(sorted(self.former.items())),
            ()
            if proposal is None
            else (
                proposal.epoch,
                tuple(sorted(proposal.reports.items())),
                proposal.closed,
                max(-self.pool.wait, proposal.closed_at - now) if proposal.closed else 0,
                proposal.usable,
                proposal.kept,
                proposal.lapsing,
                proposal.confirmed,
                max(0, proposal.until - now),
            ),
            tuple(sorted(self.lapsing.items())),
            max(0, self.lapsed_at - now) if len(self.lapsing) > 0 else 0,
            max(0, self.pressed_until - now),
        )

    def thaw(self, state: Frozen) -> None:
        """Become the node that :meth:`freeze` described, at time 0."""
        self.boot = cast(int, state[0])
        self.promised = cast(Epoch, state[1])
        self.answered = cast(Epoch, state[2])
        self.adopted = cast(Epoch, state[3])
        self.highest = cast(Epoch, state[4])
        self.silent_until = cast(int, state[5])
        self.heard = dict(cast(tuple[tuple[int, int], ...], state[6]))
        self.grants = {
            fence: Grant(client, h, epoch, until)
            for fence, client, h, epoch, until in cast(
                tuple[tuple[Fence, int, int, Epoch, int], ...], state[7]
            )
        }
        self.waiting = dict(cast(tuple[tuple[int, int], ...], state[8]))
        held = cast(tuple[Papers, int] | tuple[()], state[9])
        self.token = HeldToken(held[0], held[1]) if held else None
        self.hop_seen = cast(tuple[Epoch, int], state[10])
        self.doubt = cast(Doubt | None, state[11])
        self.queue = list(cast(tuple[Asked, ...], state[12]))
        self.guess = cast(int, state[13])
        self.releasing = dict(cast(tuple[tuple[Fence, int], ...], state[14]))
        self.former = dict(cast(tuple[tuple[Fence, int], ...], state[15]))
        self.proposal = None
        written = cast(tuple[object, ...], state[16])
        if written:
            proposal = Proposal(cast(Epoch, written[0]))
            proposal.reports = dict(cast(tuple[tuple[int, Report], ...], written[1]))
            proposal.closed = cast(bool, written[2])
            proposal.closed_at = cast(int, written[3])
            proposal.usable = cast(Papers | None, written[4])
            proposal.kept = cast(tuple[Entry, ...], written[5])
            proposal.lapsing = cast(tuple[Entry, ...], written[6])
            proposal.confirmed = cast(bool, written[7])
            proposal.until = cast(int, written[8])
            self.proposal = proposal
        self.lapsing = dict(cast(tuple[tuple[Fence, int], ...], state[17]))
        self.lapsed_at = cast(int, state[18])
        self.pressed_until = cast(int, state[19])


def fence_of(entry: Entry) -> Fence:
    return entry[1]
