"""Locks and semaphores with the interfaces of ``threading`` and ``asyncio``, on a pool.

A program that has ``threading.Lock()`` or ``asyncio.Semaphore(3)`` shares it with other machines by
changing that line. What is acquired is a grant: it can be lost, which those interfaces have no
word for. ``lost`` says so; a program that must know at once uses :meth:`meshlock.Grant.wait_lost`
of ``grants``.
"""

from __future__ import annotations

from _thread import TIMEOUT_MAX, allocate_lock  # threading takes long to import

from meshlock.errors import NoSuchPool, NotInTime, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Generic, TypeVar

    from meshlock.live.interfaces.client import BlockingClient
    from meshlock.live.pools.grants import AnyBlockingPool, BlockingGrant, Grant, Pool

    AnyGrant = TypeVar("AnyGrant", BlockingGrant, Grant)
else:

    class Generic:
        def __class_getitem__(cls, _):
            return cls

    AnyGrant = None

FOREVER = -1
"""Seconds that ``threading.Lock.acquire`` takes for no end."""

LONGEST = 1e9
"""Seconds; more is for ever."""

SHARED: dict[str, BlockingClient] = {}
"""This process's client of the agent, by the agent's socket, for pools that are given by name."""


def by_name(name: str, permits: int | list[str] | tuple[str, ...] | None) -> AnyBlockingPool:
    """The pool of this name at the agent of this machine, which every lock of the process shares; a
    child process has its own connections (see :mod:`.agent_client`)."""
    from meshlock.live.interfaces.agent_connection import default_socket
    from meshlock.live.interfaces.client import connect

    socket = default_socket()
    client = SHARED.get(socket)
    if client is None:
        client = SHARED[socket] = connect(socket)
    return client.pool(name, permits)


class Grants(Generic[AnyGrant]):
    """Those that a lock has and has not released, the oldest first."""

    def __init__(self) -> None:
        self.guard = allocate_lock()
        self.all: list[AnyGrant] = []

    def add(self, grant: AnyGrant) -> None:
        with self.guard:
            self.all.append(grant)

    def release(self, count: int, unlocked: Exception) -> None:
        with self.guard:
            if len(self.all) < count:
                raise unlocked
            ended, self.all = self.all[:count], self.all[count:]
        for grant in ended:
            grant.release()

    def lost(self) -> bool:
        with self.guard:
            return any(grant.lost for grant in self.all)


class PoolLock:
    """What those for threads have in common. ``pool``: of a client or of a blocking node, or the
    name of one at the agent of this machine; then ``permits`` makes it if there is none, and the
    lock can be pickled: its copy elsewhere is the same lock."""

    def __init__(
        self,
        pool: AnyBlockingPool | str,
        permits: int | None = None,
        *,
        want: int = 1,
        priority: int = 0,
        label: str | None = None,
    ) -> None:
        self._named = (pool, permits) if isinstance(pool, str) else None
        self._pool = by_name(pool, permits) if isinstance(pool, str) else pool
        if not hasattr(self._pool, "_wait"):
            raise Refused(
                f"This pool is awaited: use meshlock.Async{type(self).__name__} with it, or a pool "
                f"of meshlock.connect()."
            )
        self._settings: dict[str, Any] = {"want": want, "priority": priority, "label": label}
        self._held: Grants[BlockingGrant] = Grants()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._named is None:
            raise TypeError("Only a lock that was made with the name of its pool can be pickled.")
        return made_again, (type(self), self._named, self._settings)

    @property
    def name(self) -> str:
        """Of the pool."""
        return self._pool.name

    @property
    def grants(self) -> tuple[BlockingGrant, ...]:
        """What is held by this lock, with fences and slots."""
        return tuple(self._held.all)

    @property
    def lost(self) -> bool:
        """Has a lease ended before its release? Then another may have it."""
        return self._held.lost()

    def _get(self, timeout: float | None) -> bool:
        try:
            grant = self._granted(timeout)
        except NotInTime:
            if timeout is None:
                raise  # 'with' would go on without permits
            return False
        self._held.add(grant)
        return True

    def _granted(self, timeout: float | None) -> BlockingGrant:
        try:
            return self._pool.acquire(timeout=timeout, **self._settings)
        except NoSuchPool:  # the agent was restarted, and had it from us
            if self._named is None or self._named[1] is None:
                raise
        self._pool = by_name(*self._named)
        return self._pool.acquire(timeout=timeout, **self._settings)

    def release(self) -> None:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def made_again(kind: type[PoolLock], named: tuple[str, int | None], settings: Any) -> PoolLock:
    return kind(*named, **settings)


class Semaphore(PoolLock):
    """As ``threading.BoundedSemaphore``: at most k at a time, on all machines of the pool.

    >>> import meshlock
    >>> with meshlock.BlockingNode("here") as node:
    ...     seats = meshlock.Semaphore(node.pool("seats", permits=2))
    ...     with seats:
    ...         print(seats.acquire(timeout=1), seats.acquire(blocking=False))
    ...         seats.release()
    True False
    """

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Wait for permits, for ``timeout`` seconds at most; were there any?"""
        if blocking:
            return self._get(None if timeout is None else max(0.0, timeout))
        if timeout is not None:
            raise ValueError("can't specify timeout for non-blocking acquire")
        return self._get(0.0)

    __enter__ = acquire

    @property
    def max_leases(self) -> int | None:
        """All permits of the pool, by the name that dask has for them."""
        return self._pool.permits

    def get_value(self) -> int:
        """How many of them are held in the whole mesh, as dask counts; multiprocessing counts the
        free ones."""
        picture = self._pool.picture()
        if picture["held"] is None:
            raise Refused(f"How many permits of {self.name} are held is unknown: {picture['why']}")
        return picture["held"]

    def release(self, n: int = 1) -> None:
        """Release what was acquired ``n`` times, the oldest first."""
        if n < 1:
            raise ValueError("n must be one or more")
        self._held.release(n, ValueError("Semaphore released too many times"))


class Lock(PoolLock):
    """As ``threading.Lock``: one at a time. The pool has one permit.

    >>> import meshlock
    >>> with meshlock.BlockingNode("here") as node:
    ...     lock = meshlock.Lock(node.pool("report", permits=1))
    ...     with lock:
    ...         print(lock.locked(), lock.acquire(timeout=0.1))
    ...     print(lock.locked())
    True False
    False
    """

    def __init__(
        self,
        pool: AnyBlockingPool | str,
        permits: int | None = None,
        *,
        want: int = 1,
        priority: int = 0,
        label: str | None = None,
    ) -> None:
        super().__init__(pool, permits, want=want, priority=priority, label=label)
        most = self._pool.permits
        if most is not None and 2 * want <= most:
            raise Refused(
                f"Pool {self.name} has {most} permits, so this lock would let in several at a "
                f"time: use meshlock.Semaphore, or a pool of one permit."
            )

    def acquire(self, blocking: bool = True, timeout: float = FOREVER) -> bool:
        """Wait for it, for ``timeout`` seconds at most; -1 is for ever. Is it ours?"""
        if not blocking and timeout != FOREVER:
            raise ValueError("can't specify a timeout for a non-blocking call")
        if timeout < 0 and timeout != FOREVER:
            raise ValueError("timeout value must be a non-negative number")
        if timeout > TIMEOUT_MAX:
            raise OverflowError("timeout value is too large")
        if not blocking:
            return self._get(0.0)
        return self._get(None if timeout == FOREVER or timeout > LONGEST else timeout)

    __enter__ = acquire

    def release(self) -> None:
        self._held.release(1, RuntimeError("release unlocked lock"))

    def locked(self) -> bool:
        """Does anybody have it? Asks for it, and releases it at once."""
        if not self._held.all and self._get(0.0):
            self.release()
            return False
        return True

    def __repr__(self) -> str:
        state = "locked" if self._held.all else "unlocked"
        return f"<{state} meshlock.Lock object of {self._pool.name} at {id(self):#x}>"


def all_permits(pool: AnyBlockingPool | Pool, given: int | None) -> int:
    """How many a writer takes; if it took fewer than there are, readers would be there, too."""
    known = pool.permits
    if known is None and given is None:
        raise Refused(
            f"How many permits pool {pool.name} has is not known here yet: say so, as in "
            f"RWLock(pool, 8)."
        )
    if known is not None and given not in (None, known):
        raise Refused(
            f"Pool {pool.name} has {known} permits, not {given}: use that, or leave it out."
        )
    return known or given or 1


class RWLock:
    """Shared by as many as the pool has permits, or exclusive: ``with lock.shared:`` takes one of
    the permits, ``with lock.exclusive:`` all. Later requests of its priority do not pass one that
    waits for all."""

    def __init__(
        self, pool: AnyBlockingPool | str, permits: int | None = None, *, priority: int = 0
    ) -> None:
        self.shared = Semaphore(pool, permits, priority=priority)
        want = all_permits(self.shared._pool, permits)
        self.exclusive = Semaphore(pool, permits, want=want, priority=priority)


class AsyncSemaphore:
    """As ``asyncio.BoundedSemaphore``, on a pool of a :class:`meshlock.Node` or of a client that
    :func:`meshlock.aconnect` gives.

    >>> import asyncio, meshlock
    >>> async def share():
    ...     async with meshlock.Node("here") as node:
    ...         seats = meshlock.AsyncSemaphore(node.pool("seats", permits=2))
    ...         async with seats:
    ...             print(seats.locked(), await seats.acquire(), seats.locked())
    ...             seats.release()
    >>> asyncio.run(share())
    False True True
    """

    unlocked: type[Exception] = ValueError

    def __init__(
        self, pool: Pool, *, want: int = 1, priority: int = 0, label: str | None = None
    ) -> None:
        if hasattr(pool, "_wait") or not hasattr(pool, "acquire"):
            raise Refused(
                f"{type(self).__name__} takes a pool that is awaited, of meshlock.Node or "
                f"meshlock.aconnect()."
            )
        self._pool = pool
        self._settings: dict[str, Any] = {"want": want, "priority": priority, "label": label}
        self._held: Grants[Grant] = Grants()

    @property
    def grants(self) -> tuple[Grant, ...]:
        return tuple(self._held.all)

    @property
    def lost(self) -> bool:
        return self._held.lost()

    def locked(self) -> bool:
        """Has this object all permits? Others may have some: ``await pool.picture()`` tells."""
        held: int = sum([grant.want for grant in self._held.all]) + self._settings["want"]
        return held > (self._pool.permits or 1)

    async def acquire(self) -> bool:
        self._held.add(await self._pool.acquire(**self._settings))
        return True

    def release(self) -> None:
        self._held.release(1, self.unlocked("released too many times"))

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.release()


class AsyncLock(AsyncSemaphore):
    """As ``asyncio.Lock``: one at a time. The pool has one permit."""

    unlocked = RuntimeError


class AsyncRWLock:
    """See :class:`RWLock`: ``async with lock.shared:`` and ``async with lock.exclusive:``."""

    def __init__(self, pool: Pool, permits: int, *, priority: int = 0) -> None:
        self.shared = AsyncSemaphore(pool, priority=priority)
        self.exclusive = AsyncSemaphore(pool, want=all_permits(pool, permits), priority=priority)
