"""One step: call a handler with its cause, carry out its effects, judge them, write them down.

Engine, driven runs, scenarios and replay all run nodes this way and no other. What carrying out
means is theirs to say: :meth:`Steps.transmit` a message, :meth:`Steps.enters` a client.
"""

from __future__ import annotations

from random import Random
from typing import Any

from meshlock.algorithms.actor import (
    NIL,
    WAKE,
    Actor,
    Algorithm,
    ChoosingActor,
    Effect,
    Enter,
    Lost,
    Message,
    Network,
    Save,
    choices_of,
)
from meshlock.algorithms.amounts import Kinds
from meshlock.algorithms.clients import NOBODY, OneAtATime
from meshlock.algorithms.registry import joined
from meshlock.algorithms.steps import units
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.properties.by_kind import monitor as monitor_for
from meshlock.properties.promises import FIRST_KNOWN, promises
from meshlock.trace.setup import TraceSetup
from meshlock.trace.writer import TraceWriter, arrival, came_back
from meshlock.world.channels import ARRIVES, COMES_BACK, fate
from meshlock.world.clients import SimulatedClient
from meshlock.world.effects import NOTHING, Effects
from meshlock.world.lives import LayeredNodes


@mypyc_attr(allow_interpreted_subclasses=True)
class Steps(Effects):
    """The nodes of a run and their clients. With ``layered``, its nodes are run instead of the
    algorithm's own; with a ``founder``, others have come to its pool."""

    __slots__ = (
        *("algorithm", "options", "units", "permits", "kinds", "trace", "layered", "promises"),
        *("nodes", "monitor", "now", "in_flight"),
        *("lost", "many_clients", "present", "turns"),
        *("choosing", "plain", "draw", "choice"),
    )

    def __init__(
        self,
        algorithm: Algorithm,
        options: dict[str, str],
        network: Network,
        permits: int,
        seed: int,
        trace: TraceWriter | None,
        layered: LayeredNodes | None = None,
        founder: int = NIL,
    ) -> None:
        self.algorithm = algorithm
        self.options = options
        self.units = units(options)  # of priority, in a step
        self.permits = permits
        self.kinds: Kinds | None = None  # where there are several
        self.trace = trace
        self.layered = layered
        self.promises = promises(algorithm, options)
        if layered is None:
            out: list[Effect] = []
            if founder == NIL:
                self.nodes = algorithm.make(network, permits, options, out)
            else:
                self.nodes = joined(algorithm, network.size, founder, permits, options, out)
            self.monitor = monitor_for(permits, self.promises)
        else:
            out = layered.out
            self.nodes = layered.nodes
            self.monitor = layered.monitor
            self.promises = layered.promises
        super().__init__(out, self.promises.balanced, self.monitor.ties == FIRST_KNOWN)
        self.now = 0.0
        self.in_flight = 0  # messages
        self.observed = trace is not None or layered is not None
        self.lost: list[Message] = []  # sent in this step to where there is no way
        self.many_clients = algorithm.serves.many_clients or layered is not None
        self.present: dict[int, SimulatedClient] = {}  # by number, while they wait or hold
        self.turns: dict[int, OneAtATime] = {}  # node: its clients, if it serves one at a time
        # with leases the nodes inside come later
        self.choosing = layered is not None or choices_of(self.nodes[0]) > 1
        self.plain = not self.choosing and layered is None
        self.draw = Random(f"{seed}:choice").random
        self.choice = -1  # of the node whose turn it is, where there is a choice

    def begin_trace(self, source: str, **more: Any) -> None:
        """The first line of the trace, if there is one; ``more``: what else it says."""
        if self.trace is not None:
            setup = TraceSetup(
                source=source,
                algorithm=self.algorithm.name,
                options=self.options,
                promised=self.promises,
                permits=self.permits,
                kinds=self.kinds,
                nodes=len(self.nodes),
                **more,
            )
            self.trace.begin(setup, self.nodes)

    # -- clients --------------------------------------------------------------------

    def submit(self, client: SimulatedClient) -> None:
        """A client asks: its node gets the request, or it queues behind another of its node."""
        self.present[client.number] = client
        if not self.many_clients:
            turn = self.turns.get(client.node)
            if turn is None:
                turn = self.turns[client.node] = OneAtATime()
            if not turn.asks(client.number, client.priority):
                return
        self.request(client)

    def is_busy(self, me: int) -> bool:
        """Would a client of this node queue behind another?"""
        return me in self.turns and self.turns[me].served != NOBODY

    def request(self, client: SimulatedClient) -> None:
        node = self.nodes[client.node] if self.plain else self.turn(client.node)
        monitor = self.monitor
        if monitor.judges_order:
            if self.in_flight == 0:
                monitor.quiet()
            priority = self.in_steps(client.priority)
            client.rival = monitor.asks(client.node, priority, client.want)
        tokens, permits = node.tokens(), node.free_permits()
        node.request(client.number, client.want, client.priority)
        cause = NOTHING
        if self.trace is not None:
            cause = {"client": client.number, "want": client.want}
            cause |= self.urgency(client, client.priority)
        self.done(node, "request", cause, tokens, permits)
        if monitor.at_once:
            monitor.moved()

    def release(self, client: SimulatedClient) -> None:
        """A client leaves; the next in the queue of its node is served."""
        node = self.nodes[client.node] if self.plain else self.turn(client.node)
        client.inside = False
        del self.present[client.number]
        if self.layered is None:
            self.monitor.leaves(client.want)
            if self.in_flight == 0 and self.monitor.judges_order:
                self.monitor.quiet()
        else:
            self.layered.leaves(self.now, client)
        tokens, permits = node.tokens(), node.free_permits()
        node.release(client.number)
        cause = {"client": client.number} if self.trace is not None else NOTHING
        self.done(node, "leave", cause, tokens, permits + client.want)
        if self.monitor.at_once:
            self.monitor.moved()
        if not self.many_clients:
            following = self.turns[client.node].ends()
            if following != NOBODY:
                self.request(self.present[following])

    def release_some(self, client: SimulatedClient, part: int) -> None:
        """A client releases this number of its permits, and keeps some."""
        node = self.turn(client.node)
        client.want -= part
        if self.layered is None:
            self.monitor.leaves(part)
            if self.in_flight == 0 and self.monitor.judges_order:
                self.monitor.quiet()
        else:
            self.layered.monitor.gives_some(client.number, part)
        tokens, permits = node.tokens(), node.free_permits()
        node.release_some(client.number, part)
        cause = {"client": client.number, "permits": part}
        self.done(node, "give-back", cause, tokens, permits + part)
        self.monitor.moved()

    def change_priority(self, client: SimulatedClient, priority: int) -> bool:
        """A waiting client becomes more or less urgent; False if its request stays as it is."""
        turn = self.turns.get(client.node)
        if turn is not None and turn.change(client.number, priority):
            self.gets_priority(client, priority)
            return True
        node = self.turn(client.node)
        tokens, permits = node.tokens(), node.free_permits()
        if not node.change_priority(client.number, client.want, priority):
            return False
        if client.rival is not None:
            self.monitor.changes(client.rival, self.in_steps(priority), self.in_flight == 0)
        elif self.layered is not None and priority > client.priority:
            self.layered.monitor.raises(client.number)
        self.gets_priority(client, priority)
        cause = {"client": client.number, **self.urgency(client, priority)}
        self.done(node, "priority", cause, tokens, permits)
        self.monitor.moved()
        return True

    def in_steps(self, priority: int) -> float:
        """What a request counts for, in steps of priority: with a deadline, a part of one more."""
        return priority if self.units == 1 else priority / self.units

    def urgency(self, client: SimulatedClient, priority: int) -> dict[str, Any]:
        """In a trace."""
        told: dict[str, Any] = {"priority": priority // self.units}
        if client.deadline > 0.0:
            told["deadline"] = round(client.deadline - self.now, 3)
            told["urgency"] = self.in_steps(priority)
        return told

    def gets_priority(self, client: SimulatedClient, priority: int) -> None:
        client.priority = priority

    def withdraw(self, client: SimulatedClient) -> bool:
        """A waiting client gives up; False if its request cannot be withdrawn."""
        turn = self.turns.get(client.node)
        if turn is None or not turn.remove(client.number):
            node = self.turn(client.node)
            tokens, permits = node.tokens(), node.free_permits()
            if not node.withdraw(client.number):
                return False
            if client.rival is not None:
                self.monitor.withdraws(client.rival, self.in_flight == 0)
            self.done(node, "withdraw", {"client": client.number}, tokens, permits)
            self.monitor.moved()
            if turn is not None and (following := turn.ends()) != NOBODY:
                self.request(self.present[following])
        del self.present[client.number]
        return True

    # -- other causes -----------------------------------------------------------------

    def set_going(self, me: int) -> None:
        """The node of a restless algorithm; nothing is chosen yet."""
        node = self.nodes[me]
        tokens, permits = node.tokens(), node.free_permits()
        node.start()
        self.done(node, "start", NOTHING, tokens, permits)

    def deliver(self, message: Message) -> None:
        self.in_flight -= 1
        node = self.nodes[message.receiver] if self.plain else self.turn(message.receiver)
        cause = arrival(message) if self.trace is not None else NOTHING
        tokens = node.tokens() + message.tokens()
        permits = node.free_permits() + message.permits()
        node.receive(message)
        self.done(node, "deliver", cause, tokens, permits)

    def return_to_sender(self, message: Message) -> None:
        """The link of this message failed, and the message comes back."""
        self.in_flight -= 1
        node = self.turn(message.sender)
        cause = came_back(message) if self.trace is not None else NOTHING
        tokens = node.tokens() + message.tokens()
        permits = node.free_permits() + message.permits()
        node.undelivered(message)
        self.done(node, "undelivered", cause, tokens, permits)

    def link_changes(self, me: int, peer: int, up: bool) -> None:
        """One end of a link learns that it has formed or failed."""
        node = self.turn(me)
        tokens, permits = node.tokens(), node.free_permits()
        if up:
            node.link_up(peer)
        else:
            node.link_down(peer)
        cause = {"peer": peer}
        if self.pieces() > 1:
            cause["components"] = self.pieces()
        self.done(node, "link-up" if up else "link-down", cause, tokens, permits)

    def empty_link(self, one: int, other: int, failures: str, most: int) -> bool:
        """Deal with all that is on a link which is about to fail. False: after that many messages
        its ends still answer each other."""
        for _ in range(most):
            message = self.first_on(one, other)
            if message is None:
                return True
            what = fate(failures, message)
            if what == ARRIVES:
                self.arrive(message)
            elif what == COMES_BACK:
                self.come_back(message)
            else:
                self.lose(message)
            message.serial = 0  # so that it is passed over when it is due
        return self.first_on(one, other) is None

    # -- under the recovery layer -------------------------------------------------------

    def start_layers(self, links: list[tuple[int, int]]) -> None:
        """The first lives begin, and each node sees its links."""
        for me in range(len(self.nodes)):
            self.begin_life(me, True, "start")
        for one, other in sorted(links):
            self.link_changes(one, other, True)
            self.link_changes(other, one, True)

    def begin_life(self, me: int, disk: bool, event: str = "restart") -> None:
        assert self.layered is not None
        self.layered.restart(me, self.now, disk)
        self.done(self.nodes[me], event, NOTHING if disk else {"disk": False}, 0, 0)

    def end_life(self, me: int) -> list[SimulatedClient]:
        """A node crashes: its clients that wait are gone, those inside go on under their lease."""
        assert self.layered is not None
        clients = [client for client in self.present.values() if client.node == me]
        for client in clients:
            del self.present[client.number]
            if not client.inside and self.trace is not None:
                self.trace.gave_up(self.now, me, client.number)
        self.layered.crash(me, clients)
        if self.trace is not None:
            self.trace.crashed(self.now, me)
        return clients

    def end_lease(self, client: SimulatedClient) -> None:
        """Of a client whose node has crashed: whatever it runs stops by itself now."""
        assert self.layered is not None
        del self.layered.orphans[client.number]
        self.layered.leaves(self.now, client)
        if self.trace is not None:
            self.trace.lease_lost(self.now, client.node, client.number)

    def wake(self, me: int, chance: float) -> None:
        """Something may be due at this node."""
        assert self.layered is not None
        node = self.turn(me)
        self.layered.layers[me].timer(WAKE, chance)
        cause = {"chance": chance, **self.layered.news(me)}
        self.done(node, "timer", cause, 0, 0)

    # -- the step ---------------------------------------------------------------------

    def turn(self, me: int) -> Actor:
        """Node ``me`` is about to act: set its clock, draw what the algorithm leaves open."""
        node = self.nodes[me]
        if self.layered is not None:
            self.layered.set_clock(me, self.now)
        self.choice = -1
        if self.choosing and isinstance(node, ChoosingActor):
            count = node.choices()
            if count > 1:
                self.choice = self.chosen(me, count)
                node.choose(self.choice)
        return node

    def chosen(self, me: int, count: int) -> int:
        return int(self.draw() * count)

    def record(self, node: Actor, event: str, cause: dict[str, Any]) -> None:
        leased = None if self.layered is None else self.layered.judge(self.now, node.me)
        if self.trace is not None:
            self.trace.step(self.now, event, node, cause, self.out, self.choice, leased)
            for lost in self.lost:
                self.trace.dropped(self.now, lost)
        self.lost.clear()

    def hands_over(self, message: Message) -> None:
        if self.layered is not None:
            self.layered.lends(self.now, message)
        elif message.lends() == 0:
            if self.watched and message.tokens() > 0:
                self.monitor.forget_the_first()
        elif self.monitor.due or self.monitor.raised is not None:
            node = message.receiver
            waiting = [
                client.rival
                for client in self.present.values()
                if client.rival is not None and client.node == node and not client.inside
            ]
            self.monitor.lends(self.now, node, waiting, message.lends())

    def admits(self, node: Actor, enter: Enter) -> int:
        client = self.present[enter.client]
        if self.layered is None:
            self.monitor.enters(self.now, client.node, client.want, client.rival)
        else:
            self.layered.enters(self.now, client, enter)
        client.inside = True
        self.enters(node, client)
        return client.want

    def keeps(self, node: Actor, save: Save) -> None:
        if self.layered is not None:
            self.layered.disk[node.me] = save.record

    def takes_away(self, node: Actor, lost: Lost) -> None:
        client = self.present.pop(lost.client)
        if self.layered is not None:
            self.layered.leaves(self.now, client)
        else:
            client.inside = False
            self.monitor.leaves(client.want)
        self.loses(client)

    def unbalanced(self, node: Actor, tokens: int, permits: int) -> None:
        self.monitor.balance(self.now, node.me, tokens, permits)

    # -- what a kind of run says --------------------------------------------------------

    def enters(self, node: Actor, client: SimulatedClient) -> None:
        """A client has been let in."""
        raise NotImplementedError

    def loses(self, client: SimulatedClient) -> None:
        """The lease of a client inside has ended, and it has stopped."""
        raise NotImplementedError

    def first_on(self, one: int, other: int) -> Message | None:
        """The first message, either way, that is on this link."""
        raise NotImplementedError

    def arrive(self, message: Message) -> None:
        """Take it off its link and deliver it."""
        raise NotImplementedError

    def come_back(self, message: Message) -> None:
        """Take it off its link and return it to its sender."""
        raise NotImplementedError

    def lose(self, message: Message) -> None:
        """This message, which was on its way, never arrives."""
        raise NotImplementedError

    def pieces(self) -> int:
        """Into how many the network is parted, as far as its nodes have been notified."""
        return 1
