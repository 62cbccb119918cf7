"""Contact traces of the ONE simulator: time, CONN, node, node, up or down.

The file is read twice and never kept: once to check every line and to count the nodes,
and again as the run goes on. Traces of sightings report each direction by itself, so a
link is up while at least one of its ends says so. A second "up" or a "down" without an
"up" changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from meshlock.errors import Refused
from meshlock.topology.mobility.changes import LinkChange, Planned
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
