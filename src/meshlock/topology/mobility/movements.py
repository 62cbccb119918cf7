"""Files of movements: those of ns-2 and those of BonnMotion.

ns-2, as written by setdest, BonnMotion and others::

    $node_(0) set X_ 131.9
    $node_(0) set Y_ 247.3
    $ns_ at 0.5 "$node_(0) setdest 353.7 171.9 0.8"

That is: from time 0.5 go straight to (353.7, 171.9) at speed 0.8, and rest there. A new
order may come before the place is reached. What such files say about Z and about the
simulator's own book-keeping ($god_) is skipped.

BonnMotion: a line per node, of times and places (t x y t x y ...).
"""

from __future__ import annotations

import re
from array import array
from math import hypot
from pathlib import Path

from meshlock.errors import Refused, setting
from meshlock.topology.mobility.lines import MOST_NODES, MOST_PLACES, Lines
from meshlock.topology.mobility.motion import Recorded

START = re.compile(r"\$node_\((\S+)\) set ([XYZ])_ (\S+)$")
ORDER = re.compile(r"\$ns_ at (\S+) \"\$node_\((\S+)\) setdest (\S+) (\S+) ([^\s\"]+)\"$")
SKIPPED = re.compile(r"(\$ns_ at \S+ \")?\$god_ |set ")


class MovementOrders:
    """What is known of one node: the places it has been sent to, and where that leaves it."""

    def __init__(self) -> None:
        self.x: float | None = None
        self.y: float | None = None
        self.places = array("d")
        self.ordered = 0.0

    def complete(self) -> bool:
        return self.x is not None and self.y is not None

    def head_for(self, time: float, x: float, y: float, speed: float) -> None:
        """From wherever the node is at this time, to a place, at a speed."""
        assert self.x is not None
        assert self.y is not None
        places = self.places
        if not places:
            places.extend((0.0, self.x, self.y))
        if places[-3] > time:  # still under way: cut the leg short
            start, from_x, from_y = places[-6], places[-5], places[-4]
            part = (time - start) / (places[-3] - start)
            here_x = from_x + part * (places[-2] - from_x)
            here_y = from_y + part * (places[-1] - from_y)
            del places[-3:]
        else:
            here_x, here_y = places[-2], places[-1]
        if time > places[-3]:
            places.extend((time, here_x, here_y))
        far = hypot(x - here_x, y - here_y)
        if speed > 0.0 and far > 0.0:
            places.extend((time + far / speed, x, y))
        self.ordered = time


def read_ns2(path: Path, nodes: int | None) -> Recorded:
    lines = Lines(path, 10_000)
    orders: dict[int, MovementOrders] = {}
    for kept, line in enumerate(lines):
        if kept == MOST_PLACES:
            raise lines.bad(f"more than {MOST_PLACES:,} orders, too many to keep")
        if match := ORDER.match(line):
            node = lines.node(match[2], nodes)
            mine = orders.get(node)
            if mine is None or not mine.complete():
                raise lines.bad(f"node {node} is sent off before it has been placed (set X_, Y_)")
            time = lines.time(match[1], mine.ordered)
            x, y = lines.figure(match[3], "x"), lines.figure(match[4], "y")
            speed = lines.figure(match[5], "the speed")
            if speed < 0.0:
                raise lines.bad(f"the speed {match[5]} is negative")
            mine.head_for(time, x, y, speed)
        elif match := START.match(line):
            node = lines.node(match[1], nodes)
            mine = orders.setdefault(node, MovementOrders())
            if mine.places:
                raise lines.bad(f"node {node} is placed after it has been sent off")
            if match[2] == "X":
                mine.x = lines.figure(match[3], "x")
            elif match[2] == "Y":
                mine.y = lines.figure(match[3], "y")
        elif not SKIPPED.match(line):
            raise lines.bad("neither the place of a node nor a setdest order; is it cut off?")
    size = nodes if nodes is not None else max(orders, default=-1) + 1
    motion: list[array[float]] = []
    for node in range(size):
        mine = orders.get(node)
        if mine is None or mine.x is None or mine.y is None:
            raise Refused(f"{path} does not say where node {node} is: set its X_ and Y_.")
        motion.append(mine.places or array("d", (0.0, mine.x, mine.y)))
    if not motion:
        raise Refused(f"{path} holds no movement of any node.")
    return Recorded(motion)


def read_bonnmotion(path: Path, nodes: int | None) -> Recorded:
    lines = Lines(path, 16 * 1024 * 1024)
    motion: list[array[float]] = []
    kept = 0
    for line in lines:
        if len(motion) == (nodes if nodes is not None else MOST_NODES):
            raise lines.bad(
                f"a node more than the {len(motion)} there are: raise {setting('nodes')}"
            )
        words = line.split()
        if len(words) % 3 != 0:
            raise lines.bad(
                f"{len(words)} numbers, but a node's line has three for every place (time, x, y); "
                f"is it cut off?"
            )
        kept += len(words) // 3
        if kept > MOST_PLACES:
            raise lines.bad(f"more than {MOST_PLACES:,} places in all, too many to keep")
        places = array("d")
        before = 0.0
        for place in range(0, len(words), 3):
            before = lines.time(words[place], before)
            places.append(before)
            places.append(lines.figure(words[place + 1], "x"))
            places.append(lines.figure(words[place + 2], "y"))
        motion.append(places)
    if not motion:
        raise Refused(f"{path} holds no movement of any node.")
    if nodes is not None and len(motion) < nodes:
        raise Refused(
            f"{path} ends after line {lines.number - 1} with {len(motion)} nodes, not {nodes}: "
            f"use {setting('nodes')} {len(motion)} or leave it out."
        )
    return Recorded(motion)
