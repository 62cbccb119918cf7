"""The event loop: a virtual clock, links with delay, clients that come and go.

Everything that is to happen is on one agenda. An event is a message to be delivered, a client
that asks or leaves, or a change: of the network, of a node's clock, of who is up. Simultaneous
events happen in the order in which they were put there, so a run is a function of its seed.
:mod:`meshlock.world.steps` calls the handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf

from meshlock.algorithms.actor import NIL, Actor, Algorithm, Message
from meshlock.algorithms.amounts import in_all
from meshlock.algorithms.steps import time_on_level
from meshlock.errors import Refused
from meshlock.simulate.agenda import Agenda
from meshlock.simulate.measures_by_kind import measures
from meshlock.simulate.workload import Duration, Workload
from meshlock.topology.graphs import Topology
from meshlock.topology.mobility.changes import Changes
from meshlock.trace.writer import TraceWriter
from meshlock.world.clients import SimulatedClient
from meshlock.world.lives import LayeredNodes
from meshlock.world.steps import Steps


@dataclass
class RunSetup:
    """What a simulation is made of."""

    algorithm: Algorithm
    options: dict[str, str]  # settled
    network: Topology
    permits: int
    workload: Workload
    delay: Duration  # per link
    hold: Duration
    fifo: bool = True
    seed: int = 1
    changes: Changes | None = None  # None: the links stay as they are
    trace: TraceWriter | None = None


class ArrivalOrder:
    """In which the messages of one node arrive: those to one receiver as they were sent.

    Kept by node, not by link: most messages go where the one before went, or find it there
    already, so that nothing has to be looked up.
    """

    def __init__(self) -> None:
        self.receiver = NIL  # of its last message
        self.last = 0.0  # when that arrives
        self.others: dict[int, float] = {}  # when those before it, to other receivers, arrive

    def turn(self, receiver: int, now: float) -> None:
        """The next message goes elsewhere."""
        if self.last > now:
            self.others[self.receiver] = self.last
        self.receiver = receiver
        self.last = self.others.get(receiver, 0.0) if self.others else 0.0

    def forget(self, receiver: int) -> None:
        """What is on its way there does not hold up what follows."""
        if receiver == self.receiver:
            self.last = 0.0
        self.others.pop(receiver, None)


class Simulation(Steps):
    __slots__ = (
        *("network", "measures", "events", "agenda", "serial_number", "restless"),
        *("delay", "routed", "keep_order", "orders", "hold_time", "workload", "planned", "active"),
        "excused",
    )

    def __init__(self, setup: RunSetup, layered: LayeredNodes | None = None) -> None:
        super().__init__(
            setup.algorithm,
            setup.options,
            setup.network,
            setup.permits,
            setup.seed,
            setup.trace,
            layered,
        )
        network, workload, delay = setup.network, setup.workload, setup.delay
        self.network = network
        low, high = workload.priorities
        ranked = low != high or workload.deadlines is not None
        sized = workload.least != workload.most
        ageing = self.promises.ageing * self.units
        self.measures = measures(
            setup.permits, network.size, self.sent, ranked, sized, ageing, self.units
        )
        self.events = 0
        self.agenda = Agenda()
        self.serial_number = 0

        self.delay = delay
        self.routed = setup.algorithm.assumes.routed and not network.complete
        self.keep_order = setup.fifo and (not delay.constant or self.routed)
        self.orders: list[ArrivalOrder | None] = [None] * network.size  # by sender

        self.hold_time = setup.hold
        self.workload = workload
        self.planned = 0  # requests that have been made or put on the agenda
        self.active = 0  # clients that wait or hold
        self.excused = 0  # clients that wait at the end, and rightly: see :mod:`.link_changes`
        self.restless = setup.algorithm.serves.restless  # do not wait for silence

    # -- clients --------------------------------------------------------------------

    def start(self) -> None:
        """Put the first requests on the agenda; call it once, before :meth:`run`."""
        if self.algorithm.serves.restless:
            for node in range(self.network.size):
                self.set_going(node)
        if self.workload.serial:
            self.ask_somewhere()
            return
        for _ in range(self.workload.clients):
            for node in range(self.network.size):
                self.ask_later(node)

    def ask_somewhere(self) -> None:
        """Serial workload: the next request, of a node drawn from all."""
        if self.planned < self.workload.requests:
            self.planned += 1
            self.schedule(
                self.now, self.workload.client(self.workload.somewhere(self.network.size))
            )

    def ask_later(self, node: int) -> None:
        """The next request of a client of this node, after it has thought."""
        think = self.workload.think
        if think is not None:
            self.schedule(self.now + think.draw(), self.workload.client(node))
        elif self.planned < self.workload.requests:
            self.planned += 1
            self.schedule(self.now, self.workload.client(node))

    def ask(self, client: SimulatedClient) -> None:
        if self.workload.think is not None:
            if self.planned >= self.workload.requests:
                return
            self.planned += 1
        client.asked = self.now
        measures = self.measures
        if measures.ranked:
            self.workload.make_urgent(client, self.now)
        measures.asks(client)
        self.active += 1
        if self.workload.raises > 0.0:
            after = self.workload.change_after(max(self.hold_time.mean, self.delay.mean))
            if after >= 0.0:
                self.schedule(self.now + after, lambda: self.change_its_priority(client))
        self.submit(client)
        self.rise_later(client)

    def rise_later(self, client: SimulatedClient) -> None:
        """A request with a deadline becomes more urgent whenever its level rises."""
        if client.deadline > 0.0 and self.algorithm.serves.priorities and not client.inside:
            pause = time_on_level(client.deadline - self.now)
            if pause < inf:
                self.schedule(self.now + pause, partial(self.rise, client, client.deadline))

    def enters(self, node: Actor, client: SimulatedClient) -> None:
        measures = self.measures
        known = node.known_priority() if measures.ranked else None
        measures.enters(client, self.now, known)
        held = self.hold_time.draw()
        if self.workload.parts > 0.0:
            part = self.workload.part_of(client.want)
            if part > 0:
                moment = self.now + held * self.workload.parting()
                self.schedule(moment, partial(self.leave_in_part, client, part))
        self.schedule(self.now + held, client)

    def loses(self, client: SimulatedClient) -> None:
        raise Refused(
            f"{self.algorithm.name} ends leases of clients that hold permits, which only 'meshlock "
            "check' follows."
        )

    def is_there(self, client: SimulatedClient, inside: bool) -> bool:
        """Does it still wait, or hold its permits? Since then it may have entered or left."""
        return self.present.get(client.number) is client and client.inside == inside

    def leave_in_part(self, client: SimulatedClient, part: int) -> None:
        if self.is_there(client, inside=True):
            self.measures.leaves_some(part, self.now)
            self.release_some(client, part)

    def rise(self, client: SimulatedClient, deadline: float) -> None:
        """It becomes more urgent, if it still has this deadline."""
        if self.is_there(client, inside=False) and client.deadline == deadline:
            self.change_priority(client, self.workload.closer(client, self.now))
            self.rise_later(client)

    def change_its_priority(self, client: SimulatedClient) -> None:
        deadline = client.deadline
        if not self.is_there(client, inside=False):
            return
        if self.change_priority(client, self.workload.change_urgency(client, self.now)):
            self.measures.changed += 1
            self.rise_later(client)
        else:
            client.deadline = deadline

    def gets_priority(self, client: SimulatedClient, priority: int) -> None:
        self.measures.changes(client, priority)
        super().gets_priority(client, priority)

    def leave(self, client: SimulatedClient) -> None:
        self.active -= 1
        self.measures.leaves(client, self.now)
        self.release(client)
        if not self.workload.serial:
            self.ask_later(client.node)

    # -- messages -------------------------------------------------------------------

    def transmit(self, message: Message) -> None:
        """Put a message on its way; it arrives after one delay per link."""
        self.in_flight += 1
        sender, receiver = message.sender, message.receiver
        arrival = self.now
        if self.routed:
            links = self.network.distance(sender, receiver)
            self.measures.more_crossings += links - 1
            for _ in range(links):
                arrival += self.delay.draw()
        else:
            arrival += self.delay.draw()
        if self.keep_order:
            order = self.orders[sender]
            if order is None:
                order = self.orders[sender] = ArrivalOrder()
            if receiver != order.receiver:
                order.turn(receiver, self.now)
            if arrival < order.last:
                arrival = order.last
            order.last = arrival
        message.serial = self.serial_number = self.serial_number + 1
        self.agenda.add(arrival, message)

    def forget_order(self, sender: int, receiver: int) -> None:
        order = self.orders[sender]
        if order is not None:
            order.forget(receiver)

    def schedule(self, time: float, event: SimulatedClient | Callable[[], None]) -> None:
        """A client asks or leaves at this time, or that is called."""
        self.serial_number += 1
        self.agenda.add(time, event)

    # -- the run ----------------------------------------------------------------------

    def run(self, most: int) -> bool:
        """Let at most this many events happen; False when all are served or nothing more can."""
        times, events = self.agenda.times, self.agenda.events
        for count in range(most):
            event = events.pop()
            if event is None:
                events.append(None)
                if not self.agenda.refill():
                    self.events += count
                    return False
                event = events.pop()
            self.now = -times.pop()
            if isinstance(event, Message):
                self.deliver(event)
            elif isinstance(event, SimulatedClient):
                client = event
                if client.inside:
                    self.leave(client)
                else:
                    self.ask(client)
            elif callable(event):
                event()
            if self.active == 0 and (self.in_flight == 0 or self.restless):
                asked = self.measures.requested
                if asked >= self.workload.requests:
                    self.events += count + 1
                    return False
                if self.workload.serial and self.planned == asked:
                    self.ask_somewhere()
        self.events += most
        return len(self.agenda) > 0

    def capacity(self) -> float:
        """What clients could have used at most: permits, times how long there were that many."""
        return in_all(self.permits) * self.now

    def connected_share(self) -> float:
        """The part of the time in which every node could reach every other."""
        return 1.0

    def finish(self) -> None:
        """Nothing more can happen: a client that still waits will wait forever."""
        self.measures.hold(0, self.now)
        self.judge_end()
        if self.trace is not None:
            self.trace.end(self.now, self.measures.waiting, self.monitor.violated)

    def judge_end(self) -> None:
        self.monitor.ends(self.now, self.measures.waiting)
