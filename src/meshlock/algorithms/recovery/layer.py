"""Recovery: what keeps k permits k when nodes crash, restart and fall silent.

**Problem.** The papers assume that no node fails. Here any node may stop at any moment and
come back with or without its memory, and any message may be late, lost or doubled. Then the
token may be gone, a client may be gone with its permits, and a part of the network may be
cut off and not know it.

**Idea.** One mechanism for all of these: a new *epoch*. Permits are only good under a
*lease*, which a quorum of the members renews, and a member that has promised a higher
epoch renews no lower one. A node that sees no progress proposes an epoch; members promise it
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

**Parts**, each of which says at its top which rules live there and what it may not touch:

====================  ======================================================================
:mod:`.member`        promises, leases, reports, who the members are; knows no algorithm
:mod:`.proposal`      what a proposer concludes from reports
:mod:`.holding`       grants, and the token with its ledger
:mod:`.epoch`         the node inside and all that is forgotten with it, of one epoch, with
                      :mod:`.gate` (what may pass), :mod:`.keeper` (the token's way and what comes
                      back; grants to clients of other nodes)
:mod:`.waiting`       clients that wait, whatever epoch it is
:mod:`.catching_up`   nodes that missed an epoch
:mod:`.timers`        when to renew, repeat, propose and close; decides nothing about safety
====================  ======================================================================

The layer itself routes messages to them by a table, and makes the parts of a new epoch.

**The rules** are marked by number where they act. docs/how-it-works/recovery.md has them in full:

1.  The token's state and lease belong to the layer and go with every message that carries it.
2.  Adopting an epoch makes a new node inside; stand-ins ask for what is out, then clients ask anew.
3.  A grant of the first ledger ends at the founder; a lapsing one when its time is over.
4.  The first ledger never changes: any node may hand it on.
5.  HELLO goes over every link that forms, and on adoption; it says who takes part.
6.  In fixed networks messages for an epoch that is not adopted yet wait for it.
7.  Messages inside are for one epoch and one life; after a promise the node inside is not called.
8.  What needs the token waits until it is minted and its lease runs.
9.  Permits return by number, to the token or ahead of it.
10. A token on a failed link arrives late, once, or never; its sender does not take it back.
11. A client that gave up too late is let in and leaves at once.
12. The ledger, or the disk, says whether this life of a node takes part.
13. Or the ledger as it is now does, where links may change or nodes may come and go.
14. Reasons to propose: see :mod:`.timers`.
15. While more is out than there are permits, the pool pauses.
16. A node that does not know who the members are has no vote; a pool may be made by one node.
17. A grant may be lent to a client of another node while the token stays.
18. All grants whose lease runs are reported, and kept if the token's ledger names them.
19. A token that is reported late is not replaced.
20. A node in its quiet period reports what its present life has; that is no vote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from meshlock.algorithms.actor import (
    WAKE,
    ChoosingActor,
    Effect,
    Frozen,
    Lost,
    Message,
    OpenActor,
    choices_of,
)
from meshlock.algorithms.amounts import first_of, is_part, positive
from meshlock.algorithms.recovery.catching_up import CatchingUp
from meshlock.algorithms.recovery.epoch import VARIABLES_OF_EPOCH, EpochState
from meshlock.algorithms.recovery.holding import HOLDING_VARIABLES, HeldToken
from meshlock.algorithms.recovery.member import MEMBER_VARIABLES, PoolMember
from meshlock.algorithms.recovery.messages import (
    ROUTES,
    AskLedger,
    Confirm,
    Conflict,
    Copy,
    Inner,
    Ledger,
    Promise,
    Renew,
)
from meshlock.algorithms.recovery.records import (
    MINTING,
    NEVER,
    NO_EPOCH,
    Change,
    FirstLedger,
    Life,
    TokenState,
    fence_number,
)
from meshlock.algorithms.recovery.terms import Notes, Terms
from meshlock.algorithms.recovery.timers import Timers
from meshlock.algorithms.recovery.waiting import WaitingClients
from meshlock.algorithms.subclassing import mypyc_attr


def layer(me: int, out: list[Effect], terms: Terms) -> Layer:
    """A node of this pool; with a mistake, if its algorithm is a mutant of recovery."""
    made = (LAYERS.get(terms.algorithm.name, Layer))(me, out, terms)
    assert isinstance(made, Layer)
    return made


@mypyc_attr(allow_interpreted_subclasses=True)
class Layer(ChoosingActor):
    """A node whose permits are under leases, so that it may crash: it needs a clock and a disk.

    Rule 2 as far as an epoch ends; all else is routed. It touches no field of an epoch's parts but
    what it has to pass on.
    """

    def __init__(self, me: int, out: list[Effect], terms: Terms) -> None:
        super().__init__(me, out)
        self.terms = terms
        self.notes = Notes()
        self.member = PoolMember(me, out, terms)
        self.clients = WaitingClients(terms.units)
        self.news = CatchingUp(self.member)
        self.epoch = EpochState(self.member, self.clients, self.news, self.notes, [])
        self.timers = Timers(self.epoch)

    def receive(self, message: Message) -> None:
        if isinstance(message, Inner):
            self.epoch.receive_inner(message)
        else:
            part, handler = RECEIVERS[type(message)]
            getattr(part(self), handler)(message)

    # -- clock and links ---------------------------------------------------------------------------

    def tell_time(self, now: int) -> None:
        self.member.now = now

    def cannot_reach(self, nodes: set[int]) -> None:
        self.member.unreachable = nodes

    def link_up(self, peer: int) -> None:
        self.member.near.add(peer)
        if self.terms.fixed and len(self.member.members) == 0:
            self.news.ask_ledger(peer)
        elif not self.terms.fixed:
            self.epoch.greet(peer)

    def link_down(self, peer: int) -> None:
        self.member.near.discard(peer)
        if not self.terms.fixed:
            self.member.hellos.pop(peer, None)
            self.epoch.unlink(peer)

    # -- a life begins -----------------------------------------------------------------------------

    def start(self, life: object = None) -> None:
        assert isinstance(life, Life)
        member = self.member
        member.start(life)
        if life.founds:
            member.quiet_until = member.now
            state = TokenState(NO_EPOCH, 0, member.config.permits, (), 0)
            member.holding.token = HeldToken(state, NEVER)
            member.propose(None)
            self.close()

    # -- clients -----------------------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.resume(client, want, priority, 0)

    def resume(self, client: int, want: int, priority: int, age: int) -> None:
        self.clients.add(client, want, priority, age)
        if self.epoch.active():
            self.epoch.submit(client)

    def withdraw(self, client: int) -> bool:
        """A waiting client gives up; False if it does not wait (any more)."""
        if client not in self.clients.waiting:
            return False
        self.epoch.withdraw(client)
        return True

    def change_priority(self, client: int, want: int, priority: int) -> bool:
        if client not in self.clients.waiting:
            return False
        return self.epoch.change_priority(client, want, priority)

    def release(self, client: int) -> None:
        grants = self.member.grants
        for fence, grant in grants.items():
            if grant.client == client:
                del grants[fence]
                self.epoch.end(fence, grant, grant.permits, 0)
                return

    def release_some(self, client: int, permits: int) -> None:
        """The last of its slots."""
        for fence, grant in self.member.grants.items():
            if grant.client == client and is_part(permits, grant.permits):
                grant.permits -= permits
                grant.slots = first_of(grant.slots, grant.permits)
                self.epoch.end(fence, grant, permits, grant.permits)
                return

    # -- a new epoch -------------------------------------------------------------------------------

    def propose(self, change: Change | None = None) -> None:
        if self.member.votes():
            self.member.propose(change)
            self.member.collect(self.terms.nodes)

    def receive_promise(self, promise: Promise) -> None:
        if self.member.receive_promise(promise):
            self.epoch.mint()

    def vote(self) -> None:
        """Rule 20: the quiet period is over, and so is what former lives had."""
        member = self.member
        if member.owes_vote and not member.quiet():
            member.owes_vote = False
            member.last_report = (member.last_report or member.report())._replace(votes=True)
            founder = member.promised.proposer
            member.send(Promise(founder, member.promised, member.last_report))

    def close(self) -> None:
        """A quorum has promised: write the ledger."""
        member, proposal = self.member, self.member.proposal
        if proposal is None or not proposal.may_close():
            return
        first = proposal.close(member.now, self.me)
        self.adopt(first, self.me)
        member.answered = proposal.epoch
        member.send_ledger(first)
        if member.extend():
            self.epoch.mint()

    def receive_ledger(self, ledger: Ledger) -> None:
        member, first = self.member, ledger.first
        if first.epoch < member.promised or not member.fits(first.config):
            return
        member.hear(ledger.sender)
        if first.epoch > member.adopted:
            self.adopt(first, ledger.sender)
        member.confirm(ledger.sender, first.epoch, ledger.boot, ledger.sent)

    def receive_ask(self, ask: AskLedger) -> None:
        inner = self.epoch.inner
        self.news.receive_ask(ask, inner.number_of(ask.node) if isinstance(inner, OpenActor) else 0)

    def receive_copy(self, copy: Copy) -> None:
        """Like a LEDGER, but it renews nothing: nobody waits for our answer."""
        member, first = self.member, copy.first
        if first.epoch < member.promised:
            return
        if copy.ledger is not None and copy.boot != member.boot:
            return
        if not member.fits(first.config):
            self.out.append(Conflict(copy.sender, first.config))
            return
        if copy.ledger is not None:
            member.hear(copy.sender)
        if first.epoch > member.adopted:
            self.adopt(first, first.epoch.proposer)
        epoch, holding = self.epoch, member.holding
        if epoch.inner is None and first.epoch == member.adopted and self.news.is_new_to(copy):
            self.news.present(copy.hop)
            epoch.loans.begin_after(copy.grants)
            epoch.take_part(first, copy.sender, copy.hop, copy.number)
        if copy.hop > holding.holder_hop:
            holding.holder = copy.sender
            holding.holder_hop = copy.hop
            epoch.tell_holder()

    def adopt(self, first: FirstLedger, holder: int) -> None:
        """Rules 2 and 4: what is known of the epoch before is dropped, but for how long clients
        have waited, in grants of all nodes if the old token was found."""
        member, before = self.member, self.epoch
        grants = 0
        if member.first is not None and first.before == member.adopted:
            grants = member.first.stand_ins + first.grants
        self.clients.epoch_ends(before.inner, grants)
        member.adopt(first, holder)
        epoch = EpochState(member, self.clients, self.news, self.notes, before.early)
        self.epoch = self.timers.epoch = epoch
        epoch.keeper.go_on_with(first.kept)
        if self.news.may_take_part(first):
            epoch.take_part(first, first.epoch.proposer, MINTING)
        else:
            epoch.early = []
            epoch.say_hello()
            for client in self.clients.waiting:
                self.clients.keep_age(client)
        if holder != self.me:
            self.repeat()

    # -- leases ------------------------------------------------------------------------------------

    def renew(self) -> None:
        if self.member.renew():
            self.epoch.mint()

    def receive_renew(self, renew: Renew) -> None:
        if self.member.receive_renew(renew):
            self.epoch.learn(renew.sender, renew.epoch, renew.hop)

    def receive_confirm(self, confirm: Confirm) -> None:
        if self.member.receive_confirm(confirm):
            self.epoch.mint()

    # -- time --------------------------------------------------------------------------------------

    def wake(self, chance: float) -> None:
        """Do what is due; ``chance`` is drawn from 0 to 1."""
        timers = self.timers
        timers.begin()
        self.expire()
        timers.observe()
        if timers.is_time_to_renew():
            self.renew()
        if timers.is_time_to_repeat():
            self.repeat()
            timers.repeat_news()
        timers.autopilot.offer()
        if timers.is_time_to_close():
            self.close()
        if timers.is_time_to_propose(chance):
            self.propose(timers.wanted)
            if timers.is_time_to_close():
                self.close()

    def timer(self, name: str, chance: float = 0.0) -> None:
        if name == WAKE:
            self.wake(chance)
        else:
            TIMERS[name](self)

    def timer_at(self) -> int:
        return self.timers.wake_at()

    def repeat(self) -> None:
        """Messages get lost: say again what nobody has acted upon."""
        member, epoch = self.member, self.epoch
        if member.adopted == member.promised:
            epoch.repeat_returns(self.timers.young_returns())
        epoch.keeper.send_again(epoch.linked)
        epoch.loans.acknowledge(True)
        member.collect(self.terms.nodes)
        self.news.ask_missed(epoch.inner is not None, len(self.clients.waiting) > 0)

    def expire(self) -> None:
        """End what is over, and acknowledge what came."""
        member, epoch, now = self.member, self.epoch, self.member.now
        self.vote()
        epoch.keeper.acknowledge()
        epoch.loans.acknowledge(False)
        for fence, grant in sorted(member.grants.items()):
            if grant.until <= now:
                del member.grants[fence]
                self.out.append(Lost(grant.client, fence_number(fence)))
                epoch.end(fence, grant, grant.permits, 0)
        proposal = member.proposal
        if proposal is not None and proposal.closed:
            end = proposal.until if proposal.confirmed else proposal.told_at + self.terms.lease
            if end <= now:
                member.proposal = None
            else:
                epoch.mint()
        if len(epoch.keeper.former) > 0 and not member.quiet():
            epoch.keeper.returning.update(epoch.keeper.former)
            epoch.keeper.former = {}
            self.repeat()
        epoch.let_lapse()
        if epoch.active():
            epoch.ask_more()

    # -- what observers may ask --------------------------------------------------------------------

    @property
    def variables(self) -> tuple[str, ...]:
        return VARIABLES

    def freeze(self) -> Frozen:
        """With all times relative to now."""
        now, member = self.member.now, self.member
        return (
            member.freeze()
            + HOLDING_VARIABLES.freeze(member.holding, now)
            + (self.clients.freeze(),)
            + self.epoch.freeze(now)
        )

    def thaw(self, state: Frozen) -> None:
        """Become the node that :meth:`freeze` described, at time 0."""
        start = self.member.thaw(state)
        start = HOLDING_VARIABLES.thaw(self.member.holding, state, start)
        self.clients.thaw(state[start])
        self.epoch.thaw(state, start + 1)
        self.timers.autopilot.offers = {}

    def choices(self) -> int:
        inner = self.epoch.inner
        return choices_of(inner) if inner is not None else 1

    def choose(self, choice: int) -> None:
        inner = self.epoch.inner
        if isinstance(inner, ChoosingActor) and choice < inner.choices():
            inner.choose(choice)

    def tokens(self) -> int:
        return 1 if self.member.usable() else 0

    def free_permits(self) -> int:
        token = self.member.holding.token
        return positive(token.free) if token is not None and self.member.usable() else 0

    def known_priority(self) -> int | None:
        inner = self.epoch.inner
        return inner.known_priority() if inner is not None else None

    def altitude(self) -> tuple[int, ...] | None:
        return self.epoch.inner.altitude() if self.epoch.inner is not None else None

    def waited(self, client: int, grants: int = 0) -> int:
        waiting, inner = self.clients.waiting, self.epoch.inner
        age = waiting[client][2] if client in waiting else 0
        return max(age, inner.waited(client, grants) if inner is not None else 0)


TIMERS: Final[dict[str, Callable[[Layer], object]]] = {
    "expire": lambda layer: layer.expire(),
    "renew": lambda layer: layer.renew(),
    "repeat": lambda layer: layer.repeat(),
    "propose": lambda layer: layer.propose(),
    "close": lambda layer: layer.close(),
}
"""What the checker may do at any moment. Else it is :mod:`.timers` that says when."""

LAYERS: Final[dict[str, type]] = {}
"""Of mutants of recovery, by their names."""

VARIABLES = (
    *MEMBER_VARIABLES.names,
    *HOLDING_VARIABLES.names,
    "waiting",
    *VARIABLES_OF_EPOCH,
)

PARTS: Final[dict[str, Callable[[Layer], object]]] = {
    "member": lambda layer: layer.member,
    "layer": lambda layer: layer,
    "epoch": lambda layer: layer.epoch,
    "keeper": lambda layer: layer.epoch.keeper,
    "news": lambda layer: layer.news,
    "autopilot": lambda layer: layer.timers.autopilot,
}

RECEIVERS: Final = {
    kind: (PARTS[part], f"receive_{kind.kind.lower()}")
    for part, kinds in ROUTES.items()
    for kind in kinds
}
