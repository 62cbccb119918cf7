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
Requesting              requesting              waiting for the token, or in CS
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

from meshlock.algorithms.actor import (
    NIL,
    Actor,
    Algorithm,
    Assumptions,
    Effect,
    Message,
    Network,
    TokenMessage,
)


class Request(Message):
    """REQUEST(j, n): the sender asks for the n-th time."""

    def __init__(self, receiver: int, number: int) -> None:
        super().__init__(receiver)
        self.number = number


class Token(TokenMessage):
    """PRIVILEGE(Q, LN)."""

    def __init__(self, receiver: int, queue: tuple[int, ...], served: tuple[int, ...]) -> None:
        super().__init__(receiver)
        self.queue = queue
        self.served = served


class SuzukiKasamiNode(Actor):
    no_state: ClassVar = ("size",)

    def __init__(self, me: int, out: list[Effect], size: int) -> None:
        super().__init__(me, out)
        self.size = size
        self.token_here = me == 0
        self.requesting = False
        self.asked = [0] * size
        self.served: list[int] = [0] * size if me == 0 else []
        self.queue: list[int] = []
        self.client = NIL

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.requesting = True
        if self.token_here:
            self.enter(client)
            return
        self.asked[self.me] += 1
        for site in range(self.size):
            if site != self.me:
                self.send(Request(site, self.asked[self.me]))

    def release(self, client: int) -> None:
        self.client = NIL
        self.served[self.me] = self.asked[self.me]
        for site in range(self.size):
            if site != self.me and site not in self.queue and self.waits(site):
                self.queue.append(site)
        self.requesting = False
        if self.queue:
            self.pass_token(self.queue.pop(0))

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            site = message.sender
            self.asked[site] = max(self.asked[site], message.number)
            if self.token_here and not self.requesting and self.waits(site):
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

    # -- observers ----------------------------------------------------------------------

    def tokens(self) -> int:
        return 1 if self.token_here else 0

    def free_permits(self) -> int:
        return 1 if self.token_here and not self.requesting else 0


def make(network: Network, permits: int, options: dict[str, str], out: list[Effect]) -> list[Actor]:
    return [SuzukiKasamiNode(me, out, network.size) for me in range(network.size)]


ALGORITHMS: list[Algorithm] = [
    Algorithm(
        "suzuki-kasami",
        "Suzuki-Kasami: ask everybody, pass one token",
        "Suzuki and Kasami, ACM TOCS 3(4), 1985",
        "mutex",
        make,
        (Request, Token),
        assumes=Assumptions(complete_graph=True),
    )
]
