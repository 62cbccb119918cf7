"""Somebody at the other end of a node's socket who need not keep to the protocol."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from meshlock import Node
from meshlock.live.links.dialler import split
from meshlock.live.links.frames import (
    VERSION,
    Carry,
    Content,
    Envelope,
    Frame,
    HelloFrame,
    Here,
    RoutedFrame,
    encode,
    pack,
)
from meshlock.live.links.link import Splitter
from meshlock.live.links.security import Security


class Stranger:
    """Somebody with a socket and bad intentions."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.splitter = Splitter(1 << 20)

    @classmethod
    async def dial(cls, node: Node, security: Security) -> Stranger:
        host, port = split(node.address)
        hostname = "" if security.client else None
        return cls(
            *await asyncio.open_connection(
                host, port, ssl=security.client, server_hostname=hostname
            )
        )

    async def hears(self) -> Frame | None:
        """The next frame, or None once the node has hung up."""
        while True:
            try:
                data = await self.reader.read(65536)
            except (ConnectionError, ssl.SSLError):
                return None
            if not data:
                return None
            for frame in self.splitter.feed(data):
                return frame

    async def gone(self) -> bool:
        while await self.hears() is not None:
            pass
        return True

    def says(self, *frames: Frame) -> None:
        self.writer.write(b"".join(pack(frame) for frame in frames))

    async def joins(self, name: str) -> None:
        assert isinstance(await self.hears(), Here)
        self.says(HelloFrame(VERSION, name, 7, 0, 0, False, 0))


def content(kind: str, fields: Sequence[Any] = (), pool: str = "docks", of: int = 0) -> Content:
    return Content(pool, of, kind, msgspec.msgpack.encode(fields))


def carried(
    number: int, kind: str, fields: Sequence[Any] = (), pool: str = "docks", of: int = 0
) -> Carry:
    """A message over a link, of the pool with that identity."""
    return Carry(number, 0, 0, False, *content(kind, fields, pool, of)[:4])


def routed(kind: str, fields: Sequence[Any] = (), pool: str = "docks", of: int = 0) -> RoutedFrame:
    """A message of a neighbour, best effort."""
    return RoutedFrame(7, 0, 0, 0, 0, 0, 0, *content(kind, fields, pool, of)[:4])


def enveloped(ends: tuple[str, str], message: RoutedFrame, serial: int = 1) -> Envelope:
    """The same through the mesh, where nothing is proved."""
    message = msgspec.structs.replace(message, serial=serial)
    return Envelope(*ends, 4, b"", encode(message))


def lines(caplog: pytest.LogCaptureFixture) -> str:
    said = [vars(record) for record in caplog.records]
    refused = [record["details"] for record in said if record.get("happened") == "refused"]
    return " | ".join(str(details.get("reason")) for details in refused)
