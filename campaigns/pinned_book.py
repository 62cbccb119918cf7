"""Set-ups of the checker that take minutes: explored, pinned in a file, and shown on a page.

A row is printed, and with ``--pin`` written, as soon as it is done, so a campaign that was
interrupted goes on where it stopped. A set-up of more than ``--most`` states is left there and
pinned as too large: nothing was wrong so far, which proves nothing. Ten million states take some
3 GB per process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from time import process_time

from pin_counts import PAGE

from meshlock.check.manifest import PinnedSetUp, Row, found
from meshlock.check.manifest import read as read_pinned

HEAD = """\
# Pinned by campaigns/{}. A set-up is what follows: meshlock check --algorithm. Where
# there are more states than these, nothing was wrong among these.

"""


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


@dataclass
class Book:
    """Where the set-ups of one campaign are pinned."""

    script: str
    mark: str  # of its table on the page
    most: int  # states of a set-up to look at, unless somebody says otherwise
    setups: Callable[[], list[Row]]
    columns: dict[str, Callable[[Row], str]]  # of a set-up, on the page

    @property
    def file(self) -> Path:
        return Path(__file__).with_name(self.script).with_suffix(".txt")

    def read(self) -> dict[str, Row]:
        """What is pinned, by title."""
        if not self.file.exists():
            return {}
        return {entry.title(): entry.table for entry in read_pinned(self.file)}

    def write(self, pinned: dict[str, Row]) -> None:
        """Into the file and the page, in the order of the list, whatever was done first."""
        rows = [pinned[title(row)] for row in self.setups() if title(row) in pinned]
        texts = [PinnedSetUp(row).text() for row in rows]
        self.file.write_text(HEAD.format(self.script) + "".join(texts), encoding="utf-8")
        begin, end = f"<!-- {self.mark}: begin -->", f"<!-- {self.mark}: end -->"
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
        after = rest.partition(end)[2]
        text = f"{before}{begin}\n{self.table(rows)}{end}{after}"
        PAGE.write_text(text, encoding="utf-8")

    def table(self, rows: list[Row]) -> str:
        """What is pinned for people, in Markdown."""
        names = [*self.columns, "states", "transitions", "depth", "verdict"]
        lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
        for row in rows:
            size = f"{row['states']:,} | {row.get('transitions', 0):,} | {row.get('depth', 0)}"
            if not row.get("complete", True):
                size = f"more than {row['states']:,} | |"
            what = " | ".join([column(row) for column in self.columns.values()])
            lines.append(f"| {what} | {size} | {verdict(row)} |")
        return "\n".join(lines) + "\n"

    def main(self, description: str) -> int:
        parser = argparse.ArgumentParser(
            description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--pin", action="store_true", help="pin what is not complete yet")
        parser.add_argument("--again", action="store_true", help="pin everything anew")
        parser.add_argument(
            "--only", action="append", default=[], metavar="WORDS", help="part of a title; repeat"
        )
        parser.add_argument(
            "--most", type=int, default=self.most, help="states of a set-up to look at"
        )
        parser.add_argument("--processes", type=int, default=1, help="set-ups explored at a time")
        asked = parser.parse_args()
        pinned = self.read()
        wrong, todo = 0, self.todo(asked, pinned)
        print(f"{'states':>12} {'transitions':>12} {'depth':>5} {'CPU s':>8}  verdict, set-up")
        with ProcessPoolExecutor(asked.processes, max_tasks_per_child=1) as pool:
            for future in as_completed([pool.submit(explore, row, most) for row, most in todo]):
                done, seconds = future.result()
                said = verdict(done)
                wrong += "violated" in done
                before = pinned.get(title(done), done)
                if PinnedSetUp(done).text() != PinnedSetUp(before).text():
                    wrong += not (asked.pin or asked.again)
                    said += f", CHANGED from {before['states']:,} states, {verdict(before)}"
                if asked.pin or asked.again:
                    pinned[title(done)] = done
                    self.write(pinned)
                print(
                    f"{done['states']:>12,} {done.get('transitions', 0):>12,} "
                    f"{done.get('depth', 0):>5} {seconds:>8.1f}  {said}: {title(done)}",
                    flush=True,
                )
        print(f"{len(todo)} set-ups, {wrong} of them wrong.")
        return 1 if wrong else 0

    def todo(self, asked: argparse.Namespace, pinned: dict[str, Row]) -> list[tuple[Row, int]]:
        """What is to be explored, and how far."""
        rows = [row for row in self.setups() if all(word in title(row) for word in asked.only)]
        if asked.again:
            return [(row, asked.most) for row in rows]
        todo = []
        for row in rows:
            known = pinned.get(title(row))
            if asked.pin and (known is None or self.reaches(known, asked.most)):
                todo.append((row, asked.most))
            if not asked.pin and known is not None:
                complete = known.get("complete", True)
                todo.append((row, known["states"] + complete))
        return todo

    def reaches(self, known: Row, most: int) -> bool:
        """Is there more to see of it?"""
        return not known.get("complete", True) and known["states"] < most
