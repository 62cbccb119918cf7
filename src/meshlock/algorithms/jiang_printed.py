"""Jiang's prioritized h-out-of-k allocation, exactly as its appendix prints it.

Jiang, *Prioritized h-out of-k Resource Allocation for Mobile Ad Hoc Networks and
Distributed Systems*, long version with appendix.

**This edition is an object of study.** It is safe, but it loses requests; the edition to
use is ``jiang``. docs/algorithms/what-is-wrong.md shows each fault in a schedule one can play.

**Problem.** k identical permits; a client asks for h of them with a priority; the highest
is to be served first and everybody in the end.

**Idea.** One token carries the number of free permits. Every node has a height, a triple
that ends in its own number, and links point from high to low, so that they form a graph
without cycles whose only sink is the holder of the token. A request goes to the lowest
neighbour, which puts it into its queue by priority and asks in its own name; a token
comes back along the queues. A node that receives it goes below the giver. A node that
has lost its last way down rises (partial reversal) and asks anew. When a more urgent
request comes behind one already forwarded, an UPDATE follows it. Permits that come back
while the token is elsewhere go down as RELEASE.

**Assumptions.** Links are two-way and FIFO, form and fail with notice to both ends, and
what is on a failing link still arrives; no crash, no partition; one client per node at a
time.

=================  =================  ==================================================
paper              here               meaning
=================  =================  ==================================================
state              state              NCS, ES (wants in) or CS (is in)
N                  near               neighbours from which a LINK has come
height             height             (h1, h2, i)
htVector           seen_height        the neighbours' heights as far as we know
next               next               whom we asked, or gave the token to, last
tokenHolder        token_holder       we have the token
t (of TOKEN)       free               free permits, while we have the token
Q                  queue              (node, priority), the most urgent first
not receivedLINK   link_due           gave it the token, its new height has not come yet
forming,           forming            link just formed: our height when we noticed
formHeight
h, R               want, priority     what our client asked for
"wait until t>=h"  waiting            giveTokenToFrontOfQ stands at its line 10
=================  =================  ==================================================

**Cost** per entry: REQUEST and TOKEN as Reverse Link (just under 4 at saturation), LINK =
token hops x degree of the visited node, RELEASE = way to the token unless the token is
here, UPDATE at most one per hop and rise.

**Readings.** Every line stands beside a comment with its handler and number. Where the
text leaves something open, it is read thus:

- The blocking wait is a state; losing the token ends it ("terminates directly").
- Whether a RELEASE ends the wait: the prose says so, RELEASE line 2 does not (J5). Option
  ``recheck``: ``prose`` or ``appendix``.
- enqueue puts equal priorities in order of arrival, and two of one node side by side (J13).
- htVector of oneself is one's own height (J17); epsilon is 0.001.
- Where a handler needs a neighbour and N is empty, it does nothing (J7). A RELEASE is
  then lost, and with it its permits.
- giveTokenToFrontOfQ with an empty Q does nothing: "only called when |Q| > 0" (J14).
"""

from __future__ import annotations

from math import floor
from typing import ClassVar

from meshlock.algorithms.actor import (
    NIL,
    Actor,
    Algorithm,
    Assumptions,
    Effect,
    Message,
    Network,
    Options,
    Serves,
)
from meshlock.algorithms.reverse_link import Height, HeightNode, Link, first_heights

NCS, ES, CS = 0, 1, 2

EPSILON = 0.001


class Token(Message):
    """TOKEN(t): the right to let clients in, and t free permits."""

    def __init__(self, receiver: int, free: int, height: Height) -> None:
        super().__init__(receiver)
        self.free = free
        self.height = height

    def tokens(self) -> int:
        return 1

    def permits(self) -> int:
        return self.free


class UrgentMessage(Message):
    def __init__(self, receiver: int, priority: float, height: Height) -> None:
        super().__init__(receiver)
        self.priority = priority
        self.height = height


class Request(UrgentMessage):
    """REQUEST(i, R) from i: the token is wanted here, by somebody of priority R."""


class Update(UrgentMessage):
    """UPDATE(i, S) from i: what I asked you for has become as urgent as S."""


class Release(Message):
    """RELEASE(r): r permits on their way back to the token."""

    def __init__(self, receiver: int, returned: int, height: Height) -> None:
        super().__init__(receiver)
        self.returned = returned
        self.height = height

    def permits(self) -> int:
        return self.returned


class PrintedNode(HeightNode):
    no_state: ClassVar = ("recheck",)

    def __init__(
        self,
        me: int,
        out: list[Effect],
        height: Height,
        seen_height: dict[int, Height],
        permits: int,
        recheck: bool,
    ) -> None:
        super().__init__(me, out)
        self.state = NCS
        self.near = set(seen_height)
        self.height = height
        self.seen_height = seen_height
        self.next = me if me == 0 else self.lowest_neighbour()
        self.token_holder = me == 0
        self.free = permits if me == 0 else 0
        self.queue: list[tuple[int, float]] = []
        self.link_due: set[int] = set()
        self.forming: dict[int, Height] = {}
        self.waiting = False
        self.client = NIL
        self.want = 0
        self.priority = 0
        self.recheck = recheck

    # -- when node i requests to enter the CS to access h resources with priority R -----

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.want = want
        self.priority = priority
        self.state = ES  # request 1
        self.enqueue(self.me, float(priority))  # request 2
        if not self.token_holder:  # request 3
            if len(self.queue) == 1:  # request 4
                self.forward_request()
        else:  # request 5
            self.give_token_to_front_of_queue()

    # -- when node i leaves the CS to release r copies of resources ---------------------

    def release(self, client: int) -> None:
        returned = self.want
        self.client = NIL
        self.state = NCS  # leave 1
        self.age()  # leave 2
        if not self.token_holder:  # leave 3
            self.forward_release(returned)  # leave 4
        else:  # leave 5
            self.free += returned  # leave 6
            if self.queue:  # leave 7
                self.give_token_to_front_of_queue()

    def receive(self, message: Message) -> None:
        if isinstance(message, Token):
            self.token(message.sender, message.free, message.height)
        elif isinstance(message, Request):
            self.requested(message.sender, message.priority, message.height)
        elif isinstance(message, Update):
            self.update(message.sender, message.priority)
        elif isinstance(message, Release):
            self.released(message.returned)
        elif isinstance(message, Link):
            self.link(message.sender, message.height)

    # -- when TOKEN is received at node i from node j -----------------------------------

    def token(self, j: int, free: int, height: Height) -> None:
        self.token_holder = True  # TOKEN 1
        self.free = free
        self.seen_height[j] = height  # TOKEN 2
        self.height = (height[0], height[1] - 1, self.me)  # TOKEN 3, TOKEN 4
        self.send_height()  # TOKEN 5
        if self.queue:  # TOKEN 6
            self.give_token_to_front_of_queue()

    # -- when REQUEST(j, S) is received at node i from node j ---------------------------

    def requested(self, j: int, priority: float, height: Height) -> None:
        if j not in self.link_due:  # REQUEST 1
            self.seen_height[j] = height
        if self.height < self.seen_height[j]:  # REQUEST 2
            self.enqueue(j, priority)
        if self.token_holder:  # REQUEST 3
            if self.state != CS:  # REQUEST 4
                self.give_token_to_front_of_queue()
        # REQUEST 5
        elif len(self.queue) == 1 or (self.queue and self.next_has_reversed()):  # REQUEST 6
            self.forward_request()
        elif len(self.queue) >= 2 and self.queue[0] == (j, priority):  # REQUEST 7
            self.forward_update()  # REQUEST 8

    # -- when UPDATE(j, S) is received at node i from node j ----------------------------

    def update(self, j: int, priority: float) -> None:
        place = self.place_of(j)
        if place == NIL:  # UPDATE 1
            return
        del self.queue[place]  # UPDATE 2
        self.enqueue(j, priority)
        in_front = self.queue[0][0] == j
        if (  # UPDATE 3
            self.token_holder and self.state == ES and priority > self.priority and in_front
        ):
            self.give_token_to_front_of_queue()  # UPDATE 4
            self.send(Request(self.next, float(self.priority), self.height))  # UPDATE 5
        if not self.token_holder and in_front and place > 0:  # UPDATE 6
            self.forward_update()  # UPDATE 7

    # -- when RELEASE(r) is received at node i ------------------------------------------

    def released(self, returned: int) -> None:
        if self.token_holder:  # RELEASE 1
            self.free += returned  # RELEASE 2
            if self.recheck and self.waiting and self.free >= self.want:
                self.enter_cs()  # the prose: "node i can stop the waiting"
        else:  # RELEASE 3
            self.forward_release(returned)  # RELEASE 4

    # -- when LINK is received at node i from node j ------------------------------------

    def link(self, j: int, height: Height) -> None:
        self.near.add(j)  # LINK 1
        if j in self.forming:  # LINK 2
            if self.height != self.forming[j]:
                self.send(Link(j, self.height))
            del self.forming[j]  # LINK 3
        if j not in self.link_due:  # LINK 4
            self.seen_height[j] = height
        elif self.seen_height[j] == height:  # LINK 5
            self.link_due.remove(j)
        if self.height > self.seen_height[j]:  # LINK 6
            self.delete(j)
        if self.is_lowest() and not self.token_holder:  # LINK 7
            self.raise_height()
        elif self.queue and self.next_has_reversed():  # LINK 8
            self.forward_request()

    # -- when failure of the link to j is detected at node i ----------------------------

    def link_down(self, peer: int) -> None:
        self.near.discard(peer)  # failure 1
        self.delete(peer)  # failure 2
        self.link_due.discard(peer)  # failure 3
        self.forming.pop(peer, None)  # a link that has failed is not forming
        if not self.token_holder:  # failure 4
            if self.is_lowest():  # failure 5
                self.raise_height()
            elif self.queue and self.next not in self.near:  # failure 6
                self.forward_request()

    # -- when formation of the link to j is detected at node i --------------------------

    def link_up(self, peer: int) -> None:
        self.send(Link(peer, self.height))  # formation 1
        self.forming[peer] = self.height  # formation 2, formation 3

    # -- procedures -----------------------------------------------------------------------

    def forward_request(self) -> None:
        if self.near:
            self.next = self.lowest_neighbour()  # forwardRequest 1
            self.send(Request(self.next, self.queue[0][1], self.height))  # forwardRequest 2

    def forward_update(self) -> None:
        if self.near:
            self.next = self.lowest_neighbour()  # forwardUpdate 1
            self.send(Update(self.next, self.queue[0][1], self.height))  # forwardUpdate 2

    def forward_release(self, returned: int) -> None:
        if self.near:
            self.next = self.lowest_neighbour()  # forwardRelease 1
            self.send(Release(self.next, returned, self.height))  # forwardRelease 2

    def give_token_to_front_of_queue(self) -> None:
        if not self.queue:
            return
        self.next = self.queue.pop(0)[0]  # giveToken 1
        self.age()  # giveToken 2
        if self.next != self.me:  # giveToken 3
            self.waiting = False  # "when the token is preempted, the procedure terminates"
            self.token_holder = False  # giveToken 4
            below = (self.height[0], self.height[1] - 1, self.next)
            self.seen_height[self.next] = below  # giveToken 5
            self.link_due.add(self.next)  # giveToken 6
            self.send(Token(self.next, self.free, self.height))  # giveToken 7
            self.free = 0
            if self.queue:  # giveToken 8
                self.send(Request(self.next, self.queue[0][1], self.height))
        elif self.free >= self.want:  # giveToken 9, giveToken 10
            self.enter_cs()
        else:
            self.waiting = True

    def enter_cs(self) -> None:
        """What follows the wait in giveTokenToFrontOfQ."""
        self.waiting = False
        self.free -= self.want  # giveToken 11
        self.state = CS  # giveToken 12
        self.enter(self.client)  # giveToken 13
        if self.queue:  # giveToken 14
            self.give_token_to_front_of_queue()

    def raise_height(self) -> None:
        if not self.near:
            return
        self.height = self.risen()  # raiseHeight 1, raiseHeight 2, raiseHeight 3
        self.send_height()  # raiseHeight 4
        for v in sorted(self.near):  # raiseHeight 5
            if self.height > self.seen_height[v]:
                self.delete(v)
        if self.queue:  # raiseHeight 6
            self.forward_request()

    def age(self) -> None:
        # aging 1, aging 2; rounded, so that equal sums of epsilons are equal numbers
        self.queue = [(v, round(priority + EPSILON, 3)) for v, priority in self.queue]

    # -- the words of the text ------------------------------------------------------------

    def enqueue(self, j: int, priority: float) -> None:
        place = len(self.queue)
        while place > 0 and self.queue[place - 1][1] < priority:
            place -= 1
        self.queue.insert(place, (j, priority))

    def delete(self, j: int) -> None:
        self.queue = [entry for entry in self.queue if entry[0] != j]

    def place_of(self, j: int) -> int:
        for place in range(len(self.queue)):
            if self.queue[place][0] == j:
                return place
        return NIL

    def next_has_reversed(self) -> bool:
        """height < htVector[next]"""
        return self.next != self.me and self.height < self.seen_height[self.next]

    # -- observers --------------------------------------------------------------------------

    def free_permits(self) -> int:
        return self.free

    def known_priority(self) -> int | None:
        return floor(self.queue[0][1]) if self.queue else None


def make(network: Network, permits: int, options: Options, out: list[Effect]) -> list[Actor]:
    heights = first_heights(network)
    nodes: list[Actor] = []
    recheck = options["recheck"] == "prose"
    for me in range(network.size):
        seen = {v: heights[v] for v in network.neighbours(me)}
        nodes.append(PrintedNode(me, out, heights[me], seen, permits, recheck))
    return nodes


ALGORITHMS: list[Algorithm] = [
    Algorithm(
        "jiang-printed",
        "Prioritized h-out-of-k allocation as printed, faults and all",
        "Jiang, Prioritized h-out of-k Resource Allocation for Mobile Ad Hoc Networks and "
        "Distributed Systems, appendix",
        "h-of-k",
        make,
        (Token, Request, Release, Update, Link),
        assumes=Assumptions(changing_links=True, fifo=True),
        serves=Serves(priorities=True),
        structure=("downhill",),
        options={"recheck": ("prose", "appendix")},
    ),
]
