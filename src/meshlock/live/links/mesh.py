"""A node's links: who is dialled, who may dial in, who is there, who is gone.

The mesh keeps one :class:`~.session.LinkSession` per peer name for as long as the process
lives, and at most one open connection for each. It tells its owner of ``up`` and ``down``,
and each of its ``receivers`` what came for it, in the order in which the algorithms must learn
of them, and carries what they send. A peer is *down* when nothing was heard of it for ``dead``
seconds, however many connections have come and gone meanwhile. No payload is read here.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from logging import ERROR, INFO, WARNING
from pathlib import Path
from time import clock_gettime_ns
from typing import TYPE_CHECKING, Any, Protocol

from meshlock.errors import Refused
from meshlock.live.links.admission import Admission
from meshlock.live.links.dialler import Dialler
from meshlock.live.links.frames import (
    BadFrame,
    Beat,
    Bye,
    Carry,
    Content,
    Envelope,
    Frame,
    LinksFrame,
    RoutedFrame,
    Stamp,
    pack,
)
from meshlock.live.links.handshake import Handshakes
from meshlock.live.links.link import Ending, LinkConnection, Receiver
from meshlock.live.links.link_map import LinkMap
from meshlock.live.links.rate_limit import TokenBuckets
from meshlock.live.links.reach import Reach
from meshlock.live.links.refusals import Refusals
from meshlock.live.links.routed import Router
from meshlock.live.links.security import Security
from meshlock.live.links.session import LinkSession, Overflow
from meshlock.live.machine import clock
from meshlock.live.machine.error_text import error_text
from meshlock.live.machine.failures import Failures
from meshlock.live.machine.limits import SPAN
from meshlock.live.machine.logs import log_event
from meshlock.live.machine.loop import Lag

if TYPE_CHECKING:
    from meshlock.live.links.zenoh_carrier import ZenohCarrier


STORED_OF_EACH, STORED_OF_ALL = 1024 * 1024, 16 * 1024 * 1024
"""Bytes of messages of one peer, and of all, that cannot be read yet: before the configuration of
their pool, or their epoch."""

NEVER = -(2**62)  # in a stamp: no clock has been told yet
DRIFT = 0.01  # clocks run at rates that differ from true time by at most this factor


class LinkOwner(Protocol):
    """What the node is told."""

    def up(self, peer: str) -> None: ...
    def down(self, peer: str) -> None: ...
    def map_changed(self) -> None: ...
    def friends(self) -> set[str]: ...
    def receiver(self, sender: str, pool: str) -> Receiver | None: ...


class Mesh:
    def __init__(
        self,
        name: str,
        boot: int,
        security: Security,
        owner: LinkOwner,
        heartbeat: float,
        dead: float,
        clock_rate: float = 1.0,
        min_links: int = 0,
        advertise: str | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.boot = boot
        self.security = security
        self.owner = owner
        self.receivers: dict[str, Receiver] = {}  # by the name of their pool
        self.heartbeat = heartbeat
        self.dead = dead
        self.clock_rate = clock_rate
        self.clock: Callable[[], int] = (
            partial(clock_gettime_ns, clock.AWAKE_OR_NOT)
            if clock_rate == 1.0
            else lambda: int(clock.nanoseconds() * clock_rate)
        )
        """Nanoseconds, from no particular moment on; it goes on while the machine sleeps. It runs
        faster or slower than it should only in tests of what is promised then."""
        self.sessions: dict[str, LinkSession] = {}
        self.open: dict[str, LinkConnection] = {}
        self.heard: dict[str, float] = {}  # peer: when its last connection fell silent
        self.handshakes = Handshakes(self)
        self.linked: set[str] = set()  # peers that the owner knows to be up
        self.dirty: list[LinkConnection] = []
        self.cuts: dict[str, float] = {}  # links that are cut on purpose: until when
        self.in_doubt = 0  # messages with permits that a restarted peer may have taken along
        self.refusals = Refusals()
        self.stored = TokenBuckets(STORED_OF_EACH, STORED_OF_ALL)
        self.loop = asyncio.get_running_loop()
        self.failures = Failures(self.loop)
        self.router = Router(self)
        self.clocks: dict[str, tuple[int, int, int]] = {}  # peer: its boot, its clock, when it came
        self.zenoh: ZenohCarrier | None = None
        self.address = ""
        self.tasks: set[asyncio.Task[Any]] = set()
        self.time: Callable[[], float] = self.loop.time
        self.admission = Admission(self)
        self.dialler = Dialler(self)
        self.ticking = self.failures.later(heartbeat, "tick", self.tick)
        self.link_map = LinkMap(self)
        self.reach = Reach(self, min_links, advertise, folder)
        self.lag = Lag()

    # -- sending -----------------------------------------------------------------------

    def session_of(self, peer: str) -> LinkSession:
        session = self.sessions.get(peer)
        if session is None:
            stamp = partial(self.stamped, peer)
            session = self.sessions[peer] = LinkSession(self.name, self.boot, peer, stamp)
        return session

    def send(self, peer: str, content: Content, custody: bool = False, urgent: bool = True) -> None:
        """Put a message to a neighbour on its way. With custody it may be for any node: it arrives
        exactly once, and in order, unless one of both processes ends."""
        session = self.sessions.get(peer) or self.session_of(peer)
        try:
            frame = session.send(content, custody)
        except Exception as error:
            # To the algorithms a link carries everything or has failed.
            too_many = isinstance(error, Overflow)
            why = "too many unacknowledged messages" if too_many else "internal error while sending"
            self.loop.call_soon(self.failures.run, "link", self.fail, peer, why)
            if not too_many:
                raise
            self.refusals.note(peer, str(error))
            return
        if session.up:
            connection = self.open.get(peer)
            if connection is not None:
                connection.push(session, frame)
                self.hurry(connection, urgent)
        elif custody:
            self.router.advance(session, urgent)

    def hurry(self, connection: LinkConnection, urgent: bool) -> None:
        """What is pending there leaves with the next :meth:`flush`, or, if it is not urgent, with
        the next that is, but before the next heartbeat."""
        if urgent and not connection.dirty:
            connection.dirty = True
            self.dirty.append(connection)

    def flush(self) -> None:
        """Write what has been sent since the last time, one write per link."""
        if self.dirty:
            for connection in self.dirty:
                connection.dirty = False
                connection.flush()
            self.dirty.clear()

    # -- what connections ask and tell -------------------------------------------------

    def proved(self, connection: LinkConnection) -> str | None:
        """The name that its other end has proved; None where nothing is proved."""
        assert connection.transport is not None
        if self.zenoh is not None and self.zenoh.carries(connection.transport):
            return None  # Zenoh decides who may speak there
        return self.security.vouched(connection.transport)

    def opened(self, connection: LinkConnection, resumed: bool, ended: bool) -> None:
        """A handshake is done; ``ended`` says that the generation before it is over."""
        peer = connection.peer
        self.handshakes.end(connection)
        before = self.open.get(peer)
        if before is not None:
            before.abort("replaced by a newer connection")
        self.open[peer] = connection
        connection.beat()
        if ended:
            self.notify_down(peer, "the peer had ended the link")
        self.report_forsaken(peer)
        if not resumed:
            log_event(INFO, "link up", peer=peer, address=connection.address)
            self.linked.add(peer)
            self.link_map.relinked()
            self.owner.up(peer)
        self.link_map.opened(peer)

    def report_forsaken(self, peer: str) -> None:
        """A peer that restarted took along what it had, and may have had what we kept for it."""
        session = self.sessions[peer]
        if session.forsaken:
            log_event(ERROR, "permits in doubt", peer=peer, messages=session.forsaken)
            self.in_doubt += session.forsaken
            session.forsaken = 0

    def parting(self, connection: LinkConnection) -> None:
        """The peer is leaving: it is no neighbour any more, but what is under way counts."""
        self.reach.spare(connection.peer)
        self.notify_down(connection.peer, "the peer left")
        if not connection.parting:
            self.part(connection)

    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None:
        receiver = self.receivers.get(frame.pool) or self.owner.receiver(sender, frame.pool)
        if receiver is not None:
            receiver.receive(sender, frame)

    def receive_other(self, connection: LinkConnection, frame: Frame) -> None:
        peer = connection.peer
        if isinstance(frame, Beat):
            session = self.sessions[peer]
            session.acknowledge(frame.acknowledged)
            self.clocks[peer] = (session.peer_boot, frame.clock, self.clock())
        elif isinstance(frame, Bye):
            self.parting(connection)
        elif isinstance(frame, RoutedFrame):
            self.router.receive(peer, frame)
        elif isinstance(frame, Envelope):
            self.router.arrives(peer, frame)
        elif isinstance(frame, LinksFrame):
            self.link_map.receive(peer, frame)
        else:
            raise BadFrame(f"{type(frame).__name__.removesuffix('Frame')} out of turn")

    def lost(self, connection: LinkConnection, reason: str) -> None:
        peer = connection.peer
        self.handshakes.end(connection)
        if self.open.get(peer) is connection:
            del self.open[peer]
            self.heard[peer] = connection.heard
            if peer not in self.linked:  # it said goodbye
                self.sessions[peer].end()
            elif connection.ending is Ending.BAD_FRAME:
                self.refusals.note(peer, reason)
        elif not (connection.dialled or connection.session or connection.ending is Ending.MUTUAL):
            self.refusals.note(connection.address, reason)

    def accuse(self, peer: str, error: BadFrame) -> None:
        """What it sent some time ago turns out to be bad."""
        connection = self.open.get(peer)
        if connection is not None:
            connection.close(f"it sent {error}", Ending.BAD_FRAME)
        else:
            self.refusals.note(peer, f"it sent {error}")

    # -- time --------------------------------------------------------------------------

    def tick(self) -> None:
        """Once per heartbeat: who is silent, who must hear from us."""
        now = self.time()
        self.lag.measure(self.heartbeat)
        self.ticking = self.failures.later(self.heartbeat, "tick", self.tick)
        self.failures.run("silence", self.notice_silence, now)
        self.failures.run("routed", self.router.tick, now)
        self.failures.run("map", self.link_map.tick)
        patient = 3 * self.heartbeat <= self.dead
        for connection in self.open.values():
            connection.tick(patient)
        self.failures.run("accept", self.admission.tick, now)
        self.handshakes.tick(now)

    def notice_silence(self, now: float) -> None:
        for peer in list(self.linked):
            connection = self.open.get(peer)
            heard = connection.heard if connection is not None else self.heard[peer]
            if now - heard > self.dead:
                self.fail(peer, f"no message for {now - heard:.2f} s")

    def fail(self, peer: str, reason: str) -> None:
        """The link has failed: whatever comes next is a new generation."""
        self.sessions[peer].end()
        connection = self.open.pop(peer, None)
        if connection is not None:
            connection.abort(reason)
        self.notify_down(peer, reason)

    def notify_down(self, peer: str, reason: str) -> None:
        if peer in self.linked:
            self.linked.discard(peer)
            self.link_map.relinked()
            log_event(INFO, "link down", peer=peer, reason=reason)
            self.owner.down(peer)
            self.router.advance(self.sessions[peer])
            self.flush()

    # -- how long messages travel ------------------------------------------------------

    def stamp(self, peer: str) -> tuple[int, int]:
        """What a message to this peer takes along, so that it can bound the message's travel.

        The peer's own clock as its latest Beat told, and for how long we have had that Beat.
        """
        session = self.sessions.get(peer)
        boot, told, came = self.clocks.get(peer, (0, NEVER, 0))
        if session is None or boot != session.peer_boot or told == NEVER:
            return NEVER, 0
        return told, self.clock() - came

    def travelled(self, stamp: tuple[int, int]) -> int:
        """No message with this stamp, made for us, was under way for longer; nanoseconds.

        Call the moments: our Beat is written at *a* and read by the sender at *b*; the message
        is stamped at *c* and read by us at *d*. The stamp is (our clock at a, c - b), so the
        result is (d - a) - (c - b) = (d - c) + (b - a): the message's travel, and the Beat's
        on top, which is never negative. It does not matter what made either slow: a full
        buffer, a stopped process (the sender reads its own clock only when it runs, so a stop
        before *b* or after *c* counts in full), a frame that was sent again on another
        connection or by a detour with the stamp it had. A process that restarts never gets
        what was meant for the one before it, so the clock at *a* and at *d* is the same one.

        One thing is not covered: clocks that run at different rates. If each is wrong by at
        most rho, the bound is short by up to rho * (d - a) + rho * (c - b). Beats are sent
        with every heartbeat, or the next, so that c - b is no more than ``dead`` on a link that
        is up.
        """
        told, held = stamp
        return max(0, self.clock() - told - held)

    def stamped(self, peer: str, since: int) -> Stamp:
        """The stamp of a message whose age matters. The peer's clock is taken before the age is,
        so that a process that is stopped in between counts it twice and not never."""
        told, held = self.stamp(peer)
        return max(0, self.clock() - since), told, held

    def age(self, stamp: Stamp) -> int:
        """For how long such a message was under way at most, over all its links: nanoseconds,
        whatever the rates of the clocks are, within what is assumed."""
        before, told, held = stamp
        last = self.travelled((told, held))
        total = before + last + int(DRIFT * (last + 2 * held))
        return min(total, int(SPAN.most))  # longer than any lease, and can still be written down

    # -- cutting links on purpose ------------------------------------------------------

    def cut(self, peer: str, seconds: float) -> None:
        """Have no link to this peer for a while: as if it had failed, to see what happens."""
        if peer not in self.sessions:
            raise Refused(f"There is no link to '{peer}': nothing was cut.")
        self.cuts[peer] = self.time() + seconds
        log_event(WARNING, "link cut on purpose", peer=peer, seconds=seconds)
        for connection in list(self.handshakes.open):
            if connection.peer == peer:
                connection.abort("cut on purpose")
        self.fail(peer, "cut on purpose")

    def restore(self, peer: str) -> None:
        """What was cut may come back; the end that dials will try again soon."""
        self.cuts.pop(peer, None)

    def barred(self, peer: str) -> bool:
        until = self.cuts.get(peer)
        if until is not None and until <= self.time():
            del self.cuts[peer]
            return False
        return until is not None

    # -- what people ask ---------------------------------------------------------------

    def describe(self, peer: str) -> dict[str, Any]:
        session, connection = self.sessions[peer], self.open.get(peer)
        return {
            "up": peer in self.linked,
            "left": self.link_map.left(peer),
            "address": connection.address if connection else None,
            "generation": session.generation,
            "in_flight": len(session.waiting),
            "unacknowledged": len(session.custody),
            "repeats_refused": session.repeats,
            "cut_for": round(self.cuts[peer] - self.time(), 1) if self.barred(peer) else None,
        }

    # -- being dialled -----------------------------------------------------------------

    async def listen(self, host: str, port: int) -> None:
        try:
            found = await self.loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Refused(f"Cannot listen at {host}:{port}: {error_text(error)}.") from None
        family, kind, _, _, where = found[0]
        self.refuse_exposure(str(where[0]))
        listener = socket.socket(family, kind)
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(where)
        except OSError as error:
            listener.close()
            raise Refused(f"Cannot listen at {host}:{port}: {error_text(error)}.") from None
        self.address = f"{where[0]}:{listener.getsockname()[1]}"
        self.admission.listen(listener)

    async def join_zenoh(self, settings: Mapping[str, Any]) -> None:
        from meshlock.live.links.zenoh_carrier import ZenohCarrier

        self.zenoh = await self.loop.run_in_executor(None, ZenohCarrier, self, settings)

    def refuse_exposure(self, host: str) -> None:
        if self.security.server is None and not (host.startswith("127.") or host == "::1"):
            raise Refused(
                f"Unprotected links are only allowed on this machine, and {host} is not "
                "on it: set a secret or certificates."
            )

    # -- ending ------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, None], where: str = "link") -> asyncio.Task[None]:
        task = self.failures.mind(where, self.loop.create_task(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def part(self, connection: LinkConnection) -> None:
        connection.parting = True
        connection.write(pack(Bye()))

    async def leave(self, peer: str) -> None:
        """Say goodbye, and wait until nothing is owed either way."""
        connection = self.open.get(peer)
        if connection is not None and not connection.parting:
            self.part(connection)
        while self.open.get(peer) is connection and connection is not None:
            if peer not in self.linked and not self.sessions[peer].custody:
                return
            await asyncio.sleep(self.heartbeat / 10)

    async def close(self) -> None:
        self.ticking.cancel()
        self.reach.close()
        if not self.linked:
            self.link_map.farewell()
        self.link_map.close()
        self.admission.close()
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        connections = [*self.open.values(), *self.handshakes.open]
        self.linked.clear()
        for connection in connections:
            connection.close("this node is leaving")
        closed = [connection.closed for connection in connections]
        if closed:
            await asyncio.wait(closed, timeout=1.0)
        for connection in connections:
            connection.abort("this node has left")
        if self.zenoh is not None:
            await self.zenoh.close()
