"""Lamport's mutual exclusion: one queue, kept by everybody, in the order of the clocks.

Lamport, *Time, clocks, and the ordering of events in a distributed system*,
Communications of the ACM 21(7), 1978.

**Problem.** One permit, no token: everybody must agree who is next.

**Idea.** Each site has a logical clock: it ticks with the site's own events and jumps
beyond the stamp of every message that comes in. A site that wants to enter sends its
stamped REQUEST to all, and all put it into their copies of the queue and answer with a
stamped ACK. It enters when its request is the oldest in its own copy (stamps first, site
numbers among equals) and it has had something younger than its request from every other
site: links keep the order, so nothing older can still be on its way. RELEASE takes the
request out of everybody's copy.

**Assumptions.** A complete graph; reliable **FIFO** channels; no crash; a client leaves in
finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
C_i                     clock                   the logical clock
request queue           queue                   stamp of each site's request; 0 if none
rule 5(ii)              heard                   from whom something younger has come
======================  ======================  ==========================================

The paper compares the stamps of all that ever came; what came before our request cannot
be younger than it, so remembering *who* sent something younger since is the same.

**Cost.** 3(N - 1) messages per entry at any load; synchronisation delay one message
delay T; wait at light load 2T.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.site import OneClientSite, sites


class Stamped(Message):
    """What every message carries: the sender's clock."""

    wire: ClassVar = ("count",)

    def __init__(self, receiver: int, stamp: int) -> None:
        super().__init__(receiver)
        self.stamp = stamp


class Request(Stamped):
    """The sender wants to enter, since this stamp."""


class Ack(Stamped):
    """The sender has put our request into its queue."""


class Release(Stamped):
    """The sender has left."""


class LamportNode(OneClientSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.clock = 0
        self.queue = [0] * self.size
        self.heard = [False] * self.size
        self.inside = False

    def request(self, client: int, want: int, priority: int) -> None:  # rule 1
        self.client = client
        self.clock += 1
        self.queue[self.me] = self.clock
        for site in self.others():
            self.send(Request(site, self.clock))
        self.enter_if_first()

    def receive(self, message: Message) -> None:
        if isinstance(message, Stamped):
            site, stamp = message.sender, message.stamp
            self.clock = max(self.clock, stamp + 1)
            if self.waiting() and self.younger(stamp, site):
                self.heard[site] = True
            if isinstance(message, Request):  # rule 2
                self.queue[site] = stamp
                self.send(Ack(site, self.clock))
            elif isinstance(message, Release):  # rule 4
                self.queue[site] = 0
            self.enter_if_first()

    def release(self, client: int) -> None:  # rule 3
        self.client = NIL
        self.inside = False
        self.clock += 1
        self.queue[self.me] = 0
        self.heard = [False] * self.size
        for site in self.others():
            self.send(Release(site, self.clock))

    def enter_if_first(self) -> None:  # rule 5
        if self.waiting() and self.first() and self.nothing_older_can_come():
            self.inside = True
            self.enter(self.client)

    def waiting(self) -> bool:
        return self.queue[self.me] > 0 and not self.inside

    def younger(self, stamp: int, site: int) -> bool:
        """Is this stamp of that site younger than our own request?"""
        mine = self.queue[self.me]
        return stamp > mine or (stamp == mine and site > self.me)

    def first(self) -> bool:
        """Is our request the oldest in the queue?"""
        for site in range(self.size):
            stamp = self.queue[site]
            if site != self.me and stamp > 0 and not self.younger(stamp, site):
                return False
        return True

    def nothing_older_can_come(self) -> bool:
        return all(self.heard[site] for site in range(self.size) if site != self.me)


ALGORITHMS = [
    Algorithm(
        "lamport",
        "Lamport: everybody keeps the queue, in the order of logical clocks",
        "Lamport, Communications of the ACM 21(7), 1978",
        "mutex",
        sites(LamportNode),
        (Request, Ack, Release),
        assumes=Assumptions(fifo=True, complete_graph=True),
        serves=Serves(token=False),
    )
]
