"""Write the checker's manifest anew: every set-up below, with the counts it has today.

    python campaigns/pin_counts.py                # explore everything
    python campaigns/pin_counts.py jiang direct   # set-ups of these, and what is not pinned yet
    python campaigns/pin_counts.py new            # only what is not pinned yet

Only to be run when a change of the counts is meant; the difference is part of the review.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from meshlock.check.manifest import FILE, PinnedSetUp, Row, entries, found, table

MOST = 3_000_000
PAGE = Path(__file__).parents[1] / "docs" / "appendices" / "checker-counts.md"
BEGIN, END = "<!-- counts: begin -->", "<!-- counts: end -->"

HEAD = """\
# Pinned by campaigns/pin_counts.py; rerun with: meshlock check --manifest
# A set-up is what follows: meshlock check --algorithm. Its depth is the longest of all shortest
# ways.

"""


def setups() -> list[Row]:
    rows: list[Row] = []

    def add(algorithm: str, topology: str, nodes: int, **more: Any) -> None:
        permits = str(more.pop("permits", 1))
        said = {} if permits == "1" else {"permits": permits}
        row = {"algorithm": algorithm, "topology": topology, "nodes": nodes, **said, **more}
        rows.append(row)

    # The four that TLC has counted too (benchmarks/tla, benchmarks/checker.py).
    add("raymond", "line", 4)
    add("raymond", "line", 6)
    add("raymond", "line", 7)
    add("naimi-trehel", "complete", 4)
    add("naimi-trehel", "complete", 4, requests=twice(4))
    add("suzuki-kasami", "complete", 3, requests=twice(3))
    add("suzuki-kasami", "complete", 4)
    add("lamport", "complete", 3)

    # Permits of several kinds.
    lab, pair = "gpu:2,licence:1", "gpu:1,licence:1"
    mixed = ["0:gpu:1@3", "1:gpu:2+licence:1@5", "2:licence:1@1"]
    apart = ["0:gpu:1@1", "1:gpu:1@9", "2:licence:1@5"]
    both = ["0:gpu:2+licence:1@3", "1:gpu:1@5", "2:licence:1@1"]
    crash: Row = {"members": "1", "crashes": 1, "crashing": [1]}
    add("direct", "complete", 3, permits=lab, requests=mixed)
    add("direct", "complete", 3, permits=pair, requests=apart, stay=[0])
    add("direct", "complete", 3, permits=lab, requests=both, release_parts=["0:gpu:1"])
    add("jiang", "line", 3, permits=lab, requests=both)
    add("jiang", "complete", 3, permits=lab, requests=mixed, changes=["down 0-2"])
    add("raynal", "complete", 3, permits=pair, requests=["0:gpu:1", "1:gpu:1+licence:1", "2:gpu:1"])
    two = ["1:gpu:1+licence:1", "2:licence:1"]
    add("direct", "complete", 3, permits=pair, requests=["0:gpu:1", *two], **crash)
    add("jiang", "complete", 3, permits=pair, requests=two, **crash)

    # The general scheme: whatever each node does at any moment, on links that keep no order.
    for nodes in (3, 4):
        add("general-scheme", "complete", nodes, links="unordered")
        add("general-scheme", "complete", nodes)
    add("general-scheme", "complete", 3, links="unordered", requests=twice(3))
    for behaviour in ("proxy", "transit", "raymond", "shortcut", "open-cube", "gateway"):
        add("general-scheme", "complete", 4, links="unordered", options={"behaviour": behaviour})
    lift = {"queue": "lift"}
    add("general-scheme", "complete", 3, links="unordered", options=lift)
    add("general-scheme", "complete", 3, links="unordered", options=lift, repeat=True)
    add("raymond", "star", 4)
    add("raymond", "tree", 7)
    add("raymond", "line", 3, requests=twice(3))
    for algorithm in ("centralized", "shortcut", "gateway", "open-cube"):
        add(algorithm, "complete", 3)
        add(algorithm, "complete", 4)
    add("open-cube", "complete", 4, links="unordered", requests=twice(4))

    # The rivals that the papers cite.
    for nodes in (3, 4):
        add("naimi-trehel-original", "complete", nodes, links="unordered")
    add("naimi-trehel-original", "complete", 3, links="unordered", requests=twice(3))
    add("naimi-trehel-original", "complete", 3, repeat=True)
    add("goscinski", "complete", 3, requests=requests_of(3, 1), links="unordered")
    add("goscinski", "complete", 3, requests=["0:1@1", "1:1@3", "1:1@1", "2:1@2"])
    for nodes in (3, 4):
        add("mueller", "complete", nodes, requests=requests_of(nodes, 1), links="unordered")
    add("mueller", "complete", 3, requests=requests_of(3, 1) * 2, links="unordered")
    add("mueller", "complete", 4, requests=["1:1@1", "2:1@5", "3:1@5", "3:1@5"])
    for nodes in (3, 4):
        add("chandy-misra", "complete", nodes)
    add("chandy-misra", "complete", 3, links="unordered", requests=twice(3))
    add("chandy-misra", "complete", 3, links="unordered", repeat=True)
    for structure in ("groups", "ricart-agrawala", "maekawa", "central"):
        add("sanders", "complete", 3, options={"structure": structure})
    add("sanders", "complete", 4, options={"structure": "maekawa"})
    add("sanders", "complete", 4, requests=["1", "2", "3"])
    add("sanders", "complete", 3, requests=["0", "1", "1", "2"])
    add("singhal-dynamic", "complete", 3, requests=twice(3))
    add("singhal-dynamic", "complete", 3, links="unordered")
    add("singhal-dynamic", "complete", 4)
    add("arbiter", "complete", 3)
    for requests in (["0", "1", "2"], ["0:2", "1", "2:2"], ["0", "0:2", "1:2", "1"]):
        add("arbiter", "complete", 3, permits=2, requests=requests)
    add("arbiter", "complete", 4, permits=2, requests=["0:2", "1", "2"])
    add("arbiter", "complete", 4, permits=3, requests=["0:2", "1", "2:2"], stay=[1])
    add("raynal", "complete", 3)
    for requests in (["0", "1:2", "2"], ["0:2", "0", "1", "1:2"]):
        add("raynal", "complete", 3, permits=2, requests=requests, links="unordered")
    add("raynal", "complete", 3, permits=3, requests=["0:2", "1", "2"], stay=[1])
    add("raynal", "complete", 2, permits=2, requests=["0", "1", "1"], stay=[0])

    # The classics.
    for nodes in (3, 4):
        for algorithm in ("singhal", "neilsen-mizuno", "lelann"):
            add(algorithm, "complete", nodes)
    add("singhal", "complete", 3, requests=twice(3))
    add("suzuki-kasami", "complete", 3, links="unordered")
    add("ricart-agrawala", "complete", 3)
    add("ricart-agrawala", "complete", 3, links="unordered")
    add("ricart-agrawala", "complete", 4)
    add("lamport", "complete", 4, requests=["0", "1"])
    add("maekawa", "complete", 3)
    add("maekawa", "complete", 4)
    add("maekawa-bare", "complete", 3)
    for permits in (1, 2):
        for requests in (requests_of(3, permits), requests_of(3, permits) * 2):
            add("direct", "complete", 3, permits=permits, requests=requests, links="unordered")
        add("direct", "complete", 4, permits=permits, requests=requests_of(4, permits))
    for algorithm in ("raymond", "naimi-trehel", "centralized", "lelann"):
        add(algorithm, "complete", 3, repeat=True)

    # Jiang: every connected graph of three nodes, four graphs of four, k = 1 and 2.
    for permits in (1, 2):
        for topology in ("line", "complete"):
            add("jiang", topology, 3, permits=permits, requests=requests_of(3, permits))
            add("jiang", topology, 3, permits=permits, requests=requests_of(3, permits) * 2)
            for flips in (1, 2):
                add(
                    "jiang",
                    topology,
                    3,
                    permits=permits,
                    requests=requests_of(3, permits),
                    flips=flips,
                )
        middle = "edges:1-0,0-2"  # where the token is
        add("jiang", middle, 3, permits=permits, requests=requests_of(3, permits))
        for topology in ("line", "star", "ring"):
            add("jiang", topology, 4, permits=permits, requests=requests_of(4, permits))
            if permits == 1:
                add("jiang", topology, 4, requests=requests_of(4, 1) * 2)
        chord = "edges:0-1,1-2,2-3,0-3,0-2"
        add("jiang", chord, 4, permits=permits, requests=requests_of(4, permits))
    add("jiang", "line", 3, requests=requests_of(3, 1), changes=["up 0-2", "down 1-2"])
    for flips in (1, 2):
        add("jiang", "complete", 3, requests=requests_of(3, 1), flips=flips, failures="return")
    silent = {"options": {"moves": "silent"}}  # as live nodes run it
    for permits in (1, 2):
        asked = {"permits": permits, "requests": requests_of(3, permits), **silent}
        for topology in ("line", "complete"):
            add("jiang", topology, 3, **asked)
            add("jiang", topology, 3, **asked | {"requests": requests_of(3, permits) * 2})
            for flips in (1, 2):
                add("jiang", topology, 3, **asked, flips=flips)
        for topology in ("line", "star", "ring"):
            add("jiang", topology, 4, **asked | {"requests": requests_of(4, permits)})
    add("jiang", "ring", 4, requests=requests_of(4, 1) * 2, **silent)
    for flips in (1, 2):
        add(
            "jiang",
            "complete",
            3,
            requests=requests_of(3, 1),
            flips=flips,
            failures="return",
            **silent,
        )

    # Partition and heal; links as live nodes have them. One climb in a row keeps it small.
    for moves in ("quiet", "silent", "broadcast"):
        few = {"options": {"moves": moves, "raises": "1"}}
        for permits in (1, 2):
            asked = {"permits": permits, "requests": requests_of(3, permits), **few}
            for failures in ("drain", "return", "custody"):
                cut = {"changes": ["down 0-1", "up 0-1"], "failures": failures}
                add("jiang", "line", 3, **asked, **cut)
            for topology in ("line", "complete"):
                add("jiang", topology, 3, **asked, flips=1, failures="custody")
        add("jiang", "line", 3, requests=requests_of(3, 1), flips=2, failures="custody", **few)
        cut = {"changes": ["down 0-1", "up 0-2", "down 0-2"], "failures": "return"}
        add("jiang", "line", 3, **cut, **few)  # where R11 matters
        for failures in ("drain", "return"):
            any_two = {"flips": 2, "partitions": True, "failures": failures}
            add("jiang", "complete", 3, requests=requests_of(3, 1), **any_two, **few)
    heal = {"changes": ["down 1-2", "up 1-2"], "options": {"moves": "silent", "raises": "1"}}
    for failures in ("drain", "return"):
        add("jiang", "line", 4, requests=requests_of(4, 1), failures=failures, **heal)
    # Clients that give up, at any time.
    for permits in (1, 2):
        giving_up = {"permits": permits, "requests": requests_of(3, permits), "withdrawals": True}
        add("direct", "complete", 3, **giving_up, links="unordered")
        for moves in ("quiet", "silent", "broadcast"):
            options = {"moves": moves}
            add("jiang", "complete", 3, **giving_up, options=options)
            add("jiang", "line", 3, **giving_up, flips=1, options=options)
    # direct's token moves on while permits are out, which come after it or ahead of it.
    for rest in ("1", "2"):
        moving = {"permits": 2, "links": "unordered", "options": {"rest": rest}}
        add("direct", "complete", 3, requests=requests_of(3, 2), **moving)
        add("direct", "complete", 3, requests=["0", "1", "1", "2"], **moving, clients=2)
        add("direct", "complete", 3, requests=["0", "1", "2:2"], **moving, withdrawals=True)
    moving = {"permits": 3, "links": "unordered", "options": {"rest": "3"}}
    add("direct", "complete", 3, requests=["0:3@1", "1:1@3", "2:2@2"], **moving, parts=True)
    asked = ["0:1@1", "1:1@3", "1:1@1", "2:2@2"]
    add("direct", "complete", 3, requests=asked, **moving, clients=2, raises=["2:5"])
    # Several clients of a node in direct's queue: as many as permits can come free at once.
    urgent = ["0:1@1", "0:2@1", "1:1@1", "2:1@9", "2:1@9"]
    add("direct", "complete", 3, permits=3, clients=2, requests=urgent)
    several = {"permits": 2, "links": "unordered"}
    crowd = ["0:1@1", "1:1@1", "1:1@5", "1:2@9"]
    add("direct", "complete", 2, **several, clients=3, requests=crowd)
    crowd = ["0:1@1", "1:1@1", "1:1@5", "1:1@9"]
    add("direct", "complete", 2, **several, clients=3, requests=crowd, withdrawals=True)
    both = ["0:1@1", "1:1@1", "1:1@5", "2:1@3", "2:1@4"]
    add("direct", "complete", 3, **several, clients=2, requests=both)
    add("reverse-link", "line", 3)
    add("reverse-link", "line", 3, flips=1)
    add("reverse-link", "line", 3, flips=1, failures="custody")
    add("reverse-link", "line", 4)
    add("reverse-link", "ring", 4)
    add("reverse-link", "line", 2, repeat=True)
    add("reverse-link", "line", 3, repeat=True, capacity=3)
    add("jiang-printed", "line", 3, requests=["0:1@1", "1:1@3", "2:1@2"])

    # Theorem 3: two of a higher priority ask for ever, and who waits for them starves or not.
    for permits in (1, 2):
        for topology in ("line", "complete"):
            low = {"permits": permits, "requests": ["0:1@2", "1:1@2", f"2:{permits}@1"]}
            for ageing in ("none", "stamped", "printed"):
                aged = {"ageing": ageing, "patience": "1"}
                add("jiang", topology, 3, **low, repeat=True, options=aged)
            aged = {"patience": "1", "moves": "silent"}
            add("jiang", topology, 3, **low, repeat=True, options=aged)
    add("jiang", "line", 2, requests=["0:1@3", "1:1@1"], repeat=True, options={"patience": "3"})
    return rows + changing() + tied() + crashing()


def changing() -> list[Row]:
    """Requests that change: a part is released, a priority becomes another, at any time."""
    rows: list[Row] = []

    def add(algorithm: str, topology: str, nodes: int, requests: list[str], **more: Any) -> None:
        row = {"algorithm": algorithm, "topology": topology, "nodes": nodes}
        rows.append({**row, "requests": requests, **more})

    # Parts. A smaller request of arbiter needs a larger quorum.
    both = {"permits": 2, "release_parts": ["0:1", "1:1"]}
    add("arbiter", "complete", 3, ["0:2", "1:2", "2"], **both)
    add("arbiter", "complete", 3, ["0:2", "0", "1:2", "1"], **both)
    three = {"permits": 3, "release_parts": ["0:1", "0:2", "2:1"]}
    add("arbiter", "complete", 3, ["0:3", "1", "2:2"], **three)
    add("raynal", "complete", 3, ["0:2", "0", "1:2", "1"], **both, links="unordered")
    add("raynal", "complete", 3, ["0:3", "1", "2:2"], **three, links="unordered")
    add("direct", "complete", 3, ["0:2@1", "1:2@3", "2:1@2"], **both, links="unordered")
    add("direct", "complete", 3, ["0:3@1", "1:1@3", "2:2@2"], **three, links="unordered")
    for topology in ("line", "complete"):
        add("jiang", topology, 3, ["0:2@1", "1:2@3", "2:1@2"], **both)
        add("jiang", topology, 3, ["0:3@1", "1:1@3", "2:2@2"], **three)
        add("jiang", topology, 3, ["0:2@1", "1:2@3", "2:1@2"], **both, flips=1)
    # Priorities. On one node, and where others have to hear of it; up, down, and to and fro.
    alone = {"permits": 3, "clients": 3, "raises": ["0:9"]}
    asked = ["0:1@1", "1:1@3", "2:1@2"]
    for algorithm, links in (("direct", "unordered"), ("jiang", "fifo")):
        add(algorithm, "complete", 1, ["0:2@1", "0:2@5", "0:1@3"], **alone)
        for topology in ("line", "complete") if algorithm == "jiang" else ("complete",):
            for raises in (["2:9"], ["1:1"], ["2:9", "2:0"]):
                add(algorithm, topology, 3, asked, raises=raises, links=links)
            two = {"permits": 2, "release_parts": ["1:1"], "raises": ["0:9", "2:9"]}
            add(algorithm, topology, 3, ["0:1@1", "1:2@3", "2:1@2"], **two, links=links)
            add(algorithm, topology, 3, asked, raises=["2:9"], withdrawals=True, links=links)
    for moves in ("silent", "broadcast"):
        add("jiang", "line", 3, asked, raises=["2:9"], options={"moves": moves})
    for failures in ("drain", "return"):
        add("jiang", "complete", 3, asked, raises=["2:9"], flips=1, failures=failures)
    # Where nodes recover.
    recovering = {"members": "all"}
    for algorithm in ("direct", "jiang"):
        add(algorithm, "complete", 1, ["0:2@1", "0:2@5", "0:1@3"], **alone, **recovering)
        add(algorithm, "line", 2, ["0:1@2", "1:1@1"], raises=["1:9"], **recovering)
    add("direct", "complete", 2, ["1:1@5"], raises=["1:9"], **recovering, crashes=1, proposals=1)
    two = {"permits": 3, "release_parts": ["0:2"], "raises": ["1:9"]}
    add("direct", "complete", 2, ["0:3@1", "1:1@5"], **two, **recovering)
    # Deadlines: less than a step, and rising.
    due = ["0:1@1", "1:1@0.5", "2:1@0.2"]
    add("direct", "complete", 3, due, raises=["1:0.6", "2:0.99"], links="unordered")
    for topology in ("line", "complete"):
        add("jiang", topology, 3, due, raises=["2:0.5", "2:0.99"])
        add("jiang", topology, 3, due, raises=["2:0.99"], flips=1)
    crowd = ["0:1@1", "1:1@0.2", "1:1@0.5"]
    add("direct", "complete", 2, crowd, raises=["1:0.99"], clients=2, **recovering)
    add("direct", "complete", 2, crowd[:2], raises=["1:0.99"], **recovering, crashes=1, proposals=1)
    add("jiang", "line", 2, crowd[:2], raises=["1:0.99"], **recovering, crashes=1)
    return rows


def tied() -> list[Row]:
    """First come, first served among equals, with what is remembered of who came first."""
    rows: list[Row] = []

    def add(algorithm: str, topology: str, requests: list[str], **more: Any) -> None:
        row = {"algorithm": algorithm, "topology": topology, "nodes": 3, "requests": requests}
        rows.append({**row, **more, "properties": ["ties"]})

    alike = ["0:1@1", "1:1@1", "2:1@1"]
    changed = {"permits": 2, "raises": ["1:2"], "release_parts": ["0:1"], "withdrawals": True}
    for algorithm, topology in (("jiang", "line"), ("jiang", "complete"), ("direct", "complete")):
        add(algorithm, topology, alike)
        add(algorithm, topology, alike * 2, options={"patience": "1"})
        add(algorithm, topology, ["0:1@1", "1:2@1", "1:1@1", "2:1@1"], permits=2, clients=2)
        add(algorithm, topology, ["0:2@1", "1:1@1", "2:1@2"], **changed)
        if algorithm == "jiang":
            add(algorithm, topology, alike, flips=1)
            crowd = {"clients": 2, "flips": 1, "options": {"patience": "1", "raises": "1"}}
            for failures in ("return", "custody") if topology == "line" else ("return",):
                add(algorithm, topology, [*alike, "1:1@1"], **crowd, failures=failures)
    # The token overtakes a GRANT to where it goes.
    moving = {"permits": 2, "clients": 2, "links": "unordered", "options": {"rest": "2"}}
    asked = ["0:1@1", "0:1@1", "0:2@1", "1:1@1", "1:1@1"]
    add("direct", "complete", asked, nodes=2, **moving)
    for algorithm in ("naimi-trehel-original", "neilsen-mizuno", "ricart-agrawala"):
        add(algorithm, "complete", alike)
    return rows


RECOVERING = [
    "jiang",
    "reverse-link",
    "naimi-trehel",
    "raymond",
    "centralized",
    "suzuki-kasami",
    "neilsen-mizuno",
    "direct",
]


def crashing() -> list[Row]:
    """Nodes that crash and recover: small bounds, each of another kind."""
    rows: list[Row] = []

    def add(algorithm: str, topology: str, nodes: int, requests: list[str], **more: Any) -> None:
        row = {"algorithm": algorithm, "topology": topology, "nodes": nodes}
        rows.append({**row, "requests": requests, "members": "all", **more})

    # What every algorithm must stand: nothing fails; an epoch; a crash.
    line = ["0:1@1", "2:1@2"]
    for algorithm in RECOVERING:
        add(algorithm, "line", 3, line)
        add(algorithm, "line", 3, ["2"], proposals=1, proposers=[1])
        if algorithm not in ("jiang", "reverse-link"):  # see campaigns/recovery_check.py
            add(algorithm, "line", 3, line, crashes=1)
    for algorithm in ("naimi-trehel-original", "goscinski", "mueller", "open-cube", "shortcut"):
        add(algorithm, "line", 3, line, crashes=1)
    add("shortcut", "complete", 3, line, crashes=1)  # as naimi-trehel
    for behaviour in ("transit", "shortcut"):
        add("general-scheme", "line", 3, line, crashes=1, options={"behaviour": behaviour})
    add("singhal", "complete", 3, line)
    add("singhal", "complete", 3, line, crashes=1)
    add("jiang", "line", 3, ["2"], crashes=1)
    add("jiang", "line", 2, ["1"], cuts=1, resends=1)
    add("jiang", "line", 2, ["1"], cuts=1, proposals=1, proposers=[0])
    add("jiang", "line", 2, ["1"], crashes=1, handshakes="any")

    # The rules of recovery itself, with direct inside.
    def direct(nodes: int, requests: list[str], **more: Any) -> None:
        add("direct", "complete", nodes, requests, **more)

    none = {"idle": True}
    direct(3, ["0", "1"])
    direct(3, ["1"], proposals=1, proposers=[2], stay=[1])
    direct(3, ["0"], proposals=1, proposers=[1], crashes=1, crashing=[0], stay=[0])
    direct(3, [], **none, proposals=1, proposers=[1], crashes=1, crashing=[2], forgets=1)
    direct(3, [], **none, proposals=2, proposers=[1, 2])
    direct(3, [], **none, proposals=2, proposers=[0, 1])
    direct(3, [], **none, proposals=2, proposers=[0, 1], birth=True)
    direct(3, ["0"], proposals=1, proposers=[2], slow_ticks=1, lease=2, wait=3, stay=[0])
    direct(3, [], **none, proposals=1, proposers=[2], renewals="travel")
    direct(3, ["0", "1"], permits=2)
    direct(2, ["1"], members="1", proposals=2, crashes=1, stay=[1])
    direct(3, ["1:1@0", "1:1@1", "2:1@0"], clients=2, stay=[1, 2])
    direct(3, ["1:1@0", "1:1@1"], clients=2, withdrawals=True)
    direct(3, ["1"], resends=2)
    # A node that crashes and comes back takes part in the epoch that goes on without it.
    late = {"crashes": 1, "crashing": [1]}
    direct(3, ["1", "2"], **late, stay=[1, 2])
    direct(3, ["2", "1"], permits=2, **late, ticks=2)
    direct(2, ["1"], **late, handshakes="any", ticks=2)
    direct(3, ["1"], members="1", **late, forgets=1, ticks=2)
    direct(3, ["1", "2"], **late, handshakes="any", ticks=2, stay=[1, 2])
    direct(2, ["1", "0"], members="1", **late, handshakes="any", doubles=1, ticks=3)
    direct(3, ["2"], members="1", crashes=2, crashing=[1, 2], ticks=2)
    # Which permits a grant has, over an epoch that keeps it and one that lets it lapse.
    direct(2, ["0", "1", "1"], permits=2, clients=2, slots=True)
    direct(2, ["0", "1", "1", "1"], permits=2, clients=3)
    direct(2, ["0", "1:1@0", "1:1@5"], permits=2, clients=2, proposals=1)
    direct(2, ["0", "1:1@0", "1:1@5"], permits=2, clients=2, crashes=1, crashing=[1])
    direct(2, ["0", "1"], permits=2, proposals=1, slots=True)
    direct(2, ["1", "0", "0"], permits=2, members="1", proposals=1, slots=True, stay=[1])
    direct(2, ["1", "0"], permits=2, proposals=1, proposers=[0], crashes=1, slots=True)
    # The token moves on while a grant is out, but not while it is under way.
    moving = {"permits": 3, "options": {"rest": "3"}}
    direct(2, ["0", "1"], permits=2, options={"rest": "2"}, crashes=1)
    direct(2, ["0", "1", "1"], **moving, clients=2, crashes=1)
    lead = ["request 0", "request 1", "deliver REQUEST 1>0", "request 2", "deliver REQUEST 2>0"]
    lead += ["deliver GRANT 0>1", "tick", "deliver RECEIVED 1>0"]
    direct(3, ["0", "1", "2"], **moving, crashes=1, crashing=[0], lead=lead)
    lead = [*lead, "deliver TOKEN 0>2"]
    direct(3, ["0", "1", "2"], **moving, proposals=1, proposers=[1], ticks=1, lead=lead)
    # Permits given back one by one, over an epoch, to a founder that may hear of it twice.
    direct(2, ["0:2", "1:2"], permits=3, proposals=1, slots=True, parts=True)
    direct(2, ["1:3"], permits=3, members="1", proposals=1, doubles=1, slots=True, parts=True)
    direct(2, ["1:2"], permits=2, proposals=1, crashes=1, slots=True, parts=True)
    adding, removing = {"member_changes": ["add 2"]}, {"member_changes": ["remove 2"]}
    holder = {"proposers": [0], "proposals": 1, **none}
    direct(3, [], members="2", **adding, **holder, crashes=1, crashing=[0])
    direct(4, [], members="3", member_changes=["add 3"], **holder)
    direct(3, [], **removing, **holder, crashes=1, crashing=[1])
    direct(2, [], member_changes=["remove 1"], **none, proposals=2, crashes=1)
    # k changes: more, and fewer than are held, with a crash of a holder.
    more, fewer = {"resizes": [2]}, {"permits": 2, "resizes": [1]}
    direct(3, ["1"], **more, proposals=1, proposers=[0], ticks=1)
    direct(2, ["0", "1"], **fewer, proposals=1, proposers=[0])
    direct(2, ["0", "1"], **fewer, proposals=1, proposers=[0], crashes=1, crashing=[1], ticks=1)
    add("jiang", "line", 2, ["0", "1"], **more, proposals=1, proposers=[0])
    add("jiang", "line", 2, ["0", "1"], **fewer, proposals=1, proposers=[0])
    # Names change: one that may be held goes, one comes; with a crash of who may hold it.
    other = {"permits": 2, "slots": True, "renames": ["1,2"], "proposals": 1, "proposers": [0]}
    direct(2, ["0", "1"], **other)
    direct(2, ["0", "1"], **other, crashes=1, crashing=[1], ticks=1)
    # Pools that node 0 has made: birth, growth to three, a new member that forgets; a replacement.
    made = {"members": "auto", **none}
    growth = {"member_changes": ["add 1", "add 2"], "proposals": 3, "proposers": [0]}
    add("jiang", "line", 2, ["0", "1"], members="auto", birth=True, crashes=1, proposals=1)
    add("jiang", "line", 3, [], **made, **growth)
    forgetting = {"member_changes": ["add 1"], "crashes": 1, "crashing": [1], "forgets": 1}
    safe = {"properties": ["safety", "fences", "one-token", "ledger"]}  # half of two serve nobody
    add("jiang", "line", 2, [], **made, **forgetting, **safe, proposals=2)
    replacing = {"member_changes": ["remove 2", "add 3"], "proposals": 2, "proposers": [0]}
    gone = {"lead": ["crash 2"], "crashes": 1, "crashing": [2], "ticks": 0}
    direct(4, [], members="3", **replacing, **gone, **none)
    # Two changes of members at once, by two members, after a token under way was reported to one.
    for nodes, members, changes in TWO_CHANGES:
        both = {"member_changes": changes, "proposals": 2, "proposers": [0, 1], "ticks": 0}
        lead = reported(nodes, changes[0])
        direct(nodes, [str(nodes - 1)], members=members, **both, stay=[nodes - 1], lead=lead)
    # Disks that hang, and what was promised meanwhile is forgotten in a crash.
    hanging = {"slow_disks": 1, "crashes": 1, "proposals": 1, "proposers": [0]}
    for node in (0, 1):
        direct(2, [], **none, **hanging, crashing=[node])
    direct(2, ["1"], members="1", **hanging, crashing=[0])
    direct(2, [], members="1", **none, **hanging, crashing=[0], member_changes=["add 1"])
    # Members that stay dead: holder, proposer, or one that is replaced.
    direct(3, ["0", "1"], stay_dead=1)
    dead = {"stay_dead": 1, "crashing": [1], "proposals": 1, "proposers": [1], "ticks": 0}
    direct(4, ["3"], members="3", **dead)
    direct(4, [], members="3", **replacing, stay_dead=1, crashing=[2], ticks=0, **none)
    # Nodes that were away when an epoch began: with a grant, and with the token.
    direct(2, ["1"], members="1", proposals=3)
    direct(3, ["0"], proposals=2, proposers=[1], stay=[0], lead=AWAY_WITH_THE_TOKEN)
    return rows


AWAY_WITH_THE_TOKEN = ["request 0", "propose 1", "deliver PROPOSE 1>2", "deliver PROMISE 2>1"]
AWAY_WITH_THE_TOKEN += ["close 1", "deliver LEDGER 1>2", "deliver CONFIRM 2>1"]
AWAY_WITH_THE_TOKEN += ["deliver LEDGER 1>0"]


TWO_CHANGES = [
    (3, "2", ["remove 0", "add 2"]),
    (4, "2", ["add 2", "add 3"]),
    (4, "3", ["remove 0", "add 3"]),
    (4, "4", ["remove 0", "remove 1"]),
]
"""Nodes, members, and changes of which a majority may have promised one and not the other, where
their number is even."""


def reported(nodes: int, change: str) -> list[str]:
    """The token is on its way from node 0 to the last one, and both told node 1 so."""
    last, others = nodes - 1, [node for node in range(nodes) if node != 1]
    steps = [f"request {last}", f"deliver REQUEST {last}>0", f"{change} by 1"]
    steps += [f"deliver PROPOSE 1>{node}" for node in others]
    return steps + [f"deliver PROMISE {node}>1" for node in others]


def twice(nodes: int) -> list[str]:
    return [str(node) for node in range(nodes) for _ in range(2)]


def requests_of(nodes: int, permits: int) -> list[str]:
    """One request each, of different priorities; with two permits, one wants both."""
    priorities = [1, 3, 2, 4]
    return [
        f"{node}:{2 if permits > 1 and node == 1 else 1}@{priorities[node]}"
        for node in range(nodes)
    ]


def explored(row: Row) -> PinnedSetUp | None:
    """The set-up with its counts; None if it is too large."""
    entry = PinnedSetUp(row)
    checking = entry.checking(MOST)
    while checking.run(50_000):
        pass
    if not checking.complete():
        print(f"left out, too large: {entry.title()}", file=sys.stderr)
        return None
    states, transitions, depth, violated = found(checking)
    counts = {"states": states, "transitions": transitions, "depth": depth, "violated": violated}
    print(
        f"{states:>9,} {transitions:>9,} {depth:>4}  {entry.title()} {violated or ''}", flush=True
    )
    return PinnedSetUp({**row, **counts})


def main() -> None:
    named = sys.argv[1:]
    pinned = {entry.title(): entry for entry in entries()}
    rows = {PinnedSetUp(row).title(): row for row in setups()}
    again = [
        row
        for title, row in rows.items()
        if not named or row["algorithm"] in named or title not in pinned
    ]
    for row in again:
        pinned.pop(PinnedSetUp(row).title(), None)
    with ProcessPoolExecutor() as processes:
        done = [entry for entry in processes.map(explored, again) if entry is not None]
    pinned |= {entry.title(): entry for entry in done}
    texts = [pinned[title].text() for title in rows if title in pinned]
    FILE.write_text(HEAD + "".join(texts), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(entries())}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
