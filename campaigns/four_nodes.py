"""Four nodes and links that change: every set-up that is small enough, explored to its end.

    python campaigns/four_nodes.py --pin                   # explore what is not complete yet
    python campaigns/four_nodes.py                         # compare with what is pinned
    python campaigns/four_nodes.py --only line --only silent  # set-ups with these words only

Line, star, ring and complete graph; any one change of a link, and any two, that leave the
network connected; one permit and two; silent, quiet and broadcast moves. Every node asks once,
with different priorities. All properties are judged.
"""

from __future__ import annotations

import sys

from pin_counts import requests_of
from pinned_book import Book

from meshlock.check.manifest import Row


def setups() -> list[Row]:
    return [
        {"algorithm": "jiang", "topology": topology, "nodes": 4}
        | ({"permits": str(permits)} if permits > 1 else {})
        | {"requests": requests_of(4, permits), "flips": flips, "options": {"moves": moves}}
        for flips in (1, 2)
        for permits in (1, 2)
        for topology in ("line", "star", "ring", "complete")
        for moves in ("silent", "quiet", "broadcast")
    ]


BOOK = Book(
    "four_nodes.py",
    "four nodes",
    10_000_000,
    setups,
    {
        "graph": lambda row: str(row["topology"]),
        "changes": lambda row: str(row["flips"]),
        "k": lambda row: str(row.get("permits", 1)),
        "moves": lambda row: str(row["options"]["moves"]),
    },
)

if __name__ == "__main__":
    sys.exit(BOOK.main(str(__doc__)))
