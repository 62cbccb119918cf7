"""The same client of the agent for programs with an event loop: :func:`meshlock.aconnect`.

Pools and grants are used like those of a :class:`meshlock.Node`. One session holds the permits;
the agent says on it what becomes of them. Questions go over other connections, one for each task
that waits. Without a renewal a lease ends by the clock, as for the client that blocks.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from meshlock.errors import NotInTime, Refused
from meshlock.live.interfaces.agent_connection import (
    GRACE,
    LATER,
    SILENT,
    TOO_OLD,
    AgentGone,
    NoAgent,
    Unreleased,
    acquire_body,
    change_body,
    closes,
    default_socket,
    json_body,
    no_agent,
    pool_name,
    refusal,
    refuse_stranger,
    request,
    split_head,
    understood,
)
from meshlock.live.interfaces.client import (
    CLOSED,
    NO_END,
    PATIENCE,
    RETRY,
    SLOWEST_RETRY,
    third,
)
from meshlock.live.machine import clock, limits
from meshlock.live.machine.labels import default as default_label
from meshlock.live.pools.grants import Acquire, Grant, Pool, Source

if TYPE_CHECKING:
    from meshlock.live.pools.status import Picture, Status

BUFFER = 16 * 1024


class Connecting:
    """What :func:`aconnect` returns: await it for a client, or use it with ``async with``."""

    def __init__(self, place: str) -> None:
        self.client = Client(place)

    def __await__(self) -> Generator[Any, None, Client]:
        return self.client.__aenter__().__await__()

    async def __aenter__(self) -> Client:
        return await self.client.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()


def aconnect(socket: str | None = None) -> Connecting:
    """Be a client of the agent, as with :func:`meshlock.connect`: ``agent = await aconnect()``, or
    ``async with aconnect() as agent:``, at the end of which all permits go back."""
    return Connecting(socket or default_socket())


class Line(asyncio.BufferedProtocol):
    """One connection to the agent: a question, an answer, and so on; or in the end a stream."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.loop: asyncio.AbstractEventLoop
        self.transport: asyncio.Transport
        self.buffer = bytearray(BUFFER)  # else the loop makes a large one whenever data comes
        self.data = b""
        self.answers: deque[asyncio.Future[tuple[int, bytes]] | Unreleased] = deque()
        """To come; nobody waits for those to a release."""
        self.lost: Callable[[list[Unreleased]], None] = lambda _: None
        """Called with the releases that the agent may not have received."""
        self.told: Callable[[dict[str, Any]], None] | None = None  # reads the stream
        self.ended: Callable[[], None] | None = None
        self.over = False
        self.last = False  # the agent answers no more on it

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
        self.fail(AgentGone("The agent closed the connection."))
        if self.ended is not None:
            self.ended()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, size: int) -> None:
        self.data += self.buffer[:size]
        while self.answers:
            head = split_head(self.data)
            if head is None or len(self.data) < head[2]:
                if not self.data.startswith(b"HTTP/1.1 "[: len(self.data)]):
                    self.fail(Refused(TOO_OLD.format(place=self.place)))
                    self.transport.abort()
                return
            status, begin, end = head
            self.last = closes(self.data, begin)
            end = max(begin, end)
            body, self.data = self.data[begin:end], self.data[end:]
            answer = self.answers.popleft()
            if not isinstance(answer, Unreleased) and not answer.done():
                answer.set_result((status, body))
        self.read_stream()

    def read_stream(self) -> None:
        while self.told is not None and (line := self.data.find(b"\r\n")) >= 0:
            end = line + 2 + int(self.data[:line], 16)
            if len(self.data) < end + 2:
                return
            said, self.data = self.data[line + 2 : end], self.data[end + 2 :]
            data = said.partition(b"data: ")[2]
            if data:
                self.told(understood(data))

    def drop(self) -> None:
        """At once; a transport that was lost already cannot be aborted once more."""
        if not self.over:
            self.transport.abort()

    def fail(self, error: Exception) -> None:
        unsure = [one for one in self.answers if isinstance(one, Unreleased)]
        for answer in self.answers:
            if not isinstance(answer, Unreleased) and not answer.done():
                answer.set_exception(error)
        self.answers.clear()
        if unsure:
            self.lost(unsure)

    def ask(
        self, method: str, path: str, body: str = "", more: str = ""
    ) -> asyncio.Future[tuple[int, bytes]]:
        answer: asyncio.Future[tuple[int, bytes]] = self.loop.create_future()
        self.answers.append(answer)
        self.transport.write(request(method, path, body, more))
        return answer

    def release(self, what: Unreleased, held: int) -> None:
        """Say so without waiting for the answer: that comes with the next one."""
        self.answers.append(what)
        self.transport.write(request("DELETE", what.path(held), more=LATER))

    @property
    def awaited(self) -> bool:
        """Does anybody wait for an answer?"""
        return any(not isinstance(one, Unreleased) for one in self.answers)


class Holding:
    """A grant of this client, and what the agent calls it."""

    __slots__ = ("asked", "grant", "name", "session", "third", "until")

    def __init__(self, grant: Grant, session: Session, given: dict[str, Any]) -> None:
        self.grant = grant
        self.session = session
        self.name: str = given["grant"]
        self.until: float | None = given["until"]  # as far as the agent has said
        self.third = third(given["lease"])
        self.asked = False  # the agent, whether it has renewed the lease

    def left(self) -> float:
        """Seconds of the lease that we know of; none has no end."""
        return NO_END if self.until is None else self.until - clock.seconds()


class Session:
    """A connection to which permits belong."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.name = ""
        self.over = False
        self.holding: dict[str, Holding] = {}
        self.timer: asyncio.TimerHandle | None = None

    async def open(self) -> Session:
        line = await self.line.open()
        try:
            async with asyncio.timeout(GRACE):
                await self.begin(line)
        except BaseException as error:
            line.drop()
            if isinstance(error, TimeoutError):
                raise NoAgent(SILENT.format(place=line.place)) from None
            if isinstance(error, AgentGone):
                raise NoAgent(str(error)) from None
            raise
        return self

    async def begin(self, line: Line) -> None:
        status, said = await line.ask("POST", "/v1/sessions")
        if status == 404:
            raise Refused(TOO_OLD.format(place=line.place))
        if status != 201:
            raise refusal(status, said)
        self.name = understood(said)["session"]
        line.told, line.ended = self.told, self.end
        path = f"/v1/sessions/{self.name}/events?leases=true"
        status, said = await line.ask("GET", path, more="Accept: text/event-stream\r\n")
        if status != 200:
            raise refusal(status, said)

    def told(self, event: dict[str, Any]) -> None:
        holding = self.holding.get(event["grant"])
        if holding is None:
            return
        if event["event"] == "lease":
            holding.until = event["until"]
        elif event["event"] == "lost":
            del self.holding[event["grant"]]
            holding.grant.revoke()

    def end(self) -> None:
        self.over = True
        if self.timer is not None:
            self.timer.cancel()
        lost = list(self.holding.values())
        self.holding.clear()
        for holding in lost:
            holding.grant.revoke()


class Client:
    """A client of the agent, in one event loop; any number of tasks may use it.

    If the agent is restarted, what was held is lost, and whoever waits asks again.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.closed = False
        self.holding: dict[int, Holding] = {}
        self.last_grant = 0
        self._session: Session | None = None
        self._opening = asyncio.Lock()
        self._idle: list[Line] = []
        self._lines: WeakSet[Line] = WeakSet()
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_request = 0
        self._waiting: dict[Acquire, str] = {}  # what the agent calls it
        self._changing: set[Acquire] = set()  # whose new priority is sent to the agent

    async def __aenter__(self) -> Client:
        if self._session is None:
            await self.session()
            CLIENTS.add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def pool(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> ClientPool:
        """The pool of this name. With ``permits`` it is made with the first request unless there is
        one, as by :meth:`meshlock.Node.pool`, if the agent allows that (``--client-pools``)."""
        return ClientPool(AgentPool(self, pool_name(name), permits))

    async def status(self) -> Status:
        """What the agent knows, as ``meshlock status --json`` shows it."""
        found: Status = await self.ask("GET", "/v1/status")
        return found

    async def close(self) -> None:
        """Give everything back; requests that wait are withdrawn, and further ones are refused."""
        self.closed = True
        if self._session is not None:
            self._session.end()
        for line in list(self._lines):
            if line.awaited:
                line.drop()
            elif not line.over:
                line.transport.close()
        self._idle.clear()
        for task in list(self._tasks):
            task.cancel()

    # -- asking ------------------------------------------------------------------------

    async def session(self) -> Session:
        session = self._session
        if session is None or session.over:
            async with self._opening:
                if self.closed:
                    raise Refused(CLOSED)
                session = self._session
                if session is None or session.over:
                    line = Line(self.place)
                    session = await Session(line).open()
                    if self.closed:  # meanwhile
                        line.drop()
                        raise Refused(CLOSED)
                    self._session = session
                    self._lines.add(line)
        return session

    def idle(self) -> Line | None:
        """A connection that nobody uses, if there is one."""
        while self._idle:
            line = self._idle.pop()
            if not line.over:
                return line
        return None

    async def line(self) -> Line:
        line = await Line(self.place).open()
        line.lost = self.release_again
        self._lines.add(line)
        if self.closed:
            line.drop()
            raise NoAgent(CLOSED)
        return line

    async def call(
        self, method: str, path: str, body: str = "", timeout: float | None = None
    ) -> tuple[int, bytes]:
        """Over a connection that nobody uses. One that is cancelled is closed: then the agent takes
        back what it has granted or would."""
        line = self.idle() or await self.line()
        try:
            if timeout is None:
                found = await line.ask(method, path, body)
            else:
                async with asyncio.timeout(timeout + GRACE):
                    found = await line.ask(method, path, body)
        except BaseException as error:
            line.drop()
            if isinstance(error, TimeoutError):
                raise NotInTime(SILENT.format(place=self.place)) from None
            raise
        if line.last:
            line.drop()
        else:
            self._idle.append(line)
        return found

    async def ask(self, method: str, path: str, body: str = "") -> Any:
        for left in reversed(range(len(self._idle) + 2)):  # all that are idle may have ended
            try:
                status, said = await self.call(method, path, body)
                break
            except AgentGone as error:
                if not left:
                    raise Refused(str(error)) from None
        if status >= 400:
            raise refusal(status, said)
        return understood(said) if said else None

    async def acquire(self, pool: AgentPool, request: Acquire) -> Grant:
        """Whatever becomes of the agent meanwhile, as long as there is one again soon."""
        try:
            return await self.wait_for(pool, request)
        finally:
            self._waiting.pop(request, None)
            request.over = True

    async def wait_for(self, pool: AgentPool, request: Acquire) -> Grant:
        loop = asyncio.get_running_loop()
        timeout = request.timeout
        end = None if timeout is None else loop.time() + timeout
        lost: float | None = None  # the agent, since when
        before, pause = self._session, RETRY
        label = default_label() if request.label is None else request.label
        left = timeout
        while True:
            try:
                session = self._session
                if session is None or session.over:
                    session = await self.session()
                if session is not before:
                    before, lost, pause = session, None, RETRY
                self._last_request += 1
                name = self._waiting[request] = f"r{self._last_request}-{session.name}"
                asked, due = (request.want, request.priority), request.due
                body = acquire_body(*asked, left, label, session.name, name, due)
                path = f"/v1/pools/{pool.name}/acquire"
                status, said = await self.call("POST", path, body, left)
                if status == 503:
                    raise NoAgent(str(refusal(status, said)))
            except (AgentGone, NoAgent) as error:
                now = loop.time()
                lost = now if lost is None else lost
                if end is not None and now >= end:
                    raise NotInTime(str(error)) from None
                if now - lost > PATIENCE:
                    raise Refused(str(error)) from None
                await asyncio.sleep(pause if end is None else min(pause, end - now))
                pause = min(2 * pause, SLOWEST_RETRY)
                left = None if end is None else max(0.0, end - loop.time())
                continue
            if status == 200:
                return self.granted(pool, session, understood(said))
            if not session.over:
                raise refusal(status, said)
            left = None if end is None else max(0.0, end - loop.time())

    def change_priority(self, request: Acquire) -> None:
        """Tell the agent, if it knows of the request; one task for all changes of one request."""
        if request in self._waiting and request not in self._changing:
            self._changing.add(request)
            self.begin(self.send_priority(request))

    async def send_priority(self, request: Acquire) -> None:
        """As it is then, until the agent has it; it may receive the request itself a bit later."""
        told: tuple[str, int] | None = None
        try:
            while (name := self._waiting.get(request)) and told != (name, request.priority):
                urgent = request.priority
                status = 404
                with suppress(AgentGone, NoAgent):
                    path = f"/v1/requests/{name}/priority"
                    status, _ = await self.call("POST", path, json_body(priority=urgent))
                if status in (200, 409):  # or the algorithm cannot change it
                    told = (name, urgent)
                else:
                    await asyncio.sleep(RETRY)
        finally:
            self._changing.discard(request)

    async def change(self, request: Acquire, priority: int, due: float | None) -> bool:
        """As soon as the agent knows of the request; until then it is sent as it is now."""
        if request.over:
            return False
        before = request.priority, request.due
        request.set_urgency(priority, due)
        while name := self._waiting.get(request):
            left = None if due is None else max(0.0, due - clock.seconds())
            body, status, said = change_body(priority, left), 404, b""
            with suppress(AgentGone, NoAgent):
                status, said = await self.call("POST", f"/v1/requests/{name}/priority", body)
            if status == 200:
                return True
            if status != 404:
                request.set_urgency(*before)
                raise refusal(status, said)
            await asyncio.sleep(RETRY)
        return not request.over

    def granted(self, pool: AgentPool, session: Session, given: dict[str, Any]) -> Grant:
        self.last_grant += 1
        number, name = self.last_grant, given["grant"]
        slots = tuple(given["slots"])
        grant = Grant(pool, number, given["want"], given["priority"], given["fence"], slots)
        grant.met = given["met"]
        pool.permits = given["permits"]
        holding = self.holding[number] = session.holding[name] = Holding(grant, session, given)
        grant.at_end(lambda: self.holding.pop(number))
        if session.over:
            grant.revoke()
        elif holding.until is not None and session.timer is None:
            self.watch(session)
        return grant

    def watch(self, session: Session) -> None:
        """Ask for each lease of which a third is left; one timer for all."""
        session.timer = None
        next_look = NO_END
        for holding in session.holding.values():
            left = holding.left() - holding.third
            if left > 0:
                next_look = min(next_look, left)
            elif not holding.asked:
                holding.asked = True
                self.begin(self.ask_until(holding))
        if next_look < NO_END:
            later = asyncio.get_running_loop().call_later
            session.timer = later(next_look, self.watch, session)

    async def ask_until(self, holding: Holding) -> None:
        """An agent that does not answer before the lease is over cannot renew it either."""
        path = f"/v1/grants/{holding.name}"
        while not holding.grant.ended and holding.left() <= holding.third:
            status, said = 0, b""
            with suppress(TimeoutError, AgentGone, NoAgent):  # if the session ends, it says so
                async with asyncio.timeout(holding.third):
                    status, said = await self.call("GET", path)
            if status == 200:
                holding.until = understood(said)["until"]
            if not holding.grant.ended and (status == 404 or holding.left() <= 0):
                holding.session.holding.pop(holding.name, None)
                holding.grant.revoke()
                self.give_back(holding)  # whatever the agent thinks of it
            await asyncio.sleep(holding.third / 8)
        holding.asked = False
        if holding.session.timer is None and not holding.session.over:
            self.watch(holding.session)

    def release(self, number: int) -> None:
        """At once, if there is a connection at rest, as there is where nobody waits."""
        holding = self.holding[number]
        if holding.session.holding.pop(holding.name, None) is None:
            return
        self.give_back(holding)

    def release_some(self, number: int, permits: int) -> None:
        holding = self.holding[number]
        self.give_back(holding, holding.grant.want, permits)

    def give_back(self, holding: Holding, left: int = 0, permits: int = 0) -> None:
        what = Unreleased(holding.name, left)
        line = self.idle()
        if line is None:
            self.release_again([what])
        else:
            line.release(what, left + permits)
            self._idle.append(line)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def release_again(self, unsure: list[Unreleased]) -> None:
        """What the agent does not know of, or may not, because a connection ended."""
        if not self.closed:
            for what in unsure:
                self.begin(self.release_surely(what))

    async def release_surely(self, what: Unreleased) -> None:
        """Until the agent has it; with a session its grants end, too."""
        path, pause = f"/v1/grants/{what.grant}", RETRY
        while not self.closed and self._session is not None and not self._session.over:
            with suppress(AgentGone, NoAgent, TimeoutError):
                status, held = 200, 1
                if what.left:  # a part, which must be released once
                    status, said = await self.call("GET", path, timeout=0.0)
                    held = understood(said)["want"] if status == 200 else 0
                if held > what.left:
                    status, _ = await self.call("DELETE", what.path(held), timeout=0.0)
                if status < 500:
                    return
            await asyncio.sleep(pause)
            pause = min(2 * pause, SLOWEST_RETRY)

    def forked(self) -> None:
        """We are in a child process, where the loop of the parent is of no use: let go of its
        connections, so that the parent's permits come back when the parent dies."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for line in self._lines:
            if not line.over:
                os.dup2(nothing, line.transport.get_extra_info("socket").fileno())
        os.close(nothing)
        for holding in self.holding.values():
            holding.grant.disown()


CLIENTS: WeakSet[Client] = WeakSet()


def forked() -> None:
    for client in list(CLIENTS):
        client.forked()


os.register_at_fork(after_in_child=forked)


class ClientPool(Pool):
    """A pool, as the agent knows it; used like :class:`meshlock.Pool`."""


class AgentPool(Source):
    """What a client has of it."""

    permits: int | None = None

    def __init__(
        self, client: Client, name: str, wanted: int | list[str] | tuple[str, ...] | None = None
    ) -> None:
        self._client = client
        self.name = name
        self._wanted = wanted  # permits, until the agent was asked to join it

    async def _ask(self, method: str, what: str, **asked: object) -> Any:
        body = json_body(**asked) if asked else ""
        return await self._client.ask(method, f"/v1/pools/{self.name}/{what}", body)

    async def picture(self) -> Picture:
        return await self._ask("GET", "who")  # type: ignore[no-any-return]

    async def set_permits(
        self, permits: int | list[str] | tuple[str, ...], *, timeout: float | None = None
    ) -> int:
        asked = await self._ask("POST", "permits", permits=permits, timeout=timeout)
        return asked["permits"]  # type: ignore[no-any-return]

    async def change_members(
        self, *, add: str | None = None, remove: str | None = None, timeout: float | None = None
    ) -> list[str]:
        asked = await self._ask("POST", "members", add=add, remove=remove, timeout=timeout)
        return asked["members"]  # type: ignore[no-any-return]

    async def reset(self) -> int:
        return (await self._ask("POST", "reset"))["permits"]  # type: ignore[no-any-return]

    async def served(self, request: Acquire) -> Grant:
        if self._wanted is not None:
            await self._ask("POST", "join", permits=self._wanted)
            self._wanted = None
        return await self._client.acquire(self, request)

    def change_priority(self, request: Acquire, priority: int) -> None:
        request.set_urgency(limits.priority(priority), request.due)
        self._client.change_priority(request)

    async def change(self, request: Acquire, priority: int | None, deadline: float | None) -> bool:
        return await self._client.change(
            request,
            request.priority if priority is None else limits.priority(priority),
            request.due if deadline is None else deadline,
        )

    def release(self, number: int) -> None:
        self._client.release(number)

    def release_some(self, number: int, permits: int) -> None:
        self._client.release_some(number, permits)

    def until(self, number: int) -> float | None:
        return self._client.holding[number].until
