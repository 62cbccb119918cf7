"""A simulation whose links come and go. Here their two ends learn of every change at the same
time, as the papers assume; :mod:`.custody` and :mod:`.routed` have other links.

A link that fails first settles what is on it, as :mod:`meshlock.world.channels` says. Then both
ends learn of it.

Changes go on until every request is served, until the stream ends, or until the run is
*stalled*: no client is inside, and none has entered during a long series of changes, so that
only a network at rest can show whether the waiting will ever be served (a thousand changes
of a connected network and ten more per node, and a hundred message delays per node, all
without an entry).
"""

from __future__ import annotations

from meshlock.algorithms.actor import Message
from meshlock.properties.paths import labelled
from meshlock.simulate.engine import RunSetup, Simulation
from meshlock.topology.mobility.changes import Changes, LinkChange, Move, NetworkChange, Planned
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.world.channels import LEASES
from meshlock.world.clients import SimulatedClient
from meshlock.world.lives import LayeredNodes

PATIENCE = 1_000_000
"""Changes without an entry, partitions or not: after these, the run counts as stalled."""


ENDLESS = 100_000
"""Messages on one failing link at one time: more of them answer each other forever."""


class MobileSimulation(Simulation):
    def __init__(self, setup: RunSetup, failures: str, layered: LayeredNodes | None = None) -> None:
        super().__init__(setup, layered)
        self.failures = failures
        network = setup.network
        assert isinstance(network, LiveGraph)
        self.graph = network
        self.monitor.changed(network.components == 1)
        self.changes: Changes = setup.changes if setup.changes is not None else Planned([])
        self.pending: NetworkChange | None = None
        self.strays: set[int] = set()  # messages to where there was no link
        self.on_link: dict[int, list[Message]] = {}  # link: what is on it, as it was sent

        self.ups = 0
        self.downs = 0
        self.link_count = sum(len(network.neighbours(node)) for node in range(network.size)) // 2
        self.map_crossings = 0  # what a map of all links costs where routes need one
        self.returned = 0
        self.dropped = 0
        self.late = 0  # messages that arrived although their link had failed
        self.connected_time = 0.0
        self.connected_since = 0.0  # meaningful while the graph is connected

        self.resting = False  # no further changes
        self.last_entries = 0
        self.idle_changes = 0  # since the last entry, while no client was inside
        self.idle_connected = 0  # of these, the ones in a connected graph
        self.idle_since = 0.0
        self.patience = 1000 + 10 * network.size
        self.long = 100.0 * network.size * (setup.delay.low + setup.delay.span / 2.0)

    def start(self) -> None:
        super().start()
        if self.trace is not None:
            for place in self.changes.places(0.0):
                self.trace.moved(0.0, place.node, place.x, place.y)
        self.await_change()

    # -- changes ----------------------------------------------------------------------

    def await_change(self) -> None:
        change = self.pending = self.changes.next()
        if change is not None:
            self.schedule(max(change.time, self.now), lambda: self.change(change))

    def change(self, change: NetworkChange) -> None:
        if self.active == 0 and self.all_asked():
            return  # all are served; what is still in flight shall come to rest
        if not self.resting and not isinstance(change, Move) and self.stalled():
            self.resting = True
            self.changes.stop(self.now)  # but this one still happens: a flip is two changes
        self.take_place(change)
        if self.workload.serial and self.active == 0 and self.planned == self.measures.requested:
            self.ask_somewhere()  # a network that never rests need not be silent first

    def take_place(self, change: NetworkChange) -> None:
        """Change the network, and wait for its next change."""
        if isinstance(change, LinkChange):
            if change.up:
                self.link_forms(change.one, change.other)
            else:
                self.link_fails(change.one, change.other)
        elif isinstance(change, Move) and self.trace is not None:
            self.trace.moved(self.now, change.node, change.x, change.y)
        self.await_change()

    def all_asked(self) -> bool:
        return self.measures.requested >= self.workload.requests

    def stalled(self) -> bool:
        entries = self.measures.entries
        if entries != self.last_entries or self.measures.held > 0 or self.measures.waiting == 0:
            self.last_entries = entries
            self.idle_changes = 0
            self.idle_connected = 0
            self.idle_since = self.now
            return False
        self.idle_changes += 1
        if self.graph.components == 1:
            self.idle_connected += 1
        if self.now - self.idle_since < self.long:
            return False
        return self.idle_connected > self.patience or self.idle_changes > PATIENCE

    def link_forms(self, one: int, other: int) -> None:
        graph = self.graph
        if graph.linked(one, other):
            return
        parts = graph.components
        graph.connect(one, other)
        if parts > 1 and graph.components == 1:
            self.connected_since = self.now
        self.ups += 1
        self.link_count += 1
        self.map_crossings += 2 * self.link_count  # over every link, by either end
        self.formed(one, other)

    def link_fails(self, one: int, other: int) -> None:
        graph = self.graph
        if not graph.linked(one, other):
            return
        self.failing(one, other)
        if graph.components == 1:
            self.connected_time += self.now - self.connected_since
            self.connected_since = self.now
        graph.cut(one, other)
        self.downs += 1
        self.link_count -= 1
        self.map_crossings += 2 * self.link_count
        self.failed(one, other)

    # -- what becomes of a link ---------------------------------------------------------

    def formed(self, one: int, other: int) -> None:
        """This link is there now."""
        self.monitor.changed(self.graph.components == 1)
        self.link_changes(one, other, True)
        self.link_changes(other, one, True)

    def failing(self, one: int, other: int) -> None:
        """This link is about to fail."""
        if self.empty_link(one, other, self.failures, ENDLESS):
            return
        text = f"nodes {one} and {other} answer each other for ever on their failing link"
        self.monitor.report("neighbours", self.now, text)
        self.empty_link(one, other, LEASES, ENDLESS)  # the rest is lost

    def failed(self, one: int, other: int) -> None:
        """This link is there no more."""
        self.monitor.changed(self.graph.components == 1)
        self.forget_order(one, other)
        self.forget_order(other, one)
        self.link_changes(one, other, False)
        self.link_changes(other, one, False)

    def pieces(self) -> int:
        return self.graph.components

    def leave(self, client: SimulatedClient) -> None:
        super().leave(client)
        if self.active == 0 and self.graph.components > 1 and self.all_asked():
            self.restless = True  # parts without the token may never stop looking for it

    # -- messages -----------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        if message.serial == 0:
            return  # it was dealt with when its link failed
        if self.strays and self.is_stray(message):
            return
        self.take_off(message)
        super().deliver(message)

    def transmit(self, message: Message) -> None:
        if message.serial > 0:
            raise ValueError(f"node {message.sender} sent one {message.kind} object twice")
        if not self.graph.linked(message.sender, message.receiver):
            self.stray(message)
            return
        self.put_on(message)
        super().transmit(message)

    def drop(self, message: Message) -> None:
        self.in_flight -= 1
        self.dropped += 1
        if self.trace is not None:
            self.trace.dropped(self.now, message)

    def link(self, one: int, other: int) -> int:
        return one * self.graph.size + other if one < other else other * self.graph.size + one

    def put_on(self, message: Message) -> None:
        link = self.link(message.sender, message.receiver)
        self.on_link.setdefault(link, []).append(message)

    def take_off(self, message: Message) -> None:
        """The message is no longer on its link."""
        waiting = self.on_link.get(self.link(message.sender, message.receiver), [])
        if message in waiting:
            waiting.remove(message)

    def first_on(self, one: int, other: int) -> Message | None:
        waiting = self.on_link.get(self.link(one, other))
        return waiting[0] if waiting else None

    def arrive(self, message: Message) -> None:
        self.deliver(message)

    def come_back(self, message: Message) -> None:
        self.take_off(message)
        self.returned += 1
        self.return_to_sender(message)

    def lose(self, message: Message) -> None:
        self.take_off(message)
        self.drop(message)

    def is_stray(self, message: Message) -> bool:
        """Is it lost because there was no link when it was sent?"""
        if message.serial not in self.strays:
            return False
        self.strays.remove(message.serial)
        self.drop(message)
        return True

    def stray(self, message: Message) -> None:
        """A message to where its sender sees no link: a fault, and it is lost."""
        super().transmit(message)
        self.strays.add(message.serial)
        way = f"node {message.sender} sends {message.kind} to node {message.receiver}"
        self.monitor.report("neighbours", self.now, f"{way}, to which it has no link")

    # -- the end --------------------------------------------------------------------------

    def connected_share(self) -> float:
        """The part of the time in which every node could reach every other."""
        if self.now <= 0.0:
            return 1.0 if self.graph.components == 1 else 0.0
        time = self.connected_time
        if self.graph.components == 1:
            time += self.now - self.connected_since
        return time / self.now

    def judge_end(self) -> None:
        """Where the network is partitioned, clients must be served that can reach the token and all
        permits, as in the checker. Without a token, they must reach all nodes."""
        if self.graph.components > 1:
            part = labelled(self.graph.near, [True] * self.graph.size)
            tokens = {part[node] for node, one in enumerate(self.nodes) if one.tokens() > 0}
            permits = {part[node] for node, one in enumerate(self.nodes) if one.free_permits() > 0}
            complete = tokens & permits if len(permits) == 1 and self.balanced else set[int]()
            free = sum([node.free_permits() for node in self.nodes])
            for client in self.present.values():
                if part[client.node] not in complete or free < self.permits:
                    self.excused += 1
        self.monitor.ends(self.now, self.measures.waiting - self.excused)

    def finish(self) -> None:
        if self.trace is not None:
            for place in self.changes.places(self.now):
                self.trace.moved(self.now, place.node, place.x, place.y)
        super().finish()
