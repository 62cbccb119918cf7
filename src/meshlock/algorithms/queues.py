"""Waiting queues that several algorithms share."""

from __future__ import annotations

from typing import Final, cast

from meshlock.algorithms.subclassing import mypyc_attr

NO_NEIGHBOUR: Final = -1
"""The interface's NIL, which is made of these."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Queue:
    """Part of a node's state: it is frozen and thawed with the node."""

    __slots__ = ()

    def freeze(self) -> tuple[object, ...]:
        raise NotImplementedError

    def thaw(self, frozen: tuple[object, ...]) -> None:
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class Fifo(Queue):
    """First in, first out, in constant time however many wait.

    A list with a moving head: ``list.pop(0)`` would cost as much as the queue is
    long, and ``collections.deque`` 600 bytes per node even when nobody waits.
    """

    __slots__ = ("items", "head")

    def __init__(self) -> None:
        self.items: list[int] = []
        self.head = 0

    def __len__(self) -> int:
        return len(self.items) - self.head

    def push(self, item: int) -> None:
        if self.head == 1 and len(self.items) == 1:  # nobody waits: use the place again
            self.items[0] = item
            self.head = 0
        else:
            self.items.append(item)

    def pop(self) -> int:
        item = self.items[self.head]
        self.head += 1
        if self.head == len(self.items):
            if self.head > 1:
                self.items = []
                self.head = 0
        elif self.head >= 64 and self.head * 2 >= len(self.items):
            self.items = self.items[self.head :]
            self.head = 0
        return item

    def remove(self, item: int) -> bool:
        """Take out the first occurrence; False if there is none."""
        for place in range(self.head, len(self.items)):
            if self.items[place] == item:
                del self.items[place]
                return True
        return False

    def others(self) -> list[int]:
        """Who waits, in order of arrival, but for an own request that is kept apart."""
        return self.items[self.head :]

    def freeze(self) -> tuple[int, ...]:
        return tuple(self.items[self.head :])

    def thaw(self, frozen: tuple[object, ...]) -> None:
        self.items = list(cast(tuple[int, ...], frozen))
        self.head = 0


class Lift(Fifo):
    """Own request first, but never twice in a row while others wait.

    The bound keeps the queue fair: between two own requests that overtake, at least
    one of the others is served.
    """

    __slots__ = ("me", "own", "lifted")

    def __init__(self, me: int) -> None:
        super().__init__()
        self.me = me
        self.own = False
        self.lifted = False

    def __len__(self) -> int:
        return len(self.items) - self.head + (1 if self.own else 0)

    def push(self, item: int) -> None:
        if item == self.me:
            self.own = True
        else:
            super().push(item)

    def pop(self) -> int:
        others = len(self.items) > self.head
        if self.own and not (self.lifted and others):
            self.own = False
            self.lifted = others
            return self.me
        self.lifted = False
        return super().pop()

    def remove(self, item: int) -> bool:
        if item != self.me:
            return super().remove(item)
        was = self.own
        self.own = False
        return was

    def freeze(self) -> tuple[int, ...]:
        return (1 if self.own else 0, 1 if self.lifted else 0, *super().freeze())

    def thaw(self, frozen: tuple[object, ...]) -> None:
        super().thaw(frozen[2:])
        self.own = frozen[0] == 1
        self.lifted = frozen[1] == 1


SETTLED: Final = 0
FRESH: Final = 1


class Entry:
    """A request that waits: of a neighbour, or of a client of our own (neighbour NIL).

    ``rank`` decides the order, the higher the sooner; ``arrival`` decides between equals, and an
    entry that changes keeps it. ``age`` says what is known of the rank. FRESH: the token has not
    been here since it came; the rank goes by the grants that were known here then, and ``base`` is
    what it would be if none had been made. SETTLED: a holder has ranked it. ``told``: this is the
    request that our next knows of.
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
        self.told = False
        self.arrival = 0
        self.crowd: Crowd | None = None

    def freeze(self, arrival: int) -> tuple[int, ...]:
        return (
            *(self.neighbour, self.client, self.want, self.priority),
            *(self.rank, self.age, self.base, int(self.told), arrival),
        )

    def settle(self, token: Met) -> None:
        """It keeps the rank that it came with, as far as the token allows."""
        self.rank = token.rank(self)
        self.base = 0
        self.age = SETTLED

    def change(self, want: int, priority: int, gain: int) -> None:
        """It becomes more or less urgent: its rank rises by that much."""
        self.want = want
        self.priority = priority
        self.rank += gain
        if self.age == FRESH:
            self.base += gain


class Met:
    """What a token says to the fresh entries that it meets. Their bases ``fall``, and none ranks
    above what is left of its base. But those of that ``priority`` stood behind the request that the
    token was sent for, which a holder has ``given`` a rank: they may rank as high as that."""

    def __init__(self, fall: int, priority: int = 0, given: int | None = None) -> None:
        self.fall = fall
        self.priority = priority
        self.given = given

    def rank(self, entry: Entry) -> int:
        limit = entry.base - self.fall
        if self.given is not None and entry.priority == self.priority and self.given > limit:
            limit = self.given
        return min(entry.rank, limit)


def standing(entry: Entry) -> tuple[int, int]:
    return (-entry.rank, entry.arrival)


def place_among(entries: list[Entry], entry: Entry) -> int:
    """Where a settled entry stands, or would stand: by bisection."""
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        other = entries[middle]
        if other.rank > entry.rank or (other.rank == entry.rank and other.arrival < entry.arrival):
            low = middle + 1
        else:
            high = middle
    return low


def place_by_base(entries: list[Entry], entry: Entry) -> int:
    """The same among fresh entries, and in a crowd."""
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        other = entries[middle]
        if other.base > entry.base or (other.base == entry.base and other.arrival < entry.arrival):
            low = middle + 1
        else:
            high = middle
    return low


MOST_FRESH: Final = 1000
"""More fresh entries than these are not settled at once; they become a crowd."""

TOP: Final = 16
"""The first entries, this many, are never in a crowd."""


class Crowd:
    """Many entries that were fresh when the token came, by their bases. Each is settled when it
    comes to the front, is looked up, or goes."""

    def __init__(self, entries: list[Entry], token: Met) -> None:
        self.entries = entries
        self.token = token
        for entry in entries:
            entry.crowd = self


class Ranked(Queue):
    """Entries in order of rank; those of one rank in the order in which they came.

    Settled entries are in ``entries`` by rank. Fresh ones are in ``fresh`` by base, because nobody
    knows how old they are: a more urgent one goes before a less urgent one. The first of all is the
    first of either. An entry is found by bisection, a client's by its number: a few steps, however
    many wait. (Moving the tail of a list costs 30 us where 100,000 wait.) The token may come to
    100,000 fresh entries. To settle each would take too long, so they become a crowd.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.fresh: list[Entry] = []
        self.own: dict[int, Entry] = {}  # those of clients of our own, which have a number
        self.crowds: list[Crowd] = []
        self.arrivals = 0

    def __len__(self) -> int:
        crowds = sum([len(crowd.entries) for crowd in self.crowds])
        return len(self.entries) + len(self.fresh) + crowds

    def is_empty(self) -> bool:
        return len(self.entries) == 0 and len(self.fresh) == 0

    def all(self) -> list[Entry]:
        """But for those in crowds: settled ones, then fresh ones, each in order."""
        return [*self.entries, *self.fresh]

    def first(self) -> Entry:
        """Of all; a fresh one by the rank that it came with."""
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

    def top(self, most: int) -> list[Entry]:
        """The first ones."""
        if len(self.fresh) == 0:
            return self.entries[:most]
        found: list[Entry] = []
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

    def push(self, entry: Entry) -> None:
        self.arrivals += 1
        entry.arrival = self.arrivals
        if entry.neighbour == NO_NEIGHBOUR:
            self.own[entry.client] = entry
        self.insert(entry)

    def insert(self, entry: Entry) -> None:
        if entry.age == FRESH:
            self.fresh.insert(place_by_base(self.fresh, entry), entry)
        else:
            self.entries.insert(place_among(self.entries, entry), entry)

    def remove(self, entry: Entry) -> None:
        if entry.neighbour == NO_NEIGHBOUR:
            del self.own[entry.client]
        self.take_out(entry)
        entry.told = False

    def take_out(self, entry: Entry) -> None:
        if entry.crowd is not None:
            self.leave_crowd(entry, entry.crowd)
        elif entry.age == FRESH:
            del self.fresh[place_by_base(self.fresh, entry)]
        else:
            del self.entries[place_among(self.entries, entry)]
            if self.crowds:
                self.bring_forward()

    def change(self, entry: Entry, want: int, priority: int, gain: int) -> None:
        """It waits on, with its age, and goes to where it belongs now."""
        self.take_out(entry)
        entry.change(want, priority, gain)
        self.insert(entry)

    def replace(self, old: Entry, entry: Entry, keep: bool) -> None:
        """Another entry of the same neighbour; it may ``keep`` the old one's place among equals."""
        self.remove(old)
        self.arrivals += 1
        entry.arrival = old.arrival if keep else self.arrivals
        self.insert(entry)

    def stamp(self, entry: Entry, rank: int) -> None:
        """The holder has ranked it."""
        self.take_out(entry)
        entry.rank = entry.base = rank
        entry.settle(Met(0))
        self.insert(entry)

    def settle_but(self, token: Met, kept: list[Entry]) -> None:
        """The same, but these stay as fresh as they are."""
        kept = [entry for entry in kept if entry.age == FRESH and entry.crowd is None]
        for entry in kept:
            self.take_out(entry)
        self.settle(token)
        for entry in kept:
            self.insert(entry)

    def settle(self, token: Met) -> None:
        """The token is here: fresh entries get their ranks."""
        fresh = self.fresh
        if len(fresh) == 0:
            return
        self.fresh = []
        if len(fresh) > MOST_FRESH:
            self.crowds.append(
                Crowd([one for one in fresh if one.neighbour == NO_NEIGHBOUR], token)
            )
            fresh = [one for one in fresh if one.neighbour != NO_NEIGHBOUR]
        for entry in fresh:
            entry.settle(token)
        if len(fresh) * 8 < len(self.entries):
            for entry in fresh:
                self.insert(entry)
        else:
            self.entries += fresh
            self.entries.sort(key=standing)
        if self.crowds:
            self.bring_forward()

    # -- crowds ------------------------------------------------------------------------------

    def leave_crowd(self, entry: Entry, crowd: Crowd) -> None:
        """It gets the rank that it has by now."""
        del crowd.entries[place_by_base(crowd.entries, entry)]
        entry.crowd = None
        entry.settle(crowd.token)
        if len(crowd.entries) == 0:
            self.crowds.remove(crowd)

    def bring_forward(self) -> None:
        """The first TOP of all are among the entries, as long as there are so many."""
        for crowd in list(self.crowds):
            while len(crowd.entries) > 0:
                first = crowd.entries[0]
                best = (-crowd.token.rank(first), first.arrival)
                if len(self.entries) >= TOP and best > standing(self.entries[TOP - 1]):
                    break
                self.leave_crowd(first, crowd)
                self.insert(first)

    def find(self, client: int) -> Entry | None:
        """The entry of a client of our own, with the rank that it has by now."""
        entry = self.own.get(client)
        if entry is not None and entry.crowd is not None:
            self.leave_crowd(entry, entry.crowd)
            self.insert(entry)
        return entry

    def freeze(self) -> tuple[object, ...]:
        """Settled ones first. Of arrivals only the order matters."""
        while self.crowds:
            self.find(self.crowds[0].entries[0].client)
        rows = self.all()
        order = {at: place for place, at in enumerate(sorted([one.arrival for one in rows]))}
        return tuple([entry.freeze(order[entry.arrival]) for entry in rows])

    def thaw(self, frozen: tuple[object, ...]) -> None:
        self.entries = []
        self.fresh = []
        self.own = {}
        self.crowds = []
        rows = cast(tuple[tuple[int, int, int, int, int, int, int, int, int], ...], frozen)
        self.arrivals = len(rows)
        for neighbour, client, want, priority, rank, age, base, told, arrival in rows:
            entry = Entry(neighbour, client, want, priority, rank, age, base)
            entry.told = told == 1
            entry.arrival = arrival
            if neighbour == NO_NEIGHBOUR:
                self.own[client] = entry
            (self.fresh if age == FRESH else self.entries).append(entry)
