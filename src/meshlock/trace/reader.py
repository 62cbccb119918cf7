"""Read a trace line by line; whatever is wrong with it is said with the line's number."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from meshlock.errors import Refused
from meshlock.trace.setup import FORMAT

LONGEST_LINE = 16 * 1024 * 1024

COUNTS = ("tokens", "free", "permits", "lent")
"""Whole numbers of any event."""


class BadTrace(Refused):
    """Not a trace, or a broken one; the text is one sentence for people."""


class Trace:
    """The set-up of a trace, and its events one after another.

    Nothing but the line at hand is kept, so the file may be as long as it likes.
    """

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

    def decode(self, line: bytes) -> dict[str, Any]:
        try:
            event = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.bad("is not JSON (was the file cut short?)") from None
        if not isinstance(event, dict):
            raise self.bad("is not an event (a JSON object)")
        return event

    def first(self) -> dict[str, Any]:
        line = next(self.lines, None)
        if line is None:
            raise BadTrace(f"{self.path} is empty: a trace starts with a line for its set-up.")
        setup = self.decode(line)
        if setup.get("meshlock") != "trace":
            raise BadTrace(f"{self.path} is not a meshlock trace: its first line is no set-up.")
        if setup.get("format") != FORMAT:
            raise BadTrace(
                f"{self.path} is in trace format {setup.get('format')}; this meshlock reads "
                f"format {FORMAT}."
            )
        for key in ("nodes", "permits"):
            if not isinstance(setup.get(key), int) or not 0 < setup[key] <= 100_000_000:
                raise self.bad(f"has no valid '{key}'")
        nodes: int = setup["nodes"]
        valid = {
            "ageing": is_number(setup.get("ageing", 0)),
            "holder": isinstance(setup.get("holder", -1), int),
            "links": are_links(setup.get("links", []), nodes),
            "options": isinstance(setup.get("options", {}), dict),
            "tree": are_nodes(setup.get("tree", []), -1, nodes),
        }
        for key in [key for key in valid if not valid[key]]:
            raise self.bad(f"has no valid '{key}'")
        return setup

    def events(self) -> Iterator[dict[str, Any]]:
        before = float("-inf")
        for line in self.lines:
            event = self.decode(line)
            kind, time = event.get("event"), event.get("t")
            if not isinstance(kind, str) or not isinstance(time, int | float):
                raise self.bad("lacks 'event' or 't'")
            if not is_number(time):
                raise self.bad("has a 't' that is too large")
            if time < before:
                raise self.bad(f"goes back in time, from {before:g} to {time:g}")
            before = time
            node = event.get("node", -1)
            if not isinstance(node, int) or not -1 <= node < self.nodes:
                raise self.bad(f"names a node that does not exist: {node}")
            for key in COUNTS:
                if key in event:
                    self.whole(event, key)
            for key in ("priority", "urgency", "deadline"):
                if not is_number(event.get(key, 0)):
                    raise self.bad(f"('{kind}') needs a number as '{key}'")
            yield event

    def whole(self, event: dict[str, Any], key: str) -> int:
        """A whole number that this event must have."""
        value = event.get(key)
        if not isinstance(value, int):
            raise self.bad(f"('{event['event']}') needs a whole number as '{key}'")
        return value

    def number_at(self, event: dict[str, Any], key: str) -> float:
        value = event.get(key)
        if not isinstance(value, int | float):
            raise self.bad(f"('{event['event']}') needs a number as '{key}'")
        return float(value)

    def other_node(self, event: dict[str, Any], key: str) -> int:
        """Another node than that of the step."""
        node = self.whole(event, key)
        if not 0 <= node < self.nodes:
            raise self.bad(f"names a node that does not exist: {node}")
        return node

    def links(self) -> list[tuple[int, int]] | None:
        """The links of the set-up, none if it says nothing of them; None: all are linked."""
        said = self.setup.get("links", [])
        return None if said == "complete" else [(one, other) for one, other in said]


def is_number(value: object) -> bool:
    """One to calculate with, so that it may be no larger than a float."""
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def are_nodes(value: object, least: int, nodes: int) -> bool:
    return isinstance(value, list) and all(
        type(node) is int and least <= node < nodes for node in value
    )


def are_links(value: object, nodes: int) -> bool:
    return value == "complete" or (
        isinstance(value, list)
        and all(are_nodes(pair, 0, nodes) and len(pair) == 2 for pair in value)
        and all(one != other for one, other in value)
    )
