"""A client of the agent on this machine, for any program: :func:`meshlock.connect`.

Pools and grants are used like those of a :class:`meshlock.BlockingNode`. What happens to them when
connections end is in :mod:`.agent_client`; here every step of that blocks. Imports little, so that
programs start quickly.
"""

from __future__ import annotations

import time
from _thread import allocate_lock  # threading takes long to import
from functools import partial

from meshlock.live.interfaces.agent_client import AgentClient, AgentSource, Holding, finished
from meshlock.live.interfaces.agent_connection import Connection, default_socket
from meshlock.live.interfaces.agent_protocol import (
    AgentGone,
    Unreleased,
    acquire_body,
    pool_name,
)
from meshlock.live.machine.labels import default as default_label
from meshlock.live.pools.grants import AnyBlockingPool, BlockingGrant, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    from meshlock.live.interfaces.agent_client import AgentSession
    from meshlock.live.interfaces.agent_protocol import Answer
    from meshlock.live.pools.grants import Asked, Grant
    from meshlock.live.pools.status import Status

    Result = TypeVar("Result")

LISTEN = 0.25
"""Seconds after which a thread that waits for a loss sees whether the grant was released."""


def connect(socket: str | None = None) -> BlockingClient:
    """Be a client of the agent that answers at this socket; default: ``$MESHLOCK_SOCKET``, or the
    agent's default socket.

    With ``with meshlock.connect() as agent:`` all permits go back at the end of the block, else
    when the client is closed or the process ends. :class:`meshlock.Refused` says why there is
    no agent.
    """
    return BlockingClient(socket)


class ThreadLock:
    """A lock of threads, for coroutines that block."""

    def __init__(self) -> None:
        self.lock = allocate_lock()

    async def __aenter__(self) -> None:
        self.lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.lock.release()


class BlockingWires:
    """Connects and waits by blocking the thread."""

    def lock(self) -> ThreadLock:
        """Held while a session is opened."""
        return ThreadLock()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def open(self, client: AgentClient) -> Connection:
        """A connection, among ``client.lines`` from before it can be used."""
        return Connection(client.place, client.lines)

    async def follow(self, line: Any, path: str, _: object) -> Answer:
        """Have the agent send events of a session on its own connection."""
        return line.follow(path)  # type: ignore[no-any-return]

    def receive(self, session: AgentSession, seconds: float = 0.0) -> None:
        """Pass on the events that have come, or come within this time."""
        line: Any = session.line
        if not line.reading.acquire(timeout=seconds or 0.0):
            return  # another thread receives them
        try:
            if not session.over:
                for event in line.events(seconds):
                    session.told(event)
        except AgentGone:
            session.end()
        finally:
            line.reading.release()

    def release_soon(self, client: AgentClient) -> None:
        """There are no tasks: the caller does it, or the next request."""

    def abandon(self, line: Any) -> None:
        """In a child process: close our copy, and do not end what the parent uses."""
        line.socket.close()


WIRES = BlockingWires()


class BlockingClient:
    """A client of the agent; any number of threads may use it.

    If the agent is restarted, what was held is lost, and requests that wait are made again.
    """

    def __init__(self, socket: str | None = None) -> None:
        self._agent = AgentClient(socket or default_socket(), WIRES, leases=False)
        finished(self._agent.current())

    def pool(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> BlockingClientPool:
        """The pool of this name. With ``permits`` it is made unless there is one, as by
        :meth:`meshlock.Node.pool`, if the agent allows that (``--client-pools``)."""
        source = AgentSource(self._agent, name)
        if permits is not None:
            finished(source.perform("join", permits=permits))
        return BlockingClientPool(source)

    def status(self) -> Status:
        """What the agent knows, as ``meshlock status --json`` shows it."""
        found: Status = finished(self._agent.ask("GET", "/v1/status"))
        return found

    def close(self) -> None:
        """Release everything; requests that wait are withdrawn, and further ones are refused."""
        self._agent.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BlockingClientPool(AnyBlockingPool):
    """A pool, as the agent knows it; used like :class:`meshlock.BlockingPool`."""

    def __init__(self, source: AgentSource) -> None:
        self._agent = source.agent
        self._source = source
        self.name = source.name

    @property
    def permits(self) -> int | None:
        """k, once the pool is known to the agent."""
        status = finished(self._agent.ask("GET", f"/v1/pools/{self.name}"))["status"]
        return status.get("permits")  # type: ignore[no-any-return]

    def _acquired(self, asked: Asked, name: str | None) -> BlockingGrant:
        want, priority, timeout, label, due = asked
        request = "" if name is None else pool_name(name)
        known_by = default_label() if label is None else label
        body = partial(acquire_body, want, priority, known_by, due, request)
        session, given = finished(self._agent.acquire(self.name, timeout, body))
        return ClientGrant(Holding(self._agent, session, given))

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        return finished(work)

    def change(
        self, request: str, *, priority: int | None = None, deadline: float | None = None
    ) -> bool:
        return finished(self._agent.change(pool_name(request), priority, deadline))


class ClientGrant(BlockingGrant):
    __slots__ = ("_holding",)

    def __init__(self, holding: Holding) -> None:
        super().__init__(holding.grant)
        self._holding = holding

    @property
    def held(self) -> bool:
        return not self._receive()._ended

    @property
    def lost(self) -> bool:
        return self._receive().lost

    @property
    def until(self) -> float | None:
        return self._receive(now=True).until

    def _receive(self, now: bool = False, seconds: float = 0.0) -> Grant:
        """What the agent says; if it must, it is asked until when the lease was renewed."""
        one, grant = self._holding, self._grant
        if not grant._ended:
            WIRES.receive(one.session, seconds)
        if not grant._ended and one.end is not None and (now or one.left() <= one.third):
            finished(one.agent.ask_until(one))
        return grant

    def wait_lost(self, timeout: float | None = None) -> bool:
        end = None if timeout is None else time.monotonic() + seconds(timeout)
        holding, grant = self._holding, self._grant
        while not grant._ended:
            wait = LISTEN if end is None else min(LISTEN, end - time.monotonic())
            if wait <= 0:
                break
            left = holding.left() - holding.third
            self._receive(seconds=min(wait, max(left, holding.third / 8)))
        return grant.lost

    def release(self, permits: int | None = None) -> None:
        """See :meth:`Grant.release`."""
        agent, grant = self._holding.agent, self._grant
        if grant._ended:
            return
        try:
            grant.release(permits)
        except BaseException:  # an interrupt, or what a signal handler raises
            if grant._ended:
                agent.release(Unreleased(self._holding.key), 0)
            raise
        self.want, self.slots = grant.want, grant.slots
        if agent.unreleased:
            finished(agent.gone())
