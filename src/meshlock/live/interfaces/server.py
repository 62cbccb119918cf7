"""HTTP/1.1 over any stream: the same on a Unix socket and on a port.

One request of a connection is answered at a time; what comes meanwhile waits. Whatever is
malformed, too long or too slow costs its sender the connection. A handler whose client disconnects
is cancelled. How many may be connected, and who must leave, is decided by :mod:`.places`.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from time import time
from typing import Protocol, cast

from meshlock.live.interfaces.http_requests import RequestReader
from meshlock.live.interfaces.places import (
    NOBODY,
    Caller,
    ClientPlaces,
    Turns,
    owner_of,
    room_for_clients,
)
from meshlock.live.interfaces.site import HTTPError, HTTPRequest, Response, Site

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

BACKLOG = 4096
"""Connections that the kernel keeps until we accept them."""

AT_ONCE = 16
"""The connections accepted, and the requests answered, in one turn of the loop."""

PAUSE = 0.1
"""Seconds without accepting when there are no files left."""

TOO_MANY = "too many connections"
REASONS = {status.value: status.phrase for status in HTTPStatus}


class Releasable(Protocol):
    """What ends with a connection."""

    @property
    def held(self) -> bool:
        """Are there permits in it?"""

    def release(self) -> None: ...


class ServedConnection(asyncio.BufferedProtocol):
    """One client of a site."""

    def __init__(self, server: Server, owner: Caller = NOBODY) -> None:
        self.owner = owner
        self.server = server
        self.site = server.site
        self.loop = server.loop
        self.transport: asyncio.Transport
        self.reader = RequestReader(self)
        self.unsent = b""  # answers
        self.awaited = False  # is one of them?
        self.task: asyncio.Task[None] | None = None  # at work on a request
        self.closed = False
        self.refused = False  # what it sends is not read any more
        self.paused = False
        self.since = self.loop.time()  # the last thing that a connection waits for began then
        self.writable = asyncio.Event()
        self.queued = False  # for its turn to be answered
        self.spare = False  # it has no place
        self.streaming = False
        self.owned: list[Releasable] = []
        self.unread: Releasable | None = None
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
        if places.count < places.most:
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
        """A client that does not read its answers gets no more of them."""
        self.writable.set()
        if self.task is None and not self.queued:
            self.read_on()

    # -- reading -----------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.server.buffer

    def buffer_updated(self, size: int) -> None:
        self.receive(self.server.buffer[:size])

    def receive(self, data: bytes | memoryview) -> None:
        if self.refused:
            return
        reader = self.reader
        if not reader.begun:
            self.since = self.loop.time()
        reader.receive(data)
        if self.task is None and self.writable.is_set() and not self.queued:
            self.read()
        elif len(reader.data) > MOST_AHEAD and not self.paused:
            self.paused = True
            self.transport.pause_reading()

    def read(self) -> None:
        """Answer the requests that have come, as far as they can be answered at once."""
        reader = self.reader
        while self.task is None and not self.closed and not self.refused:
            if len(self.unsent) > MOST_UNSENT:
                self.flush()
            if not self.writable.is_set():
                return
            try:
                if not (reader.ready or reader.has_request()):
                    if reader.request is not None and reader.awaits_go_ahead():
                        self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    break
            except HTTPError as error:
                self.refuse(error)
                return
            if not self.server.has_time(self):
                break
            request = reader.ready.popleft()
            self.unread = None
            self.refused = not request.safe
            self.serve(request)
        if self.awaited or len(self.unsent) > MOST_UNSENT:
            self.flush()

    def read_on(self) -> None:
        """What came while nothing more could be answered."""
        if self.paused and not self.closed:
            self.paused = False
            self.transport.resume_reading()
        self.read()

    # -- answering ---------------------------------------------------------------------

    def serve(self, request: HTTPRequest) -> None:
        try:
            site = self.site
            if site.admit is not None:
                site.admit(request)
            route = site.find(request)
            if self.spare and not self.take_place():
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

    async def work(self, request: HTTPRequest, found: Response | Awaitable[Response]) -> None:
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

    def reply(self, request: HTTPRequest, response: Response) -> None:
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

    def head(self, request: HTTPRequest, response: Response) -> bytes:
        lines = self.server.head(response.status, response.kind)
        for name, value in response.headers.items():
            lines += f"{name}: {value}\r\n".encode("latin-1")
        if not request.safe:
            lines += b"Connection: close\r\n"
        return lines

    async def send_stream(
        self, request: HTTPRequest, response: Response, parts: AsyncGenerator[bytes, None]
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
        if self.closed:  # it may have ended although it was cancelled
            return
        self.transport.write(b"0\r\n\r\n")
        self.streaming = False
        if not request.safe:
            self.transport.close()

    def refuse(self, error: HTTPError) -> None:
        """What cannot be read ends the connection, a moment later: were it cut off while the
        client still sends, the client would never see why."""
        self.refused = True
        error.headers = {**error.headers, "Connection": "close"}
        self.reply(HTTPRequest("GET", (), "", {}, self), self.site.refusal(error))
        self.flush()
        self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.close)

    def sweep(self, now: float, idle: float | None) -> None:
        """Too slow, or asleep for too long?"""
        if self.task is None and not self.queued:
            limit = SLOW if self.reader.begun else idle
            if limit is not None and now - self.since > limit and not self.owned:
                self.transport.close()


class Server:
    """A site, served at one place until it is closed."""

    def __init__(self, site: Site, idle: float | None, at_socket: bool = False) -> None:
        places, spare = room_for_clients(at_socket)
        self.site = site
        self.places: ClientPlaces[ServedConnection] = ClientPlaces(places)
        self.spare: ClientPlaces[ServedConnection] = ClientPlaces(spare, waits=False)
        self.idle = idle  # seconds for which a connection may rest
        self.loop = asyncio.get_running_loop()
        self.buffer = memoryview(bytearray(BUFFER))  # else the loop makes one whenever data comes
        self.connections: set[ServedConnection] = set()
        self.listeners: list[socket.socket] = []
        self.opening: set[asyncio.Task[object]] = set()
        self.turns: Turns[ServedConnection] = Turns()  # those whose requests have come
        self.turn: ServedConnection | None = None  # whose turn it is
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
            connection = ServedConnection(self, owner)
            task: asyncio.Task[object] = self.loop.create_task(
                self.loop.connect_accepted_socket(partial(lambda it: it, connection), accepted)
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

    def has_time(self, connection: ServedConnection) -> bool:
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


async def serve_unix(site: Site, place: str) -> Server:
    """Those who may write to the socket may ask: its owner and its group."""
    listener = bound(socket.socket(socket.AF_UNIX), place)
    os.chmod(place, 0o660)  # noqa: PTH101
    server = Server(site, None, at_socket=True)
    server.listen(listener)
    return server
