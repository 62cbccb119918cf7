"""Ricart and Agrawala: enter when everybody has agreed; who leaves agrees belatedly.

Ricart and Agrawala, *An optimal algorithm for mutual exclusion in computer networks*,
Communications of the ACM 24(1), 1981.

**Problem.** One permit, no token, and fewer messages than Lamport's three per site.

**Idea.** A site that wants to enter sends a numbered REQUEST to all and enters when all
have sent REPLY. Who does not want to enter replies at once. Who wants to, or is in, replies
at once only if the other's request comes before its own (lower number first, then lower
site), and else keeps the REPLY until it leaves: REPLY is Lamport's ACK and RELEASE in one.

**Assumptions.** A complete graph; reliable channels, **not** FIFO (a REPLY can only answer
the request that is being made, for the next one is not made before all have come; and a
REQUEST that overtakes its sender's REPLY to us has a higher number than ours, so it is
deferred as it should be); no crash; a client leaves in finite time.

=============================  ============  ===========================================
paper                          here          meaning
=============================  ============  ===========================================
Our_Sequence_Number            number        of the request being made; 0 if none
Highest_Sequence_Number        highest       seen in any REQUEST, sent or received
Outstanding_Reply_Count        outstanding   how many have not agreed yet
Requesting_Critical_Section    number > 0    waiting or in CS
Reply_Deferred                 deferred      whom we owe a REPLY
=============================  ============  ===========================================

**Cost.** 2(N - 1) messages per entry at any load; synchronisation delay one message
delay T; wait at light load 2T.
"""

from __future__ import annotations

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.site import Numbered, NumberedSite, sites


class Request(Numbered):
    """The sender wants to enter, with this number."""


class Reply(Message):
    """The sender agrees."""


class RicartAgrawalaNode(NumberedSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.outstanding = 0
        self.deferred: list[int] = []

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.take_number()
        self.outstanding = self.size - 1
        for site in self.others():
            self.send(Request(site, self.number))
        if self.outstanding == 0:
            self.enter(client)

    def release(self, client: int) -> None:
        self.client = NIL
        self.number = 0
        for site in self.deferred:
            self.send(Reply(site))
        self.deferred = []

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            site, number = message.sender, message.number
            self.see_number(number)
            if self.number > 0 and self.before(number, site):
                self.deferred = sorted([*self.deferred, site])
            else:
                self.send(Reply(site))
        elif isinstance(message, Reply):
            self.outstanding -= 1
            if self.outstanding == 0:
                self.enter(self.client)


ALGORITHMS = [
    Algorithm(
        "ricart-agrawala",
        "Ricart-Agrawala: enter when everybody has agreed",
        "Ricart and Agrawala, Communications of the ACM 24(1), 1981",
        "mutex",
        sites(RicartAgrawalaNode),
        (Request, Reply),
        assumes=Assumptions(complete_graph=True),
        serves=Serves(token=False),
    )
]
