"""HTTP/1.1 over any stream: small, strict and quick; the same on a unix socket and on a port.

One request of a connection is answered at a time; what comes meanwhile waits. Whatever is
malformed, too long or too slow costs its sender the connection. A handler whose client disconnects
is cancelled. How many may be connected, and who must leave, is decided by :mod:`.places`.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from time import time
from typing import NamedTuple, Protocol, cast
from urllib.parse import parse_qsl, unquote

import msgspec

from meshlock.errors import Refused
from meshlock.live.interfaces.places import (
    NOBODY,
    Owner,
    Places,
    Turns,
    owner_of,
    room_for_clients,
)
from meshlock.live.machine import limits

LONGEST_HEAD = 16 * 1024
MOST_BODY = int(limits.BODY.most)
BUFFER = 64 * 1024
MOST_AHEAD = 64 * 1024
"""Bytes of later requests that a client may send before it is answered."""

SLOW = 10.0
"""Seconds that a request may take to arrive."""

LINGER = 1.0
"""Seconds for which a client that was refused may go on sending, unread, and for which one without
a place may ask."""

IDLE = 120.0
"""Seconds for which a connection to a port may rest between two requests."""

MOST_UNSENT = 16 * 1024
"""Bytes of answers that may wait for the next one."""

LATER = "answer-later"
"""What a client says in a header ``Prefer`` if it does not wait for the answer: that leaves with
the next one on the same connection, and wakes nobody."""

BACKLOG = 4096
"""Connections that the kernel keeps until we accept them."""

AT_ONCE = 16
"""So many connections are accepted in one turn of the loop, and so many requests answered."""

PAUSE = 0.1
"""Seconds without accepting when there are no files left."""

TOO_MANY = "too many connections"
NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
REASONS = {status.value: status.phrase for status in HTTPStatus}
JSON = "application/json"
ENCODE = msgspec.json.Encoder().encode
EVENTS = "text/event-stream"


class HTTPError(Exception):
    """An answer that is no success: its status and a sentence."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers or {}


class Response:
    __slots__ = ("body", "headers", "kind", "status", "stream")

    def __init__(
        self,
        body: bytes = b"",
        kind: str = JSON,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        stream: AsyncGenerator[bytes, None] | None = None,
    ) -> None:
        self.body = body
        self.kind = kind
        self.status = status
        self.headers = headers
        self.stream = stream  # instead of a body: part by part


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(ENCODE(value), JSON, status, headers)


class Request:
    __slots__ = (
        *("body", "connection", "headers", "later", "method"),
        *("parameters", "path", "query", "safe"),
    )

    def __init__(
        self,
        method: str,
        path: list[str],
        query: str,
        headers: Mapping[str, str],
        safe: bool = True,
        later: bool = False,
    ) -> None:
        self.method = method
        self.path = path  # its parts, decoded
        self.query = query
        self.headers = headers  # names in small letters
        self.safe = safe  # the connection can be used again
        self.later = later  # its answer may leave with the next one
        self.body = b""
        self.parameters: dict[str, str] = {}  # what the path says for the names of its route
        self.connection: Connection

    @property
    def asked(self) -> dict[str, str]:
        """The query; of a name that is said twice, the last."""
        return dict(parse_qsl(self.query, keep_blank_values=True)) if self.query else {}


Handler = Callable[[Request], Response | Awaitable[Response]]


class Route(NamedTuple):
    method: str
    path: str
    """As in OpenAPI: ``/v1/pools/{pool}``."""

    handler: Handler
    always: bool = False
    """Also to those who have no place among the connections."""


class Branch:
    """Where the first parts of a path lead."""

    __slots__ = ("any", "below", "methods")

    def __init__(self) -> None:
        self.below: dict[str, Branch] = {}
        self.any: Branch | None = None  # whatever the next part is
        self.methods: dict[str, tuple[Route, list[str]]] = {}


class Site:
    """What is served: routes, and who may ask."""

    def __init__(
        self,
        routes: Sequence[Route],
        admit: Callable[[Request], None] = lambda _: None,
        failed: Callable[[], object] = lambda: None,
        refused: Callable[[str, str], object] = lambda *_: None,
    ) -> None:
        self.admit = admit
        self.refused = refused  # called with who was, and why
        self.failed = failed  # called while an exception is handled that nobody expected
        self.root = Branch()
        for route in routes:
            branch = self.root
            names = []
            for part in route.path.split("/")[1:]:
                if part.startswith("{"):
                    names.append(part[1:-1])
                    branch.any = branch.any or Branch()
                    branch = branch.any
                else:
                    branch = branch.below.setdefault(part, Branch())
            branch.methods[route.method] = (route, names)

    def find(self, request: Request) -> Route:
        """The request learns what its path says."""
        branch: Branch | None = self.root
        given = []
        for part in request.path:
            assert branch is not None
            below = branch.below.get(part)
            if below is None:
                below = branch.any
                given.append(part)
            branch = below
            if branch is None:
                break
        if branch is None or not branch.methods:
            raise HTTPError(404, "There is nothing at this path: see /openapi.json for all paths.")
        methods = branch.methods
        found = methods.get("GET" if request.method == "HEAD" else request.method)
        if found is None:
            allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})
            why = f"{limits.shown(request.method)} is not allowed at this path: use {allowed[0]}."
            raise HTTPError(405, why, {"Allow": ", ".join(allowed)})
        route, names = found
        request.parameters = dict(zip(names, given, strict=True))
        return route

    def refusal(self, error: BaseException) -> Response:
        """What went wrong, as an answer."""
        if isinstance(error, HTTPError):
            return answer({"why": error.why}, error.status, error.headers)
        if isinstance(error, TimeoutError):
            return answer({"why": str(error) or "No permits in time.", "timed_out": True}, 409)
        if isinstance(error, Refused):
            return answer({"why": str(error)}, 400)
        try:
            raise error
        except Exception:
            self.failed()
        why = f"The agent failed on this request ({error!r}): see its log."
        return answer({"why": why}, 500)


class Held(Protocol):
    """What ends with a connection."""

    @property
    def held(self) -> bool:
        """Are there permits in it?"""

    def release(self) -> None: ...


class Connection(asyncio.BufferedProtocol):
    """One client of a site."""

    def __init__(self, server: Server, owner: Owner = NOBODY) -> None:
        self.owner = owner
        self.server = server
        self.site = server.site
        self.loop = server.loop
        self.transport: asyncio.Transport
        self.data = b""
        self.unsent = b""  # answers
        self.awaited = False  # is one of them?
        self.request: Request | None = None  # of which the body is still to come
        self.length: int | None = 0  # of that body; None: it comes in chunks
        self.task: asyncio.Task[None] | None = None  # at work on a request
        self.closed = False
        self.refused = False  # what it sends is not read any more
        self.paused = False
        self.since = self.loop.time()  # the last thing that a connection waits for began then
        self.writable = asyncio.Event()
        self.queued = False  # for its turn to be answered
        self.spare = False  # it has no place
        self.streaming = False
        self.owned: list[Held] = []
        self.unread: Held | None = None
        """What to release if the client disconnects before it has asked again: it may never have
        read the last answer."""

    # -- life --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self.writable.set()
        self.server.connections.add(self)
        victim = self.server.places.enter(self)
        if victim is not None:
            victim.leave_place()

    @property
    def holds(self) -> bool:
        """Are permits released when it ends?"""
        return any(one.held for one in self.owned) or (self.unread is not None and self.unread.held)

    def leave_place(self) -> None:
        """There is none for it: it may still ask for what is always answered, for a moment."""
        if self.streaming:
            self.close_unasked()
        elif self.task is not None:
            self.task.cancel()
            self.turn_away()
        else:
            self.spare = True
            self.loop.call_later(LINGER, self.close_spare)
            victim = self.server.spare.enter(self)
            if victim is not None:
                victim.close_unasked()

    def close_spare(self) -> None:
        if self.spare and not self.refused and not self.closed:
            self.close_unasked()

    def close_unasked(self) -> None:
        self.site.refused(str(self.owner), TOO_MANY)
        self.transport.close()

    def take_place(self) -> bool:
        """Is there one by now?"""
        places = self.server.places
        if self.spare and places.count < places.most:
            self.server.spare.leave(self)
            places.enter(self)
            self.spare = False
        return not self.spare

    def turn_away(self) -> None:
        self.site.refused(str(self.owner), TOO_MANY)
        self.refuse(self.server.full())

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        self.server.connections.discard(self)
        if not self.server.places.leave(self):
            self.server.spare.leave(self)
        if self.task is not None:
            self.task.cancel()
        if self.unread is not None:
            self.owned.append(self.unread)
        for one in self.owned:
            try:
                one.release()
            except Exception:
                self.site.failed()
        self.writable.set()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        """Whoever does not read its answers gets no more of them."""
        self.writable.set()
        if self.task is None and not self.queued:
            self.read_on()

    # -- reading -----------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.server.buffer

    def buffer_updated(self, size: int) -> None:
        self.receive(bytes(self.server.buffer[:size]))

    def receive(self, data: bytes) -> None:
        if self.refused:
            return
        if not self.data and self.request is None:
            self.since = self.loop.time()
        self.data = self.data + data if self.data else data
        if self.task is None and self.writable.is_set() and not self.queued:
            self.read()
        elif len(self.data) > MOST_AHEAD and not self.paused:
            self.paused = True
            self.transport.pause_reading()

    def read(self) -> None:
        """Answer the requests that have come, as far as they can be answered at once."""
        while self.data and self.task is None and not self.closed and not self.refused:
            if len(self.unsent) > MOST_UNSENT:
                self.flush()
            if not self.writable.is_set():
                return
            if not self.server.has_time(self):
                break
            try:
                request = self.next_request()
            except HTTPError as error:
                self.refuse(error)
                return
            if request is None:
                break
            self.unread = None
            request.connection = self
            self.serve(request)
        if self.awaited or len(self.unsent) > MOST_UNSENT:
            self.flush()

    def read_on(self) -> None:
        """What came while nothing more could be answered."""
        if self.paused and not self.closed:
            self.paused = False
            self.transport.resume_reading()
        self.read()

    def next_request(self) -> Request | None:
        data = self.data
        if self.request is None:
            end = data.find(b"\r\n\r\n")
            if end < 0 and data.startswith(b"\r\n"):
                self.data = data[2:]  # some clients end a body with an empty line
                return self.next_request() if self.data else None
            if end > LONGEST_HEAD or (end < 0 and len(data) > LONGEST_HEAD):
                raise HTTPError(431, "The header section of this request is too long.")
            if end < 0:
                return None
            self.request, self.length = parsed(data[:end].decode("latin-1"))
            data = self.data = data[end + 4 :]
        request, length = self.request, self.length
        if length is None:
            body = unchunked(data)
            if body is None:
                if len(data) > 2 * MOST_BODY:
                    raise too_long()
                self.wait_for_body(request)
                return None
            request.body, length = body
        elif len(data) < length:
            self.wait_for_body(request)
            return None
        else:
            request.body = data[:length]
        self.data = data[length:]
        self.request = None
        return request

    def wait_for_body(self, request: Request) -> None:
        if not self.data and request.headers.get("expect", "").lower() == "100-continue":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # -- answering ---------------------------------------------------------------------

    def serve(self, request: Request) -> None:
        try:
            self.site.admit(request)
            route = self.site.find(request)
            if not self.take_place():
                if not route.always:
                    self.turn_away()
                    return
                request.safe = False
            found = route.handler(request)
        except Exception as error:
            self.reply(request, self.site.refusal(error))
            return
        if isinstance(found, Response) and found.stream is None:
            self.reply(request, found)
        else:
            self.task = self.loop.create_task(self.work(request, found))

    async def work(self, request: Request, found: Response | Awaitable[Response]) -> None:
        try:
            response = found if isinstance(found, Response) else await found
        except Exception as error:
            response = self.site.refusal(error)
        try:
            if response.stream is None:
                self.reply(request, response)
            else:
                await self.send_stream(request, response, response.stream)
        finally:
            self.task = None
        self.since = self.loop.time()
        self.read_on()

    def reply(self, request: Request, response: Response) -> None:
        """It leaves with the next :meth:`flush`."""
        if self.closed:
            return
        head, body = self.head(request, response), response.body
        if response.status != 204:
            head += b"Content-Length: %d\r\n" % len(body)
        if request.method == "HEAD":
            body = b""
        self.unsent += head + b"\r\n" + body
        self.awaited = self.awaited or not request.later
        if not request.safe:
            self.flush()
            self.transport.close()

    def flush(self) -> None:
        if self.unsent:
            self.transport.write(self.unsent)
            self.unsent = b""
            self.awaited = False

    def head(self, request: Request, response: Response) -> bytes:
        lines = self.server.head(response.status, response.kind)
        if response.headers:
            for name, value in response.headers.items():
                lines += f"{name}: {value}\r\n".encode("latin-1")
        if not request.safe:
            lines += b"Connection: close\r\n"
        return lines

    async def send_stream(
        self, request: Request, response: Response, parts: AsyncGenerator[bytes, None]
    ) -> None:
        """A stream is over when its parts are, or when the client disconnects."""
        if request.method == "HEAD":
            self.reply(request, response)
            return
        self.streaming = True
        self.unsent += self.head(request, response) + b"Transfer-Encoding: chunked\r\n\r\n"
        self.flush()
        async with aclosing(parts):
            async for part in parts:
                if part:  # an empty chunk would be the end
                    self.transport.write(b"%x\r\n%b\r\n" % (len(part), part))
                await self.writable.wait()
                if self.closed:
                    return
        self.transport.write(b"0\r\n\r\n")
        self.streaming = False
        if not request.safe:
            self.transport.close()

    def refuse(self, error: HTTPError) -> None:
        """What cannot be read ends the connection, a moment later: were it cut off while the
        client still sends, the client would never see why."""
        self.refused = True
        self.data = b""
        error.headers = {**error.headers, "Connection": "close"}
        self.reply(Request("GET", [], "", {}), self.site.refusal(error))
        self.flush()
        self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.close)

    def sweep(self, now: float, idle: float | None) -> None:
        """Too slow, or asleep for too long?"""
        if self.task is None and not self.queued:
            half = self.request is not None or bool(self.data)
            limit = SLOW if half else idle
            if limit is not None and now - self.since > limit and not self.owned:
                self.transport.close()


def too_long() -> HTTPError:
    return HTTPError(413, f"The body of this request is too long: use {limits.BODY}.")


class Headers(NamedTuple):
    fields: Mapping[str, str]
    """By name, in small letters."""

    last: bool
    """The client wants no further answer on this connection."""

    length: int | None
    """Of the body; None: it comes in chunks."""

    later: bool
    """The client does not wait for the answer."""


@lru_cache(maxsize=256)
def parsed_headers(text: str) -> Headers:
    """A program repeats the same headers."""
    lines = text.split("\r\n") if text else []
    ends = max(0, len(lines) - 1)
    if text.count("\n") != ends or text.count("\r") != ends or "\0" in text:
        raise HTTPError(400, "A header line does not end in CRLF.")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not NAME(name):
            raise HTTPError(400, "A header line has no name and value.")
        name, value = name.lower(), value.strip(" \t")
        if name in fields:
            if name in ("content-length", "host", "transfer-encoding"):
                raise HTTPError(400, f"The header '{name}' occurs twice: send it once.")
            value = f"{fields[name]}, {value}"
        fields[name] = value
    last = "close" in fields.get("connection", "").lower()
    return Headers(fields, last, body_length(fields), fields.get("prefer") == LATER)


def body_length(fields: Mapping[str, str]) -> int | None:
    coding, length = fields.get("transfer-encoding"), fields.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or length is not None:
            raise HTTPError(
                400, "Both Content-Length and Transfer-Encoding are given: send one of them."
            )
        return None
    if length is None:
        return 0
    if not (length.isascii() and length.isdecimal()):
        raise HTTPError(400, "Content-Length is not a number.")
    if int(length[:20]) > MOST_BODY:
        raise too_long()
    return int(length)


def parsed(text: str) -> tuple[Request, int | None]:
    """The head of a request, and the length of its body (None: it comes in chunks)."""
    line, _, rest = text.partition("\r\n")
    if "\r" in line or "\n" in line or "\0" in line:
        raise HTTPError(400, "A header line does not end in CRLF.")
    first = line.split(" ")
    if len(first) != 3 or not NAME(first[0]) or not first[2].startswith("HTTP/"):
        raise HTTPError(400, "The request line is not HTTP.")
    method, target, version = first
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise HTTPError(505, "Use HTTP/1.1.")
    headers = parsed_headers(rest)
    newest = version == "HTTP/1.1"
    if newest and "host" not in headers.fields:
        raise HTTPError(400, "The header 'Host' is missing.")
    if headers.length is None and not newest:
        raise HTTPError(400, "HTTP/1.0 has no chunks.")
    if target.startswith("http://"):
        target = "/" + target[7:].partition("/")[2]
    path, _, query = target.partition("?")
    if not path.startswith("/") or not target.isascii():
        raise HTTPError(400, "The path is not valid.")
    parts = path[1:].split("/")
    if "%" in path:
        try:
            parts = [unquote(part, errors="strict") for part in parts]
        except UnicodeDecodeError:
            raise HTTPError(400, "The path is not in UTF-8.") from None
    safe = newest and not headers.last
    return Request(method, parts, query, headers.fields, safe, headers.later), headers.length


def unchunked(data: bytes) -> tuple[bytes, int] | None:
    """A body that came in chunks, and how many bytes that took; None: there is more to come."""
    body, place = bytearray(), 0
    while True:
        end = data.find(b"\r\n", place, place + 100)
        if end < 0:
            if len(data) - place > 100:
                raise HTTPError(400, "A chunk has no valid length.")
            return None
        size = data[place:end].partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            raise HTTPError(400, "A chunk has no valid length.")
        length, place = int(size, 16), end + 2
        if len(body) + length > MOST_BODY:
            raise too_long()
        if length == 0:  # trailers, which nobody reads, and an empty line
            over = place if data.startswith(b"\r\n", place) else data.find(b"\r\n\r\n", place) + 2
            return (bytes(body), over + 2) if over >= place and len(data) >= over + 2 else None
        if len(data) < place + length + 2:
            return None
        if data[place + length : place + length + 2] != b"\r\n":
            raise HTTPError(400, "A chunk is longer than it says.")
        body += data[place : place + length]
        place += length + 2


class Server:
    """A site, served at one place until it is closed."""

    def __init__(self, site: Site, idle: float | None, at_socket: bool = False) -> None:
        room = room_for_clients(at_socket)
        self.site = site
        self.places: Places[Connection] = Places(room.places)
        self.spare: Places[Connection] = Places(room.spare, waits=False)
        self.idle = idle  # seconds for which a connection may rest
        self.loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(BUFFER))  # else the loop makes one whenever data comes
        self.connections: set[Connection] = set()
        self.listeners: list[socket.socket] = []
        self.opening: set[asyncio.Task[object]] = set()
        self.turns: Turns[Connection] = Turns()  # those whose requests have come
        self.turn: Connection | None = None  # whose turn it is
        self.taking_turns = False
        self.answered = 0  # since the last turn of the loop of which we know
        self.dated = 0
        self.heads: dict[tuple[int, str], bytes] = {}  # how answers of this second begin
        self.sweeping = self.loop.call_later(SLOW / 2, self.sweep)

    def port(self) -> int:
        return int(self.listeners[0].getsockname()[1])

    def head(self, status: int, kind: str) -> bytes:
        """How an answer of this kind begins."""
        now = int(time())
        if now != self.dated:
            self.dated = now
            self.heads.clear()
        found = self.heads.get((status, kind))
        if found is None:
            date = formatdate(now, usegmt=True)
            text = f"HTTP/1.1 {status} {REASONS[status]}\r\nDate: {date}\r\n"
            if status != 204:
                text += f"Content-Type: {kind}\r\n"
            found = self.heads[status, kind] = text.encode("latin-1")
        return found

    def listen(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        listener.listen(BACKLOG)
        self.listeners.append(listener)
        self.loop.add_reader(listener, self.accept, listener)

    def accept(self, listener: socket.socket) -> None:
        """Few in one turn: those who must leave for them need a turn as well, and no file may be
        missing meanwhile."""
        for _ in range(AT_ONCE):
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # there are no files left
                self.loop.remove_reader(listener)
                self.loop.call_later(PAUSE, self.resume, listener)
                return
            try:
                owner = owner_of(accepted)
            except OSError:  # it has gone already
                accepted.close()
                continue
            accepted.setblocking(False)
            connection = Connection(self, owner)
            task: asyncio.Task[object] = self.loop.create_task(
                self.loop.connect_accepted_socket(partial(same, connection), accepted)
            )
            self.opening.add(task)
            task.add_done_callback(self.opened)

    def opened(self, task: asyncio.Task[object]) -> None:
        self.opening.discard(task)
        if not task.cancelled():
            task.exception()  # the connection ended at once

    def resume(self, listener: socket.socket) -> None:
        if listener in self.listeners:
            self.loop.add_reader(listener, self.accept, listener)

    def has_time(self, connection: Connection) -> bool:
        """To answer it in this turn of the loop; else it is answered in its own turn. So nobody
        keeps the loop from its timers, and others from being heard."""
        mine, self.turn = self.turn is connection, None
        if self.answered < AT_ONCE and (mine or not self.turns.users):
            self.answered += 1
            return True
        connection.queued = True
        self.turns.add(connection)
        if not self.taking_turns:
            self.taking_turns = True
            self.loop.call_soon(self.take_turns)
        return False

    def take_turns(self) -> None:
        self.answered = 0
        while self.turns.users and self.answered < AT_ONCE:
            self.turn = connection = self.turns.next()
            connection.queued = False
            connection.read_on()
        self.turn = None
        self.taking_turns = bool(self.turns.users)
        if self.taking_turns:
            self.loop.call_soon(self.take_turns)

    def full(self) -> HTTPError:
        """Why a connection has no place."""
        most = self.places.largest(NOBODY)
        return HTTPError(
            503,
            f"The agent has too many connections ({self.places.count:,}, most of them {most}): "
            "close some of these.",
        )

    def sweep(self) -> None:
        self.sweeping = self.loop.call_later(SLOW / 2, self.sweep)
        now = self.loop.time()
        for connection in list(self.connections):
            connection.sweep(now, self.idle)

    async def close(self) -> None:
        """Close all connections; what handlers do at the end of a connection is done then."""
        self.sweeping.cancel()
        for listener in self.listeners:
            self.loop.remove_reader(listener)
            listener.close()
        self.listeners.clear()
        if self.opening:
            await asyncio.wait(self.opening)
        working = [one.task for one in self.connections if one.task is not None]
        for connection in list(self.connections):
            connection.transport.close()
            if connection.task is not None:
                connection.task.cancel()
        if working:
            await asyncio.wait(working)
        await asyncio.sleep(0)


def same(connection: Connection) -> Connection:
    return connection


async def serve_port(site: Site, host: str, port: int) -> Server:
    server = Server(site, IDLE)
    try:
        for family, kind, _, _, where in await server.loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            server.listen(bound(socket.socket(family, kind), where))
    except OSError:
        await server.close()
        raise
    return server


def bound(listener: socket.socket, where: object) -> socket.socket:
    try:
        if listener.family != socket.AF_UNIX:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(where)  # type: ignore[arg-type]
    except BaseException:
        listener.close()
        raise
    return listener


async def serve_listener(site: Site, listener: socket.socket) -> Server:
    server = Server(site, IDLE)
    server.listen(listener)
    return server


async def serve_unix(site: Site, place: str) -> Server:
    """Whoever may write to the socket may ask: its owner and its group."""
    listener = bound(socket.socket(socket.AF_UNIX), place)
    os.chmod(place, 0o660)  # noqa: PTH101
    server = Server(site, None, at_socket=True)
    server.listen(listener)
    return server
