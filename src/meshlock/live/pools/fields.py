"""What messages of pools without leases consist of: checked before the algorithm sees them.

A field means the same wherever it occurs, so its name says what it may hold. Messages of pools
with leases have :data:`.routed.FIELDS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from meshlock.algorithms.interface import Algorithm, Message
from meshlock.live.links.frames import BadFrame
from meshlock.live.machine.limits import (
    MOST_NODES,
    Count,
    Level,
    NodeNumber,
    Priority,
    Rank,
    Share,
)

PER_NODE = msgspec.Meta(max_length=MOST_NODES)

FIELDS: dict[str, Any] = {
    "answered": bool,
    "blocked": Rank | None,
    "grants": Count,
    "height": tuple[Level, Level, NodeNumber],
    "lender": NodeNumber,
    "node": NodeNumber,
    "number": Count,
    "numbers": Annotated[tuple[Count, ...], PER_NODE],
    "origin": NodeNumber,
    "passed": Count,
    "priority": Priority,
    "queue": Annotated[tuple[NodeNumber, ...], PER_NODE],
    "r": Share,
    "rank": Rank,
    "served": Annotated[tuple[Count, ...], PER_NODE],
    "stamp": Count,
    "states": Annotated[str, PER_NODE],
    "t": Share,
    "want": Share,
}


class Shape:
    """The fields of one kind of message."""

    def __init__(self, kind: type[Message]) -> None:
        self.kind = kind
        self.fields = msgspec.defstruct(
            kind.kind,
            [(name, FIELDS[name]) for name in kind.fields],
            array_like=True,
            forbid_unknown_fields=True,
        )

    def message(self, receiver: int, args: Sequence[Any]) -> Message:
        try:
            fields = msgspec.convert(args, self.fields)
        except msgspec.ValidationError as error:
            kind = self.kind.kind
            raise BadFrame(f"a {kind} with other fields than it has: {error}") from None
        return self.kind(receiver, *msgspec.structs.astuple(fields))


def shapes(algorithm: Algorithm) -> dict[str, Shape]:
    return {kind.kind: Shape(kind) for kind in algorithm.kinds}
