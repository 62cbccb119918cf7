"""Links as live nodes have them: each end learns of a change by itself, and nothing comes back.

**A failure.** Each end *notices* it after a time of its own. What is on the link goes on
arriving, in order, as long as the receiver has not noticed; but a direction may also be dead at
once, which is drawn. An end that has not noticed goes on sending. When an end notices, all that is
still on its way to it is lost, but for what carries a token or permits: that stays in the
*custody* of its sender.

**Custody.** What custody keeps arrives late, in order, exactly once. By a detour, as soon as
the sender has noticed the failure and there is a way round it: it takes a message's time per
link, and a receiver that has not noticed the failure learns of it. Or else when the link is
back. A node that does not see the link any more may still send what carries a token or permits
over it, which custody then keeps at once.

**A return.** Each end learns of it after a time of its own, too. Then both have noticed the
failure at the latest, and what custody keeps for this end arrives before its ``link_up``.
An end that is up may send, but what it sends waits until the other is up. Should the link
fail again before that, only the first is notified.

A *life* of a link is the time between its forming and its failing; ends know which they see.
"""

from __future__ import annotations

from random import Random

from meshlock.algorithms.actor import Message
from meshlock.simulate.engine import RunSetup, Simulation
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.workload import Duration
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.world.channels import CUSTODY, precious

NO_LIFE = 0


class CustodyLink:
    """A link and its two ends; every list is by end, and holds what is on its way *to* it."""

    def __init__(self, one: int, other: int) -> None:
        self.nodes = (one, other)
        self.works = True
        self.life = 1
        self.sees = [NO_LIFE, NO_LIFE]  # the life in which this end is up
        self.noticed = [NO_LIFE, NO_LIFE]  # the last life that this end saw end
        self.dead = [False, False]  # nothing arrives here until the end is noticed
        self.wire: list[list[Message]] = [[], []]  # as it was sent
        self.waiting: list[list[Message]] = [[], []]  # of these, what would have arrived by now
        self.custody: list[list[Message]] = [[], []]
        self.detour = [False, False]  # one is under way

    def end(self, node: int) -> int:
        return 0 if node == self.nodes[0] else 1

    def one_sided(self) -> bool:
        """Does one end see the link, and the other not?"""
        return (self.sees[0] == NO_LIFE) != (self.sees[1] == NO_LIFE)


class CustodySimulation(MobileSimulation):
    def __init__(self, setup: RunSetup, notice: Duration) -> None:
        super().__init__(setup, CUSTODY)
        network = self.graph
        self.notice = notice
        self.dies = Random(f"{setup.seed}:dies").random
        self.lines: dict[int, CustodyLink] = {}
        self.agreed = LiveGraph(network.size, network.links())  # links that both ends see
        self.one_sided = 0  # links that one end sees
        self.stranded: dict[int, CustodyLink] = {}  # with a custody message, and no way round
        for one, other in network.links():
            line = CustodyLink(one, other)
            line.sees = [1, 1]
            self.lines[self.link(one, other)] = line

    # -- changes ------------------------------------------------------------------------

    def notice_later(self, line: CustodyLink, end: int, up: bool) -> None:
        """This end will learn that the present life of its link has begun, or is over."""
        time, life = self.now + self.notice.draw(), line.life
        if up:
            self.schedule(time, lambda: self.notices_return(line, end, life))
        else:
            self.schedule(time, lambda: self.notices_failure(line, end, life))

    def formed(self, one: int, other: int) -> None:
        line = self.lines.get(self.link(one, other))
        if line is None:
            line = self.lines[self.link(one, other)] = CustodyLink(one, other)
        else:
            line.works = True
            line.life += 1
        for end in (0, 1):
            self.notice_later(line, end, True)
        for key in list(self.stranded):
            waiting = self.stranded.pop(key)
            self.seek(waiting, 0)
            self.seek(waiting, 1)

    def failing(self, one: int, other: int) -> None:
        """What is on it goes on."""

    def failed(self, one: int, other: int) -> None:
        line = self.lines[self.link(one, other)]
        line.works = False
        for end in (0, 1):
            if line.sees[end] == line.life:
                line.dead[end] = self.dies() < 0.5
                self.notice_later(line, end, False)

    def pieces(self) -> int:
        return self.agreed.components

    # -- an end learns of it ---------------------------------------------------------------------

    def notices_failure(self, line: CustodyLink, end: int, life: int) -> None:
        """This end notices that its link has failed, if it still sees that life of it."""
        if line.sees[end] != life:
            return
        me, peer = line.nodes[end], line.nodes[1 - end]
        self.see(line, end, NO_LIFE)
        line.noticed[end] = life
        line.custody[end] = self.clear(line, end) + line.custody[end]
        if line.sees[1 - end] != life:  # it will not receive what we sent in this life
            line.custody[1 - end] += self.clear(line, 1 - end)
        self.link_changes(me, peer, False)
        self.seek(line, 0)
        self.seek(line, 1)

    def notices_return(self, line: CustodyLink, end: int, life: int) -> None:
        """This end learns that its link is back, unless it has failed again."""
        if not line.works or line.life != life:
            return
        me, peer = line.nodes[end], line.nodes[1 - end]
        for old in (end, 1 - end):
            if line.sees[old] not in (NO_LIFE, line.life):
                self.notices_failure(line, old, line.sees[old])
        while line.custody[end]:
            self.deliver_late(line, end)
        if line.sees[1 - end] == line.life:
            while line.custody[1 - end]:
                self.deliver_late(line, 1 - end)
        line.dead[end] = False
        self.forget_order(me, peer)
        self.see(line, end, line.life)
        self.link_changes(me, peer, True)
        arrived = line.waiting[end]
        line.waiting[end] = []
        for message in arrived:
            self.deliver(message)

    def see(self, line: CustodyLink, end: int, life: int) -> None:
        """Note what this end sees, just before its node is notified."""
        self.one_sided -= line.one_sided()
        line.sees[end] = life
        self.one_sided += line.one_sided()
        one, other = line.nodes
        if line.sees[0] != NO_LIFE and line.sees[1] != NO_LIFE:
            self.agreed.connect(one, other)
        elif self.agreed.linked(one, other):
            self.agreed.cut(one, other)
        # What one end does not know of may be a request that was lost.
        self.monitor.changed(self.agreed.components == 1 and self.one_sided == 0)

    def clear(self, line: CustodyLink, end: int) -> list[Message]:
        """Clear what is on its way to this end; the result is what must not be lost."""
        rest: list[Message] = []
        for message in line.wire[end]:
            if precious(message):
                rest.append(message)
            else:
                self.drop(message)
        line.wire[end] = []
        line.waiting[end] = []
        return rest

    # -- custody messages ------------------------------------------------------------------

    def seek(self, line: CustodyLink, end: int) -> None:
        """Look for a way round for what custody keeps for this end."""
        sender, receiver = line.nodes[1 - end], line.nodes[end]
        if line.detour[end] or line.sees[1 - end] != NO_LIFE:
            return  # the sender does not know that it is needed
        if not line.custody[end] and not any(precious(message) for message in line.wire[end]):
            return
        links = len(self.graph.path(sender, receiver, direct=False)) - 1
        if links < 0:
            self.stranded[self.link(sender, receiver)] = line
            return
        line.detour[end] = True
        time = self.now
        for _ in range(links):
            time += self.delay.draw()
        self.schedule(time, lambda: self.come_round(line, end, links))

    def come_round(self, line: CustodyLink, end: int, links: int) -> None:
        """The first custody message for this end has come round the failed link."""
        line.detour[end] = False
        if line.sees[1 - end] != NO_LIFE or (line.works and line.sees[end] == line.life):
            return  # the link is back
        if not self.graph.path(line.nodes[1 - end], line.nodes[end], direct=False):
            self.seek(line, end)
            return
        if line.sees[end] != NO_LIFE:
            self.notices_failure(line, end, line.sees[end])
        if line.custody[end]:
            self.measures.more_crossings += links
            self.deliver_late(line, end)
        self.seek(line, end)

    def deliver_late(self, line: CustodyLink, end: int) -> None:
        message = line.custody[end].pop(0)
        self.late += 1
        Simulation.deliver(self, message)

    # -- messages on the link ---------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        if self.is_stray(message):
            return
        line = self.lines[self.link(message.sender, message.receiver)]
        end = line.end(message.receiver)
        if message not in line.wire[end]:
            return  # lost, or kept by custody, or it has arrived from there
        if line.sees[end] == NO_LIFE or line.dead[end]:
            line.waiting[end].append(message)
            return
        line.wire[end].remove(message)
        Simulation.deliver(self, message)

    def transmit(self, message: Message) -> None:
        if message.serial > 0:
            raise ValueError(f"node {message.sender} sent one {message.kind} object twice")
        line = self.lines.get(self.link(message.sender, message.receiver))
        if line is None:
            self.stray(message)
            return
        end = line.end(message.receiver)
        life = line.sees[1 - end]
        if life != NO_LIFE and line.noticed[end] != life:
            line.wire[end].append(message)
            Simulation.transmit(self, message)
        elif precious(message):
            self.number_unsent(message)
            line.custody[end].append(message)
            self.seek(line, end)
        elif life == NO_LIFE:
            self.stray(message)
        else:  # the receiver has noticed what the sender has not
            Simulation.transmit(self, message)
            self.strays.add(message.serial)

    def number_unsent(self, message: Message) -> None:
        """Number a message that goes straight into custody, and crosses no link yet."""
        self.measures.more_crossings -= 1
        self.in_flight += 1
        self.serial_number += 1
        message.serial = self.serial_number
