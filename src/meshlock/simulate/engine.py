"""The event loop: a virtual clock, links with delay, clients that come and go.

Everything that is to happen lies on one heap of (time, serial number, event); an event
is a message to be delivered or a client that asks or leaves. The serial number makes
simultaneous events happen in the order in which they were put there, so a run is a
function of its seed. Every step is judged by a :class:`~meshlock.properties.monitor.Monitor`.
"""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

from meshlock.algorithms.interface import Algorithm, Effect, Enter, Message, Node
from meshlock.properties.monitor import Monitor
from meshlock.properties.promises import promises
from meshlock.simulate.durations import Duration
from meshlock.simulate.measures import Measures
from meshlock.simulate.workload import Client, Workload
from meshlock.topology.graphs import Topology
from meshlock.topology.mobility.changes import Change
from meshlock.trace.writer import TraceWriter


class Simulation:
    def __init__(
        self,
        algorithm: Algorithm,
        options: dict[str, str],
        network: Topology,
        permits: int,
        workload: Workload,
        delay: Duration,
        hold: Duration,
        fifo: bool,
        seed: int,
        trace: TraceWriter | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.options = options
        self.network = network
        self.permits = permits
        self.out: list[Effect] = []
        self.nodes = algorithm.make(network, permits, options, self.out)
        self.promises = promises(algorithm, options)
        self.monitor = Monitor(permits, self.promises)
        low, high = workload.priorities
        ranked = low != high or workload.deadlines is not None
        self.measures = Measures(network.size, ranked, self.promises.ageing)
        self.messages = self.measures.messages
        self.trace = trace

        self.now = 0.0
        self.events = 0
        self.heap: list[tuple[float, int, Effect | Client | Change]] = []
        self.serial_number = 0
        self.in_flight = 0

        self.delay = delay
        self.constant = delay.low if delay.constant else -1.0
        self.routed = algorithm.routed and not network.complete
        self.keep_order = fifo and (not delay.constant or self.routed)
        self.last: dict[int, float] = {}  # directed link: when its last message arrives

        self.hold_time = hold
        self.workload = workload
        self.planned = 0  # requests that have been made or put on the heap
        self.active = 0  # clients that wait or hold
        self.balanced = self.promises.balanced
        self.many_clients = algorithm.many_clients
        self.restless = algorithm.restless  # do not wait for silence
        self.busy: dict[int, list[Client]] = {}  # node: clients behind the one it serves
        self.present: dict[int, Client] = {}  # by number, while they wait or hold
        self.choosing = self.nodes[0].choices() > 1
        self.choice = Random(f"{seed}:choice").random

    # -- clients --------------------------------------------------------------------

    def start(self) -> None:
        """Put the first requests on the heap; call it once, before :meth:`run`."""
        if self.algorithm.restless:
            for member in self.nodes:
                self.set_going(member)
        if self.workload.serial:
            self.ask_somewhere()
            return
        for _ in range(self.workload.clients):
            for node in range(self.network.size):
                self.ask_later(node)

    def set_going(self, node: Node) -> None:
        tokens, permits = node.tokens(), node.free_permits()
        node.start()
        self.carry_out(node, tokens, permits)
        if self.trace is not None:
            self.trace.step(self.now, "start", node, {}, self.out)
        self.out.clear()

    def choose(self, node: Node) -> int:
        """Draw what the algorithm leaves open at this node."""
        choice = int(self.choice() * node.choices())
        node.choose(choice)
        return choice

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

    def ask(self, client: Client) -> None:
        if self.workload.think is not None:
            if self.planned >= self.workload.requests:
                return
            self.planned += 1
        client.asked = self.now
        self.workload.make_urgent(client, self.now)
        self.measures.asks(client)
        self.active += 1
        self.present[client.number] = client
        self.monitor.asks(client.number, client.priority)
        if not self.many_clients:
            others = self.busy.get(client.node)
            if others is not None:
                others.append(client)
                return
            self.busy[client.node] = []
        self.hand_in(client)

    def hand_in(self, client: Client) -> None:
        node = self.nodes[client.node]
        choice = self.choose(node) if self.choosing else -1
        tokens, permits = node.tokens(), node.free_permits()
        node.request(client.number, client.want, client.priority)
        self.carry_out(node, tokens, permits)
        if self.trace is not None:
            cause = {"client": client.number, "want": client.want, "priority": client.priority}
            self.trace.step(self.now, "request", node, cause, self.out, choice)
        self.out.clear()

    def leave(self, client: Client) -> None:
        node = self.nodes[client.node]
        choice = self.choose(node) if self.choosing else -1
        client.inside = False
        self.active -= 1
        del self.present[client.number]
        self.measures.leaves(client, self.now)
        self.monitor.leaves(client.want)
        if self.in_flight == 0:
            self.monitor.quiet()
        tokens, permits = node.tokens(), node.free_permits()
        node.release(client.number)
        self.carry_out(node, tokens, permits + client.want)
        if self.trace is not None:
            cause = {"client": client.number}
            self.trace.step(self.now, "leave", node, cause, self.out, choice)
        self.out.clear()
        if not self.many_clients:
            others = self.busy[client.node]
            if others:
                self.hand_in(others.pop(0))
            else:
                del self.busy[client.node]
        if not self.workload.serial:
            self.ask_later(client.node)

    # -- messages -------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        self.in_flight -= 1
        node = self.nodes[message.receiver]
        choice = self.choose(node) if self.choosing else -1
        tokens = node.tokens() + message.tokens()
        permits = node.free_permits() + message.permits()
        node.receive(message)
        self.carry_out(node, tokens, permits)
        if self.trace is not None:
            self.trace.delivered(self.now, node, message, self.out, choice)
        self.out.clear()

    def carry(self, message: Message) -> None:
        """Put a message on its way; it arrives after one delay per link."""
        self.in_flight += 1
        kind = message.kind
        self.messages[kind] = self.messages.get(kind, 0) + 1
        if self.routed:
            links = self.network.distance(message.sender, message.receiver)
            arrival = self.now
            for _ in range(links):
                arrival += self.delay.draw()
        else:
            links = 1
            arrival = self.now + (self.constant if self.constant >= 0.0 else self.delay.draw())
        self.measures.crossings += links
        if self.keep_order:
            link = message.sender * self.network.size + message.receiver
            last = self.last.get(link, 0.0)
            if arrival < last:
                arrival = last
            self.last[link] = arrival
        self.schedule(arrival, message)

    def schedule(self, time: float, event: Effect | Client | Change) -> None:
        self.serial_number += 1
        if isinstance(event, Message):
            event.serial = self.serial_number
        heappush(self.heap, (time, self.serial_number, event))

    # -- steps ------------------------------------------------------------------------

    def carry_out(self, node: Node, tokens: int, permits: int) -> None:
        """Do what a handler asked for, and check that it made and lost nothing."""
        for effect in self.out:
            if isinstance(effect, Message):
                self.carry(effect)
                tokens -= effect.tokens()
                permits -= effect.permits()
            elif isinstance(effect, Enter):
                client = self.present[effect.client]
                client.inside = True
                permits -= client.want
                self.measures.enters(client, self.now, node.known_priority())
                self.monitor.enters(self.now, client.node, client.number, client.want)
                self.schedule(self.now + self.hold_time.draw(), client)
        tokens -= node.tokens()
        permits -= node.free_permits()
        if self.balanced and (tokens != 0 or permits != 0):
            self.monitor.balance(self.now, node.me, tokens, permits)

    def run(self, most: int) -> bool:
        """Let at most this many events happen; False when all are served or nothing more can."""
        heap = self.heap
        for _ in range(most):
            if not heap:
                return False
            time, _number, event = heappop(heap)
            self.now = time
            self.events += 1
            if isinstance(event, Message):
                self.deliver(event)
            elif isinstance(event, Client):
                if event.inside:
                    self.leave(event)
                else:
                    self.ask(event)
            elif isinstance(event, Change):
                self.change(event)
            if self.active == 0 and (self.in_flight == 0 or self.restless):
                asked = self.measures.requested
                if asked >= self.workload.requests:
                    return False
                if self.workload.serial and self.planned == asked:
                    self.ask_somewhere()
        return len(heap) > 0

    def change(self, change: Change) -> None:
        """The network changes; see :mod:`meshlock.simulate.changing`."""
        raise NotImplementedError

    def connected_share(self) -> float:
        """The part of the time in which every node could reach every other."""
        return 1.0

    def finish(self) -> None:
        """Nothing more can happen: whoever still waits will wait for ever."""
        self.measures.hold(0, self.now)
        self.monitor.ends(self.now, self.measures.waiting)
        if self.trace is not None:
            self.trace.end(self.now, self.measures.waiting, self.monitor.violated)
