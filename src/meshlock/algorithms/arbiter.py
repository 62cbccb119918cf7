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

**Parts.** The papers have no client that releases some of its permits and keeps others. Fewer
permits need a larger quorum: so the site first asks those that are missing in it for what the
client keeps, and only when they have granted it do all others get the part back (A2). Until then
the site counts as using all that it had. A site asking so is in, and goes before all requests that
are not: its number is negative. It gets what it asks for: sites that are in have no more than k
together, all that they had counted, and the others yield.

**Assumptions.** A complete graph; reliable **FIFO** channels (an INQUIRE must not overtake the
grant that it asks back); no crash; a client leaves in finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
h                       held                    how many we ask for, or use; 0 if none
Q                       claims                  whom a site asks, itself included, and for how
                                                many: more than it uses while it releases a part
(none)                  number                  of the request being made; 0 if none
(none)                  highest                 number seen in any request
(none)                  granted_by              who has granted our request
(none)                  granted                 whom we have granted how many
(none)                  queue                   who waits for our permits, in order
(none)                  inquired                whom we have asked to give them back
======================  ======================  ==========================================

**Departure.** A1: a site that is asked yields at once if it is not in. It need not be told that
it cannot enter (Maekawa's FAILED), and who asked first never has to give anything back. A2: parts,
as above. A GRANT has the number of its request: a client may leave before the sites that were asked
on account of its part have answered.

**Cost**, w being the quorum's size: 3(w - 1) messages per entry without contention, and INQUIRE,
YIELD and one more GRANT for every grant that is yielded; a part costs two messages for each site
that is asked in addition, and one for each other; synchronisation delay 2T; wait at light load 2T.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.maekawa import Member
from meshlock.algorithms.site import Counted, Numbered, sites


class Request(Numbered):
    """The sender wants this number of permits, with this number."""

    wire: ClassVar = (*Numbered.wire, "share")

    def __init__(self, receiver: int, number: int, want: int) -> None:
        super().__init__(receiver, number)
        self.want = want


class GrantMessage(Numbered):
    """The sender has granted our request of this number."""

    kind: ClassVar[str] = "GRANT"


class Release(Counted):
    """The sender no longer needs this number of its permits."""


class Inquire(Message):
    """The sender would like to have its permits back, for an earlier request."""


class Yield(Message):
    """The sender gives the permits back and lines up again."""


Claim = tuple[int, int, int]
"""A request as members see it: its number, its site, how many it wants; lower is earlier."""


def left_out(size: int, want: int, permits: int) -> int:
    """How many sites need not be asked for this number of permits."""
    return (size - 1) // (permits + 2 - want)


class ArbiterNode(Member):
    no_state: ClassVar = ("size", "own", "permits")

    def __init__(self, me: int, out: list[Effect], network: Network, permits: int) -> None:
        super().__init__(me, out, network)
        self.permits = permits
        self.held = 0
        self.claims: dict[int, int] = {}
        self.granted_by: set[int] = set()
        self.inside = False
        self.granted: list[Claim] = []
        self.queue: list[Claim] = []
        self.inquired: set[int] = set()

    # -- the site that asks ---------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.take_number()
        self.held = want
        self.ask(self.number)
        self.handle_own()

    def ask(self, number: int) -> None:
        """All whose permits we need and have not asked for yet."""
        for member in self.quorum_for(self.held):
            if member not in self.claims:
                self.claims[member] = self.held
                self.send(Request(member, number, self.held))

    def quorum_for(self, want: int) -> list[int]:
        asked = self.size - left_out(self.size, want, self.permits)
        return [(self.me + step) % self.size for step in range(asked)]

    def release(self, client: int) -> None:
        self.client = NIL
        self.number = 0
        self.inside = False
        self.granted_by = set()
        self.held = 0
        self.release_claims()
        self.claims = {}
        self.handle_own()

    def release_some(self, client: int, permits: int) -> None:
        self.held -= permits
        self.ask(-self.number)  # A2
        self.look_again()
        self.handle_own()

    def look_again(self) -> None:
        """Once all have granted what we asked of them: enter, or release the part."""
        if len(self.granted_by) < len(self.claims):
            return
        if not self.inside:
            self.inside = True
            self.enter(self.client)
        self.release_claims()

    def release_claims(self) -> None:
        """Whatever members have granted that we do not use."""
        for member, count in sorted(self.claims.items()):
            if count > self.held:
                self.send(Release(member, count - self.held))
                self.claims[member] = self.held

    def handle(self, message: Message) -> None:
        other = message.sender
        if isinstance(message, Request):
            self.see_number(message.number)
            self.line_up((message.number, other, message.want))
        elif isinstance(message, GrantMessage):
            if abs(message.number) == self.number:
                self.granted_by.add(other)
                self.look_again()
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
        claim = self.remove_claim(site)
        if claim[2] > count:
            self.granted = sorted([*self.granted, (claim[0], site, claim[2] - count)])
        self.serve()

    def yielded(self, site: int) -> None:
        self.line_up(self.remove_claim(site))

    def remove_claim(self, site: int) -> Claim:
        """Its claim is granted; or it waits, if the site was in and has left meanwhile (A2)."""
        for claims in (self.granted, self.queue):
            for claim in claims:
                if claim[1] == site:
                    claims.remove(claim)
                    self.inquired.discard(site)
                    return claim
        raise LookupError(f"site {site} has no permits of ours")

    def serve(self) -> None:
        while self.queue and self.queue[0][2] <= self.free():
            claim = self.queue.pop(0)
            self.granted = sorted([*self.granted, claim])
            self.send(GrantMessage(claim[1], claim[0]))
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


ALGORITHMS = [
    Algorithm(
        "arbiter",
        "(h,k)-arbiter: h permits from a quorum as large as h needs",
        "Manabe and Tajima, Theoretical Computer Science 310, 2004",
        "h-of-k",
        sites(ArbiterNode, permits=True),
        (Request, GrantMessage, Release, Inquire, Yield),
        assumes=Assumptions(fifo=True, complete_graph=True),
        serves=Serves(token=False),
    )
]
