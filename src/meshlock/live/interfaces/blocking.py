"""The same for threads: every call waits until it is done.

The node lives in a thread of its own, with its own event loop; the calls below hand work
to it. They may be made from any number of threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from meshlock.errors import Refused
from meshlock.live.interfaces.node import Node
from meshlock.live.interfaces.registry import known_as
from meshlock.live.machine import limits
from meshlock.live.pools.grants import Acquire, AnyBlockingPool, BlockingGrant, Grant, Source
from meshlock.live.pools.status import Status

if TYPE_CHECKING:
    from meshlock.live.pools.grants import Asked

Owner = TypeVar("Owner")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def with_arguments_of(
    _: Callable[Concatenate[Any, Arguments], object],
) -> Callable[
    [Callable[Concatenate[Owner, ...], Result]], Callable[Concatenate[Owner, Arguments], Result]
]:
    """Type checkers and editors see the arguments of that method in this one."""
    return lambda method: method


class NodeGrant(BlockingGrant):
    """A grant of the node in its thread."""

    __slots__ = ("_node",)

    def __init__(self, node: BlockingNode, grant: Grant) -> None:
        super().__init__(grant)
        self._node = node

    @property
    def held(self) -> bool:
        return self._grant.held

    @property
    def lost(self) -> bool:
        return self._grant.lost

    @property
    def until(self) -> float | None:
        return self._node._run(lambda: self._grant.until)

    def wait_lost(self, timeout: float | None = None) -> bool:
        patience = limits.timeout(timeout)
        with suppress(TimeoutError):
            return self._node._call(asyncio.wait_for(self._grant.wait_lost(), patience))
        return False

    def release(self, permits: int | None = None) -> None:
        """See :meth:`Grant.release`; after the node's end it does nothing."""
        if not self._grant._ended:
            self._node._run(lambda: self._grant.release(permits))
            self.want, self.slots = self._grant.want, self._grant.slots


class BlockingPool(AnyBlockingPool):
    """A pool of a :class:`BlockingNode`; every call waits until it is done."""

    def __init__(self, node: BlockingNode, pool: Source) -> None:
        self._node = node
        self._source = pool
        self.name: str = pool.name
        self._requests: dict[str, Acquire] = {}  # that wait, by the names that they were given

    @property
    def permits(self) -> int | None:
        """See :attr:`meshlock.Pool.permits`."""
        return self._source.permits

    def _acquired(self, given: Asked, name: str | None) -> BlockingGrant:
        asked = Acquire(self._source, *given)
        with known_as(self._requests, name, asked):
            return self._waited(asked)

    def change(
        self, request: str, *, priority: int | None = None, deadline: float | None = None
    ) -> bool:
        """Of the request of this name, which waits. See :meth:`Acquire.change`."""
        asked = self._requests.get(request)
        if asked is None:
            return False
        return self._node._call(asked.change(priority=priority, deadline=deadline))

    def _waited(self, asked: Acquire) -> BlockingGrant:
        mine: concurrent.futures.Future[Grant] = concurrent.futures.Future()
        asking = None
        try:
            asking = self._node._begin(self._wait_for(mine, asked))
            return NodeGrant(self._node, mine.result())
        except BaseException:  # an interrupt, or whatever a signal handler raises
            if not mine.cancel() and mine.exception() is None:
                self._node._run(mine.result().release)
            if asking is not None:
                asking.cancel()
            raise

    async def _wait_for(self, mine: concurrent.futures.Future[Grant], asked: Acquire) -> None:
        """Either the caller gets the grant or it goes back; never is it nobody's."""
        try:
            grant = await asked
        except BaseException as error:
            if mine.set_running_or_notify_cancel():
                mine.set_exception(error)
            return
        if mine.set_running_or_notify_cancel():
            mine.set_result(grant)
        else:
            grant.release()

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._node._call(work)


class BlockingNode:
    """:class:`meshlock.Node` for programs with threads; takes the same arguments.

    >>> import meshlock
    >>> with meshlock.BlockingNode("here") as node:
    ...     docks = node.pool("docks", permits=3)
    ...     with docks.acquire(2, timeout=5) as grant:
    ...         print(grant.want, "of", docks.permits)
    2 of 3
    """

    @with_arguments_of(Node.__init__)
    def __init__(self, *arguments: Any, **settings: Any) -> None:
        self._node = Node(*arguments, **settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, name="meshlock", daemon=True)
        self.name: str = self._node.name

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _begin(self, work: Coroutine[Any, Any, Result]) -> concurrent.futures.Future[Result]:
        """Have the node's thread do this."""
        if not self._thread.is_alive():
            work.close()
            raise Refused(
                "The node is not running: use it inside 'with', or between start and close."
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Have it done and wait; if we are interrupted, so is the work."""
        future = self._begin(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _run(self, function: Callable[[], Result]) -> Result:
        """Call this in the node's thread."""

        async def work() -> Result:
            return function()

        return self._call(work())

    def start(self) -> None:
        """See :meth:`meshlock.Node.start`; ``with`` does it."""
        self._thread.start()
        try:
            self._call(self._node.start())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """See :meth:`meshlock.Node.close`."""
        try:
            self._call(self._node.close())
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> BlockingNode:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """Where others can link to this node: host:port."""
        return self._node.address

    @with_arguments_of(Node.pool)
    def pool(self, *arguments: Any, **settings: Any) -> BlockingPool:
        """The pool of this name; see :meth:`meshlock.Node.pool`."""
        found = self._run(lambda: self._node.pool(*arguments, **settings))
        return BlockingPool(self, found._source)

    def create_pool(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> int:
        """See :meth:`meshlock.Node.create_pool`."""
        return self._call(self._node.create_pool(name, permits))

    def connect(self, address: str) -> None:
        """See :meth:`meshlock.Node.connect`."""
        self._run(lambda: self._node.connect(address))

    def status(self) -> Status:
        """See :meth:`meshlock.Node.status`."""
        return self._run(self._node.status)
