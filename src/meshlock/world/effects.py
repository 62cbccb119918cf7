"""The one interpreter of effects: what a handler asks of its world is carried out here.

A world that is run, searched or followed says what each effect comes to there.
"""

from __future__ import annotations

from typing import Any, Final

from meshlock.algorithms.actor import Actor, Effect, Enter, Lost, Message, Save
from meshlock.algorithms.recovery.messages import Inner, content
from meshlock.algorithms.subclassing import mypyc_attr


class Kind:
    """All messages of one class, which is at hand; the name of a kind would have to be found."""

    def __init__(self, message: Message) -> None:
        self.name = message.kind
        self.sent = 0
        kind = type(message)
        self.loaded = kind.tokens is not Message.tokens or kind.permits is not Message.permits
        """Can it carry a token or permits?"""
        self.lends = kind.lends is not Message.lends
        """Can it grant permits to a client of its receiver?"""
        self.envelope = kind is Inner
        """Is it recovery's, around one that counts as well?"""


Kinds = dict[type[Message], Kind]
NOTHING: Final[dict[str, Any]] = {}


def by_name(kinds: Kinds) -> dict[str, int]:
    """How many of each, in the order in which they were sent first."""
    counts: dict[str, int] = {}
    for kind in kinds.values():
        if not kind.envelope:
            counts[kind.name] = counts.get(kind.name, 0) + kind.sent
    return counts


@mypyc_attr(allow_interpreted_subclasses=True)
class Effects:
    """``out``: where handlers put their effects. ``balanced``: no handler makes or loses a token or
    permits. ``watched``: :meth:`hands_over` is told of tokens that move, too. ``observed``: so is
    :meth:`record` of every step."""

    # Uncompiled, Python finds methods and attributes of an object that has more than 30 in a
    # slower way. With slots it does not, and a run of Raymond takes 6 to 8 % less time.
    __slots__ = ("balanced", "observed", "out", "sent", "watched")

    def __init__(self, out: list[Effect], balanced: bool, watched: bool) -> None:
        self.out = out
        self.balanced = balanced
        self.watched = watched
        self.observed = False
        self.sent: Kinds = {}  # messages, by class

    def done(
        self, node: Actor, event: str, cause: dict[str, Any], tokens: int, permits: int
    ) -> None:
        """A handler of this node has run: do in its order what it asks for. ``tokens`` and
        ``permits`` are what was there before and what the cause brought; all of it must be
        somewhere afterwards."""
        for effect in self.out:
            if isinstance(effect, Message):
                message = effect
                try:
                    kind = self.sent[type(message)]
                except KeyError:
                    kind = self.sent[type(message)] = Kind(message)
                kind.sent += 1
                if kind.loaded:
                    if kind.envelope:
                        kind = self.kind_inside(message)
                    tokens -= message.tokens()
                    permits -= message.permits()
                    if kind.lends or self.watched:
                        self.hands_over(message)
                self.transmit(message)
            elif isinstance(effect, Enter):
                permits -= self.admits(node, effect)
            elif isinstance(effect, Save):
                self.keeps(node, effect)
            elif isinstance(effect, Lost):
                self.takes_away(node, effect)
        if self.balanced and (tokens != node.tokens() or permits != node.free_permits()):
            self.unbalanced(node, tokens - node.tokens(), permits - node.free_permits())
        if self.observed:
            self.record(node, event, cause)
        if self.out:
            self.out.clear()

    def kind_inside(self, envelope: Message) -> Kind:
        """The kind of the message that recovery has put into this envelope."""
        message = content(envelope)
        kind = self.sent.get(type(message))
        if kind is None:
            kind = self.sent[type(message)] = Kind(message)
        kind.sent += 1
        return kind

    # -- what an effect comes to --------------------------------------------------------

    def transmit(self, message: Message) -> None:
        """Put a message on its way."""
        raise NotImplementedError

    def admits(self, node: Actor, enter: Enter) -> int:
        """A client of this node has been let in. How many permits has it now?"""
        raise NotImplementedError

    def hands_over(self, message: Message) -> None:
        """A token or permits may leave with this message, which is carried next."""

    def keeps(self, node: Actor, save: Save) -> None:
        """This is to be on the node's disk."""

    def takes_away(self, node: Actor, lost: Lost) -> None:
        """The lease of a client of this node has ended, and it has stopped."""

    def unbalanced(self, node: Actor, tokens: int, permits: int) -> None:
        """What is missing after the handler; a number below 0 is of what is too much."""

    def record(self, node: Actor, event: str, cause: dict[str, Any]) -> None:
        """All effects of this step are carried out, and still in ``out``."""
