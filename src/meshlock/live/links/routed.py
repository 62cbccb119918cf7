"""Send to any node of the mesh: one link after the other, on shortest ways of the link map.

There are two guarantees. *Best effort* (:meth:`Router.send`): a message is dropped where its
way ends or a connection is full; it may come late, or twice if links change meanwhile, and
whoever needs an answer asks again. *Reliable*: whatever is in custody (:mod:`.session`) for a
process that we have no link to. It arrives exactly once and in order, by number, as long as
both processes live; it waits while there is no way, and what waits is bounded in bytes. So a
token on a link that failed goes round the failure, and an algorithm for fixed networks does
not notice which links there are.

The receiver takes the next number and no other. It sends a receipt with the next heartbeat,
unless a message of its own takes it along; without a receipt for ``dead`` seconds all that is in
custody is sent again, a window at a time. A receiver that has not noticed yet that the link
failed is told so by the first message that comes another way: its link goes down before that is
taken, so that nothing that is still under way on the old connection can be received after it.

*Boots*: a receipt of another process than was written to says so, and ends custody, like a
handshake. A sender that was not known before, or restarted, is believed if the map agrees.

Relays look at the header only; what is inside was encoded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from meshlock.live.links.frames import BadFrame, Content, Routed, pack
from meshlock.live.links.session import Session

if TYPE_CHECKING:
    from meshlock.live.links.link import Connection
    from meshlock.live.links.mesh import Mesh

WINDOW = 256
"""So many messages to one process may be under way without a receipt."""

RECEIPT = Content("", 0, "", b"")


class Router:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.sent: dict[str, int] = {}  # target: the last number that was sent this way
        self.repeat_at: dict[str, float] = {}  # target: when to begin again with the first
        self.owed: set[str] = set()  # who waits for a receipt

    # -- sending -----------------------------------------------------------------------

    def send(self, target: str, content: Content, urgent: bool = True) -> None:
        """Best effort."""
        self.put(target, content, 0, urgent)

    def advance(self, session: Session, urgent: bool = True) -> None:
        """Send what is in custody for a process without a link, as far as the window reaches."""
        custody, peer = session.custody, session.peer
        if session.up or not custody or self.way(peer) is None:
            return
        if session.peer_boot == 0:
            session.meet(self.mesh.link_map.records[peer].boot)
        first = custody[0][0]
        self.repeat_at.setdefault(peer, self.mesh.time() + self.mesh.dead)
        sent = max(self.sent.get(peer, 0), first - 1)
        for place in range(sent + 1 - first, min(len(custody), WINDOW)):
            number, content = custody[place]
            if not self.put(peer, content, number, urgent):
                break
            sent = number
        self.sent[peer] = sent

    def put(self, target: str, content: Content, number: int, urgent: bool, known: int = 0) -> bool:
        """On the link that leads there, if there is one that can take it."""
        mesh = self.mesh
        connection = self.way(target)
        if connection is None:
            return False
        generation, acknowledged = 0, 0
        session = mesh.sessions.get(target)
        if session is not None and known in (0, session.peer_boot):
            known, generation = session.peer_boot, session.generation
            acknowledged = session.custody_received
            self.owed.discard(target)
        hops = 2 * (mesh.link_map.distance(target) or 0) + 4
        stamp = mesh.stamped(connection.peer, content.since) if content.since else None
        header = (mesh.name, target, hops, mesh.boot, known, generation, number, acknowledged)
        frame = Routed(*header, *content[:4], stamp)
        connection.pending.append(pack(frame))
        mesh.hurry(connection, urgent)
        return True

    def way(self, target: str) -> Connection | None:
        """The connection that a message to this node takes; None if there is none that can."""
        step = self.mesh.link_map.route(target)
        connection = self.mesh.open.get(step) if step is not None else None
        return connection if connection is not None and not connection.paused else None

    def relay(self, frame: Routed) -> None:
        mesh = self.mesh
        connection = self.way(frame.target)
        if connection is not None and frame.hops > 0:
            stamp = frame.stamp
            if stamp is not None:
                stamp = mesh.stamped(connection.peer, mesh.clock() - mesh.age(stamp))
            onward = msgspec.structs.replace(frame, hops=frame.hops - 1, stamp=stamp)
            connection.pending.append(pack(onward))
            mesh.hurry(connection, urgent=True)

    def busy(self) -> bool:
        """Is anything in custody under way?"""
        waiting = [one for one in self.mesh.sessions.values() if one.custody and not one.up]
        return any(self.way(session.peer) is not None for session in waiting)

    def tick(self, now: float) -> None:
        """Once per heartbeat: receipts that nothing took along, and what had none for too long."""
        for target in list(self.owed):
            self.put(target, RECEIPT, self.mesh.boot, urgent=False)
        self.owed.clear()
        for peer, session in list(self.mesh.sessions.items()):
            if session.up or not session.custody:
                self.repeat_at.pop(peer, None)
            elif now >= self.repeat_at.get(peer, 0.0):
                self.repeat_at.pop(peer, None)
                self.sent.pop(peer, None)
                self.advance(session)

    # -- receiving ---------------------------------------------------------------------

    def receive(self, bearer: str, frame: Routed) -> None:
        if frame.target != self.mesh.name:
            self.relay(frame)
        elif frame.origin == bearer or frame.origin in self.mesh.link_map.records:
            if frame.known == self.mesh.boot:
                self.acknowledge(frame)
            if frame.kind and (frame.number == 0 or self.take(frame)):
                self.deliver(bearer, frame)

    def deliver(self, bearer: str, frame: Routed) -> None:
        try:
            self.mesh.receive(frame.origin, frame)
        except BadFrame as error:
            if frame.origin == bearer:
                raise
            self.mesh.refusals.note(frame.origin, f"it sent {error}")  # the bearer is innocent

    def take(self, frame: Routed) -> bool:
        """Is it the next in custody, of the life and to the life that count?"""
        mesh, origin = self.mesh, frame.origin
        if frame.known != mesh.boot:
            self.put(origin, RECEIPT, frame.known, urgent=False, known=frame.boot)
            return False
        session = self.session_with(frame)
        if session is None:
            return False
        if session.up:
            if session.generation > frame.generation:
                return False  # sent before the link returned
            mesh.fail(origin, "it has given us up, others say")
        self.owed.add(origin)
        if frame.number != session.custody_received + 1:
            session.repeats += 1
            return False
        session.custody_received = frame.number
        return True

    def session_with(self, frame: Routed) -> Session | None:
        """What we remember of the process that sent this; None if it is over, or not yet known."""
        mesh = self.mesh
        session = mesh.sessions.get(frame.origin)
        if session is not None and session.peer_boot == frame.boot:
            return session
        record = mesh.link_map.records.get(frame.origin)
        if record is None or record.boot != frame.boot or (session is not None and session.up):
            return None
        session = mesh.session_of(frame.origin)
        self.meet(session, frame.boot)
        return session

    def acknowledge(self, frame: Routed) -> None:
        """Every message takes along how many of ours have arrived."""
        session = self.mesh.sessions.get(frame.origin)
        if session is None or session.up:
            return
        if frame.boot == session.peer_boot:
            if session.custody and session.custody[0][0] <= frame.acknowledged:
                session.arrived(frame.acknowledged)
                self.repeat_at.pop(session.peer, None)
                self.advance(session)
        elif frame.kind == "" and frame.number == session.peer_boot:  # whom we wrote to is no more
            self.meet(session, frame.boot)

    def meet(self, session: Session, boot: int) -> None:
        session.meet(boot)
        self.sent.pop(session.peer, None)
        self.mesh.report_forsaken(session.peer)
