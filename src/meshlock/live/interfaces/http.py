"""The agent over HTTP, on its Unix socket and, with ``--http``, at a port.

A grant belongs to a session, and then ends with the connection on which that was opened, so that
permits come back whatever becomes of the program; or it has a ``ttl``, within which it must be
renewed, and belongs to no connection. Who may ask, and where, is in :mod:`.serving`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AbstractContextManager, suppress
from typing import Any, cast

import msgspec
from msgspec.structs import asdict

from meshlock import __version__
from meshlock.errors import NoSuchPool, Refused, setting
from meshlock.live.interfaces import messages
from meshlock.live.interfaces.node import Node
from meshlock.live.interfaces.operations import (
    NONE,
    OPERATIONS,
    REFUSED,
    UNNAMED,
    delete,
    get,
    post,
)
from meshlock.live.interfaces.registry import known_as
from meshlock.live.interfaces.site import EVENTS, HTTPError, HTTPRequest, Response, answer
from meshlock.live.pools.grants import Acquire, Grant, moment, time_left
from meshlock.live.pools.pool import LocalPool
from meshlock.live.pools.status import Picture, PoolStatus, Status

LOOKS = 6
"""So often per lease a session is notified, if anything changed."""

MOST_EVENTS = 10_000
"""That a session keeps until its client reads them."""


class Session:
    """What one connection holds, and what it should know of that."""

    def __init__(self, name: str, sessions: dict[str, Session]) -> None:
        self.name = name
        self.sessions = sessions  # all there are
        sessions[name] = self
        self.grants: dict[str, Grant] = {}
        self.last_grant = 0
        self.events: deque[messages.Event] = deque(maxlen=MOST_EVENTS)
        self.over = False
        self.leases: dict[str, float] | None = None  # if renewals are sent, too: the last ones
        self.rests = 0.0  # seconds between two looks at them
        self.news = asyncio.Event()

    def notify(self, event: str, grant: str, until: float | None = None) -> None:
        self.events.append(messages.Event(event, grant, until))
        self.news.set()

    async def wait(self, seconds: float) -> None:
        self.news.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.news.wait(), seconds)

    def shortest(self) -> float | None:
        """Seconds of the lease that ends first."""
        leases = [lease for grant in self.grants.values() if (lease := grant.lease) is not None]
        return min(leases, default=None)

    def note_lease(self, name: str, until: float, lease: float) -> None:
        """The client has this from the answer; the next look must come in time."""
        if self.leases is not None:
            self.leases[name] = until
            if lease * 2 < self.rests * LOOKS:
                self.news.set()

    def send_leases(self, told: dict[str, float]) -> None:
        for name, grant in self.grants.items():
            until = grant.until
            if until is not None and told.get(name) != until:
                told[name] = until
                self.notify("lease", name, until)

    @property
    def held(self) -> bool:
        return bool(self.grants)

    def release(self) -> None:
        """It ends, and so do its grants."""
        del self.sessions[self.name]
        self.over = True
        for grant in list(self.grants.values()):
            grant.release()
        self.news.set()


LOOK = 0.1
"""Seconds between two looks at a pool while somebody waits for it to change."""

STILL_HERE = 15.0
"""Seconds after which a stream without news shows that it goes on."""

CHANGING = ("lease", "seconds", "sent", "received", "unseen")
"""Keys of a pool's status that are no news."""

POOL, GRANT, SESSION = "/v1/pools/{pool}", "/v1/grants/{grant}", "/v1/sessions/{session}"


class Interface:
    """Performs the operations at a node."""

    operations = OPERATIONS  # those that are declared below

    def __init__(self, node: Node, makes_pools: bool = False) -> None:
        self.node = node._local
        self.makes_pools = makes_pools  # for clients
        self.sessions: dict[str, Session] = {}
        self.requests: dict[str, Acquire] = {}  # that wait, by the names that clients gave them
        self.grants: dict[str, Grant] = {}  # of sessions and others
        self.ttls: dict[str, tuple[float, asyncio.TimerHandle]] = {}  # of those without a session

    # -- how the agent is --------------------------------------------------------------

    @get("/healthz", {}, public=True)
    def healthy(self, _: HTTPRequest) -> messages.Healthy:
        """Report whether the agent is alive."""
        return messages.Healthy(self.node.name, __version__)

    @get("/readyz", {503: messages.Ready}, answers={200: messages.Ready}, public=True)
    def ready(self, _: HTTPRequest) -> Response:
        """Report whether the agent can grant permits of its pools."""
        why = [
            f"{name}: {reason}"
            for name, pool in self.node.status()["pools"].items()
            if (reason := unready(pool))
        ]
        return answer(messages.Ready(self.node.name, not why, why), 503 if why else 200)

    @get("/metrics", {501: messages.Why}, answers={200: "text/plain"})
    def metrics(self, _: HTTPRequest) -> Response:
        """Return the metrics for Prometheus."""
        try:
            from meshlock.live.interfaces.exposition import exposition
        except Refused as error:
            raise HTTPError(501, str(error)) from None
        return Response(exposition(self.node).encode(), "text/plain; version=0.0.4; charset=utf-8")

    @get("/v1/status", {})
    def status(self, _: HTTPRequest) -> Status:
        """Return everything that the agent knows."""
        return self.node.status()

    # -- pools -------------------------------------------------------------------------

    @get(POOL, NONE, answers={200: messages.PoolShown}, streams=True)
    def show_pool(self, request: HTTPRequest) -> Response:
        """Return one pool as this node sees it, or stream its changes."""
        shown = self.shown(request.parameters["pool"])
        if EVENTS in request.header("accept"):
            return Response(kind=EVENTS, stream=self.changes(shown.pool))
        return answer(shown)

    @get(f"{POOL}/who", NONE)
    async def who(self, request: HTTPRequest) -> Picture:
        """Return the holders and waiting clients of a pool at all nodes."""
        name = self.shown(request.parameters["pool"]).pool
        return await self.node.pools[name].picture()

    def shown(self, name: str) -> messages.PoolShown:
        pool = self.node.pools.get(name)
        if pool is None:
            raise NoSuchPool.among(name, self.node.registry.known_pools())
        return messages.PoolShown(name, cast(PoolStatus, pool.describe()))

    async def changes(self, name: str) -> AsyncGenerator[bytes, None]:
        """The pool whenever it has changed, at most every :data:`LOOK` seconds."""
        before, silent = None, 0.0
        while name in self.node.pools:
            shown = self.shown(name)
            if (news := steady(shown.status)) != before:
                before, silent = news, 0.0
                yield event("pool", shown)
            elif silent > STILL_HERE:
                silent = 0.0
                yield b": still here\n\n"
            await asyncio.sleep(LOOK)
            silent += LOOK

    # -- changing pools ----------------------------------------------------------------

    def visited(self, request: HTTPRequest) -> AbstractContextManager[LocalPool]:
        return self.node.registry.visited(request.parameters["pool"])

    @post(f"{POOL}/members", REFUSED)
    async def change_members(
        self, request: HTTPRequest, body: messages.ChangeMembers
    ) -> messages.Members:
        """Add or remove a member."""
        with self.visited(request) as pool:
            return messages.Members(await pool.change_requests.change_members(**asdict(body)))

    @post(f"{POOL}/permits", REFUSED)
    async def change_permits(
        self, request: HTTPRequest, body: messages.ChangePermits
    ) -> messages.Permits:
        """Change the number or names of the permits."""
        with self.visited(request) as pool:
            return messages.Permits(await pool.change_requests.resize(**asdict(body)))

    @post(f"{POOL}/join", UNNAMED)
    def join_pool(self, request: HTTPRequest, body: messages.Join) -> messages.Joined:
        """Join a pool, or have it made, if the agent allows that."""
        name = request.parameters["pool"]
        if name not in self.node.registry.known_pools() and not self.makes_pools:
            raise Refused(
                f"This agent makes no pool {name} for a program: start it with "
                f"{setting('client-pools')}, or with {setting('pool')} {name}=PERMITS."
            )
        self.node.registry.use_for_client(name, body.permits)
        return messages.Joined(name)

    @post(f"{POOL}/create", UNNAMED)
    async def create_pool(self, request: HTTPRequest, body: messages.Create) -> messages.Permits:
        """Make a pool that no node has."""
        registry = self.node.registry
        return messages.Permits(await registry.create(request.parameters["pool"], body.permits))

    @post(f"{POOL}/join-from", REFUSED)
    async def join_from(self, request: HTTPRequest, body: messages.JoinFrom) -> messages.Permits:
        """Join another pool of this name."""
        with self.visited(request) as pool:
            return messages.Permits(await pool.participation.join(body.node))

    @post(f"{POOL}/reset", REFUSED)
    async def reset_pool(self, request: HTTPRequest) -> messages.Permits:
        """Reset a pool."""
        with self.visited(request) as pool:
            return messages.Permits(await pool.participation.reset())

    @post(f"{POOL}/remove", REFUSED)
    async def remove_pool(self, request: HTTPRequest) -> messages.Removed:
        """Remove a pool that no other node has."""
        with self.visited(request) as pool:
            await pool.introduced()
            self.node.registry.remove(pool.name)
        return messages.Removed(pool.name)

    # -- grants ------------------------------------------------------------------------

    @post(
        f"{POOL}/acquire",
        {**REFUSED, 503: messages.Why},
        answers={200: messages.Granted},
    )
    def acquire(
        self, request: HTTPRequest, body: messages.AcquireRequest
    ) -> messages.Granted | Coroutine[Any, Any, messages.Granted]:
        """Request permits, and wait for them."""
        session = None if body.session is None else self.session(body.session)
        pool = self.node.pools.get(request.parameters["pool"])
        if pool is not None and pool.adapter.core is not None:
            grant = pool.at_once(asked(pool, body))
            if grant is not None:
                return self.granted(request, body.ttl, session, grant)
        return self.wait_for(request, body, session)

    async def wait_for(
        self, request: HTTPRequest, body: messages.AcquireRequest, session: Session | None
    ) -> messages.Granted:
        with self.visited(request) as pool:
            waits = asked(pool, body)
            with known_as(self.requests, body.request, waits):
                grant = await waits
        if request.connection.closed or (session is not None and session.over):
            grant.release()
            raise Refused("The session has ended.")
        return self.granted(request, body.ttl, session, grant)

    @post("/v1/requests/{request}/priority", REFUSED)
    async def change_priority(
        self, request: HTTPRequest, body: messages.ChangePriority
    ) -> messages.Urgent:
        """Change the priority or the deadline of a waiting request."""
        name = request.parameters["request"]
        if body.priority is None and body.deadline is None:
            raise Refused("Nothing to change: give a priority, a deadline, or both.")
        waits = self.requests.get(name)
        if waits is None or not await waits.change(priority=body.priority, deadline=body.deadline):
            why = f"No request with the name {name} waits: it was granted or withdrawn."
            raise HTTPError(404, why)
        return messages.Urgent(name, waits.priority, waits.deadline)

    def granted(
        self, request: HTTPRequest, ttl: float, session: Session | None, grant: Grant
    ) -> messages.Granted:
        """The grant has a name, and an end whatever becomes of the program that asked for it."""
        if session is None:
            name = secrets.token_urlsafe(12)
            self.ttls[name] = ttl, self.node.mesh.failures.later(ttl, "http", grant.release)
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
        return known

    def known(self, name: str, grant: Grant) -> messages.Granted:
        until, (ttl, _) = grant.until, self.ttls.get(name, (None, None))
        permits = grant.permits or self.node.pools[grant.pool].permits
        return messages.Granted(
            grant=name,
            pool=grant.pool,
            permits=permits,
            want=grant.want,
            priority=grant.priority,
            met=grant.met,
            fence=grant.fence,
            slots=grant.slots,
            ttl=ttl,
            lease=time_left(until),
            until=until,
        )

    def ended(self, name: str, session: Session | None) -> None:
        grant = self.grants.pop(name)
        if session is None:
            self.ttls.pop(name)[1].cancel()
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

    @get(GRANT, {404: messages.Why})
    def show_grant(self, request: HTTPRequest) -> messages.Granted:
        """Return a grant."""
        name = request.parameters["grant"]
        return self.known(name, self.held(name))

    @delete(GRANT, {**NONE, 409: messages.NotNow}, answers={204: None})
    def release(self, request: HTTPRequest, query: messages.OfRelease) -> Response:
        """Release the permits, or some of them."""
        self.held(request.parameters["grant"]).release(query.permits)
        return Response(status=204)

    @post(f"{GRANT}/renew", {404: messages.Why, 409: messages.NotNow})
    def renew(self, request: HTTPRequest) -> messages.Renewed:
        """Renew a grant for another ttl."""
        name = request.parameters["grant"]
        grant = self.held(name)
        if name not in self.ttls:
            raise Refused("This grant has no ttl: it lasts as long as its session.")
        ttl, timer = self.ttls[name]
        timer.cancel()
        self.ttls[name] = ttl, self.node.mesh.failures.later(ttl, "http", grant.release)
        return messages.Renewed(ttl, grant.lease)

    # -- sessions ----------------------------------------------------------------------

    @post("/v1/sessions", {}, status=201)
    def open_session(self, request: HTTPRequest) -> messages.Opened:
        """Open a session, which ends with the connection."""
        session = Session(secrets.token_urlsafe(9), self.sessions)
        request.connection.owned.append(session)
        return messages.Opened(session.name, self.node.name, __version__)

    def session(self, name: str) -> Session:
        if name not in self.sessions:
            raise HTTPError(404, "There is no such session: it has ended. Open a new one.")
        return self.sessions[name]

    @get(f"{SESSION}/events", NONE, answers={200: messages.Events}, streams=True)
    def session_events(self, request: HTTPRequest, query: messages.OfSession) -> Response:
        """Return what has happened to the grants of a session, or stream it."""
        session = self.session(request.parameters["session"])
        if EVENTS in request.header("accept"):
            return Response(kind=EVENTS, stream=self.stream(session, query.leases))
        news = list(session.events)
        session.events.clear()
        return answer(messages.Events(news))

    async def stream(self, session: Session, leases: bool) -> AsyncGenerator[bytes, None]:
        if leases and session.leases is None:
            session.leases = {}
        while not session.over:
            while session.events:
                one = session.events.popleft()
                yield event(one.event, one)
            lease = session.shortest() if leases else None
            session.rests = STILL_HERE if lease is None else max(LOOK / 2, lease / LOOKS)
            await session.wait(session.rests)
            if leases and session.leases is not None:
                session.send_leases(session.leases)


def asked(pool: LocalPool, body: messages.AcquireRequest) -> Acquire:
    due = moment(body.deadline)
    return Acquire(pool, body.want, body.priority, body.timeout, body.label, due)


def unready(pool: PoolStatus) -> str:
    """Why no permits of this pool can be had here; nothing, if they can."""
    return str(pool.get("unready", pool["conflict"]) if pool["known"] else pool["why"])


def event(kind: str, value: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(value))


def steady(value: Any) -> Any:
    """Without what changes all the time."""
    if isinstance(value, dict):
        return {key: steady(it) for key, it in value.items() if key not in CHANGING}
    return [steady(it) for it in value] if isinstance(value, list) else value
