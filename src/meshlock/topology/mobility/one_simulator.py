"""Contact traces of the ONE simulator: time, CONN, node, node, up or down.

The file is read twice and never kept: once to check every line and to count the nodes,
and again as the run goes on. Traces of sightings report each direction by itself, so a
link is up while at least one of its ends says so. A second "up" or a "down" without an
"up" changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import NamedTuple

from meshlock.errors import Refused
from meshlock.topology.mobility.changes import Changes, LinkChange, NetworkChange
from meshlock.topology.mobility.lines import Lines


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


class OneContacts(Changes):
    def __init__(self, path: Path, nodes: int) -> None:
        self.nodes = nodes
        self.said: set[int] = set()  # directed pairs that are up by their own word
        self.until = inf
        self.reports = reports(path, nodes)
        self.ahead: LinkChange | None = self.read()
        start: dict[tuple[int, int], None] = {}
        while self.ahead is not None and self.ahead.time == 0.0:
            link = (self.ahead.one, self.ahead.other)
            if self.ahead.up:
                start[link] = None
            else:
                start.pop(link, None)
            self.ahead = self.read()
        self.links = list(start)  # after everything that happens at time 0

    def read(self) -> LinkChange | None:
        for report in self.reports:
            said = report.one * self.nodes + report.other
            back = report.other * self.nodes + report.one
            if report.up == (said in self.said):
                continue
            if report.up:
                self.said.add(said)
            else:
                self.said.remove(said)
            if back not in self.said:
                return LinkChange(report.time, report.up, report.one, report.other)
        return None

    def next(self) -> NetworkChange | None:
        change = self.ahead
        if change is None or change.time > self.until:
            return None
        self.ahead = self.read()
        return change

    def stop(self, time: float) -> None:
        self.until = time
