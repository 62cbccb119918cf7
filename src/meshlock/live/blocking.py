"""The same for threads: every call waits until it is done.

The node lives in a thread of its own, with its own event loop; the calls below hand work
to it. They may be made from any number of threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from meshlock.live.grants import Grant
from meshlock.live.node import Node
from meshlock.live.pool import Pool

Result = TypeVar("Result")


class BlockingGrant:
    """Permits that are yours until you release them, or until the ``with`` block ends."""

    def __init__(self, node: BlockingNode, grant: Grant) -> None:
        self._node = node
        self._grant = grant
        self.want = grant.want
        self.priority = grant.priority
        self.fence = grant.fence

    @property
    def lost(self) -> bool:
        """True once the permits are yours no more although you have not released them."""
        return self._grant.lost.is_set()

    def release(self) -> None:
        self._node.call(self._release())

    async def _release(self) -> None:
        self._grant.release()

    def __enter__(self) -> BlockingGrant:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class BlockingPool:
    def __init__(self, node: BlockingNode, pool: Pool) -> None:
        self._node = node
        self._pool = pool
        self.name = pool.name

    @property
    def permits(self) -> int | None:
        return self._pool.permits

    def acquire(
        self, want: int = 1, *, priority: int = 0, timeout: float | None = None
    ) -> BlockingGrant:
        """Wait for ``want`` permits; :class:`TimeoutError` if there are none in time."""
        grant = self._node.call(self._pool.wait_for(want, priority, timeout))
        return BlockingGrant(self._node, grant)

    def try_acquire(self, want: int = 1, *, priority: int = 0) -> BlockingGrant | None:
        """The permits if they lie free at this node, else None."""
        grant = self._node.call(self._try(want, priority))
        return BlockingGrant(self._node, grant) if grant is not None else None

    async def _try(self, want: int, priority: int) -> Grant | None:
        return self._pool.try_acquire(want, priority=priority)


class BlockingNode:
    """:class:`meshlock.Node` for programs with threads; takes the same arguments.

    >>> import meshlock
    >>> with meshlock.BlockingNode("here") as node:
    ...     docks = node.pool("docks", permits=3)
    ...     with docks.acquire(2, timeout=5) as grant:
    ...         print(grant.want, "of", docks.permits)
    2 of 3
    """

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        self._node = Node(name, **settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="meshlock", daemon=True)
        self.name = self._node.name

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Have the node's thread do this; if we are interrupted, so is the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def start(self) -> None:
        self._thread.start()
        self.call(self._node.start())

    def close(self) -> None:
        self.call(self._node.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> BlockingNode:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        return self._node.address

    def pool(self, name: str, permits: int | None = None, **settings: Any) -> BlockingPool:
        """The pool of this name; see :meth:`meshlock.Node.pool`."""
        return BlockingPool(self, self.call(self._pool(name, permits, settings)))

    async def _pool(self, name: str, permits: int | None, settings: dict[str, Any]) -> Pool:
        return self._node.pool(name, permits, **settings)

    def connect(self, address: str) -> None:
        self.call(self._connect(address))

    async def _connect(self, address: str) -> None:
        self._node.connect(address)

    def status(self) -> dict[str, Any]:
        return self.call(self._status())

    async def _status(self) -> dict[str, Any]:
        return self._node.status()
