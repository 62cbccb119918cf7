"""How many messages of each kind a run has sent.

They are counted by class, which is at hand; a kind's name would have to be looked up.
"""

from __future__ import annotations

from meshlock.algorithms.interface import Message


class Kind:
    """All messages of one class."""

    def __init__(self, message: Message) -> None:
        self.name = message.kind
        self.sent = 0
        kind = type(message)
        self.loaded = kind.tokens is not Message.tokens or kind.permits is not Message.permits
        """Can it carry a token or permits?"""
        self.lends = kind.lends is not Message.lends
        """Can it grant permits to a client of its receiver?"""


Kinds = dict[type[Message], Kind]


def by_name(kinds: Kinds) -> dict[str, int]:
    """How many of each, in the order in which they were sent first."""
    counts: dict[str, int] = {}
    for kind in kinds.values():
        counts[kind.name] = counts.get(kind.name, 0) + kind.sent
    return counts
