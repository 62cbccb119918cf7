"""The limit of any simulator on a heap: take the earliest event, put a later one back."""

from __future__ import annotations

from heapq import heapify, heappop, heappush


def churn(events: int, size: int) -> int:
    """Pop and push ``events`` times on a heap of ``size`` entries like the simulator's."""
    heap: list[tuple[float, int, object]] = []
    serial = 0
    for _ in range(size):
        serial += 1
        heap.append(((serial * 7919 % 1000) / 1000.0, serial, heap))
    heapify(heap)
    for _ in range(events):
        time, _number, event = heappop(heap)
        serial += 1
        heappush(heap, (time + 0.5 + (serial * 7919 % 1000) / 1000.0, serial, event))
    return serial
