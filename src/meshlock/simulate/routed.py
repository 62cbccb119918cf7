"""Links and ways as nodes under the recovery layer have them: nodes crash, the network is cut.

A link can be used while it is there, both its ends are up, and both lie on the same side of
a cut, if there is one. Both ends learn at once that it forms or fails. A message goes

- *over the link* to a neighbour: in order; it is lost when the link fails;
- *routed*, over a shortest way, one delay per link: it is lost if there is no way when it is sent,
  or when it arrives, or if its receiver is down then;
- *routed and reliable*: in order; it waits while there is no way, and is lost only if sender or
  receiver crashes.

Which one is said by :class:`~meshlock.world.lives.LayeredNodes`.
"""

from __future__ import annotations

from meshlock.algorithms.actor import Message
from meshlock.algorithms.recovery.messages import BEST_EFFORT, LINK, RELIABLE, Inner
from meshlock.properties.paths import labelled
from meshlock.simulate.engine import ArrivalOrder, RunSetup, Simulation
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.world.channels import LEASES
from meshlock.world.clients import SimulatedClient
from meshlock.world.lives import LayeredNodes, LayerSetup


class RoutedSimulation(MobileSimulation):
    def __init__(self, setup: RunSetup, layer: LayerSetup) -> None:
        base = setup.network
        assert isinstance(base, LiveGraph)
        self.usable = LiveGraph(base.size, base.links())
        layered = LayeredNodes(
            layer, setup.algorithm, setup.options, setup.permits, self.usable.neighbours
        )
        super().__init__(setup, LEASES, layered)
        self.lives = layered
        self.base = base  # the links there are, with nodes up or down
        self.graph = self.usable  # those that can be used
        self.side = [0] * base.size
        self.parts = labelled(self.usable.near, [True] * base.size)
        self.fifo = setup.fifo  # of what is routed and not reliable
        self.pipes: dict[int, list[Message]] = {}  # pair: reliable messages, in order
        self.arrived: set[int] = set()  # of these, by serial number, what is there
        self.sent_at: dict[int, float] = {}  # serial number of a token's message
        self.flying = 0  # tokens under way

    def joined(self, one: int, other: int) -> bool:
        """Is there a way from one to the other?"""
        return self.lives.up[one] and self.parts[one] == self.parts[other]

    # -- links ----------------------------------------------------------------------------

    def link_forms(self, one: int, other: int) -> None:
        if not self.base.linked(one, other):
            self.base.connect(one, other)
            self.use(one, other)

    def link_fails(self, one: int, other: int) -> None:
        if self.base.linked(one, other):
            self.base.cut(one, other)
            self.use(one, other)

    def use(self, one: int, other: int) -> None:
        """Use the link or not, as things are now."""
        up = self.lives.up
        usable = self.base.linked(one, other) and up[one] and up[other]
        if usable and self.side[one] == self.side[other]:
            super().link_forms(one, other)
        else:
            super().link_fails(one, other)

    def formed(self, one: int, other: int) -> None:
        self.network_changed()
        super().formed(one, other)

    def failed(self, one: int, other: int) -> None:
        self.network_changed()
        for me, peer in ((one, other), (other, one)):
            if self.lives.up[me]:
                self.link_changes(me, peer, False)

    def network_changed(self) -> None:
        self.parts = labelled(self.usable.near, self.lives.up)
        for pipe in self.pipes.values():
            if len(pipe) > 0 and pipe[0].serial in self.arrived:
                self.set_off(pipe[0])

    # -- lives ----------------------------------------------------------------------------

    def crash(self, me: int) -> list[SimulatedClient]:
        """What is on its links is lost, then it crashes, then its neighbours learn of it."""
        for pair, pipe in list(self.pipes.items()):
            if me in (pair // self.base.size, pair % self.base.size):
                for message in pipe:
                    self.lose(message)
                del self.pipes[pair]
        peers = sorted(self.usable.near[me])
        for peer in peers:
            self.failing(me, peer)
        clients = self.end_life(me)
        for peer in peers:
            self.use(min(me, peer), max(me, peer))
        self.network_changed()
        return clients

    def restart(self, me: int, disk: bool) -> None:
        self.begin_life(me, disk)
        self.network_changed()
        for peer in sorted(self.base.near[me]):
            self.use(min(me, peer), max(me, peer))

    def cut(self, side: list[int]) -> None:
        """From now on each node is on its side of a cut."""
        self.side = side
        for one in range(self.base.size):
            for other in sorted(self.base.near[one]):
                if one < other:
                    self.use(one, other)

    # -- messages -------------------------------------------------------------------------

    def transmit(self, message: Message) -> None:
        sender, receiver = message.sender, message.receiver
        self.in_flight += 1
        self.measures.more_crossings -= 1  # until it sets off
        message.serial = self.serial_number = self.serial_number + 1
        if isinstance(message, Inner) and message.is_timed():
            self.flying += 1
            self.sent_at[message.serial] = self.now
        kind = self.lives.carrier(message)
        if kind == LINK and self.usable.linked(sender, receiver):
            self.put_on(message)
            self.set_off(message)
        elif kind == RELIABLE:
            pipe = self.pipes.setdefault(sender * self.base.size + receiver, [])
            pipe.append(message)
            if self.joined(sender, receiver):
                self.set_off(message)
            else:
                self.arrived.add(message.serial)  # it sets off when there is a way
        elif self.joined(sender, receiver):
            self.set_off(message)
        else:
            self.forget(message)
            self.lost.append(message)

    def set_off(self, message: Message) -> None:
        """On its way, over as many links as it takes."""
        if not self.joined(message.sender, message.receiver):
            return
        links = self.usable.distance(message.sender, message.receiver)
        arrival = self.now
        for _ in range(links):
            arrival += self.delay.draw()
        self.measures.more_crossings += links
        if self.fifo or self.lives.carrier(message) != BEST_EFFORT:
            order = self.orders[message.sender]
            if order is None:
                order = self.orders[message.sender] = ArrivalOrder()
            if message.receiver != order.receiver:
                order.turn(message.receiver, self.now)
            order.last = arrival = max(arrival, order.last)
        self.arrived.discard(message.serial)
        self.agenda.add(arrival, message)

    def deliver(self, message: Message) -> None:
        sender, receiver = message.sender, message.receiver
        if message.serial == 0:
            return  # it was lost with its link, or with one of its ends
        kind = self.lives.carrier(message)
        if kind == RELIABLE:
            self.arrived.add(message.serial)
            pipe = self.pipes[sender * self.base.size + receiver]
            while len(pipe) > 0 and pipe[0].serial in self.arrived:
                if not self.joined(sender, receiver):
                    return
                self.arrived.discard(pipe[0].serial)
                self.hand_over(pipe.pop(0))
            return
        if kind == LINK:
            self.take_off(message)
        up = self.lives.up
        if not up[receiver] or (up[sender] and not self.joined(sender, receiver)):
            self.lose(message)
        else:
            self.hand_over(message)

    def hand_over(self, message: Message) -> None:
        if isinstance(message, Inner) and message.is_timed():
            under_way = self.now - self.sent_at[message.serial]
            message.travelled = self.lives.clocks.longest(under_way)
            self.forget(message)
            self.in_flight += 1
        Simulation.deliver(self, message)

    def lose(self, message: Message) -> None:
        self.take_off(message)
        self.dropped += 1
        self.forget(message)
        if self.trace is not None:
            self.trace.dropped(self.now, message)
        message.serial = 0  # so that it is passed over when it is due

    def forget(self, message: Message) -> None:
        """It is not under way any more."""
        self.in_flight -= 1
        self.arrived.discard(message.serial)
        if self.sent_at.pop(message.serial, None) is not None:
            self.flying -= 1
