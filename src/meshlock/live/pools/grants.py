"""What a client sees: it asks, it waits, it holds a grant, it gives it back."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from meshlock.live.machine import clock

if TYPE_CHECKING:
    from meshlock.live.pools.pool import Pool


class Grant:
    """Permits that are yours until you release them, or until their lease is ``lost``.

    ``fence`` is larger than the fence of every grant of this pool before; hand it to the
    resource, so that it can turn away whoever comes late with an older one. It is None where
    the pool's algorithm has a token that does not count its grants.
    """

    __slots__ = ("_lost", "fence", "held", "number", "pool", "priority", "want")

    def __init__(self, pool: Pool, number: int, want: int, priority: int, fence: int) -> None:
        self.pool = pool
        self.number = number
        self.want = want
        self.priority = priority
        self.fence = fence or None
        self.held = True
        self._lost: asyncio.Event | None = None

    @property
    def lost(self) -> asyncio.Event:
        """Set when the permits are yours no more although you have not released them."""
        if self._lost is None:
            self._lost = asyncio.Event()
        return self._lost

    @property
    def deadline(self) -> float | None:
        """When the lease ends unless it is renewed meanwhile, as it is over and over: seconds of
        ``CLOCK_BOOTTIME``. None where the pool has no leases, or the permits are gone."""
        members = self.pool.members
        return members.until(self.number) if members is not None and self.held else None

    @property
    def lease(self) -> float | None:
        """Seconds until :attr:`deadline`."""
        deadline = self.deadline
        if deadline is None:
            return None
        return max(0.0, deadline - clock.seconds())

    def release(self) -> None:
        """Give all permits back. Once is enough; again does nothing."""
        if self.held:
            self.held = False
            self.pool.release(self.number)

    def revoke(self) -> None:
        if self.held:
            self.held = False
            self.lost.set()

    def __enter__(self) -> Grant:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        state = "held" if self.held else "given back"
        return f"<Grant of {self.want} in {self.pool.name}, fence {self.fence}, {state}>"


class Waiter:
    """One request, from the moment it is made until its permits are back."""

    __slots__ = ("abandoned", "asked", "failure", "future", "grant", "number", "priority", "want")

    def __init__(self, number: int, want: int, priority: int, asked: float) -> None:
        self.number = number
        self.want = want
        self.priority = priority
        self.asked = asked
        self.grant: Grant | None = None
        self.future: asyncio.Future[Grant] | None = None
        self.failure: Exception | None = None  # why it could not even be handed in
        self.abandoned = False  # nobody waits any more: what comes goes straight back


class Acquire:
    """What :meth:`Pool.acquire` returns: await it for a grant, or use it with ``async with``."""

    __slots__ = ("grant", "pool", "priority", "timeout", "want")

    def __init__(self, pool: Pool, want: int, priority: int, timeout: float | None) -> None:
        self.pool = pool
        self.want = want
        self.priority = priority
        self.timeout = timeout
        self.grant: Grant | None = None

    def __await__(self) -> Generator[Any, None, Grant]:
        return self.pool.wait_for(self.want, self.priority, self.timeout).__await__()

    async def __aenter__(self) -> Grant:
        self.grant = await self.pool.wait_for(self.want, self.priority, self.timeout)
        return self.grant

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.grant is not None:
            self.grant.release()
