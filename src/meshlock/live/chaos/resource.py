"""What the permits protect: a SQLite database that refuses a lower fence.

What can a resource for k permits refuse? With k = 1 the answer is known: whatever is lower
than the highest fence it has seen. With more, up to k grants are valid at once and their
fences interleave, so a lower fence alone proves nothing. Nor can slots help: permits are
alike, a grant does not say *which* two of three it has, and a slot whose last writer died
cannot be told from one whose writer is still at work. What fences do order, for every k, is
a grant of **all** k permits: while it is valid no other is, so the next such grant has a
higher fence, and whatever comes lower afterwards is late.

Hence one row that only grants of all k permits write, refused if its fence is lower than the
row's; and a journal into which every grant writes, which refuses nothing. Whether grants of
fewer permits overlapped wrongly is for the judge, who knows the time of everything.

Each write is one short transaction. A process that is stopped in the middle of one locks out
the others until it goes on, as in any database; they are told *busy*, which is no verdict.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

PATIENCE = 0.1
"""Seconds to wait for another's transaction."""

ACCEPTED, REFUSED, BUSY = "accepted", "refused", "busy"


class Resource:
    def __init__(self, folder: Path) -> None:
        self.base = sqlite3.connect(
            folder / "resource.sqlite", timeout=PATIENCE, isolation_level=None
        )
        self.base.execute("PRAGMA synchronous = OFF")

    @classmethod
    def make(cls, folder: Path) -> Resource:
        resource = cls(folder)
        resource.base.execute("PRAGMA journal_mode = WAL")
        resource.base.execute("CREATE TABLE exclusive (fence INTEGER, client TEXT)")
        resource.base.execute("INSERT INTO exclusive VALUES (0, '')")
        resource.base.execute(
            "CREATE TABLE journal (number INTEGER PRIMARY KEY AUTOINCREMENT,"
            " fence INTEGER, client TEXT, want INTEGER, exclusive INTEGER)"
        )
        return resource

    def write(self, fence: int, client: str, want: int, exclusive: bool) -> str:
        try:
            self.base.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return BUSY
        accepted = True
        if exclusive:
            done = self.base.execute(
                "UPDATE exclusive SET fence = ?, client = ? WHERE fence <= ?",
                (fence, client, fence),
            )
            accepted = done.rowcount == 1
        if accepted:
            self.base.execute(
                "INSERT INTO journal (fence, client, want, exclusive) VALUES (?, ?, ?, ?)",
                (fence, client, want, exclusive),
            )
        self.base.execute("COMMIT")
        return ACCEPTED if accepted else REFUSED

    def accepted(self) -> list[int]:
        """The fences of all exclusive writes, in the order in which they were accepted."""
        rows = self.base.execute("SELECT fence FROM journal WHERE exclusive ORDER BY number")
        return [fence for (fence,) in rows]

    def close(self) -> None:
        self.base.close()
