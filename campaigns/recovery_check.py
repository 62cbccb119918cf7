"""Nodes that crash within wider bounds than the manifest's: explored to the end, or to --most.

    python campaigns/recovery_check.py --pin               # explore what is not pinned yet
    python campaigns/recovery_check.py --pin --most N      # and further what is not complete
    python campaigns/recovery_check.py                     # compare with what is pinned
    python campaigns/recovery_check.py --only jiang        # set-ups with these words only

From a sample of the states of each faults stop, and all must be served. DURABLE are rules that seem
to matter for safety only where a disk can be lost: without that, nothing unsafe must be found with
these mutants. A row is printed, and with ``--pin`` written, as soon as it is done.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from four_nodes import Row, explore, title, verdict
from pin_counts import PAGE, RECOVERING, TWO_CHANGES

from meshlock.check.manifest import PinnedSetUp
from meshlock.check.manifest import read as read_pinned

FILE = Path(__file__).with_suffix(".txt")
MOST = 400_000
BEGIN, END = "<!-- crashes: begin -->", "<!-- crashes: end -->"
HEAD = """\
# Pinned by campaigns/recovery_check.py. A set-up is what follows: meshlock check --algorithm. Where
# there are more states than these, nothing was wrong among these.

"""

DURABLE = ["renews-the-dead", "answers-without-promise", "confirmed-by-any-boot"]
SAFE = ["safety", "fences", "one-token", "ledger", "conservation"]
"""What is judged of these; who renews what is dead may well keep others waiting."""


def setups() -> list[Row]:
    rows: list[Row] = []

    def add(algorithm: str, topology: str, nodes: int, requests: list[str], **more: Any) -> None:
        row = {"algorithm": algorithm, "topology": topology, "nodes": nodes}
        rows.append({**row, "requests": requests, "members": "all", **more})

    # Every algorithm with a crash, an epoch, and both; two epochs; a lost disk.
    line = ["0:1@1", "2:1@2"]
    for algorithm in RECOVERING:
        if algorithm in ("jiang", "reverse-link"):  # the manifest has the others
            add(algorithm, "line", 3, line, crashes=1)
        add(algorithm, "line", 3, line, crashes=1, proposals=1)
        add(algorithm, "line", 3, line, proposals=2)
        add(algorithm, "line", 3, ["2"], crashes=1, forgets=1, proposals=1)
    two = {"permits": 2, "requests": ["0:1@1", "2:2@2"]}
    for topology in ("line", "complete"):
        add("jiang", topology, 3, **two, crashes=1)
        add("direct", topology, 3, **two, crashes=1)
    add("jiang", "line", 4, ["3"], members="3", proposals=1)
    add("jiang", "line", 3, line, cuts=1)
    add("jiang", "complete", 3, line, cuts=1, resends=1)

    # Handshakes that may be late: small, for they multiply the states.
    for algorithm in RECOVERING:
        late = {"handshakes": "any"}
        if algorithm != "jiang":  # the manifest has it
            add(algorithm, "line", 2, ["1"], **late, crashes=1)
        add(algorithm, "line", 2, ["1"], **late, proposals=2)
        add(algorithm, "line", 2, ["1"], **late, crashes=1, proposals=1)
        add(algorithm, "line", 3, ["2"], **late, proposals=1, proposers=[1])
        add(algorithm, "line", 3, ["2"], **late, crashes=1)

    # The rules of recovery itself, with direct inside.
    def direct(nodes: int, requests: list[str], **more: Any) -> None:
        add("direct", "complete", nodes, requests, **more)

    one = {"proposals": 1}
    direct(3, ["0", "1"], **one, proposers=[2], stay=[0, 1])
    direct(3, ["0"], **one, proposers=[1], crashes=1)
    direct(3, ["0"], **one, proposers=[1], crashes=1, crashing=[0], forgets=1)
    direct(3, ["0"], proposals=2, proposers=[0, 1], birth=True)
    direct(3, ["1"], **one, proposers=[2], doubles=1, stay=[1])
    direct(3, ["1"], **one, proposers=[2], resends=1, stay=[1])
    direct(3, ["0"], proposals=2, proposers=[1, 2], stay=[0])
    direct(3, ["0", "1"], permits=2, **one, proposers=[2], stay=[0, 1])
    direct(3, ["0", "1"], permits=2, **one, proposers=[2], crashes=1, stay=[0, 1])
    direct(3, ["0", "1"], permits=2, **one, proposers=[2])
    direct(3, ["0", "1"], permits=2, **one, proposers=[2], slow_ticks=1, lease=2, wait=3)
    direct(3, ["0", "1"], permits=2, **one, proposers=[2], slots=True, stay=[0])
    direct(3, ["0", "1"], permits=2, crashes=2, crashing=[1], stay=[0])
    direct(3, ["0:1@0", "1:1@0", "1:1@1"], permits=2, clients=2, withdrawals=True)
    direct(3, ["0:1@0", "1:1@0", "1:1@1"], clients=2, withdrawals=True)
    direct(3, ["0"], **one, proposers=[1], crashes=2, stay=[0])
    direct(3, ["0"], **one, proposers=[2], slow_ticks=1, lease=2, wait=3)
    direct(3, ["1"], **one, proposers=[2], renewals="travel", stay=[1])
    direct(5, ["1"], **one, proposers=[4], idle=True)
    direct(3, ["1"], proposals=3, proposers=[1, 2], idle=True)
    direct(2, ["0", "1"], members="1", proposals=2, crashes=1, stay=[0, 1])
    direct(3, ["0"], **one, proposers=[2], lease=3, wait=3)
    direct(3, [], members="2", member_changes=["add 2"], proposals=2, crashes=1, idle=True)
    adding = {"member_changes": ["add 3"], "proposers": [0, 1], "idle": True}
    direct(4, [], members="3", proposals=2, **adding)
    removing = {"member_changes": ["remove 2"], "proposers": [0, 1], "idle": True}
    direct(3, [], proposals=2, **removing, crashes=1)
    both = {"member_changes": ["add 2", "remove 1"], "proposers": [0, 1], "idle": True}
    direct(3, [], members="2", proposals=3, **both)
    direct(3, ["2"], members="2", member_changes=["add 2"], proposals=2, stay=[2])
    for nodes, members, changes in TWO_CHANGES:
        both = {"member_changes": changes, "proposals": 2, "proposers": [0, 1], "ticks": 0}
        direct(nodes, [], members=members, **both, idle=True)
    both = {"member_changes": ["remove 0", "add 2"], "proposals": 2, "proposers": [0, 1]}
    direct(3, ["2"], members="2", **both, ticks=0)
    direct(3, [], **one, proposers=[1], crashes=1, crashing=[2], slow_disks=1, idle=True)
    direct(3, ["0"], **one, proposers=[1], stay_dead=1)
    for mutant in DURABLE:
        disks = {"proposals": 2, "proposers": [1, 2], "crashes": 1, "crashing": [0, 1]}
        add(f"recovery/{mutant}", "complete", 3, [], **disks, idle=True, properties=SAFE)
        again = {"proposers": [1], "crashes": 1, "properties": SAFE}
        add(f"recovery/{mutant}", "complete", 3, ["0"], **one, **again)
    return rows


def read() -> dict[str, Row]:
    """What is pinned, by title."""
    if not FILE.exists():
        return {}
    return {entry.title(): entry.table for entry in read_pinned(FILE)}


def write(pinned: dict[str, Row]) -> None:
    """Into the file and the page, in the order of the list."""
    rows = [pinned[title(row)] for row in setups() if title(row) in pinned]
    FILE.write_text(HEAD + "".join(PinnedSetUp(row).text() for row in rows), encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}{END}{after}", encoding="utf-8")


def table(rows: list[Row]) -> str:
    """What is pinned for people, in Markdown."""
    lines = ["| set-up | states | transitions | depth | verdict |", "|---|---|---|---|---|"]
    for row in rows:
        size = f"{row['states']:,} | {row.get('transitions', 0):,} | {row.get('depth', 0)}"
        if not row.get("complete", True):
            size = f"more than {row['states']:,} | |"
        lines.append(f"| {title(row)} | {size} | {verdict(row)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pin", action="store_true", help="pin what is not pinned yet")
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORDS", help="part of a title; repeat"
    )
    parser.add_argument("--most", type=int, default=MOST, help="states of a set-up to look at")
    asked = parser.parse_args()
    pinned = read()
    rows = [row for row in setups() if all(words in title(row) for words in asked.only)]
    print(f"{'states':>12} {'transitions':>12} {'depth':>5} {'CPU s':>8}  verdict, set-up")
    wrong = 0
    for row in rows:
        known = pinned.get(title(row), {"complete": False, "states": 0})
        complete = known.get("complete", True)
        most = asked.most if asked.pin else known["states"] + complete
        if most == 0 or (asked.pin and (complete or most <= known["states"])):
            continue
        done, seconds = explore(row, most)
        said = verdict(done)
        wrong += "violated" in done
        if asked.pin:
            pinned[title(row)] = done
            write(pinned)
        elif PinnedSetUp(done).text() != PinnedSetUp(pinned[title(row)]).text():
            wrong += 1
            said += f", CHANGED from {pinned[title(row)]['states']:,} states"
        print(
            f"{done['states']:>12,} {done.get('transitions', 0):>12,} {done.get('depth', 0):>5} "
            f"{seconds:>8.1f}  {said}: {title(row)}",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
