"""Suzuki and Kasami's broadcast algorithm: ask everybody, pass one token.

Suzuki and Kasami, *A distributed mutual exclusion algorithm*, ACM Transactions on
Computer Systems 3(4), 1985.

**Problem.** One permit; the holder of the token may enter.

**Idea.** A site without the token sends a numbered REQUEST to all others. The token
carries the number of each site's last request that was served, and a queue of sites
whose turn will come. A site that leaves adds to the queue everybody whose known number
is one above the served one, and passes the token to the front. A REQUEST whose number has
been served already is out of date and is recognised by just that comparison.

**Assumptions.** A complete graph; reliable channels, **not** FIFO; no crash; a client
leaves in finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
HavePrivilege           token_here              the token is at this site
Requesting              requesting()            waiting for the token, or in CS
RN                      asked                   highest known request number of each site
LN                      served                  number of each site's last served request
Q                       queue                   who is to have the token, in this order
======================  ======================  ==========================================

LN and Q travel with the token and are empty at a site without it.

**Cost.** N messages per entry (N - 1 REQUESTs and the token), or 0 if the token is here;
synchronisation delay one message delay T.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network
from meshlock.algorithms.site import Numbered, TokenMessage, TokenSite, sites


class Request(Numbered):
    """REQUEST(j, n): the sender asks for the n-th time."""


class Token(TokenMessage):
    """PRIVILEGE(Q, LN)."""

    wire: ClassVar = ("nodes", "counts")

    def __init__(self, receiver: int, queue: tuple[int, ...], served: tuple[int, ...]) -> None:
        super().__init__(receiver)
        self.queue = queue
        self.served = served


class SuzukiKasamiNode(TokenSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.asked = [0] * self.size
        self.served: list[int] = [0] * self.size if self.token_here else []
        self.queue: list[int] = []

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        if self.token_here:
            self.enter(client)
            return
        self.asked[self.me] += 1
        for site in self.others():
            self.send(Request(site, self.asked[self.me]))

    def release(self, client: int) -> None:
        self.client = NIL
        self.served[self.me] = self.asked[self.me]
        for site in self.others():
            if site not in self.queue and self.waits(site):
                self.queue.append(site)
        if self.queue:
            self.pass_token(self.queue.pop(0))

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            site = message.sender
            self.asked[site] = max(self.asked[site], message.number)
            if self.token_here and not self.requesting() and self.waits(site):
                self.pass_token(site)
        elif isinstance(message, Token):
            self.token_here = True
            self.queue = list(message.queue)
            self.served = list(message.served)
            self.enter(self.client)

    def waits(self, site: int) -> bool:
        """Has this site asked once more than it was served?"""
        return self.asked[site] == self.served[site] + 1

    def pass_token(self, site: int) -> None:
        self.send(Token(site, tuple(self.queue), tuple(self.served)))
        self.token_here = False
        self.queue = []
        self.served = []


ALGORITHMS = [
    Algorithm(
        "suzuki-kasami",
        "Suzuki-Kasami: ask everybody, pass one token",
        "Suzuki and Kasami, ACM TOCS 3(4), 1985",
        "mutex",
        sites(SuzukiKasamiNode),
        (Request, Token),
        assumes=Assumptions(complete_graph=True),
    )
]
