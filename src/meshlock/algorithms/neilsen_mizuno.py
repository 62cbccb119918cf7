"""Neilsen and Mizuno: requests travel along a tree, the token goes straight to its next user.

Neilsen and Mizuno, *A DAG based algorithm for distributed mutual exclusion*, ICDCS 1991.

**Problem.** One permit; the holder of the token may enter. Raymond's token climbs the tree
link by link; here it does not.

**Idea.** The sites form a tree, and each points along one of its edges towards the *sink*,
the site whose request came last. A request follows the pointers; each site on the way turns
its own pointer to where the request came from, so that the requester becomes the new
sink. The old sink remembers the requester as the one who *follows* it, and when it leaves
sends the token there directly. The waiting queue is thus spread over the sites, one name
each.

**Assumptions.** Any site can send the token to any other; reliable channels, **not** FIFO
(at most one request at a time is on an edge in either direction, and a request that
overtakes the token finds a sink that waits, and is remembered); no crash; a client leaves in
finite time. The tree is the network's breadth-first tree from node 0, so on a complete graph
it is a star.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
HOLDING                 holding()               the token is here and not in use
NEXT                    next                    the neighbour towards the sink; NIL: we are
FOLLOW                  follow                  who is to have the token after us; or NIL
======================  ======================  ==========================================

**Cost**, one request at a time: distance to the token in the tree, plus one for the token
(0 if it is here): at most D + 1, on a star 3; synchronisation delay one message delay T.
"""

from __future__ import annotations

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network
from meshlock.algorithms.site import OnBehalf, TokenMessage, TokenSite, sites


class Request(OnBehalf):
    """REQUEST(X, Y): neighbour X, the sender, passes on that Y, the origin, wants to enter."""


class Token(TokenMessage):
    """PRIVILEGE."""


class NeilsenMizunoNode(TokenSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.next = network.father(me)
        self.follow = NIL

    def holding(self) -> bool:
        return self.token_here and not self.requesting()

    # -- P1 -------------------------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        if self.token_here:
            self.enter(client)
        else:
            self.send(Request(self.next, self.me))
            self.next = NIL

    def release(self, client: int) -> None:
        self.client = NIL
        if self.follow != NIL:
            self.pass_token(self.follow)
            self.follow = NIL

    # -- P2 -------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            if self.next != NIL:
                self.send(Request(self.next, message.origin))
            elif self.holding():
                self.pass_token(message.origin)
            else:
                self.follow = message.origin
            self.next = message.sender
        elif isinstance(message, Token):
            self.token_here = True
            self.enter(self.client)

    def pass_token(self, site: int) -> None:
        self.send(Token(site))
        self.token_here = False

    def towards(self) -> int:
        return self.next


ALGORITHMS = [
    Algorithm(
        "neilsen-mizuno",
        "Neilsen-Mizuno: requests along a tree, the token straight to its next user",
        "Neilsen and Mizuno, ICDCS 1991",
        "mutex",
        sites(NeilsenMizunoNode),
        (Request, Token),
        assumes=Assumptions(routed=True),
    )
]
