"""Mueller's prioritized token: a tree that turns, and local queues that are one queue together.

Mueller, *Prioritized token-based mutual exclusion for distributed systems*, WPDRTS 1997 and IPPS
1998.

**Problem.** One permit; the holder of the token may enter. Of those who wait, the one with the
highest priority goes next, for as few messages as without priorities.

**Idea.** Naimi and Trehel's tree of fathers, with sorted queues in place of next pointers. A
request climbs the tree; an idle site on its way makes the requester its father. Where it meets a
site that waits and is at least as urgent, it stays in the queue of that site, which will have the
token first. The site with the token queues all that reaches it. A leaving site sends the token to
the first of its queue, and the rest of the queue with it, to be merged with the queue there.

A request that meets a *less* urgent site that waits must not stay, and cannot go on along the tree,
for the sites on that site's way point back to it by now. It goes after the token: every move of the
token has a number, its *hop*, and each site knows where the token went when it last had it (M1).

**Assumptions.** Any site can send to any other; reliable channels, **not** FIFO; no crash; a client
leaves in finite time. A site of low priority may starve.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
father                  father                  who asked last, as far as we know
local queue             queue                   who waits here and how urgently, in order
(none)                  priority                of our own request
(none)                  hop                     of the token: here, or the last we know of
(none)                  went                    where the token went with that hop
======================  ======================  ==========================================

**Departure.** M1: what is published of the paper does not say how a request gets past a less
urgent one that waits. Here it follows ``went``, whose hops only grow, so it cannot go in a circle,
and it stays only with the holder. A site that knows of an earlier hop than the request does
is about to get the token, and keeps the request for it.

**Cost.** One request at a time, asked uniformly by n sites: REQUEST and TOKEN together exactly
H(n-1) = 1 + 1/2 + ... + 1/(n-1) on average, n at worst, as Naimi and Trehel's. At saturation 2,
however many sites: who has left knows where the token went. Synchronisation delay one message
delay T.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.site import TokenMessage, TokenSite, WaitingSite, line_up, sites

ALONG_THE_TREE = 0


class Request(Message):
    """REQUEST: origin asks with this priority; ``hop``: of the move of the token that it follows,
    or ALONG_THE_TREE."""

    wire: ClassVar = ("node", "urgency", "hop")

    def __init__(self, receiver: int, origin: int, priority: int, hop: int) -> None:
        super().__init__(receiver)
        self.origin = origin
        self.priority = priority
        self.hop = hop


class Token(TokenMessage):
    """The token with the queue of the site that sends it."""

    wire: ClassVar = ("hop", "priorities")

    def __init__(self, receiver: int, hop: int, queue: tuple[WaitingSite, ...]) -> None:
        super().__init__(receiver)
        self.hop = hop
        self.queue = queue


class MuellerNode(TokenSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.priority = 0
        self.father = 0
        self.hop = 1
        self.went = 0
        self.queue: list[WaitingSite] = []

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.priority = priority
        if self.token_here:
            self.enter(client)
        else:
            self.send(Request(self.father, self.me, priority, ALONG_THE_TREE))

    def release(self, client: int) -> None:
        self.client = NIL
        self.priority = 0
        if self.queue:
            site, _ = self.queue.pop(0)
            self.pass_token(site)

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.requested(message.origin, message.priority, message.hop)
        elif isinstance(message, Token):
            self.received(message.hop, message.queue)

    def requested(self, origin: int, priority: int, hop: int) -> None:
        if self.token_here and not self.requesting():
            self.pass_token(origin)
        elif self.token_here or hop > self.hop or self.stays(priority, hop):
            line_up(self.queue, (origin, priority))
        elif self.requesting() or hop != ALONG_THE_TREE:
            self.send(Request(self.went, origin, priority, self.hop))  # M1
        else:
            self.send(Request(self.father, origin, priority, ALONG_THE_TREE))
        if not self.requesting():
            self.father = origin

    def stays(self, priority: int, hop: int) -> bool:
        """Do we wait, and are we at least as urgent as a request that climbs the tree?"""
        return self.requesting() and hop == ALONG_THE_TREE and self.priority >= priority

    def pass_token(self, site: int) -> None:
        self.token_here = False
        self.hop += 1
        self.went = site
        self.father = site
        self.send(Token(site, self.hop, tuple(self.queue)))
        self.queue = []

    def received(self, hop: int, queue: tuple[WaitingSite, ...]) -> None:
        self.token_here = True
        self.hop = hop
        self.went = self.me
        came_here = self.queue
        self.queue = list(queue)
        for waiting in came_here:
            line_up(self.queue, waiting)
        self.enter(self.client)

    def towards(self) -> int:
        return self.father

    def known_priority(self) -> int | None:
        return self.queue[0][1] if self.queue else None


ALGORITHMS = [
    Algorithm(
        "mueller",
        "Mueller's prioritized token: a tree that turns, local queues in order of priority",
        "Mueller, WPDRTS 1997; IPPS 1998",
        "mutex",
        sites(MuellerNode),
        (Request, Token),
        assumes=Assumptions(routed=True),
        serves=Serves(priorities=True),
    )
]
