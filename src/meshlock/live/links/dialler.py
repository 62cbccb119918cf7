"""Whom a node dials for as long as it lives, and why there is no link.

Whether a connection becomes a link, both ends decide in :mod:`.handshake`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from logging import WARNING
from random import random
from typing import TYPE_CHECKING

from meshlock.errors import Refused
from meshlock.live.links.admission import HANDSHAKE_SECONDS, HURRY, NO_DELAY
from meshlock.live.links.link import Ending, LinkConnection, NotLinked
from meshlock.live.machine.error_text import error_text
from meshlock.live.machine.logs import log_event

if TYPE_CHECKING:
    from meshlock.live.links.mesh import Mesh

ZENOH = "zenoh/"  # addresses that begin so are names in a Zenoh network
FIRST_RETRY, LAST_RETRY = 0.02, 1.0


class Dialler:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.diallers: dict[str, asyncio.Task[None]] = {}
        self.tried: dict[str, asyncio.Event] = {}  # address: set after the first attempt
        self.at: dict[str, str] = {}  # address that we dial: who is there, ourselves included
        self.no_link: dict[str, str] = {}  # address that we dial in vain: why

    def in_vain(self, addresses: Iterable[str]) -> str:
        """These addresses, each with the reason why there is no link to it, if that is known."""
        reasons = self.no_link
        return ", ".join([f"{at} ({reasons[at]})" if at in reasons else at for at in addresses])

    def dial(self, address: str) -> None:
        """Keep a link to ``host:port``, or to ``zenoh/NAME``, for as long as we live."""
        if address not in self.diallers:
            self.tried[address] = asyncio.Event()
            if address.startswith(ZENOH):
                if self.mesh.zenoh is None:
                    raise Refused(
                        f"The address '{address}' needs the settings of its network: set zenoh."
                    )
                connect = partial(self.mesh.zenoh.connect, address.removeprefix(ZENOH))
            else:
                connect = partial(self.connect, *split(address))
            self.diallers[address] = self.mesh.start(self.dial_repeatedly(address, connect))

    async def dial_repeatedly(
        self, address: str, connect: Callable[[], Awaitable[LinkConnection]]
    ) -> None:
        peer, wait = "", FIRST_RETRY
        while True:
            try:
                connection = self.mesh.open.get(peer) or await connect()
                peer, wait = connection.peer, FIRST_RETRY
                self.has_found(address, peer)
                await asyncio.shield(connection.closed)
            except NotLinked as error:
                if error.ending is Ending.OURSELVES:
                    self.has_found(address, self.mesh.name)
                    return
                if error.ending is Ending.MUTUAL:
                    peer = error.peer
                    self.has_found(address, peer)
                elif self.no_link.get(address) != str(error):
                    self.no_link[address] = str(error)
                    log_event(WARNING, "no link", address=address, reason=str(error))
            except Exception:
                self.mesh.failures.note("dial")
            self.tried[address].set()
            await asyncio.sleep(wait * (0.5 + random()))
            wait = min(wait * 2, LAST_RETRY)

    def has_found(self, address: str, peer: str) -> None:
        """Who is there."""
        self.at[address] = peer
        self.no_link.pop(address, None)
        self.tried[address].set()

    async def connect(self, host: str, port: int) -> LinkConnection:
        """Dial once; the result is open, or it raises NotLinked."""
        tls = self.mesh.security.client
        knock = self.mesh.security.knock.decode()
        hurry = {"server_hostname": knock, **HURRY} if tls else {}
        connection = LinkConnection(self.mesh, dialled=True)
        try:
            found = await self.mesh.loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self.mesh.refuse_exposure(str(found[0][4][0]))
            self.mesh.admission.know(str(found[0][4][0]))
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                transport, _ = await self.mesh.loop.create_connection(
                    lambda: connection, host, port, ssl=tls, **hurry
                )
                transport.get_extra_info("socket").setsockopt(*NO_DELAY)
                if not await asyncio.shield(connection.decided):
                    raise NotLinked(connection.reason, connection.ending, connection.peer)
        except TimeoutError:
            connection.abort("no answer in time")
            raise NotLinked("no answer in time") from None
        except (OSError, ssl.SSLError, Refused, OverflowError) as error:
            raise NotLinked(error_text(error)) from None
        return connection


def split(address: str) -> tuple[str, int]:
    """``host:port``, where the host may be in brackets."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise Refused(f"'{address}' is not the address of a node: write host:port.")
    if int(port) > 65535:
        raise Refused(f"'{address}' is not the address of a node: the port must be at most 65535.")
    return host.strip("[]"), int(port)
