"""One connection: the handshake, then frames both ways.

::

    dialler                  dialled
       |  <---- Here ---------  |     after TLS has proved both
       |  ----- Hello ------->  |     what I remember of us
       |  <---- Welcome ------  |     how we go on
       |  <---- Carry, Beat ->  |

A :class:`LinkConnection` knows nothing of what came before it: it asks the :class:`Keeper`
(the mesh) whom it is talking to and what to make of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol, cast

from meshlock.errors import Refused
from meshlock.live.links.frames import (
    FRAME_LIMIT,
    HANDSHAKE_LIMIT,
    LENGTH,
    UNREADABLE,
    VERSION,
    BadFrame,
    Beat,
    Bye,
    Carry,
    Envelope,
    Frame,
    HelloFrame,
    Here,
    LinksFrame,
    RefuseFrame,
    RoutedFrame,
    Welcome,
    decode,
    pack,
)
from meshlock.live.links.session import LinkSession
from meshlock.live.machine.failures import Failures
from meshlock.live.machine.limits import NAME

if TYPE_CHECKING:
    from meshlock.live.links.link_map import LinkMap
    from meshlock.live.links.routed import Router

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


class LinkOwner(Protocol):
    """What the node is told."""

    def up(self, peer: str) -> None: ...
    def down(self, peer: str) -> None: ...
    def map_changed(self) -> None: ...
    def friends(self) -> set[str]: ...
    def receiver(self, sender: str, pool: str) -> Receiver | None: ...


class Keeper(Protocol):
    """What a connection needs of the mesh."""

    name: str
    boot: int
    failures: Failures
    link_map: LinkMap
    router: Router
    dirty: list[LinkConnection]

    def greeting(self, connection: LinkConnection) -> None: ...
    def proved(self, transport: asyncio.Transport) -> str | None: ...
    def has_link(self, here: Here) -> bool: ...
    def session(self, connection: LinkConnection) -> LinkSession: ...
    def refuses(self, connection: LinkConnection, hello: HelloFrame) -> RefuseFrame | None: ...
    def opened(self, connection: LinkConnection, resumed: bool, ended: bool) -> None: ...
    def parting(self, connection: LinkConnection) -> None: ...
    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None: ...
    def barred(self, peer: str) -> bool: ...
    def beaten(self, connection: LinkConnection, frame: Beat) -> None: ...
    def flush(self) -> None: ...
    def lost(self, connection: LinkConnection, reason: str) -> None: ...
    def time(self) -> float: ...
    def clock(self) -> int: ...


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
        self.keeper.greeting(self)
        if not self.dialled:
            transport.write(pack(Here(VERSION, self.keeper.name, self.keeper.boot, self.host)))

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
                    self.in_handshake(frame)
                elif type(frame) is Carry:
                    if session.take(frame):
                        keeper.receive(self.peer, frame)
                    if session.received - session.told >= ACKNOWLEDGE_AFTER:
                        self.beat()
                else:
                    self.after_handshake(session, frame)
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

    # -- reading ---------------------------------------------------------------------

    def in_handshake(self, frame: Frame) -> None:
        if isinstance(frame, RefuseFrame):
            ending = Ending.MUTUAL if frame.mutual else Ending.BROKEN
            self.close(f"refused by peer: {frame.reason[:200]}", ending)
        elif self.dialled and isinstance(frame, Here) and frame.boot == self.keeper.boot:
            self.write(pack(RefuseFrame("this is the node's own address", mutual=True)))
            self.close("this is the node's own address", Ending.OURSELVES)
        elif self.dialled and isinstance(frame, Here) and self.hello is None:
            self.recognise(frame.version, frame.name)
            self.seen = frame.seen
            if not self.reason and self.keeper.has_link(frame):
                self.refuse(RefuseFrame("linked already", mutual=True))
            elif not self.reason:
                self.hello = self.keeper.session(self).hello(self.host)
                self.write(pack(self.hello))
        elif self.dialled and isinstance(frame, Welcome) and self.hello is not None:
            session = self.keeper.session(self)
            ended = session.obey(frame, self.hello)
            if ended is None:
                self.close("linked by another connection")
            else:
                self.open(session, frame.resumed, frame.received, ended)
        elif not self.dialled and isinstance(frame, HelloFrame):
            self.recognise(frame.version, frame.name)
            self.seen = frame.seen
            refusal = self.keeper.refuses(self, frame) if not self.reason else None
            if refusal:
                self.refuse(refusal)
            elif not self.reason:
                session = self.keeper.session(self)
                welcome, ended = session.welcome(frame)
                self.write(pack(welcome))
                self.open(session, welcome.resumed, frame.received, ended)
        else:
            raise BadFrame(f"{type(frame).__name__.removesuffix('Frame')} out of turn")

    def after_handshake(self, session: LinkSession, frame: Frame) -> None:
        if isinstance(frame, Beat):
            session.acknowledge(frame.acknowledged)
            self.keeper.beaten(self, frame)
        elif isinstance(frame, Bye):
            self.keeper.parting(self)
        elif isinstance(frame, RoutedFrame):
            self.keeper.router.receive(self.peer, frame)
        elif isinstance(frame, Envelope):
            self.keeper.router.arrives(self.peer, frame)
        elif isinstance(frame, LinksFrame):
            self.keeper.link_map.receive(self.peer, frame)
        else:
            raise BadFrame(f"{type(frame).__name__.removesuffix('Frame')} out of turn")

    def recognise(self, version: int, name: str) -> None:
        """Is this somebody we can talk to, and who it has proved to be?"""
        assert self.transport is not None
        self.peer = name
        try:
            proved = self.keeper.proved(self.transport)
        except Refused as error:
            self.refuse(RefuseFrame(str(error)))
            return
        if version != VERSION:
            self.refuse(RefuseFrame(f"protocol version {version}, expected {VERSION}"))
        elif proved is not None and proved != name:
            self.refuse(
                RefuseFrame(f"it uses the name {name[:64]!r}, but its certificate names {proved!r}")
            )
        elif not re.fullmatch(NAME, name):
            self.refuse(RefuseFrame(f"{name[:64]!r} is not a valid node name"))
        elif name == self.keeper.name:
            self.refuse(RefuseFrame(f"it has this node's name, {name!r}; names must differ"))
        elif self.keeper.barred(name):
            self.refuse(RefuseFrame("the link is cut on purpose for a while"))

    def open(self, session: LinkSession, resumed: bool, received: int, ended: bool) -> None:
        self.splitter.limit = FRAME_LIMIT
        self.session = session
        self.written = received if resumed else 0
        self.catch_up()
        self.decided.set_result(True)
        self.keeper.opened(self, resumed, ended)

    # -- writing ---------------------------------------------------------------------

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
