"""A link fails with the token on it. The way round the failure is still open: use it.

The sender cannot know whether the token had arrived. So it sends the oldest message in
custody through all its other neighbours, who hand it on to theirs; its receiver takes it if
it is the next in the numbering of custody, and in any case sends a receipt back the same
way. The sender repeats that until the receipt comes or the link returns, whichever is first.
A message that comes by both ways is taken once, because the number is the same.

A receiver that has not noticed the failure yet is told so by the first message that comes
by a detour: its link goes down before the message is taken, so that nothing that is still
underway on the old connection can be heard after it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from meshlock.live.links.frames import BadFrame, Carry, Detour, pack

if TYPE_CHECKING:
    from meshlock.live.links.link import Connection
    from meshlock.live.links.mesh import Mesh

REMEMBERED = 4096


class Detours:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.next_attempt: dict[str, float] = {}  # peer: when to try again
        self.attempts = 0
        self.seen: OrderedDict[tuple[str, int, str, int, int, bool], None] = OrderedDict()

    def tick(self, now: float) -> None:
        for peer, session in self.mesh.sessions.items():
            if session.up or not session.custody or session.peer_boot == 0:
                continue
            if now >= self.next_attempt.get(peer, 0.0):
                self.next_attempt[peer] = now + self.mesh.dead
                self.attempts += 1
                number, pool, kind, args = session.custody[0]
                frame = Detour(
                    self.mesh.name,
                    self.mesh.boot,
                    peer,
                    session.peer_boot,
                    session.generation,
                    number,
                    self.attempts,
                    pool,
                    kind,
                    args,
                )
                self.is_new(frame)
                self.spread(frame, None)

    def hear(self, connection: Connection, frame: Detour) -> None:
        if not self.is_new(frame):
            return
        mesh = self.mesh
        if frame.args is not None and frame.target == mesh.name:
            self.take(frame)
        elif frame.args is None and frame.origin == mesh.name:
            self.receipt(frame)
        else:
            self.spread(frame, connection)

    def take(self, frame: Detour) -> None:
        """It is for us: take it if it is the next, and say what we have."""
        mesh = self.mesh
        session = mesh.sessions.get(frame.origin)
        if session is None or frame.target_boot != mesh.boot:
            return
        if session.peer_boot != frame.origin_boot:
            return
        if session.up:
            if session.generation > frame.generation:
                return  # sent before the link returned
            mesh.fail(frame.origin, "it has given us up, others say")
        if frame.custody == session.custody_received + 1 and frame.args is not None:
            session.custody_received = frame.custody
            message = Carry(0, 0, frame.custody, frame.pool, frame.kind, frame.args)
            try:
                mesh.owner.message(frame.origin, message)
            except BadFrame as error:  # whoever carried it is innocent
                mesh.refusals.note(frame.origin, f"it sent {error}")
        if frame.custody <= session.custody_received:
            self.attempts += 1
            receipt = Detour(
                frame.origin,
                frame.origin_boot,
                frame.target,
                frame.target_boot,
                frame.generation,
                session.custody_received,
                self.attempts,
                "",
                "",
                None,
            )
            self.is_new(receipt)
            self.spread(receipt, None)

    def receipt(self, frame: Detour) -> None:
        """Ours has arrived; the next in custody may follow at once."""
        session = self.mesh.sessions.get(frame.target)
        if session is None or session.up or frame.origin_boot != self.mesh.boot:
            return
        if session.peer_boot != frame.target_boot:
            return
        while session.custody and session.custody[0][0] <= frame.custody:
            session.custody.popleft()
            self.next_attempt.pop(frame.target, None)
        self.tick(self.mesh.time())

    def spread(self, frame: Detour, source: Connection | None) -> None:
        data = pack(frame)
        for connection in self.mesh.open.values():
            if connection is not source and (frame.args is None or connection.peer != frame.origin):
                connection.write(data)

    def is_new(self, frame: Detour) -> bool:
        key = (
            frame.origin,
            frame.origin_boot,
            frame.target,
            frame.custody,
            frame.attempt,
            frame.args is None,
        )
        if key in self.seen:
            return False
        self.seen[key] = None
        if len(self.seen) > REMEMBERED:
            self.seen.popitem(last=False)
        return True
