"""Who may begin a handshake: strangers must not keep honest nodes out.

A peer that connects is a stranger until TLS has proved its name, and may be one of thousands. So
nobody waits for a place: a newcomer takes it from the oldest handshake of the address that has the
most, and addresses that we know come last. An honest node needs its place for milliseconds.

With TLS a handshake costs computing time, which strangers could use up. A connection therefore
waits as a bare socket until its peer has sent something, what it sent is looked at before anything
is computed, and handshakes per second are limited: for each address, and for all that are not
known together. A node of this mesh shows in its first packet that it is one: it asks for a host
name that strangers do not know (:attr:`~.security.Security.knock`), and is limited for itself, so
that it gets through even from an address that others abuse. This admits nobody; TLS does.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from enum import IntEnum, auto
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Any

from meshlock.live.links.link import LinkConnection
from meshlock.live.links.rate_limit import RateLimit, RateLimits, keep_latest
from meshlock.live.machine.error_text import STRANGER, TLS, error_text
from meshlock.live.machine.limits import MOST_NODES

if TYPE_CHECKING:
    from meshlock.live.links.mesh import Mesh

HANDSHAKE_SECONDS = 3.0
HURRY: dict[str, Any] = {"ssl_handshake_timeout": HANDSHAKE_SECONDS, "ssl_shutdown_timeout": 1.0}
NO_DELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

BACKLOG = 1024  # connections that the kernel keeps until we accept them
AT_ONCE = 64  # arrivals that are accepted in one turn of the loop; then others have theirs
PAUSE = 0.1  # seconds without accepting when there are no descriptors left
PEEK = 4096  # bytes of a first packet that are looked at


class Standing(IntEnum):
    """What we can tell of a connection before it has proved anything, and after."""

    STRANGER = auto()
    KNOWN_ADDRESS = auto()  # a link came from there before, or we were told to link there
    KNOCKED = auto()
    PROVED = auto()


MOST_CONNECTIONS = 512
MOST_OF_ADDRESS = 256
"""Connections without a link, of all and of one address. They cost a descriptor each."""

MOST_HANDSHAKES = 64
MOST_HANDSHAKES_OF_ADDRESS = 32  # TLS handshakes under way
PER_SECOND = {Standing.STRANGER: 50.0, Standing.KNOWN_ADDRESS: 100.0, Standing.KNOCKED: 200.0}
"""TLS handshakes that one address may begin."""

STRANGERS_PER_SECOND = 200.0  # TLS handshakes that all strangers together may begin


class Arrival:
    """A connection that somebody opened to us and that is no link yet."""

    __slots__ = ("at", "began", "connection", "host", "socket", "standing", "task")

    def __init__(self, accepted: socket.socket, where: tuple[Any, ...], now: float) -> None:
        self.socket = accepted
        self.at = f"{where[0]}:{where[1]}"
        self.host = site(where[0])
        self.began = now
        self.standing = Standing.STRANGER
        self.connection: LinkConnection | None = None
        self.task: asyncio.Task[None] | None = None


class AdmissionRoom:
    """Arrivals in the order in which they came, up to a number in all and of each address."""

    def __init__(self, most: int, most_of_address: int) -> None:
        self.most = most
        self.most_of_address = most_of_address
        self.all: dict[Arrival, None] = {}
        self.hosts: Counter[str] = Counter()  # arrivals of each address

    def __contains__(self, arrival: Arrival) -> bool:
        return arrival in self.all

    def add(self, arrival: Arrival) -> Arrival | None:
        """The result must leave."""
        victim = None
        if self.hosts[arrival.host] >= self.most_of_address:
            here = [one for one in self.all if one.host == arrival.host]
            victim = min(here, key=lambda one: one.standing)
        elif len(self.all) >= self.most:
            victim = self.victim()
        self.all[arrival] = None
        self.hosts[arrival.host] += 1
        return victim

    def discard(self, arrival: Arrival) -> None:
        if arrival in self.all:
            del self.all[arrival]
            self.hosts[arrival.host] -= 1
            if not self.hosts[arrival.host]:
                del self.hosts[arrival.host]

    def victim(self) -> Arrival | None:
        """Who must leave first: of those who count least, of the address with the most of them, the
        oldest."""
        return min(
            self.all,
            key=lambda one: (one.standing, -self.hosts[one.host], one.began),
            default=None,
        )

    def older_than(self, moment: float) -> list[Arrival]:
        return [one for one in self.all if one.began < moment]


def site(host: str) -> str:
    """What counts as one address: in IPv6 an owner of one has 2^64 of them."""
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and not address.is_loopback:
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else address.exploded[:19]
    return str(address)


class Admission:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.listener: socket.socket | None = None
        self.tls = mesh.security.server
        self.silent = AdmissionRoom(MOST_CONNECTIONS, MOST_OF_ADDRESS)  # nothing has come yet
        self.begun = AdmissionRoom(MOST_CONNECTIONS, MOST_OF_ADDRESS)
        if self.tls is not None:
            self.begun = AdmissionRoom(MOST_HANDSHAKES, MOST_HANDSHAKES_OF_ADDRESS)
        self.known: dict[str, None] = {}
        self.strangers = RateLimit(STRANGERS_PER_SECOND, mesh.time())
        self.rates = RateLimits(2 * MOST_NODES)  # by address and standing

    def listen(self, listener: socket.socket) -> None:
        listener.listen(BACKLOG)
        self.listener = listener
        self.resume()

    def know(self, host: str) -> None:
        """Links come from this address."""
        keep_latest(self.known, site(host), None, MOST_NODES)

    # -- arriving ------------------------------------------------------------------------

    def arrivals(self) -> None:
        assert self.listener is not None
        for _ in range(AT_ONCE):
            try:
                accepted, where = self.listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # out of descriptors: those we have must not suffer
                self.make_room(error)
                return
            accepted.setblocking(False)
            arrival = Arrival(accepted, where, self.mesh.time())
            if arrival.host in self.known:
                arrival.standing = Standing.KNOWN_ADDRESS
            if self.tls is None:
                self.begin(arrival)
            else:
                self.peek(arrival)

    def make_room(self, error: OSError) -> None:
        victim = self.silent.victim() or self.begun.victim()
        if victim is not None:
            self.drop(victim, f"accepting failed: {error_text(error)}")
        elif self.listener is not None:
            self.mesh.refusals.note("?", f"accepting failed: {error_text(error)}")
            self.mesh.loop.remove_reader(self.listener)
            self.mesh.failures.later(PAUSE, "accept", self.resume)

    def resume(self) -> None:
        """Accept from now on, unless we have closed."""
        if self.listener is not None:
            self.mesh.loop.add_reader(
                self.listener, self.mesh.failures.run, "accept", self.arrivals
            )

    def peek(self, arrival: Arrival) -> None:
        """At what it said first, if it has said anything."""
        try:
            first = arrival.socket.recv(PEEK, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            if arrival not in self.silent:
                self.enter(self.silent, arrival)
                self.mesh.loop.add_reader(
                    arrival.socket, self.mesh.failures.run, "accept", self.peek, arrival
                )
            return
        except OSError as error:
            self.drop(arrival, error_text(error))
            return
        why = refusal(first)
        if why:
            arrival.socket.recv(PEEK)  # what is unread would turn our farewell into a reset
            self.drop(arrival, why)
            return
        if self.mesh.security.knock in first:
            arrival.standing = Standing.KNOCKED
        if not self.affordable(arrival):
            self.drop(arrival, "too many handshakes from its address")
            return
        if arrival in self.silent:
            self.silent.discard(arrival)
            self.mesh.loop.remove_reader(arrival.socket)
        self.begin(arrival)

    def affordable(self, arrival: Arrival) -> bool:
        now, standing = self.mesh.time(), arrival.standing
        stranger = standing is Standing.STRANGER
        if stranger and not self.strangers.has(now):
            return False
        affordable = self.rates.take((arrival.host, standing), PER_SECOND[standing], now)
        return affordable and (not stranger or self.strangers.take(now))

    # -- the handshake -------------------------------------------------------------------

    def enter(self, room: AdmissionRoom, arrival: Arrival) -> None:
        victim = room.add(arrival)
        if victim is not None:
            self.drop(victim, "too many handshakes at once")

    def begin(self, arrival: Arrival) -> None:
        self.enter(self.begun, arrival)
        arrival.connection = connection = LinkConnection(self.mesh, dialled=False)
        connection.decided.add_done_callback(lambda decided: self.over(arrival, decided.result()))
        arrival.task = self.mesh.start(self.shake_hands(arrival, connection))

    async def shake_hands(self, arrival: Arrival, connection: LinkConnection) -> None:
        hurry = HURRY if self.tls is not None else {}
        try:
            arrival.socket.setsockopt(*NO_DELAY)
            await self.mesh.loop.connect_accepted_socket(
                lambda: connection, arrival.socket, ssl=self.tls, **hurry
            )
            if self.tls is not None:
                arrival.standing = Standing.PROVED
        except (OSError, ssl.SSLError) as error:
            what = "TLS handshake failed" if self.tls is not None else "connection failed"
            why = error_text(error)
            # who did not even ask for the host name that nodes of this mesh know
            stranger = self.tls is not None and arrival.standing < Standing.KNOCKED
            if stranger and isinstance(error, ConnectionError):
                why = STRANGER
            self.drop(arrival, f"{what}: {why}")

    def over(self, arrival: Arrival, linked: bool) -> None:
        self.begun.discard(arrival)
        if linked:
            self.know(arrival.at.rpartition(":")[0])

    def drop(self, arrival: Arrival, reason: str) -> None:
        if arrival in self.silent:
            self.silent.discard(arrival)
            self.mesh.loop.remove_reader(arrival.socket)
        self.begun.discard(arrival)
        connection, task = arrival.connection, arrival.task
        if connection is not None and connection.transport is not None:
            connection.abort(reason)  # which is noted where it ends
            return
        self.mesh.refusals.note(arrival.at, reason)
        if task is not None and not task.done():
            task.cancel()  # the loop closes the socket
        else:
            arrival.socket.close()

    def tick(self, now: float) -> None:
        for arrival in self.silent.older_than(now - HANDSHAKE_SECONDS):
            self.drop(arrival, "handshake timed out")

    def close(self) -> None:
        if self.listener is not None:
            self.mesh.loop.remove_reader(self.listener)
            self.listener.close()
            self.listener = None
        for arrival in self.silent.older_than(float("inf")):
            self.drop(arrival, "this node is leaving")


def refusal(first: bytes) -> str:
    """Why these cannot be the first bytes of a TLS handshake; empty if they can."""
    if not first:
        return "connection closed by peer"
    if b"\x16\x03".startswith(first[:2]) and first[5:6] in (b"", b"\x01"):
        return ""
    http = first[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI")
    return f"TLS handshake failed: {TLS['HTTP_REQUEST' if http else 'WRONG_VERSION_NUMBER']}"
