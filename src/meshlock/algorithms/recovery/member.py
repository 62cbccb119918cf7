"""A member: promises, leases and reports, which are all that safety rests on between epochs.

Rules 4, 14 to 16 and 18 to 20 as far as they concern votes: who the members are, what was promised,
which leases run, the quiet period after a start. A member knows no algorithm: it never touches the
node inside, nor who waits for it. What it knows of the token is a :class:`~.holding.TokenHolding`.

An answer to a renewal means: *at that time or later I had promised nothing higher*. A renewal
carries the time of its sending and every answer brings it back. The lease runs from the
majority-th latest of these times; no rounds need to be numbered, and an answer cannot be taken for
a later one.

===============  ===========================================================================
here             meaning
===============  ===========================================================================
boot             a number that this node never had before, drawn at every start
promised         the highest epoch promised or answered; *durable*: see Durable
config           of the latest epoch adopted: members, permits (k), lease; *durable*
answered         the highest epoch for which this member has answered a renewal
adopted, first   the epoch whose ledger we have seen, and that ledger, as it was at first
quiet_until      after a start we neither vote nor propose before
owes_vote        we have reported for the epoch promised, but that was no vote
hop_seen         (epoch, hop) of the latest token that we had in hand
===============  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from meshlock.algorithms.actor import NIL, Effect, Frozen, Message, Save
from meshlock.algorithms.recovery.holding import HeldToken, OwnGrant, TokenHolding
from meshlock.algorithms.recovery.messages import (
    Confirm,
    Conflict,
    Higher,
    Ledger,
    Promise,
    Propose,
    Refuse,
    Renew,
)
from meshlock.algorithms.recovery.proposal import Proposal, thawed_proposal
from meshlock.algorithms.recovery.records import (
    ANY_BOOT,
    GRANTS,
    MINTING,
    NEVER,
    NO_EPOCH,
    Change,
    Config,
    Durable,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
    Life,
    Report,
    majority,
    same,
)
from meshlock.algorithms.recovery.terms import Terms
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import Variables, by_key, deadline, special, unordered


@mypyc_attr(allow_interpreted_subclasses=True)
class PoolMember:
    def __init__(self, me: int, out: list[Effect], terms: Terms) -> None:
        self.me = me
        self.out = out
        self.terms = terms
        self.now = 0  # by this node's own clock, in any unit
        self.unreachable: set[int] = set()  # as the links report it
        self.boot = 0
        self.floor = 0  # of epochs' counters: the wall clock, where there is no disk
        self.remembered = NO_EPOCH  # the epoch that the disk knew when this life began
        self.forgot = False  # who the members are, and perhaps that we were one
        self.promised = NO_EPOCH
        self.config = Config(NO_EPOCH, terms.members, terms.permits, terms.lease)
        self.answered = NO_EPOCH
        self.adopted = NO_EPOCH
        self.first: FirstLedger | None = None
        self.highest = NO_EPOCH  # that anybody spoke of
        self.quiet_until = NEVER
        self.owes_vote = False
        self.grants: dict[Fence, OwnGrant] = {}
        self.hop_seen: tuple[Epoch, int] = (NO_EPOCH, -1)
        self.holding = TokenHolding(terms.lease, NIL, GRANTS)
        self.proposal: Proposal | None = None
        self.near: set[int] = set()  # the neighbours, and what others told of their epoch
        self.hellos: dict[int, tuple[Epoch, int, bool]] = {}
        # What follows no handler reads, only the timers and what chooses where to send: no state.
        self.heard_of = NIL  # the holder or proposer that was heard of last, and when
        self.heard_at = NEVER
        self.suggested_until = NEVER  # a node that may not propose sees a reason to
        self.voteless: dict[int, int] = {}  # who has forgotten, and when we heard that last
        self.crossed = False  # another proposal has the number of ours: neither may succeed
        # What we said when we promised, to say it again; as good as a doubled message.
        self.last_report: Report | None = None

    def send(self, message: Message) -> None:
        message.sender = self.me
        self.out.append(message)

    @property
    def members(self) -> tuple[int, ...]:
        return self.config.members

    def is_member(self) -> bool:
        return self.me in self.config.members

    def paused(self) -> bool:
        """Was more out than there are permits when this epoch began (rule 15)?"""
        return self.first is not None and self.first.paused

    def is_addressed(self, boot: int) -> bool:
        """Is what names that life of its receiver for us (rule 7)?"""
        return boot == self.boot or (self.terms.open and boot == ANY_BOOT)

    # -- a life begins -----------------------------------------------------------------------------

    def start(self, life: Life) -> None:
        self.boot = life.boot
        self.floor = life.floor
        kept = life.kept
        if kept is not None:
            self.promised = self.remembered = kept.promised
            if kept.config.epoch > self.config.epoch or len(self.members) == 0:
                self.config = kept.config._replace(lease=self.terms.lease)
        if life.alone:
            self.config = self.config._replace(members=(self.me,))
        self.forgot = len(self.members) == 0
        self.quiet_until = self.now + self.terms.wait  # what we knew of leases is gone
        self.hear(NIL)

    def hear(self, node: int) -> None:
        """Of a node that has the token, or is about to make one."""
        self.heard_of = node
        self.heard_at = self.now

    def quiet(self) -> bool:
        return self.now < self.quiet_until

    def votes(self) -> bool:
        return self.is_member() and not self.quiet() and not self.forgot

    # -- leases ------------------------------------------------------------------------------------

    def renew(self) -> bool:
        """Ask all members to let our grants, our token or our proposal live on; see extend."""
        if self.promised != self.adopted or len(self.running_leases()) == 0:
            return False
        if self.votes():
            self.answered = max(self.answered, self.adopted)
        hop = self.holding.hop(self.proposal is not None)
        for member in self.members:
            if member != self.me:
                self.send(Renew(member, self.adopted, self.boot, hop, self.now))
        return self.extend()

    def is_confirming(self) -> bool:
        """Has no quorum adopted our ledger yet? Until then we ask by the ledger alone: a node that
        answers a renewal promises, but need not know the members and permits of the epoch."""
        return self.proposal is not None and not self.proposal.confirmed

    def running_leases(self) -> list[int]:
        """The ends of those that a renewal extends: of our token, our proposal and our grants."""
        if self.is_confirming():
            return []
        ends = [grant.until for grant in self.grants.values() if grant.epoch == self.adopted]
        token, proposal = self.holding.token, self.proposal
        if token is not None:
            ends.append(token.until)
        if proposal is not None:
            ends.append(proposal.until)
        return [until for until in ends if self.is_running(until)]

    def is_running(self, until: int) -> bool:
        """A lease that ran out is dead, and is not renewed."""
        return self.now < until

    def usable(self) -> bool:
        """Is there a token here that may grant?"""
        token = self.holding.token
        return token is not None and same(token.epoch, self.promised) and token.until > self.now

    def receive_renew(self, renew: Renew) -> bool:
        """True if its sender has the token, or will have it, in the epoch that it names."""
        if renew.epoch < self.promised:
            return False
        self.confirm(renew.sender, renew.epoch, renew.boot, renew.sent)
        if renew.hop == GRANTS:
            return False
        self.hear(renew.sender)
        return True

    def confirm(self, node: int, epoch: Epoch, boot: int, sent: int) -> None:
        """To what that boot of the node sent at that time. Answering is a promise."""
        if self.votes():
            self.rise(epoch)
            self.answered = max(self.answered, epoch)
            self.send(Confirm(node, epoch, boot, sent, self.boot))

    def receive_confirm(self, confirm: Confirm) -> bool:
        """See :meth:`extend`."""
        epoch = confirm.epoch
        if epoch != self.adopted or epoch != self.promised or confirm.boot != self.boot:
            return False
        proposal = self.proposal
        if proposal is not None and not proposal.counts(confirm.sender, confirm.mine):
            return False
        self.voteless.pop(confirm.sender, None)
        heard = self.holding.heard
        sent = confirm.sent  # from then on the lease runs, not from the answer
        heard[confirm.sender] = max(sent, heard.get(confirm.sender, sent))
        return self.extend()

    def leased_until(self) -> int:
        """The end of the lease that the answers so far give us, for our epoch."""
        heard = self.holding.heard
        stamps = [heard[member] for member in self.members if member in heard]
        if self.votes():
            stamps.append(self.now)
        enough = majority(self.members)
        if len(stamps) < enough:
            return NEVER
        stamps.sort(reverse=True)
        return stamps[enough - 1] + self.terms.lease

    def extend(self) -> bool:
        """By the answers so far. True: a ledger of ours is confirmed, so that its token may be
        made."""
        until = self.leased_until()
        if until <= self.now:
            return False
        for grant in self.grants.values():
            if grant.epoch == self.adopted and self.is_running(grant.until):
                grant.until = max(grant.until, until)
        token, proposal = self.holding.token, self.proposal
        if token is not None and self.is_running(token.until):
            token.until = max(token.until, until)
        if proposal is None or not proposal.closed:
            return False
        if not proposal.confirmed:
            proposal.confirmed = True
            proposal.until = until
        elif self.is_running(proposal.until):
            proposal.until = max(proposal.until, until)
        return True

    # -- promises ----------------------------------------------------------------------------------

    def propose(self, change: Change | None) -> None:
        """``change``: of members or permits; it is made if it may be, see
        :meth:`.Proposal.may_change`."""
        counter = max(self.promised.counter, self.highest.counter, self.floor)
        epoch = Epoch(counter + 1, self.me, self.boot)
        self.rise(epoch)
        report = self.report()
        self.proposal = Proposal(epoch, change, self.terms)
        self.proposal.reports[self.me] = report

    def drop_change(self, change: Change) -> None:
        """Nobody waits for it any more: the proposal goes on without, if its ledger is not written
        yet, as if the change could not be made."""
        proposal = self.proposal
        if proposal is not None and proposal.change == change and not proposal.closed:
            proposal.change = None

    def collect(self, nodes: Iterable[int]) -> None:
        """Reports, of those that have not given theirs: they may have been quiet, or gone."""
        proposal = self.proposal
        if proposal is not None and not proposal.closed:
            self.hear(self.me)
            for node in nodes:
                if node not in proposal.reports:
                    self.send(Propose(node, proposal.epoch, self.config))

    def remind(self) -> None:
        """Of a proposal that is not through: nodes that hear nothing of it for a lease make
        another.

        A node that has reported hears of it too while it is open, and once it is closed the ledger
        is sent anew: a node that has to write it to a slow disk first can only confirm a later one
        in time.
        """
        proposal, first = self.proposal, self.first
        if proposal is None or proposal.confirmed:
            return
        if not proposal.closed:
            for node in self.terms.nodes:
                if node != self.me and node in proposal.reports:
                    self.send(Propose(node, proposal.epoch, self.config))
        elif first is not None:
            proposal.told_at = self.now
            self.send_ledger(first)

    def send_ledger(self, first: FirstLedger) -> None:
        for node in self.terms.nodes:
            if node != self.me:
                self.send(Ledger(node, first, self.boot, self.now))

    def receive_propose(self, propose: Propose) -> None:
        if propose.epoch >= self.promised and self.fits(propose.config):
            self.hear(propose.sender)
        if self.quiet() and not has_anything(self):
            return
        if not self.fits(propose.config):
            self.out.append(Conflict(propose.sender, propose.config))
            self.send(Refuse(propose.sender, self.config))
            return
        if may_have_forgotten(self, propose.epoch):
            if not self.quiet():
                self.send(Higher(propose.sender, Epoch(self.floor, NIL, 0)))
            if not has_anything(self):
                return
        if propose.epoch.counter > self.promised.counter:  # once per counter: fence_number
            self.rise(propose.epoch)
            self.last_report = self.report()
            self.owes_vote = self.quiet() and not may_have_forgotten(self, propose.epoch)
            self.send(Promise(propose.sender, propose.epoch, self.last_report))
        elif propose.epoch != self.promised:
            self.send(Higher(propose.sender, self.promised))
        elif self.last_report is not None:  # it was lost: the very same, as if it had been doubled
            self.send(Promise(propose.sender, propose.epoch, self.last_report))

    def fits(self, config: Config) -> bool:
        """Members and permits of an epoch are the same everywhere, but at birth from files. A node
        that knows no members yet has nothing against any: a pool that is made anew waits before its
        first epoch, and its founder is its member all the while."""
        mine = self.config
        if config.epoch == mine.epoch and len(config.members) > 0 and len(mine.members) > 0:
            return config == mine
        return config.lease == mine.lease

    def receive_refuse(self, refuse: Refuse) -> None:
        self.out.append(Conflict(refuse.sender, refuse.config))

    def receive_higher(self, higher: Higher) -> None:
        self.highest = max(self.highest, higher.epoch)
        proposal = self.proposal
        if proposal is None or proposal.closed:
            return
        if higher.epoch.proposer == NIL:  # a disk was lost: a quorum may do without that member
            self.crossed = True
        elif proposal.epoch < higher.epoch:
            self.give_up(proposal)  # its proposer goes on
            self.hear(higher.epoch.proposer)
        elif proposal.epoch.counter == higher.epoch.counter:
            self.crossed = True

    def report(self) -> Report:
        """What we have, in the step in which we refuse what is lower: grants whose lease runs
        (rule 18), and the token. Of a grant that this epoch goes on without, we say that it
        lapses."""
        valid = [
            Entry(self.me, fence, one.permits, one.epoch != self.adopted, one.slots, one.label)
            for fence, one in sorted(self.grants.items())
            if one.until > self.now
        ]
        holding = self.holding
        token = holding.token.state() if holding.token is not None else None
        sent = holding.unaccepted
        holding.surrender()
        top = max(self.answered, self.adopted)
        return Report(
            self.boot,
            top,
            self.adopted,
            tuple(valid),
            self.hop_seen,
            token,
            sent,
            self.config,
            self.forgot,
            not self.quiet() and not may_have_forgotten(self, self.promised),
        )

    def rise(self, epoch: Epoch) -> None:
        if epoch > self.promised:
            self.promised = epoch
            self.last_report = None
            self.owes_vote = False
            self.save_promise()
            if self.proposal is not None and self.proposal.epoch < epoch:
                self.give_up(self.proposal)
            self.suggested_until = NEVER

    def save_promise(self) -> None:
        """Who the members are is kept by those who know (rule 16)."""
        config = self.config
        if self.forgot:
            config = config._replace(epoch=NO_EPOCH, members=())
        self.out.append(Save(Durable(self.promised, config)))

    def rests_on_disk(self, message: Message, on_disk: Epoch) -> bool:
        """Must it wait while the disk has not taken our latest promise, but that one?

        A proposal rests on no promise. A ledger rests on the promise of its epoch; that we go by it
        too must be on disk before the new token does anything. All else must wait.
        """
        if isinstance(message, Ledger):
            return message.first.epoch > on_disk
        return not isinstance(message, Propose)

    def give_up(self, proposal: Proposal) -> None:
        """A token that only our own open proposal had seen can be surrendered once more, be it the
        one that was here or the one that we sent."""
        self.proposal = None
        mine = proposal.reports[self.me]
        if proposal.closed:
            return
        self.holding.unaccepted = mine.unaccepted
        if mine.token is not None:
            self.holding.token = HeldToken(mine.token, NEVER)

    def receive_promise(self, promise: Promise) -> bool:
        """True: with it comes the token that our closed proposal could not find."""
        proposal = self.proposal
        if proposal is None or proposal.epoch != promise.epoch:
            return False
        if proposal.closed:
            return proposal.find_late(promise.report)
        proposal.add(promise.sender, promise.report)
        if promise.report.forgot:
            self.voteless[promise.sender] = self.now
        return False

    # -- a new epoch -------------------------------------------------------------------------------

    def adopt(self, first: FirstLedger, holder: int) -> None:
        """Rules 4, 16 and 19. What was held in the epoch before is dropped."""
        token = self.holding.token
        # have we a token that nobody has reported to that epoch, which has none?
        is_late = token is not None and first.before == NO_EPOCH != token.epoch
        late = self.report() if is_late else None
        self.config = first.config
        named = any(one.node == self.me and one.boot == self.boot for one in first.participants)
        if named and not self.quiet():
            self.forgot = False  # this life has reported for it
        if first.epoch > self.promised:
            self.rise(first.epoch)
        else:
            self.save_promise()
        self.owes_vote = False
        if late is not None:
            self.send(Promise(first.epoch.proposer, first.epoch, late))
        self.adopted = self.promised if first.epoch == self.promised else first.epoch
        self.first = first
        self.holding = TokenHolding(self.terms.lease, holder, MINTING)
        if self.terms.open:
            self.hellos = {one: told for one, told in self.hellos.items() if told[0] >= first.epoch}

    # -- what others say ---------------------------------------------------------------------------

    def onward(self) -> list[int]:
        """To the holder, as far as we know; never to several, for each might send it back here."""
        holder = self.holding.holder
        return [holder] if holder not in (NIL, self.me) and holder not in self.unreachable else []

    def is_asked_for_more_than(self, epoch: Epoch) -> None:
        """A node that may not propose has a reason to, and has heard of that epoch."""
        self.highest = max(self.highest, epoch)
        self.suggested_until = self.now + self.terms.lease // 2

    # -- the whole state as a value ----------------------------------------------------------------

    def freeze(self) -> Frozen:
        return MEMBER_VARIABLES.freeze(self, self.now)

    def thaw(self, frozen: Frozen) -> int:
        """At time 0. Where the variables of the next part begin."""
        self.now = 0
        self.unreachable = set()
        self.heard_of = NIL
        self.heard_at = NEVER
        self.suggested_until = NEVER
        self.voteless = {}
        self.crossed = False
        self.last_report = None
        return MEMBER_VARIABLES.thaw(self, frozen)


def may_have_forgotten(member: PoolMember, epoch: Epoch) -> bool:
    """Without a disk: that it promised it, or a higher one. None is above the floor."""
    return member.is_member() and epoch.counter <= member.floor


def has_anything(member: PoolMember) -> bool:
    """Rule 20: of this life, what a new epoch would take from it if it did not report."""
    holding = member.holding
    if holding.token is not None or holding.unaccepted is not None:
        return True
    return any(grant.until > member.now for grant in member.grants.values())


def freeze_config(part: PoolMember, now: int) -> Frozen:
    """Without the lease, which never changes."""
    return part.config[:3] + part.config[4:]


def thaw_config(part: PoolMember, frozen: Any) -> None:
    epoch, members, permits, slots, names = frozen
    part.config = Config(epoch, members, permits, part.terms.lease, slots, names)


def freeze_grants(part: PoolMember, now: int) -> Frozen:
    found = [
        (
            *(fence, one.client, one.permits, one.epoch),
            *(max(0, one.until - now), one.slots, one.label),
        )
        for fence, one in part.grants.items()
    ]
    found.sort()
    return tuple(found)


def thaw_grants(part: PoolMember, frozen: Any) -> None:
    part.grants = {fence: OwnGrant(*rest) for fence, *rest in frozen}


def freeze_proposal(part: PoolMember, now: int) -> Frozen:
    return () if part.proposal is None else part.proposal.freeze(now)


def thaw_proposal(part: PoolMember, frozen: Any) -> None:
    part.proposal = thawed_proposal(frozen, part.terms) if frozen else None


def freeze_highest(part: PoolMember, now: int) -> Epoch:
    return part.highest if part.highest > part.promised else NO_EPOCH


MEMBER_VARIABLES = Variables(
    "boot",
    "floor",
    "remembered",
    "forgot",
    "promised",
    special("config", freeze_config, thaw_config),
    "answered",
    "adopted",
    "first",
    special("highest", freeze_highest),
    deadline("quiet_until"),
    "owes_vote",
    special("grants", freeze_grants, thaw_grants),
    "hop_seen",
    special("proposal", freeze_proposal, thaw_proposal),
    unordered("near"),
    by_key("hellos"),
)
