"""How many messages of each kind a run has sent."""

from __future__ import annotations

from meshlock.algorithms.interface import Message


class Kind:
    """All messages of one class."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent = 0


class Kinds:
    """By class, which is found without asking the message for its name."""

    def __init__(self) -> None:
        self.known: dict[type[Message], Kind] = {}

    def count(self, message: Message) -> None:
        kind = self.known.get(type(message))
        if kind is None:
            kind = self.known[type(message)] = Kind(message.kind)
        kind.sent += 1

    def by_name(self) -> dict[str, int]:
        """In the order in which each was sent first."""
        counts: dict[str, int] = {}
        for kind in self.known.values():
            counts[kind.name] = counts.get(kind.name, 0) + kind.sent
        return counts
