"""The same client of the agent for programs with an event loop: :func:`meshlock.aconnect`.

Pools and grants are used like those of a :class:`meshlock.Node`. What happens to them when
connections end is in :mod:`.agent_client`; here every step of that suspends a task.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Coroutine, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from meshlock.errors import NotInTime, Refused
from meshlock.live.interfaces.agent_client import (
    NO_END,
    RETRY,
    SLOWEST_RETRY,
    AgentClient,
    AgentSession,
    AgentSource,
    Holding,
)
from meshlock.live.interfaces.agent_connection import default_socket, no_agent, refuse_stranger
from meshlock.live.interfaces.agent_protocol import (
    ENDED,
    LATER,
    SILENT,
    STREAM,
    AgentExchange,
    AgentGone,
    NoAgent,
    Unreleased,
    acquire_body,
    patience,
    request,
)
from meshlock.live.machine import clock, limits
from meshlock.live.machine.labels import default as default_label
from meshlock.live.pools.grants import Acquire, Grant, Pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from meshlock.live.interfaces.agent_protocol import Answer
    from meshlock.live.pools.status import Status

BUFFER = 16 * 1024


def aconnect(socket: str | None = None) -> Client:
    """Be a client of the agent, as with :func:`meshlock.connect`: ``agent = await aconnect()``, or
    ``async with aconnect() as agent:``, at the end of which all permits go back."""
    return Client(socket or default_socket())


class Line(asyncio.BufferedProtocol):
    """One connection to the agent."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.exchange = AgentExchange(place)  # what was asked is known by the future of its answer
        self.loop: asyncio.AbstractEventLoop
        self.transport: asyncio.Transport
        self.received = memoryview(bytearray(BUFFER))  # else the loop makes a large one each time
        self.told: Callable[[dict[str, Any]], None] | None = None  # reads the stream
        self.ended: Callable[[Line, list[Unreleased]], None] | None = None
        """Called with the releases that the agent may not have received."""
        self.over = False

    async def open(self) -> Line:
        self.loop = asyncio.get_running_loop()
        try:
            await self.loop.create_unix_connection(lambda: self, self.place)
            refuse_stranger(self.transport.get_extra_info("socket"), self.place)
        except OSError as error:
            raise no_agent(self.place, error) from None
        except Refused:
            self.transport.abort()
            raise
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def connection_lost(self, error: Exception | None) -> None:
        self.over = True
        unsure = self.exchange.unsure()
        self.fail(AgentGone(ENDED))
        if self.ended is not None:
            self.ended(self, unsure)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.received

    def buffer_updated(self, size: int) -> None:
        exchange = self.exchange
        try:
            exchange.receive(self.received[:size])
            while exchange.answers:
                asked, answer = exchange.answers.popleft()
                if not isinstance(asked, Unreleased) and not asked.done():
                    asked.set_result(answer)
            if self.told is not None and exchange.streams:
                for event in exchange.events():
                    self.told(event)
        except (Refused, AgentGone) as error:
            self.fail(error)
            self.transport.abort()

    def fail(self, error: Exception) -> None:
        for asked in self.exchange.asked:
            if not isinstance(asked, Unreleased) and not asked.done():
                asked.set_exception(error)
        self.exchange.asked.clear()

    def call(
        self, method: str, path: str, body: str = "", within: float | None = None, more: str = ""
    ) -> Awaitable[Answer]:
        answer: asyncio.Future[Answer] = self.loop.create_future()
        self.exchange.asked.append(answer)
        self.exchange.follows = more == STREAM
        self.transport.write(request(method, path, body, more))
        return answer if within is None else self.answered(answer, within)

    async def answered(self, answer: asyncio.Future[Answer], within: float) -> Answer:
        try:
            return await asyncio.wait_for(answer, within)
        except TimeoutError:
            raise NotInTime(SILENT.format(place=self.place)) from None

    def release(self, what: Unreleased, held: int) -> None:
        self.exchange.asked.append(what)
        self.transport.write(request("DELETE", what.path(held), more=LATER))

    def shut_down(self) -> None:
        """At once; a transport that was lost already cannot be aborted once more."""
        if not self.over:
            self.transport.abort()

    def close(self) -> None:
        if not self.over:
            self.transport.close()


class LoopWires:
    """Connects and waits in one event loop."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()
        self.releasing = False

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def lock(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def open(self, client: AgentClient) -> Line:
        line = await Line(client.place).open()
        client.lines.add(line)
        line.ended = client.lost
        return line

    async def follow(self, line: Any, path: str, told: Callable[[dict[str, Any]], None]) -> Answer:
        line.told = told
        return await line.call("GET", path, "", patience(), STREAM)  # type: ignore[no-any-return]

    def receive(self, session: AgentSession) -> None:
        """The loop has done that."""

    def release_soon(self, client: AgentClient) -> None:
        if not self.releasing:
            self.releasing = True
            self.begin(self.release_all(client))

    async def release_all(self, client: AgentClient) -> None:
        """Until the agent has it; with a session its grants end, too."""
        pause = RETRY
        try:
            while client.unreleased and client.session is not None and not client.session.over:
                await client.release_again()
                if client.unreleased:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, SLOWEST_RETRY)
        finally:
            self.releasing = False

    def watch(self, session: AgentSession) -> None:
        """Ask for each lease of which a third is left; one timer for all."""
        session.watched = False
        next_time = NO_END
        for holding in session.holding.values():
            left = holding.left() - holding.third
            if left <= 0 and not holding.asking:
                holding.asking = True
                self.begin(self.ask_until(holding))
            next_time = min(next_time, max(left, holding.third / 8))
        if next_time < NO_END:
            session.watched = True
            asyncio.get_running_loop().call_later(next_time, self.watch, session)

    async def ask_until(self, holding: Holding) -> None:
        try:
            await holding.agent.ask_until(holding)
        finally:
            holding.asking = False

    def abandon(self, line: Any) -> None:
        """The loop of the parent is of no use here, and would miss a file that was closed."""
        if not line.over:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, line.transport.get_extra_info("socket").fileno())
            os.close(nothing)


class Client:
    """A client of the agent, in one event loop; any number of tasks may use it.

    If the agent is restarted, what was held is lost, and requests that wait are made again.
    """

    def __init__(self, place: str) -> None:
        self._wires = LoopWires()
        self._agent = AgentClient(place, self._wires, leases=True)

    def __await__(self) -> Generator[Any, None, Client]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Client:
        if self._agent.session is None:
            await self._agent.current()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def pool(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> ClientPool:
        """The pool of this name. With ``permits`` it is made with the first request unless there is
        one, as by :meth:`meshlock.Node.pool`, if the agent allows that (``--client-pools``)."""
        return ClientPool(AgentPool(self._agent, self._wires, name, permits))

    async def status(self) -> Status:
        """What the agent knows, as ``meshlock status --json`` shows it."""
        found: Status = await self._agent.ask("GET", "/v1/status")
        return found

    async def close(self) -> None:
        """Release everything; requests that wait are withdrawn, and further ones are refused."""
        self._agent.close()
        for task in list(self._wires.tasks):
            task.cancel()


class ClientPool(Pool):
    """A pool, as the agent knows it; used like :class:`meshlock.Pool`."""


class AgentPool(AgentSource):
    """What a client has of it."""

    permits: int | None = None

    def __init__(
        self,
        agent: AgentClient,
        wires: LoopWires,
        name: str,
        wanted: int | list[str] | tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(agent, name)
        self.wires = wires
        self.wanted = wanted  # permits, until the agent was asked to join it
        self.waiting: dict[Acquire, str] = {}  # what the agent calls it

    async def served(self, request: Acquire) -> Grant:
        if self.wanted is not None:
            await self.perform("join", permits=self.wanted)
            self.wanted = None
        label = default_label() if request.label is None else request.label

        def body(session: str, left: float | None) -> str:
            self.agent.last_request += 1
            name = self.waiting[request] = f"r{self.agent.last_request}-{session}"
            want, priority, due = request.want, request.priority, request.due
            return acquire_body(want, priority, label, due, name, session, left)

        try:
            return self.granted(*await self.agent.acquire(self.name, request.timeout, body))
        finally:
            self.waiting.pop(request, None)
            request.over = True

    def granted(self, session: AgentSession, given: dict[str, Any]) -> Grant:
        self.permits = given["permits"]
        holding = Holding(self.agent, session, given)
        if holding.end is not None and not session.watched:
            self.wires.watch(session)
        return holding.grant

    def change_priority(self, request: Acquire, priority: int) -> None:
        """Tell the agent, if it knows of the request."""
        request.set_urgency(limits.PRIORITY.whole(priority), request.due)
        if request in self.waiting:
            self.wires.begin(self.send_priority(request))

    async def send_priority(self, request: Acquire) -> None:
        with suppress(Refused):  # the algorithm cannot change it
            await self.send_urgency(request)

    async def change(self, request: Acquire, priority: int | None, deadline: float | None) -> bool:
        """As soon as the agent knows of the request; until then it is sent as it is now."""
        if request.over:
            return False
        before = request.priority, request.due
        priority = request.priority if priority is None else limits.PRIORITY.whole(priority)
        request.set_urgency(priority, request.due if deadline is None else deadline)
        try:
            return await self.send_urgency(request)
        except Refused:
            request.set_urgency(*before)
            raise

    async def send_urgency(self, request: Acquire) -> bool:
        """Until the agent has what holds by then: of two callers, the last to be answered may have
        sent the older one. False: the request waits no more."""
        while name := self.waiting.get(request):
            sent = priority, due = request.priority, request.due
            left = None if due is None else max(0.0, due - clock.seconds())
            with suppress(NoAgent):
                done = await self.agent.change(name, priority, left)
                if done and sent == (request.priority, request.due):
                    return True
            await asyncio.sleep(RETRY)
        return not request.over
