"""The agent over HTTP, on its Unix socket and, with ``--http``, at a port.

A grant belongs to a session, and then ends with the connection on which that was opened, so that
permits come back whatever becomes of the program; or it has a ``ttl``, within which it must be
renewed, and belongs to no connection. Who may ask, and where, is in :mod:`.serving`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import asdict

from meshlock import __version__
from meshlock.errors import NodeClosed, NoSuchPool, Refused, setting
from meshlock.live.interfaces import messages
from meshlock.live.interfaces.http_requests import HTTPError, Request
from meshlock.live.interfaces.node import Node
from meshlock.live.interfaces.sessions import LOOKS, Leased, Session
from meshlock.live.interfaces.site import EVENTS, Response, answer
from meshlock.live.machine import limits
from meshlock.live.pools.grants import Acquire, Grant, moment, time_left
from meshlock.live.pools.pool import LocalPool
from meshlock.live.pools.status import Picture, PoolStatus, Status

Method = TypeVar("Method", bound=Callable[..., Any])

LOOK = 0.1
"""Seconds between two looks at a pool while somebody waits for it to change."""

LONGEST_POLL = 8.0
"""Seconds after which a long poll is answered without an event, so that connections
are not taken for dead on the way."""

STILL_HERE = 15.0
"""Seconds after which a stream without news shows that it goes on."""

CHANGING = ("lease", "seconds", "sent", "received", "unseen")
"""Keys of a pool's status that are no news."""

NAMED = ("pool", "request")
"""Parts of a path that are names as :mod:`~meshlock.live.machine.limits` has them."""


POOL, GRANT, SESSION = "/v1/pools/{pool}", "/v1/grants/{grant}", "/v1/sessions/{session}"
WHY = messages.Why
NONE = {400: WHY, 404: WHY}
"""A query cannot be read, or what it is for is not there."""

UNNAMED: dict[int, Any] = {400: WHY, 409: messages.NotNow, 413: WHY}
REFUSED = {**UNNAMED, 404: WHY}
"""What is answered to a request with a body that cannot be granted."""


class Operation(NamedTuple):
    """One thing that can be asked for; routes and OpenAPI are made from these."""

    method: str
    path: str
    handler: Callable[..., Response | Awaitable[Response]]
    """A method of :class:`Interface`. It gets the request, and its body or query as declared."""

    answers: dict[int, Any]
    """Status: the type of its body, a media type, or None for no body."""

    body: type | None = None
    query: type | None = None
    open: bool = False
    """Needs no token."""

    links: Sequence[str] = ()
    """What can be done with the grant that the answer names."""

    streams: bool = False
    """A client that accepts ``text/event-stream`` gets events as they come."""


OPERATIONS: list[Operation] = []
"""All that can be asked of the agent, wherever it is asked."""


def operation(
    method: str, path: str, answers: dict[int, Any], **more: Any
) -> Callable[[Method], Method]:
    """Declare what a method of the interface answers. Its docstring is the summary."""

    def declared(handler: Method) -> Method:
        OPERATIONS.append(Operation(method, path, handler, answers, **more))
        return handler

    return declared


class Interface:
    """Performs the operations at a node."""

    def __init__(self, node: Node, makes_pools: bool = False) -> None:
        self.node = node
        self.makes_pools = makes_pools  # for clients
        self.sessions: dict[str, Session] = {}
        self.requests: dict[str, Acquire] = {}  # that wait, by the names that clients gave them
        self.grants: dict[str, Grant] = {}  # of sessions and others
        self.leased: dict[str, Leased] = {}

    def perform(self, one: Operation, request: Request) -> Response | Awaitable[Response]:
        """Here a request is read. If that fails, the answer is 400; what is refused later has a
        status of its own."""
        for what, name in request.parameters.items():
            if what in NAMED and name not in self.node.pools:
                limits.name(name, what)
        asked: list[Any] = []
        if one.body is not None:
            asked = [limits.decoded(request.body or b"{}", one.body)]
        elif one.query is not None:
            asked = [queried(request, one.query) if request.query else one.query()]
        try:
            found = one.handler(self, request, *asked)
        except Refused as error:
            raise impossible(error) from None
        return found if isinstance(found, Response) else finished(found)

    # -- how the agent is --------------------------------------------------------------

    @operation("GET", "/healthz", {200: messages.Healthy}, open=True)
    def healthy(self, _: Request) -> Response:
        """Report whether the agent is alive."""
        return answer(messages.Healthy(self.node.name, __version__))

    @operation("GET", "/readyz", {200: messages.Ready, 503: messages.Ready}, open=True)
    def ready(self, _: Request) -> Response:
        """Report whether the agent can grant permits of its pools."""
        why = [
            f"{name}: {reason}"
            for name, pool in self.node.status()["pools"].items()
            if (reason := unready(pool))
        ]
        return answer(messages.Ready(self.node.name, not why, why), 503 if why else 200)

    @operation("GET", "/metrics", {200: "text/plain", 501: WHY})
    def metrics(self, _: Request) -> Response:
        """Return the metrics for Prometheus."""
        try:
            from meshlock.live.interfaces.exposition import exposition
        except Refused as error:
            raise HTTPError(501, str(error)) from None
        return Response(exposition(self.node).encode(), "text/plain; version=0.0.4; charset=utf-8")

    @operation("GET", "/v1/status", {200: Status})
    def status(self, _: Request) -> Response:
        """Return everything that the agent knows."""
        return answer(self.node.status())

    # -- pools -------------------------------------------------------------------------

    @operation("GET", POOL, {200: messages.PoolShown, **NONE}, query=messages.OfPool, streams=True)
    async def show_pool(self, request: Request, asked: messages.OfPool) -> Response:
        """Return one pool as this node sees it, or stream its changes."""
        name = request.parameters["pool"]
        shown = self.shown(name)
        if streamed(request):
            return Response(kind=EVENTS, stream=self.changes(name))
        loop = asyncio.get_running_loop()
        end = loop.time() + min(asked.wait, LONGEST_POLL)
        while shown["version"] == asked.version and loop.time() < end:
            await asyncio.sleep(min(LOOK, max(0.0, end - loop.time())))
            shown = self.shown(name)
        return answer(shown)

    @operation("GET", f"{POOL}/who", {200: Picture, **NONE})
    async def who(self, request: Request) -> Response:
        """Return the holders and waiting clients of a pool at all nodes."""
        name = request.parameters["pool"]
        self.shown(name)
        return answer(await self.node.pools[name].picture())

    def shown(self, name: str) -> dict[str, Any]:
        pool = self.node.pools.get(name)
        if pool is None:
            raise NoSuchPool(name, self.node.registry.known_pools())
        status = pool.describe()
        stable = {key: value for key, value in status.items() if key not in CHANGING}
        for key in ("holding", "waiting"):
            stable[key] = [
                {name: value for name, value in one.items() if name not in CHANGING}
                for one in status.get(key, ())
            ]
        version = blake2b(msgspec.json.encode(stable), digest_size=8).hexdigest()
        return {"pool": name, "version": version, "status": status}

    async def changes(self, name: str) -> AsyncGenerator[bytes, None]:
        """The pool whenever it has changed, at most every :data:`LOOK` seconds."""
        version, silent = "", 0.0
        while True:
            try:
                shown = self.shown(name)
            except NoSuchPool:
                return
            if shown["version"] != version:
                version, silent = shown["version"], 0.0
                yield event("pool", shown)
            elif silent > STILL_HERE:
                silent = 0.0
                yield b": still here\n\n"
            await asyncio.sleep(LOOK)
            silent += LOOK

    # -- changing pools ----------------------------------------------------------------

    def visited(self, request: Request) -> AbstractContextManager[LocalPool]:
        return self.node.registry.visited(request.parameters["pool"])

    @operation(
        *("POST", f"{POOL}/members", {200: messages.Members, **REFUSED}),
        body=messages.ChangeMembers,
    )
    async def change_members(self, request: Request, body: messages.ChangeMembers) -> Response:
        """Add or remove a member."""
        with self.visited(request) as pool:
            members = await pool.change_requests.change_members(**asdict(body))
        return answer(messages.Members(members))

    @operation(
        *("POST", f"{POOL}/permits", {200: messages.Permits, **REFUSED}),
        body=messages.ChangePermits,
    )
    async def change_permits(self, request: Request, body: messages.ChangePermits) -> Response:
        """Change the number or names of the permits."""
        with self.visited(request) as pool:
            return answer(messages.Permits(await pool.change_requests.resize(**asdict(body))))

    @operation("POST", f"{POOL}/join", {200: messages.Joined, **UNNAMED}, body=messages.Join)
    def join_pool(self, request: Request, body: messages.Join) -> Response:
        """Join a pool, or have it made, if the agent allows that."""
        name = request.parameters["pool"]
        if name not in self.node.registry.known_pools() and not self.makes_pools:
            raise Refused(
                f"This agent makes no pool {name} for a program: start it with "
                f"{setting('client-pools')}, or with {setting('pool')} {name}=PERMITS."
            )
        self.node.pool_for_client(name, body.permits)
        return answer(messages.Joined(name))

    @operation("POST", f"{POOL}/create", {200: messages.Permits, **UNNAMED}, body=messages.Create)
    async def create_pool(self, request: Request, body: messages.Create) -> Response:
        """Make a pool that no node has."""
        permits = await self.node.create_pool(request.parameters["pool"], body.permits)
        return answer(messages.Permits(permits))

    @operation(
        "POST", f"{POOL}/join-from", {200: messages.Permits, **REFUSED}, body=messages.JoinFrom
    )
    async def join_from(self, request: Request, body: messages.JoinFrom) -> Response:
        """Join another pool of this name."""
        with self.visited(request) as pool:
            return answer(messages.Permits(await pool.participation.join(body.node)))

    @operation("POST", f"{POOL}/reset", {200: messages.Permits, **REFUSED})
    async def reset_pool(self, request: Request) -> Response:
        """Reset a pool."""
        with self.visited(request) as pool:
            return answer(messages.Permits(await pool.participation.reset()))

    @operation("POST", f"{POOL}/remove", {200: messages.Removed, **REFUSED})
    async def remove_pool(self, request: Request) -> Response:
        """Remove a pool that no other node has."""
        with self.visited(request) as pool:
            await pool.introduced()
            self.node.registry.remove(pool.name)
        return answer(messages.Removed(pool.name))

    # -- grants ------------------------------------------------------------------------

    @operation(
        *("POST", f"{POOL}/acquire", {200: messages.Granted, **REFUSED, 503: WHY}),
        body=messages.Acquire,
        links=["show_grant", "renew", "release"],
    )
    def acquire(
        self, request: Request, body: messages.Acquire
    ) -> Response | Coroutine[Any, Any, Response]:
        """Request permits, and wait for them."""
        session = None if body.session is None else self.session(body.session)
        pool = self.node.pools.get(request.parameters["pool"])
        if pool is not None and pool.adapter.core is not None:
            grant = pool.at_once(asked(pool, body))
            if grant is not None:
                return self.granted(request, body, session, grant)
        return self.wait_for(request, body, session)

    async def wait_for(
        self, request: Request, body: messages.Acquire, session: Session | None
    ) -> Response:
        with self.visited(request) as pool:
            waits = asked(pool, body)
            with self.known_as(body.request, waits):
                grant = await waits
        if request.connection.closed or (session is not None and session.over):
            grant.release()
            raise Refused("The session has ended.")
        return self.granted(request, body, session, grant)

    @contextmanager
    def known_as(self, name: str | None, waits: Acquire) -> Iterator[None]:
        if name is None:
            yield
            return
        if name in self.requests:
            raise Refused(f"A request with the name {name} waits already: use another name.")
        self.requests[name] = waits
        try:
            yield
        finally:
            del self.requests[name]

    @operation(
        *("POST", "/v1/requests/{request}/priority", {200: messages.Urgent, **REFUSED}),
        body=messages.ChangePriority,
    )
    async def change_priority(self, request: Request, body: messages.ChangePriority) -> Response:
        """Change the priority or the deadline of a waiting request."""
        name = request.parameters["request"]
        if body.priority is None and body.deadline is None:
            raise Refused("Nothing to change: give a priority, a deadline, or both.")
        waits = self.requests.get(name)
        if waits is None or not await waits.change(priority=body.priority, deadline=body.deadline):
            why = f"No request with the name {name} waits: it was granted or withdrawn."
            raise HTTPError(404, why)
        return answer(messages.Urgent(name, waits.priority, waits.deadline))

    def granted(
        self, request: Request, body: messages.Acquire, session: Session | None, grant: Grant
    ) -> Response:
        """The grant has a name, and an end whatever becomes of the program that asked for it."""
        if session is None:
            name = secrets.token_urlsafe(12)
            self.leased[name] = Leased(grant, body.ttl, self.node.mesh.failures.later)
        else:
            session.last_grant += 1
            name = f"{session.name}-{session.last_grant}"
            session.grants[name] = grant
            request.connection.unread = grant
        self.grants[name] = grant
        grant.at_end(lambda: self.ended(name, session))
        known = self.known(name, grant)
        if session is not None and known.until is not None and known.lease is not None:
            session.note_lease(name, known.until, known.lease)
        return answer(known)

    def known(self, name: str, grant: Grant) -> messages.Granted:
        until, leased = grant.until, self.leased.get(name)
        permits = grant.permits or self.node.pools[grant.pool].permits
        ttl = None if leased is None else leased.ttl
        return messages.Granted(
            *(name, grant.pool, permits, grant.want, grant.priority, grant.met, grant.fence),
            *(grant.slots, ttl, time_left(until), until),
        )

    def ended(self, name: str, session: Session | None) -> None:
        grant = self.grants.pop(name)
        if session is None:
            self.leased.pop(name).timer.cancel()
            return
        del session.grants[name]
        if session.leases is not None:
            session.leases.pop(name, None)
        if grant.lost:
            session.notify("lost", name)

    def held(self, name: str) -> Grant:
        grant = self.grants.get(name)
        if grant is None:
            raise HTTPError(404, "There is no such grant: it was released or revoked.")
        return grant

    @operation("GET", GRANT, {200: messages.Granted, 404: WHY})
    def show_grant(self, request: Request) -> Response:
        """Return a grant."""
        name = request.parameters["grant"]
        return answer(self.known(name, self.held(name)))

    @operation("DELETE", GRANT, {204: None, **NONE, 409: messages.NotNow}, query=messages.OfRelease)
    def release(self, request: Request, asked: messages.OfRelease) -> Response:
        """Release the permits, or some of them."""
        self.held(request.parameters["grant"]).release(asked.permits)
        return Response(status=204)

    @operation("POST", f"{GRANT}/renew", {200: messages.Renewed, 404: WHY, 409: messages.NotNow})
    def renew(self, request: Request) -> Response:
        """Renew a grant for another ttl."""
        name = request.parameters["grant"]
        grant, leased = self.held(name), self.leased.get(name)
        if leased is None:
            raise Refused("This grant has no ttl: it lasts as long as its session.")
        leased.renew()
        return answer(messages.Renewed(leased.ttl, grant.lease))

    # -- sessions ----------------------------------------------------------------------

    @operation("POST", "/v1/sessions", {201: messages.Opened})
    def open_session(self, request: Request) -> Response:
        """Open a session, which ends with the connection."""
        session = Session(secrets.token_urlsafe(9), self.sessions)
        request.connection.owned.append(session)
        return answer(messages.Opened(session.name, self.node.name, __version__), 201)

    def session(self, name: str) -> Session:
        if name not in self.sessions:
            raise HTTPError(404, "There is no such session: it has ended. Open a new one.")
        return self.sessions[name]

    @operation(
        *("GET", f"{SESSION}/events", {200: messages.Events, **NONE}),
        query=messages.OfSession,
        streams=True,
    )
    async def session_events(self, request: Request, asked: messages.OfSession) -> Response:
        """Return or stream what happens to the grants of a session."""
        session = self.session(request.parameters["session"])
        if streamed(request):
            return Response(kind=EVENTS, stream=self.stream(session, asked.after, asked.leases))
        if not session.after(asked.after):
            await session.wait(min(asked.wait, LONGEST_POLL))
        return answer(messages.Events(session.after(asked.after), session.last_event))

    async def stream(
        self, session: Session, after: int, leases: bool
    ) -> AsyncGenerator[bytes, None]:
        if leases and session.leases is None:
            session.leases = {}
        while not session.over:
            for one in list(session.after(after)):
                after = one.number
                yield event(one.event, one)
            lease = session.shortest() if leases else None
            session.rests = STILL_HERE if lease is None else max(LOOK / 2, lease / LOOKS)
            await session.wait(session.rests)
            if leases and session.leases is not None:
                session.send_leases(session.leases)


async def finished(work: Awaitable[Response]) -> Response:
    try:
        return await work
    except Refused as error:
        raise impossible(error) from None


def asked(pool: LocalPool, body: messages.Acquire) -> Acquire:
    due = moment(body.deadline)
    return Acquire(pool, body.want, body.priority, body.timeout, body.label, due)


def impossible(error: Refused) -> HTTPError:
    if isinstance(error, NodeClosed):
        return HTTPError(503, str(error))
    return HTTPError(404 if isinstance(error, NoSuchPool) else 409, str(error))


def unready(pool: PoolStatus) -> str:
    """Why no permits of this pool can be had here; nothing, if they can."""
    return str(pool.get("unready", pool["conflict"]) if pool["known"] else pool["why"])


def event(kind: str, value: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(value))


def streamed(request: Request) -> bool:
    return EVENTS in request.headers.get("accept", "")


def queried(request: Request, kind: type) -> Any:
    try:
        return msgspec.convert(request.asked, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(f"Not a query: {limits.in_words(error, kind)}.") from None
