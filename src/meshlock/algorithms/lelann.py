"""Le Lann's token ring: the token goes round, and a site that wants to enter waits for it.

Le Lann, *Distributed systems: towards a formal approach*, IFIP Congress 1977.

**Problem.** One permit; the holder of the token may enter. No site wants to keep track of
another.

**Idea.** The sites form a ring: 0, 1, 2 and so on, and back to 0. A site that has the token
and wants to enter does so and passes the token on when it leaves; one that does not want it
passes it on at once. There is no other message.

**Assumptions.** Reliable channels (one message is on the way at any time, so their order
does not matter); no crash; a client leaves in finite time. Where successive sites have no
link between them the token is routed, so any connected network will do; on the topology
*ring* it crosses one link at a time.

**Idle circulation.** The token never rests, even if no site wants it: that is the algorithm,
and its price. A network of such sites is never quiet (the registry says *restless*), so a
run ends when all requests are served, and the messages of idle rounds are counted like all
others. Site 0 sends the token on its way when the network starts.

=================  ===================================================================
here               meaning
=================  ===================================================================
token_here         the token is at this site: only while its client is in
client             who waits or is in; NIL if none
=================  ===================================================================

**Cost.** 1 message per entry at saturation, without bound as the load goes to 0;
synchronisation delay T to (N - 1)T; wait at light load about NT/2.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.site import TokenMessage, TokenSite, sites


class Token(TokenMessage):
    """The permission to enter, on its way round."""


class RingNode(TokenSite):
    no_state: ClassVar = ("size", "successor")

    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.successor = (me + 1) % self.size

    def start(self, life: object = None) -> None:
        if self.token_here:
            self.pass_on()

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        if self.token_here:  # only where the ring is a single site
            self.enter(client)

    def release(self, client: int) -> None:
        self.client = NIL
        self.pass_on()

    def receive(self, message: Message) -> None:
        self.token_here = True
        if self.requesting():
            self.enter(self.client)
        else:
            self.pass_on()

    def pass_on(self) -> None:
        if self.successor != self.me:
            self.token_here = False
            self.send(Token(self.successor))


ALGORITHMS = [
    Algorithm(
        "lelann",
        "Le Lann: the token goes round a ring",
        "Le Lann, IFIP Congress 1977",
        "mutex",
        sites(RingNode),
        (Token,),
        assumes=Assumptions(routed=True),
        serves=Serves(restless=True),
    )
]
