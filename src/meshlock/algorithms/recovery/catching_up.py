"""Nodes that missed an epoch: what they ask, and what others tell them.

Rules 4, 12, 13 and 16 as far as they concern news. All of it is best effort: nothing here changes a
promise, a lease or the token, and a node that answers with the first ledger renews nothing by it.
"""

from __future__ import annotations

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.recovery.member import PoolMember
from meshlock.algorithms.recovery.messages import AskLedger, Copy, Hello, Renew, Suggest, Voteless
from meshlock.algorithms.recovery.records import (
    GRANTS,
    MINTING,
    NEVER,
    NO_EPOCH,
    Epoch,
    FirstLedger,
)
from meshlock.algorithms.subclassing import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class CatchingUp:
    def __init__(self, member: PoolMember) -> None:
        self.member = member

    # -- questions ---------------------------------------------------------------------------------

    def ask_ledger(self, node: int, where: bool = False) -> None:
        """``where``: a node that takes part, and is answered by the first ledger alone, wants to
        hear of the holder all the same."""
        member = self.member
        member.send(AskLedger(node, member.me, member.boot, MINTING if where else GRANTS))

    def informants(self) -> list[int]:
        """The members that can be reached; a node that reaches none asks its neighbours."""
        me = self.member
        reached = [one for one in me.members if one != me.me and one not in me.unreachable]
        return reached if len(reached) > 0 or me.is_member() else sorted(me.near)

    def ask_one(self, where: bool) -> None:
        """Of the informants, not all nodes the same."""
        asked = self.informants()
        if len(asked) > 0:
            self.ask_ledger(asked[self.member.me % len(asked)], where)

    def ask_missed(self, takes_part: bool, waits: bool) -> None:
        """Members hear the holder renew; but that they restarted, others learn by the question."""
        member = self.member
        missed = member.adopted < member.promised or not takes_part
        outside = not member.is_member()
        if missed and (outside or member.adopted == NO_EPOCH < member.promised):
            for node in self.informants():
                self.ask_ledger(node)
        elif outside and waits:
            self.ask_one(False)

    def suggest(self, lost: bool) -> None:
        """No member ourselves: ask the members for a new epoch, above any that we promised, or that
        others told us they did: it may be one that nobody makes any more. A node that has forgotten
        what it promised promises nothing up to its floor."""
        member = self.member
        hop = member.holding.holder_hop if member.adopted == member.promised else GRANTS
        forgotten = Epoch(member.floor if member.forgot else 0, NIL, 0)
        known = max(member.promised, member.highest, forgotten)
        for node in self.informants():
            member.send(Suggest(node, known, hop, lost))

    # -- answers -----------------------------------------------------------------------------------

    def receive_ask(self, ask: AskLedger, number: int) -> None:
        """Every node knows the first ledger, only the holder what is out now, and the ``number`` of
        the asker's latest request."""
        member, holding = self.member, self.member.holding
        if self.died(ask.node, ask.boot):
            member.heard_at = min(member.heard_at, member.now - member.terms.lease // 2)
        first, token = member.first, holding.token
        if member.adopted != member.promised or first is None or ask.node == member.me:
            return
        if token is not None and (token.until == NEVER or member.is_running(token.until)):
            hop, grants = token.hop, token.grants
            copy = Copy(ask.node, first, token.ledger, hop, grants, max(0, number), ask.boot)
            member.send(copy)
            return
        self.inform(ask.node)
        named = any(one.node == ask.node and one.boot == ask.boot for one in first.participants)
        wanted = ask.hop >= MINTING or not (named or member.terms.closed)
        if wanted and holding.holder_hop > ask.hop:
            for node in member.onward():
                member.send(AskLedger(node, ask.node, ask.boot, holding.holder_hop))

    def died(self, node: int, boot: int) -> bool:
        """Did the holder or the proposer, as we thought, restart? Then it is neither."""
        member = self.member
        if member.promised > member.adopted:
            return node == member.promised.proposer and boot != member.promised.boot
        minted = member.holding.holder_hop > MINTING
        return node == member.holding.holder and (minted or boot != member.adopted.boot)

    def inform(self, node: int) -> None:
        """That node speaks of an epoch that is over (rule 4)."""
        member = self.member
        if member.adopted == member.promised and member.first is not None:
            member.send(Copy(node, member.first, None, GRANTS, 0, 0, 0))

    def receive_suggest(self, suggest: Suggest) -> None:
        member, holding = self.member, self.member.holding
        lost = suggest.lost or (holding.token is None and suggest.hop >= holding.holder_hop)
        if suggest.epoch < member.adopted:
            self.inform(suggest.sender)
        elif suggest.epoch > member.promised or (suggest.epoch == member.promised and lost):
            member.is_asked_for_more_than(suggest.epoch)

    # -- taking part -------------------------------------------------------------------------------

    def may_take_part(self, first: FirstLedger) -> bool:
        """Rule 12."""
        member = self.member
        for participant in first.participants:
            if participant.node == member.me:
                return participant.boot == member.boot
        return not member.terms.closed and NO_EPOCH < member.remembered < first.epoch

    def is_new_to(self, copy: Copy) -> bool:
        """Rule 13."""
        epoch, me = copy.first.epoch, self.member.me
        if self.member.terms.closed or copy.ledger is None or epoch.proposer == me:
            return False
        return all(entry.node != me or entry.fence.epoch != epoch for entry in copy.ledger)

    # -- news --------------------------------------------------------------------------------------

    def tell_epoch(self, node: int) -> None:
        """One that is back may have missed it, and have grants whose lease runs. What it was asked
        while it was gone is lost."""
        member = self.member
        member.collect((node,))
        token, hop = member.holding.token, member.holding.hop(member.proposal is not None)
        if token is not None and not member.is_running(token.until):
            self.inform(node)  # it is not to wait for a token that is dead
        elif member.promised == member.adopted and hop != GRANTS and not member.is_confirming():
            member.send(Renew(node, member.adopted, member.boot, hop, member.now))

    def present(self, hop: int) -> None:
        """The first ledger does not name this life: so that a node that sends us the token knows
        it. And whatever was sent to a former life, only tokens later than this can be ours."""
        member = self.member
        if member.terms.open:
            member.hop_seen = (member.adopted, hop)
            for node in member.terms.nodes:
                if node != member.me and node not in member.unreachable:
                    member.send(Hello(node, member.adopted, member.boot, True))

    def tell_voteless(self) -> None:
        """A member that has forgotten; or a node that may be one, for all it knows."""
        member = self.member
        if member.forgot and (member.is_member() or len(member.members) == 0):
            for node in member.terms.nodes:
                if node != member.me and node not in member.unreachable:
                    member.send(Voteless(node))

    def receive_voteless(self, message: Voteless) -> None:
        self.member.voteless[message.sender] = self.member.now
