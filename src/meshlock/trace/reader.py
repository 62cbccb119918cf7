"""Read a trace line by line; whatever is wrong with it is said with the line's number."""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

from meshlock.algorithms.actor import NIL
from meshlock.algorithms.amounts import Kinds
from meshlock.errors import Refused
from meshlock.trace.setup import FORMAT
from meshlock.trace.writer import AMOUNTS

LONGEST_LINE = 16 * 1024 * 1024

T = TypeVar("T")

UNSAID: Final = -(2**62)
"""A number that a line does not say."""


class TraceLine(msgspec.Struct, rename={"sender": "from"}, gc=False):
    """An event with the keys of docs/reference/trace-format.md."""

    event: str
    t: int | float
    node: int = NIL
    client: int = UNSAID
    want: int = UNSAID
    priority: int | float = 0
    urgency: int | float = UNSAID
    deadline: float = 0
    id: int = UNSAID
    sender: Any = None
    to: int = UNSAID
    message: Any = None
    args: Any = None
    seal: Any = None
    lends: int = 0
    peer: int = UNSAID
    components: int = 1
    tokens: int = UNSAID
    free: int = UNSAID
    permits: int = UNSAID
    lent: int = UNSAID
    choice: int = NIL
    state: dict[str, Any] = {}
    fence: Any = None
    until: float = UNSAID
    slots: tuple[int, ...] = ()
    epoch: tuple[int, int, int] | None = None
    members: tuple[int, ...] | None = None
    disk: bool = True
    crash: bool = False
    chance: float = 0
    unreachable: list[int] | None = None
    resize: int = UNSAID
    add: int = UNSAID
    remove: int = UNSAID
    x: float = UNSAID
    y: float = UNSAID
    unserved: int = 0

    def counts(self) -> int | float:
        """The priority by which a request is served: a deadline makes it up to a step higher."""
        return self.priority if self.urgency == UNSAID else self.urgency


CAUSES: Final[dict[str, tuple[str, ...]]] = {
    "start": (),
    "request": ("client", "want"),
    "leave": ("client",),
    "give-back": ("client", "permits"),
    "priority": ("client",),
    "withdraw": ("client",),
    "deliver": ("id",),
    "undelivered": ("id",),
    "link-up": ("peer",),
    "link-down": ("peer",),
    "crash": (),
    "restart": (),
    "timer": (),
}
"""Lines that begin a step, and what they must say."""

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    **CAUSES,
    "send": ("id", "to"),
    "enter": ("client",),
    "recover": ("epoch",),
    "lease": ("client", "until"),
    "lease-lost": ("client",),
    "drop": ("id",),
    "move": ("x", "y"),
    "end": (),
}
OF_LEASES: Final = {"crash", "restart", "timer", "recover", "lease"}

WORDS: Final = {
    "epoch": "an epoch: a list of counter, node and boot",
    "slots": "slots: a list of numbers",
    **dict.fromkeys(("t", "priority", "urgency", "deadline", "x", "y"), "a number"),
    **dict.fromkeys(("until", "chance"), "a number"),
    **dict.fromkeys(("event", "message"), "a text"),
    **dict.fromkeys(("members", "unreachable"), "a list of nodes"),
}
"""What a key stands for, where it is no whole number."""

Size = Annotated[int, msgspec.Meta(ge=1, le=100_000_000)]


class SetupLine(msgspec.Struct):
    """Of the first line, what is relied upon without another look."""

    nodes: Size
    permits: Size | dict[str, Size]
    ageing: float = 0
    holder: int = NIL
    links: Literal["complete"] | list[tuple[int, int]] = []
    options: dict[str, Any] = {}
    tree: list[int] = []

    def wrong(self) -> str:
        """The key of a value that fits no network of this size; empty if there is none."""
        nodes = range(self.nodes)
        links = [] if self.links == "complete" else self.links
        if not all(one in nodes and other in nodes and one != other for one, other in links):
            return "links"
        return "" if all(node in nodes or node == NIL for node in self.tree) else "tree"


class BadTrace(Refused):
    """Not a trace, or a broken one; the text is one sentence for people."""


class Trace:
    """The set-up of a trace, and its events one after another.

    Nothing but the line at hand is kept, so the file may be as long as it likes.
    """

    kinds: Kinds | None = None  # of the permits, where there are several

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = self.read()
        self.number = 0
        self.setup: dict[str, Any] = self.first()
        self.nodes: int = self.setup["nodes"]

    def read(self) -> Iterator[bytes]:
        try:
            opens = gzip.open if self.path.suffix == ".gz" else Path.open
            with opens(self.path, "rb") as file:
                while line := file.readline(LONGEST_LINE + 1):
                    self.number += 1
                    if len(line) > LONGEST_LINE:
                        raise self.bad(f"is longer than {LONGEST_LINE} bytes")
                    yield line
        except (OSError, EOFError) as error:
            why = getattr(error, "strerror", None) or error
            raise BadTrace(f"Cannot read {self.path}: {why}.") from None
        except zlib.error:
            raise BadTrace(f"Cannot read {self.path}: the compressed file is damaged.") from None

    def bad(self, what: str) -> BadTrace:
        return BadTrace(f"Line {self.number} of {self.path} {what}.")

    def decode(self, line: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(line, type=kind)
        except msgspec.ValidationError as error:
            key = refused(error)
            if key in ("", "event", "t"):
                raise self.bad("is not an event (a JSON object) with 'event' and 't'") from None
            if "range" in str(error):
                raise self.bad(f"has a '{key}' that is too large") from None
            words = WORDS.get(key, "a whole number")
            about = "" if ":" in words else f" as '{key}'"
            raise self.bad(f"needs {words}{about}") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.bad("is not JSON (was the file cut short?)") from None

    def first(self) -> dict[str, Any]:
        line = next(self.lines, None)
        if line is None:
            raise BadTrace(f"{self.path} is empty: a trace starts with a line for its set-up.")
        setup = self.decode(line, dict[str, Any])
        if setup.get("meshlock") != "trace":
            raise BadTrace(f"{self.path} is not a meshlock trace: its first line is no set-up.")
        if setup.get("format") != FORMAT:
            raise BadTrace(
                f"{self.path} is in trace format {setup.get('format')}; this meshlock reads "
                f"format {FORMAT}."
            )
        try:
            wrong = msgspec.convert(setup, SetupLine).wrong()
        except msgspec.ValidationError as error:
            wrong = refused(error)
        if wrong:
            raise self.bad(f"has no valid '{wrong}'")
        if isinstance(setup["permits"], dict):
            try:
                self.kinds = Kinds(setup["permits"])
            except Refused as refusal:
                raise self.bad(f"has no valid 'permits': {refusal}") from None
            setup["permits"] = self.kinds.permits
        return setup

    def events(self) -> Iterator[TraceLine]:
        before = float("-inf")
        for text in self.lines:
            line = self.event(text)
            if line.t < before:
                raise self.bad(f"goes back in time, from {before:g} to {line.t:g}")
            before = line.t
            yield line

    def event(self, text: bytes) -> TraceLine:
        """A line, with what its kind must say."""
        line = self.decode(text, TraceLine) if self.kinds is None else self.by_kind(text)
        for key in ("t", "priority", "urgency"):
            if abs(getattr(line, key)) > sys.float_info.max:
                raise self.bad(f"has a '{key}' that is too large")
        for node, least in ((line.node, NIL), (line.peer, 0)):
            if not least <= node < self.nodes and node != UNSAID:
                raise self.bad(f"names a node that does not exist: {node}")
        kind = line.event
        if kind not in NEEDS:
            raise self.bad(f"has an unknown kind of event: {kind}")
        if kind in OF_LEASES and not isinstance(self.setup.get("recovery"), dict):
            raise self.bad(f"('{kind}') needs a set-up with 'recovery'")
        for key in NEEDS[kind]:
            if getattr(line, key) in (None, UNSAID):
                words = WORDS.get(key, "a whole number")
                raise self.bad(f"('{kind}') needs {words} as '{key}'")
        if kind in CAUSES and line.node < 0:
            raise self.bad(f"('{kind}') needs a node")
        return line

    def written(self, amount: int) -> str:
        """An amount of permits, as people write it."""
        return str(amount) if self.kinds is None else self.kinds.write(amount)

    def by_kind(self, text: bytes) -> TraceLine:
        """A line whose amounts say how many of each kind."""
        assert self.kinds is not None
        said = self.decode(text, dict[str, Any])
        for key in AMOUNTS:
            if isinstance(said.get(key), dict):
                try:
                    said[key] = self.kinds.total(said[key])
                except Refused as refusal:
                    raise self.bad(f"has no valid '{key}': {refusal}") from None
        return self.decode(msgspec.json.encode(said), TraceLine)

    def links(self) -> list[tuple[int, int]] | None:
        """The links of the set-up, none if it says nothing of them; None: all are linked."""
        said = self.setup.get("links", [])
        return None if said == "complete" else [(one, other) for one, other in said]


def refused(error: msgspec.ValidationError) -> str:
    """The key of the value that is refused; empty if it is the whole line."""
    found = re.search(r"`\$\.(\w+)|field `(\w+)`", str(error))
    return (found[1] or found[2]) if found else ""
