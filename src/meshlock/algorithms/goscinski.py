"""Goscinski's priority queue in the token: ask everybody, the most urgent goes first.

Goscinski, *Two algorithms for mutual exclusion in real-time distributed computer systems*, Journal
of Parallel and Distributed Computing 9(1), 1990: the second of the two, the one with a token.

**Problem.** One permit; the holder of the token may enter. Of those who wait, the one with the
highest priority goes next.

**Idea.** Suzuki and Kasami's broadcast with a sorted queue. A site without the token sends a
REQUEST with its priority to all others. The token carries the queue of those who wait, in order of
priority and, in ties, of arrival. A site that leaves queues the sites that asked while it
had the token, each at its place, and passes the token to the front. As there, requests are numbered
and the token knows the number of each site's last one that was served, so that a REQUEST that
comes late is known for what it is.

**Assumptions.** A complete graph; reliable channels, **not** FIFO; no crash; a client leaves in
finite time. A site of low priority may starve: that is what priorities are for.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
(none)                  token_here              the token is at this site
(none)                  requesting()            waiting for the token, or in CS
(none)                  asked                   highest known request number of each site
(none)                  urgent                  and the priority of that request
(none)                  served                  number of each site's last served request
queue in the token      queue                   who waits and how urgently, the first first
======================  ======================  ==========================================

``queue`` and ``served`` travel with the token and are empty at a site without it.

**Cost.** N messages per entry (N - 1 REQUESTs and the token), or 0 if the token is here;
synchronisation delay one message delay T.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.site import TokenMessage, TokenSite, WaitingSite, line_up, sites


class Request(Message):
    """REQUEST: the sender asks for the n-th time, with this priority."""

    wire: ClassVar = ("count", "urgency")

    def __init__(self, receiver: int, number: int, priority: int) -> None:
        super().__init__(receiver)
        self.number = number
        self.priority = priority


class Token(TokenMessage):
    """The token with the queue."""

    wire: ClassVar = ("priorities", "counts")

    def __init__(
        self, receiver: int, queue: tuple[WaitingSite, ...], served: tuple[int, ...]
    ) -> None:
        super().__init__(receiver)
        self.queue = queue
        self.served = served


class GoscinskiNode(TokenSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.asked = [0] * self.size
        self.urgent = [0] * self.size
        self.served: list[int] = [0] * self.size if self.token_here else []
        self.queue: list[WaitingSite] = []

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        if self.token_here:
            self.enter(client)
            return
        self.asked[self.me] += 1
        for site in self.others():
            self.send(Request(site, self.asked[self.me], priority))

    def release(self, client: int) -> None:
        self.client = NIL
        self.served[self.me] = self.asked[self.me]
        lined_up = [site for site, _ in self.queue]
        for site in range(self.size):
            if self.waits(site) and site not in lined_up:
                line_up(self.queue, (site, self.urgent[site]))
        if self.queue:
            site, _ = self.queue.pop(0)
            self.pass_token(site)

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.requested(message.sender, message.number, message.priority)
        elif isinstance(message, Token):
            self.token_here = True
            self.queue = list(message.queue)
            self.served = list(message.served)
            self.enter(self.client)

    def requested(self, site: int, number: int, priority: int) -> None:
        if number > self.asked[site]:
            self.asked[site] = number
            self.urgent[site] = priority
        if self.token_here and not self.requesting() and self.waits(site):
            self.pass_token(site)

    def waits(self, site: int) -> bool:
        """Has this site asked once more than it was served?"""
        return self.asked[site] == self.served[site] + 1

    def pass_token(self, site: int) -> None:
        self.send(Token(site, tuple(self.queue), tuple(self.served)))
        self.token_here = False
        self.queue = []
        self.served = []

    def known_priority(self) -> int | None:
        return self.queue[0][1] if self.queue else None


ALGORITHMS = [
    Algorithm(
        "goscinski",
        "Goscinski's token: ask everybody, the most urgent goes first",
        "Goscinski, Journal of Parallel and Distributed Computing 9(1), 1990",
        "mutex",
        sites(GoscinskiNode),
        (Request, Token),
        assumes=Assumptions(complete_graph=True),
        serves=Serves(priorities=True),
    )
]
