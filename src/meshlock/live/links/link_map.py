"""Every node knows the map: who is linked to whom in the whole mesh, as last heard.

Each node tells which peers it is linked to, and where it listens: a *record*, numbered, told anew
whenever that changes and handed on from neighbour to neighbour. A link counts once both its ends
say so.

How all come to know the same:

1. A record newer than the one we have goes to all neighbours but those who told us the same
   before we told them: mostly it passes each link once.
2. A peer that tells us an older one is told ours.
3. A connection that opens is told all records of nodes that we can reach. That is also why
   records travel outside the numbering of messages: a connection loses nothing while it
   lasts, the next one starts with everything, and nothing need be kept or acknowledged.
4. So are all neighbours of a node that we can reach again: they may have forgotten it.

A node that leaves tells a last record without links. Nobody else can tell such a record, since a
node without links has nobody to tell it to: so those who left differ from those who failed.

Only records of nodes that can be reached matter for who can be reached, and those come from
living nodes. The others are history, forgotten after :data:`FORGET_AFTER` and not passed on
(3), so a mesh whose links come and go does not keep its dead alive.

A node that starts counts from 1. If an older life of it is remembered, it hears so (2), and
counts on from there: no clock decides who is newer.

Nothing is sent while nothing changes. Where nodes prove their names, records are signed by whom
they are of (:mod:`.identity`), and what is not is not believed and not handed on: a node can lie
about its own links only, and a lie about a link needs both ends. Nor can it fill our memory
(:data:`MOST_NODES` nodes, :data:`MOST_LINKS` links, twice that for a moment, and one record of each
owed to each neighbour), or keep us busy (:data:`PER_SECOND`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from meshlock.live.links.frames import LAST_RECORD, BadFrame, LinksFrame, pack
from meshlock.live.links.rate_limit import RateLimits
from meshlock.live.machine.limits import MOST_NODES

if TYPE_CHECKING:
    from meshlock.live.links.mesh import Mesh

FORGET_AFTER = 300.0  # seconds for which a node that cannot be reached stays on the map
MOST_LINKS = 64 * MOST_NODES
"""Links that all nodes on the map may name, each end for itself: some 10 MB."""

PER_SECOND = 1000.0
"""Records that a neighbour may tell in the long run, and this many times as many at once:"""
AT_ONCE = 4.0

BREATH = 0.01
"""Seconds between two drawings of the map, so that many changes cost little; of a large one ..."""
BREATH_PER_NODE = 0.0002  # ... for each node on it
NOBODY: frozenset[str] = frozenset()


class LinkMap:
    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.me = mesh.name
        self.records = {self.me: self.signed(1, ())}
        self.named = 0  # links that all of them name
        self.rates = RateLimits(MOST_NODES)  # neighbour: records that it may tell
        self.unreachable: dict[str, float] = {}  # since when
        self.departed: set[str] = set()  # peers that left, and are on the map no more
        self.owed: dict[str, set[str]] = {}  # neighbour: names whose records it must be told
        self.ways: dict[str, tuple[int, str]] = {}  # node: distance and first step
        self.says: dict[str, frozenset[str]] = {}  # node: its peers, as the map was drawn last
        self.drawn: dict[str, frozenset[str]] = {}
        self.undrawn: set[str] = {self.me}  # whose records are others than then
        self.stale = True
        self.closed = False
        self.told: tuple[Any, ...] = ()  # of the owner: the map it has been told of
        self.last = 0.0
        self.settling: asyncio.TimerHandle | None = None

    # -- what is asked -----------------------------------------------------------------

    @property
    def links(self) -> dict[str, frozenset[str]]:
        """All nodes on the map, each with those it is linked to."""
        self.draw()
        return self.drawn

    def route(self, target: str) -> str | None:
        """The neighbour on a shortest way to another node; None if there is no way."""
        if self.stale:
            self.draw()
        way = self.ways.get(target)
        return way[1] if way is not None and target != self.me else None

    def reaches(self, target: str) -> bool:
        self.draw()
        return target in self.ways

    def distance(self, target: str) -> int | None:
        """Links on the way; None if there is no way."""
        self.draw()
        way = self.ways.get(target)
        return way[0] if way is not None else None

    def left(self, name: str) -> bool:
        """It said goodbye to everybody, and has not come back."""
        record = self.records.get(name)
        if record is None:
            return name in self.departed
        return not self.reaches(name) and not record.peers

    def describe(self) -> dict[str, Any]:
        self.draw()
        now = self.mesh.time()
        since = self.unreachable
        only = only_ways(self.drawn, self.me)
        return {
            name: {
                "links": sorted(near),
                "distance": self.distance(name),
                "unreachable_for": round(now - since[name], 1) if name in since else None,
                "left": self.left(name),
                "only_way": name in only,
            }
            for name, near in sorted(self.links.items())
        }

    # -- what is heard -----------------------------------------------------------------

    def relinked(self) -> None:
        """Our own links have changed."""
        self.publish(self.records[self.me].number + 1)

    def opened(self, peer: str) -> None:
        """A connection is there, which knows nothing yet."""
        if self.records[self.me].addresses != self.mesh.reach.addresses():
            self.relinked()
        self.draw()
        self.owed[peer] = {self.me, *self.ways}
        self.soon()

    def receive(self, peer: str, record: LinksFrame) -> None:
        known = self.records.get(record.name)
        if known is not None and age(record) <= age(known):
            if age(record) < age(known):
                self.owed.setdefault(peer, set()).add(record.name)
                self.soon()
            else:  # it has told us the record that we were about to tell it
                self.owed.get(peer, set()).discard(record.name)
        elif self.believes(peer, record):
            if record.name == self.me:  # of a former life of ours
                self.publish(record.number + 1)
                return
            self.store(record)
            self.departed.discard(record.name)
            self.changed(record.name, peer)
            if len(self.records) >= 2 * MOST_NODES or self.named >= 2 * MOST_LINKS:
                self.make_room()

    def believes(self, peer: str, record: LinksFrame) -> bool:
        """Does the node of that name say so? A neighbour that tells more than it can have heard
        loses the link, for whatever we do not read it would have to tell again."""
        if not self.rates.take(peer, PER_SECOND, self.mesh.time(), AT_ONCE):
            raise BadFrame("more link records than a mesh may have")
        identity = self.mesh.security.identity
        doubts = identity.doubts(record) if identity is not None else ""
        if doubts:
            self.mesh.refusals.note(peer, f"it sent a link record of {record.name}: {doubts}")
        return not doubts

    def store(self, record: LinksFrame) -> None:
        before = self.records.get(record.name)
        self.named += len(record.peers) - (len(before.peers) if before is not None else 0)
        self.records[record.name] = record
        self.undrawn.add(record.name)

    def signed(
        self, number: int, peers: tuple[str, ...], addresses: tuple[str, ...] = ()
    ) -> LinksFrame:
        """Our own record."""
        record = LinksFrame(self.me, self.mesh.boot, number, peers, addresses)
        identity = self.mesh.security.identity
        return record if identity is None else identity.signed(record)

    def publish(self, number: int) -> None:
        number, peers = min(number, LAST_RECORD), tuple(sorted(self.mesh.linked))
        self.store(self.signed(number, peers, self.mesh.reach.addresses()))
        self.changed(self.me, self.me)

    def changed(self, name: str, told_by: str) -> None:
        self.owed.get(told_by, set()).discard(name)
        self.hand_on(name, told_by)
        self.stale = True
        self.soon()

    def hand_on(self, name: str, told_by: str = "") -> None:
        for peer in self.mesh.open:
            if peer != told_by:
                self.owed.setdefault(peer, set()).add(name)

    def farewell(self) -> None:
        """We have said goodbye to all our neighbours: tell them that it was to all."""
        for connection in self.mesh.open.values():
            connection.write(pack(self.records[self.me]))

    # -- drawing and telling -----------------------------------------------------------

    def draw(self) -> None:
        """The links that count, and a shortest way to everybody."""
        if not self.stale:
            return
        self.stale = False
        self.draw_links()
        self.ways = {self.me: (0, self.me)}
        line = deque([self.me])
        while line:
            name = line.popleft()
            distance, step = self.ways[name]
            for peer in sorted(self.drawn[name].difference(self.ways)):
                self.ways[peer] = (distance + 1, peer if name == self.me else step)
                line.append(peer)
        now = self.mesh.time()
        for name in self.records:
            if name not in self.ways:
                self.unreachable.setdefault(name, now)
            elif self.unreachable.pop(name, None) is not None:
                self.hand_on(name)  # (4)

    def draw_links(self) -> None:
        """Those that both ends name; of nodes that said something else since the last time, and of
        whom they named then or name now."""
        says, records, nobody = self.says, self.records, NOBODY
        touched = set(self.undrawn)
        for name in self.undrawn:
            touched |= says.pop(name, nobody)
            if name in records:
                says[name] = frozenset(records[name].peers)
                touched |= says[name]
        self.undrawn = set()
        drawn = dict(self.drawn)  # the owner compares it with the one before
        for name in touched:
            if name in says:
                named = [peer for peer in says[name] if name in says.get(peer, nobody)]
                drawn[name] = frozenset(named)
            else:
                drawn.pop(name, None)
        self.drawn = drawn

    def soon(self) -> None:
        """Many changes at once are one."""
        if self.settling is None and not self.closed:
            breath = max(BREATH, BREATH_PER_NODE * len(self.records))
            wait = self.last + breath - self.mesh.time()
            self.settling = self.mesh.failures.later(max(0.0, wait), "map", self.apply_changes)

    def apply_changes(self) -> None:
        self.settling = None
        self.last = self.mesh.time()
        self.make_room()
        self.pay()
        known = (self.drawn, self.ways.keys())
        if known != self.told:
            self.told = (self.drawn, self.ways.keys())
            self.mesh.owner.map_changed()
            self.mesh.flush()

    def tick(self) -> None:
        """Once per heartbeat."""
        if self.settling is None:  # else what is owed goes out soon
            self.pay()
        now = self.mesh.time()
        for name, since in list(self.unreachable.items()):
            if now - since >= FORGET_AFTER:
                self.forget(name)

    def pay(self) -> None:
        """Tell what is owed to peers that can take it; the rest waits for the next heartbeat."""
        for peer, names in list(self.owed.items()):
            connection = self.mesh.open.get(peer)
            if connection is None:
                del self.owed[peer]
            elif not connection.paused:
                del self.owed[peer]
                records = [self.records[name] for name in names if name in self.records]
                if records:
                    connection.write(b"".join([pack(record) for record in records]))

    # -- forgetting --------------------------------------------------------------------

    def make_room(self) -> None:
        """No more than fit on the map: who has been out of reach for longest makes way, or,
        if there is nobody like that, who came last."""
        self.draw()
        if len(self.records) > MOST_NODES or self.named > MOST_LINKS:
            oldest = sorted(self.unreachable, key=self.unreachable.__getitem__)
            order = [*oldest, *reversed(self.records)]
            order.remove(self.me)
            for name in dict.fromkeys(order):
                if len(self.records) <= MOST_NODES and self.named <= MOST_LINKS:
                    break
                self.forget(name)
            self.draw()

    def forget(self, name: str) -> None:
        if name in self.mesh.sessions and self.left(name):
            self.departed.add(name)
        self.named -= len(self.records.pop(name).peers)
        self.undrawn.add(name)
        self.unreachable.pop(name, None)
        self.stale = True
        self.soon()

    def close(self) -> None:
        self.closed = True
        if self.settling is not None:
            self.settling.cancel()


def only_ways(links: dict[str, frozenset[str]], start: str) -> set[str]:
    """Nodes without which others that can be reached from here could not reach each other: the
    articulation points, found by one walk in depth."""
    order, low = {start: 0}, {start: 0}
    found: set[str] = set()
    path = [(start, iter(sorted(links[start])))]
    branches = 0  # of the walk, at its start
    while path:
        name, left = path[-1]
        for peer in left:
            if peer not in order:
                order[peer] = low[peer] = len(order)
                path.append((peer, iter(sorted(links[peer]))))
                break
            low[name] = min(low[name], order[peer])
        else:
            path.pop()
            if len(path) == 1:
                branches += 1
            elif path:
                above = path[-1][0]
                low[above] = min(low[above], low[name])
                if low[name] >= order[above]:
                    found.add(above)
    return found | {start} if branches > 1 else found


def age(record: LinksFrame) -> tuple[int, int, tuple[str, ...], tuple[str, ...]]:
    """The larger the newer. An honest node never has two of the same number and boot; should
    somebody lie, all still agree on one of them."""
    return record.number, record.boot, record.peers, record.addresses
