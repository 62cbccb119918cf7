"""The gate between the node inside and the world: what it asks for passes as far as the token's
state allows.

Rules 8, 11 and 17. A client is let in, and permits are lent, only by the token that is here and
usable. The gate calls no handler of the node inside: it names those that must leave at once.
"""

from __future__ import annotations

from typing import Any, cast

from meshlock.algorithms.actor import NIL, Effect, Enter, Frozen, Message
from meshlock.algorithms.amounts import fits
from meshlock.algorithms.recovery.holding import HeldToken, OwnGrant
from meshlock.algorithms.recovery.inside import Inside
from meshlock.algorithms.recovery.keeper import TokenKeeper
from meshlock.algorithms.recovery.messages import Inner, content
from meshlock.algorithms.recovery.records import (
    ANY_BOOT,
    MOST_GRANTS,
    Entry,
    Fence,
    fence_number,
    new,
    new_entry,
    new_part,
)
from meshlock.algorithms.recovery.waiting import WaitingClients
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import Variables, by_key, special

Leaving = list[tuple[int, Fence, int]]
"""Clients that leave at once, with the fence and the permits of their grants (rule 11)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Gate:
    def __init__(self, clients: WaitingClients, keeper: TokenKeeper) -> None:
        self.clients = clients
        self.keeper = keeper
        self.member = keeper.member
        self.terms = keeper.member.terms
        self.inside = keeper.inside
        self.loans = keeper.loans
        self.notes = keeper.notes
        self.leaving: dict[int, int] = {}  # clients that gave up but will be let in: their wants
        self.withheld: list[Effect] = []  # until there is a token that is good

    def pass_on(self) -> Leaving:
        """What the node inside asks for, in order."""
        out = self.inside.out
        effects = out[:]
        out.clear()
        left: Leaving = []
        for effect in effects:
            if isinstance(effect, Message):
                plain = effect.tokens() == 0 and effect.lends() == 0
                self.withheld.append(self.in_envelope(effect) if plain else effect)
            elif isinstance(effect, Enter) and self.is_awaited(effect.client):
                if self.is_lent(effect.client):
                    left += self.let_in_lent(effect.client)
                else:
                    self.withheld.append(effect)
        return left + self.flush()

    def in_envelope(self, message: Message) -> Inner:
        """With permits that the node inside has back, if it sends some on."""
        returned = self.keeper.take_pending(message.permits())
        receiver = self.inside.node_at(message.receiver)
        boot = self.keeper.boot_of(receiver) if not self.terms.open else ANY_BOOT
        return Inner(receiver, self.member.adopted, boot, message, None, 0, returned)

    def flush(self) -> Leaving:
        """Rule 8."""
        withheld, self.withheld = self.withheld, []
        blocked = False
        behind: set[int] = set()
        left: Leaving = []
        for effect in withheld:
            if isinstance(effect, Enter):
                if not self.is_awaited(effect.client):
                    continue
                if not blocked and self.may_let_in(effect.client):
                    left += self.let_in(effect.client)
                    continue
                blocked = True
            elif isinstance(effect, Message):
                receiver = self.receiver_of(effect)
                passes = receiver not in behind
                if passes and isinstance(effect, Inner):
                    self.member.send(effect)
                    continue
                lends = effect.lends() > 0
                if lends and passes and not blocked and self.may_lend(effect):
                    self.lend(effect)
                    continue
                if effect.tokens() == 1 and passes and not blocked and self.keeper.may_give(effect):
                    self.keeper.give(effect)
                    continue
                blocked = blocked or effect.tokens() == 1 or lends
                behind.add(receiver)
            self.withheld.append(effect)
        return left

    def receiver_of(self, message: Message) -> int:
        """Its number, also of a message that is in no envelope yet."""
        receiver = message.receiver
        return receiver if isinstance(message, Inner) else self.inside.node_at(receiver)

    def withheld_loans(self) -> int:
        return len([one for one in self.withheld if isinstance(one, Message) and one.lends() > 0])

    def take_withheld(self, peer: int) -> list[Message]:
        """Messages with a token or permits that cannot leave any more, out of their envelopes."""
        to_peer = [
            one
            for one in self.withheld
            if isinstance(one, Message) and self.receiver_of(one) == peer
        ]
        self.withheld = [one for one in self.withheld if one not in to_peer]
        found = [one for one in to_peer if one.tokens() + one.permits() > 0]
        for one in found:
            if isinstance(one, Inner):
                self.keeper.pending.update(one.returned)
        return [content(one) for one in found]

    def is_awaited(self, client: int) -> bool:
        """Not a stand-in, which has its entry already, and nobody whom an algorithm makes up."""
        return client in self.clients.waiting or client in self.leaving

    def wants(self, client: int) -> int:
        waiting = self.clients.waiting
        return waiting[client][0] if client in waiting else self.leaving[client]

    def may_let_in(self, client: int) -> bool:
        return self.may_grant(self.wants(client))

    def may_lend(self, message: Message) -> bool:
        return self.may_grant(message.lends())

    def may_grant(self, permits: int) -> bool:
        token = self.member.holding.token
        if token is None or not self.member.usable() or token.grants >= MOST_GRANTS:
            return False
        return fits(permits, token.free)

    def let_in(self, client: int) -> Leaving:
        """The result: those that leave at once (rule 11)."""
        token = self.member.holding.token
        assert token is not None
        label = self.notes.label(client)
        entry = self.new_grant(token, self.member.me, self.wants(client), label)
        return self.hand_over(client, entry, label, token.until)

    def new_grant(self, token: HeldToken, node: int, want: int, label: str) -> Entry:
        token.grants += 1
        token.free -= want
        fence: Fence = new(Fence, (token.epoch, token.grants))
        slots = token.first_slots(want, self.member.config) if self.terms.slots else ()
        entry = new_entry(node, fence, want, slots, label)
        token.ledger = (*token.ledger, entry)
        return entry

    def hand_over(self, client: int, entry: Entry, label: str, until: int) -> Leaving:
        """A grant to the client that is in the ledger."""
        fence, want, member = entry.fence, entry.permits, self.member
        if self.leaving.pop(client, 0) > 0:
            self.keeper.returning[fence] = 0
            return [(client, fence, want)]
        self.clients.remove(client)
        member.grants[fence] = OwnGrant(client, want, member.adopted, until, entry.slots, label)
        permits = member.config.permits
        member.out.append(Enter(client, fence_number(fence), until, permits, entry.slots))
        return []

    # -- grants to clients of other nodes ----------------------------------------------------------

    def lend(self, message: Message) -> None:
        """Rule 17."""
        member = self.member
        token = member.holding.token
        assert token is not None
        label = self.notes.label(NIL)
        receiver = message.receiver
        entry = self.new_grant(token, receiver, message.lends(), label)
        self.loans.lent[entry.fence] = member.now
        left = token.until - member.now
        member.send(Inner(receiver, member.adopted, ANY_BOOT, message, None, left, (), entry))

    def is_lent(self, client: int) -> bool:
        """Is this step about a grant of what that client wants, and for nobody else yet?"""
        if self.loans.arrived is None:
            return False
        entry, _ = self.loans.arrived
        whole = new_part(entry.fence, 0, entry.permits)
        return whole in self.keeper.pending and entry.permits == self.wants(client)

    def let_in_lent(self, client: int) -> Leaving:
        """As if the token were here."""
        assert self.loans.arrived is not None
        entry, until = self.loans.arrived
        self.keeper.pending.remove(new_part(entry.fence, 0, entry.permits))
        return self.hand_over(client, entry, self.notes.label(client), until)


def freeze_withheld(part: Gate, now: int) -> Frozen:
    return tuple([frozen_effect(effect) for effect in part.withheld])


def thaw_withheld(part: Gate, frozen: Any) -> None:
    part.withheld = [thawed_effect(part.inside, one) for one in frozen]


def frozen_effect(effect: Effect) -> Frozen:
    if isinstance(effect, Enter):
        return (effect.client,)
    message = cast(Message, effect)
    return (message.sender, message.receiver, message.freeze())


def thawed_effect(inside: Inside, frozen: Any) -> Effect:
    if len(frozen) == 1:
        return Enter(frozen[0])
    sender, receiver, fields = frozen
    message: Message
    if fields[0] == Inner.kind:
        _, epoch, boot, *seal, contents = fields
        message = Inner(receiver, epoch, boot, inside.message(receiver, contents), *seal)
    else:
        message = inside.message(receiver, fields)
    message.sender = sender
    return message


GATE_VARIABLES = Variables(
    by_key("leaving"),
    special("withheld", freeze_withheld, thaw_withheld),
)
