"""Sanders' information structures: whom to ask, and whom to tell.

Sanders, *The information structure of distributed mutual exclusion algorithms*, ACM Transactions
on Computer Systems 5(3), 1987.

**Problem.** One permit, no token. Ricart and Agrawala ask everybody, Maekawa asks a quorum: what do
they have in common, and what else would do?

**Idea.** Every site i has a *request set* R(i), whom it asks, and an *inform set* I(i), part of it,
whom it tells when it leaves. A site grants requests in their order (lower number first). If it is
in the inform set of who has asked, its grant binds it until it is told: it grants nothing
else. If it is not, it will not be told, and goes on to the next request at once. All that mutual
exclusion needs is that for any two sites i and j

- some site is in the inform sets of both, and cannot grant both; or
- each asks the other, and is in its own inform set: who comes later is not granted by the
  one before it.

So every such structure is an algorithm, as every behaviour is one of the general scheme:

======================  ==========================  ==============================  ===========
structure               R(i)                        I(i)                            it is
======================  ==========================  ==============================  ===========
ricart-agrawala         everybody                   i                               Ricart-A.
maekawa                 a quorum                    the same                        Maekawa
central                 0                           0                               a central lock
groups                  i, its leader, all others   i and its leader                new
                        that are not of its group
======================  ==========================  ==============================  ===========

Grants that bind can deadlock as Maekawa's votes do, and are asked back in the same way.

**Assumptions.** A complete graph; reliable **FIFO** channels; no crash; a client leaves in finite
time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
R_i                     quorum                  whom a site asks
I_i                     informs                 whom each site tells, by site
CSSTAT                  voted                   whom our grant binds us to; NOBODY if free
GRANT, FAIL             LOCKED, FAILED          as in :mod:`~meshlock.algorithms.maekawa`,
                                                which this is built on
======================  ======================  ==========================================

**Departures.** I1: FAILED serves those who may be asked to yield a grant, so it is not sent to
a site to which no other is bound. I2: a site that has granted its own request and learns of an
earlier one gives its grant back at once, without waiting for FAILED. With both, the structure of
Ricart and Agrawala costs what their algorithm does.

**Cost** without contention: 2 messages for each other site in R(i), and 1 for each in I(i).
Synchronisation delay T where each asks the other, 2T where another one decides.
"""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.maekawa import (
    Ballot,
    Failed,
    Inquire,
    Locked,
    MaekawaNode,
    Release,
    Request,
    Yield,
    quorum,
)
from meshlock.algorithms.site import sites

Sites = tuple[int, ...]


class InformationStructure:
    """R(i) and I(i) of every site."""

    def __init__(self, size: int, name: str) -> None:
        all_sites = tuple(range(size))
        self.requests: list[Sites] = []
        self.informs: list[Sites] = []
        for me in all_sites:
            request_set, inform_set = {
                "ricart-agrawala": (all_sites, (me,)),
                "maekawa": (quorum(me, size), quorum(me, size)),
                "central": ((0,), (0,)),
                "groups": (asked(me, size), tuple(sorted({me, leader(me, size)}))),
            }[name]
            self.requests.append(request_set)
            self.informs.append(inform_set)

    def excludes(self, i: int, j: int) -> bool:
        """Can these two never be in at the same time?"""
        if set(self.informs[i]) & set(self.informs[j]):
            return True
        told = i in self.informs[i] and j in self.informs[j]
        return told and j in self.requests[i] and i in self.requests[j]


def leader(site: int, size: int) -> int:
    """The first of a group of about √N."""
    width = 1
    while width * width < size:
        width += 1
    return site - site % width


def asked(me: int, size: int) -> Sites:
    """Groups: whom ``me`` asks."""
    mine = leader(me, size)
    return tuple([j for j in range(size) if j in (me, mine) or leader(j, size) != mine])


structure_of = cache(InformationStructure)


class SandersNode(MaekawaNode):
    """Maekawa's, but a grant binds only where it will be told of the end."""

    no_state: ClassVar[tuple[str, ...]] = ("size", "own", "quorum", "informs")

    def __init__(self, me: int, out: list[Effect], network: Network, name: str) -> None:
        super().__init__(me, out, network)
        structure = structure_of(self.size, name)
        self.quorum = structure.requests[me]
        self.informs = structure.informs

    def release(self, client: int) -> None:
        self.client = NIL
        self.inside = False
        self.number = 0
        self.votes = []
        for member in self.informs[self.me]:
            self.send(Release(member))
        self.handle_own()

    def vote(self, ballot: Ballot) -> None:
        super().vote(ballot)
        if self.me not in self.informs[ballot[1]]:
            self.vote_for_next()

    def send(self, message: Message) -> None:
        if isinstance(message, Failed) and not self.others_bound_to(message.receiver):
            return  # I1
        super().send(message)

    def others_bound_to(self, site: int) -> bool:
        return any(member not in (site, self.me) for member in self.informs[site])

    def inquire(self, member: int) -> None:
        if member == self.me and member in self.votes and not self.inside:
            self.yield_vote(member)  # I2
        else:
            super().inquire(member)


ALGORITHMS = [
    Algorithm(
        "sanders",
        "Sanders: any information structure, of whom to ask and whom to tell",
        "Sanders, ACM TOCS 5(3), 1987",
        "mutex",
        sites(SandersNode, option="structure"),
        (Request, Locked, Release, Failed, Inquire, Yield),
        assumes=Assumptions(fifo=True, complete_graph=True),
        serves=Serves(token=False),
        options={"structure": ("groups", "ricart-agrawala", "maekawa", "central")},
    )
]
