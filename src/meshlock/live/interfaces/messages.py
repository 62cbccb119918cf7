"""What is said over HTTP, both ways: requests are checked by these, and OpenAPI describes them.

What an answer says beyond this may change; what is here stays.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from meshlock.live.machine import limits
from meshlock.live.machine.limits import Deadline, Name, Priority, Timeout, Ttl, Want
from meshlock.live.pools.status import PoolStatus

TTL = 30.0

Text = Annotated[str, msgspec.Meta(max_length=1000)]


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """What a program may ask for."""


class AcquireRequest(Asked):
    """Permits of a pool. They go back when ``ttl`` seconds have passed without a renewal; or, if a
    ``session`` is named, when that ends. The ``deadline`` is in seconds from now. While it
    waits, the request is known by the name that is given as ``request``."""

    want: Want = 1
    priority: Priority = 0
    deadline: Deadline | None = None
    timeout: Timeout | None = 10.0
    ttl: Ttl = TTL
    session: str | None = None
    label: Text | None = None
    request: Name | None = None


class ChangePriority(Asked):
    """Of a request that waits: another priority, another deadline, in seconds from now, or
    both."""

    priority: Priority | None = None
    deadline: Deadline | None = None


class OfRelease(Asked):
    """How many permits to release, the last of the slots first; default: all."""

    permits: Want | None = None


class ChangeMembers(Asked):
    """One member more, or one less."""

    add: Name | None = None
    remove: Name | None = None
    timeout: Timeout | None = 30.0


class ChangePermits(Asked):
    """The number of permits from now on."""

    permits: limits.Permits | list[str]
    timeout: Timeout | None = 30.0


class Join(Asked):
    """A pool that has this number of permits, or is made with them."""

    permits: limits.Permits | list[str]


class Joined(msgspec.Struct):
    joined: str


class Create(Asked):
    """A pool of this number of permits; None: as the agent was told to make it."""

    permits: limits.Permits | list[str] | None = None


class JoinFrom(Asked):
    """The pool of this name in which that neighbour is."""

    node: limits.Name


class OfSession(Asked):
    """``leases``: send renewals, too."""

    leases: bool = False


class Why(msgspec.Struct):
    why: str


class NotNow(Why):
    """It cannot be done as things are; ``timed_out``: it could not in the time that it had."""

    timed_out: bool = False


class Healthy(msgspec.Struct):
    node: str
    version: str


class Ready(msgspec.Struct):
    node: str
    ready: bool
    why: list[str]


class Granted(msgspec.Struct):
    """``met``: was it granted by its deadline? Null without one. ``permits``: of the pool."""

    grant: str
    pool: str
    permits: int | None
    want: int
    priority: int
    met: bool | None
    fence: int | None
    slots: tuple[str, ...]
    ttl: float | None
    lease: float | None
    until: float | None


class Urgent(msgspec.Struct):
    """What was changed; ``deadline``: seconds until it."""

    request: str
    priority: int
    deadline: float | None


class Renewed(msgspec.Struct):
    ttl: float
    lease: float | None


class Opened(msgspec.Struct):
    session: str
    node: str
    version: str


class Event(msgspec.Struct):
    event: str
    grant: str
    until: float | None = None


class Events(msgspec.Struct):
    events: list[Event]


class Members(msgspec.Struct):
    members: list[str]


class Permits(msgspec.Struct):
    permits: int


class Removed(msgspec.Struct):
    removed: str


class PoolShown(msgspec.Struct):
    pool: str
    status: PoolStatus
