"""A client of the agent without I/O: sessions, connections, reconnecting, releases, forks.

Permits belong to a *session*, a connection that the client keeps open: if the program dies, they
come back at once. Requests go over other connections, one for each caller that waits. If the agent
is restarted, what was held is lost, and a request that waits is sent again.

An agent may be stopped, or too busy to speak. So a grant ends with the lease that its client knows
of, unless the agent says in time that it was renewed: it is asked while a third is left.

A child process made by fork has nothing of its parent: its client makes connections of its own.

Rules of this file: what happens to a session, a grant or a release because a connection ended is
decided here. It waits only by its *wires*. Those of threads block (:mod:`.client`), so that a
coroutine of this file never suspends there, and :func:`finished` runs it to its end; those of event
loops suspend (:mod:`.async_client`).
"""

from __future__ import annotations

import os
from time import monotonic
from weakref import WeakSet

from meshlock.errors import NotInTime, Refused
from meshlock.live.interfaces.agent_protocol import (
    ENDED,
    TOO_OLD,
    AgentGone,
    NoAgent,
    Unreleased,
    json_body,
    patience,
    pool_name,
    refusal,
    understood,
)
from meshlock.live.machine import clock
from meshlock.live.pools.grants import Grant, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any, TypeAlias, TypeVar

    from meshlock.live.interfaces.agent_connection import Connection
    from meshlock.live.interfaces.agent_protocol import Answer
    from meshlock.live.interfaces.async_client import Line, LoopWires
    from meshlock.live.interfaces.client import BlockingWires

    AgentLine: TypeAlias = Connection | Line
    Wires: TypeAlias = BlockingWires | LoopWires
    Result = TypeVar("Result")

PATIENCE = 30.0
"""Seconds for which a request goes on asking for an agent that went away."""

CLOSED = "This client is closed."
RETRY = 0.05
SLOWEST_RETRY = 0.5
"""Seconds between two requests to an agent that is not there, or has no place for us."""

NO_END = float("inf")


def finished(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of work whose every step blocks, so that it never suspends."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("this work waits for an event loop")


class Holding:
    """What the agent has said of a grant of this client; the grant comes from here."""

    __slots__ = ("agent", "asking", "end", "grant", "key", "name", "session", "third", "want")

    def __init__(self, agent: AgentClient, session: AgentSession, given: dict[str, Any]) -> None:
        self.agent = agent
        self.session = session
        self.key: str = given["grant"]
        self.name: str = given["pool"]
        self.want: int = given["want"]
        self.end: float | None = given["until"]  # of its lease
        lease = given["lease"]
        self.third = lease / 3 if lease is not None and lease > 0.3 else 0.1
        """Seconds that an agent has to say that it renewed the lease."""
        self.asking = False  # a task asks the agent for that
        fence, slots = given["fence"], tuple(given["slots"])
        self.grant = Grant(self, 0, self.want, given["priority"], fence, slots, given["met"])
        if session.over:
            self.grant._revoke()
        else:
            session.holding[self.key] = self

    def left(self) -> float:
        """Seconds of the lease that we know of."""
        return NO_END if self.end is None else self.end - clock.seconds()

    def until(self, _number: int) -> float | None:
        return self.end

    def release(self, _number: int) -> None:
        if self.session.holding.pop(self.key, None) is not None:
            self.agent.release(Unreleased(self.key), 0)

    def release_some(self, _number: int, permits: int) -> None:
        held, self.want = self.want, self.want - permits
        self.agent.release(Unreleased(self.key, self.want), held)


class AgentSession:
    """A connection to which permits belong."""

    def __init__(self, line: AgentLine, name: str) -> None:
        self.line = line
        self.name = name
        self.over = False
        self.holding: dict[str, Holding] = {}  # by the names that the agent gave
        self.watched = False  # a timer asks for the leases

    def told(self, event: dict[str, Any]) -> None:
        holding = self.holding.get(event["grant"])
        if holding is not None and event["event"] == "lease":
            holding.end = event["until"]
        elif holding is not None and event["event"] == "lost":
            del self.holding[event["grant"]]
            holding.grant._revoke()

    def end(self, leave: Callable[[Grant], None] = Grant._revoke) -> None:
        """``Grant._disown``: they belong to another process, which will learn of their end."""
        self.over = True
        while self.holding:
            leave(self.holding.popitem()[1].grant)


class AgentClient:
    def __init__(self, place: str, wires: Wires, leases: bool) -> None:
        self.place = place
        self.wires = wires
        self.leases = leases  # does the session say how far leases were renewed?
        self.closed = False
        self.last_request = 0  # of those that the client gives names
        self.start_anew()
        CLIENTS.add(self)

    def start_anew(self) -> None:
        self.opening = self.wires.lock()
        self.session: AgentSession | None = None
        self.idle: list[AgentLine] = []
        self.lines: set[AgentLine] = set()  # all that are open, also those in use
        self.unreleased: dict[str, Unreleased] = {}  # by grant

    def close(self) -> None:
        """Release everything; requests that wait are withdrawn, and further ones are refused."""
        self.closed = True
        session, self.session = self.session, None
        self.idle.clear()
        for line in list(self.lines):
            if all(isinstance(one, Unreleased) for one in line.exchange.asked):
                line.close()
            else:
                line.shut_down()  # the caller that waits for an answer closes it
        if session is not None:
            session.end()

    def forked(self) -> None:
        """We are in a child process, and what the parent holds is not ours."""
        lines, session = self.lines, self.session
        self.start_anew()
        for line in lines:
            self.wires.abandon(line)
        if session is not None:
            session.end(Grant._disown)

    # -- connections -------------------------------------------------------------------

    def take(self) -> AgentLine | None:
        """A connection that no caller uses, if there is one."""
        while True:
            try:
                line = self.idle.pop()
            except IndexError:
                return None
            if not line.over:
                return line

    async def open(self) -> AgentLine:
        line = await self.wires.open(self)
        if self.closed:  # if it is closed later, it finds this line among the others
            self.drop(line)
            raise NoAgent(CLOSED)
        return line

    def drop(self, line: AgentLine) -> None:
        """Also if another process has a copy of it, as a child may for a moment."""
        unsure = line.exchange.unsure()
        line.exchange.asked.clear()
        line.shut_down()
        self.lost(line, unsure)

    def lost(self, line: AgentLine, unsure: Sequence[Unreleased] = ()) -> None:
        """That connection is no more, and the agent may not have received these releases."""
        line.close()
        self.lines.discard(line)
        if self.session is not None and self.session.line is line:
            self.session.end()
        if unsure and not self.closed:
            self.unreleased.update((what.grant, what) for what in unsure)
            self.wires.release_soon(self)

    async def call(
        self, method: str, path: str, body: str = "", within: float | None = None
    ) -> Answer:
        """A connection whose request is interrupted is ended: then the agent withdraws what it has
        granted or would."""
        if self.closed:
            raise NoAgent(CLOSED)
        line = self.take() or await self.open()
        try:
            found = line.call(method, path, body, within)
            answer = found if isinstance(found, tuple) else await found
        except BaseException:
            self.drop(line)
            raise
        if line.exchange.last:
            self.drop(line)
        else:
            self.idle.append(line)
        return answer

    async def ask(self, method: str, path: str, body: str = "") -> Any:
        """What the agent says; it is asked again if it was restarted since the last time."""
        for left in reversed(range(len(self.idle) + 2)):  # all that are idle may have ended
            try:
                status, said = await self.call(method, path, body)
                break
            except AgentGone as error:
                await self.gone()
                if not left:
                    raise Refused(str(error)) from None
        if status >= 400:
            raise refusal(status, said)
        return understood(said) if said else None

    async def gone(self) -> None:
        """The agent closed a connection: that one only, or it went away. As long as it is there,
        the others stay: with them go grants whose answers it believes to be unread."""
        session = self.session
        if session is not None:
            self.wires.receive(session)
        if session is None or session.over:
            while line := self.take():
                self.drop(line)
            self.unreleased.clear()
        else:
            await self.release_again()

    # -- sessions ----------------------------------------------------------------------

    async def current(self) -> AgentSession:
        """The session; a new one if the last has ended."""
        session = self.session
        if session is None or session.over:
            async with self.opening:
                if self.closed:
                    raise Refused(CLOSED)
                session = self.session
                if session is None or session.over:
                    if session is not None:
                        self.lost(session.line)
                    session = self.session = await self.open_session()
        return session

    async def open_session(self) -> AgentSession:
        line = await self.open()
        try:
            found = line.call("POST", "/v1/sessions", "", patience())
            status, said = found if isinstance(found, tuple) else await found
            if status == 404:
                raise Refused(TOO_OLD.format(place=self.place))
            if status != 201:
                raise refusal(status, said)
            session = AgentSession(line, understood(said)["session"])
            leases = "?leases=true" if self.leases else ""
            path = f"/v1/sessions/{session.name}/events{leases}"
            status, said = await self.wires.follow(line, path, session.told)
            if status != 200:
                raise refusal(status, said)
            if line.over:
                raise AgentGone(ENDED)
        except BaseException as error:
            self.drop(line)
            if isinstance(error, (AgentGone, NotInTime)):
                raise NoAgent(str(error)) from None
            raise
        if self.closed:  # meanwhile
            self.drop(line)
            raise Refused(CLOSED)
        return session

    # -- requests and grants -----------------------------------------------------------

    async def acquire(
        self, pool: str, timeout: float | None, body: Callable[[str, float | None], str]
    ) -> tuple[AgentSession, dict[str, Any]]:
        """What the agent grants, whatever becomes of the agent meanwhile, as long as there is one
        again soon. ``body``: of the request, for a session and the seconds that are left."""
        path = f"/v1/pools/{pool}/acquire"
        left, end = timeout, None if timeout is None else monotonic() + timeout
        lost: float | None = None  # the agent, since when
        before, pause = self.session, RETRY
        while True:
            try:
                if self.unreleased:
                    await self.release_again()
                session = self.session
                if session is None or session.over:
                    session = await self.current()
                if session is not before:
                    before, lost, pause = session, None, RETRY
                text = body(session.name, left)
                status, said = await self.call("POST", path, text, patience(left))
                if status == 503:
                    raise NoAgent(str(refusal(status, said)))
            except (AgentGone, NoAgent) as error:
                if self.closed:
                    raise Refused(CLOSED) from None
                await self.gone()
                moment = monotonic()
                lost = moment if lost is None else lost
                if end is not None and moment >= end:
                    raise NotInTime(str(error)) from None
                if moment - lost > PATIENCE:
                    raise Refused(str(error)) from None
                await self.wires.sleep(pause if end is None else min(pause, end - moment))
                pause = min(2 * pause, SLOWEST_RETRY)
            else:
                if status == 200:
                    return session, understood(said)
                if status == 404:
                    self.wires.receive(session)
                if not session.over:
                    raise refusal(status, said)
            left = None if end is None else max(0.0, end - monotonic())

    async def change(self, request: str, priority: int | None, deadline: float | None) -> bool:
        """Of the request that waits by this name. False: none does, or there is no agent."""
        path = f"/v1/requests/{request}/priority"
        try:
            given = {"priority": priority, "deadline": deadline}
            body = json_body(**{name: it for name, it in given.items() if it is not None})
            status, said = await self.call("POST", path, body)
        except (AgentGone, NoAgent):
            await self.gone()
            return False
        if status not in (200, 404):
            raise refusal(status, said)
        return status == 200

    def release(self, what: Unreleased, held: int) -> None:
        """Over a connection at rest, as there is one where no caller waits; else as soon as can
        be."""
        if self.closed:
            return
        line = self.take()
        if line is None:
            self.unreleased[what.grant] = what
            self.wires.release_soon(self)
            return
        try:
            line.release(what, held)
        except BaseException as error:
            self.drop(line)
            if not isinstance(error, AgentGone):
                raise
        else:
            self.idle.append(line)

    async def release_again(self) -> None:
        """What the agent may not know of, because a connection ended: that one only, or it went
        away. What fails is tried again before we next ask for anything."""
        for name in list(self.unreleased):
            what = self.unreleased.pop(name, None)  # one caller at a time: a part is released once
            if what is None:
                continue
            try:
                status, held = 200, 1
                if what.left:
                    status, said = await self.call("GET", f"/v1/grants/{name}", "", patience())
                    held = understood(said)["want"] if status == 200 else 0
                if held > what.left:
                    status, _ = await self.call("DELETE", what.path(held), "", patience())
                if status >= 500:
                    self.unreleased.setdefault(name, what)
            except (AgentGone, NoAgent, TimeoutError):
                self.unreleased.setdefault(name, what)

    async def ask_until(self, holding: Holding) -> None:
        """Has the agent renewed this lease? One that does not answer before the lease is over
        cannot renew it either."""
        status, said = 0, b""
        try:
            path = f"/v1/grants/{holding.key}"
            status, said = await self.call("GET", path, "", holding.third)
        except TimeoutError:
            pass
        except (AgentGone, NoAgent):  # this connection only, unless the session has ended as well
            await self.gone()
        if status == 200:
            holding.end = understood(said)["until"]
        if not holding.grant._ended and (status == 404 or holding.left() <= 0):
            holding.session.holding.pop(holding.key, None)
            holding.grant._revoke()
            self.release(Unreleased(holding.key), 0)  # whatever the agent thinks of it


class AgentSource(Source):
    """What the agent has of a pool."""

    def __init__(self, agent: AgentClient, name: str) -> None:
        self.agent = agent
        self.name = pool_name(name)

    async def perform(self, what: str, **asked: Any) -> Any:
        method = "GET" if what == "who" else "POST"
        body = json_body(**asked) if asked else ""
        return await self.agent.ask(method, f"/v1/pools/{self.name}/{what}", body)


CLIENTS: WeakSet[AgentClient] = WeakSet()


def forked() -> None:
    for client in list(CLIENTS):
        client.forked()


os.register_at_fork(after_in_child=forked)
