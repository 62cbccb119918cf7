"""What travels on a link: frames, each one msgpack array whose first item says what it is.

Types are checked before anything is used; whatever does not fit raises :class:`BadFrame` and costs
the sender its connection. In a stream a frame has four bytes of length before it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec

from meshlock.live.machine.limits import (
    MOST_NODES,
    Clock,
    Count,
    Generation,
    Host,
    Name,
    Span,
    Where,
    Word,
)

VERSION = 6  # of the frames below; two nodes must speak the same one
HANDSHAKE_LIMIT = 4096  # no first frame is longer, in bytes
FRAME_LIMIT = 2 * 1024 * 1024  # no frame at all is longer, in bytes
LAST_RECORD = 2**62  # no node numbers what it says of its links higher
MOST_ADDRESSES = 3  # addresses at which a node says that it listens


class BadFrame(ValueError):
    """The other side broke the protocol; the text is a sentence for the log."""


class Here(msgspec.Struct, array_like=True, tag=0, frozen=True):
    """The one who was dialled: who I am, so that you know what to tell me.

    ``boot`` is drawn at every start of a process, so that a peer which forgot everything
    is told apart from one that was only cut off. ``seen`` is the host that we see the other
    side as: it cannot know that itself.
    """

    version: Count
    name: str
    boot: Count
    seen: Host = ""


class Greeting(msgspec.Struct, array_like=True, frozen=True):
    """Who I am, and where we stand. ``known`` is the boot of yours to which the numbers refer, 0
    if we have never met. ``up``: the generation is one that goes on."""

    version: Count
    name: str
    boot: Count
    known: Count
    generation: Generation
    up: bool
    received: Count
    seen: Host = ""


class HelloFrame(Greeting, tag=1, frozen=True):
    """The one who dialled: where I think we stand."""


class Welcome(Greeting, tag=2, frozen=True):
    """The one who was dialled: what is to be. The dialler obeys or disconnects."""


class RefuseFrame(msgspec.Struct, array_like=True, tag=3, frozen=True):
    """No link, and why: a sentence.

    ``mutual``: both are dialling, and the other connection counts; nothing is wrong.
    """

    reason: str
    mutual: bool = False


Payload = Annotated[bytes, msgspec.Meta(max_length=FRAME_LIMIT)]
"""The sender encodes it once; its receiver opens it, and no node in between does."""

Stamp = tuple[Span, Clock, Span]
"""For how long a message had waited when it was sent, the clock of whom it is for as last heard,
and for how long the sender has had that (:meth:`.mesh.Mesh.travelled`)."""


class Content(NamedTuple):
    """What is sent, however it travels. ``identity`` is that of the pool's configuration."""

    pool: str
    identity: int
    kind: str
    payload: bytes
    since: int = 0  # the sender's clock when what it says was true; 0: its age does not matter
    boot: int = 0  # of the process that it is for; 0: whichever there is
    recovers: bool = False  # of a pool that gets over its loss


CARRY = 4


class Carry(msgspec.Struct, array_like=True, tag=CARRY, frozen=True):
    """One message over one link. ``gap``: how many numbers before it were given up. ``custody``: it
    may never be lost."""

    number: Count
    acknowledged: Count
    gap: Count
    custody: bool
    pool: Word
    identity: Count
    kind: Word
    payload: Payload
    stamp: Stamp | None = None


class Beat(msgspec.Struct, array_like=True, tag=5, frozen=True):
    """I am here, and have read so far.

    ``clock`` is the sender's when it wrote this. It comes back in messages whose travel
    must be bounded (:meth:`.mesh.Mesh.travelled`).
    """

    acknowledged: Count
    clock: Clock = 0


class Bye(msgspec.Struct, array_like=True, tag=6, frozen=True):
    """I shall leave: send nothing more than what you owe."""


class RoutedFrame(msgspec.Struct, array_like=True, tag=7, frozen=True):
    """A message that is sent by way of the map (:mod:`.routed`): over a link as it is, which is
    from and for the two at its ends, or in an :class:`Envelope`.

    ``boot`` and ``known`` are the process that sent it and the one that it is for, as the sender
    knows it. ``serial`` grows with every envelope to the same node. ``number`` is 0, or that of a
    custody message, whose link, if there was one, had ended its life ``generation``. A
    *receipt* has no kind.
    """

    boot: Count
    known: Count
    serial: Count
    generation: Generation
    number: Count
    gap: Count
    acknowledged: Count
    pool: Word
    identity: Count
    kind: Word
    payload: Payload
    stamp: Stamp | None = None


class LinksFrame(msgspec.Struct, array_like=True, tag=8, frozen=True):
    """To whom a node is linked and where it listens, as it says itself; others hand it on
    (:mod:`.link_map`).

    ``key`` is that of this life of it, for routed messages. The signature proves all this, by the
    certificate (:mod:`.identity`); where nothing is proved, the three are empty.
    """

    name: Name
    boot: Count
    number: Annotated[int, msgspec.Meta(ge=0, le=LAST_RECORD)]  # the larger the newer
    peers: Annotated[tuple[Name, ...], msgspec.Meta(max_length=MOST_NODES)]
    addresses: Annotated[tuple[Where, ...], msgspec.Meta(max_length=MOST_ADDRESSES)] = ()
    key: Annotated[bytes, msgspec.Meta(max_length=32)] = b""
    certificate: Annotated[bytes, msgspec.Meta(max_length=4096)] = b""
    signature: Annotated[bytes, msgspec.Meta(max_length=256)] = b""


class Envelope(msgspec.Struct, array_like=True, tag=9, frozen=True):
    """A :class:`RoutedFrame` on its way through others, who do not look inside. ``tag`` proves to
    the target that the origin sent it (:mod:`.identity`)."""

    origin: Word
    target: Word
    hops: Annotated[int, msgspec.Meta(ge=0, le=4 * MOST_NODES)]  # that are left
    tag: Annotated[bytes, msgspec.Meta(max_length=64)]
    content: Payload


Frame = (
    Here
    | HelloFrame
    | Welcome
    | RefuseFrame
    | Carry
    | Beat
    | Bye
    | RoutedFrame
    | LinksFrame
    | Envelope
)

encode = msgspec.msgpack.Encoder().encode
decode: Callable[[bytes], Frame] = msgspec.msgpack.Decoder(Frame).decode
LENGTH = struct.Struct("!I")
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


def pack(frame: Frame) -> bytes:
    """As it is in a stream."""
    body = encode(frame)
    return LENGTH.pack(len(body)) + body


def reader(kind: Any, what: str) -> Callable[[bytes], Any]:
    """Reads messages of this type; one that does not fit is a :class:`BadFrame`."""
    decode = msgspec.msgpack.Decoder(kind).decode

    def read(data: bytes) -> Any:
        try:
            return decode(data)
        except UNREADABLE as error:
            raise BadFrame(f"{what} with wrong fields: {error}") from None

    return read


unsealed: Callable[[bytes], RoutedFrame] = reader(RoutedFrame, "an envelope of a message")
"""What is in an envelope."""
