"""Files of movements and contacts: those of ns-2, of BonnMotion and of the ONE simulator.

ns-2, as written by setdest, BonnMotion and others::

    $node_(0) set X_ 131.9
    $node_(0) set Y_ 247.3
    $ns_ at 0.5 "$node_(0) setdest 353.7 171.9 0.8"

That is: from time 0.5 go straight to (353.7, 171.9) at speed 0.8, and rest there. A new
order may come before the place is reached. What such files say about Z and about the
simulator's own book-keeping ($god_) is skipped.

BonnMotion: a line per node, of times and places (t x y t x y ...).

The ONE simulator: time, CONN, node, node, up or down. The file is read twice and never kept:
once to check every line and to count the nodes, and again as the run goes on. Traces of sightings
report each direction by itself, so a link is up while at least one of its ends says so. A
second "up" or a "down" without an "up" changes nothing.
"""

from __future__ import annotations

import gzip
import re
import zlib
from array import array
from collections.abc import Iterator
from itertools import chain
from math import hypot, isfinite
from pathlib import Path
from typing import IO, NamedTuple, cast

from meshlock.errors import Refused, setting
from meshlock.topology.mobility.changes import LinkChange, Planned
from meshlock.topology.mobility.models import Recorded

MOST_NODES = 1_000_000
MOST_PLACES = 5_000_000
"""Movements come node by node or out of order, so all are kept; contacts are not."""


class Lines:
    """Reads a file line by line and says what is wrong with the line at hand."""

    def __init__(self, path: Path, longest: int) -> None:
        self.path = path
        self.longest = longest
        self.number = 0

    def bad(self, problem: str) -> Refused:
        end = "" if problem.endswith("?") else "."
        return Refused(f"{self.path}, line {self.number}: {problem}{end}")

    def __iter__(self) -> Iterator[str]:
        """Every line that is neither empty nor a comment (#)."""
        self.number = 0
        try:
            with self.open() as file:
                while line := self.read(file):
                    text = line.partition("#")[0].strip()
                    if text:
                        yield text
        except OSError as problem:
            reason = (problem.strerror or str(problem)).lower()
            raise Refused(f"{self.path} cannot be read: {reason}.") from None

    def open(self) -> IO[bytes]:
        if self.path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(self.path, "rb"))
        return self.path.open("rb")

    def read(self, file: IO[bytes]) -> str:
        self.number += 1
        try:
            line = file.readline(self.longest + 1)
        except EOFError:
            raise self.bad("the compressed file is cut off here; fetch it again") from None
        except (gzip.BadGzipFile, zlib.error):
            raise self.bad("the compressed file is damaged; fetch it again") from None
        if len(line) > self.longest:
            raise self.bad(f"longer than {self.longest:,} characters, so not such a file")
        try:
            text = line.decode("ascii")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise self.bad("not text, so the file is damaged or of another kind")
        return text

    def figure(self, text: str, what: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise self.bad(f"{what} '{short(text)}' is not a number") from None
        if not isfinite(value) or abs(value) > 1e15:
            raise self.bad(f"{what} {short(text)} is too large")
        return value

    def time(self, text: str, before: float) -> float:
        value = self.figure(text, "the time")
        if value < 0.0:
            raise self.bad(f"the time {short(text)} is negative")
        if value < before:
            raise self.bad(f"the time {short(text)} lies before {before:g}, which came earlier")
        return value

    def node(self, text: str, nodes: int | None) -> int:
        if not text.isdecimal():
            raise self.bad(f"'{short(text)}' is not a node, which is a number from 0")
        value = int(text) if len(text) < 10 else MOST_NODES
        if nodes is not None and value >= nodes:
            raise self.bad(f"node {value} is unknown: with {nodes} nodes the last is {nodes - 1}")
        if value >= MOST_NODES:
            raise self.bad(f"node {short(text)} is beyond the {MOST_NODES:,} that are kept")
        return value


def short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


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


# -- contacts -----------------------------------------------------------------------------


class ContactReport(NamedTuple):
    """One line of the trace."""

    time: float
    one: int
    other: int
    up: bool


def reports(path: Path, nodes: int | None) -> Iterator[ContactReport]:
    lines = Lines(path, 1000)
    before = 0.0
    for line in lines:
        words = line.split()
        if len(words) != 5 or words[1] != "CONN" or words[4] not in ("up", "down"):
            raise lines.bad("not of the form 'TIME CONN NODE NODE up|down'; is it cut off?")
        before = lines.time(words[0], before)
        one, other = lines.node(words[2], nodes), lines.node(words[3], nodes)
        if one == other:
            raise lines.bad(f"node {one} meets itself")
        yield ContactReport(before, one, other, words[4] == "up")


def count(path: Path, nodes: int | None) -> int:
    """How many nodes there are; refuses the file if any line is wrong."""
    highest = -1
    for report in reports(path, nodes):
        highest = max(highest, report.one, report.other)
    if highest < 0:
        raise Refused(f"{path} holds no contacts.")
    return nodes if nodes is not None else highest + 1


def contacts(path: Path, nodes: int) -> tuple[list[tuple[int, int]], Planned]:
    """The links after everything that happens at time 0, and their changes from then on."""
    changes = contact_changes(path, nodes)
    links: dict[tuple[int, int], None] = {}
    for change in changes:
        if change.time > 0.0:
            return list(links), Planned(chain([change], changes))
        if change.up:
            links[change.one, change.other] = None
        else:
            links.pop((change.one, change.other), None)
    return list(links), Planned([])


def contact_changes(path: Path, nodes: int) -> Iterator[LinkChange]:
    said: set[tuple[int, int]] = set()  # directed pairs that are up by their own word
    for report in reports(path, nodes):
        pair = (report.one, report.other)
        if report.up == (pair in said):
            continue
        if report.up:
            said.add(pair)
        else:
            said.remove(pair)
        if pair[::-1] not in said:
            yield LinkChange(report.time, report.up, *pair)
