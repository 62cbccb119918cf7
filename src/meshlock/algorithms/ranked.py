"""Queues in which the highest rank goes first, as ``jiang`` and ``direct`` have them; and which of
the clients in such a queue are in the queue of ``direct``'s token, too."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.subclassing import mypyc_attr
from meshlock.algorithms.variables import StatePart

SETTLED: Final = 0
FRESH: Final = 1


class RankedRequest:
    """A request that waits: of a neighbour, or of a client of our own (neighbour NIL).

    A higher ``rank`` goes first; of two equal ones, the lower ``arrival``. A SETTLED entry was
    ranked by a holder of the token. A FRESH one has not met the token: its rank counts the grants
    that were known here when it came, and its ``base`` counts none.
    """

    def __init__(
        self,
        neighbour: int,
        client: int,
        want: int,
        priority: int,
        rank: int,
        age: int = SETTLED,
        base: int = 0,
    ) -> None:
        self.neighbour = neighbour
        self.client = client
        self.want = want
        self.priority = priority
        self.rank = rank
        self.age = age
        self.base = base if age == FRESH else 0
        self.order = base if age == FRESH else rank  # among entries that are as fresh
        self.arrival = 0
        self.crowd: Crowd | None = None

    def rank_as(self, rank: int) -> None:
        """A holder of the token has ranked it."""
        self.rank = self.order = rank
        self.base = 0
        self.age = SETTLED

    def change(self, want: int, priority: int, gain: int) -> None:
        """It becomes more or less urgent: its rank rises by ``gain``."""
        self.want = want
        self.priority = priority
        self.rank += gain
        self.order += gain
        if self.age == FRESH:
            self.base += gain

    def rank_after(self, grants: int) -> int:
        """Its rank for a node that knows of this many grants."""
        return self.base - grants if self.age == FRESH else self.rank


class Met:
    """How a token ranks the fresh entries that it meets.

    An entry keeps its rank up to a limit: its base minus ``fall``. The token was sent for a request
    of that ``priority``, which a holder has ``given`` a rank. Fresh entries of that priority stood
    behind that request, so their limit is at least as high.
    """

    def __init__(self, fall: int, priority: int = 0, given: int | None = None) -> None:
        self.fall = fall
        self.priority = priority
        self.given = given

    def rank(self, entry: RankedRequest) -> int:
        limit = entry.base - self.fall
        if self.given is not None and entry.priority == self.priority and self.given > limit:
            limit = self.given
        return min(entry.rank, limit)


def standing(entry: RankedRequest) -> tuple[int, int]:
    return (-entry.rank, entry.arrival)


def place_among(entries: list[RankedRequest], entry: RankedRequest) -> int:
    """Where an entry stands, or would stand, among those that are as fresh: by bisection."""
    low, high = 0, len(entries)
    order = entry.order
    while low < high:
        middle = (low + high) // 2
        other = entries[middle]
        if other.order > order or (other.order == order and other.arrival < entry.arrival):
            low = middle + 1
        else:
            high = middle
    return low


MOST_FRESH: Final = 1000
"""More fresh entries than this are not settled at once; they become a crowd."""

TOP: Final = 16
"""The first entries, this many, are never in a crowd."""


class Crowd:
    """Many entries that were fresh when the token came, by base. Each is settled when it comes to
    the front, is looked up, or goes."""

    def __init__(self, entries: list[RankedRequest], token: Met) -> None:
        self.entries = entries
        self.token = token
        for entry in entries:
            entry.crowd = self


@mypyc_attr(allow_interpreted_subclasses=True)
class Ranked(StatePart):
    """Entries in order of rank, and of arrival among equals.

    ``entries`` has the settled ones by rank, ``fresh`` the fresh ones by base: nobody knows how old
    those are, so the more urgent goes first. The first of all is the first of either list. Entries
    are found by bisection, those of a client or a neighbour by its number. Settling 100,000 fresh
    entries at once would take too long, so that many become a crowd.
    """

    def __init__(self) -> None:
        self.entries: list[RankedRequest] = []
        self.fresh: list[RankedRequest] = []
        self.own: dict[int, RankedRequest] = {}  # client: its entry
        self.neighbours: dict[int, RankedRequest] = {}  # neighbour: its entry, one at most
        self.told: RankedRequest | None = None  # the entry that another node has been told of
        self.crowds: list[Crowd] = []
        self.arrivals = 0

    def __len__(self) -> int:
        crowds = sum([len(crowd.entries) for crowd in self.crowds])
        return len(self.entries) + len(self.fresh) + crowds

    def is_empty(self) -> bool:
        return len(self.entries) == 0 and len(self.fresh) == 0

    def has_fresh(self) -> bool:
        return len(self.fresh) > 0

    def all(self) -> list[RankedRequest]:
        """Settled entries, then fresh ones, each in order; without those in crowds."""
        return [*self.entries, *self.fresh]

    def first(self) -> RankedRequest:
        """A fresh entry stands here by the rank that it came with."""
        if len(self.fresh) == 0:
            return self.entries[0]
        fresh = self.fresh[0]
        if len(self.entries) > 0:
            settled = self.entries[0]
            if settled.rank > fresh.rank:
                return settled
            if settled.rank == fresh.rank and settled.arrival < fresh.arrival:
                return settled
        return fresh

    def top(self, most: int) -> list[RankedRequest]:
        """The first entries, at most this many."""
        if len(self.fresh) == 0:
            return self.entries[:most]
        found: list[RankedRequest] = []
        i, j = 0, 0
        while len(found) < most and (i < len(self.entries) or j < len(self.fresh)):
            if j == len(self.fresh) or (
                i < len(self.entries) and standing(self.entries[i]) < standing(self.fresh[j])
            ):
                found.append(self.entries[i])
                i += 1
            else:
                found.append(self.fresh[j])
                j += 1
        return found

    def push(self, entry: RankedRequest) -> None:
        self.arrivals += 1
        entry.arrival = self.arrivals
        self.index(entry)
        self.insert(entry)

    def index(self, entry: RankedRequest) -> None:
        if entry.neighbour == NIL:
            self.own[entry.client] = entry
        else:
            self.neighbours[entry.neighbour] = entry

    def insert(self, entry: RankedRequest) -> None:
        entries = self.fresh if entry.age == FRESH else self.entries
        entries.insert(place_among(entries, entry), entry)

    def remove(self, entry: RankedRequest) -> None:
        if entry.neighbour == NIL:
            del self.own[entry.client]
        else:
            del self.neighbours[entry.neighbour]
        if entry is self.told:
            self.told = None
        self.take_out(entry)

    def delete(self, neighbour: int) -> None:
        """delete(Q, j): the neighbour's entry, if it has one."""
        entry = self.neighbours.get(neighbour)
        if entry is not None:
            self.remove(entry)

    def take_out(self, entry: RankedRequest) -> None:
        if entry.crowd is not None:
            self.leave_crowd(entry, entry.crowd)
        elif entry.age == FRESH:
            del self.fresh[place_among(self.fresh, entry)]
        else:
            del self.entries[place_among(self.entries, entry)]
            if self.crowds:
                self.bring_forward()

    def change(self, entry: RankedRequest, want: int, priority: int, gain: int) -> None:
        """The entry keeps its age and its arrival, and moves to the place of its new rank."""
        self.take_out(entry)
        entry.change(want, priority, gain)
        self.insert(entry)

    def age(self) -> None:
        """Every settled entry rises by one."""
        for entry in self.entries:
            entry.rank += 1
            entry.order += 1

    def replace(self, old: RankedRequest, entry: RankedRequest, same: bool) -> None:
        """Another entry of the same neighbour. It keeps the old arrival if it is the ``same``
        request, or as urgent as the old one was."""
        told = same and old is self.told
        self.remove(old)
        self.arrivals += 1
        keeps = same or old.priority == entry.priority
        entry.arrival = old.arrival if keeps else self.arrivals
        self.index(entry)
        self.insert(entry)
        if told:
            self.told = entry

    def stamp(self, entry: RankedRequest, rank: int) -> None:
        """The holder has ranked this entry."""
        self.take_out(entry)
        entry.rank_as(rank)
        self.insert(entry)

    def rank_fresh_but(self, token: Met, kept: list[RankedRequest]) -> None:
        """Settle all entries but these, which stay as fresh as they are."""
        kept = [entry for entry in kept if entry.age == FRESH and entry.crowd is None]
        for entry in kept:
            self.take_out(entry)
        self.rank_fresh(token)
        for entry in kept:
            self.insert(entry)

    def rank_fresh(self, token: Met) -> None:
        """The token is here: fresh entries get their ranks."""
        fresh = self.fresh
        if len(fresh) == 0:
            return
        self.fresh = []
        if len(fresh) > MOST_FRESH:
            own = [entry for entry in fresh if entry.neighbour == NIL]
            self.crowds.append(Crowd(own, token))
            fresh = [entry for entry in fresh if entry.neighbour != NIL]
        for entry in fresh:
            entry.rank_as(token.rank(entry))
        if len(fresh) * 8 < len(self.entries):
            for entry in fresh:
                self.insert(entry)
        else:
            self.entries += fresh
            self.entries.sort(key=standing)
        if self.crowds:
            self.bring_forward()

    # -- crowds ------------------------------------------------------------------------------

    def leave_crowd(self, entry: RankedRequest, crowd: Crowd) -> None:
        """The entry gets the rank that it has by now."""
        del crowd.entries[place_among(crowd.entries, entry)]
        entry.crowd = None
        entry.rank_as(crowd.token.rank(entry))
        if len(crowd.entries) == 0:
            self.crowds.remove(crowd)

    def bring_forward(self) -> None:
        """The first TOP of all are among the entries, as long as there are that many."""
        for crowd in list(self.crowds):
            while len(crowd.entries) > 0:
                first = crowd.entries[0]
                best = (-crowd.token.rank(first), first.arrival)
                if len(self.entries) >= TOP and best > standing(self.entries[TOP - 1]):
                    break
                self.leave_crowd(first, crowd)
                self.insert(first)

    def find(self, client: int) -> RankedRequest | None:
        """The entry of a client of our own, with the rank that it has by now."""
        entry = self.own.get(client)
        if entry is not None and entry.crowd is not None:
            self.leave_crowd(entry, entry.crowd)
            self.insert(entry)
        return entry

    def settle_crowds(self) -> None:
        while self.crowds:
            self.find(self.crowds[0].entries[0].client)

    def freeze(self) -> tuple[object, ...]:
        """Settled entries first. Of arrivals only the order matters."""
        self.settle_crowds()
        every = self.all()
        order = {at: place for place, at in enumerate(sorted([one.arrival for one in every]))}
        return tuple([self.row(entry, order[entry.arrival]) for entry in every])

    def row(self, entry: RankedRequest, arrival: int) -> tuple[int, ...]:
        return (
            *(entry.neighbour, entry.client, entry.want, entry.priority),
            *(entry.rank, entry.age, entry.base, int(entry is self.told), arrival),
        )

    def thaw(self, frozen: tuple[Any, ...]) -> None:
        self.entries, self.fresh, self.crowds = [], [], []
        self.own, self.neighbours, self.told = {}, {}, None
        self.arrivals = len(frozen)
        for neighbour, client, want, priority, rank, age, base, told, arrival in frozen:
            entry = RankedRequest(neighbour, client, want, priority, rank, age, base)
            entry.arrival = arrival
            self.index(entry)
            (self.fresh if age == FRESH else self.entries).append(entry)
            if told == 1:
                self.told = entry


# -- the queue of direct's token, and a node's lines in it -----------------------------------

Asked = tuple[int, int, int, int, int, int]
"""Node, number of its request, want, priority, rank, and turn, which decides between equal ranks.
Want 0: the request was granted, withdrawn or struck out."""

STRUCK_OUT: Final = 1
"""The turn of a row that wants nothing because its node was unreachable."""

Ahead = tuple[int, int, int, int, int, int, bool]
"""Node, number, since, want, priority, rank, and whether it is fresh: as REQUEST has them."""

LATER: Final = 24
"""Bits by which a hop is shifted. A former life of a node made fewer requests than that in the time
of one hop, so the numbers of the next life are above all of them."""


class ClientLines(StatePart):
    """A line has the number of its latest request, and the client that it is for.

    The remainder of a number by the number of lines is its line. Requests of one line replace each
    other: the highest number counts.
    """

    no_state: ClassVar = ("count",)

    def __init__(self, count: int, hop: int, number: int) -> None:
        self.count = count
        base = max(hop, number >> LATER) + 1 << LATER
        self.numbers = [base + (line - base) % count for line in range(count)]
        self.since = self.numbers[:]  # <= numbers; the number under which it was asked for first
        self.placed = [NIL] * count
        # client that waits: the first and the last number under which it was asked for, though
        # another client may have its line by now
        self.asked_for: dict[int, tuple[int, int]] = {}

    def assign(self, first: list[int], cleared: int = NIL) -> list[int]:
        """Each of the ``first`` clients, the most urgent ones, gets a line, if need be that of a
        client that is not among them any more. The result: the lines that have changed, but for
        one that was ``cleared`` just now."""
        changed: list[int] = []
        for client in first:
            if client in self.placed:
                continue
            line = 0
            while self.placed[line] in first:
                line += 1
            self.placed[line] = client
            if line != cleared:
                changed.append(line)
        return changed

    def clear(self, client: int) -> int:
        """The client waits no more. The result: the line that it had."""
        line = self.placed.index(client)
        self.placed[line] = NIL
        return line

    def next_number(self, line: int, same: bool) -> None:
        """For another request, or for the ``same`` one, which has become more or less urgent."""
        self.numbers[line] += self.count
        if not same:
            self.since[line] = self.numbers[line]

    def remember(self, line: int) -> None:
        client = self.placed[line]
        if client != NIL:
            self.asked_for[client] = (self.since[line], self.numbers[line])

    def client_of(self, number: int) -> int:
        """The client that was asked for under that number, mostly the one that has its line; NIL if
        it waits no more, or asked anew."""
        line = number % self.count
        if self.is_current(line, number):
            return self.placed[line]
        for client in self.asked_for:
            if self.was_asked_for(client, number):
                return client
        return NIL

    def is_current(self, line: int, number: int) -> bool:
        in_use = self.placed[line] != NIL
        return in_use and self.since[line] <= number <= self.numbers[line]

    def was_asked_for(self, client: int, number: int) -> bool:
        first, last = self.asked_for.get(client, (0, NIL))
        return first <= number <= last and (number - first) % self.count == 0
