"""Nodes that crash within wider bounds than the manifest's: explored to the end, or to --most.

    python campaigns/recovery_check.py --pin               # explore what is not pinned yet
    python campaigns/recovery_check.py --pin --most N      # and further what is not complete
    python campaigns/recovery_check.py                     # compare with what is pinned
    python campaigns/recovery_check.py --only jiang        # set-ups with these words only

From a sample of the states of each faults stop, and all must be served. DURABLE are rules that seem
to matter for safety only where a disk can be lost: without that, nothing unsafe must be found with
these mutants.
"""

from __future__ import annotations

import sys
from typing import Any

from pin_counts import RECOVERING, TWO_CHANGES
from pinned_book import Book, title

from meshlock.check.manifest import Row

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


BOOK = Book("recovery_check.py", "crashes", 400_000, setups, {"set-up": title})

if __name__ == "__main__":
    sys.exit(BOOK.main(str(__doc__)))
