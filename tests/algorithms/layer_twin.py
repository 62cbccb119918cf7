"""A twin: what a node froze, thawed into a fresh one, whose clock shows 0. It must do the same."""

from __future__ import annotations

from meshlock.algorithms.actor import Effect, Enter, Lost, Message, Save
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import Confirm, Ledger, Renew
from meshlock.algorithms.recovery.records import NEVER
from meshlock.check.words import copy


class Twin:
    def __init__(self, make: type[Layer], node: Layer) -> None:
        self.base = node.member.now
        self.out: list[Effect] = []
        self.node = make(node.me, self.out, node.terms)
        state = node.freeze()
        self.node.thaw(state)
        assert self.node.freeze() == state
        assert hash(state) is not None
        self.node.cannot_reach(set(node.member.unreachable))
        held, copied = node.member.holding.token, self.node.member.holding.token
        if held is not None and copied is not None and held.until != NEVER:
            copied.until = held.until - self.base or -1
        self.node.member.last_report = node.member.last_report
        since = node.timers.returning_since.items()
        self.node.timers.returning_since = {fence: at - self.base for fence, at in since}
        # not frozen where the token moves on late: who has it reads this only while all permits are
        # free, and then no grant is under way, unless a part came back twice
        self.node.epoch.loans.lent = dict(node.epoch.loans.lent)
        self.node.epoch.count_lent(True)
        self.node.epoch.loans.borrowed = {
            fence: (sender, since - self.base, told)
            for fence, (sender, since, told) in node.epoch.loans.borrowed.items()
        }

    def receive(self, message: Message) -> None:
        """The same; but an answer brings back a time of the node's own clock."""
        again = copy(message)
        if isinstance(again, Confirm):
            again.sent -= self.base
        self.node.receive(again)

    def says(self) -> list[object]:
        return [told(effect, 0) for effect in self.out]

    def said(self, out: list[Effect]) -> list[object]:
        """By the node itself."""
        return [told(effect, self.base) for effect in out]


def told(effect: Effect, base: int) -> object:
    if isinstance(effect, Renew):
        return (effect.receiver, effect.epoch, effect.boot, effect.hop, effect.sent - base)
    if isinstance(effect, Ledger):
        return (effect.receiver, effect.first, effect.boot, effect.sent - base)
    if isinstance(effect, Message):
        return (effect.receiver, effect.urgent, effect.freeze())
    if isinstance(effect, Enter):
        return (effect.client, effect.fence, effect.until - base)
    if isinstance(effect, Lost):
        return (effect.client, effect.fence)
    assert isinstance(effect, Save)
    return effect.record
