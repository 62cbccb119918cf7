"""Raynal's k out of M: everybody says how much it does not use.

Raynal, *A distributed solution to the k-out of-M resources allocation problem*, ICCI 1991 (LNCS
497).

**Problem.** M permits; a client asks for k of them at once. No token.

**Idea.** Ricart and Agrawala's agreement, counted. A site that asks for k permits sends a numbered
REQUEST to all, assumes that each of them uses all M, and enters when what they are known to use
leaves k over. A site that does not want any answers NOT_USED(M). One that waits or is in with an
earlier request (lower number first, then lower site) for h uses no more than h: it answers
NOT_USED(M - h) at once and NOT_USED(h) when it leaves. So a site inside has counted all who asked
before it, and the last of them has counted all. With M = 1 that is Ricart and Agrawala, message by
message.

**Assumptions.** A complete graph; reliable channels, **not** FIFO (a request adds M to what each
site is thought to use, and the answers to it take away M in all, so the order in which they come
does not matter); no crash; a client leaves in finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
M                       permits                 how many there are
k_i                     want                    how many we ask for, or use; 0 if none
used_by                 used                    by each site at most, as far as we know
(sum of used_by)        in_use                  by all others together
lrd                     number                  of the request being made; 0 if none
h                       highest                 number seen in any REQUEST
delayed                 delayed                 who waits for NOT_USED(want) from us
======================  ======================  ==========================================

**Departure.** K1: a site that asks a second time while we are still in knows already that we use h,
and is not told again: it gets NOT_USED(M). Else it would count h twice, and wait for us though
there are permits enough.

**Cost.** n - 1 REQUESTs and from n - 1 to 2(n - 1) answers, two from each site that comes before
with less than M: 2(n - 1) messages per entry without contention and wherever all ask for M, at
most 3(n - 1) else; synchronisation delay one message delay T; wait at light load 2T.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.amounts import fits
from meshlock.algorithms.site import Counted, Numbered, NumberedSite, sites


class Request(Numbered):
    """REQ(number): the sender asks for permits."""


class NotUsed(Counted):
    """NOT_USED(count): this number fewer than you thought may be in use by the sender."""

    kind: ClassVar[str] = "NOT_USED"


class RaynalNode(NumberedSite):
    no_state: ClassVar = ("size", "permits")

    def __init__(self, me: int, out: list[Effect], network: Network, permits: int) -> None:
        super().__init__(me, out, network)
        self.permits = permits
        self.want = 0
        self.inside = False
        self.used = [0] * self.size
        self.in_use = 0
        self.delayed: list[int] = []

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.want = want
        self.take_number()
        for site in self.others():
            self.used[site] += self.permits  # what it owes us still comes on top
            self.in_use += self.permits
            self.send(Request(site, self.number))
        self.try_to_enter()

    def try_to_enter(self) -> None:
        left = self.permits - self.in_use
        if self.want > 0 and not self.inside and fits(self.want, left):
            self.inside = True
            self.enter(self.client)

    def release(self, client: int) -> None:
        for site in self.delayed:
            self.send(NotUsed(site, self.want))
        self.delayed = []
        self.client = NIL
        self.number = 0
        self.want = 0
        self.inside = False

    def release_some(self, client: int, permits: int) -> None:
        for site in self.delayed:
            self.send(NotUsed(site, permits))
        self.want -= permits

    def receive(self, message: Message) -> None:
        if isinstance(message, Request):
            self.see_number(message.number)
            self.answer(message.sender, message.number)
        elif isinstance(message, NotUsed):
            self.used[message.sender] -= message.count
            self.in_use -= message.count
            self.try_to_enter()

    def answer(self, site: int, number: int) -> None:
        idle = self.want == 0 or not self.before(number, site)
        if idle or site in self.delayed:  # K1
            self.send(NotUsed(site, self.permits))
            return
        self.delayed = sorted([*self.delayed, site])
        if self.want != self.permits:
            self.send(NotUsed(site, self.permits - self.want))


ALGORITHMS = [
    Algorithm(
        "raynal",
        "Raynal's k out of M: everybody says how much it does not use",
        "Raynal, ICCI 1991, LNCS 497",
        "h-of-k",
        sites(RaynalNode, permits=True),
        (Request, NotUsed),
        assumes=Assumptions(complete_graph=True),
        serves=Serves(token=False, kinds=True),
    )
]
