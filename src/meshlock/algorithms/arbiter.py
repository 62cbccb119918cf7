"""The (h,k)-arbiter: h of k permits from a quorum as large as h needs.

Manabe and Tajima, *(h,k)-arbiters for h-out-of-k mutual exclusion problem*, Theoretical Computer
Science 310, 2004; after Manabe, Baldoni, Raynal and Aoyagi, *k-arbiter: a safe and general scheme
for h-out of-k mutual exclusion*, Theoretical Computer Science 193, 1998.

**Problem.** k permits; a client asks for h of them at once. No token, and not everybody is asked.

**Idea.** Maekawa's voting, counted. Each member of a quorum has k permits to grant. A site that
asks for h permits asks a quorum for h of each of its members, and enters when all have granted
them. If requests for more than k together were in, the quorums of some of them would have a member
in common (that is what an arbiter is) which has granted more than it has.

**Quorums**, the *uniform* arbiter: a request for h leaves out at most (n - 1) / (k + 2 - h) of the
n sites. Of requests that are for more than k together, take as few as still are: m, say. Without
any one of them they are for k at the most; so beside one for h and that one there are at most
k - h, and m is at most k + 2 - h. Each leaves out at most (n - 1) / m sites, all of them fewer than
n, and some site is left out by none. For h = k that is a majority, for h = 1 more than k/(k + 1) of
all sites, the k-arbiter. Site i takes the sites from i on.

Members grant in the order of the requests (lower number first, then lower site), large or small.
As with Maekawa, grants can deadlock: a member that lacks permits for an earlier request asks
later ones to give theirs back (INQUIRE), and a site does so (YIELD) unless it is in.

**Assumptions.** A complete graph; reliable **FIFO** channels (an INQUIRE must not overtake the
grant that it asks back); no crash; a client leaves in finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
h                       want                    how many we ask for, or use; 0 if none
Q                       quorum                  whom a site asks, itself included
(none)                  number                  of the request being made; 0 if none
(none)                  highest                 number seen in any request
(none)                  granted_by              who has granted our request
(none)                  granted                 whom we have granted how many
(none)                  queue                   who waits for our permits, in order
(none)                  inquired                whom we have asked to give them back
======================  ======================  ==========================================

**Departure.** A1: a site that is asked yields at once if it is not in. It need not be told that
it cannot enter (Maekawa's FAILED), and who asked first never has to give anything back.

**Cost**, w being the quorum's size: 3(w - 1) messages per entry without contention, and INQUIRE,
YIELD and one more GRANT for every grant that is yielded; synchronisation delay 2T; wait at
light load 2T.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.interface import NIL, Algorithm, Effect, Message, Network, Node
from meshlock.algorithms.maekawa import Member


class Request(Message):
    """The sender wants so many permits, with this number."""

    def __init__(self, receiver: int, number: int, want: int) -> None:
        super().__init__(receiver)
        self.number = number
        self.want = want


class Grant(Message):
    """The sender has granted our request."""


class Release(Message):
    """The sender needs so many of its permits no more."""

    def __init__(self, receiver: int, count: int) -> None:
        super().__init__(receiver)
        self.count = count


class Inquire(Message):
    """The sender would like to have its permits back, for an earlier request."""


class Yield(Message):
    """The sender gives the permits back and lines up again."""


Claim = tuple[int, int, int]
"""A request as members see it: its number, its site, how many it wants; lower is earlier."""


def left_out(size: int, want: int, permits: int) -> int:
    """How many sites need not be asked for so many permits."""
    return (size - 1) // (permits + 2 - want)


class ArbiterNode(Member):
    no_state: ClassVar[tuple[str, ...]] = ("own", "size", "permits")

    def __init__(self, me: int, out: list[Effect], size: int, permits: int) -> None:
        super().__init__(me, out)
        self.size = size
        self.permits = permits
        self.highest = 0
        self.number = 0
        self.want = 0
        self.quorum: list[int] = []
        self.granted_by: set[int] = set()
        self.inside = False
        self.client = NIL
        self.granted: list[Claim] = []
        self.queue: list[Claim] = []
        self.inquired: set[int] = set()

    # -- the site that asks ---------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.highest += 1
        self.number = self.highest
        self.want = want
        self.quorum = self.quorum_for(want)
        for member in self.quorum:
            self.send(Request(member, self.number, want))
        self.handle_own()

    def quorum_for(self, want: int) -> list[int]:
        asked = self.size - left_out(self.size, want, self.permits)
        return [(self.me + step) % self.size for step in range(asked)]

    def release(self, client: int) -> None:
        self.client = NIL
        self.number = 0
        self.inside = False
        self.granted_by = set()
        self.release_some(client, self.want)
        self.quorum = []

    def release_some(self, client: int, permits: int) -> None:
        self.want -= permits
        for member in self.quorum:
            self.send(Release(member, permits))
        self.handle_own()

    def handle(self, message: Message) -> None:
        other = message.sender
        if isinstance(message, Request):
            self.highest = max(self.highest, message.number)
            self.line_up((message.number, other, message.want))
        elif isinstance(message, Grant):
            self.granted_by.add(other)
            if len(self.granted_by) == len(self.quorum):
                self.inside = True
                self.enter(self.client)
        elif isinstance(message, Inquire):
            self.inquire(other)
        elif isinstance(message, Release):
            self.returned(other, message.count)
        elif isinstance(message, Yield):
            self.yielded(other)

    def inquire(self, member: int) -> None:
        if not self.inside and member in self.granted_by:  # else our RELEASE answers it
            self.granted_by.remove(member)
            self.send(Yield(member))

    # -- the member that grants -----------------------------------------------------------

    def line_up(self, claim: Claim) -> None:
        self.queue = sorted([*self.queue, claim])
        self.serve()

    def returned(self, site: int, count: int) -> None:
        claim = self.take_back(site)
        if claim[2] > count:
            self.granted = sorted([*self.granted, (claim[0], site, claim[2] - count)])
        self.serve()

    def yielded(self, site: int) -> None:
        self.line_up(self.take_back(site))

    def take_back(self, site: int) -> Claim:
        (claim,) = [claim for claim in self.granted if claim[1] == site]
        self.granted.remove(claim)
        self.inquired.discard(site)
        return claim

    def serve(self) -> None:
        while self.queue and self.queue[0][2] <= self.free():
            claim = self.queue.pop(0)
            self.granted = sorted([*self.granted, claim])
            self.send(Grant(claim[1]))
        if self.queue:
            self.ask_back(self.queue[0])

    def free(self) -> int:
        return self.permits - sum([claim[2] for claim in self.granted])

    def ask_back(self, first: Claim) -> None:
        """Of those granted after this one, the last ones, until there are permits enough."""
        free = self.free()
        for claim in reversed(self.granted):
            if claim < first or free >= first[2]:
                return
            free += claim[2]
            if claim[1] not in self.inquired:
                self.inquired.add(claim[1])
                self.send(Inquire(claim[1]))


def make(network: Network, permits: int, options: dict[str, str], out: list[Effect]) -> list[Node]:
    return [ArbiterNode(me, out, network.size, permits) for me in range(network.size)]


ALGORITHMS: list[Algorithm] = [
    Algorithm(
        "arbiter",
        "(h,k)-arbiter: h permits from a quorum as large as h needs",
        "Manabe and Tajima, Theoretical Computer Science 310, 2004",
        "h-of-k",
        make,
        (Request, Grant, Release, Inquire, Yield),
        needs_fifo=True,
        needs_complete_graph=True,
        token=False,
    )
]
