"""Where the agent is asked, and by whom: at its Unix socket and, with ``--http``, at a port.

A user who may write to the socket may use it. A port may need a bearer token; without one, only
this machine may ask.

A browser on this machine must not become the tool of a page from elsewhere. Such a page could
have its own name resolved to this address (then the Host header is not one of ours), or send
forms to us blindly (then the Origin header is not ours); both are turned away.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import cache, partial
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from meshlock.errors import Refused, setting
from meshlock.live.interfaces.http import GRANT, Interface
from meshlock.live.interfaces.operations import description
from meshlock.live.interfaces.server import serve_port, serve_unix
from meshlock.live.interfaces.site import Handler, HTTPError, HTTPRequest, Response, Route, Site
from meshlock.live.links.dialler import split
from meshlock.live.machine.error_text import error_text


def numeric(host: str) -> bool:
    """An address, and no name that somebody could give to any machine."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def ours(host: str, bound: str, names: Sequence[str]) -> bool:
    """Is this how the agent is asked for: as this machine, where it listens, or as configured?"""
    if host == "localhost" or host == bound or host in names:
        return True
    if not numeric(host):
        return False
    everywhere = numeric(bound) and ip_address(bound).is_unspecified
    return everywhere or ip_address(host).is_loopback


class Access:
    """Who may ask at a port: as ourselves, from our own pages, with the token if there is one."""

    def __init__(self, bound: str, names: Sequence[str], token: str | None) -> None:
        self.bound = bound
        self.names = [*map(str.lower, names)]
        self.token = token

    def admit(self, request: HTTPRequest) -> None:
        """Turn away what a page from elsewhere could make a browser send."""
        asked = request.header("host")
        try:
            host = urlsplit(f"//{asked}").hostname or ""
        except ValueError:
            host = ""
        if not ours(host, self.bound, self.names):
            why = f"The host '{host[:100]}' is not a name of this agent: add it to http-names."
            raise HTTPError(403, why)
        origin = request.header("origin")
        if request.method not in ("GET", "HEAD") and b"origin" in request.fields:
            try:
                same = urlsplit(origin).netloc == asked
            except ValueError:
                same = False
            if not same:
                raise HTTPError(403, "Pages of other sites may not use this agent.")

    def guarded(self, handler: Handler) -> Handler:
        """The same, for those who have the token."""
        if self.token is None:
            return handler
        expected = f"Bearer {self.token}".encode()

        def guard(request: HTTPRequest) -> Response | Awaitable[Response]:
            given = request.header("authorization").encode("latin-1")
            if not secrets.compare_digest(given, expected):
                why = "The bearer token is missing or wrong."
                raise HTTPError(401, why, {"WWW-Authenticate": "Bearer"})
            return handler(request)

        return guard


# -- serving ----------------------------------------------------------------------------------


def routes(interface: Interface, access: Access | None = None) -> list[Route]:
    token = access is not None and bool(access.token)

    @cache  # to make it takes half as long as all else that an agent does until it is ready
    def described() -> bytes:
        return msgspec.json.encode(description(interface.operations, token))

    found = [Route("GET", "/openapi.json", lambda _: Response(described()))]
    for one in interface.operations:
        handler: Handler = partial(one.perform, interface)
        if access is not None and not one.public:
            handler = access.guarded(handler)
        always = one.public or one.path.startswith(GRANT)
        found.append(Route(one.method, one.path, handler, always))
    return found


@contextlib.contextmanager
def listening(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(f"Cannot listen {where}: {error_text(error)}.") from None


def make_private(folder: Path) -> None:
    """Of this user alone: in /tmp other users can have made it before."""
    with listening(f"in {folder}"):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077 or folder.is_symlink():
        raise Refused(
            f"{folder} is not a folder of this user alone: remove it, or use {setting('socket')}."
        )


@contextlib.asynccontextmanager
async def serving_socket(interface: Interface, place: str) -> AsyncIterator[None]:
    """Answer at this socket; a user who may write to it may use the agent."""
    path = Path(place)
    failures, refusals = interface.node.mesh.failures, interface.node.mesh.refusals
    site = Site(routes(interface), failed=lambda: failures.note("agent"), refused=refusals.note)
    if path.parent == Path(f"/tmp/meshlock-{os.geteuid()}"):  # the default, of no other use
        make_private(path.parent)
    with listening(f"at {place}"):
        if path.is_socket():
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_unix_connection(place)
                writer.close()
                raise Refused(
                    f"Socket already in use by another agent ({place}): stop that agent, or "
                    f"use {setting('socket')}."
                )
            path.unlink()  # of an agent that was killed
        server = await serve_unix(site, place)
    try:
        yield
    finally:
        await server.close()
        path.unlink(missing_ok=True)


@contextlib.asynccontextmanager
async def serving_port(
    interface: Interface,
    address: str,
    token: str | None,
    more: Callable[[Interface, Access], list[Route]] = lambda *_: [],
    names: Sequence[str] = (),
) -> AsyncIterator[str]:
    """Answer at this port, too, and with ``more`` routes: those of a page. Yields where that is."""
    host, port = split(address)
    if token is None and not host.startswith("127."):
        raise Refused(f"HTTP at {address} needs a bearer token: use {setting('http-token-file')}.")
    access = Access(host, names, token)
    failures, refusals = interface.node.mesh.failures, interface.node.mesh.refusals
    found = routes(interface, access) + more(interface, access)
    site = Site(found, access.admit, lambda: failures.note("http"), refusals.note)
    with listening(f"at {address}"):
        server = await serve_port(site, host, port)
    try:
        yield f"{host}:{server.port()}"
    finally:
        await server.close()
