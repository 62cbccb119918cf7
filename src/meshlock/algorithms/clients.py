"""Clients of one node, queued behind the one that its algorithm serves.

Where an algorithm takes one client per node at a time, its runner keeps the others here. The next
is the one of the highest priority, aged by waiting: one step of priority is worth PATIENCE places
in the order of arrival, so no client is passed forever. Ties: first come, first served.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

PATIENCE = 16
"""Places in the queue that one step of priority is worth."""

Place = tuple[int, int, int]
"""Rank, arrival, client."""


class ClientQueue:
    """Who gives up stays in the heap until it is at its top, or until half of it has given up."""

    def __init__(self, unit: int = 1) -> None:
        self.unit = unit  # places in a step of priority
        self.heap: list[Place] = []
        self.places: dict[int, Place] = {}  # of those that queue still
        self.arrivals = 0

    def __len__(self) -> int:
        return len(self.places)

    def add(self, client: int, priority: int) -> None:
        self.arrivals += 1
        self.insert(client, priority, self.arrivals)

    def insert(self, client: int, priority: int, arrival: int) -> None:
        place = (arrival * self.unit - PATIENCE * priority, arrival, client)
        self.places[client] = place
        heappush(self.heap, place)

    def change(self, client: int, priority: int) -> bool:
        """A client becomes more or less urgent, and keeps its place among those that are as urgent;
        False if it was not in the queue."""
        place = self.places.get(client)
        if place is None:
            return False
        self.insert(client, priority, place[1])
        self.tidy()
        return True

    def first(self) -> int:
        """The next client."""
        while self.places.get(self.heap[0][2]) != self.heap[0]:
            heappop(self.heap)
        return self.heap[0][2]

    def take(self) -> int:
        """The next client, which queues no more."""
        client = self.first()
        del self.places[client]
        return client

    def remove(self, client: int) -> bool:
        """A client has given up; False if it was not in the queue."""
        if self.places.pop(client, None) is None:
            return False
        self.tidy()
        return True

    def tidy(self) -> None:
        if len(self.heap) > 2 * len(self.places) + PATIENCE:
            self.heap = list(self.places.values())
            heapify(self.heap)

    def copy(self) -> ClientQueue:
        other = ClientQueue(self.unit)
        other.heap, other.places = self.heap[:], self.places.copy()
        other.arrivals = self.arrivals
        return other

    def clients(self) -> list[int]:
        """Everybody in the queue, the next one first."""
        return [client for _, _, client in sorted(self.places.values())]


NOBODY = 0


class OneAtATime(ClientQueue):
    """The clients of a node whose algorithm serves one at a time: the others queue behind it."""

    def __init__(self, unit: int = 1) -> None:
        super().__init__(unit)
        self.served = NOBODY

    def asks(self, client: int, priority: int) -> bool:
        """True if its request goes to the node now; else it queues."""
        if self.served != NOBODY:
            self.add(client, priority)
            return False
        self.served = client
        return True

    def ends(self) -> int:
        """The one that was served is through: the next, whose request goes to the node now."""
        self.served = self.take() if self.places else NOBODY
        return self.served
