"""What messages consist of, and within which limits.

A field means the same wherever it occurs, so its name says what it may hold, unless an algorithm
says otherwise. The records of recovery are here once more, within the limits.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from meshlock.algorithms.direct import LINES
from meshlock.algorithms.recovery import records
from meshlock.live.machine.limits import (
    MEMBERS,
    MOST_NAMED,
    MOST_NODES,
    Clock,
    Count,
    EpochCount,
    EpochGrants,
    Free,
    Hop,
    Level,
    Name,
    NodeNumber,
    Note,
    Permits,
    Rank,
    Share,
    Urgency,
)

PER_NODE = msgspec.Meta(max_length=MOST_NODES)
PER_LINE = msgspec.Meta(max_length=MOST_NODES * LINES)

# -- the records of recovery ------------------------------------------------------------------


class Epoch(records.Epoch):
    __slots__ = ()
    counter: EpochCount
    proposer: NodeNumber
    boot: Count


class Config(records.Config):
    __slots__ = ()
    epoch: Epoch
    members: Annotated[tuple[NodeNumber, ...], msgspec.Meta(max_length=int(MEMBERS.most))]
    permits: Permits
    lease: Count
    slots: Annotated[tuple[Share, ...], msgspec.Meta(max_length=MOST_NAMED)]
    names: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_NAMED)]


def within(record: type, *types: Any) -> Any:
    """The same record, with these types of its fields."""
    annotations = dict(zip(record.__annotations__, types, strict=True))
    return type(record.__name__, (record,), {"__slots__": (), "__annotations__": annotations})


def row(*types: Any) -> Any:
    return tuple.__class_getitem__(types)


Fence = within(records.Fence, Epoch, EpochGrants)
Returns = row(row(Fence, Share), ...)
Part = within(records.Part, Fence, Share, Share)
Parts = row(Part, ...)
Slots = row(Share, ...)
Entry = within(records.Entry, NodeNumber, Fence, Share, bool, Slots, Note, Slots)
Entries = row(Entry, ...)
Participant = within(records.Participant, NodeNumber, Count, NodeNumber)
Participants: Any = Annotated[row(Participant, ...), PER_NODE]
FirstLedger = within(
    *(records.FirstLedger, Epoch, Config, Participants, Entries, Count, Epoch, EpochGrants), bool
)
TokenState = within(records.TokenState, Epoch, Hop, Free, Entries, EpochGrants)
Unaccepted = within(records.Unaccepted, TokenState, NodeNumber, Count)
Report = within(
    *(records.Report, Count, Epoch, Epoch, Entries, row(Epoch, Hop)),
    *(TokenState | None, Unaccepted | None, Config, bool),
)

Proof = Annotated[bytes, msgspec.Meta(max_length=16)]

SEAL = row(Epoch, Count, TokenState | None, Clock, Parts, Entry | None, row(Proof, ...))
"""Epoch, the receiver's boot, the token's state, what is left of its lease, what is returned, what
is lent, and the proofs of what is returned."""

# -- fields by name ---------------------------------------------------------------------------

FIELDS: dict[str, Any] = {
    "answered": bool,
    "asker": NodeNumber,
    "blocked": Rank | None,
    "boot": Count,
    "config": Config,
    "count": Share,
    "epoch": Epoch,
    "fence": Fence,
    "fences": Returns,
    "first": FirstLedger,
    "free": Share,
    "fresh": bool,
    "given": Rank,
    "grants": Count,
    "height": tuple[Level, Level, NodeNumber],
    "hop": Hop,
    "inside": bool,
    "left": Share,
    "ledger": Entries | None,
    "lender": NodeNumber,
    "lost": bool,
    "mine": Count,
    "node": NodeNumber,
    "number": Count,
    "numbers": Annotated[tuple[Count, ...], PER_NODE],
    "origin": NodeNumber,
    "passed": Count,
    "priority": Urgency,
    "queue": Annotated[tuple[NodeNumber, ...], PER_NODE],
    "r": Share,
    "rank": Rank,
    "received": row(row(Fence, Note), ...),
    "report": Report,
    "same": bool,
    "sent": Clock,
    "served": Annotated[tuple[Count, ...], PER_NODE],
    "since": Count,
    "stamp": Count,
    "states": Annotated[str, PER_NODE],
    "t": Share,
    "want": Share,
    "goscinski queue": Annotated[tuple[tuple[NodeNumber, Urgency], ...], PER_NODE],
    "mueller queue": Annotated[tuple[tuple[NodeNumber, Urgency], ...], PER_NODE],
    "direct queue": Annotated[
        tuple[tuple[NodeNumber, Count, Share, Urgency, Rank, Count], ...], PER_LINE
    ],
}
