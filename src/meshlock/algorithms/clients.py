"""Clients of one node, queued behind the one that its algorithm serves.

Where an algorithm takes one client per node at a time, its runner keeps the others here. The next
is the one of the highest priority, aged by waiting: one step of priority is worth PATIENCE places
in the order of arrival, so nobody is passed for ever. Ties: first come, first served.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

PATIENCE = 16
"""So many places in the queue is one step of priority worth."""


class ClientQueue:
    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int]] = []  # rank, arrival, client
        self.arrivals = 0

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, client: int, priority: int) -> None:
        self.arrivals += 1
        heappush(self.heap, (self.arrivals - PATIENCE * priority, self.arrivals, client))

    def take(self) -> int:
        """The next client, which queues no more."""
        return heappop(self.heap)[2]

    def remove(self, client: int) -> bool:
        """A client has given up; False if it was not in the queue."""
        rest = [entry for entry in self.heap if entry[2] != client]
        found = len(rest) < len(self.heap)
        if found:
            heapify(rest)
            self.heap = rest
        return found

    def clients(self) -> list[int]:
        """Everybody in the queue, the next one first."""
        return [client for _, _, client in sorted(self.heap)]
