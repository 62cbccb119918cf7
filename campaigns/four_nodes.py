"""Four nodes and links that change: every set-up that is small enough, explored to its end.

    python campaigns/four_nodes.py --pin                   # explore what is not pinned yet
    python campaigns/four_nodes.py                         # compare with what is pinned
    python campaigns/four_nodes.py --only line --only silent  # set-ups with these words only

Line, star, ring and complete graph; any one change of a link, and any two, that leave the
network connected; one permit and two; silent, quiet and broadcast moves. Every node asks once,
with different priorities. All properties are judged.

A set-up of more than ``--most`` states is left there and pinned as too large: nothing was wrong
so far, which proves nothing. Ten million states take some 3 GB per process.

A row is printed, and with ``--pin`` written, as soon as it is done, so a campaign that was
interrupted goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from time import process_time

from pin_counts import PAGE, requests_of

from meshlock.check.manifest import PinnedSetUp, Row, found
from meshlock.check.manifest import read as read_pinned

FILE = Path(__file__).with_suffix(".txt")
MOST = 10_000_000
BEGIN, END = "<!-- four nodes: begin -->", "<!-- four nodes: end -->"

HEAD = """\
# Pinned by campaigns/four_nodes.py. A set-up is what follows: meshlock check --algorithm. Where
# there are more states than these, nothing was wrong among these.

"""


def setups() -> list[Row]:
    return [
        {"algorithm": "jiang", "topology": topology, "nodes": 4, "permits": permits}
        | {"requests": requests_of(4, permits), "flips": flips, "options": {"moves": moves}}
        for flips in (1, 2)
        for permits in (1, 2)
        for topology in ("line", "star", "ring", "complete")
        for moves in ("silent", "quiet", "broadcast")
    ]


def title(row: Row) -> str:
    return PinnedSetUp(row).title()


def explore(row: Row, most: int) -> tuple[Row, float]:
    """The row with what came of it, and the CPU seconds that it took."""
    started = process_time()
    checking = PinnedSetUp(row).checking(most)
    while checking.run(50_000):
        pass
    states, transitions, depth, violated = found(checking)
    done = {**row, "states": states}
    done |= {"transitions": transitions, "depth": depth} if checking.complete() else {}
    done |= {} if checking.complete() else {"complete": False}
    if violated:
        done["violated"] = violated
    return done, process_time() - started


def verdict(row: Row) -> str:
    if "violated" in row:
        ways = [f"{name} in {steps}" for name, steps in row["violated"].items()]
        return f"VIOLATED: {', '.join(ways)}"
    return "holds" if row.get("complete", True) else "too large, nothing wrong so far"


def read() -> dict[str, Row]:
    """What is pinned, by title."""
    if not FILE.exists():
        return {}
    return {entry.title(): entry.table for entry in read_pinned(FILE)}


def write(pinned: dict[str, Row]) -> None:
    """Into the file and the page, in the order of the list, whatever was done first."""
    rows = [pinned[title(row)] for row in setups() if title(row) in pinned]
    FILE.write_text(HEAD + "".join(PinnedSetUp(row).text() for row in rows), encoding="utf-8")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}{END}{after}", encoding="utf-8")


def table(rows: list[Row]) -> str:
    """What is pinned for people, in Markdown."""
    lines = [
        "| graph | changes | k | moves | states | transitions | depth | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        size = f"{row['states']:,} | {row.get('transitions', 0):,} | {row.get('depth', 0)}"
        if not row.get("complete", True):
            size = f"more than {row['states']:,} | |"
        asked = f"{row['topology']} | {row['flips']} | {row.get('permits', 1)}"
        asked += f" | {row['options']['moves']}"
        lines.append(f"| {asked} | {size} | {verdict(row)} |")
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
    parser.add_argument("--processes", type=int, default=1, help="set-ups explored at a time")
    asked = parser.parse_args()

    pinned = read()
    rows = [row for row in setups() if all(words in title(row) for words in asked.only)]
    rows = [row for row in rows if (title(row) in pinned) != asked.pin]
    print(f"{'states':>12} {'transitions':>12} {'depth':>5} {'CPU s':>8}  verdict, set-up")
    wrong = 0
    with ProcessPoolExecutor(asked.processes, max_tasks_per_child=1) as pool:
        for future in as_completed([pool.submit(explore, row, asked.most) for row in rows]):
            done, seconds = future.result()
            name, said = title(done), verdict(done)
            wrong += "violated" in done
            if asked.pin:
                pinned[name] = done
                write(pinned)
            elif PinnedSetUp(done).text() != PinnedSetUp(pinned[name]).text():
                wrong += 1
                said += f", CHANGED from {pinned[name]['states']:,} states, {verdict(pinned[name])}"
            print(
                f"{done['states']:>12,} {done.get('transitions', 0):>12,} "
                f"{done.get('depth', 0):>5} {seconds:>8.1f}  {said}: {name}",
                flush=True,
            )
    print(f"{len(rows)} set-ups, {wrong} of them wrong.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
