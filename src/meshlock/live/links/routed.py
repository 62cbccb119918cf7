"""Send to any node of the mesh: one link after the other, on shortest ways of the link map.

There are two guarantees. *Best effort* (:meth:`Router.send`): a message is dropped where its
way ends or a connection is full; it may come late, and a node that needs an answer asks again.
*Reliable*: whatever custody keeps (:mod:`.session`) for a process that we have no link to. It
arrives exactly once and in order, by number, as long as both processes live; it waits while there
is no way, and what waits is bounded in bytes. So a token on a link that failed goes round the
failure, and an algorithm for fixed networks does not notice which links there are.

The receiver takes the next number and no other. It sends a receipt with the next heartbeat,
unless a message of its own takes it along; without a receipt for ``dead`` seconds all that is in
custody is sent again, a window at a time. A receiver that has not noticed yet that the link
failed is told so by the first message that comes another way: its link goes down before that is
taken, so that nothing that is still under way on the old connection can be received after it.

*Who sent it*: to a neighbour a message goes over the link, and TLS has proved whose that is. To
others it goes in an envelope, with a tag that only its two ends can make (:mod:`.identity`), and
each envelope is taken once, by its serial, which grows. Relays see where it goes, and can only
lose it.

*Boots*: which process is at the other end, it says itself, in answer to a question that nobody
has asked before. So what a relay has kept of a former life of it changes nothing. The answer
brings its clock along, too, by which the travel of a token is bounded.
"""

from __future__ import annotations

import secrets
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from meshlock.live.links.frames import (
    BadFrame,
    Content,
    Envelope,
    RoutedFrame,
    encode,
    pack,
    reader,
    unsealed,
)
from meshlock.live.links.link import LinkConnection
from meshlock.live.links.rate_limit import keep_latest
from meshlock.live.links.session import LinkSession
from meshlock.live.machine.limits import MOST_NODES, Clock, Count

if TYPE_CHECKING:
    from meshlock.live.links.mesh import Mesh

WINDOW = 256  # messages to one process that may be under way without a receipt

FRESH = 2.0  # seconds for which the clock of another process is as good as new to a token
RECEIPT = Content("", 0, "", b"")
QUESTION, ANSWER = "who", "me"
"""Between routers: which process is there, and what does its clock say?"""

read_question = reader(Count, "a routed question")
read_answer = reader(tuple[Count, Clock], "a routed answer")


class Router:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.asked: dict[str, tuple[int, float]] = {}  # who: an open question, and since when
        self.serial = 0  # of the last envelope
        self.seen: dict[str, tuple[int, int]] = {}  # origin: its boot, and its last serial

    # -- sending -----------------------------------------------------------------------

    def send(self, target: str, content: Content, urgent: bool = True) -> None:
        """Best effort. A token whose age cannot be told well arrives as an old one; a node
        that sends it again will know better."""
        if content.since and not self.knows_clock(target):
            self.ask(target)
        self.enqueue(target, content, urgent)

    def advance(self, session: LinkSession, urgent: bool = True) -> None:
        """Send what custody keeps for a process without a link, as far as the window reaches."""
        peer, before = session.peer, session.acknowledged
        if session.up or not session.waiting or self.way(peer) is None:
            return
        if session.peer_boot == 0:
            self.ask(peer)
            return
        if session.repeat_at is None:
            session.repeat_at = self.mesh.time() + self.mesh.dead
        for number, _, content, _ in islice(session.waiting, WINDOW):
            if number > session.routed:
                if content.since and not self.knows_clock(peer):
                    self.ask(peer)
                    break
                if not self.enqueue(peer, content, urgent, number, number - before - 1):
                    break
                session.routed = number
            before = number

    def enqueue(
        self, target: str, content: Content, urgent: bool, number: int = 0, gap: int = 0
    ) -> bool:
        """On the link that leads there, if there is one that can take it."""
        mesh = self.mesh
        connection = self.way(target)
        if connection is None:
            return False
        known, generation, acknowledged = 0, 0, 0
        session = mesh.sessions.get(target)
        if session is not None:
            known, generation = session.peer_boot, session.generation
            acknowledged = session.received
            if not session.up:
                session.told = acknowledged
        stamp = mesh.stamped(target, content.since) if content.since else None
        direct = connection.peer == target
        self.serial += not direct
        header = (mesh.boot, known, self.serial, generation, number, gap, acknowledged)
        message = RoutedFrame(*header, *content[:4], stamp)
        connection.pending.append(pack(message if direct else self.enclosed(target, message)))
        mesh.hurry(connection, urgent)
        return True

    def enclosed(self, target: str, message: RoutedFrame) -> Envelope:
        mesh, content, tag = self.mesh, encode(message), b""
        if mesh.security.identity is not None:
            key = mesh.link_map.records[target].key
            tag = mesh.security.identity.tag(key, mesh.name, target, content)
        hops = 2 * (mesh.link_map.distance(target) or 0) + 4
        return Envelope(mesh.name, target, hops, tag, content)

    def way(self, target: str) -> LinkConnection | None:
        """The connection that a message to this node takes; None if there is none that can."""
        connection = self.mesh.open.get(target)
        if connection is None:
            step = self.mesh.link_map.route(target)
            connection = self.mesh.open.get(step) if step is not None else None
        return connection if connection is not None and not connection.paused else None

    def relay(self, envelope: Envelope) -> None:
        connection = self.way(envelope.target)
        if connection is not None and envelope.hops > 0:
            onward = msgspec.structs.replace(envelope, hops=envelope.hops - 1)
            connection.pending.append(pack(onward))
            self.mesh.hurry(connection, urgent=True)

    def busy(self) -> bool:
        """Is any custody message under way?"""
        waiting = [one for one in self.mesh.sessions.values() if one.waiting and not one.up]
        return any(self.way(session.peer) is not None for session in waiting)

    def tick(self, now: float) -> None:
        """Once per heartbeat: receipts that nothing took along, and what had none for too long."""
        for peer, session in list(self.mesh.sessions.items()):
            if session.told < session.received and not session.up:
                self.enqueue(peer, RECEIPT, urgent=False)
            if session.up or not session.waiting:
                session.repeat_at = None
                continue
            record = self.mesh.link_map.records.get(peer)
            if record is not None and record.boot != session.peer_boot:
                self.ask(peer)  # whom we wrote to may be no more
            if now >= (session.repeat_at or 0.0):
                session.repeat_at = None
                session.routed = 0
                self.advance(session)
        for peer, (_, since) in list(self.asked.items()):
            if now - since > 2 * self.mesh.dead:
                del self.asked[peer]

    # -- who is there ------------------------------------------------------------------

    def ask(self, target: str) -> None:
        """Which process is it, and what does its clock show? Again after ``dead`` seconds."""
        now = self.mesh.time()
        number, since = self.asked.get(target, (0, 0.0))
        if number == 0 or now - since >= self.mesh.dead:
            number = secrets.randbits(52) + 1
            if self.enqueue(target, Content("", 0, QUESTION, encode(number)), urgent=True):
                self.asked[target] = (number, now)

    def knows_clock(self, peer: str) -> bool:
        told, held = self.mesh.stamp(peer)
        return 0 <= held < FRESH * 1e9 and told > -(2**61)

    def is_asked(self, origin: str, message: RoutedFrame) -> None:
        """Who asks will write to us: by then we know it, too."""
        session = self.mesh.sessions.get(origin)
        if session is None or not (session.up or session.peer_boot == message.boot):
            self.ask(origin)
        answer = encode((read_question(message.payload), self.mesh.clock()))
        self.enqueue(origin, Content("", 0, ANSWER, answer), urgent=True)

    def is_answered(self, origin: str, message: RoutedFrame) -> None:
        mesh = self.mesh
        number, clock = read_answer(message.payload)
        if self.asked.get(origin, (0, 0.0))[0] != number:
            return  # to nothing that we have asked
        del self.asked[origin]
        if origin not in mesh.sessions and not mesh.handshakes.has_room():
            return
        session = mesh.session_of(origin)
        if session.up:
            return
        mesh.clocks[origin] = (message.boot, clock, mesh.clock())
        if session.peer_boot != message.boot:
            session.meet(message.boot)
            mesh.report_forsaken(origin)
        self.advance(session)

    # -- receiving ---------------------------------------------------------------------

    def arrives(self, bearer: str, envelope: Envelope) -> None:
        """From a node that is no neighbour, for us or for others."""
        mesh, origin = self.mesh, envelope.origin
        if envelope.target != mesh.name:
            self.relay(envelope)
            return
        record = mesh.link_map.records.get(origin)
        if record is None or origin == mesh.name:
            return
        identity = mesh.security.identity
        content = envelope.content
        if identity is not None and not identity.proves(
            *(record.key, origin, mesh.name, content, envelope.tag)
        ):
            mesh.refusals.note(bearer, f"it forwarded a message that {origin} did not send")
            return
        try:
            message = unsealed(content)
            if self.is_new(origin, message):
                self.receive(origin, message)
            else:
                mesh.refusals.note(bearer, f"it forwarded a message of {origin} again, or too late")
        except BadFrame as error:
            mesh.refusals.note(origin, f"it sent {error}")  # the bearer is innocent

    def is_new(self, origin: str, message: RoutedFrame) -> bool:
        """Newer than all that came from that process. What was overtaken, on another way, is lost:
        what is reliable is sent again."""
        boot, highest = self.seen.get(origin, (0, 0))
        if boot == message.boot and message.serial <= highest:
            return False
        keep_latest(self.seen, origin, (message.boot, message.serial), 2 * MOST_NODES)
        return True

    def receive(self, origin: str, message: RoutedFrame) -> None:
        if message.kind == QUESTION:
            self.is_asked(origin, message)
        elif message.kind == ANSWER:
            self.is_answered(origin, message)
        else:
            session = self.mesh.sessions.get(origin)
            if session is not None and message.known == self.mesh.boot:
                self.acknowledge(session, message)
            if message.kind and (message.number == 0 or self.take(origin, session, message)):
                self.mesh.receive(origin, message)

    def acknowledge(self, session: LinkSession, message: RoutedFrame) -> None:
        """Every message takes along how many of ours have arrived."""
        fresh = message.acknowledged > session.acknowledged and not session.up
        if fresh and message.boot == session.peer_boot:
            session.acknowledge(message.acknowledged)
            session.repeat_at = None
            self.advance(session)

    def take(self, origin: str, session: LinkSession | None, message: RoutedFrame) -> bool:
        """Is it the next custody message, of the life and to the life that count?"""
        mesh = self.mesh
        if message.known != mesh.boot:
            return False
        if session is None or session.peer_boot != message.boot:
            if session is None or not session.up:
                self.ask(origin)
            return False
        if session.up:
            if session.generation > message.generation:
                return False  # sent before the link returned
            mesh.fail(origin, "the peer has ended the link, as other nodes report")
        is_next = session.is_next(message.number, message.gap)
        session.told = 0  # a receipt is due, again if it was lost
        return is_next
