"""How the fields of messages are read: each kind says what its fields hold, here is within which
limits. The records of recovery are here once more, with theirs."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from meshlock.algorithms.actor import Message
from meshlock.algorithms.conflicts import LINES
from meshlock.algorithms.recovery import records
from meshlock.errors import Refused
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


def row(*types: Any) -> Any:
    return tuple.__class_getitem__(types)


def at_most(length: int, *types: Any) -> Any:
    """This number of these, or of rows of these."""
    one = types[0] if len(types) == 1 else row(*types)
    return Annotated[row(one, ...), msgspec.Meta(max_length=length)]


LIMITED: dict[object, Any] = {}  # by the record


def within(record: type, *types: Any) -> Any:
    """The same record, with these types of its fields."""
    annotations = dict(zip(record.__annotations__, types, strict=True))
    parts = {"__slots__": (), "__annotations__": annotations}
    LIMITED[record] = limited = type(record.__name__, (record,), parts)
    return limited


EPOCH = within(records.Epoch, EpochCount, NodeNumber, Count)
NAMES = at_most(MOST_NAMED, Name)
SLOTS = at_most(MOST_NAMED, Share)
MEMBERS_OF = at_most(int(MEMBERS.most), NodeNumber)
CONFIG = within(records.Config, EPOCH, MEMBERS_OF, Permits, Count, SLOTS, NAMES)
FENCE = within(records.Fence, EPOCH, EpochGrants)
PARTS = row(within(records.ReleasedPart, FENCE, Share, Share), ...)
ENTRY = within(
    records.Entry, NodeNumber, FENCE, Share, bool, row(Share, ...), Note, row(Share, ...)
)
ENTRIES = row(ENTRY, ...)
PARTICIPANTS = at_most(MOST_NODES, within(records.Participant, NodeNumber, Count, NodeNumber))
within(
    *(records.FirstLedger, EPOCH, CONFIG, PARTICIPANTS, ENTRIES, Count, EPOCH, EpochGrants), bool
)
STATE = within(records.TokenState, EPOCH, Hop, Free, ENTRIES, EpochGrants)
UNACCEPTED = within(records.Unaccepted, STATE, NodeNumber, Count)
within(
    *(records.Report, Count, EPOCH, EPOCH, ENTRIES, row(EPOCH, Hop)),
    *(STATE | None, UNACCEPTED | None, CONFIG, bool, bool),
)
PROOFS = row(Annotated[bytes, msgspec.Meta(max_length=16)], ...)

SEAL = row(EPOCH, Count, STATE | None, Clock, PARTS, ENTRY | None, PROOFS)
"""Epoch, the receiver's boot, the token's state, what is left of its lease, what is returned, what
is lent, and the proofs of what is returned."""

MEANINGS: dict[object, Any] = {
    **LIMITED,
    "clock": Clock,
    "count": Count,
    "counts": at_most(MOST_NODES, Count),
    "flag": bool,
    "free": Free,
    "height": tuple[Level, Level, NodeNumber],
    "hop": Hop,
    "ledger or none": ENTRIES | None,
    "letters": Annotated[str, msgspec.Meta(max_length=MOST_NODES)],
    "lines": at_most(MOST_NODES * LINES, NodeNumber, Count, Share, Urgency, Rank, Count),
    "node": NodeNumber,
    "nodes": at_most(MOST_NODES, NodeNumber),
    "notes": row(row(FENCE, Note), ...),
    "priorities": at_most(MOST_NODES, NodeNumber, Urgency),
    "rank": Rank,
    "rank or none": Rank | None,
    "returns": row(row(FENCE, Share), ...),
    "share": Share,
    "urgency": Urgency,
}


def types_of(kind: type[Message]) -> list[Any]:
    """Of the fields of such a message."""
    if len(kind.wire) != len(kind.fields) or not all(said in MEANINGS for said in kind.wire):
        known = ", ".join([said for said in MEANINGS if isinstance(said, str)])
        raise Refused(
            f"Live nodes cannot send {kind.kind}: its class must say in 'wire' what each of its "
            f"fields {', '.join(kind.fields)} holds, each one of {known}."
        )
    return [MEANINGS[said] for said in kind.wire]
