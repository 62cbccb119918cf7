"""Links over Zenoh, for fleets that outgrow direct links. Needs the extra ``meshlock[zenoh]``.

Zenoh finds ways through routers and radios that a TCP connection does not; what a link *is*
stays ours. Every node listens at one key. A conversation between two nodes is a stream of
numbered pieces: Zenoh drops pieces without a word when a cut outlasts its lease, and a
missing number ends the conversation, so the session takes over on the next one, as with
any broken connection. Who may take part is decided by Zenoh's own TLS and access control.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from meshlock.errors import Refused
from meshlock.live.links.frames import BadFrame
from meshlock.live.links.link import LinkConnection, NotLinked
from meshlock.live.machine.limits import Count, Name

try:
    import zenoh
except ImportError:
    raise Refused("Zenoh links need 'eclipse-zenoh': pip install 'meshlock[zenoh]'.") from None

if TYPE_CHECKING:
    from meshlock.live.links.mesh import Mesh

DEFAULTS: dict[str, Any] = {
    "mode": "peer",
    "scouting/multicast/enabled": False,
    "scouting/gossip/autoconnect": {"peer": []},  # links are where we say, not everywhere
    "transport/link/tx/lease": 1000,
}
PREFIX = "meshlock/node/"
MOST_CONVERSATIONS = 256


class Piece(msgspec.Struct, array_like=True):
    """A part of a conversation; ``data`` None ends it."""

    sender: Name
    conversation: Count
    number: Count
    data: bytes | None


_decoder = msgspec.msgpack.Decoder(Piece)


class ZenohTransport(asyncio.Transport):
    """One conversation, as a connection sees it."""

    def __init__(self, carrier: ZenohCarrier, peer: str, conversation: int) -> None:
        super().__init__()
        self.carrier = carrier
        self.peer = peer
        self.conversation = conversation
        self.connection: LinkConnection | None = None
        self.sent = self.received = 0
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if not self.closing:
            self.carrier.publish(self, bytes(data))

    def take(self, piece: Piece) -> None:
        assert self.connection is not None
        if piece.number != self.received:
            self.connection.abort(f"piece {piece.number} came after {self.received - 1}")
            return
        self.received += 1
        if piece.data is None:
            self.finish(None)
        elif piece.data:
            self.connection.data_received(piece.data)

    def close(self) -> None:
        if not self.closing:
            self.carrier.publish(self, None)
            self.finish(None)

    def abort(self) -> None:
        self.close()

    def finish(self, error: Exception | None) -> None:
        if not self.closing:
            self.closing = True
            self.carrier.conversations.pop((self.peer, self.conversation), None)
            if self.connection is not None:
                self.carrier.mesh.loop.call_soon(self.connection.connection_lost, error)

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("zenoh", self.peer) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Zenoh drops what it cannot carry, and the session sends it again."""


class ZenohCarrier:
    def __init__(self, mesh: Mesh, settings: Mapping[str, Any]) -> None:
        self.mesh = mesh
        self.conversations: dict[tuple[str, int], ZenohTransport] = {}
        config = zenoh.Config()
        for key, value in {**DEFAULTS, **settings}.items():
            config.insert_json5(key, msgspec.json.encode(value).decode())
        self.session = zenoh.open(config)
        self.subscriber = self.session.declare_subscriber(PREFIX + mesh.name, self.arrived)

    def carries(self, transport: asyncio.Transport) -> bool:
        return isinstance(transport, ZenohTransport)

    def arrived(self, sample: Any) -> None:
        """In one of Zenoh's threads."""
        body = sample.payload.to_bytes()
        self.mesh.loop.call_soon_threadsafe(self.mesh.failures.run, "zenoh", self.receive, body)

    def receive(self, body: bytes) -> None:
        try:
            piece = _decoder.decode(body)
        except msgspec.MsgspecError as error:
            self.mesh.refusals.note("zenoh", f"it sent {BadFrame(str(error))}")
            return
        key = (piece.sender, piece.conversation)
        transport = self.conversations.get(key)
        if transport is None:
            if piece.number != 0 or piece.data is None:
                return  # of a conversation that is over
            if len(self.conversations) >= MOST_CONVERSATIONS:
                self.mesh.refusals.note(piece.sender, "too many connections")
                return
            transport = self.begin(*key, LinkConnection(self.mesh, dialled=False))
        transport.take(piece)

    def begin(self, peer: str, conversation: int, connection: LinkConnection) -> ZenohTransport:
        transport = ZenohTransport(self, peer, conversation)
        transport.connection = connection
        self.conversations[peer, conversation] = transport
        connection.connection_made(transport)
        return transport

    def publish(self, transport: ZenohTransport, data: bytes | None) -> None:
        piece = Piece(self.mesh.name, transport.conversation, transport.sent, data)
        transport.sent += 1
        self.session.put(
            PREFIX + transport.peer,
            msgspec.msgpack.encode(piece),
            congestion_control=zenoh.CongestionControl.DROP,
            express=True,
        )

    async def connect(self, peer: str) -> LinkConnection:
        """Dial once; the result is open."""
        connection = LinkConnection(self.mesh, dialled=True)
        transport = self.begin(peer, secrets.randbits(48), connection)
        transport.write(b"")
        try:
            async with asyncio.timeout(self.mesh.dead * 2):
                if not await asyncio.shield(connection.decided):
                    raise NotLinked(connection.reason, connection.ending)
        except TimeoutError:
            connection.abort("no answer in time")
            raise NotLinked("no answer in time") from None
        return connection

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.session.close)
