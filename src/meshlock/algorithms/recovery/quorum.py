"""Leases, promises and ledgers: how a quorum of the members agrees on an epoch.

Nothing here knows the algorithm inside; :mod:`.layer` does.
"""

from __future__ import annotations

from meshlock.algorithms.interface import NIL, Conflict, Keep, Message
from meshlock.algorithms.recovery.inside import tree
from meshlock.algorithms.recovery.messages import (
    Confirm,
    Higher,
    Ledger,
    Offer,
    Promise,
    Propose,
    Refuse,
    Renew,
    Suggest,
    Voteless,
)
from meshlock.algorithms.recovery.records import (
    GRANTS,
    MINTING,
    NEVER,
    NO_EPOCH,
    Change,
    Config,
    Entry,
    Epoch,
    FirstLedger,
    Participant,
    Report,
    TokenState,
    majority,
    same,
)
from meshlock.algorithms.recovery.reports import Conclusions
from meshlock.algorithms.recovery.state import HeldToken, Proposal
from meshlock.algorithms.subclassing import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Quorum(Conclusions):
    # -- a life begins -------------------------------------------------------------------------

    def restart(self, boot: int, kept: Keep | None, floor: int = 0) -> None:
        self.boot = boot
        self.floor = floor
        if kept is not None:
            self.promised = self.remembered = kept.promised
            if kept.config.epoch > self.config.epoch or len(self.members) == 0:
                self.config = kept.config._replace(lease=self.terms.lease)
        self.forgot = len(self.members) == 0
        self.quiet_until = self.now + self.terms.wait  # what we knew of leases is gone
        self.hear(NIL)

    def found(self, boot: int, floor: int = 0) -> None:
        """Rule 16."""
        self.restart(boot, None, floor)
        self.forgot = False
        self.quiet_until = self.now
        self.config = self.config._replace(members=(self.me,))
        self.token = HeldToken(TokenState(NO_EPOCH, 0, self.config.permits, (), 0), NEVER)
        self.begin(None)
        self.close()

    def reset(self, boot: int, floor: int) -> None:
        """Go on alone, for the others are gone for good: a life that knows of nothing, and is
        quiet until whatever they granted must be over."""
        self.restart(boot, None, floor)
        self.forgot = False
        self.config = self.config._replace(members=(self.me,))

    def hear(self, node: int) -> None:
        """Of somebody who has the token, or is about to make one."""
        self.heard_of = node
        self.heard_at = self.now

    def quiet(self) -> bool:
        return self.now < self.quiet_until

    def votes(self) -> bool:
        return self.member and not self.quiet() and not self.forgot

    # -- leases --------------------------------------------------------------------------------

    def renew(self) -> None:
        """Ask all members to let our grants, our token or our proposal live on."""
        if self.promised != self.adopted or not self.has_to_renew():
            return
        if self.votes():
            self.answered = max(self.answered, self.adopted)
        for member in self.members:
            if member != self.me:
                self.send(Renew(member, self.adopted, self.boot, self.hop(), self.now))
        self.extend()

    def hop(self) -> int:
        """That of our token, or what stands for it."""
        if self.token is not None:
            return self.token.hop
        return MINTING if self.proposal is not None else GRANTS

    def tell_epoch(self, node: int) -> None:
        """One that is back may have missed it, and have grants whose lease runs."""
        if self.token is not None and not self.renewable(self.token.until):
            self.inform(node)  # it is not to wait for a token that is dead
        elif self.promised == self.adopted and self.hop() != GRANTS:
            self.send(Renew(node, self.adopted, self.boot, self.hop(), self.now))

    def has_to_renew(self) -> bool:
        if self.token is not None and self.renewable(self.token.until):
            return True
        proposal = self.proposal
        if proposal is not None and proposal.confirmed and self.renewable(proposal.until):
            return True
        return any(
            grant.epoch == self.adopted and self.renewable(grant.until)
            for grant in self.grants.values()
        )

    def renewable(self, until: int) -> bool:
        """A lease that ran out is dead."""
        return self.now < until

    def receive_renew(self, renew: Renew) -> None:
        if renew.epoch < self.promised:
            return
        if self.votes():
            self.answer(renew.epoch)
            self.send(Confirm(renew.sender, renew.epoch, renew.boot, renew.sent, self.boot))
        if renew.hop != GRANTS:
            self.hear(renew.sender)
            self.learn(renew.sender, renew.epoch, renew.hop)

    def learn(self, holder: int, epoch: Epoch, hop: int) -> None:
        """Somebody has the token, or will have it."""
        if epoch > self.adopted or self.inner is None:
            self.ask_ledger(holder)
        if epoch == self.adopted and hop > self.holder_hop:
            self.holder = holder
            self.holder_hop = hop
        sent = self.unaccepted
        if sent is not None and epoch == sent.state.epoch and hop >= sent.state.hop:
            self.unaccepted = None
            self.unaccepted_message = None

    def answer(self, epoch: Epoch) -> None:
        """Answering is a promise."""
        self.rise(epoch)
        self.answered = max(self.answered, epoch)

    def receive_confirm(self, confirm: Confirm) -> None:
        epoch = confirm.epoch
        if epoch != self.adopted or epoch != self.promised or confirm.boot != self.boot:
            return
        proposal = self.proposal
        if proposal is not None and not self.is_counted(confirm, proposal):
            return
        self.voteless.pop(confirm.sender, None)
        sent = confirm.sent  # from then on the lease runs, not from the answer
        self.heard[confirm.sender] = max(sent, self.heard.get(confirm.sender, sent))
        self.extend()

    def is_counted(self, confirm: Confirm, proposal: Proposal) -> bool:
        """A ledger is confirmed only by who promised, and has not forgotten it since."""
        if proposal.confirmed:
            return True
        report = proposal.reports.get(confirm.sender)
        return proposal.closed and report is not None and report.boot == confirm.mine

    def leased_until(self) -> int:
        """The end of the lease that the answers so far give us, for our epoch."""
        stamps = [self.heard[member] for member in self.members if member in self.heard]
        if self.votes():
            stamps.append(self.now)
        enough = majority(self.members)
        if len(stamps) < enough:
            return NEVER
        stamps.sort(reverse=True)
        return stamps[enough - 1] + self.terms.lease

    def extend(self) -> None:
        until = self.leased_until()
        if until <= self.now:
            return
        for grant in self.grants.values():
            if grant.epoch == self.adopted and self.renewable(grant.until):
                grant.until = max(grant.until, until)
        if self.token is not None and self.renewable(self.token.until):
            self.token.until = max(self.token.until, until)
        proposal = self.proposal
        if proposal is not None and proposal.closed:
            if not proposal.confirmed:
                proposal.confirmed = True
                proposal.until = until
            elif self.renewable(proposal.until):
                proposal.until = max(proposal.until, until)
            self.mint()

    # -- promises ------------------------------------------------------------------------------

    def propose(self, change: Change | None = None) -> None:
        """``change``: of members or permits; it is made if it may be, see
        :meth:`~.reports.Conclusions.may_change`."""
        if not self.votes():
            return
        self.begin(change)
        self.collect()

    def begin(self, change: Change | None) -> None:
        epoch = self.next_epoch()
        report = self.promise(epoch)
        self.proposal = Proposal(epoch, change)
        self.proposal.reports[self.me] = report

    def collect(self) -> None:
        """Reports, of those that have not given theirs: they may have been quiet."""
        proposal = self.proposal
        if proposal is not None and not proposal.closed:
            self.hear(self.me)
            for node in self.terms.nodes:
                if node not in proposal.reports:
                    self.send(Propose(node, proposal.epoch, self.config))

    def remind(self) -> None:
        """Of a proposal that is not through: those who hear nothing of it for a lease make another.

        Who has reported hears of it too while it is open, and once it is closed the ledger is sent
        anew: whoever has to write it to a slow disk first can only confirm a later one in time.
        """
        proposal, first = self.proposal, self.first
        if proposal is None or proposal.confirmed:
            return
        others = [node for node in self.terms.nodes if node != self.me]
        if not proposal.closed:
            for node in others:
                if node in proposal.reports:
                    self.send(Propose(node, proposal.epoch, self.config))
        elif first is not None:
            proposal.told_at = self.now
            for node in others:
                self.send(Ledger(node, first, self.boot, self.now))

    def usable(self) -> bool:
        """Is there a token here that may grant?"""
        token = self.token
        return token is not None and same(token.epoch, self.promised) and token.until > self.now

    def next_epoch(self) -> Epoch:
        counter = max(self.promised.counter, self.highest.counter, self.floor)
        return Epoch(counter + 1, self.me, self.boot)

    def receive_propose(self, propose: Propose) -> None:
        if propose.epoch >= self.promised and self.fits(propose.config):
            self.hear(propose.sender)
        if self.quiet():
            return
        if not self.fits(propose.config):
            self.out.append(Conflict(propose.sender, propose.config))
            self.send(Refuse(propose.sender, self.config))
        elif self.member and propose.epoch.counter <= self.floor:
            self.send(Higher(propose.sender, Epoch(self.floor, NIL, 0)))  # what we forgot is lower
        elif propose.epoch.counter > self.promised.counter:  # once per counter: fence_number
            self.last_report = self.promise(propose.epoch)
            self.send(Promise(propose.sender, propose.epoch, self.last_report))
        elif propose.epoch != self.promised:
            self.send(Higher(propose.sender, self.promised))
        elif self.last_report is not None:  # it was lost: the very same, as if it had been doubled
            self.send(Promise(propose.sender, propose.epoch, self.last_report))

    def fits(self, config: Config) -> bool:
        """Members and permits of an epoch are the same everywhere, but at birth from files. Who
        knows no members yet has nothing against any: a pool that is made anew waits before its
        first epoch, and its founder is its member all the while."""
        mine = self.config
        if config.epoch == mine.epoch and len(config.members) > 0 and len(mine.members) > 0:
            return config == mine
        return config.lease == mine.lease

    def receive_refuse(self, refuse: Refuse) -> None:
        self.out.append(Conflict(refuse.sender, refuse.config))

    def receive_suggest(self, suggest: Suggest) -> None:
        lost = suggest.lost or (self.token is None and suggest.hop >= self.holder_hop)
        if suggest.epoch < self.adopted:
            self.inform(suggest.sender)
        elif suggest.epoch > self.promised or (suggest.epoch == self.promised and lost):
            self.highest = max(self.highest, suggest.epoch)
            self.suggested_until = self.now + self.terms.lease // 2

    def suggest(self, lost: bool) -> None:
        """No member ourselves: ask the members for a new epoch, above any that we promised, or that
        others told us they did: it may be one that nobody makes any more. Who has forgotten what
        it promised promises nothing up to its floor."""
        hop = self.holder_hop if self.adopted == self.promised else GRANTS
        known = max(self.promised, self.highest, Epoch(self.floor if self.forgot else 0, NIL, 0))
        for node in self.informants():
            self.send(Suggest(node, known, hop, lost))

    def tell_voteless(self) -> None:
        """A member that has forgotten; or a node that may be one, for all it knows."""
        if self.forgot and (self.member or len(self.members) == 0):
            for node in self.terms.nodes:
                if node != self.me and node not in self.unreachable:
                    self.send(Voteless(node))

    def receive_voteless(self, message: Voteless) -> None:
        self.voteless[message.sender] = self.now

    def informants(self) -> list[int]:
        """The members that can be reached; who reaches none that it knows asks its neighbours."""
        reached = [one for one in self.members if one != self.me and one not in self.unreachable]
        return reached if len(reached) > 0 or self.member else sorted(self.near)

    def offer(self, members: list[int]) -> None:
        """No member ourselves, but willing to be."""
        for member in members:
            self.send(Offer(member, self.adopted))

    def receive_offer(self, offer: Offer) -> None:
        if offer.epoch == self.adopted and self.member:
            self.offers[offer.sender] = self.now

    def receive_higher(self, higher: Higher) -> None:
        self.highest = max(self.highest, higher.epoch)
        proposal = self.proposal
        if proposal is None or proposal.closed:
            return
        if higher.epoch.proposer == NIL:  # a disk was lost: a quorum may do without that member
            self.crossed = True
        elif proposal.epoch < higher.epoch:
            self.give_up(proposal)  # somebody else is about it
            self.hear(higher.epoch.proposer)
        elif proposal.epoch.counter == higher.epoch.counter:
            self.crossed = True

    def promise(self, epoch: Epoch) -> Report:
        """Refuse what is lower from now on, and say what we have, in one step."""
        self.rise(epoch)
        return self.report()

    def report(self) -> Report:
        """Grants whose lease runs (rule 18), and the token. Of a grant that this epoch goes on
        without, we say that it lapses."""
        valid = [
            Entry(self.me, fence, one.permits, one.epoch != self.adopted, one.slots, one.label)
            for fence, one in sorted(self.grants.items())
            if one.until > self.now
        ]
        token = self.token.state() if self.token is not None else None
        sent = self.unaccepted
        self.surrender()
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
        )

    def surrender(self) -> None:
        """A token is reported to one proposer only, the one here and the one that we sent: else
        two ledgers could count it. If no ledger does, one lease is waited out."""
        self.token = None
        self.unaccepted = None
        self.unaccepted_message = None

    def rise(self, epoch: Epoch) -> None:
        if epoch > self.promised:
            self.promised = epoch
            self.last_report = None
            self.keep()
            if self.proposal is not None and self.proposal.epoch < epoch:
                self.give_up(self.proposal)
            self.suggested_until = NEVER

    def keep(self) -> None:
        """Who the members are is kept by those who know (rule 16)."""
        config = self.config
        if self.forgot:
            config = config._replace(epoch=NO_EPOCH, members=())
        self.out.append(Keep(self.promised, config))

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
        self.unaccepted = mine.unaccepted
        if mine.token is not None:
            self.token = HeldToken(mine.token, NEVER)

    def receive_promise(self, promise: Promise) -> None:
        proposal = self.proposal
        if proposal is None or proposal.epoch != promise.epoch:
            return
        if proposal.closed:
            self.take_late(proposal, promise.report)
        else:
            proposal.reports[promise.sender] = promise.report
            if not self.knows_members(promise.report):
                self.voteless[promise.sender] = self.now

    def take_late(self, proposal: Proposal, report: Report) -> None:
        """Rule 19: the token that we could not find, before we made another."""
        token = report.token
        if token is None or proposal.usable is not None:
            return
        if token.epoch == proposal.top:
            proposal.late = True
            proposal.usable = token
            proposal.lapsing = self.lapse(proposal.reports, list(proposal.kept), token)
            self.mint()

    # -- the ledger ----------------------------------------------------------------------------

    def close(self) -> None:
        """A quorum has promised: write the ledger. Later promises are not looked at."""
        proposal = self.proposal
        if proposal is None or not self.may_close():
            return
        reports = proposal.reports
        top = proposal.top = self.top(reports)
        proposal.usable = self.find_token(reports, top)
        kept = self.kept(reports, top, proposal.usable)
        proposal.kept = tuple(kept)
        proposal.lapsing = self.lapse(reports, kept, proposal.usable)
        config = self.config_after(proposal)
        out = sum([entry.permits for entry in proposal.kept + proposal.lapsing])
        usable = proposal.usable
        first = FirstLedger(
            proposal.epoch,
            config,
            self.participants(reports),
            proposal.kept,  # not what lapses: nobody may go on with that
            len(proposal.kept) + len(proposal.lapsing),
            usable.epoch if usable is not None else NO_EPOCH,
            usable.grants if usable is not None else 0,
            out > config.permits,  # rule 15
        )
        proposal.closed = True
        proposal.closed_at = proposal.told_at = self.now
        self.adopt(first, self.me)
        self.answered = proposal.epoch
        for node in self.terms.nodes:
            if node != self.me:
                self.send(Ledger(node, first, self.boot, self.now))
        self.extend()

    def participants(self, reports: dict[int, Report]) -> tuple[Participant, ...]:
        nodes = (self.me, *sorted([node for node in reports if node != self.me]))
        fathers = tree(self.terms.near, nodes) if self.fixed else (NIL,) * len(nodes)
        return tuple(
            [
                Participant(node, reports[node].boot, father)
                for node, father in zip(nodes, fathers, strict=True)
            ]
        )

    def receive_ledger(self, ledger: Ledger) -> None:
        first = ledger.first
        if first.epoch < self.promised or not self.fits(first.config):
            return
        self.hear(ledger.sender)
        if first.epoch > self.adopted:
            self.adopt(first, ledger.sender)
        if self.votes():
            self.answer(first.epoch)
            self.send(Confirm(ledger.sender, first.epoch, ledger.boot, ledger.sent, self.boot))

    # -- what the layer does -------------------------------------------------------------------

    def inform(self, node: int) -> None:
        raise NotImplementedError

    def ask_ledger(self, node: int) -> None:
        raise NotImplementedError

    def adopt(self, first: FirstLedger, holder: int) -> None:
        raise NotImplementedError

    def mint(self) -> None:
        raise NotImplementedError
