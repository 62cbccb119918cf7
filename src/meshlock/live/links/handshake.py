"""How a connection becomes a link: who is at the other end, and how the two go on.

::

    dialler                  dialled
       |  <---- Here ---------  |     after TLS has proved both
       |  ----- Hello ------->  |     what I remember of us
       |  <---- Welcome ------  |     how we go on
       |  <---- Carry, Beat ->  |

What two nodes remember of their link is in :mod:`.session`; here no message is carried.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from meshlock.errors import Refused
from meshlock.live.links.admission import HANDSHAKE_SECONDS
from meshlock.live.links.frames import (
    VERSION,
    BadFrame,
    Frame,
    HelloFrame,
    Here,
    RefuseFrame,
    Welcome,
    pack,
)
from meshlock.live.links.link import Ending, LinkConnection
from meshlock.live.machine.limits import MOST_NODES, NAME

if TYPE_CHECKING:
    from meshlock.live.links.mesh import Mesh


class Handshakes:
    """Those of all connections of a node that are under way."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.open: set[LinkConnection] = set()
        self.dialling: dict[str, LinkConnection] = {}  # peer: our own handshake with it

    def begin(self, connection: LinkConnection) -> None:
        self.open.add(connection)
        if not connection.dialled:
            mesh = self.mesh
            connection.write(pack(Here(VERSION, mesh.name, mesh.boot, connection.host)))

    def end(self, connection: LinkConnection) -> None:
        """One way or the other."""
        self.open.discard(connection)
        if self.dialling.get(connection.peer) is connection:
            del self.dialling[connection.peer]

    def tick(self, now: float) -> None:
        for connection in list(self.open):
            if now - connection.began > HANDSHAKE_SECONDS:
                connection.abort("handshake timed out")

    def receive(self, connection: LinkConnection, frame: Frame) -> None:
        if isinstance(frame, RefuseFrame):
            ending = Ending.MUTUAL if frame.mutual else Ending.BROKEN
            connection.close(f"refused by peer: {frame.reason[:200]}", ending)
        elif isinstance(frame, Here) and connection.dialled and connection.hello is None:
            self.greet(connection, frame)
        elif isinstance(frame, HelloFrame) and not connection.dialled:
            self.welcome(connection, frame)
        elif isinstance(frame, Welcome) and connection.hello is not None:
            session = self.mesh.session_of(connection.peer)
            ended = session.obey(frame, connection.hello)
            if ended is None:
                connection.close("linked by another connection")
            else:
                connection.open(session, frame.received)
                self.mesh.opened(connection, frame.up, ended)
        else:
            raise BadFrame(f"{type(frame).__name__.removesuffix('Frame')} out of turn")

    def greet(self, connection: LinkConnection, here: Here) -> None:
        """Whom we have dialled says who it is."""
        mesh = self.mesh
        if here.boot == mesh.boot:
            why = "this is the node's own address"
            connection.write(pack(RefuseFrame(why, mutual=True)))
            connection.close(why, Ending.OURSELVES)
            return
        refusal = self.doubts(connection, here)
        linked = self.is_linked(here.name) and mesh.sessions[here.name].peer_boot == here.boot
        if refusal is not None or linked:  # it reached us first
            connection.refuse(refusal or RefuseFrame("linked already", mutual=True))
            return
        session = mesh.session_of(here.name)
        self.dialling[here.name] = connection
        connection.hello = session.hello(connection.host)
        connection.write(pack(connection.hello))

    def welcome(self, connection: LinkConnection, hello: HelloFrame) -> None:
        """Somebody who dialled in says who it is."""
        refusal = self.doubts(connection, hello) or self.obstacle(hello)
        if refusal is not None:
            connection.refuse(refusal)
            return
        session = self.mesh.session_of(hello.name)
        welcome, ended = session.welcome(hello)
        connection.write(pack(welcome))
        connection.open(session, hello.received if hello.known == self.mesh.boot else 0)
        self.mesh.opened(connection, welcome.up, ended)

    def doubts(self, connection: LinkConnection, frame: Here | HelloFrame) -> RefuseFrame | None:
        """Is this somebody we can talk to, and who it has proved to be?"""
        name, mesh = frame.name, self.mesh
        connection.peer, connection.seen = name, frame.seen
        try:
            proved = mesh.proved(connection)
        except Refused as error:
            return RefuseFrame(str(error))
        if frame.version != VERSION:
            return RefuseFrame(f"protocol version {frame.version}, expected {VERSION}")
        if proved is not None and proved != name:
            return RefuseFrame(
                f"it uses the name {name[:64]!r}, but its certificate names {proved!r}"
            )
        if not re.fullmatch(NAME, name):
            return RefuseFrame(f"{name[:64]!r} is not a valid node name")
        if name == mesh.name:
            return RefuseFrame(f"it has this node's name, {name!r}; names must differ")
        if mesh.barred(name):
            return RefuseFrame("the link is cut on purpose for a while")
        return None

    def is_linked(self, peer: str) -> bool:
        """Has it a connection of which anything was heard lately?"""
        before = self.mesh.open.get(peer)
        return before is not None and self.mesh.time() - before.heard < self.mesh.dead

    def obstacle(self, hello: HelloFrame) -> RefuseFrame | None:
        """Why somebody who dialled in cannot have a link just now."""
        mesh, peer = self.mesh, hello.name
        ours = self.dialling.get(peer)
        if ours is not None and not ours.reason and mesh.name < peer:
            return RefuseFrame("both nodes dialled, and the other connection is kept", mutual=True)
        if self.is_linked(peer):
            session = mesh.sessions[peer]
            if session.peer_boot != hello.boot:
                return RefuseFrame(f"another process with the name {peer!r} is linked already")
            if hello.generation < session.generation:  # said before we were linked
                return RefuseFrame("linked already", mutual=True)
        if peer not in mesh.sessions and not self.has_room():
            return RefuseFrame(f"more than {MOST_NODES} peers")
        return None

    def has_room(self) -> bool:
        """For one more session. Those that are down make room if there never was a message either
        way, or if the peer has left and nothing waits for it."""
        sessions, left = self.mesh.sessions, self.mesh.link_map.left
        if len(sessions) >= MOST_NODES:
            for peer, session in list(sessions.items()):
                used = session.waiting or ((session.sent or session.received) and not left(peer))
                if not (session.up or used or peer in self.dialling):
                    del sessions[peer]
        return len(sessions) < MOST_NODES
