"""The algorithm inside: a fresh node of it for every epoch.

An algorithm for networks that change gets a node without links (its ``join``); links are told
to it as they form. An open one gets a node that knows where the token is (its ``late``). One for
fixed networks gets the node that its ``make`` makes for our place
among the participants of the epoch: the founder is place 0 and the root of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, cast

from meshlock.algorithms.actor import (
    NIL,
    Actor,
    Algorithm,
    Effect,
    Frozen,
    Message,
    Network,
    Options,
)
from meshlock.algorithms.recovery.messages import Inner
from meshlock.algorithms.recovery.records import FirstLedger, Participant
from meshlock.algorithms.recovery.terms import Terms
from meshlock.errors import Refused


def refuse_unrecoverable(algorithm: Algorithm, options: Options) -> None:
    """Raise ``Refused`` unless a new epoch can begin with new nodes of this algorithm."""
    if not algorithm.serves.token:
        raise Refused(
            f"{algorithm.name} has no token that recovery could replace: run it without recovery, "
            f"or use a token algorithm such as jiang."
        )
    if algorithm.serves.restless:
        raise Refused(
            f"The token of {algorithm.name} never rests, so recovery cannot detect "
            "its loss: run it without recovery, or use a token algorithm such as "
            "jiang."
        )
    if algorithm.assumes.changing_links and algorithm.newcomers.join is None:
        raise Refused(
            f"Nodes of {algorithm.name} cannot join one by one, which a new epoch "
            "needs: run it without recovery, or use jiang."
        )
    if not algorithm.assumes.changing_links and algorithm.newcomers.late is None:
        alone = Participants((Participant(0, 0, NIL),), nobody)
        algorithm.make(alone, 1, options, [])  # it refuses what it cannot make for an epoch


def nobody(node: int) -> Iterable[int]:
    return ()


def tree(near: Callable[[int], Iterable[int]], participants: tuple[int, ...]) -> tuple[int, ...]:
    """Shortest ways to the first participant: the next participant on the way of each, as a place
    among them; NIL for the first, and the first for a node without any way."""
    places = {node: place for place, node in enumerate(participants)}
    fathers = [0] * len(participants)
    fathers[0] = NIL
    nearest = {participants[0]: 0}  # node: the place of the last participant on the way to it
    line = [participants[0]]
    for node in line:
        for other in sorted(near(node)):
            if other not in nearest:
                nearest[other] = places.get(other, nearest[node])
                if other in places:
                    fathers[places[other]] = nearest[node]
                line.append(other)
    return tuple(fathers)


class Participants(Network):
    """Those of an epoch: everybody can be reached from everybody, and the tree is given. Who is
    linked to whom is what ``near`` says now."""

    ordered: ClassVar[bool] = False

    def __init__(
        self, participants: tuple[Participant, ...], near: Callable[[int], Iterable[int]]
    ) -> None:
        super().__init__(len(participants))
        self.nodes = [one.node for one in participants]
        self.fathers = [one.father for one in participants]
        self.near = near

    def neighbours(self, node: int) -> list[int]:
        return [other for other in range(self.size) if other != node]

    def linked(self, one: int, other: int) -> bool:
        return self.nodes[other] in self.near(self.nodes[one])

    def father(self, node: int) -> int:
        return self.fathers[node]


class Inside:
    def __init__(self, me: int, terms: Terms) -> None:
        self.me = me
        self.algorithm = algorithm = terms.algorithm
        self.options = terms.options
        self.closed = terms.closed
        self.near = terms.near
        self.out: list[Effect] = []
        self.kinds: dict[str, type[Message]] = {kind.kind: kind for kind in algorithm.kinds}
        self.nodes: list[int] = []  # of the participants ...
        self.places: dict[int, int] = {}  # ... and the same, the other way round
        self.boots: dict[int, int] = {}

    def node(self, first: FirstLedger, holder: int, hop: int, number: int = NIL) -> Actor:
        """A new one for the epoch that begins so; the token's move number ``hop`` was to
        ``holder``, which knows of a former life's request of that number."""
        self.out.clear()
        algorithm, permits = self.algorithm, first.config.permits
        if algorithm.assumes.changing_links:
            assert algorithm.newcomers.join is not None
            founder = first.epoch.proposer == self.me
            return algorithm.newcomers.join(self.me, founder, permits, self.options, self.out)
        self.take_places(first.participants)
        if algorithm.newcomers.late is not None:
            return algorithm.newcomers.late(
                self.me, holder, hop, number, permits, self.options, self.out
            )
        network = Participants(first.participants, self.near)
        nodes = algorithm.make(network, permits, self.options, self.out)
        return nodes[self.places[self.me]]

    def take_places(self, participants: tuple[Participant, ...]) -> None:
        self.nodes = [one.node for one in participants]
        self.places = {node: place for place, node in enumerate(self.nodes)}
        self.boots = {one.node: one.boot for one in participants}

    def node_at(self, place: int) -> int:
        """The number of a node that those inside know by its place, where the network is fixed."""
        return self.nodes[place] if self.closed else place

    def opened(self, inner: Inner) -> Message:
        """The message, from and to nodes as those inside know them."""
        message = inner.message
        message.sender, message.receiver = inner.sender, self.me
        if self.closed:
            message.sender = self.places.get(inner.sender, NIL)
            message.receiver = self.places[self.me]
        return message

    def message(self, receiver: int, frozen: Frozen) -> Message:
        """A message of the algorithm inside, by its kind and fields."""
        kind: Callable[..., Message] = self.kinds[cast(str, frozen[0])]
        message = kind(receiver, *frozen[1:])
        message.sender = self.me
        return message
