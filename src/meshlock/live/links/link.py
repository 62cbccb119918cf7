"""One connection: frames both ways. What they say is for the :class:`Keeper`, the mesh.

What must outlive a connection is not kept here but in its :mod:`.session`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from enum import Enum, auto
from typing import Protocol, cast

from meshlock.live.links.frames import (
    FRAME_LIMIT,
    HANDSHAKE_LIMIT,
    LENGTH,
    UNREADABLE,
    BadFrame,
    Beat,
    Carry,
    Frame,
    HelloFrame,
    RefuseFrame,
    RoutedFrame,
    decode,
    pack,
)
from meshlock.live.links.session import LinkSession
from meshlock.live.machine.failures import Failures

WRITE_BUFFER = 64 * 1024
"""Bytes that may wait in the transport; beyond that messages wait in the session."""

READ_BUFFER = 32 * 1024  # bytes that are read at once
ACKNOWLEDGE_AFTER = 256  # messages that are read before an acknowledgement is sent for its own sake


class Ending(Enum):
    """What the mesh makes of the end of a connection; its reason is a sentence for people."""

    BROKEN = auto()  # whatever happened, it may be tried again
    BAD_FRAME = auto()  # the peer broke the protocol
    OURSELVES = auto()  # not to be dialled again: a list of peers may be the same on all nodes
    MUTUAL = auto()  # we dialled each other, and the other connection counts


class NotLinked(Exception):
    """A connection that we dialled was over before it was open."""

    def __init__(self, reason: str, ending: Ending = Ending.BROKEN, peer: str = "") -> None:
        super().__init__(reason)
        self.ending = ending
        self.peer = peer  # if it said who it is


class Receiver(Protocol):
    """The receiver of messages: a pool."""

    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None: ...


class Greeter(Protocol):
    """It makes links of connections, from when their transport is there: see :mod:`.handshake`."""

    def begin(self, connection: LinkConnection) -> None: ...
    def receive(self, connection: LinkConnection, frame: Frame) -> None: ...


class Keeper(Protocol):
    """The mesh, as its connections see it: it receives new messages, and all other frames."""

    failures: Failures
    dirty: list[LinkConnection]  # with something for the next flush

    @property
    def handshakes(self) -> Greeter: ...
    def time(self) -> float: ...
    def clock(self) -> int: ...
    def flush(self) -> None: ...
    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None: ...
    def receive_other(self, connection: LinkConnection, frame: Frame) -> None: ...
    def lost(self, connection: LinkConnection, reason: str) -> None: ...


class Splitter:
    """Cuts a stream of bytes into frames; never keeps more than one frame's bytes."""

    __slots__ = ("buffer", "limit")

    def __init__(self, limit: int) -> None:
        self.buffer = b""
        self.limit = limit

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete now. ``limit`` may be changed between two of them."""
        if self.buffer:
            data = self.buffer + data
        place, end = 0, len(data)
        while end - place >= 4:
            length: int = LENGTH.unpack_from(data, place)[0]
            if length > self.limit:
                raise BadFrame(f"a frame of {length} bytes; at most {self.limit} are allowed")
            if end - place - 4 < length:
                break
            place += 4 + length
            try:
                frame = decode(data[place - length : place])
            except UNREADABLE as error:
                raise BadFrame(f"an invalid frame: {error}") from None
            yield frame
        self.buffer = data[place:]


class LinkConnection(asyncio.BufferedProtocol):
    """It brings its own buffer: for one that does not, event loops make a new one of 256 KiB for
    every read of TLS, which costs more than everything else about TLS together."""

    def __init__(self, keeper: Keeper, dialled: bool) -> None:
        self.keeper = keeper
        self.dialled = dialled  # by us
        self.splitter = Splitter(HANDSHAKE_LIMIT)
        self.buffer = memoryview(b"")
        self.peer = ""
        self.session: LinkSession | None = None  # once open
        self.hello: HelloFrame | None = None  # what we told
        self.seen = ""  # the host that the peer sees us as
        self.began = self.heard = keeper.time()
        self.pending: list[bytes] = []
        self.dirty = False  # something pending must leave with the mesh's next flush
        self.written = 0  # the highest number this connection has written
        self.busy = False  # a message has left since the last heartbeat
        self.owes_beat = False  # it goes along with the next message
        self.paused = False
        self.parting = False  # we have said goodbye
        self.reason = ""
        self.ending = Ending.BROKEN
        self.transport: asyncio.Transport | None = None
        loop = asyncio.get_running_loop()
        self.decided: asyncio.Future[bool] = loop.create_future()  # is it open?
        self.closed: asyncio.Future[None] = loop.create_future()

    @property
    def address(self) -> str:
        where = self.transport.get_extra_info("peername") if self.transport else None
        return f"{where[0]}:{where[1]}" if where else "?"

    @property
    def host(self) -> str:
        """The host that we see the peer as."""
        where = self.transport.get_extra_info("peername") if self.transport else None
        return str(where[0]).partition("%")[0] if where else ""

    # -- asyncio ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self.began = self.keeper.time()
        self.keeper.handshakes.begin(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        if not self.buffer:
            self.buffer = memoryview(bytearray(READ_BUFFER))
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        keeper = self.keeper
        self.heard = keeper.time()
        try:
            for frame in self.splitter.feed(data):
                if self.reason:
                    return
                session = self.session
                if session is None:
                    keeper.handshakes.receive(self, frame)
                elif type(frame) is Carry:
                    if session.take(frame):
                        keeper.receive(self.peer, frame)
                    if session.received - session.told >= ACKNOWLEDGE_AFTER:
                        self.beat()
                else:
                    keeper.receive_other(self, frame)
        except BadFrame as error:
            self.close(f"it sent {error}", Ending.BAD_FRAME)
        except Exception:
            keeper.failures.note("frame")
            self.close("internal error on a message of the peer")
        if keeper.dirty:
            try:
                keeper.flush()
            except Exception:
                keeper.failures.note("flush")

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.catch_up()
        self.flush()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.reason:
            self.reason = str(error) if error else "connection closed by peer"
        self.keeper.failures.run("link", self.keeper.lost, self, self.reason)
        if not self.decided.done():
            self.decided.set_result(False)
        if not self.closed.done():
            self.closed.set_result(None)

    # -- writing ---------------------------------------------------------------------

    def open(self, session: LinkSession, written: int) -> None:
        """``written``: the number up to which messages of this session were received."""
        self.splitter.limit = FRAME_LIMIT
        self.session = session
        self.written = written
        self.catch_up()
        self.decided.set_result(True)

    def catch_up(self) -> None:
        """Take from the session what this connection has not written yet."""
        if self.session is not None and not self.paused:
            self.pending += self.session.after(self.written)
            self.written = self.session.sent

    def push(self, session: LinkSession, frame: bytes) -> None:
        """The session has a new message for us; it leaves with the next flush."""
        if not self.paused:
            self.pending.append(frame)
            self.written = session.sent
            self.busy = True

    def tick(self, patient: bool) -> None:
        """Once per heartbeat. Where messages leave all the time a Beat goes along with the next, so
        that nobody has to be woken for it alone; if there is none until the next heartbeat, it
        goes then. Only if the other side is ``patient`` enough for that."""
        if patient and self.busy and not self.owes_beat and not self.pending:
            self.owes_beat = True
        elif not self.paused:  # what it has not read yet will do
            self.beat()
        self.busy = False

    def beat(self) -> None:
        if self.session is not None:
            self.write(self.beat_of(self.session))

    def beat_of(self, session: LinkSession) -> bytes:
        """A Beat of this moment."""
        self.owes_beat = False
        session.told = session.received
        return pack(Beat(session.received, self.keeper.clock()))

    def write(self, data: bytes) -> None:
        self.pending.append(data)
        self.flush()

    def flush(self) -> None:
        if self.pending and self.transport is not None:
            if self.owes_beat and self.session is not None:
                self.pending.append(self.beat_of(self.session))
            data = self.pending[0] if len(self.pending) == 1 else b"".join(self.pending)
            self.pending.clear()
            self.transport.write(data)

    # -- ending ----------------------------------------------------------------------

    def refuse(self, refusal: RefuseFrame) -> None:
        self.write(pack(refusal))
        self.close(refusal.reason, Ending.MUTUAL if refusal.mutual else Ending.BROKEN)

    def close(self, reason: str, ending: Ending = Ending.BROKEN) -> None:
        if not self.reason:
            self.reason, self.ending = reason, ending
            if self.transport is not None:
                self.transport.close()

    def abort(self, reason: str) -> None:
        """At once: nothing more is written, nobody is waited for."""
        if not self.reason:
            self.reason = reason
            if self.transport is not None:
                self.transport.abort()
