"""Naimi and Trehel's path reversal in its original form: father and next.

Naimi and Trehel, *An improvement of the log(n) distributed algorithm for mutual exclusion*, ICDCS
1987; with Arnold, *A log(N) distributed mutual exclusion algorithm based on path reversal*,
Journal of Parallel and Distributed Computing 34(1), 1996.

**Problem.** One permit; the holder of the token may enter.

**Idea.** Two structures. A tree of *fathers*, whose root asked last: a request climbs it, and every
site on the way makes the requester its father, for that will be the last to have asked. And a
queue of *next* pointers, whose first has the token: the root remembers the requester as its next,
and sends it the token when it leaves. A site that asks has no father any more: it is the new root.

**Assumptions.** Any site can send to any other; reliable channels, **not** FIFO; no crash; a client
leaves in finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
LAST (father)           father                  who asked last, as far as we know; NIL: we
NEXT                    next                    who is to have the token after us; or NIL
TOKEN_PRESENT           token_here              the token is at this site
REQUESTING_CS           requesting()            waiting for the token, or in CS
======================  ======================  ==========================================

**Cost.** One request at a time, asked uniformly by n sites: REQUEST and TOKEN together exactly
H(n-1) = 1 + 1/2 + ... + 1/(n-1) on average, n at worst; the same as the general scheme with all
nodes transit. At saturation 4 - 6/(n+1). Synchronisation delay one message delay T.
"""

from __future__ import annotations

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network
from meshlock.algorithms.site import OnBehalf, TokenMessage, TokenSite, sites


class Request(OnBehalf):
    """REQUEST(origin): origin wants to enter."""


class Token(TokenMessage):
    """TOKEN."""


class NaimiTrehelNode(TokenSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.father = network.father(me)
        self.next = NIL

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        if self.father == NIL:
            self.enter(client)
        else:
            self.send(Request(self.father, self.me))
            self.father = NIL

    def release(self, client: int) -> None:
        self.client = NIL
        if self.next != NIL:
            self.pass_token(self.next)
            self.next = NIL

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.requested(message.origin)
        elif isinstance(message, Token):
            self.token_here = True
            self.enter(self.client)

    def requested(self, origin: int) -> None:
        if self.father != NIL:
            self.send(Request(self.father, origin))
        elif self.requesting():
            self.next = origin
        else:
            self.pass_token(origin)
        self.father = origin

    def pass_token(self, site: int) -> None:
        self.send(Token(site))
        self.token_here = False

    def towards(self) -> int:
        return self.father


ALGORITHMS = [
    Algorithm(
        "naimi-trehel-original",
        "Naimi-Trehel as published: father and next",
        "Naimi and Trehel, ICDCS 1987; Naimi, Trehel and Arnold, JPDC 34(1), 1996",
        "mutex",
        sites(NaimiTrehelNode),
        (Request, Token),
        assumes=Assumptions(routed=True, any_tree=True),
    )
]
