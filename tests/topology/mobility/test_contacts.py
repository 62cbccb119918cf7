"""Contacts are exact: they begin and end when the distance is the range, and none is missed."""

from __future__ import annotations

from array import array
from itertools import combinations
from math import dist, inf
from random import Random

import pytest

from meshlock.topology.mobility.changes import LinkChange, Move
from meshlock.topology.mobility.contacts import Contacts
from meshlock.topology.mobility.models import (
    GaussMarkov,
    Manhattan,
    Motion,
    Recorded,
    Speed,
    Walk,
    Waypoint,
)

SPEED = Speed(0.01, 0.03)


def model(name: str, nodes: int, seed: int) -> Motion:
    stream = Random(seed)
    if name == "waypoint":
        return Waypoint(nodes, SPEED, 0.0, stream)
    if name == "pausing":
        return Waypoint(nodes, SPEED, 10.0, stream)
    if name == "walk":
        return Walk(nodes, SPEED, 7.0, stream)
    if name == "gauss-markov":
        return GaussMarkov(nodes, SPEED, 1.0, 0.75, stream)
    if name == "manhattan":
        return Manhattan(nodes, Speed(0.02, 0.02), 4, stream)
    places = [array("d") for _ in range(nodes)]  # with jumps
    for mine in places:
        time = 0.0
        while time < 100.0:
            mine.extend((time, stream.random(), stream.random()))
            time += stream.choice((0.0, 5.0, 9.0))
    return Recorded(places)


@pytest.mark.parametrize(
    "name", ["waypoint", "pausing", "walk", "gauss-markov", "manhattan", "recorded"]
)
def test_every_contact_is_found_when_it_happens(name: str) -> None:
    nodes, radius = 40, 0.17
    contacts = Contacts(model(name, nodes, 3), radius, False)
    linked = set(contacts.links)
    looked = 0
    for _ in range(1500):
        change = contacts.next()
        if change is None:
            break
        assert isinstance(change, LinkChange)
        places = [(move.x, move.y) for move in contacts.places(change.time)]
        assert all(-1e-12 <= x <= 1 + 1e-12 and -1e-12 <= y <= 1 + 1e-12 for x, y in places)
        pair = (change.one, change.other)
        assert (pair in linked) != change.up
        linked ^= {pair}
        if name != "recorded":
            assert dist(places[change.one], places[change.other]) == pytest.approx(radius, rel=1e-8)
        if contacts.ready or (contacts.heap and contacts.heap[0][0] == change.time):
            continue  # more happens at this very moment
        for one, other in combinations(range(nodes), 2):
            apart = dist(places[one], places[other])
            if abs(apart - radius) > 1e-7:
                assert (apart < radius) == ((one, other) in linked)
                looked += 1
    assert looked > 200_000


def test_two_nodes_that_pass_each_other() -> None:
    """At distance 6, with range 10: in contact for 16 of the way, at relative speed 2."""
    motion = Recorded(
        [array("d", (0, 0, 0, 100, 100, 0)), array("d", (0, 100, 6, 100, 0, 6))],
    )
    contacts = Contacts(motion, 10.0, False)
    up, down = contacts.next(), contacts.next()
    assert isinstance(up, LinkChange)
    assert isinstance(down, LinkChange)
    assert (up.up, up.time) == (True, pytest.approx(46.0))
    assert (down.up, down.time) == (False, pytest.approx(54.0))
    assert contacts.next() is None


def test_nodes_that_only_touch_do_not_meet() -> None:
    motion = Recorded([array("d", (0, 0, 0, 10, 10, 0)), array("d", (0, 10, 3, 10, 0, 3))])
    assert Contacts(motion, 3.0, False).next() is None


def test_nodes_at_rest_exactly_in_range_are_linked() -> None:
    motion = Recorded([array("d", (0, 0, 0)), array("d", (0, 3, 4)), array("d", (0, 9, 12.1))])
    contacts = Contacts(motion, 5.0, False)
    assert contacts.links == [(0, 1)]
    assert contacts.next() is None


def test_moves_tell_where_each_leg_starts() -> None:
    motion = Recorded([array("d", (0, 0, 0, 5, 10, 0, 8, 10, 6))])
    contacts = Contacts(motion, 1.0, True)
    seen = []
    while (move := contacts.next()) is not None:
        assert isinstance(move, Move)
        seen.append((move.time, move.node, move.x, move.y))
    assert seen == [(5, 0, 10, 0), (8, 0, 10, 6)]
    assert contacts.legs[0].until == inf


def test_manhattan_stays_on_its_streets() -> None:
    contacts = Contacts(model("manhattan", 30, 1), 0.3, True)
    for _ in range(2000):
        change = contacts.next()
        if isinstance(change, Move):
            assert (change.x * 4) % 1 == pytest.approx(0, abs=1e-9)
            assert (change.y * 4) % 1 == pytest.approx(0, abs=1e-9)
            for move in contacts.places(change.time):
                on = [abs(place * 4 - round(place * 4)) for place in (move.x, move.y)]
                assert min(on) < 1e-6


def test_gauss_markov_with_full_memory_goes_straight() -> None:
    motion = GaussMarkov(1, Speed(0.01, 0.01), 1.0, 1.0, Random(2))
    leg = motion.first(0)
    slopes = set()
    for _ in range(20):
        slopes.add(round(abs(leg.speed_y / leg.speed_x), 9))
        leg = motion.after(0, leg)
    assert len(slopes) == 1
