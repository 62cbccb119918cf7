"""BonnMotion movements: a line per node, of times and places (t x y t x y ...)."""

from __future__ import annotations

from array import array
from pathlib import Path

from meshlock.errors import Refused, setting
from meshlock.topology.mobility.lines import MOST_NODES, MOST_PLACES, Lines
from meshlock.topology.mobility.recorded import Recorded


def read(path: Path, nodes: int | None) -> Recorded:
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
