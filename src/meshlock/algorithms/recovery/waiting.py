"""The clients of a node that wait, whatever epoch it is: their wants, priorities, ages, order.

Rule 2 as far as it concerns them: they keep their age from one epoch to the next. Nothing here
calls the node inside; the one of the epoch before is only asked how long its clients had waited.
"""

from __future__ import annotations

from typing import Any

from meshlock.algorithms.actor import Actor, Frozen
from meshlock.algorithms.clients import ClientQueue
from meshlock.algorithms.subclassing import mypyc_attr

Waiting = tuple[int, int, int, int]
"""A client that waits: want, priority, for how many grants it had waited when this epoch began,
its place in the order of arrival."""


@mypyc_attr(allow_interpreted_subclasses=True)
class WaitingClients:
    """Invariant: those in the line are those that wait; those that have not asked are among them.

    A crowd does not ask the node inside in one step. Who has not asked yet is not frozen: nobody
    is left over where fewer wait than ask at once.
    """

    def __init__(self, units: int) -> None:
        self.units = units
        self.waiting: dict[int, Waiting] = {}
        self.line = ClientQueue(units)  # whom an algorithm serves that takes one at a time
        self.arrivals = 0
        self.unasked = ClientQueue(units)
        self.outgoing: Actor | None = None  # the node inside before, which knows their ages ...
        self.outgoing_grants = 0  # ... if this number of grants was made

    def add(self, client: int, want: int, priority: int, age: int) -> None:
        self.arrivals += 1
        self.waiting[client] = (want, priority, age, self.arrivals)
        self.line.insert(client, priority, self.arrivals)

    def remove(self, client: int) -> None:
        del self.waiting[client]
        self.line.remove(client)
        self.unasked.remove(client)

    def change(self, client: int, want: int, priority: int) -> None:
        _, _, age, arrival = self.waiting[client]
        self.waiting[client] = (want, priority, age, arrival)
        self.line.change(client, priority)
        self.unasked.change(client, priority)

    # -- from one epoch to the next ----------------------------------------------------------------

    def epoch_ends(self, inner: Actor | None, grants: int) -> None:
        """All will ask anew, with the age that they have then."""
        for client in self.unasked.clients():
            self.keep_age(client)
        self.unasked = ClientQueue(self.units)
        self.outgoing = inner
        self.outgoing_grants = grants

    def keep_age(self, client: int) -> None:
        if self.outgoing is not None:
            want, priority, age, arrival = self.waiting[client]
            age = max(age, self.outgoing.waited(client, self.outgoing_grants))
            self.waiting[client] = (want, priority, age, arrival)

    def ask_anew(self) -> None:
        self.unasked = self.line.copy()

    def next_unasked(self) -> int:
        client = self.unasked.take()
        self.keep_age(client)
        return client

    # -- the whole state as a value ----------------------------------------------------------------

    def freeze(self) -> Frozen:
        """In the order in which they came; of that order only how long ago matters."""
        waiting, last = self.waiting, self.arrivals
        return tuple([(one, (*rest[:3], rest[3] - last)) for one, rest in waiting.items()])

    def thaw(self, frozen: Any) -> None:
        self.waiting = dict(frozen)
        self.arrivals = 0
        self.unasked = ClientQueue(self.units)
        self.outgoing = None
        self.line = ClientQueue(self.units)
        for client, (_, priority, _, arrival) in self.waiting.items():
            self.line.insert(client, priority, arrival)
