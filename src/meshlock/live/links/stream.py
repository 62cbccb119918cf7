"""Frames as bytes: how they are written, and how they are cut out of a stream.

A frame is four bytes of length and what :mod:`.frames` makes of it. Lengths are checked before
anything is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from meshlock.live.links.frames import CARRY, UNREADABLE, BadFrame, Frame, Stamp, decode, encode

LENGTH = struct.Struct("!I")


def pack(frame: Frame) -> bytes:
    body = encode(frame)
    return LENGTH.pack(len(body)) + body


def pack_carry(
    number: int,
    acknowledged: int,
    custody: int,
    pool: str,
    identity: int,
    kind: str,
    payload: bytes,
    stamp: Stamp | None,
) -> bytes:
    """The bytes of a Carry with these fields, which nobody needs as an object."""
    fields = (CARRY, number, acknowledged, custody, pool, identity, kind, payload, stamp)
    body = encode(fields)
    return LENGTH.pack(len(body)) + body


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
