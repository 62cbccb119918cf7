"""What a node and its pools say of themselves, as plain values with known keys.

Python and HTTP answer the same. More keys than these may be there, and may change; these stay.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, Required, TypedDict

import msgspec

from meshlock.live.machine.limits import MOST_NAMED, Count, Priority, Share

Sentence = Annotated[str, msgspec.Meta(max_length=400)]
Word = Annotated[str, msgspec.Meta(max_length=100)]

GONE = 30.0
"""Seconds after which a node that is unreachable, and a member of no pool, is not missed."""


class GrantView(TypedDict):
    """Permits that are out, wherever they are; ``seconds``: since they were granted. ``lapsing``:
    their node is lost, and they come back when the lease is over. Priority and lease are known to
    their own node only."""

    node: Word
    label: Sentence
    want: Share
    slots: Annotated[list[Word], msgspec.Meta(max_length=MOST_NAMED)]
    fence: Word | None  # as text: pages count exactly up to 2**53 only
    seconds: float
    lapsing: bool
    client: Count
    priority: NotRequired[Priority]
    lease: NotRequired[float | None]  # seconds that are left; None in pools without leases


class RequestView(TypedDict):
    """A request that waits, wherever it is; ``deadline``: seconds until it, below 0 if it has
    passed; null if there is none."""

    node: Word
    label: Sentence
    want: Share
    priority: Priority
    deadline: float | None
    seconds: float
    client: Count


class Picture(TypedDict):
    """``free`` and ``held`` are never more than ``permits``; None if unknown, and ``why`` says why.
    It also names a disk that keeps everybody from being served. ``surplus``: permits held beyond
    these, since the pool was made smaller. Of many holders and waiting requests the first are
    listed; ``queued``: how many wait."""

    permits: int
    token: str | None
    free: int | None
    held: int | None
    surplus: int
    holding: list[GrantView]
    waiting: list[RequestView]
    queued: int
    why: str


class Holder(TypedDict):
    """A grant of a client of this node; ``seconds``: since it was granted."""

    want: int
    priority: int
    met: bool | None
    fence: int | None
    lease: float | None
    slots: list[str]
    label: str
    seconds: float


class Waiting(TypedDict):
    """A request of a client of this node; ``deadline``: seconds until it, below 0 if it has passed;
    null if there is none."""

    want: int
    priority: int
    deadline: float | None
    label: str
    seconds: float


class PoolStatus(TypedDict, total=False):
    """Of a pool that is not known yet only ``known`` and ``why`` are said."""

    known: Required[bool]
    permits: int
    slots: list[str]
    algorithm: str
    founder: str
    neighbours: list[str]
    token_here: bool
    free_here: int
    holding: list[Holder]
    waiting: list[Waiting]
    queued: int
    entries: int
    deadlines_met: int
    deadlines_missed: int
    conflict: str
    members: list[str]
    members_reachable: int
    members_without_vote: list[str]
    quorum: int
    unready: str
    disk: str
    epoch: int | None
    unreachable: list[str]
    why: str
    lease: float
    recovery: str


class LinkStatus(TypedDict):
    """``gone``: as in NodeStatus, and no message is queued for it."""

    up: bool
    left: bool
    gone: bool
    address: str | None
    unacknowledged: int


class NodeStatus(TypedDict):
    """``gone``: unreachable for half a minute, and not missed: it is a member of no pool."""

    links: list[str]
    distance: int | None
    unreachable_for: float | None
    left: bool
    gone: bool
    only_way: bool


class Status(TypedDict):
    """``links`` are those of this node; ``no_link``: why addresses that it dials have none;
    ``map``: all nodes that it knows of."""

    node: str
    address: str | None
    protected: bool
    refused: int
    in_doubt: int
    no_link: dict[str, str]
    links: dict[str, LinkStatus]
    map: dict[str, NodeStatus]
    pools: dict[str, PoolStatus]


def mark_gone(known: dict[str, Any], links: dict[str, Any], pools: dict[str, Any]) -> None:
    """Nodes that are unreachable stand in the map for minutes. Nobody has to do anything about
    those that are not missed."""
    members = {name for pool in pools.values() for name in pool.get("members", ())}
    for name, one in known.items():
        one["gone"] = name not in members and (one["unreachable_for"] or 0.0) >= GONE
    for peer, link in links.items():
        gone = peer not in known or known[peer]["gone"]
        link["gone"] = gone and not link["up"] and not link["unacknowledged"]
    for pool in pools.values():
        if "unreachable" in pool:
            away = [name for name in pool["unreachable"] if name in members or name in known]
            pool["unreachable"] = [
                name for name in away if name not in known or not known[name]["gone"]
            ]
