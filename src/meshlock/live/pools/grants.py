"""What a client sees: it asks, it waits, it holds a grant, it gives it back.

The same for clients of a node in this process and of an agent on this machine: a :class:`Grant`
where one awaits, a :class:`BlockingGrant` where one has threads.
"""

from __future__ import annotations

from functools import wraps

from meshlock.errors import NotInTime, Refused
from meshlock.live.machine import clock

LATEST = 31_536_000.0  # seconds from now: no deadline is later than in a year
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from types import TracebackType
    from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

    from meshlock.live.pools.status import Picture

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")

    Asked = tuple[int, int, float | None, str | None, float | None]
    """What :class:`Acquire` is given after its source."""

    class Granter(Protocol):
        """Where grants come from and go back to, by their numbers."""

        name: str

        def release(self, number: int) -> None: ...
        def release_some(self, number: int, permits: int) -> None:
            """The last of its slots come back."""

        def until(self, number: int) -> float | None:
            """The end of its lease."""


class Grant:
    """Permits that are yours until you release them, or until they are ``lost``.

    ``fence`` is larger than the fence of every grant of this pool before; hand it to the
    resource, so that it can refuse a late client with an older one. It is None where
    the pool's algorithm has a token that does not count its grants. ``permits`` is how many the
    pool had in all when this was granted, where that may change; else 0. ``slots`` are the names of
    its permits, where they have names: no other grant has them meanwhile. ``met``: was it granted
    by the deadline of its request? None without a deadline.
    """

    __slots__ = (
        *("_at_end", "_ended", "_lost", "_number", "_source"),
        *("fence", "met", "permits", "priority", "slots", "want"),
    )

    def __init__(
        self,
        source: Granter,
        number: int,
        want: int,
        priority: int,
        fence: int,
        slots: tuple[str, ...] = (),
        met: bool | None = None,
    ) -> None:
        self._source = source
        self._number = number
        self.want = want
        self.priority = priority
        self.fence = fence or None
        self.permits = 0
        self.slots = slots
        self.met = met
        self._ended = False  # released, or lost as far as we have been told
        self._lost = False
        self._at_end: list[Callable[[], object]] = []

    @property
    def pool(self) -> str:
        """The name of its pool."""
        return self._source.name

    @property
    def held(self) -> bool:
        """Neither released nor lost."""
        return not self._ended and not self._is_over()

    @property
    def lost(self) -> bool:
        """True once the permits are yours no more although you have not released them. By the
        clock, too: a program that was stopped for longer than its lease need not be told first."""
        return self._lost or (not self._ended and self._is_over())

    def _is_over(self) -> bool:
        until = self._source.until(self._number)
        return until is not None and clock.seconds() >= until

    @property
    def until(self) -> float | None:
        """When the lease ends unless it is renewed meanwhile, as it is over and over: seconds of
        ``CLOCK_BOOTTIME``. None where the pool has no leases, or the permits are gone."""
        return None if self._ended else self._source.until(self._number)

    @property
    def lease(self) -> float | None:
        """Seconds until :attr:`until`."""
        return time_left(self.until)

    async def wait_lost(self) -> bool:
        """Wait until the permits are lost: True; or until you have released them: False."""
        if not self._ended:
            from asyncio import Event

            over = Event()
            self.at_end(over.set)
            await over.wait()
        return self.lost

    def at_end(self, work: Callable[[], object]) -> None:
        """Call this when the permits are lost or released."""
        self._at_end.append(work)

    def release(self, permits: int | None = None) -> None:
        """Release this many permits, the last of its ``slots`` first; default: all. Once is enough;
        again does nothing. Others can have them when you next await something: what you ask for
        until then goes along."""
        if not self._ended and permits is not None and part(permits, self.want):
            self.want -= permits
            self.slots = self.slots[: self.want]
            self._source.release_some(self._number, permits)
        elif not self._ended:
            self._ended = True
            self._source.release(self._number)
            if self._at_end:
                self._end()

    def _revoke(self) -> None:
        if not self._ended:
            self._ended = True
            self._lost = True
            self._end()

    def _disown(self) -> None:
        """It belongs to another process, which will hear of its end."""
        self._ended = self._lost = True

    def _end(self) -> None:
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

    __slots__ = ("_grant", "fence", "met", "pool", "priority", "slots", "want")

    def __init__(self, grant: Grant) -> None:
        self._grant = grant
        self.pool = grant.pool
        self.want = grant.want
        self.priority = grant.priority
        self.fence = grant.fence
        self.slots = grant.slots
        self.met = grant.met

    @property
    def held(self) -> bool:
        """Neither released nor lost."""
        raise NotImplementedError

    @property
    def lost(self) -> bool:
        """True once the permits are yours no more although you have not released them."""
        raise NotImplementedError

    @property
    def until(self) -> float | None:
        """See :attr:`Grant.until`."""
        raise NotImplementedError

    @property
    def lease(self) -> float | None:
        """Seconds until the lease ends unless it is renewed; None in pools without leases."""
        return time_left(self.until)

    def wait_lost(self, timeout: float | None = None) -> bool:
        """Wait until the permits are lost: True; or until they are released, or ``timeout``
        seconds have passed: False."""
        raise NotImplementedError

    def release(self, permits: int | None = None) -> None:
        """Release this many permits; default: all. See :meth:`Grant.release`."""
        raise NotImplementedError

    def __enter__(self) -> BlockingGrant:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __repr__(self) -> str:
        return described(self)


def moment(deadline: float | None) -> float | None:
    """When that is, in this number of seconds from now, by :func:`.clock.seconds`."""
    if deadline is None:
        return None
    if type(deadline) not in (int, float) or not 0 <= deadline <= LATEST:
        from meshlock.live.machine import limits  # blocking clients start without it

        deadline = limits.DEADLINE.real(deadline)
    return clock.seconds() + deadline


def seconds(timeout: float) -> float:
    if type(timeout) in (int, float) and 0 <= timeout <= 1e9:
        return timeout
    from meshlock.live.machine import limits  # blocking clients start without it

    return limits.TIMEOUT.real(timeout)


def part(permits: int, held: int) -> bool:
    """Is it a part of what is held, and not all of it?"""
    if type(permits) is not int or not 1 <= permits <= held:
        from meshlock.live.machine.limits import shown  # blocking clients start without it

        raise Refused(f"Cannot release {shown(permits)} permits: this grant has {held}.")
    return permits < held


def time_left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - clock.seconds())


def described(grant: Grant | BlockingGrant) -> str:
    state = "held" if grant.held else "lost" if grant.lost else "released"
    return f"<Grant of {grant.want} in {grant.pool}, fence {grant.fence}, {state}>"


class Acquire:
    """What :meth:`Pool.acquire` returns: await it for a grant, or use it with ``async with``.

    While it waits, :meth:`change` makes it more or less urgent: it keeps the age it has.
    """

    __slots__ = (
        *("_awaited", "_priority", "_source", "due", "grant", "label", "over"),
        *("timeout", "waiter", "want"),
    )

    def __init__(
        self,
        source: Source,
        want: int,
        priority: int,
        timeout: float | None,
        label: str | None,
        due: float | None = None,
    ) -> None:
        self._source = source
        self.want = want
        self._priority = priority
        self.due = due  # its deadline, by clock.seconds
        self.timeout = timeout
        self.label = label
        self.grant: Grant | None = None
        self.waiter: Any = None  # of a pool on this node, while it waits
        self.over = False  # of a client of the agent: it waits no more
        self._awaited = True  # or nobody has to

    @property
    def priority(self) -> int:
        """May be set while it waits; whether that was done, :meth:`change` says."""
        return self._priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self._source.change_priority(self, priority)

    def set_urgency(self, priority: int, due: float | None) -> None:
        self._priority = priority
        self.due = due

    @property
    def deadline(self) -> float | None:
        """Seconds until its deadline, below 0 if it has passed; None without one."""
        return None if self.due is None else self.due - clock.seconds()

    async def change(self, *, priority: int | None = None, deadline: float | None = None) -> bool:
        """Set another priority, another deadline, in seconds from now, or both.

        True: it was done. False: it is too late, the request does not wait any more. If the
        algorithm of the pool cannot change a request that waits, that is refused in a sentence.
        """
        return await self._source.change(self, priority, moment(deadline))

    def __await__(self) -> Generator[Any, None, Grant]:
        self._awaited = True
        return self._source.served(self).__await__()

    def __del__(self) -> None:
        if not getattr(self, "_awaited", True):
            from warnings import warn

            text = f"acquire of {self._source.name} was never awaited: nothing was requested"
            warn(text, RuntimeWarning, source=self, stacklevel=2)

    async def __aenter__(self) -> Grant:
        self.grant = await self
        return self.grant

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.grant is not None:
            self.grant.release()


class Source:
    """What is behind a :class:`Pool`: a pool of a node here, or what the agent has of it."""

    name: str

    @property
    def permits(self) -> int | None:
        raise NotImplementedError

    async def perform(self, what: str, **asked: Any) -> Any:
        """One operation on the pool, as ``/v1/pools/NAME/WHAT`` has it; the result is as there."""
        raise NotImplementedError

    async def served(self, request: Acquire) -> Grant:
        """Wait for its permits."""
        raise NotImplementedError

    def change_priority(self, request: Acquire, priority: int) -> None:
        """Of one that may wait already."""
        raise NotImplementedError

    async def change(self, request: Acquire, priority: int | None, deadline: float | None) -> bool:
        """The same, and its deadline: was it done?"""
        raise NotImplementedError


class Pool:
    """A named set of k permits, and the nodes that share them.

    Do not make one yourself: ask :meth:`meshlock.Node.pool` or :meth:`meshlock.Client.pool`.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """What all nodes call it."""
        return self._source.name

    @property
    def permits(self) -> int | None:
        """k, once that is known here; it may change where there are leases."""
        return self._source.permits

    def acquire(
        self,
        want: int = 1,
        *,
        priority: int = 0,
        deadline: float | None = None,
        timeout: float | None = None,
        label: str | None = None,
    ) -> Acquire:
        """Ask for ``want`` of the permits. A larger ``priority`` goes first; of one priority, the
        earliest ``deadline``, in seconds from now; a request without one goes last.

        ``async with pool.acquire(2) as grant:`` gives them back at the end of the block;
        ``grant = await pool.acquire(2)`` leaves that to you. After ``timeout`` seconds
        without permits it raises :class:`~meshlock.NotInTime`, a TimeoutError that says why; with
        0 it asks the holder of the token, and says yes or no at once. A request that times out or
        is cancelled leaves nothing behind. By its ``label`` it is known in the whole mesh.

        >>> import asyncio, meshlock
        >>> async def share():
        ...     async with meshlock.Node("here") as node:
        ...         docks = node.pool("docks", permits=3)
        ...         grant = await docks.acquire(2)
        ...         try:
        ...             await docks.acquire(2, timeout=0.1)
        ...         except TimeoutError as error:
        ...             print(error)
        ...         grant.release()
        ...         async with docks.acquire(3, priority=9) as later:
        ...             print(later.want, "now; fences grow:", later.fence > grant.fence)
        >>> asyncio.run(share())
        No permits of docks within 0.1 s: 1 free, 2 wanted.
        3 now; fences grow: True
        """
        patience = None if timeout is None else seconds(timeout)
        request = Acquire(self._source, want, priority, patience, label, moment(deadline))
        request._awaited = False
        return request

    async def try_acquire(
        self, want: int = 1, *, priority: int = 0, label: str | None = None
    ) -> Grant | None:
        """The permits if they can be had at once, wherever the token is; else None.

        Why not, ``acquire`` with a timeout of 0 says.

        >>> import asyncio, meshlock
        >>> async def look():
        ...     async with meshlock.Node("here") as node:
        ...         docks = node.pool("docks", permits=3)
        ...         with await docks.try_acquire(2):
        ...             print(await docks.try_acquire(2))
        >>> asyncio.run(look())
        None
        """
        try:
            return await Acquire(self._source, want, priority, 0.0, label)
        except NotInTime:
            return None

    async def picture(self) -> Picture:
        """Who holds the permits of this pool and who waits for them, in the whole mesh."""
        return await self._source.perform("who")  # type: ignore[no-any-return]

    async def set_permits(
        self, permits: int | list[str] | tuple[str, ...], *, timeout: float | None = None
    ) -> int:
        """Have this number of permits from now on, or those of these names; the result is how many
        there are then.

        Grants go on. If more are held than there are to be, nobody gets any before enough came
        back. A name that is taken away stays with its holder until it comes back, and is
        granted to nobody else. Of a pool with names a number keeps the first ones, or brings
        names back that there were before. A node that is no member asks one.
        """
        done = await self._source.perform("permits", permits=permits, timeout=timeout)
        return done["permits"]  # type: ignore[no-any-return]

    async def change_members(
        self, *, add: str | None = None, remove: str | None = None, timeout: float | None = None
    ) -> list[str]:
        """Make another node a member, or a member none; the result are the members then.

        One at a time, by a majority of the members before and after. A node that is no member
        asks one.
        """
        done = await self._source.perform("members", add=add, remove=remove, timeout=timeout)
        return done["members"]  # type: ignore[no-any-return]

    async def reset(self) -> int:
        """Make the pool anew, with this node as its only member, in place of one that cannot go on;
        the result is how many permits it has.

        Only when the quorum, or without leases the token, is gone for ever: if others still have
        it, they and the new pool grant at the same time. With leases the new pool waits until
        those of the old one must be over. Members of the old pool that come back join the new one.
        """
        return (await self._source.perform("reset"))["permits"]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Pool {self.name}, {self.permits} permits>"


def waits(
    method: Callable[Concatenate[Pool, Arguments], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[AnyBlockingPool, Arguments], Result]:
    """That method of a pool, where it waits until it is done."""

    @wraps(method)
    def wait(pool: Any, *arguments: Any, **settings: Any) -> Any:
        return pool._wait(method(pool, *arguments, **settings))

    return wait  # type: ignore[return-value]


class AnyBlockingPool:
    """The same where every call waits until it is done."""

    name: str
    _source: Source

    picture = waits(Pool.picture)
    """See :meth:`meshlock.Pool.picture`."""

    set_permits = waits(Pool.set_permits)
    """See :meth:`meshlock.Pool.set_permits`."""

    change_members = waits(Pool.change_members)
    """See :meth:`meshlock.Pool.change_members`."""

    reset = waits(Pool.reset)
    """See :meth:`meshlock.Pool.reset`."""

    def acquire(
        self,
        want: int = 1,
        *,
        priority: int = 0,
        deadline: float | None = None,
        timeout: float | None = None,
        label: str | None = None,
        request: str | None = None,
    ) -> BlockingGrant:
        """Wait for ``want`` permits; :class:`~meshlock.NotInTime` if there are none in time.

        Another thread can :meth:`change` it by the name that is given as ``request``."""
        patience = None if timeout is None else seconds(timeout)
        return self._acquired((want, priority, patience, label, moment(deadline)), request)

    def try_acquire(
        self, want: int = 1, *, priority: int = 0, label: str | None = None
    ) -> BlockingGrant | None:
        """The permits if they can be had at once, else None."""
        try:
            return self._acquired((want, priority, 0.0, label, None), None)
        except NotInTime:
            return None

    def change(
        self, request: str, *, priority: int | None = None, deadline: float | None = None
    ) -> bool:
        """Of the request of this name, which waits. See :meth:`Acquire.change`."""
        raise NotImplementedError

    @property
    def permits(self) -> int | None:
        """See :attr:`Pool.permits`."""
        raise NotImplementedError

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Until it is done; the result."""
        raise NotImplementedError

    def _acquired(self, asked: Asked, name: str | None) -> BlockingGrant:
        """What is asked for, once it is granted; until then it can be changed by this name."""
        raise NotImplementedError
