"""One epoch at one node: the node inside, and all that must be forgotten with it.

Rules 2, 3, 5 to 9, 11, 15 and 17 as far as they concern the node inside. An :class:`EpochState` is
made when an epoch is adopted and dropped with the next, so nothing in it is ever reset. It makes no
promise, closes no proposal and decides nothing about time: it asks its :class:`~.member.PoolMember`
whether the token may be used.
"""

from __future__ import annotations

from typing import Any, cast

from meshlock.algorithms.actor import NIL, Actor, Frozen, OpenActor, choices_of
from meshlock.algorithms.amounts import fits
from meshlock.algorithms.recovery.catching_up import CatchingUp
from meshlock.algorithms.recovery.gate import GATE_VARIABLES, Gate, frozen_effect, thawed_effect
from meshlock.algorithms.recovery.holding import HeldToken, OwnGrant
from meshlock.algorithms.recovery.inside import Inside
from meshlock.algorithms.recovery.keeper import (
    KEEPER_VARIABLES,
    LOANS_VARIABLES,
    Loans,
    TokenKeeper,
)
from meshlock.algorithms.recovery.member import PoolMember
from meshlock.algorithms.recovery.messages import (
    Forgotten,
    Hello,
    Inner,
    Received,
    Return,
    Returned,
)
from meshlock.algorithms.recovery.records import (
    GRANTS,
    MINTING,
    NEVER,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
    TokenState,
    new_part,
    same,
)
from meshlock.algorithms.recovery.terms import Notes
from meshlock.algorithms.recovery.waiting import WaitingClients
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import Variables, by_key, special, unordered

MOST_EARLY = 1000
AT_ONCE = 500
"""The most requests that are made anew in one step when an epoch begins."""


@mypyc_attr(allow_interpreted_subclasses=True)
class EpochState:
    def __init__(
        self,
        member: PoolMember,
        clients: WaitingClients,
        news: CatchingUp,
        notes: Notes,
        early: list[Inner],
    ) -> None:
        terms = member.terms
        self.member = member
        self.clients = clients
        self.news = news
        self.notes = notes
        self.terms = terms
        self.many_clients = terms.algorithm.serves.many_clients
        self.inside = Inside(member.me, terms)
        self.loans = Loans(member, notes)
        self.keeper = TokenKeeper(member, self.inside, self.loans, notes)
        self.gate = Gate(clients, self.keeper)
        self.inner: Actor | None = None  # None: we take no part
        self.chooses = False  # does it leave anything to choose?
        self.serving = NIL  # of an algorithm that takes one client at a time
        # at the founder: clients inside, and their permits, that stand for entries of the ledger
        self.stand_ins: dict[Fence, tuple[int, int]] = {}
        self.lapsing: set[Fence] = set()  # of those: what ends when its lease must be over ...
        self.lapsed_at = NEVER  # ... which is then
        self.early = early  # messages for a node inside that is not there yet
        self.linked: set[int] = set()  # neighbours that the node inside knows
        self.thawed_for: FirstLedger | None = None  # a node inside that can be used again
        self.thawed: Actor | None = None

    def active(self) -> bool:
        """May the node inside be called? Not after a promise (rule 7)."""
        return self.inner is not None and same(self.member.adopted, self.member.promised)

    # -- clients ask -------------------------------------------------------------------------------

    def submit(self, client: int) -> None:
        """A client waits: have it ask the node inside, if it is its turn."""
        if not self.many_clients:
            self.serve_next()
        elif self.may_ask(client):
            self.ask_inside(client)

    def may_ask(self, client: int) -> bool:
        """Rule 15; and what is more than there are permits can only wait for another epoch."""
        return not self.member.paused() and fits(
            self.gate.wants(client), self.member.config.permits
        )

    def serve_next(self) -> None:
        """Where the algorithm takes one client at a time: the next of ours, if none is in."""
        if self.serving == NIL and len(self.clients.waiting) > 0 and self.active():
            first = self.clients.line.first()
            if self.may_ask(first):  # where the algorithm takes one at a time, all want as much
                self.serving = first
                self.ask_inside(first)

    def ask_inside(self, client: int) -> None:
        assert self.inner is not None
        want, priority, age, _ = self.clients.waiting[client]
        self.inner.resume(client, want, priority, age)
        self.carry_out()

    def ask_more(self) -> None:
        """Those that waited through a change of epoch; of a crowd the first, then the next."""
        clients = self.clients
        for _ in range(min(AT_ONCE, len(clients.unasked))):
            if len(clients.unasked) > 0:
                self.submit(clients.next_unasked())
        if len(clients.unasked) == 0:
            clients.outgoing = None

    def has_asked(self, client: int) -> bool:
        """The node inside, for a client that waits."""
        if not self.many_clients:
            return self.serving == client
        return self.may_ask(client) and client not in self.clients.unasked.places

    def withdraw(self, client: int) -> None:
        want, asked = self.clients.waiting[client][0], self.has_asked(client)
        self.clients.remove(client)
        if self.active() and asked:
            assert self.inner is not None
            if self.inner.withdraw(client):
                self.carry_out()
                self.is_served(client)
            else:
                self.gate.leaving[client] = want  # rule 11

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        if self.active() and self.has_asked(client):
            assert self.inner is not None
            changed = self.inner.change_priority(client, want, priority)
            self.carry_out()
            if not changed and self.terms.algorithm.serves.priorities and not self.many_clients:
                return False
            # Else it was let in inside, or priorities count only here: if it has to ask anew.
        if client in self.clients.waiting:  # else it was let in
            self.clients.change(client, want, priority)
        return True

    # -- clients leave -----------------------------------------------------------------------------

    def end(self, fence: Fence, grant: OwnGrant, permits: int, left: int) -> None:
        """A grant is over, or a part of it: the ledger must hear of it, unless its epoch is over
        too."""
        adopted = self.member.adopted
        if not same(grant.epoch, adopted):
            return
        self.keeper.returning[fence] = left
        if not self.active():
            return  # a node that promised has reported it: the next ledger tells us what to do
        if same(fence.epoch, adopted):
            self.leave_inside(grant.client, fence, permits, left)
        else:
            self.return_kept(fence, left)

    def leave_inside(self, client: int, fence: Fence, permits: int, left: int = 0) -> None:
        inner = self.inner
        assert inner is not None
        had = inner.tokens() > 0
        if left > 0:
            inner.release_some(client, permits)
        else:
            inner.release(client)
        self.keeper.bring_back(had, (new_part(fence, left, permits),))
        self.count_lent()
        self.carry_out()
        if left == 0:
            self.is_served(client)

    def is_served(self, client: int) -> None:
        if self.serving == client:
            self.serving = NIL
            self.serve_next()

    def carry_out(self) -> None:
        """Do what the node inside asked for, in order, as far as the token's state allows."""
        if len(self.inside.out) > 0:
            for client, fence, want in self.gate.pass_on():
                self.leave_inside(client, fence, want)

    # -- grants to clients of other nodes ----------------------------------------------------------

    def count_lent(self, anew: bool = False) -> None:
        """Rule 17: the token does not leave while a grant may be under way."""
        if (self.loans.changed or anew) and isinstance(self.inner, OpenActor):
            self.inner.unacknowledged(len(self.loans.lent) + self.gate.withheld_loans())
        self.loans.changed = False

    def receive_received(self, message: Received) -> None:
        if self.loans.receive_received(message):
            self.count_lent(True)
            self.ask_again()

    # -- messages inside ---------------------------------------------------------------------------

    def receive_inner(self, message: Inner) -> None:
        """Rules 6 and 7."""
        member, terms, inner = self.member, self.terms, self.inner
        if not member.is_addressed(message.boot):
            return
        ours = same(message.epoch, member.adopted)
        early = not ours and message.epoch > member.adopted and message.epoch >= member.promised
        if terms.fixed and early:
            self.wait_for_epoch(message)
            return
        if not ours and message.epoch < member.adopted:
            self.news.inform(message.sender)
        if inner is None and terms.open and message.epoch == member.adopted == member.promised:
            self.wait_for_epoch(message)
            return
        if inner is None or not ours or not self.active():
            return
        carries = message.tokens() == 1
        if not terms.fixed and not carries and message.sender not in self.linked:
            return  # of a link that has failed since
        had = inner.tokens() > 0
        if carries and not self.keeper.accept(message):
            return
        if len(message.returned) > 0:
            self.keeper.bring_back(had, message.returned)
        lent = message.lent
        if lent is not None:
            if not self.loans.borrow(message, lent):
                return
            self.keeper.pending.add(new_part(lent.fence, 0, lent.permits))
        self.count_lent()
        inner.receive(self.inside.opened(message))
        self.carry_out()
        self.loans.arrived = None

    def wait_for_epoch(self, message: Inner) -> None:
        """Rule 6. What is good for a time cannot wait; nobody sends it who was not asked, in that
        epoch."""
        if not message.is_timed() and len(self.early) < MOST_EARLY:
            self.early.append(message)
        self.news.ask_ledger(message.sender)

    # -- the epoch begins --------------------------------------------------------------------------

    def take_part(self, first: FirstLedger, holder: int, hop: int, number: int = NIL) -> None:
        """Rule 2."""
        self.inner = self.inside.node(first, holder, hop, number)
        self.chooses = choices_of(self.inner) > 1
        proposal = self.member.proposal
        if proposal is not None and proposal.epoch == first.epoch:
            for entry in (*proposal.kept, *proposal.lapsing):
                self.let_stand_in(entry)
        self.say_hello()
        self.clients.ask_anew()
        self.ask_more()
        early, self.early = self.early, []
        for message in early:
            if message.epoch == self.member.adopted:
                self.receive_inner(message)

    def let_stand_in(self, entry: Entry) -> None:
        assert self.inner is not None
        client = NIL - 1 - len(self.stand_ins)
        self.stand_ins[entry.fence] = (client, entry.permits)
        if entry.lapsing:
            self.lapsing.add(entry.fence)
        if self.member.paused():
            return
        if not self.many_clients:
            self.serving = client
        self.inner.request(client, entry.permits, 0)
        self.carry_out()

    def mint(self) -> None:
        """Make the token of our proposal: at once if the old one was found, else when every lease
        is over that a member answered before it promised."""
        member, proposal = self.member, self.member.proposal
        if proposal is None or not proposal.confirmed or proposal.until <= member.now:
            return
        waited_out = member.now >= proposal.closed_at + self.terms.wait
        if proposal.usable is None and not waited_out:
            return
        member.proposal = None
        ledger = self.notes.minted(proposal.kept + proposal.lapsing)
        free = member.config.permits - sum([entry.permits for entry in ledger])
        member.hop_seen = (proposal.epoch, 0)
        member.holding.holder_hop = 0
        until = NEVER if proposal.late else proposal.until  # those inside do not know what is out
        state = TokenState(proposal.epoch, 0, free, ledger, 0)
        member.holding.token = HeldToken(state, until)
        self.lapsed_at = proposal.closed_at + self.terms.wait
        self.keeper.absorb()
        self.count_lent()
        self.let_lapse()
        for client, fence, want in self.gate.flush():
            self.leave_inside(client, fence, want)

    # -- grants of the first ledger ----------------------------------------------------------------

    def let_lapse(self) -> None:
        """Rule 3."""
        made = self.active() and self.member.proposal is None
        if len(self.lapsing) > 0 and made and self.member.now >= self.lapsed_at:
            for fence in sorted(self.lapsing):
                self.leave_stand_in(fence, 0)

    def return_kept(self, fence: Fence, left: int) -> None:
        """Rule 3."""
        member = self.member
        founder = member.adopted.proposer
        if founder == member.me:
            self.leave_stand_in(fence, left)
        else:
            member.send(Return(founder, member.adopted, fence, left, member.me, GRANTS))

    def leave_stand_in(self, fence: Fence, left: int) -> None:
        """What is left goes by what the owner says, so that twice is as good as once."""
        client, permits = self.stand_ins.get(fence, (NIL, 0))
        if permits <= left or not self.active():
            return
        if left > 0:
            self.stand_ins[fence] = (client, left)
        else:
            del self.stand_ins[fence]
            self.lapsing.discard(fence)
        if self.member.paused():
            self.keeper.bring_back(True, (new_part(fence, left, permits - left),))
            self.count_lent()
        else:
            self.leave_inside(client, fence, permits - left, left)

    def receive_return(self, message: Return) -> None:
        member, holding = self.member, self.member.holding
        if member.adopted != member.promised or message.epoch > member.adopted:
            return
        fence, left = message.fence, message.left
        if message.epoch < member.adopted:
            self.news.inform(message.node)
            return
        if self.stand_ins.get(fence, (NIL, 0))[1] > left and fence not in self.lapsing:
            self.leave_stand_in(fence, left)
        elif holding.token is not None:
            if holding.token.left(fence) <= left:
                member.send(Returned(message.node, message.epoch, ((fence, left),)))
        elif message.node != member.me and holding.holder_hop > message.hop:
            hop = holding.holder_hop
            for node in member.onward():
                member.send(Return(node, message.epoch, fence, left, message.node, hop))

    def repeat_returns(self, young: set[Fence]) -> None:
        """Messages get lost; but the release of a grant that is ``young`` is hardly there."""
        member = self.member
        for fence, left in sorted(self.keeper.returning.items()):
            if fence in young:
                continue
            if fence.epoch != member.adopted:
                self.return_kept(fence, left)
            for node in member.onward():
                if fence in self.keeper.returning:
                    hop = member.holding.holder_hop
                    member.send(Return(node, member.adopted, fence, left, member.me, hop))

    # -- nodes that come and go --------------------------------------------------------------------

    def open_inner(self) -> OpenActor | None:
        """The node inside, if it may be called and is of an algorithm whose nodes come and go."""
        return self.inner if isinstance(self.inner, OpenActor) and self.active() else None

    def learn(self, holder: int, epoch: Epoch, hop: int) -> None:
        """That node has the token, or will have it."""
        member, holding = self.member, self.member.holding
        if epoch > member.adopted or self.inner is None:
            self.news.ask_ledger(holder)
        if epoch == member.adopted and hop > holding.holder_hop:
            holding.holder = holder
            holding.holder_hop = hop
        sent = holding.unaccepted
        if sent is not None and epoch == sent.state.epoch and hop >= sent.state.hop:
            holding.clear_unaccepted()
        if epoch == member.adopted and hop == holding.holder_hop:
            self.tell_holder()

    def tell_holder(self) -> None:
        """An algorithm that is open may go by what renewals say."""
        inner, holding = self.open_inner(), self.member.holding
        if inner is not None and holding.holder_hop > MINTING:
            inner.holder_is(holding.holder, holding.holder_hop)

    def forget(self, node: int) -> bool:
        """It cannot be reached. True if it had asked for something here."""
        inner = self.open_inner()
        if inner is None:
            return False
        asked = inner.forget(node)
        self.carry_out()
        return asked

    def receive_forgotten(self, message: Forgotten) -> None:
        """We need not have noticed that we were gone."""
        if message.epoch == self.member.adopted:
            self.ask_again()

    def ask_again(self) -> None:
        inner = self.open_inner()
        if inner is not None:
            inner.ask_again()
            self.carry_out()

    # -- links -------------------------------------------------------------------------------------

    def say_hello(self) -> None:
        """Rule 5."""
        member = self.member
        if not self.terms.fixed:
            for peer in sorted(member.near):
                self.greet(peer)
            for peer in sorted(member.near):
                self.link_inside(peer)

    def greet(self, peer: int) -> None:
        member = self.member
        member.send(Hello(peer, member.adopted, member.boot, self.inner is not None))

    def receive_hello(self, hello: Hello) -> None:
        member, peer = self.member, hello.sender
        told = (hello.epoch, hello.boot, hello.inside)
        if self.terms.open and hello.epoch >= member.adopted:
            member.hellos[peer] = told
        if self.terms.fixed or peer not in member.near or member.hellos.get(peer) == told:
            return
        self.unlink(peer)
        member.hellos[peer] = told
        if hello.epoch > member.adopted and hello.epoch >= member.promised:
            self.news.ask_ledger(peer)
        self.link_inside(peer)

    def link_inside(self, peer: int) -> None:
        hello = self.member.hellos.get(peer)
        if hello is None or self.inner is None or peer in self.linked:
            return
        epoch, _, inside = hello
        if self.active() and inside and epoch == self.member.adopted:
            self.linked.add(peer)
            self.inner.link_up(peer)
            self.carry_out()

    def unlink(self, peer: int) -> None:
        if peer not in self.linked:
            return
        self.linked.discard(peer)
        if self.active() and self.inner is not None:
            for message in self.gate.take_withheld(peer):  # rule 8: it never left
                self.inner.undelivered(message)
            self.inner.link_down(peer)
            self.carry_out()

    # -- what observers may ask --------------------------------------------------------------------

    def disagrees(self) -> bool:
        """Is the token here, but not for the node inside, or with other permits?"""
        inner, token = self.inner, self.member.holding.token
        if token is None or inner is None or not self.member.usable() or self.member.paused():
            return False
        if len(self.gate.withheld) > 0 or inner.tokens() == 0:
            return True
        return inner.free_permits() != token.free

    def freeze(self, now: int) -> Frozen:
        return (
            EPOCH_VARIABLES.freeze(self, now)
            + GATE_VARIABLES.freeze(self.gate, now)
            + KEEPER_VARIABLES.freeze(self.keeper, now)
            + LOANS_VARIABLES.freeze(self.loans, now)
        )

    def thaw(self, frozen: Frozen, start: int) -> None:
        """The member has thawed before."""
        start = EPOCH_VARIABLES.thaw(self, frozen, start)
        start = GATE_VARIABLES.thaw(self.gate, frozen, start)
        start = KEEPER_VARIABLES.thaw(self.keeper, frozen, start)
        LOANS_VARIABLES.thaw(self.loans, frozen, start)
        self.count_lent(True)


def freeze_inner(part: EpochState, now: int) -> Frozen:
    return () if part.inner is None else part.inner.freeze()


def thaw_inner(part: EpochState, frozen: Any) -> None:
    if not frozen:
        part.inner = None
        return
    first = part.member.first
    assert first is not None
    if part.thawed is None or part.thawed_for != first:
        part.thawed = part.inside.node(first, first.epoch.proposer, MINTING)
        part.thawed_for = first
    part.inner = part.thawed
    part.inner.thaw(frozen)


def freeze_lapsed_at(part: EpochState, now: int) -> int:
    return max(0, part.lapsed_at - now) if len(part.lapsing) > 0 else 0


def freeze_early(part: EpochState, now: int) -> Frozen:
    return tuple([frozen_effect(message) for message in part.early])


def thaw_early(part: EpochState, frozen: Any) -> None:
    part.early = [cast(Inner, thawed_effect(part.inside, one)) for one in frozen]


EPOCH_VARIABLES = Variables(
    special("inner", freeze_inner, thaw_inner),
    "serving",
    by_key("stand_ins"),
    unordered("lapsing"),
    special("lapsed_at", freeze_lapsed_at),
    special("early", freeze_early, thaw_early),
    unordered("linked"),
)
VARIABLES_OF_EPOCH = (
    *EPOCH_VARIABLES.names,
    *GATE_VARIABLES.names,
    *KEEPER_VARIABLES.names,
    *LOANS_VARIABLES.names,
)
