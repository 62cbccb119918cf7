"""What a client sees: it asks, it waits, it holds a grant, it gives it back.

The same for clients of a node in this process and of an agent on this machine: a :class:`Grant`
where one awaits, a :class:`BlockingGrant` where one has threads.
"""

from __future__ import annotations

from meshlock.live.machine import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator
    from types import TracebackType
    from typing import Any, Protocol

    class Giver(Protocol):
        """Whoever a grant goes back to: a pool of a node, or of a client of the agent."""

        @property
        def name(self) -> str: ...

        def release(self, number: int) -> None:
            """The permits of this grant come back."""

        def until(self, number: int) -> float | None:
            """The end of its lease."""

    class Giving(Giver, Protocol):
        async def wait_for(self, want: int, priority: int, timeout: float | None) -> Grant: ...


class Grant:
    """Permits that are yours until you release them, or until they are ``lost``.

    ``fence`` is larger than the fence of every grant of this pool before; hand it to the
    resource, so that it can turn away whoever comes late with an older one. It is None where
    the pool's algorithm has a token that does not count its grants. ``permits`` is how many the
    pool had in all when this was granted, where that may change; else 0.
    """

    __slots__ = (
        *("_at_end", "fence", "held", "lost", "number"),
        *("permits", "pool", "priority", "want"),
    )

    def __init__(self, pool: Giver, number: int, want: int, priority: int, fence: int) -> None:
        self.pool = pool
        self.number = number
        self.want = want
        self.priority = priority
        self.fence = fence or None
        self.permits = 0
        self.held = True
        self.lost = False
        """True once the permits are yours no more although you have not released them."""
        self._at_end: list[Callable[[], object]] = []

    @property
    def deadline(self) -> float | None:
        """When the lease ends unless it is renewed meanwhile, as it is over and over: seconds of
        ``CLOCK_BOOTTIME``. None where the pool has no leases, or the permits are gone."""
        return self.pool.until(self.number) if self.held else None

    @property
    def lease(self) -> float | None:
        """Seconds until :attr:`deadline`."""
        return time_left(self.deadline)

    async def wait_lost(self) -> bool:
        """Wait until the permits are lost: True; or until you have released them: False."""
        if self.held:
            from asyncio import Event

            over = Event()
            self.at_end(over.set)
            await over.wait()
        return self.lost

    def at_end(self, work: Callable[[], object]) -> None:
        """Call this when the permits are lost or released."""
        self._at_end.append(work)

    def release(self) -> None:
        """Give all permits back. Once is enough; again does nothing."""
        if self.held:
            self.held = False
            self.pool.release(self.number)
            self.end()

    def revoke(self) -> None:
        if self.held:
            self.held = False
            self.lost = True
            self.end()

    def end(self) -> None:
        for work in self._at_end:
            work()

    def __enter__(self) -> Grant:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return described(self)


class BlockingGrant:
    """The same where every call waits until it is done. Do not make one yourself."""

    __slots__ = ("fence", "pool", "priority", "want")

    def __init__(self, pool: str, want: int, priority: int, fence: int | None) -> None:
        self.pool = pool
        self.want = want
        self.priority = priority
        self.fence = fence

    @property
    def held(self) -> bool:
        """Neither released nor lost."""
        raise NotImplementedError

    @property
    def lost(self) -> bool:
        """True once the permits are yours no more although you have not released them."""
        raise NotImplementedError

    @property
    def deadline(self) -> float | None:
        """See :attr:`Grant.deadline`."""
        raise NotImplementedError

    @property
    def lease(self) -> float | None:
        """Seconds until the lease ends unless it is renewed; None in pools without leases."""
        return time_left(self.deadline)

    def wait_lost(self, timeout: float | None = None) -> bool:
        """Wait until the permits are lost: True; or until they are released, or so many seconds
        have passed: False."""
        raise NotImplementedError

    def release(self) -> None:
        """Give all permits back. Once is enough; again does nothing."""
        raise NotImplementedError

    def __enter__(self) -> BlockingGrant:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return described(self)


def time_left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - clock.seconds())


def described(grant: Grant | BlockingGrant) -> str:
    state = "held" if grant.held else "lost" if grant.lost else "given back"
    pool = grant.pool if isinstance(grant.pool, str) else grant.pool.name
    return f"<Grant of {grant.want} in {pool}, fence {grant.fence}, {state}>"


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

    def __init__(self, pool: Giving, want: int, priority: int, timeout: float | None) -> None:
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
