"""The agent over HTTP, for other machines and languages. Needs the extra ``meshlock[web]``.

A grant taken over HTTP belongs to no connection, so it must be renewed before its ``ttl``
is over; else it goes back. Every call needs the bearer token, if there is one; without
one, only this machine may ask.

A browser on this machine must not become the tool of a page from elsewhere. Such a page could
have its own name resolved to this address (then the Host header is not one of ours), or send
forms to us blindly (then the Origin header is not ours); both are turned away.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec

from meshlock import __version__
from meshlock.errors import Refused
from meshlock.live.interfaces.exposition import exposition
from meshlock.live.interfaces.node import Node
from meshlock.live.links.mesh import split
from meshlock.live.machine import limits
from meshlock.live.machine.limits import Priority, Timeout, Ttl, Want
from meshlock.live.pools.grants import Grant

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError:
    raise Refused(
        "HTTP needs the packages 'starlette' and 'uvicorn': pip install 'meshlock[web]'."
    ) from None

TTL = 30.0
TOO_LONG = HTTPException(
    413,
    f"The body of this request is too long: use {limits.BODY}.",
    {"Connection": "close"},
)


def numeric(host: str) -> bool:
    """An address, and no name that somebody could give to any machine."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def ours(host: str, bound: str, names: Sequence[str]) -> bool:
    """Is this how the agent is asked for: as this machine, where it listens, or as told?"""
    if host == "localhost" or host == bound or host in names:
        return True
    if not numeric(host):
        return False
    everywhere = numeric(bound) and ip_address(bound).is_unspecified
    return everywhere or ip_address(host).is_loopback


class OnlyAsOurselves:
    """Turns away what a page from elsewhere could make a browser send."""

    def __init__(self, app: ASGIApp, bound: str, names: Sequence[str]) -> None:
        self.app = app
        self.bound = bound
        self.names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self.refuses(Request(scope))
            if refusal:
                await JSONResponse({"why": refusal}, 403)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def refuses(self, request: Request) -> str:
        asked = request.headers.get("host", "")
        try:
            host = urlsplit(f"//{asked}").hostname or ""
        except ValueError:
            host = ""
        if not ours(host, self.bound, self.names):
            return f"This agent is not called '{host[:100]}': if it is, name it in http-names."
        origin = request.headers.get("origin")
        reading = request.method in ("GET", "HEAD")
        if not reading and origin is not None and urlsplit(origin).netloc != asked:
            return "Pages of other sites may not ask this agent for anything."
        return ""


class OnlyShort:
    """Refuses a body that is too long before it is read, or as soon as it has proved to be."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        most = int(limits.BODY.most)
        length = 0

        async def counted() -> Message:
            nonlocal length
            message = await receive()
            length += len(message.get("body", b""))
            if length > most:
                raise TOO_LONG
            return message

        if scope["type"] == "http":
            announced = Request(scope).headers.get("content-length", "0")
            if announced.isdecimal() and int(announced[:20]) > most:
                await refused(TOO_LONG)(scope, receive, send)
                return
        await self.app(scope, counted, send)


class Wish(msgspec.Struct, forbid_unknown_fields=True):
    want: Want = 1
    priority: Priority = 0
    timeout: Timeout = 10.0
    ttl: Ttl = TTL


async def refusal(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return refused(error)


def refused(error: HTTPException) -> Response:
    return JSONResponse({"why": error.detail}, error.status_code, error.headers)


class Leased:
    """A grant, its time to live, and what happens when that is over."""

    def __init__(self, grant: Grant, ttl: float) -> None:
        self.grant = grant
        self.ttl = ttl
        self.later = grant.pool.mesh.mishaps.later
        self.timer = self.later(ttl, "http", self.over)

    def renew(self) -> None:
        self.timer.cancel()
        self.timer = self.later(self.ttl, "http", self.over)

    def over(self) -> None:
        self.timer.cancel()
        self.grant.release()


class Interface:
    def __init__(self, node: Node, token: str | None) -> None:
        self.node = node
        self.token = token
        self.grants: dict[str, Leased] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/openapi.json", self.guarded(self.openapi)),
            Route("/metrics", self.guarded(self.metrics)),
            Route("/v1/status", self.guarded(self.status)),
            Route("/v1/pools/{pool}/acquire", self.guarded(self.acquire), methods=["POST"]),
            Route("/v1/grants/{grant}/renew", self.guarded(self.renew), methods=["POST"]),
            Route("/v1/grants/{grant}", self.guarded(self.release), methods=["DELETE"]),
        ]

    def guarded(
        self, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guard(request: Request) -> Response:
            given = request.headers.get("authorization", "")
            if self.token and not secrets.compare_digest(
                given.encode(), f"Bearer {self.token}".encode()
            ):
                return JSONResponse({"why": "The bearer token is missing or wrong."}, 401)
            try:
                return await answer(request)
            except TimeoutError:
                return JSONResponse({"why": "No permits in time."}, 408)
            except Refused as error:
                return JSONResponse({"why": str(error)}, 400)
            except HTTPException:
                raise
            except Exception as error:
                self.node.mesh.mishaps.note("http")
                why = f"The agent failed on this request ({error!r}): its log says more."
                return JSONResponse({"why": why}, 500)

        return guard

    async def openapi(self, _: Request) -> Response:
        return JSONResponse(description())

    async def metrics(self, _: Request) -> Response:
        return PlainTextResponse(exposition(self.node), media_type="text/plain; version=0.0.4")

    async def status(self, _: Request) -> Response:
        return JSONResponse(self.node.status())

    async def acquire(self, request: Request) -> Response:
        wish = limits.decoded(await request.body() or b"{}", Wish)
        with self.node.visited(request.path_params["pool"]) as pool:
            grant = await pool.acquire(wish.want, priority=wish.priority, timeout=wish.timeout)
        if await request.is_disconnected():
            grant.release()
            return Response(status_code=499)
        for name in [name for name, leased in self.grants.items() if not leased.grant.held]:
            del self.grants[name]
        name = secrets.token_urlsafe(12)
        self.grants[name] = Leased(grant, wish.ttl)
        return JSONResponse(
            {
                "grant": name,
                "want": grant.want,
                "fence": grant.fence,
                "ttl": wish.ttl,
                "lease": grant.lease,
            }
        )

    def leased(self, request: Request) -> Leased | None:
        leased = self.grants.get(request.path_params["grant"])
        return leased if leased is not None and leased.grant.held else None

    async def renew(self, request: Request) -> Response:
        leased = self.leased(request)
        if leased is None:
            return JSONResponse({"why": "This grant is not held any more."}, 404)
        leased.renew()
        return JSONResponse({"ttl": leased.ttl, "lease": leased.grant.lease})

    async def release(self, request: Request) -> Response:
        leased = self.leased(request)
        if leased is None:
            return JSONResponse({"why": "This grant is not held any more."}, 404)
        leased.over()
        del self.grants[request.path_params["grant"]]
        return Response(status_code=204)


@contextlib.asynccontextmanager
async def serving(
    node: Node,
    address: str,
    token: str | None,
    more: Callable[[Interface], list[Route]] = lambda _: [],
    names: Sequence[str] = (),
) -> AsyncIterator[None]:
    host, port = split(address)
    if token is None and not host.startswith("127."):
        raise Refused(f"HTTP at {address} needs a bearer token: use --http-token-file.")
    interface = Interface(node, token)
    app = Starlette(
        routes=interface.routes() + more(interface),
        middleware=[
            Middleware(OnlyAsOurselves, bound=host, names=[*map(str.lower, names)]),
            Middleware(OnlyShort),
        ],
        exception_handlers={HTTPException: refusal},
    )
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", lifespan="off", http="h11"
    )  # whose headers are bounded
    server = uvicorn.Server(config)
    vars(server)["capture_signals"] = contextlib.nullcontext  # the agent has its own
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, server, "should_exit", True)
        task = asyncio.create_task(server.serve())
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        yield
    await task


def description() -> dict[str, Any]:
    """OpenAPI, for generators of clients."""
    _, components = msgspec.json.schema_components(
        [Wish], ref_template="#/components/schemas/{name}"
    )
    grant = {"name": "grant", "in": "path", "required": True, "schema": {"type": "string"}}
    pool = {**grant, "name": "pool"}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Wish"}}}}

    def answers(**codes: str) -> dict[str, Any]:
        return {code[1:]: {"description": text} for code, text in codes.items()}

    return {
        "openapi": "3.1.0",
        "info": {"title": "meshlock agent", "version": __version__},
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
        "paths": {
            "/v1/status": {"get": {"responses": answers(_200="What the agent knows.")}},
            "/metrics": {"get": {"responses": answers(_200="For Prometheus.")}},
            "/v1/pools/{pool}/acquire": {
                "post": {
                    "parameters": [pool],
                    "requestBody": body,
                    "responses": answers(
                        _200="A grant: its name, fence and ttl.",
                        _400="It can never be granted.",
                        _408="No permits in time.",
                        _413="The body is too long.",
                        _500="The agent failed; its log says more.",
                    ),
                }
            },
            "/v1/grants/{grant}/renew": {
                "post": {
                    "parameters": [grant],
                    "responses": answers(_200="Held for another ttl.", _404="Not held any more."),
                }
            },
            "/v1/grants/{grant}": {
                "delete": {
                    "parameters": [grant],
                    "responses": answers(_204="Given back.", _404="Not held any more."),
                }
            },
        },
    }
