"""Motion in a plane, leg by leg, as it was recorded or by models in the unit square.

A leg goes straight, at one speed, from here to there. Each model is the plain form found in
textbooks. All start with nodes anywhere (on any street for Manhattan), so the first moments of a
long run are not typical of the rest.
"""

from __future__ import annotations

from array import array
from math import cos, hypot, inf, pi, sin, sqrt
from random import Random


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


SHORTEST = 1e-9
"""Legs shorter than this, in time, are joined to the next."""


class Speed:
    """One speed, or a uniform draw between two for every leg."""

    def __init__(self, low: float, high: float) -> None:
        self.low = low
        self.span = high - low

    def draw(self, stream: Random) -> float:
        return self.low if self.span == 0.0 else self.low + self.span * stream.random()


class DrawnMotion(Motion):
    def __init__(self, size: int, speed: Speed, stream: Random) -> None:
        super().__init__(size)
        self.speed = speed
        self.stream = stream


class Waypoint(DrawnMotion):
    """Go to a random place, pause there, go to another."""

    def __init__(self, size: int, speed: Speed, pause: float, stream: Random) -> None:
        super().__init__(size, speed, stream)
        self.pause = pause

    def first(self, node: int) -> Leg:
        return self.journey(0.0, self.stream.random(), self.stream.random())

    def after(self, node: int, leg: Leg) -> Leg:
        moved = leg.speed_x != 0.0 or leg.speed_y != 0.0
        if moved and self.pause > 0.0:
            return rest(leg.until, leg.to_x, leg.to_y, leg.until + self.pause)
        return self.journey(leg.until, leg.to_x, leg.to_y)

    def journey(self, start: float, x: float, y: float) -> Leg:
        while True:
            to_x, to_y = self.stream.random(), self.stream.random()
            time = hypot(to_x - x, to_y - y) / self.speed.draw(self.stream)
            if time > SHORTEST:
                return Leg(start, x, y, start + time, to_x, to_y)


class Walk(DrawnMotion):
    """Walk in a random direction for a while, then in another; walls throw back."""

    def __init__(self, size: int, speed: Speed, step: float, stream: Random) -> None:
        super().__init__(size, speed, stream)
        self.step = step
        self.speed_x: list[float] = [0.0] * size
        self.speed_y: list[float] = [0.0] * size
        self.turn: list[float] = [0.0] * size  # when the node next changes its mind

    def first(self, node: int) -> Leg:
        return self.leg_from(node, 0.0, self.stream.random(), self.stream.random())

    def after(self, node: int, leg: Leg) -> Leg:
        return self.leg_from(node, leg.until, leg.to_x, leg.to_y)

    def leg_from(self, node: int, start: float, x: float, y: float) -> Leg:
        if start >= self.turn[node] - SHORTEST:
            self.turn[node] = start + self.step
            self.choose(node)
        x_speed, y_speed = self.speed_x[node], self.speed_y[node]
        if (x <= 0.0 and x_speed < 0.0) or (x >= 1.0 and x_speed > 0.0):
            self.speed_x[node] = x_speed = -x_speed
            self.wall(node, True)
        if (y <= 0.0 and y_speed < 0.0) or (y >= 1.0 and y_speed > 0.0):
            self.speed_y[node] = y_speed = -y_speed
            self.wall(node, False)
        time = self.turn[node] - start
        time = min(time, room(x, x_speed), room(y, y_speed))
        to_x, to_y = within(x + x_speed * time), within(y + y_speed * time)
        return Leg(start, x, y, start + time, to_x, to_y)

    def choose(self, node: int) -> None:
        """A new direction and speed."""
        angle = 2.0 * pi * self.stream.random()
        speed = self.speed.draw(self.stream)
        self.speed_x[node] = speed * cos(angle)
        self.speed_y[node] = speed * sin(angle)

    def wall(self, node: int, upright: bool) -> None:
        """The node was thrown back by a wall."""


def room(place: float, speed: float) -> float:
    """How long until a wall is reached."""
    if speed > 0.0:
        return (1.0 - place) / speed
    return place / -speed if speed < 0.0 else inf


def within(place: float) -> float:
    """Walls are exact, whatever rounding says."""
    if place < SHORTEST:
        return 0.0
    return 1.0 if place > 1.0 - SHORTEST else place


class GaussMarkov(Walk):
    """A walk with a memory: speed and direction drift about a mean of the node's own.

    Every step, a value becomes ``memory`` times itself, plus the rest times its mean, plus
    noise: memory 1 is a straight line, memory 0 a new draw each time. A wall turns the
    mean direction as well.
    """

    def __init__(self, size: int, speed: Speed, step: float, memory: float, stream: Random) -> None:
        super().__init__(size, speed, step, stream)
        self.memory = memory
        self.noise = sqrt(1.0 - memory * memory)
        self.average = [speed.draw(stream) for _ in range(size)]
        self.heading = [2.0 * pi * stream.random() for _ in range(size)]
        self.pace = list(self.average)
        self.angle = list(self.heading)

    def choose(self, node: int) -> None:
        memory, average = self.memory, self.average[node]
        pace = memory * self.pace[node] + (1.0 - memory) * average
        pace += self.noise * 0.3 * average * self.stream.gauss(0.0, 1.0)
        self.pace[node] = pace = max(pace, 0.0)
        angle = memory * self.angle[node] + (1.0 - memory) * self.heading[node]
        angle += self.noise * self.stream.gauss(0.0, 1.0)
        self.angle[node] = angle
        self.speed_x[node] = pace * cos(angle)
        self.speed_y[node] = pace * sin(angle)

    def wall(self, node: int, upright: bool) -> None:
        turned = pi if upright else 0.0
        self.angle[node] = turned - self.angle[node]
        self.heading[node] = turned - self.heading[node]


class Manhattan(DrawnMotion):
    """Streets in a grid; at a crossing straight on (1/2), left or right (1/4 each)."""

    def __init__(self, size: int, speed: Speed, blocks: int, stream: Random) -> None:
        super().__init__(size, speed, stream)
        self.blocks = blocks
        self.column: list[int] = [0] * size  # the crossing that the node goes to
        self.row: list[int] = [0] * size
        self.east: list[int] = [0] * size  # and the direction in which it goes there
        self.north: list[int] = [0] * size

    def first(self, node: int) -> Leg:
        random = self.stream.random
        street = int(random() * (self.blocks + 1))
        block = int(random() * self.blocks)
        place = random()
        ahead = random() < 0.5
        end = block + 1 if ahead else block
        along = (block + place) / self.blocks
        if random() < 0.5:
            self.column[node], self.row[node] = end, street
            self.east[node], self.north[node] = 1 if ahead else -1, 0
            return self.drive(node, 0.0, along, street / self.blocks)
        self.column[node], self.row[node] = street, end
        self.east[node], self.north[node] = 0, 1 if ahead else -1
        return self.drive(node, 0.0, street / self.blocks, along)

    def after(self, node: int, leg: Leg) -> Leg:
        east, north = self.east[node], self.north[node]
        draw = self.stream.random()
        left, right = (-north, east), (north, -east)
        ways = [(east, north), left, right]
        if draw >= 0.75:
            ways = [right, (east, north), left]
        elif draw >= 0.5:
            ways = [left, (east, north), right]
        elif self.stream.random() < 0.5:
            ways = [(east, north), right, left]
        for way in ways:
            column, row = self.column[node] + way[0], self.row[node] + way[1]
            if 0 <= column <= self.blocks and 0 <= row <= self.blocks:
                self.column[node], self.row[node] = column, row
                self.east[node], self.north[node] = way
                break
        return self.drive(node, leg.until, leg.to_x, leg.to_y)

    def drive(self, node: int, start: float, x: float, y: float) -> Leg:
        to_x, to_y = self.column[node] / self.blocks, self.row[node] / self.blocks
        time = (abs(to_x - x) + abs(to_y - y)) / self.speed.draw(self.stream)
        return Leg(start, x, y, start + max(time, SHORTEST), to_x, to_y)
