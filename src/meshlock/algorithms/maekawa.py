"""Maekawa's voting: ask only a quorum, and let any two quorums have a member in common.

Maekawa, *A √N algorithm for mutual exclusion in decentralized systems*, ACM Transactions on
Computer Systems 3(2), 1985; with the correction of Sanders, *The information structure of
distributed mutual exclusion algorithms*, ACM TOCS 5(3), 1987.

**Problem.** One permit, no token, and far fewer messages than one per site.

**Idea.** A site asks the members of its quorum and enters when all have voted for it
(LOCKED). A member votes for one request at a time and lines up the others; RELEASE sets
it free. Two quorums share a member, so two sites cannot both have all their votes.

That much can deadlock: three sites, each with a vote that another one needs. So requests are
numbered, lower first, and a member that has voted for a later request than one that has come
in asks its vote back (INQUIRE). The site that has the vote keeps it if it enters, and gives
it back (YIELD) as soon as it knows that it cannot enter yet: because some member has sent
FAILED, an earlier request being in its way, or because it has yielded another vote.

**Assumptions.** A complete graph; reliable **FIFO** channels (an INQUIRE must not overtake
the vote that it asks back); no crash; a client leaves in finite time.

======================  ======================  ==========================================
paper                   here                    meaning
======================  ======================  ==========================================
S_i                     quorum                  whom a site asks, itself included
sequence number         number                  of the request being made; 0 if none
(none)                  highest                 number seen in any request
locking request         voted                   (number, site) of our vote; NOBODY if free
waiting queue           queue                   the same of those who wait for it, in order
(none)                  inquired                we have asked our vote back
(none)                  votes                   who has voted for us
(none)                  failed                  who made it known that we cannot enter yet
(none)                  inquiries               who has asked and not had its vote back
======================  ======================  ==========================================

**Departure.** Sanders: when a still earlier request arrives, a member must send FAILED also
to the one that was first in line until now, if that was earlier than its vote; nothing was
sent to it then, and it would keep votes that others wait for.

**Quorums.** The planes of :data:`PLANES` where there is one for N sites: each quorum has
about √N members, any two share exactly one. For all other N a grid: the sites fill rows of
⌈√N⌉, and a site's quorum is its row and its column, fewer than 2√N + 1. If i's row has no
site in j's column, then it is the last row, cut short; then j stands in a full row, which
meets i's column. So any two quorums intersect for any N.

**Cost**, K being the quorum's size: 3(K - 1) messages per entry without contention, up to
6(K - 1) with, 4(K - 1) at saturation, where every request gets FAILED once; synchronisation
delay 2T (T if the next site is itself the common member); wait at light load 2T.
"""

from __future__ import annotations

from typing import ClassVar

from meshlock.algorithms.actor import NIL, Algorithm, Assumptions, Effect, Message, Network, Serves
from meshlock.algorithms.site import Numbered, NumberedSite, sites

PLANES: dict[int, tuple[int, ...]] = {
    3: (0, 1),
    7: (0, 1, 3),
    13: (0, 1, 3, 9),
    21: (0, 1, 4, 14, 16),
    31: (0, 1, 3, 8, 12, 18),
    57: (0, 1, 3, 13, 32, 36, 43, 52),
    73: (0, 1, 3, 7, 15, 31, 36, 54, 63),
    91: (0, 1, 3, 9, 27, 49, 56, 61, 77, 81),
}
"""Projective planes as perfect difference sets: N sites, and the quorum of site 0.

Every number from 1 to N - 1 is the difference (modulo N) of exactly one pair, so the sets
moved on by i and by j have exactly one member in common.
"""


def quorum(me: int, size: int) -> tuple[int, ...]:
    """Whom this site asks, itself included, in ascending order."""
    if size in PLANES:
        return tuple(sorted((me + step) % size for step in PLANES[size]))
    width = 1
    while width * width < size:
        width += 1
    row, column = me // width, me % width
    return tuple(site for site in range(size) if site // width == row or site % width == column)


class Request(Numbered):
    """The sender wants to enter, with this number."""


class Locked(Message):
    """The sender has voted for us."""


class Release(Message):
    """The sender has left and needs our vote no more."""


class Failed(Message):
    """The sender cannot vote for us yet: an earlier request is in our way."""


class Inquire(Message):
    """The sender would like to have its vote back, for an earlier request."""


class Yield(Message):
    """The sender gives the vote back and lines up again."""


Ballot = tuple[int, int]
"""A request as members see it: its number and its site; lower is earlier."""

NOBODY: Ballot = (0, NIL)


class Member(NumberedSite):
    """A site that may be in its own quorum: what it sends to itself needs no network."""

    no_state: ClassVar[tuple[str, ...]] = ("size", "own")

    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.own: list[Message] = []  # what we send to ourselves; empty between handlers

    def send(self, message: Message) -> None:
        if message.receiver == self.me:
            message.sender = self.me
            self.own.append(message)
        else:
            super().send(message)

    def receive(self, message: Message) -> None:
        self.handle(message)
        self.handle_own()

    def handle_own(self) -> None:
        while self.own:
            self.handle(self.own.pop(0))

    def handle(self, message: Message) -> None:
        raise NotImplementedError


class MaekawaNode(Member):
    """A site that asks its quorum, and a member of other sites' quorums."""

    no_state: ClassVar[tuple[str, ...]] = ("size", "own", "quorum")

    def __init__(self, me: int, out: list[Effect], network: Network) -> None:
        super().__init__(me, out, network)
        self.quorum = quorum(me, self.size)
        self.votes: list[int] = []
        self.failed: list[int] = []
        self.inquiries: list[int] = []
        self.inside = False
        self.voted: Ballot = NOBODY
        self.queue: list[Ballot] = []
        self.inquired = False

    # -- the site that asks ---------------------------------------------------------------

    def request(self, client: int, want: int, priority: int) -> None:
        self.client = client
        self.take_number()
        for member in self.quorum:
            self.send(Request(member, self.number))
        self.handle_own()

    def release(self, client: int) -> None:
        self.client = NIL
        self.inside = False
        self.number = 0
        self.votes = []
        for member in self.quorum:
            self.send(Release(member))
        self.handle_own()

    def handle(self, message: Message) -> None:
        other = message.sender
        if isinstance(message, Request):
            self.asked(message.number, other)
        elif isinstance(message, Locked):
            self.locked(other)
        elif isinstance(message, Release):
            self.vote_for_next()
        elif isinstance(message, Failed):
            self.fail(other)
        elif isinstance(message, Inquire):
            self.inquire(other)
        elif isinstance(message, Yield):
            self.queue = sorted([*self.queue, self.voted])
            self.vote_for_next()

    def locked(self, member: int) -> None:
        self.votes = sorted([*self.votes, member])
        if member in self.failed:
            self.failed.remove(member)
        if len(self.votes) == len(self.quorum):
            self.inside = True
            self.inquiries = []
            self.enter(self.client)

    def fail(self, member: int) -> None:
        self.failed = sorted([*self.failed, member])
        for waiting in self.inquiries:
            self.yield_vote(waiting)
        self.inquiries = []

    def inquire(self, member: int) -> None:
        if self.inside or member not in self.votes:
            return  # it crossed our RELEASE, or RELEASE will soon answer it
        if self.failed:
            self.yield_vote(member)
        else:
            self.inquiries = sorted([*self.inquiries, member])

    def yield_vote(self, member: int) -> None:
        self.votes.remove(member)
        self.failed = sorted([*self.failed, member])
        self.send(Yield(member))

    # -- the member that votes ------------------------------------------------------------

    def asked(self, number: int, site: int) -> None:
        self.see_number(number)
        if self.voted == NOBODY:
            self.vote((number, site))
            return
        self.queue = sorted([*self.queue, (number, site)])
        if self.queue[0] == (number, site) and self.queue[0] < self.voted:
            self.fail_the_overtaken()
            if not self.inquired:
                self.inquired = True
                self.send(Inquire(self.voted[1]))
        else:
            self.send(Failed(site))

    def fail_the_overtaken(self) -> None:
        """Sanders: who was first in line until now has had no answer if it had hope."""
        if len(self.queue) > 1 and self.queue[1] < self.voted:
            self.send(Failed(self.queue[1][1]))

    def vote_for_next(self) -> None:
        self.inquired = False
        self.voted = NOBODY
        if self.queue:
            self.vote(self.queue.pop(0))

    def vote(self, ballot: Ballot) -> None:
        self.voted = ballot
        self.send(Locked(ballot[1]))


class BareNode(MaekawaNode):
    """Votes and nothing else: no vote is ever asked back, so it can deadlock."""

    def asked(self, number: int, site: int) -> None:
        self.see_number(number)
        if self.voted == NOBODY:
            self.vote((number, site))
        else:
            self.queue = sorted([*self.queue, (number, site)])


ALGORITHMS = [
    Algorithm(
        "maekawa",
        "Maekawa: the votes of a quorum",
        "Maekawa, ACM TOCS 3(2), 1985; Sanders, ACM TOCS 5(3), 1987",
        "mutex",
        sites(MaekawaNode),
        (Request, Locked, Release, Failed, Inquire, Yield),
        assumes=Assumptions(fifo=True, complete_graph=True),
        serves=Serves(token=False),
    ),
    Algorithm(
        "maekawa-bare",
        "Maekawa without FAILED, INQUIRE and YIELD: shows the deadlock",
        "Maekawa, ACM TOCS 3(2), 1985, votes only",
        "mutex",
        sites(BareNode),
        (Request, Locked, Release),
        assumes=Assumptions(fifo=True, complete_graph=True),
        serves=Serves(token=False),
    ),
]
