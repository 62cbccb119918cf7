"""The agent over HTTP, on its Unix socket and, with ``--http``, at a port.

A grant belongs to a session, and then ends with the connection on which that was opened, so that
permits come back whatever becomes of the program; or it has a ``ttl``, within which it must be
renewed, and belongs to no connection. Who may ask, and where, is in :mod:`.serving`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
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
from meshlock.live.interfaces.site import EVENTS, Handler, Response, answer
from meshlock.live.machine import limits
from meshlock.live.pools.grants import Acquire, Grant, moment, time_left
from meshlock.live.pools.pool import LocalPool
from meshlock.live.pools.status import Picture, PoolStatus, Status

Kind = TypeVar("Kind")

LOOK = 0.1
"""Seconds between two looks at a pool while somebody waits for it to change."""

LONGEST_POLL = 8.0
"""Seconds after which a long poll is answered without an event, so that connections
are not taken for dead on the way."""

STILL_HERE = 15.0
"""Seconds after which a stream without news shows that it goes on."""

CHANGING = ("lease", "seconds", "sent", "received", "unseen")
"""Keys of a pool's status that are no news."""


POOL = "/v1/pools/{pool}"
WHY = messages.Why
REFUSED: dict[int, Any] = {400: WHY, 404: WHY, 409: messages.NotNow, 413: WHY}
"""What is answered to a request with a body that cannot be granted."""


class Operation(NamedTuple):
    """One thing that can be asked for; OpenAPI is made from these."""

    method: str
    path: str
    handler: Handler
    summary: str
    answers: dict[int, Any]
    """Status: the type of its body, a media type, or None for no body."""

    body: type | None = None
    query: type | None = None
    open: bool = False
    """Needs no token."""

    links: Sequence[str] = ()
    """What can be done with the grant that the answer names."""

    streams: bool = False
    """Whoever accepts ``text/event-stream`` gets events as they come."""


class Interface:
    """All that can be asked of the agent, wherever it is asked."""

    def __init__(self, node: Node, makes_pools: bool = False) -> None:
        self.node = node
        self.makes_pools = makes_pools  # for clients
        self.sessions: dict[str, Session] = {}
        self.requests: dict[str, Acquire] = {}  # that wait, by the names that clients gave them
        self.grants: dict[str, Grant] = {}  # of sessions and others
        self.leased: dict[str, Leased] = {}

    def operations(self) -> list[Operation]:
        return [
            *self.about_the_agent(),
            *self.about_pools(),
            *self.changing_pools(),
            *self.about_grants(),
        ]

    def about_the_agent(self) -> list[Operation]:
        alive = "Report whether the agent is alive."
        ready = "Report whether the agent can grant permits of its pools."
        metrics = "Return the metrics for Prometheus."
        status = "Return everything that the agent knows."
        both = {200: messages.Ready, 503: messages.Ready}
        return [
            Operation("GET", "/healthz", self.healthy, alive, {200: messages.Healthy}, open=True),
            Operation("GET", "/readyz", self.ready, ready, both, open=True),
            Operation("GET", "/metrics", self.metrics, metrics, {200: "text/plain", 501: WHY}),
            Operation("GET", "/v1/status", self.status, status, {200: Status}),
        ]

    def about_pools(self) -> list[Operation]:
        show = "Return one pool as this node sees it, or stream its changes."
        who = "Return the holders and waiting clients of a pool at all nodes."
        acquire = "Request permits, and wait for them."
        urgency = "Change the priority or the deadline of a waiting request."
        return [
            Operation(
                *("GET", POOL, self.show_pool, show, {200: messages.PoolShown, 400: WHY, 404: WHY}),
                query=messages.OfPool,
                streams=True,
            ),
            Operation("GET", f"{POOL}/who", self.who, who, {200: Picture, 400: WHY, 404: WHY}),
            Operation(
                *("POST", f"{POOL}/acquire", self.acquire, acquire),
                {200: messages.Granted, **REFUSED, 503: WHY},
                body=messages.Acquire,
                links=["show_grant", "renew", "release"],
            ),
            Operation(
                *("POST", "/v1/requests/{request}/priority", self.change_priority, urgency),
                {200: messages.Urgent, **REFUSED},
                body=messages.ChangePriority,
            ),
        ]

    def changing_pools(self) -> list[Operation]:
        unnamed = {status: body for status, body in REFUSED.items() if status != 404}
        permits = {200: messages.Permits, **REFUSED}
        table: list[tuple[str, Handler, str, dict[int, Any], type | None]] = [
            (
                *("members", self.change_members, "Add or remove a member."),
                *({200: messages.Members, **REFUSED}, messages.ChangeMembers),
            ),
            (
                *("permits", self.change_permits, "Change the number or names of the permits."),
                *(permits, messages.ChangePermits),
            ),
            (
                *("join", self.join_pool),
                "Join a pool, or have it made, if the agent allows that.",
                *({200: messages.Joined, **unnamed}, messages.Join),
            ),
            (
                *("create", self.create_pool, "Make a pool that no node has."),
                *({200: messages.Permits, **unnamed}, messages.Create),
            ),
            (
                *("join-from", self.join_from, "Join another pool of this name."),
                *(permits, messages.JoinFrom),
            ),
            ("reset", self.reset_pool, "Reset a pool.", permits, None),
            (
                *("remove", self.remove_pool, "Remove a pool that no other node has."),
                *({200: messages.Removed, **REFUSED}, None),
            ),
        ]
        return [
            Operation("POST", f"{POOL}/{what}", handler, summary, answers, body)
            for what, handler, summary, answers, body in table
        ]

    def about_grants(self) -> list[Operation]:
        grant, session = "/v1/grants/{grant}", "/v1/sessions/{session}"
        release = "Release the permits, or some of them."
        renew = "Renew a grant for another ttl."
        opening = "Open a session, which ends with the connection."
        events = "Return or stream what happens to the grants of a session."
        return [
            Operation(
                *("GET", grant, self.show_grant, "Return a grant."),
                {200: messages.Held, 404: WHY},
            ),
            Operation(
                *("DELETE", grant, self.release, release),
                {204: None, 400: WHY, 404: WHY, 409: messages.NotNow},
                query=messages.OfRelease,
            ),
            Operation(
                *("POST", f"{grant}/renew", self.renew, renew),
                {200: messages.Renewed, 404: WHY, 409: messages.NotNow},
            ),
            Operation("POST", "/v1/sessions", self.open_session, opening, {201: messages.Opened}),
            Operation(
                *("GET", f"{session}/events", self.session_events, events),
                {200: messages.Events, 400: WHY, 404: WHY},
                query=messages.OfSession,
                streams=True,
            ),
        ]

    # -- how the agent is --------------------------------------------------------------

    def healthy(self, _: Request) -> Response:
        return answer(messages.Healthy(self.node.name, __version__))

    def ready(self, _: Request) -> Response:
        why = [
            f"{name}: {reason}"
            for name, pool in self.node.status()["pools"].items()
            if (reason := unready(pool))
        ]
        return answer(messages.Ready(self.node.name, not why, why), 503 if why else 200)

    def metrics(self, _: Request) -> Response:
        try:
            from meshlock.live.interfaces.exposition import exposition
        except Refused as error:
            raise HTTPError(501, str(error)) from None
        return Response(exposition(self.node).encode(), "text/plain; version=0.0.4; charset=utf-8")

    def status(self, _: Request) -> Response:
        return answer(self.node.status())

    # -- pools -------------------------------------------------------------------------

    async def show_pool(self, request: Request) -> Response:
        asked = queried(request, messages.OfPool)
        name = limits.name(request.parameters["pool"])
        shown = self.shown(name)
        if streamed(request):
            return Response(kind=EVENTS, stream=self.changes(name))
        loop = asyncio.get_running_loop()
        end = loop.time() + min(asked.wait, LONGEST_POLL)
        while shown["version"] == asked.version and loop.time() < end:
            await asyncio.sleep(min(LOOK, max(0.0, end - loop.time())))
            shown = self.shown(name)
        return answer(shown)

    async def who(self, request: Request) -> Response:
        name = limits.name(request.parameters["pool"])
        self.shown(name)
        return answer(await self.node.pools[name].picture())

    def shown(self, name: str) -> dict[str, Any]:
        pool = self.node.pools.get(name)
        if pool is None:
            raise impossible(NoSuchPool(name, self.node.registry.known_pools()))
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
            except HTTPError:
                return  # nobody knows it any more
            if shown["version"] != version:
                version, silent = shown["version"], 0.0
                yield event("pool", shown)
            elif silent > STILL_HERE:
                silent = 0.0
                yield b": still here\n\n"
            await asyncio.sleep(LOOK)
            silent += LOOK

    async def change_members(self, request: Request) -> Response:
        body = limits.decoded(request.body or b"{}", messages.ChangeMembers)
        with self.changing(request) as pool:
            return answer(
                messages.Members(await pool.change_requests.change_members(**asdict(body)))
            )

    async def change_permits(self, request: Request) -> Response:
        body = limits.decoded(request.body or b"{}", messages.ChangePermits)
        with self.changing(request) as pool:
            return answer(messages.Permits(await pool.change_requests.resize(**asdict(body))))

    def join_pool(self, request: Request) -> Response:
        body = limits.decoded(request.body or b"{}", messages.Join)
        name = limits.name(request.parameters["pool"])
        try:
            if name not in self.node.registry.known_pools() and not self.makes_pools:
                raise Refused(
                    f"This agent makes no pool {name} for a program: start it with "
                    f"{setting('client-pools')}, or with {setting('pool')} {name}=PERMITS."
                )
            self.node.pool_for_client(name, body.permits)
        except Refused as error:
            raise impossible(error) from None
        return answer(messages.Joined(name))

    async def create_pool(self, request: Request) -> Response:
        body = limits.decoded(request.body or b"{}", messages.Create)
        name = limits.name(request.parameters["pool"])
        try:
            return answer(messages.Permits(await self.node.create_pool(name, body.permits)))
        except Refused as error:
            raise impossible(error) from None

    async def join_from(self, request: Request) -> Response:
        body = limits.decoded(request.body or b"{}", messages.JoinFrom)
        with self.changing(request) as pool:
            return answer(
                messages.Permits(await pool.participation.join(limits.name(body.node, "node")))
            )

    async def reset_pool(self, request: Request) -> Response:
        with self.changing(request) as pool:
            return answer(messages.Permits(await pool.participation.reset()))

    async def remove_pool(self, request: Request) -> Response:
        with self.changing(request) as pool:
            await pool.introduced()
            self.node.registry.remove(pool.name)
        return answer(messages.Removed(pool.name))

    @contextlib.contextmanager
    def changing(self, request: Request) -> Iterator[LocalPool]:
        with self.node.registry.visited(limits.name(request.parameters["pool"])) as pool:
            try:
                yield pool
            except Refused as error:
                raise impossible(error) from None

    # -- grants ------------------------------------------------------------------------

    def acquire(self, request: Request) -> Response | Awaitable[Response]:
        body = limits.decoded(request.body or b"{}", messages.Acquire)
        session = None
        if body.session is not None:
            session = self.session(body.session)
        pool = self.node.pools.get(request.parameters["pool"])
        if pool is not None and pool.core is not None:
            try:
                grant = pool.at_once(asked(pool, body))
            except Refused as error:
                raise impossible(error) from None
            if grant is not None:
                return self.granted(request, body, session, pool, grant)
        return self.wait_for(request, body, session)

    async def wait_for(
        self, request: Request, body: messages.Acquire, session: Session | None
    ) -> Response:
        with self.node.registry.visited(limits.name(request.parameters["pool"])) as pool:
            waits = asked(pool, body)
            try:
                with self.known_as(body.request, waits):
                    grant = await waits
            except Refused as error:
                raise impossible(error) from None
        if request.connection.closed or (session is not None and session.over):
            grant.release()
            raise HTTPError(409, "The session has ended.")
        return self.granted(request, body, session, pool, grant)

    @contextlib.contextmanager
    def known_as(self, name: str | None, waits: Acquire) -> Iterator[None]:
        if name is None:
            yield
            return
        if name in self.requests:
            raise HTTPError(409, f"A request with the name {name} waits already: use another name.")
        self.requests[name] = waits
        try:
            yield
        finally:
            del self.requests[name]

    async def change_priority(self, request: Request) -> Response:
        body = limits.decoded(request.body or b"{}", messages.ChangePriority)
        name = limits.name(request.parameters["request"], "request")
        if body.priority is None and body.deadline is None:
            raise HTTPError(409, "Nothing to change: give a priority, a deadline, or both.")
        waits = self.requests.get(name)
        try:
            if waits is None or not await waits.change(
                priority=body.priority, deadline=body.deadline
            ):
                raise HTTPError(
                    404, f"No request with the name {name} waits: it was granted or withdrawn."
                )
        except Refused as error:
            raise HTTPError(409, str(error)) from None
        return answer(messages.Urgent(name, waits.priority, waits.deadline))

    def granted(
        self,
        request: Request,
        body: messages.Acquire,
        session: Session | None,
        pool: LocalPool,
        grant: Grant,
    ) -> Response:
        """The grant has a name, and an end whatever becomes of whoever asked for it."""
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
        until = grant.until
        lease = time_left(until)
        if session is not None and until is not None and lease is not None:
            session.note_lease(name, until, lease)
        ttl = body.ttl if session is None else None
        return answer(
            {
                "grant": name,
                "pool": pool.name,
                "permits": grant.permits or pool.permits,
                "want": grant.want,
                "priority": grant.priority,
                "met": grant.met,
                "fence": grant.fence,
                "slots": grant.slots,
                "ttl": ttl,
                "lease": lease,
                "until": until,
            }
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

    def held(self, request: Request) -> tuple[str, Grant]:
        name = request.parameters["grant"]
        grant = self.grants.get(name)
        if grant is None:
            raise HTTPError(404, "There is no such grant: it was released or revoked.")
        return name, grant

    def show_grant(self, request: Request) -> Response:
        name, grant = self.held(request)
        until, lease = grant.until, grant.lease
        return answer(
            messages.Held(
                *(name, grant.pool, grant.want, grant.priority, grant.met, grant.fence),
                *(list(grant.slots), lease, until),
            )
        )

    def release(self, request: Request) -> Response:
        some = queried(request, messages.OfRelease).permits if request.query else None
        grant = self.held(request)[1]
        try:
            grant.release(some)
        except Refused as error:
            raise impossible(error) from None
        return Response(status=204)

    def renew(self, request: Request) -> Response:
        name, grant = self.held(request)
        leased = self.leased.get(name)
        if leased is None:
            raise HTTPError(409, "This grant has no ttl: it lasts as long as its session.")
        leased.renew()
        return answer(messages.Renewed(leased.ttl, grant.lease))

    # -- sessions ----------------------------------------------------------------------

    def open_session(self, request: Request) -> Response:
        session = Session(secrets.token_urlsafe(9), self.sessions)
        request.connection.owned.append(session)
        return answer(messages.Opened(session.name, self.node.name, __version__), 201)

    def session(self, name: str) -> Session:
        if name not in self.sessions:
            raise HTTPError(404, "There is no such session: it has ended. Open a new one.")
        return self.sessions[name]

    async def session_events(self, request: Request) -> Response:
        asked = queried(request, messages.OfSession)
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


def queried(request: Request, kind: type[Kind]) -> Kind:
    try:
        return msgspec.convert(request.asked, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(f"Not a query: {limits.in_words(error, kind)}.") from None
