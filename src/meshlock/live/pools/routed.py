"""Messages between nodes that need not be neighbours: handed on along the mesh's routes.

A routed message may get lost when links change; whoever needs an answer writes again. What it takes
on the way matters for the token alone, whose lease goes on running: every hop adds an upper
bound of the time since the hop before (:meth:`~meshlock.live.links.mesh.Mesh.stamp`). The stamp is
taken before the time so far is, so that a process that is stopped in between counts it
twice and not never.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec

from meshlock.algorithms.interface import Message
from meshlock.algorithms.recovery.messages import KINDS, Request
from meshlock.live.links.frames import FRAME_LIMIT, UNREADABLE, BadFrame
from meshlock.live.links.mesh import Mesh
from meshlock.live.machine.limits import (
    MEMBERS,
    SPAN,
    Clock,
    Count,
    EpochCount,
    EpochGrants,
    Hop,
    NodeNumber,
    Permits,
    Priority,
    Share,
    Span,
    Word,
)

DRIFT = 0.01
"""Clocks run at rates that differ from true time by at most this factor."""

MOST_HOPS = 64

# The same as in :mod:`meshlock.algorithms.recovery.messages`, within the limits.
Epoch = tuple[EpochCount, NodeNumber, Count]
Fence = tuple[Epoch, EpochGrants]
Members = Annotated[tuple[NodeNumber, ...], msgspec.Meta(max_length=int(MEMBERS.most))]
Config = tuple[Epoch, Members, Permits, Count]
Entry = tuple[NodeNumber, Fence, Share, bool]
Asked = tuple[NodeNumber, Count, Share, Priority, EpochGrants, Count]
Papers = tuple[Epoch, Hop, Share, tuple[Entry, ...], EpochGrants]
Doubt = tuple[Papers, NodeNumber, Count]
Report = tuple[
    Count,
    Epoch,
    Epoch,
    tuple[tuple[Fence, Share], ...],
    tuple[Epoch, Hop],
    Papers | None,
    Doubt | None,
    Config,
]

TOKEN, LATER = "TOKEN", "LATER"
LAZY = ("RELEASED",)
"""Receipts that nobody waits for: they leave with the next message, or the next heartbeat."""

KIND: dict[str, type[Message]] = {kind.kind: kind for kind in KINDS}
KIND[LATER] = Request
FIELDS: dict[str, Any] = {
    "PROPOSE": tuple[Epoch, Config],
    "REFUSE": tuple[Config],
    "PROMISE": tuple[Epoch, Report],
    "HIGHER": tuple[Epoch],
    "LEDGER": tuple[Epoch, tuple[Entry, ...], Config, Count, Count, Clock],
    "RENEW": tuple[Epoch, Count, Hop, Clock],
    "STILL": tuple[Epoch, Count, Clock, Count],
    "WHICH": tuple[NodeNumber, Count],
    "COPY": tuple[Epoch, tuple[Entry, ...], Config, Hop, Count],
    "PRESS": tuple[Epoch, Hop],
    "TOKEN": tuple[Papers, Config, Count, tuple[Asked, ...], Clock, Span],
    "GOT": tuple[Epoch, Hop],
    "REQUEST": tuple[Epoch, Asked, Hop],
    LATER: tuple[Epoch, Asked, Hop],  # a REQUEST that waits for the token, see waiting_ahead
    "RELEASE": tuple[Epoch, Fence, Share, NodeNumber],
    "RELEASED": tuple[Epoch, Fence],
}
"""What each kind consists of: whatever does not fit is refused before the algorithm sees it."""


CONTENTS = {kind.kind: attrgetter("kind", *kind.fields) for kind in KINDS}
"""Of a message: what it consists of, behind its kind."""
DECODE = {kind: msgspec.msgpack.Decoder(fields).decode for kind, fields in FIELDS.items()}
_encode = msgspec.msgpack.Encoder().encode


class Routed(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    origin: Word
    target: Word
    hops: Annotated[int, msgspec.Meta(ge=0, le=MOST_HOPS)]  # that are left
    travelled: Span  # ns, before the last hop
    echo: Clock
    held: Span
    fields: Annotated[bytes, msgspec.Meta(max_length=FRAME_LIMIT)]  # only the receiver opens it


def read(args: Sequence[Any]) -> Routed:
    try:
        return msgspec.convert(args, Routed)
    except msgspec.ValidationError as error:
        raise BadFrame(f"a routed message that cannot be read: {error}") from None


def message(kind: str, routed: Routed, receiver: int) -> Message:
    if kind not in DECODE:
        raise BadFrame(f"a message {kind[:64]!r}, which pools with leases do not have")
    try:
        return KIND[kind](receiver, *DECODE[kind](routed.fields))
    except UNREADABLE as error:
        raise BadFrame(f"a {kind} with other fields than it has: {error}") from None


def post(
    mesh: Mesh, pool: str, kind: str, ends: tuple[str, str], since: int, fields: Sequence[Any]
) -> None:
    """Write to anybody in the mesh; ``since``, on our clock, is when what we say was true."""
    origin, target = ends
    step = mesh.link_map.route(target)
    if step is None:
        return
    echo = held = travelled = 0
    if kind == TOKEN:
        echo, held = mesh.stamp(step)
        travelled = mesh.clock() - since
    args = (origin, target, MOST_HOPS, travelled, echo, held, _encode(fields))
    mesh.send(step, pool, kind, args, urgent=kind not in LAZY)


def hand_on(mesh: Mesh, pool: str, kind: str, routed: Routed) -> None:
    step = mesh.link_map.route(routed.target)
    if step is None or routed.hops <= 0:
        return
    echo, held = mesh.stamp(step) if kind == TOKEN else (0, 0)
    travelled = time_under_way(mesh, routed) if kind == TOKEN else 0
    onward = (routed.origin, routed.target, routed.hops - 1, travelled, echo, held, routed.fields)
    mesh.send(step, pool, kind, onward)


def time_under_way(mesh: Mesh, routed: Routed) -> int:
    """An upper bound, in ns, whatever the rates of the clocks are, within what is assumed."""
    last = mesh.travelled((routed.echo, routed.held))
    total = routed.travelled + last + int(DRIFT * (last + 2 * routed.held))
    return min(total, int(SPAN.most))  # longer than any lease, and can still be written down
