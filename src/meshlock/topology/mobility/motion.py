"""Motion in a plane, leg by leg: straight, at one speed, from here to there."""

from __future__ import annotations

from array import array
from math import inf


class Leg:
    def __init__(
        self, start: float, x: float, y: float, until: float, to_x: float, to_y: float
    ) -> None:
        self.start = start
        self.x = x
        self.y = y
        self.until = until
        self.to_x = to_x
        self.to_y = to_y
        span = until - start
        moving = 0.0 < span < inf
        self.speed_x = (to_x - x) / span if moving else 0.0
        self.speed_y = (to_y - y) / span if moving else 0.0

    def x_at(self, time: float) -> float:
        return self.x + self.speed_x * (time - self.start)

    def y_at(self, time: float) -> float:
        return self.y + self.speed_y * (time - self.start)


def rest(start: float, x: float, y: float, until: float) -> Leg:
    return Leg(start, x, y, until, x, y)


class Motion:
    """Where everybody goes. Legs are asked for in order of time."""

    def __init__(self, size: int) -> None:
        self.size = size

    def first(self, node: int) -> Leg:
        """The leg that starts at time 0."""
        raise NotImplementedError

    def after(self, node: int, leg: Leg) -> Leg:
        """The leg that starts when this one ends; legs of no duration are passed over."""
        raise NotImplementedError


class Recorded(Motion):
    """Straight from place to place, as they were recorded, and at rest after the last."""

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
