"""A world that moves only when a script says so: each message, link, life and moment of time.

What cannot be done is refused with a sentence. Without members, every step takes one unit of time.
With members, time passes only when the script says so.
"""

from __future__ import annotations

from random import Random

from meshlock.algorithms.actor import NIL, Algorithm, Message
from meshlock.algorithms.recovery.messages import BEST_EFFORT, LINK, RELIABLE, Inner, content
from meshlock.errors import Refused
from meshlock.properties.sentences import no_link
from meshlock.topology.graphs import Graph
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.trace.convert import shown
from meshlock.trace.writer import TraceWriter
from meshlock.world.channels import CUSTODY, LEASES, precious
from meshlock.world.lives import LayeredNodes, LayerSetup
from meshlock.world.steps import Steps

ENDLESS = 10_000
"""Messages without a client that enters or leaves: after these, they are taken to go on forever."""


class Impossible(Refused):
    """This cannot be done now; the text is one sentence."""


class Missing(Impossible):
    """For the client that it would be done to is not there."""


class ScriptedWorld(Steps):
    """``failures``: of links. ``first``: the number of the first node, in the transcript.
    ``unordered``: links keep no order although the algorithm needs it."""

    def __init__(
        self,
        algorithm: Algorithm,
        options: dict[str, str],
        network: Graph,
        permits: int,
        seed: int,
        trace: TraceWriter | None,
        layer: LayerSetup | None,
        founder: int,
        *,
        failures: str,
        first: int = 0,
        unordered: bool = False,
    ) -> None:
        graph = LiveGraph(network.size, network.links())
        layered: LayeredNodes | None = None
        if layer is not None:
            layered = LayeredNodes(layer, algorithm, options, permits, graph.neighbours)
        super().__init__(algorithm, options, network, permits, seed, trace, layered, founder)
        self.network = network
        self.graph = graph  # as the links are now
        self.failures = failures
        self.custody = failures == CUSTODY
        # as each end sees it
        self.sees = {way for a, b in network.links() for way in ((a, b), (b, a))}
        self.monitor.changed(graph.components == 1)
        self.ordered = algorithm.assumes.fifo and not unordered
        self.on_the_way: list[Message] = []  # in the order in which they were sent
        self.sent_at: dict[int, float] = {}  # of these, where it matters
        self.held: set[tuple[int, int]] = set()
        self.hops = 0  # links crossed by all messages
        self.taken: dict[int, list[int]] = {}  # node that has crashed: its neighbours then
        self.chance = Random(f"{seed}:wake").random
        self.first = first
        self.text = ""  # of the step at hand
        self.lines: list[str] = []  # the transcript

    # -- messages -------------------------------------------------------------------------

    def hold(self, sender: int, receiver: int) -> None:
        """Nothing on this way is delivered unless it is said for each message."""
        self.held.add((sender, receiver))

    def let_go(self, sender: int, receiver: int) -> None:
        self.held.discard((sender, receiver))

    def deliver_first(self, sender: int, receiver: int, which: int = 1) -> None:
        self.deliver_at(self.place_of(sender, receiver, which))

    def lose_first(self, sender: int, receiver: int, which: int = 1) -> None:
        self.lose(self.on_the_way[self.place_of(sender, receiver, which)])

    def place_of(self, sender: int, receiver: int, which: int = 1) -> int:
        """Where the first message from one to the other is, or the one of that number."""
        places = [
            place
            for place, message in enumerate(self.on_the_way)
            if (message.sender, message.receiver) == (sender, receiver)
        ]
        if not 0 < which <= len(places):
            way = f"{self.called(sender)}->{self.called(receiver)}"
            many = "Nothing is" if which == 1 else f"Less than {which} are"
            raise Impossible(f"{many} on the way {way}.")
        return places[which - 1]

    def overtake(self, sender: int, receiver: int) -> None:
        first, second = self.place_of(sender, receiver), self.place_of(sender, receiver, 2)
        if self.ordered:
            self.lines.append(f"  the link keeps the order, which {self.algorithm.name} needs")
        else:
            line = self.on_the_way
            line[first], line[second] = line[second], line[first]

    def deliver_all(self) -> bool:
        """Deliver all there is, in the order sent; False if there is no end to it."""
        for _ in range(ENDLESS):
            places = [
                place
                for place, message in enumerate(self.on_the_way)
                if (message.sender, message.receiver) not in self.held and self.arrives(message)
            ]
            if not places:
                return True
            self.deliver_at(places[0])
        self.lines.append(f"  after {ENDLESS} messages there is no end in sight")
        return False

    def arrives(self, message: Message) -> bool:
        """Or does it wait for a way to its receiver?"""
        if self.layered is None or self.layered.carrier(message) != RELIABLE:
            return True
        return self.joined(message.sender, message.receiver)

    def deliver_at(self, place: int) -> None:
        """The message at this place of the line arrives, or is lost if its receiver is down."""
        message = self.on_the_way[place]
        if self.layered is not None:
            if not self.arrives(message):
                raise Impossible("This message waits: there is no route to its receiver.")
            if not self.layered.up[message.receiver]:
                self.lose(message)
                return
            if isinstance(message, Inner):
                under_way = self.now - self.sent_at.pop(message.serial, self.now)
                message.travelled = self.layered.clocks.longest(under_way)
        del self.on_the_way[place]
        self.text = f"gets {self.described(message)} from {self.called(message.sender)}"
        self.deliver(message)

    def overtakes(self, place: int) -> bool:
        """Is another on the same way, which keeps the order, before the message at this place?"""
        message, layered = self.on_the_way[place], self.layered
        way = (message.sender, message.receiver)
        before = [one for one in self.on_the_way[:place] if (one.sender, one.receiver) == way]
        if layered is None:
            return self.algorithm.assumes.fifo and bool(before)
        carriers = [layered.carrier(one) for one in (message, *before)]
        return carriers[0] != BEST_EFFORT and any(one != BEST_EFFORT for one in carriers[1:])

    def lose(self, message: Message) -> None:
        self.on_the_way.remove(message)
        self.in_flight -= 1
        way = f"from {self.called(message.sender)} to {self.called(message.receiver)}"
        self.lines.append(f"  {self.described(message)} {way} is lost")
        if self.trace is not None:
            self.trace.dropped(self.now, message)

    def arrive(self, message: Message) -> None:
        self.deliver_at(self.on_the_way.index(message))

    def come_back(self, message: Message) -> None:
        self.on_the_way.remove(message)
        self.text = f"{self.described(message)} to {self.called(message.receiver)} comes back"
        self.return_to_sender(message)

    def transmit(self, message: Message) -> None:
        one, other = message.sender, message.receiver
        message.serial = len(self.lines)  # every message has a line
        said = f"{self.described(message)} to {self.called(other)}"
        if self.custody or self.graph.linked(one, other):
            if self.custody and not precious(message) and (one, other) not in self.sees:
                self.monitor.report("neighbours", self.now, no_link(one, other))
            self.hops += 1
            self.lines.append(f"     sends {said}")
        elif self.layered is not None:
            self.lines.append(f"     sends {said}")
            self.hops += max(0, self.graph.distance(one, other))
            if not self.joined(one, other) and self.layered.carrier(message) != RELIABLE:
                self.lines.append("     which is lost: there is no way")
                self.lost.append(message)
                return
        elif self.algorithm.assumes.routed:
            hops = self.network.distance(one, other)
            self.hops += hops
            self.lines.append(f"     sends {said}, over {hops} links")
        else:
            missing = f"there is no link to {self.called(other)}"
            self.lines.append(f"     loses {self.described(message)}: {missing}")
            self.lost.append(message)
            self.monitor.balance(self.now, one, message.tokens(), message.permits())
            return
        if isinstance(message, Inner):
            self.sent_at[message.serial] = self.now
        self.in_flight += 1
        self.on_the_way.append(message)

    # -- links ------------------------------------------------------------------------------

    def notice(self, me: int, peer: int, up: bool) -> None:
        """One end learns of a change by itself; what is on its way stays there."""
        if not self.custody:
            raise Impossible("Both ends notice at once, unless failures are 'custody'.")
        if ((me, peer) in self.sees) == up:
            raise Impossible(f"Node {self.called(me)} has noticed this change already.")
        if up:
            self.sees.add((me, peer))
        else:
            self.sees.discard((me, peer))
        if {(me, peer), (peer, me)} <= self.sees:
            self.graph.connect(me, peer)
        elif self.graph.linked(me, peer):
            self.unlink(me, peer)
        agreed = all((b, a) in self.sees for a, b in self.sees)
        self.monitor.changed(agreed and self.graph.components == 1)
        self.sees_change(me, peer, up)

    def sees_change(self, me: int, peer: int, up: bool) -> None:
        self.text = f"sees the link to {self.called(peer)} {'form' if up else 'fail'}"
        self.link_changes(me, peer, up)

    def link_up(self, one: int, other: int) -> None:
        self.refuse_down(one)
        self.refuse_down(other)
        if self.graph.linked(one, other):
            raise Impossible(f"There is a link {self.called(one)}-{self.called(other)} already.")
        if self.custody:
            self.notice(one, other, True)
            self.notice(other, one, True)
            return
        self.graph.connect(one, other)
        self.monitor.changed(self.graph.components == 1)
        self.sees_change(one, other, True)
        self.sees_change(other, one, True)

    def link_down(self, one: int, other: int) -> None:
        between = f"{self.called(one)}-{self.called(other)}"
        if not self.graph.linked(one, other):
            raise Impossible(f"There is no link {between}.")
        if self.custody:
            self.notice(one, other, False)
            self.notice(other, one, False)
            return
        failures = self.failures if self.layered is None else LEASES
        if not self.empty_link(one, other, failures, ENDLESS):  # what arrives is answered
            raise Refused(f"The link {between} never becomes idle.")
        self.unlink(one, other)
        self.sees_change(one, other, False)
        self.sees_change(other, one, False)

    def first_on(self, one: int, other: int) -> Message | None:
        for message in self.on_the_way:
            on_link = self.layered is None or self.layered.carrier(message) == LINK
            if on_link and {message.sender, message.receiver} == {one, other}:
                return message
        return None

    @property
    def links(self) -> set[tuple[int, int]]:
        """Those there are now, the smaller node first."""
        return set(self.graph.links())

    def unlink(self, one: int, other: int) -> None:
        self.graph.cut(one, other)
        self.monitor.changed(self.graph.components == 1)

    def pieces(self) -> int:
        return self.graph.components

    def joined(self, one: int, other: int) -> bool:
        """Is there a way from one to the other?"""
        return one == other or not self.graph.apart(one, other)

    # -- lives --------------------------------------------------------------------------------

    def is_up(self, node: int) -> bool:
        return self.layered is None or self.layered.up[node]

    def refuse_down(self, node: int) -> None:
        if not self.is_up(node):
            raise Impossible(f"Node {self.called(node)} is down.")

    @property
    def recovering(self) -> LayeredNodes:
        """Its nodes, which must be of a pool with members."""
        if self.layered is None:
            raise Impossible(
                "Only nodes of a pool with members can crash, restart and have clocks: "
                "add 'members'."
            )
        return self.layered

    def crash(self, me: int) -> None:
        layered = self.recovering
        self.refuse_down(me)
        for message in reversed(self.on_the_way[:]):
            ends = (message.sender, message.receiver)
            if me in ends and layered.carrier(message) != BEST_EFFORT:
                self.lose(message)
        self.lines.append(f"  {self.called(me)}: crashes")
        self.end_life(me)
        peers = self.taken[me] = sorted(self.graph.near[me])
        for peer in peers:
            self.unlink(me, peer)
        for peer in peers:
            self.sees_change(peer, me, False)

    def restart(self, me: int, *without: str) -> None:
        """Perhaps without its ``disk``, or without its ``links``."""
        layered = self.recovering
        disk = "disk" not in without
        if layered.up[me]:
            raise Impossible(f"Node {self.called(me)} is up.")
        self.text = "restarts" if disk else "restarts without its disk"
        self.begin_life(me, disk)
        if "links" not in without:
            for peer in self.taken[me]:
                if layered.up[peer]:
                    self.link_up(min(me, peer), max(me, peer))

    def cannot_reach(self, me: int, *others: int) -> None:
        """The node learns that it cannot reach these."""
        layered = self.recovering
        self.refuse_down(me)
        layered.layers[me].cannot_reach(set(others))

    def rouse(self, me: int, chance: float | None = None) -> None:
        """The clock of this node says that something is due."""
        assert self.recovering
        self.refuse_down(me)
        self.text = "looks at its clock"
        self.wake(me, self.chance() if chance is None else chance)

    def set_time(self, time: float) -> None:
        """It is that time now, and leases of clients whose node is down have ended."""
        layered = self.recovering
        if time < self.now:
            raise Impossible(f"It is {self.now:g} already.")
        for end, number in sorted([(layered.ends[one], one) for one in layered.orphans]):
            if end <= time:
                self.now = max(self.now, end)
                self.end_lease(layered.orphans[number])
        self.now = time

    def wait(self, time: float) -> None:
        """Time passes: whatever is due happens, and what is on its way arrives at once."""
        layered = self.recovering
        end = self.now + time
        for _ in range(ENDLESS):
            self.notice_unreachable()
            if not self.deliver_all():
                break
            due, me = end, NIL
            for layer in layered.layers:
                at = layered.wake_at(layer.me)
                if layered.up[layer.me] and at < due:
                    due, me = at, layer.me
            self.set_time(max(self.now, due))
            if me == NIL:
                break
            self.rouse(me)

    def notice_unreachable(self) -> None:
        layered = self.recovering
        for layer in layered.layers:
            if layered.up[layer.me]:
                away = {
                    other
                    for other in range(self.network.size)
                    if not layered.up[other] or not self.joined(layer.me, other)
                }
                if away != layer.member.unreachable:
                    layer.cannot_reach(away)
                    self.rouse(layer.me)

    # -- words ----------------------------------------------------------------------------

    def called(self, node: int) -> str:
        return str(node + self.first)

    def described(self, message: Message) -> str:
        """Its kind and its fields, with nodes as the script calls them."""
        message = content(message)
        words = [message.kind]
        names = message.reductions.names or ()
        for name, value in zip(message.fields, message.freeze()[1:], strict=True):
            if name in names and isinstance(value, int):
                words.append(f"{name}={self.called(value) if value != NIL else 'nil'}")
            else:
                words.append(f"{name}={shown(value)}")
        return " ".join(words)
