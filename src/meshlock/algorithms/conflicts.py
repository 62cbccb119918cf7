"""Order by conflict, where permits are of several kinds: a request is granted only if no more
urgent one that waits wants a kind that it wants. Requests that share no kind never wait for each
other.

So of all requests for the same set of kinds only the first matters. A queue of requests for several
kinds is one queue per set of kinds.
"""

from __future__ import annotations

from typing import Any, Final

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.amounts import fields, fits, kinds_of, several
from meshlock.algorithms.ranked import Asked, Met, Ranked, RankedRequest, standing
from meshlock.algorithms.subclassing import mypyc_attr

LINES: Final = 8
"""Of a node in the queue of direct's token, at most."""


def lines_per_kind(permits: int) -> int:
    """How many requests of one node for the same kind are in the queue of direct's token."""
    if permits <= LINES:
        return max(1, permits)
    numbers = fields(permits)
    return max(1, min(max(numbers), LINES // len(numbers)))


def lines_in_all(permits: int) -> int:
    return lines_per_kind(permits) * len(fields(permits))


@mypyc_attr(allow_interpreted_subclasses=True)
class ByRank:
    """All requests are for the same kind: only the first of all may go."""

    def next_place(self, queue: list[Asked], free: int) -> int:
        """Where in the queue of direct's token the request is that is granted now, or NIL."""
        return 0 if len(queue) > 0 and 0 < queue[0][2] <= free else NIL


@mypyc_attr(allow_interpreted_subclasses=True)
class ByConflict(ByRank):
    def next_place(self, queue: list[Asked], free: int) -> int:
        kept = 0  # kinds that a more urgent request waits for
        for place, asked in enumerate(queue):
            want = asked[2]
            if want == 0:
                break
            kinds = kinds_of(want)
            if kinds & kept == 0 and fits(want, free):
                return place
            kept |= kinds
        return NIL


@mypyc_attr(allow_interpreted_subclasses=True)
class RankedByKinds(Ranked):
    """Requests for several kinds: a queue per set of kinds. Arrivals are counted in all of them."""

    def __init__(self, share: int = 1) -> None:
        super().__init__()
        self.share = share
        self.sets: dict[int, Ranked] = {}  # set of kinds: its queue, which is not empty

    def __len__(self) -> int:
        return sum([len(queue) for queue in self.sets.values()])

    def is_empty(self) -> bool:
        return len(self.sets) == 0

    def has_fresh(self) -> bool:
        return any(queue.has_fresh() for queue in self.sets.values())

    def all(self) -> list[RankedRequest]:
        return [entry for kinds in sorted(self.sets) for entry in self.sets[kinds].all()]

    def firsts(self) -> list[RankedRequest]:
        """The first of each set of kinds, the first of all first."""
        return sorted([queue.first() for queue in self.sets.values()], key=standing)

    def first(self) -> RankedRequest:
        return self.firsts()[0]

    def next_entry(self, free: int) -> RankedRequest | None:
        """The one that is granted now, if one is."""
        kept = 0  # kinds that a more urgent request waits for
        for entry in self.firsts():
            kinds = kinds_of(entry.want)
            if kinds & kept == 0 and fits(entry.want, free):
                return entry
            kept |= kinds
        return None

    def top(self, most: int) -> list[RankedRequest]:
        """Of every kind the first entries, as many as is its ``share``."""
        rows = [queue.top(self.share) for queue in self.sets.values()]
        counts: dict[int, int] = {}  # by kind
        found: list[RankedRequest] = []
        for entry in sorted([entry for row in rows for entry in row], key=standing):
            needed = False
            for place, number in enumerate(fields(entry.want)):
                if number > 0:
                    needed = needed or counts.get(place, 0) < self.share
                    counts[place] = counts.get(place, 0) + 1
            if needed:
                found.append(entry)
        return found

    # -- entries come, change and go ----------------------------------------------------------

    def of(self, entry: RankedRequest) -> Ranked:
        return self.sets[kinds_of(entry.want)]

    def queue_for(self, kinds: int) -> Ranked:
        queue = self.sets.get(kinds)
        if queue is None:
            queue = self.sets[kinds] = Ranked()
        queue.arrivals = self.arrivals
        return queue

    def push(self, entry: RankedRequest) -> None:
        queue = self.queue_for(kinds_of(entry.want))
        queue.push(entry)
        self.arrivals = queue.arrivals
        if entry.neighbour == NIL:
            self.own[entry.client] = entry

    def replace(self, old: RankedRequest, entry: RankedRequest, same: bool) -> None:
        queue = self.queue_for(kinds_of(entry.want))
        queue.replace(old, entry, same)
        self.arrivals = queue.arrivals

    def remove(self, entry: RankedRequest) -> None:
        kinds = kinds_of(entry.want)
        queue = self.sets[kinds]
        queue.remove(entry)
        if entry.neighbour == NIL:
            del self.own[entry.client]
        if len(queue) == 0:
            del self.sets[kinds]

    def change(self, entry: RankedRequest, want: int, priority: int, gain: int) -> None:
        """What it wants stays of the same kinds."""
        self.of(entry).change(entry, want, priority, gain)

    def stamp(self, entry: RankedRequest, rank: int) -> None:
        self.of(entry).stamp(entry, rank)

    def rank_fresh(self, token: Met) -> None:
        for queue in self.sets.values():
            queue.rank_fresh(token)

    def rank_fresh_but(self, token: Met, kept: list[RankedRequest]) -> None:
        for kinds, queue in self.sets.items():
            queue.rank_fresh_but(token, [one for one in kept if kinds_of(one.want) == kinds])

    def age(self) -> None:
        for queue in self.sets.values():
            queue.age()

    def find(self, client: int) -> RankedRequest | None:
        entry = self.own.get(client)
        return None if entry is None else self.of(entry).find(client)

    # -- of neighbours -------------------------------------------------------------------------

    def of_neighbour(self, neighbour: int, kinds: int) -> RankedRequest | None:
        """Its entry for this set of kinds."""
        queue = self.sets.get(kinds)
        return None if queue is None else queue.neighbours.get(neighbour)

    def those_who_ask(self) -> list[int]:
        """The neighbours that have entries here."""
        return sorted({one for queue in self.sets.values() for one in queue.neighbours})

    def delete(self, neighbour: int) -> None:
        for queue in list(self.sets.values()):
            entry = queue.neighbours.get(neighbour)
            if entry is not None:
                self.remove(entry)

    # -- state ---------------------------------------------------------------------------------

    def freeze(self) -> tuple[object, ...]:
        """As of one queue, one set of kinds behind the other."""
        for queue in self.sets.values():
            queue.settle_crowds()
        every = self.all()
        order = {at: place for place, at in enumerate(sorted([one.arrival for one in every]))}
        return tuple([self.sets[kinds_of(one.want)].row(one, order[one.arrival]) for one in every])

    def thaw(self, frozen: tuple[Any, ...]) -> None:
        self.own, self.sets = {}, {}
        self.arrivals = len(frozen)
        rows: dict[int, list[Any]] = {}
        for row in frozen:
            rows.setdefault(kinds_of(row[2]), []).append(row)
        for kinds, some in rows.items():
            queue = self.sets[kinds] = Ranked()
            queue.thaw(tuple(some))
            self.own.update(queue.own)


def order_of(permits: int) -> ByRank:
    """Which request of direct's queue is granted next, in a pool of these permits."""
    return ByConflict() if several(permits) else ByRank()


def queue_of(permits: int) -> Ranked:
    """For the clients of one node of direct."""
    return RankedByKinds(lines_per_kind(permits)) if several(permits) else Ranked()
