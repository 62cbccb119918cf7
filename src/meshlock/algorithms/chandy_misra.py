"""Chandy and Misra's forks: between any two sites a fork, and who used it last gives it up.

Chandy and Misra, *The drinking philosophers problem*, ACM Transactions on Programming Languages
and Systems 6(4), 1984: its solution to the dining philosophers, all of them neighbours.

**Problem.** One permit; no token, but one fork for each two sites. Who eats has all its forks.

**Idea.** A hungry site asks for each fork that it does not have, and eats when it has them all.
Forks are *dirty* once they were used. A site that is asked for a dirty fork washes it and gives it
away, even if it is hungry itself (then it asks for it back at once); a *clean* fork it keeps until
it has eaten. So of two hungry neighbours the one that ate last gives way: who has a clean fork, or
lacks a dirty one, comes before the other. This order has no circle at the start, and as a site that
has eaten comes after all its neighbours it never gets one: no site waits for itself, none starves.

For each fork there is one request token; it is where the fork is not, or on its way, or the fork is
asked for.

**Assumptions.** A complete graph (all sites are in conflict); reliable channels, **not** FIFO (the
paper has FIFO; a request token that overtakes its fork waits for it); no crash; a client leaves in
finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
hungry, eating          hungry, eating          waiting; in CS
fork(f)                 forks                   with whom we share a fork that is here
dirty(f)                dirty                   and those of them that are dirty
reqf(f)                 requests                whose request token is here
======================  ======================  ==========================================

**Cost.** Two messages for each fork that is not here, 2(n - 1) at the most and at saturation. One
request at a time, asked uniformly by n sites: exactly n - 1 on average, for a fork is with the one
of the two that ate last. Synchronisation delay one message delay T; wait at light load 2T(1 - 1/n).
"""

from __future__ import annotations

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.site import OneClientSite, sites


class Request(Message):
    """The request token of the fork that we share: the sender is hungry."""


class Fork(Message):
    """The fork that we share, clean."""


class ChandyMisraNode(OneClientSite):
    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.hungry = False
        self.eating = False
        self.forks = set(range(me + 1, self.size))  # the lower of the two has it
        self.dirty = set(range(me + 1, self.size))
        self.requests = set(range(me))

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.hungry = True
        for site in self.others():
            self.ask(site)
        self.eat()

    def ask(self, site: int) -> None:
        """R1: the request token goes where the fork is."""
        if self.hungry and site in self.requests and site not in self.forks:
            self.requests.remove(site)
            self.send(Request(site))

    def give(self, site: int) -> None:
        """R2: a dirty fork that is asked for is washed and given away."""
        if not self.eating and site in self.requests and site in self.dirty:
            self.dirty.remove(site)
            self.forks.remove(site)
            self.send(Fork(site))
            self.ask(site)

    def receive(self, message: Message) -> None:
        site = message.sender
        if isinstance(message, Request):  # R3
            self.requests.add(site)
            self.give(site)
        elif isinstance(message, Fork):  # R4
            self.forks.add(site)
            self.eat()

    def eat(self) -> None:
        if len(self.forks) == self.size - 1:
            self.hungry = False
            self.eating = True
            self.enter(self.client)

    def release(self, client: int) -> None:
        self.client = NIL
        self.eating = False
        self.dirty = set(self.forks)
        for site in self.others():
            self.give(site)


ALGORITHMS = [
    Algorithm(
        "chandy-misra",
        "Chandy-Misra: a fork between any two, given up by who used it last",
        "Chandy and Misra, ACM TOPLAS 6(4), 1984",
        "mutex",
        sites(ChandyMisraNode),
        (Request, Fork),
        assumes=Assumptions(complete_graph=True),
        serves=Serves(token=False),
    )
]
