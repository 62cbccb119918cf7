"""Mobility by name or by file: what ``--mobility`` takes.

=====================================  ==================================================
flips:RATE                             links come and go at random, RATE flips per time
waypoint:SPEED,RANGE[,PAUSE]           from random place to random place
walk:SPEED,RANGE[,STEP]                a random direction for STEP, then another
gauss-markov:SPEED,RANGE[,MEMORY[,STEP]]  a walk that remembers (MEMORY 0 to 1)
manhattan:SPEED,RANGE[,BLOCKS]         along the streets of BLOCKS x BLOCKS blocks
FILE.ns_movements                      ns-2 (setdest), needs a range
FILE.movements, FILE.movements.gz      BonnMotion, needs a range
FILE.tsv                               contacts of the ONE simulator
=====================================  ==================================================

Models move nodes in the unit square; SPEED may be LOW-HIGH. All but flips make their own
links, so the topology counts for nothing there but the number of nodes.
"""

from __future__ import annotations

import re
from math import inf
from pathlib import Path
from random import Random
from typing import NamedTuple

from meshlock.errors import Refused, setting
from meshlock.topology.graphs import Topology
from meshlock.topology.mobility import recorded
from meshlock.topology.mobility.changes import Changes, Flips, Prevented, Until
from meshlock.topology.mobility.contacts import Contacts
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.topology.mobility.models import GaussMarkov, Manhattan, Motion, Speed, Walk, Waypoint
from meshlock.topology.mobility.recorded import read_bonnmotion, read_ns2
from meshlock.topology.specification import MOST_LINKS, advice, seldom, tries, unknown, usual_range

FORMS = {
    "none": "none",
    "flips": "flips:RATE",
    "waypoint": "waypoint:SPEED,RANGE[,PAUSE]",
    "walk": "walk:SPEED,RANGE[,STEP]",
    "gauss-markov": "gauss-markov:SPEED,RANGE[,MEMORY[,STEP]]",
    "manhattan": "manhattan:SPEED,RANGE[,BLOCKS]",
}
FILES = (".ns_movements", ".movements", ".movements.gz", ".tsv")
PARTITIONS = ("prevented", "allowed", "healed")


class Mobility(NamedTuple):
    """A network as it is at the start, and how it changes from then on."""

    graph: LiveGraph
    changes: Changes


def makes_links(spec: str) -> bool:
    """Does this mobility make its own links, whatever the topology?"""
    return spec != "none" and not spec.startswith("flips")


def mobility(
    spec: str,
    topology: Topology | None,
    nodes: int | None,
    seed: int,
    *,
    radius: float | None = None,
    partitions: str = "",
    until: float = inf,
    moves: bool = False,
) -> Mobility | None:
    """What ``spec`` describes, or None if nothing changes.

    ``topology`` is for flips, ``nodes`` for all others (None: as many as the file says),
    ``radius`` for files of movements. Partitions are prevented unless told otherwise,
    but in files, where they are allowed. ``moves``: tell also where nodes are.
    """
    if spec == "none":
        return None
    name, _, text = spec.partition(":")
    recorded = spec.endswith(FILES)
    if name not in FORMS and not recorded:
        raise Refused(unknown("mobility", spec, name, FORMS, FILES))
    refuse_partitions(partitions)
    partitions = partitions or ("allowed" if recorded else "prevented")
    if not until >= 0.0:
        raise Refused(f"Changes cannot end at {until:g}: use a time not below 0.")
    prevented = partitions == "prevented"
    stream = Random(f"{seed}:mobility")
    changes: Changes
    if recorded:
        graph, changes = from_file(spec, nodes, radius, prevented, moves)
    elif radius is not None:
        raise Refused(
            f"{setting('range')} is for files of movements; {name} has its own: {FORMS[name]}."
        )
    elif name == "flips":
        graph, changes = flips(spec, text, topology, prevented, stream)
    else:
        graph, changes = moving(spec, name, text, nodes, prevented, moves, stream)
    if prevented and name != "flips":
        changes = Prevented(changes, graph)
    return Mobility(graph, Until(changes, graph, until, partitions == "healed"))


def refuse_partitions(partitions: str) -> None:
    """An empty text leaves them to the mobility."""
    if partitions and partitions not in PARTITIONS:
        raise Refused(f"Partitions are {', '.join(PARTITIONS)}, not '{partitions}'.")


# -- flips ------------------------------------------------------------------------------


def flips(
    spec: str, text: str, topology: Topology | None, prevented: bool, stream: Random
) -> tuple[LiveGraph, Changes]:
    rate = parameters(spec, "flips", text)["RATE"]
    if topology is None:
        raise Refused(f"Mobility {spec} changes the links of a topology: give one.")
    if topology.complete and topology.size * (topology.size - 1) // 2 > MOST_LINKS:
        raise Refused(
            f"A complete network of {topology.size} nodes has too many links to flip: "
            f"use fewer {setting('nodes')}, or a topology such as links:{4 * topology.size}."
        )
    graph = LiveGraph(topology.size, topology.links())
    return graph, Flips(graph, rate, prevented, stream)


# -- models -------------------------------------------------------------------------------


def moving(
    spec: str, name: str, text: str, nodes: int | None, prevented: bool, moves: bool, stream: Random
) -> tuple[LiveGraph, Changes]:
    if nodes is None:
        raise Refused(
            f"Mobility '{spec}' does not say how many nodes there are: add {setting('nodes')}."
        )
    given = parameters(spec, name, text)
    radius = given["RANGE"]
    for _ in range(tries(nodes) if prevented else 1):
        motion = model(spec, name, nodes, given, stream)
        contacts = Contacts(motion, radius, moves)
        graph = LiveGraph(nodes, contacts.links)
        if graph.components == 1 or not prevented:
            return graph, contacts
    more = f"range ({advice(radius, usual_range(nodes))}), or allow partitions"
    raise Refused(seldom("starts", spec, nodes, more))


def model(spec: str, name: str, nodes: int, given: dict[str, float], stream: Random) -> Motion:
    fastest = given.get("HIGH", given["SPEED"])
    speed = Speed(given["SPEED"], fastest)
    if name == "waypoint":
        return Waypoint(nodes, speed, given.get("PAUSE", 0.0), stream)
    if name == "manhattan":
        blocks = given.get("BLOCKS", 5.0)
        if not 1.0 <= blocks <= 1000.0 or blocks != int(blocks):
            raise Refused(f"Mobility '{spec}' needs a whole number of blocks, 1 to 1000.")
        return Manhattan(nodes, speed, int(blocks), stream)
    through = given["RANGE"] / fastest  # the time to cross the range
    if name == "walk":
        return Walk(nodes, speed, given.get("STEP", through), stream)
    memory = given.get("MEMORY", 0.75)
    if not 0.0 <= memory <= 1.0:
        raise Refused(f"Mobility '{spec}' needs a memory from 0 to 1: write {FORMS[name]}.")
    return GaussMarkov(nodes, speed, given.get("STEP", through / 10.0), memory, stream)


def parameters(spec: str, name: str, text: str) -> dict[str, float]:
    """The numbers of a specification, by the words that its form has for them; the second one of a
    speed that is drawn from a span is HIGH."""
    form = FORMS[name].partition(":")[2]
    words, needed = (re.findall("[A-Z]+", part) for part in (form, form.partition("[")[0]))
    texts = text.split(",") if text else []
    span = re.fullmatch(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)-(.+)", texts[0] if texts else "")
    if words[0] == "SPEED" and span:
        texts[0] = span[1]
    try:
        given = {word: float(part) for word, part in zip(words, texts, strict=False)}
        high = {"HIGH": float(span[2])} if words[0] == "SPEED" and span else {}
    except ValueError:
        given, high = {}, {}
    wrong = any(not value >= 0.0 for value in given.values())
    if wrong or not len(needed) <= len(given) == len(texts):
        raise Refused(f"Mobility '{spec}' is not of the form {FORMS[name]}.")
    if not given.get("SPEED", 1.0) <= high.get("HIGH", inf) or inf in high.values():
        raise Refused(f"Mobility '{spec}' needs a speed above 0, or LOW-HIGH.")
    for word in ("RATE", "SPEED", "RANGE", "STEP"):
        if not 0.0 < given.get(word, 1.0) < inf:
            raise Refused(f"Mobility '{spec}' needs a {word.lower()} above 0: write {FORMS[name]}.")
    return given | high


# -- files --------------------------------------------------------------------------------


def from_file(
    spec: str, nodes: int | None, radius: float | None, prevented: bool, moves: bool
) -> tuple[LiveGraph, Changes]:
    path = Path(spec)
    if spec.endswith(".tsv"):
        if radius is not None:
            raise Refused(f"{spec} holds contacts, not movements: leave {setting('range')} out.")
        size = recorded.count(path, nodes)
        links, contacts = recorded.contacts(path, size)
        graph = LiveGraph(size, links)
        refuse_parted(spec, graph, prevented)
        return graph, contacts
    if radius is None or not 0.0 < radius < inf:
        raise Refused(
            f"{spec} holds movements, not links: give the radio range, as in {setting('range')} 50."
        )
    read = read_ns2 if spec.endswith(".ns_movements") else read_bonnmotion
    motion = read(path, nodes)
    moved = Contacts(motion, radius, moves)
    graph = LiveGraph(motion.size, moved.links)
    refuse_parted(spec, graph, prevented)
    return graph, moved


def refuse_parted(spec: str, graph: LiveGraph, prevented: bool) -> None:
    if prevented and graph.components > 1:
        lost = graph.roots()[1]
        raise Refused(
            f"{spec} starts parted, node {lost} cannot be reached from node 0: use a larger "
            f"{setting('range')}, or allow partitions."
        )
