"""Recorded motion: places that nodes were at, and when."""

from __future__ import annotations

from array import array
from math import inf

from meshlock.topology.mobility.motion import Leg, Motion, rest


class Recorded(Motion):
    """Straight from place to place, and at rest after the last."""

    def __init__(self, places: list[array[float]]) -> None:
        super().__init__(len(places))
        self.places = places  # of each node: time, x, y, time, x, y ... in order of time
        self.at: list[int] = [0] * len(places)

    def first(self, node: int) -> Leg:
        places = self.places[node]
        if places[0] > 0.0:
            return rest(0.0, places[1], places[2], places[0])
        return self.on(node)

    def after(self, node: int, leg: Leg) -> Leg:
        return self.on(node)

    def on(self, node: int) -> Leg:
        """From the place that has been reached to the next; a jump takes no time."""
        places, at = self.places[node], self.at[node]
        while at + 3 < len(places) and places[at + 3] <= places[at]:
            at += 3
        time, x, y = places[at], places[at + 1], places[at + 2]
        if at + 3 >= len(places):
            self.at[node] = at
            return rest(time, x, y, inf)
        self.at[node] = at + 3
        return Leg(time, x, y, places[at + 3], places[at + 4], places[at + 5])
