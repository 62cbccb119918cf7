"""Set-ups whose counts are pinned: what was seen once must be seen again.

``manifest.toml`` beside this file holds an entry per set-up, in the words of the flags of
``meshlock check``, with the states, transitions and depth of its whole graph and the length
of the shortest way to each violation, if any. A change of these numbers is a change of an
algorithm's behaviour or of the checker, and must be meant.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from meshlock.check.arguments import judged, setup
from meshlock.check.settings import FaultSettings
from meshlock.check.verdict import Verdict, checking
from meshlock.topology.graphs import Graph

FILE = Path(__file__).with_name("manifest.toml")
COUNTED = [
    name
    for name, one in FaultSettings.declared.items()
    if type(one.default) is int and name not in ("lease", "wait")
]
NOT_WORDS = (
    "states",
    "transitions",
    "depth",
    "violated",
    "complete",
    "properties",
    "edges",
    "note",
)


class PinnedSetUp:
    """One pinned set-up."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table
        self.states: int = table.get("states", 0)
        self.pinned = (
            self.states,
            table.get("transitions", 0),
            table.get("depth", 0),
            dict(table.get("violated", {})),
        )

    def title(self) -> str:
        """The entry as its flags, without what is at its default."""
        table = self.table
        words = [table["algorithm"], table.get("topology", "links " + " ".join(self.links()))]
        words.append(f"{table['nodes']} nodes")
        if table.get("permits", 1) != 1:
            words.append(f"k={table['permits']}")
        words += [f"{name}={value}" for name, value in table.get("options", {}).items()]
        words.append(f"{len(table.get('requests', [])) or table['nodes']} requests")
        words += [f"'{change}'" for change in table.get("changes", [])]
        if table.get("flips"):
            parting = ", partitions too" if table.get("partitions") else ""
            words.append(f"any {table['flips']} changes{parting}")
        words += [table[name] for name in ("links", "failures") if name in table]
        if table.get("clients", 1) != 1:
            words.append(f"{table['clients']} clients")
        if table.get("withdrawals"):
            words.append("withdrawals")
        words += [f"raise {text}" for text in table.get("raises", [])]
        words += [f"release part {text}" for text in table.get("release_parts", [])]
        if table.get("repeat"):
            words.append("repeated")
        if table.get("capacity"):
            words.append(f"at most {table['capacity']} on a link")
        words += self.faults()
        if "ties" in table.get("properties", []):
            words.append("ties")
        return ", ".join(words)

    def faults(self) -> list[str]:
        """What may happen to nodes that recover."""
        table = self.table
        words: list[str] = []
        if "members" in table:
            words.append(f"{table['members']} members")
        for name in COUNTED:
            if name in table:
                words.append(f"{table[name]} {name.replace('_', ' ')}")
        for name in ("crashing", "proposers", "stay"):
            if name in table:
                words.append(f"{name} {' '.join([str(node) for node in table[name]])}")
        words += [f"'{change}'" for change in table.get("member_changes", [])]
        words += [f"resize {permits}" for permits in table.get("resizes", [])]
        words += [f"rename {names}" for names in table.get("renames", [])]
        words += [f"{name} {table[name]}" for name in ("lease", "wait") if name in table]
        words += [name for name in ("birth", "idle", "slots", "parts") if table.get(name)]
        words += [f"after {step}" for step in table.get("lead", [])]
        words += [f"{name} {table[name]}" for name in ("renewals", "handshakes") if name in table]
        return words

    def links(self) -> list[str]:
        return [str(link) for link in self.table.get("edges", [])]

    def checking(self, most: int, reduction: str = "none") -> Verdict:
        table = self.table
        graph = None
        if "edges" in table:
            pairs = [link.split("-") for link in self.links()]
            graph = Graph(table["nodes"], [(int(one), int(other)) for one, other in pairs])
        words = {name: value for name, value in table.items() if name not in NOT_WORDS}
        what = setup(**words, graph=graph)
        return checking(what, judged(table.get("properties", [])), most, reduction)


def found(checking: Verdict) -> tuple[int, int, int, dict[str, int]]:
    """What there is to be pinned of a finished check."""
    explorer = checking.explorer
    violated = {way.name: len(way.labels) for way in checking.violations()}
    return explorer.count(), explorer.transitions, explorer.depth, violated


def entries() -> list[PinnedSetUp]:
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return [PinnedSetUp(entry) for entry in table["setup"]]


def table(rows: list[PinnedSetUp]) -> str:
    """The manifest for people, in Markdown."""
    lines = ["| set-up | states | transitions | depth | violated |", "|---|---|---|---|---|"]
    for entry in rows:
        states, transitions, depth, violated = entry.pinned
        broken = ", ".join(f"{name} in {length}" for name, length in violated.items())
        lines.append(f"| {entry.title()} | {states:,} | {transitions:,} | {depth} | {broken} |")
    return "\n".join(lines) + "\n"
