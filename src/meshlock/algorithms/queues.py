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
STAMPED: Final = 2


class Entry:
    """A request that waits: of a neighbour, or of a client of our own (neighbour NIL).

    ``rank`` decides the order, the higher the sooner; ``arrival`` decides between equals. FRESH
    is a request whose rank goes by an old count of grants; STAMPED, a neighbour's that was fresh,
    and that does not know its rank yet; SETTLED, any other. ``claim``: the rank by what was known
    here of grants when it came.
    """

    def __init__(
        self,
        neighbour: int,
        client: int,
        want: int,
        priority: int,
        rank: int,
        age: int = SETTLED,
        claim: int | None = None,
    ) -> None:
        self.neighbour = neighbour
        self.client = client
        self.want = want
        self.priority = priority
        self.rank = rank
        self.age = age
        self.claim = rank if claim is None else claim
        self.arrival = 0
        self.crowd: Crowd | None = None

    def freeze(self) -> tuple[int, ...]:
        return (
            *(self.neighbour, self.client, self.want, self.priority),
            *(self.rank, self.age, self.claim),
        )

    def stamp(self, rank: int) -> None:
        self.rank = self.claim = rank
        self.age = SETTLED if self.neighbour == NO_NEIGHBOUR else STAMPED


def standing(entry: Entry) -> tuple[int, int]:
    return (-entry.rank, entry.arrival)


def place_among(entries: list[Entry], entry: Entry) -> int:
    """Where the entry stands, or would stand: by bisection."""
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        other = entries[middle]
        if other.rank > entry.rank or (other.rank == entry.rank and other.arrival < entry.arrival):
            low = middle + 1
        else:
            high = middle
    return low


MOST_FRESH: Final = 1000
"""So many fresh entries are stamped at once; what comes on top of them is a crowd."""

TOP: Final = 16
"""So many of the first entries are never in a crowd."""


class Crowd:
    """Fresh entries that are none of the first, in order: they have the ranks that they came with.

    When their age begins they stay here, and what that does to all of them is noted down: by how
    much their ranks ``fall`` at least, and how much ``later`` they come than others. Each is
    stamped when it comes to the front, is asked for, or goes.
    """

    def __init__(self, arrivals: int) -> None:
        self.entries: list[Entry] = []
        self.settled = False
        self.begun = arrivals  # those here came after so many others
        self.fall = 0
        self.later = 0


class Ranked(Queue):
    """Entries in order of rank; those of one rank in the order in which they came.

    Found by bisection, and a client's by its number: however many wait, a few steps. (That a list
    then moves its tail costs nothing beside it: 30 us where 100,000 wait.) Of a crowd, the first
    are here; the others are in ``crowds``, because to touch each of 100,000 would take too long.
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.own: dict[int, Entry] = {}  # those of clients of our own, which have a number
        self.fresh: dict[int, Entry] = {}  # of these, by arrival
        self.crowds: list[Crowd] = []  # the last may be fresh
        self.arrivals = 0

    def __len__(self) -> int:
        return len(self.entries) + sum([len(crowd.entries) for crowd in self.crowds])

    def first(self) -> Entry:
        return self.entries[0]

    def push(self, entry: Entry) -> None:
        self.arrivals += 1
        entry.arrival = self.arrivals
        if entry.neighbour == NO_NEIGHBOUR:
            self.own[entry.client] = entry
            if entry.age == FRESH and (len(self.fresh) >= MOST_FRESH or self.has_fresh_crowd()):
                self.push_into_crowd(entry)
                return
        self.insert(entry)

    def insert(self, entry: Entry) -> None:
        self.entries.insert(place_among(self.entries, entry), entry)
        if entry.age == FRESH:
            self.fresh[entry.arrival] = entry

    def remove(self, entry: Entry) -> None:
        if entry.neighbour == NO_NEIGHBOUR:
            del self.own[entry.client]
        if entry.crowd is not None:
            self.take_out(entry, entry.crowd)
            return
        del self.entries[self.place(entry)]
        if entry.age == FRESH:
            del self.fresh[entry.arrival]
        if self.crowds:
            self.bring_forward()

    def is_fresh(self) -> bool:
        """Is any entry?"""
        return len(self.fresh) > 0 or self.has_fresh_crowd()

    def has_fresh_crowd(self) -> bool:
        return len(self.crowds) > 0 and not self.crowds[-1].settled

    def settle(self, grants: int, trust: int) -> None:
        """So many more grants are heard of. Of the age that fresh entries claim, so many are
        believed. They come behind those that have the same rank already."""
        if not self.is_fresh():
            return
        fall, arrivals = grants - trust, self.arrivals
        if self.fresh:
            self.stamp_all(fall)
        if self.crowds:
            if self.has_fresh_crowd():
                self.settle_crowd(self.crowds[-1], fall, arrivals)
            self.bring_forward()

    def stamp_all(self, fall: int) -> None:
        everyone = len(self.fresh) == len(self.entries)  # and in order, however many
        fresh = self.entries if everyone else list(self.fresh.values())
        if not everyone and len(fresh) > 1:
            fresh.sort(key=standing)
        self.fresh = {}
        few = not everyone and (len(fresh) == 1 or len(fresh) * 8 < len(self.entries))
        if few:
            for entry in fresh:
                del self.entries[self.place(entry)]
        last, ordered = fresh[0].rank, True
        for entry in fresh:
            self.arrivals += 1
            entry.arrival = self.arrivals
            entry.stamp(min(entry.claim, entry.rank - fall))
            ordered = ordered and entry.rank <= last
            last = entry.rank
            if few:
                self.entries.insert(self.place(entry), entry)
        if not few and not (everyone and ordered):
            self.entries.sort(key=standing)

    # -- crowds ------------------------------------------------------------------------------

    def push_into_crowd(self, entry: Entry) -> None:
        if not self.has_fresh_crowd():
            self.crowds.append(Crowd(self.arrivals - 1))
        entry.crowd = crowd = self.crowds[-1]
        crowd.entries.insert(place_among(crowd.entries, entry), entry)
        self.bring_forward()

    def settle_crowd(self, crowd: Crowd, fall: int, arrivals: int) -> None:
        """Behind those that were stamped just now, of ``arrivals`` in all."""
        crowd.settled = True
        crowd.fall = max(0, fall)  # nobody claims more than its rank
        crowd.later = self.arrivals - crowd.begun
        self.arrivals = arrivals + crowd.later

    def take_out(self, entry: Entry, crowd: Crowd) -> None:
        """It gets the rank that it has by now."""
        del crowd.entries[place_among(crowd.entries, entry)]
        entry.crowd = None
        if crowd.settled:
            entry.stamp(min(entry.claim, entry.rank - crowd.fall))
            entry.arrival += crowd.later
        if not crowd.entries:
            self.crowds.remove(crowd)

    def bring_forward(self) -> None:
        """The first TOP of all are among the entries, as long as there are so many."""
        for crowd in list(self.crowds):
            while crowd.entries:
                first = crowd.entries[0]
                best = (crowd.fall - first.rank, first.arrival + crowd.later)
                if len(self.entries) >= TOP and best > standing(self.entries[TOP - 1]):
                    break
                self.take_out(first, crowd)
                self.insert(first)

    def bring_all(self) -> None:
        while self.crowds:
            first = self.crowds[0].entries[0]
            self.take_out(first, self.crowds[0])
            self.insert(first)

    def find(self, client: int) -> Entry | None:
        """The entry of a client of our own, with the rank that it has by now."""
        entry = self.own.get(client)
        if entry is not None and entry.crowd is not None and entry.crowd.settled:
            self.take_out(entry, entry.crowd)
            self.insert(entry)
        return entry

    def place(self, entry: Entry) -> int:
        return place_among(self.entries, entry)

    def stamp(self, entry: Entry, rank: int) -> None:
        """A fresh one, whose rank has become known."""
        self.remove(entry)
        entry.stamp(rank)
        self.push(entry)

    def freeze(self) -> tuple[object, ...]:
        self.bring_all()
        return tuple([entry.freeze() for entry in self.entries])

    def thaw(self, frozen: tuple[object, ...]) -> None:
        self.entries = []
        self.own = {}
        self.fresh = {}
        self.crowds = []
        self.arrivals = 0
        rows = cast(tuple[tuple[int, int, int, int, int, int, int], ...], frozen)
        for neighbour, client, want, priority, rank, age, claim in rows:
            self.push(Entry(neighbour, client, want, priority, rank, age, claim))
