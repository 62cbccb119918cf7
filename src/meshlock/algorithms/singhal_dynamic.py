"""Singhal's dynamic information structure: ask only those to whom you have given way since.

Singhal, *A dynamic information-structure mutual exclusion algorithm for distributed systems*, IEEE
Transactions on Parallel and Distributed Systems 3(1), 1992.

**Problem.** One permit, no token. Ricart and Agrawala ask everybody each time, also those who have
wanted nothing since they were asked last.

**Idea.** A permission stays good until it is taken back. A site asks those in its *request set*
R; who answers is taken out of it, and it enters when R is empty. Who answers puts the asker
into its own R: it has given its permission away, and must ask for it before it enters again.
So of any two sites at least one has the other in its R, and it stays so: R and the *inform set* I
(to whom an answer is owed) learn from what the sites do. They start as a staircase: each site has
all lower ones in its R.

Who waits and learns of an earlier request from one that it has not asked, having its permission
from before, answers, and so gives that permission back: it asks for it at once.

**Assumptions.** A complete graph; reliable channels, **not** FIFO; no crash; a client leaves in
finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
R_i                     request_set             whom we must ask, or have asked, to enter
I_i                     inform_set              whom to answer when we leave
C_i                     highest                 number seen in any message
(none)                  number                  of the request being made; 0 if none
Requesting, Executing   number > 0, executing   waiting; in CS
======================  ======================  ==========================================

**Departures.** A site does not count itself in R and I. D1: the number of a request, when it is
sent once more and when it is compared, is the one with which it was made, not the clock, which
goes on meanwhile.

**Cost.** Two messages for each site in R: 2(N - 1) at the most. One request at a time, asked
uniformly by N sites: exactly N - 1 on average, since of two sites the one that was not in last has
the other in its R. Synchronisation delay one message delay T; wait at light load 2T(1 - 1/N).
"""

from __future__ import annotations

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.site import Numbered, NumberedSite, sites


class Request(Numbered):
    """REQUEST(C, i): the sender wants to enter, with this number."""


class Reply(Numbered):
    """REPLY(C, i): you have the sender's permission, until it asks you for it."""


class SinghalDynamicNode(NumberedSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.request_set = set(range(me))
        self.inform_set: set[int] = set()
        self.executing = False

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.take_number()
        for site in sorted(self.request_set):
            self.send(Request(site, self.number))
        self.try_to_enter()

    def try_to_enter(self) -> None:
        if self.number > 0 and not self.executing and not self.request_set:
            self.executing = True
            self.enter(self.client)

    def release(self, client: int) -> None:
        self.client = NIL
        self.executing = False
        self.number = 0
        for site in sorted(self.inform_set):
            self.reply(site)
        self.inform_set = set()

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.see_number(message.number)
            self.requested(message.sender, message.number)
        elif isinstance(message, Reply):
            self.see_number(message.number)
            self.request_set.discard(message.sender)
            self.try_to_enter()

    def requested(self, site: int, number: int) -> None:
        if self.executing or (self.number > 0 and self.before(number, site)):
            self.inform_set.add(site)
        elif self.number > 0 and site not in self.request_set:
            self.reply(site)
            self.send(Request(site, self.number))
        else:
            self.reply(site)

    def reply(self, site: int) -> None:
        self.request_set.add(site)
        self.send(Reply(site, self.highest))


ALGORITHMS = [
    Algorithm(
        "singhal-dynamic",
        "Singhal's dynamic structure: ask only those to whom you have given way since",
        "Singhal, IEEE TPDS 3(1), 1992",
        "mutex",
        sites(SinghalDynamicNode),
        (Request, Reply),
        assumes=Assumptions(complete_graph=True),
        serves=Serves(token=False),
    )
]
