"""Who is within radio range of whom, and from when to when, exactly.

On straight legs the distance of two nodes crosses the range where a quadratic has its
roots, so contacts begin and end at computed times and nothing is sampled. Only nodes in
the same or adjoining cells of a grid, whose side is the range, can be in contact; a node
that enters a cell meets the three cells that newly adjoin it, and a node that starts a
new leg looks again at all nine.

What was foreseen for two nodes is void once either starts a new leg. That is found out
when it comes up: every foreseen event carries the numbers of the two legs it is based on.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import floor, inf, sqrt
from typing import Final

from meshlock.topology.mobility.changes import Changes, LinkChange, Move, NetworkChange
from meshlock.topology.mobility.models import Leg, Motion

SLACK = 1e-9
"""Rounding, as a share of the range: two nodes that touch for less do not meet."""


EMPTY: Final[list[int]] = []


class Foreseen:
    """Two nodes will meet or part."""

    def __init__(self, up: bool, one: int, other: int, leg: int, other_leg: int) -> None:
        self.up = up
        self.one = one
        self.other = other
        self.leg = leg
        self.other_leg = other_leg


class Turn:
    """A node's leg ends, or (``crossing``) leads into the next cell."""

    def __init__(self, node: int, leg: int, crossing: bool) -> None:
        self.node = node
        self.leg = leg
        self.crossing = crossing


LOOK_AHEAD = 1000
"""After this number of turns without a contact, the world goes on: there may never be one."""


class Contacts(Changes):
    def __init__(self, motion: Motion, radius: float, moves: bool) -> None:
        size = motion.size
        self.motion = motion
        self.squared = radius * radius
        self.radius = radius
        self.side = radius * (1.0 + 1e-6)
        self.moves = moves  # tell where nodes are at every turn
        self.heap: list[tuple[float, int, Foreseen | Turn]] = []
        self.serial = 0
        self.time = 0.0
        self.until = inf
        self.ready: list[NetworkChange] = []  # changes of this moment, the last one first
        self.now: list[NetworkChange] = []  # the same, being gathered
        self.near: list[set[int]] = [set() for _ in range(size)]
        self.cells: dict[int, list[int]] = {}
        self.column: list[int] = [0] * size
        self.row: list[int] = [0] * size
        self.number: list[int] = [0] * size  # of the node's leg
        self.legs: list[Leg] = [motion.first(node) for node in range(size)]
        for node in range(size):
            self.enter_cell(node, self.legs[node].x, self.legs[node].y)
            self.start_leg(node)
        self.links: list[tuple[int, int]] = []  # at time 0
        for change in self.now:
            if isinstance(change, LinkChange):
                self.links.append((change.one, change.other))
        self.now = []

    # -- the stream ---------------------------------------------------------------------

    def next(self) -> NetworkChange | None:
        looked = 0
        while not self.ready:
            if not self.heap:
                return None
            looked += 1
            if looked > LOOK_AHEAD:
                return NetworkChange(self.time)
            time, _, event = heappop(self.heap)
            if time > self.until:
                return None
            self.time = time
            if isinstance(event, Foreseen):
                one, other = event.one, event.other
                if event.leg == self.number[one] and event.other_leg == self.number[other]:
                    self.set(one, other, event.up)
            elif event.leg == self.number[event.node]:
                if event.crossing:
                    self.cross(event.node)
                else:
                    self.turn(event.node)
            if self.now:
                self.now.reverse()
                self.ready = self.now
                self.now = []
        return self.ready.pop()

    def stop(self, time: float) -> None:
        self.until = time

    def places(self, time: float) -> list[Move]:
        return [
            Move(time, node, leg.x_at(time), leg.y_at(time)) for node, leg in enumerate(self.legs)
        ]

    def set(self, one: int, other: int, up: bool) -> None:
        if up == (other in self.near[one]):
            return
        if up:
            self.near[one].add(other)
            self.near[other].add(one)
        else:
            self.near[one].remove(other)
            self.near[other].remove(one)
        self.now.append(LinkChange(self.time, up, one, other))

    def push(self, time: float, event: Foreseen | Turn) -> None:
        self.serial += 1
        heappush(self.heap, (time if time > self.time else self.time, self.serial, event))

    # -- legs and cells -----------------------------------------------------------------

    def turn(self, node: int) -> None:
        leg = self.legs[node] = self.motion.after(node, self.legs[node])
        self.number[node] += 1
        if self.moves:
            self.now.append(Move(self.time, node, leg.x, leg.y))
        self.cells[self.cell(self.column[node], self.row[node])].remove(node)
        self.enter_cell(node, leg.x, leg.y)
        self.start_leg(node)

    def start_leg(self, node: int) -> None:
        if self.legs[node].until < inf:
            self.push(self.legs[node].until, Turn(node, self.number[node], False))
        self.await_crossing(node)
        column, row = self.column[node], self.row[node]
        for i in (column - 1, column, column + 1):
            for j in (row - 1, row, row + 1):
                self.foresee_cell(node, i, j)
        for other in list(self.near[node]):  # those that a jump has left behind
            if abs(self.column[other] - column) > 1 or abs(self.row[other] - row) > 1:
                self.foresee(node, other)

    def cell(self, column: int, row: int) -> int:
        return column * 2147483647 + row

    def enter_cell(self, node: int, x: float, y: float) -> None:
        self.column[node] = floor(x / self.side)
        self.row[node] = floor(y / self.side)
        self.join_cell(node)

    def join_cell(self, node: int) -> None:
        self.cells.setdefault(self.cell(self.column[node], self.row[node]), []).append(node)

    def await_crossing(self, node: int) -> None:
        leg = self.legs[node]
        time = min(
            self.crossing(leg.x, leg.speed_x, self.column[node]),
            self.crossing(leg.y, leg.speed_y, self.row[node]),
        )
        if leg.start + time < leg.until:
            self.push(leg.start + time, Turn(node, self.number[node], True))

    def crossing(self, place: float, speed: float, cell: int) -> float:
        """How long after the leg's start this coordinate leaves its cell."""
        if speed > 0.0:
            return ((cell + 1) * self.side - place) / speed
        return (cell * self.side - place) / speed if speed < 0.0 else inf

    def cross(self, node: int) -> None:
        """Into the next cell, by column or by row, whichever comes first."""
        leg = self.legs[node]
        column, row = self.column[node], self.row[node]
        self.cells[self.cell(column, row)].remove(node)
        by_column = self.crossing(leg.x, leg.speed_x, column)
        if by_column <= self.crossing(leg.y, leg.speed_y, row):
            step = 1 if leg.speed_x > 0.0 else -1
            self.column[node] = column + step
            self.join_cell(node)
            for j in (row - 1, row, row + 1):
                self.foresee_cell(node, column + 2 * step, j)
        else:
            step = 1 if leg.speed_y > 0.0 else -1
            self.row[node] = row + step
            self.join_cell(node)
            for i in (column - 1, column, column + 1):
                self.foresee_cell(node, i, row + 2 * step)
        self.await_crossing(node)

    # -- pairs --------------------------------------------------------------------------

    def foresee_cell(self, node: int, column: int, row: int) -> None:
        for other in self.cells.get(self.cell(column, row), EMPTY):
            if other != node:
                self.foresee(node, other)

    def foresee(self, one: int, other: int) -> None:
        """When will these two meet or part next, if they stay on their legs?"""
        leg, other_leg = self.legs[one], self.legs[other]
        now = self.time
        end = leg.until if leg.until < other_leg.until else other_leg.until
        x = other_leg.x_at(now) - leg.x_at(now)
        y = other_leg.y_at(now) - leg.y_at(now)
        speed_x = other_leg.speed_x - leg.speed_x
        speed_y = other_leg.speed_y - leg.speed_y
        a = speed_x * speed_x + speed_y * speed_y
        c = x * x + y * y - self.squared
        linked = other in self.near[one]
        if a == 0.0:
            if linked:
                if c > SLACK * self.squared:
                    self.set(one, other, False)
            elif c < -SLACK * self.squared or (now == 0.0 and c <= 0.0):
                self.set(one, other, True)
            return
        b = x * speed_x + y * speed_y
        inner = b * b - a * c
        if inner <= 0.0:
            if linked:
                self.set(one, other, False)
            return
        root = sqrt(inner)
        if b > 0.0:  # each root in the form that subtracts nothing from its like
            begins = (-b - root) / a
            ends = c / (-b - root)
        else:
            ends = (-b + root) / a
            begins = c / (-b + root)
        least = SLACK * self.radius / sqrt(a)
        if linked and (ends <= least or begins > least):  # over, or a jump has parted them
            self.set(one, other, False)
            linked = False
        if not linked:
            if ends <= least or ends - begins <= least:
                return
            if begins <= 0.0:
                self.set(one, other, True)
            elif now + begins <= end:
                number, other_number = self.number[one], self.number[other]
                self.push(now + begins, Foreseen(True, one, other, number, other_number))
            else:
                return
        if now + ends <= end:
            number, other_number = self.number[one], self.number[other]
            self.push(now + ends, Foreseen(False, one, other, number, other_number))
