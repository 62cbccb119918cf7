"""What nodes may say of a pool with members, before its layer hears it.

Names are proved (:mod:`meshlock.live.links.identity`), so a node can lie about itself only; here
is what it may not say although it says so itself. Nothing of this ever happens between nodes that
follow the protocol, but for those who missed who the members are now: they are told, and ask.

*Epochs* may be ahead of the clock on the wall, or of what was known when this life began and the
seconds since, by :data:`~meshlock.live.machine.limits.EPOCH_AHEAD` and no more: a node that used up
their numbers would end the pool.

*Members* alone propose and begin epochs, each its own. What is not known to have begun is learned
from members.

*Reports* of nodes that are no members count for what they have, and not for who
the members are, or which epochs there were. A token that is claimed twice, or whose ledger does not
name what others hold, is not found: then it is waited for a lease.

*Permits* come back from whom they were granted to (:mod:`.proofs`).

*Grants* to clients of this node are believed of nodes that may have the token, as far as possible:
for this node, of permits that there are, for a lease. Of its own grants a node says who has them,
and nothing by which others could return them.

**What is missing then, and what the layer makes of it.** It must never conclude that a grant is
over, a token is gone, or a majority has spoken.

========================  ==========================================================================
taken out or dropped      the layer concludes
========================  ==========================================================================
a token that is claimed   that it is not found: one lease is waited, grants of its epoch are kept
twice, with its sender's
what is not acknowledged
grants of no members,     nothing: they *lapse* instead; left out they would be over (rule 18)
more than there can be
the epochs and members    nothing: of every majority a member knows them, and until one has spoken
that no members know      the report is dropped; who has not reported is asked again
a whole message           what it would if it were lost. All that recovery says is best effort;
                          tokens and grants are acknowledged, and what is not leads to an epoch
========================  ==========================================================================

tests/algorithms/test_validated_layer.py has random worlds judged with all this in the way.

What members, and the token's holder, can do all the same is said in docs/operate/trust.md. Here
messages are refused, and what they report is left out; nothing is sent but questions.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from time import time
from typing import Any, Final

from meshlock.algorithms.actor import Message
from meshlock.algorithms.recovery.keeper import arrives_until
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import (
    Accepted,
    AskLedger,
    Confirm,
    Copy,
    Higher,
    Inner,
    Ledger,
    Promise,
    Propose,
    Received,
    Refuse,
    Renew,
    Return,
    Suggest,
    content,
)
from meshlock.algorithms.recovery.proposal import vouches
from meshlock.algorithms.recovery.records import (
    GRANTS,
    MOST_GRANTS,
    NO_EPOCH,
    Entry,
    Epoch,
    Report,
    TokenState,
    same,
)
from meshlock.live.links.mesh import Mesh
from meshlock.live.links.rate_limit import keep_latest
from meshlock.live.machine.limits import EPOCH_AHEAD, MOST_NODES
from meshlock.live.pools.pool_configuration import ERA
from meshlock.live.pools.proofs import Proofs, is_note

SUGGESTS_AGAIN = 4  # leases, until somebody who is no member may ask for one more epoch
MOST_HOPS = 2**28  # of one epoch, which makes fewer grants
COUNTED = 2 * MOST_GRANTS
"""Grants of one epoch, with those that stand in for what was kept from the one before."""

MOST_NUMBER = 2**52  # of a request; a node that comes late begins above


CLAIMS: Final[dict[type, Callable[[Any], Epoch]]] = {
    **dict.fromkeys((Renew, Confirm, Propose, Higher, Suggest), attrgetter("epoch")),
    **dict.fromkeys((Ledger, Copy), attrgetter("first.epoch")),
}
"""Messages that name an epoch which may be new to us."""

OWN: Final = (Propose, Ledger)  # only the proposer of an epoch says these


class Validation:
    def __init__(
        self, name: str, mesh: Mesh, names: dict[int, str], node: Layer, proofs: Proofs
    ) -> None:
        self.name = name  # of the pool
        self.mesh = mesh
        self.names = names  # of nodes
        self.node = node
        self.member = node.member
        self.proofs = proofs
        self.known = 0  # an epoch's counter, and when we knew it first
        self.known_at = 0.0
        self.asked_at = -(2**62)  # by the node's clock: who the members are
        self.given_up: dict[int, Epoch] = {}  # who made us give up a proposal, in which epoch
        self.suggested: dict[int, tuple[Epoch, int]] = {}  # who asked for an epoch, in which, when
        self.early = node.epoch.early  # messages for an epoch that is not here yet
        self.stored: list[tuple[str, int]] = []  # what they take up

    def admits(self, sender: str, message: Message, size: int) -> bool:
        """``size``: of the message, in bytes."""
        if isinstance(message, Inner):
            why = self.doubts_inner(sender, message, size)
        else:
            why = self.doubts(message)
        if why:
            kind = content(message).kind
            self.mesh.refusals.note(sender, f"a {kind} of {self.name}: {why}")
            return False
        if isinstance(message, Inner):
            return self.is_in_time(message)
        return self.is_of_use(message)

    # -- what recovery says --------------------------------------------------------------------

    def doubts(self, message: Message) -> str:
        """Why no node may say this; empty if it may be said."""
        member, sender, kind = self.member, message.sender, type(message)
        claim = CLAIMS.get(kind)
        if claim is not None:
            epoch = claim(message)
            if self.is_beyond(epoch):
                return "its epoch is too far ahead"
            if kind in OWN and epoch.proposer != sender:
                return "its epoch is not its own"
        if isinstance(message, Confirm) and message.sent > member.now:
            return "it answers a proposal that was not made"
        if isinstance(message, Copy):
            if message.first.epoch == member.adopted and message.first != member.first:
                return "it contradicts the first ledger of its epoch"
            if message.hop >= MOST_HOPS or message.number >= MOST_NUMBER:
                return "its counters are out of range"
        if isinstance(message, Promise):
            return self.doubts_report(sender, message)
        if isinstance(message, Return):
            if message.fence in member.grants:
                return "it returns permits that this node holds"
            if self.owner(message) not in (None, sender) and message.hop == GRANTS:
                return "it returns permits that other nodes hold"
        if isinstance(message, Received):
            return self.doubts_received(sender, message)
        if isinstance(message, AskLedger) and message.node != sender:
            record = self.mesh.link_map.records.get(self.names.get(message.node, ""))
            if record is not None and record.boot != message.boot:  # as that node says itself
                return "it asks on behalf of a past boot"
        if isinstance(message, Refuse) and sender not in member.members:
            return "it is not a member"
        return ""

    def is_beyond(self, epoch: Epoch) -> bool:
        """Further ahead than it can be."""
        promised = self.member.promised.counter
        if self.known == 0:
            self.known, self.known_at = promised, self.mesh.time()
        if epoch.counter <= promised:
            return False
        wall, passed = int(time()) - ERA, int(self.mesh.time() - self.known_at)
        if wall <= 0 and promised == 0:
            return False  # neither a clock nor a memory: the first to come is believed
        return epoch.counter > max(wall, self.known + passed) + int(EPOCH_AHEAD.most)

    def owner(self, message: Return) -> int | None:
        """Whose grant it is that stands in for itself here."""
        first = self.member.first
        if first is not None and message.fence in self.node.epoch.stand_ins:
            for entry in first.kept:
                if entry.fence == message.fence:
                    return entry.node
        return None

    # -- what reports of a proposal say --------------------------------------------------------

    def doubts_report(self, sender: int, promise: Promise) -> str:
        """Of a proposal of ours. What cannot be told from the truth is taken out of it."""
        member, report = self.member, promise.report
        proposal = member.proposal
        if proposal is None or proposal.closed or promise.epoch != proposal.epoch:
            return ""
        said = max(report.top, report.adopted, report.config.epoch)
        if self.is_beyond(said):
            return "its epoch is too far ahead"
        if any(entry.node != sender for entry in report.grants):
            return "it reports permits that other nodes hold"
        if sender not in member.members:
            told = [one for who, one in proposal.reports.items() if who in member.members]
            if said > max([max(one.top, one.config.epoch) for one in told], default=NO_EPOCH):
                return "no member knows its epoch yet"
            config = member.config._replace(epoch=min(member.config.epoch, report.config.epoch))
            report = promise.report = report._replace(config=config)
        reports = {**proposal.reports, sender: report}
        for who in self.refuted(reports):
            reports[who] = reports[who]._replace(token=None, unaccepted=None)
            self.mesh.refusals.note(self.names.get(who, "?"), "an invalid token")
        out = sum([entry.permits for one in reports.values() for entry in one.grants])
        for who, one in reports.items():
            if out > self.most_out() and who not in member.members:
                # without them the report would say that they are over (rule 18)
                lapsing = [entry._replace(lapsing=True) for entry in one.grants]
                reports[who] = one._replace(grants=tuple(lapsing))
        promise.report = reports.pop(sender)
        proposal.reports.update(reports)
        return ""

    def refuted(self, reports: dict[int, Report]) -> list[int]:
        """Who claims a token that others contradict."""
        claims = [(who, one.token) for who, one in reports.items() if one.token is not None]
        for who, one in reports.items():
            sent = one.unaccepted
            receiver = reports.get(sent.receiver) if sent is not None else None
            if sent is not None and receiver is not None and vouches(receiver, sent):
                claims.append((who, sent.state))
        found: list[int] = []
        for who, token in claims:
            rivals = [other for other, state in claims if state.epoch == token.epoch]
            held = [
                entry.fence
                for one in reports.values()
                if one.adopted == token.epoch
                for entry in one.grants
            ]
            named = {entry.fence for entry in token.ledger}
            if len(rivals) > 1 or self.miscounts(token) or not named.issuperset(held):
                found.append(who)
        return found

    # -- what is of no use ---------------------------------------------------------------------

    def is_of_use(self, message: Message) -> bool:
        """What honest nodes may say, too, when they or we have missed something."""
        member, sender = self.member, message.sender
        members = member.members
        if isinstance(message, Propose) and sender not in members:
            self.come_along(message)
            return self.learn(message, message.config.epoch)
        if isinstance(message, Ledger | Copy):
            if message.first.epoch > member.adopted and not self.is_believed(sender):
                return self.learn(message, message.first.epoch)
        elif isinstance(message, Renew):
            if message.epoch > member.adopted and sender not in members:
                return self.learn(message, message.epoch)
        elif isinstance(message, Higher):
            member.highest = max(member.highest, message.epoch)
            if self.given_up.get(sender) == member.adopted:
                return False  # the node that proposes tells us itself
            if member.proposal is not None and member.proposal.epoch < message.epoch:
                keep_latest(self.given_up, sender, member.adopted, MOST_NODES)
        elif isinstance(message, Return):  # its owner says so itself, too
            return self.owner(message) in (None, sender)
        elif isinstance(message, Confirm):
            return sender in members
        elif isinstance(message, Accepted):
            unaccepted = member.holding.unaccepted
            return unaccepted is not None and unaccepted.receiver == sender
        elif isinstance(message, Suggest) and sender not in members:
            return self.may_suggest(sender, message)
        return True

    def is_believed(self, sender: int) -> bool:
        """Who tells of an epoch that we do not know: a member; or anybody, if we know of none, or
        none that we know is there any more."""
        members, gone = self.member.members, self.member.unreachable
        return sender in members or all(one in gone or one == self.node.me for one in members)

    def learn(self, message: Message, epoch: Epoch) -> bool:
        """It is no member; or else either we or they do not know who the members are. What honest
        nodes hand on, or hold, while we have missed an epoch is no refusal."""
        node, sender = self.node, self.names.get(message.sender, "?")
        if len(self.member.members) > 0 and isinstance(message, Propose | Ledger):
            why = f"a {message.kind} of {self.name}, of which it is not a member"
            self.mesh.refusals.note(sender, why)
        if epoch < self.member.adopted:
            node.news.inform(message.sender)
        elif (
            epoch > self.member.adopted
            and (self.member.now - self.asked_at) * 6 >= node.terms.lease
        ):
            self.asked_at = self.member.now
            for member in self.member.members:
                if member != node.me and member not in self.member.unreachable:
                    node.news.ask_ledger(member)
        return False

    def come_along(self, propose: Propose) -> None:
        """Who thinks itself a member has promised its own epoch: it can take part only in one that
        is higher, and that members propose."""
        node = self.node
        higher = propose.epoch.counter > self.member.promised.counter
        if self.member.is_member() and higher and self.may_ask(propose.sender):
            self.member.highest = max(self.member.highest, propose.epoch)
            self.member.suggested_until = self.member.now + node.terms.lease // 2

    def may_suggest(self, sender: int, suggest: Suggest) -> bool:
        """The same, in the same epoch, it may say again."""
        promised = self.member.promised
        epoch, _ = self.suggested.get(sender, (NO_EPOCH, 0))
        return suggest.epoch < promised or epoch == promised or self.may_ask(sender)

    def may_ask(self, sender: int) -> bool:
        """For an epoch: now and then."""
        node = self.node
        _, since = self.suggested.get(sender, (NO_EPOCH, -(2**62)))
        if self.member.now - since < SUGGESTS_AGAIN * node.terms.lease:
            return False
        asked = (self.member.promised, self.member.now)
        keep_latest(self.suggested, sender, asked, MOST_NODES)
        return True

    # -- permits that are out --------------------------------------------------------------------

    def most_out(self) -> int:
        """The most permits that can be in use; more than there are if there were more before."""
        first, permits = self.member.first, self.member.config.permits
        if first is None or not first.paused:
            return permits
        return max(permits, sum([entry.permits for entry in first.kept]))

    def miscounts(self, token: TokenState) -> bool:
        """Free permits and those in the ledger are all there are."""
        config = self.member.config
        out = sum([entry.permits for entry in token.ledger])
        return token.epoch == config.epoch and token.free + out != config.permits

    # -- messages of the algorithm inside ------------------------------------------------------

    def doubts_inner(self, sender: str, inner: Inner, size: int) -> str:
        node, state = self.node, inner.state
        if inner.is_timed() and inner.left > node.terms.lease:
            return "its lease is longer than those of the pool"
        if inner.lent is not None or inner.lends() > 0:
            return self.doubts_grant(inner)
        if len(inner.returned) > 0:
            most = self.most_out()
            if (
                len(inner.returned) > most
                or len(node.epoch.keeper.pending) + len(inner.returned) > 2 * most
            ):
                return "it returns more permits than the pool has"
            if self.is_stolen(inner):
                return "it returns permits that other nodes hold"
        if state is not None:
            if state.epoch != inner.epoch or self.miscounts(state):
                return "its token has a wrong number of permits"
            if (state.epoch, state.hop) > self.member.hop_seen and self.is_unnamed(state):
                return "its token does not list permits that this node holds"
            self.drop_unproved(state.ledger)
        ours = same(inner.epoch, self.member.adopted)
        early = node.epoch.inner is None if ours else inner.epoch > self.member.adopted
        if (
            node.terms.fixed
            and early
            and not inner.is_timed()
            and self.member.is_addressed(inner.boot)
        ):
            return self.store(sender, inner, size)
        return ""

    # -- grants to clients of other nodes ------------------------------------------------------

    def doubts_grant(self, inner: Inner) -> str:
        """Whether its sender granted it nobody here can tell."""
        node, lent = self.node, inner.lent
        if lent is None or lent.permits != inner.lends() or lent.permits == 0:
            return "its grant and the entry of the ledger do not match"
        if inner.state is not None or len(inner.returned) > 0:
            return "it carries more than a grant"
        if lent.node != node.me or lent.lapsing or lent.fence.epoch != inner.epoch:
            return "its grant is for another node, or of another epoch"
        if inner.epoch != self.member.adopted or node.epoch.inner is None:
            return ""  # it is not looked at
        if (
            getattr(inner.message, "hop", 0) >= MOST_HOPS
            or getattr(inner.message, "grants", 0) > COUNTED
        ):
            return "its counters are out of range"
        if self.is_elsewhere(inner):
            return "its sender does not have the token"
        held = [
            grant for grant in self.member.grants.values() if grant.epoch == self.member.adopted
        ]
        if sum([grant.permits for grant in held]) + lent.permits > self.most_out():
            return "it grants more permits than the pool has"
        if self.has_wrong_slots(lent, {slot for grant in held for slot in grant.slots}):
            return "it grants permits of wrong names"
        return ""

    def is_elsewhere(self, inner: Inner) -> bool:
        """Is the token here, or with somebody else, at the same hop or since? It does not move
        while a grant is under way. That it has moved since we heard of it may be true or not."""
        node = self.node
        if node.epoch.inner is not None and node.epoch.inner.tokens() > 0:
            return True
        hop, known = getattr(inner.message, "hop", None), self.member.holding.holder_hop
        if hop is None:
            return False
        return bool(hop < known or (hop == known and inner.sender != self.member.holding.holder))

    def has_wrong_slots(self, lent: Entry, held: set[int]) -> bool:
        node = self.node
        if not node.terms.slots:
            return len(lent.slots) > 0
        slots, config = set(lent.slots), self.member.config
        there = config.slots if len(config.slots) > 0 else range(config.permits)
        one_each = len(slots) == len(lent.slots) == lent.permits
        return not one_each or not slots.issubset(there) or not slots.isdisjoint(held)

    def is_in_time(self, inner: Inner) -> bool:
        """A grant that comes after the end of its lease is a reason to propose; who is no member
        may give one now and then."""
        if inner.lent is None or arrives_until(self.member.now, inner) > self.member.now:
            return True
        return inner.sender in self.member.members or self.may_ask(inner.sender)

    def doubts_received(self, sender: int, message: Received) -> str:
        if message.epoch != self.member.adopted:
            return ""  # it is not looked at
        if len(message.received) > self.most_out():
            return "it acknowledges more grants than there are permits"
        if not all(is_note(label) for _, label in message.received):
            return "what it says of a grant is unreadable"
        ledger = self.member.holding.token.ledger if self.member.holding.token is not None else ()
        others = {entry.fence for entry in ledger if entry.node != sender}
        if any(fence in others for fence, _ in message.received):
            return "it acknowledges grants of other nodes"
        return ""

    # -- permits that come back ----------------------------------------------------------------

    def is_unnamed(self, state: TokenState) -> bool:
        """Do we hold anything that this token's ledger does not say we do?"""
        out = {entry.fence: entry.permits for entry in state.ledger}
        for fence, grant in self.member.grants.items():
            lives = grant.epoch == state.epoch and grant.until > self.member.now
            if lives and out.get(fence, 0) < grant.permits:
                return True
        return False

    def is_stolen(self, inner: Inner) -> bool:
        """The token's holder can tell; the others take it along."""
        token = self.member.holding.token
        if token is None:
            self.proofs.learn(inner.returned, inner.proofs)
            return False
        return self.proofs.refutes(token.ledger, inner.sender, inner.returned, inner.proofs)

    def drop_unproved(self, ledger: tuple[Entry, ...]) -> None:
        """The token comes, and would strike out what waits for it here."""
        if len(self.node.epoch.keeper.pending) > 0:
            for part in self.proofs.unproved(ledger):
                self.node.epoch.keeper.pending.remove(part)
                self.mesh.refusals.note("?", f"permits of {self.name} that other nodes hold")

    def store(self, sender: str, inner: Inner, size: int) -> str:
        """For an epoch that is not here yet."""
        self.clear()
        if self.is_beyond(inner.epoch):
            return "its epoch is too far ahead"
        if not self.mesh.stored.add(sender, size):
            return "too many messages before their epoch"
        self.stored.append((sender, size))
        return ""

    def clear(self) -> None:
        if self.early is not self.node.epoch.early or len(self.early) == 0:
            self.early = self.node.epoch.early
            for sender, size in self.stored:
                self.mesh.stored.remove(sender, size)
            self.stored = []
