"""The ranges of everything that comes in: one declaration each, for every edge.

A value is checked where somebody gives it (library, socket, HTTP, flags, configuration), with a
sentence that names it as it was given, and again where it is read from a frame or a file, by
a type with the same range. What has passed can be encoded and
counted with: nothing here comes near 64 bits.

The algorithms themselves know no such limits; the laboratory may go beyond them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from numbers import Real
from operator import index
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from meshlock.algorithms.recovery.records import FENCE_BITS
from meshlock.errors import Refused
from meshlock.live.machine import labels

LETTERS = "use 1 to 64 letters, digits, '.', '_' or '-'"
NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"  # what nodes and pools may be called
LONGEST_NAME = 64
MOST_NAMED = 1000
MOST_NODES = 1024  # of a mesh; and a node has at most this number of links
Kind = TypeVar("Kind")

SHOWN = 40  # characters of a wrong value that are shown


class Range(NamedTuple):
    name: str
    least: int | float
    most: int | float
    meaning: str
    unit: str = ""

    @property
    def meta(self) -> msgspec.Meta:
        """For the type of such a value in a frame, a file or a body."""
        return msgspec.Meta(ge=self.least, le=self.most)

    def __str__(self) -> str:
        return f"{written(self.least)} to {written(self.most)}{self.unit}"

    def whole(self, value: object, field: str = "") -> int:
        """The value as a plain integer; ``field`` is what the user called it."""
        if type(value) is int and self.least <= value <= self.most:
            return value
        field = field or self.name
        try:
            if isinstance(value, bool):
                raise TypeError
            number = int(index(value))  # type: ignore[arg-type]
        except TypeError:
            raise Refused(
                f"{field} must be a whole number, not {shown(value)}: use {self}."
            ) from None
        if not self.least <= number <= self.most:
            raise Refused(f"{field} {shown(number)} is out of range: use {self}.")
        return number

    def real(self, value: object, field: str = "") -> float:
        field = field or self.name
        if isinstance(value, bool) or not isinstance(value, Real):
            raise Refused(f"{field} must be a number, not {shown(value)}: use {self}.")
        try:
            number = float(value)
        except OverflowError:
            number = inf
        if not self.least <= number <= self.most:  # so that "not a number" is refused, too
            raise Refused(f"{field} {shown(value)} is out of range: use {self}.")
        return number


# -- what people say --------------------------------------------------------------------------

PRIORITY = Range("priority", -(2**31), 2**31 - 1, "priority of a request")
WANT = Range("want", 1, 100_000, "permits that a request asks for")
PERMITS = Range("permits", 1, 100_000, "permits of a pool")
LEASED_PERMITS = Range(
    "permits (with members)",
    1,
    1000,
    "permits of a pool with members: its ledger must fit into a frame",
)
PATIENCE = Range("patience", 1, 1_000_000, "grants that count as one step of priority")
DEADLINE = Range("deadline", 0.0, 31_536_000.0, "when a request should be granted, from now", " s")
TIMEOUT = Range("timeout", 0.0, 1e9, "how long a request waits", " s")
TTL = Range("ttl", 0.001, 1e9, "how long a grant over HTTP lasts unless it is renewed", " s")
LEASE = Range("lease", 0.3, 86_400.0, "how long permits are held unless they are renewed", " s")
HEARTBEAT = Range(
    "heartbeat", 0.001, 3600.0, "seconds without a message after which a heartbeat is sent", " s"
)
DEAD = Range("dead", 0.001, 3600.0, "seconds without a message after which a link has failed", " s")
CLOCK_RATE = Range("clock-rate", 0.01, 100.0, "how fast the clock of leases runs, for tests")
CUT = Range("seconds (of a cut)", 1.0, 600.0, "how long the page cuts a link", " s")
MEMBERS = Range("members", 1, 101, "how many members a pool with leases has")
STAY = Range(
    "promote-after, replace-after",
    0.1,
    1e9,
    "after how long a node becomes a member, or an unreachable member is replaced",
    " s",
)
POOLS = Range("pools", 1, 100_000, "pools of the programs of a node, and as many of its peers")
BODY = Range("body (over HTTP)", 0, 65_536, "length of the body of an HTTP request", " bytes")
MIN_LINKS = Range(
    "min-links", 0, 16, "how many links a node has at least, if others can be reached"
)
TRACE_LIMIT = Range(
    "trace-limit", 100_000, 10**12, "length of the trace of a pool at a node", " bytes"
)
NAME_LENGTH = Range("name", 1, LONGEST_NAME, "the name of a node or a pool", " characters")

# -- what nodes say ---------------------------------------------------------------------------

COUNT = Range("count", 0, 2**53 - 1, "what is counted: messages, grants, hops, fences, boots")
EPOCH = Range("epoch", 0, 2 ** (53 - FENCE_BITS) - 1, "an epoch: with its grants it makes a fence")
EPOCH_AHEAD = Range(
    "epoch ahead",
    0,
    2**20,
    "how far an epoch may be ahead of the seconds that the wall clock counts for it",
)
EPOCH_GRANTS = Range("grants of an epoch", 0, 2**FENCE_BITS - 1, "grants in one epoch")
HOP = Range("hop", -2, 2**53 - 1, "a hop of a token; below 0 there is none")
HEIGHT = Range("height", -(2**53), 2**53 - 1, "how high a node is, where nodes have heights")
URGENCY = Range("urgency", -(2**53), 2**53 - 1, "priority in grants, with what a deadline counts")
RANK = Range(
    "rank", -(2**62), 2**62, "the place of a request: priority times patience, less grants"
)
SHARE = Range("permits in a message", 0, 100_000, "permits, or none")
FREE = Range(
    "free permits of a token",
    -100_000,
    100_000,
    "permits that are free; below 0 if more are in use than there are",
)
NODE = Range("node", -1, 2**63 - 1, "a node: 63 bits of its name's hash, or none")
GENERATION = Range("generation", 0, 2**30, "how often a link has come up")
CLOCK = Range("clock", -(2**62), 2**62, "a clock, or a time under way, in ns or µs")
SPAN = Range("time under way", 0, 2**62, "a time that has passed, in ns")

DECLARED: dict[str, Range] = {
    one.name: one for one in list(globals().values()) if isinstance(one, Range)
}
"""As the documentation lists them."""


Name = Annotated[str, msgspec.Meta(pattern=rf"\A{NAME}\Z")]
Note = Annotated[str, msgspec.Meta(max_length=labels.LONGEST_NOTE)]
Word = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
Host = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9._:-]{0,253}\Z")]
Where = Annotated[str, msgspec.Meta(pattern=r"\A[]A-Za-z0-9._:[-]{1,255}:[0-9]{1,5}\Z")]
Priority = Annotated[int, PRIORITY.meta]
Want = Annotated[int, WANT.meta]
Urgency = Annotated[int, URGENCY.meta]
Deadline = Annotated[float, DEADLINE.meta]
Timeout = Annotated[float, TIMEOUT.meta]
Ttl = Annotated[float, TTL.meta]
CutFor = Annotated[float, CUT.meta]
Permits = Annotated[int, PERMITS.meta]
Share = Annotated[int, SHARE.meta]
Free = Annotated[int, FREE.meta]
Count = Annotated[int, COUNT.meta]
EpochCount = Annotated[int, EPOCH.meta]
EpochGrants = Annotated[int, EPOCH_GRANTS.meta]
Hop = Annotated[int, HOP.meta]
Level = Annotated[int, HEIGHT.meta]
Rank = Annotated[int, RANK.meta]
NodeNumber = Annotated[int, NODE.meta]
Generation = Annotated[int, GENERATION.meta]
Clock = Annotated[int, CLOCK.meta]
Span = Annotated[int, SPAN.meta]

# -- checks -----------------------------------------------------------------------------------


def named_permits(value: object, field: str = "permits") -> tuple[int, tuple[str, ...]]:
    """How many permits, and their names if they have some: a number, or a list of names."""
    if not isinstance(value, list | tuple):
        return PERMITS.whole(value, field), ()
    names = tuple([name(one, "permit") for one in value])
    if not 1 <= len(names) <= MOST_NAMED:
        raise Refused(f"{field} names {len(names)} permits: name 1 to {MOST_NAMED}.")
    for one in names:
        if names.count(one) > 1:
            raise Refused(f"{field} names {shown(one)} twice: give every permit its own name.")
    return len(names), names


def label(value: object, field: str = "label") -> str:
    if not isinstance(value, str):
        raise Refused(f"{field} must be a text, not {shown(value)}.")
    return value


def timeout(value: object, field: str = "timeout") -> float | None:
    """None: for ever."""
    return None if value is None else TIMEOUT.real(value, field)


def options(given: Mapping[str, str]) -> None:
    """Options are texts; of those that are numbers only the patience takes part in ranks."""
    text = given.get("patience")
    if text is not None and text.isdecimal():
        PATIENCE.whole(int(text[:SHOWN]))


def name(value: object, what: str = "pool") -> str:
    """``what`` it is the name of: a node, a pool."""
    if not isinstance(value, str) or not re.fullmatch(NAME, value):
        raise Refused(f"{shown(value)} is not a valid name for a {what}: {LETTERS}.")
    return value


CHECKS: dict[str, Callable[[object], object]] = {
    "pool": name,
    "want": WANT.whole,
    "priority": PRIORITY.whole,
    "deadline": lambda value: None if value is None else DEADLINE.real(value),
    "timeout": timeout,
    "ttl": TTL.real,
    "seconds": lambda value: CUT.real(value, "seconds"),
}


def checked(field: str, value: object) -> object:
    """The value of this field as a plain one, if it is in range."""
    if field == "label":
        return label(value)
    return CHECKS[field](value) if field in CHECKS else value


def decoded(data: bytes, kind: type[Kind], what: str = "a request") -> Kind:
    """Of JSON; if a field is out of range, the sentence is the same as everywhere."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        given = loosely(data)
        if given:  # what is no JSON must not pass for a request that says nothing
            with suppress(msgspec.ValidationError):
                return msgspec.convert({name: unwritten(it) for name, it in given.items()}, kind)
        for field, check in CHECKS.items():
            if field in given:
                check(given[field])
        raise Refused(f"Not {what}: {in_words(error, kind)}.") from None


def unwritten(value: object) -> object:
    """In JSON 2.0 is as whole a number as 2."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def loosely(data: bytes) -> dict[str, Any]:
    """What can be read of a request that is none."""
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return {}


# -- sentences --------------------------------------------------------------------------------

TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def in_words(error: Exception, *kinds: type) -> str:
    """What is wrong with a body or a file, for those who do not know the types of msgspec; with
    the fields that these ``kinds`` have."""
    what, _, place = str(error).partition(" - at `$")
    subject = place.strip("`.") or "it"
    unknown = re.fullmatch("Object contains unknown field `(.*)`", what)
    if unknown:
        from difflib import get_close_matches

        fields = [name for kind in kinds for name in getattr(kind, "__struct_encode_fields__", ())]
        close = get_close_matches(unknown[1], fields, 1)
        hint = f"did you mean '{close[0]}'" if close else f"there are {', '.join(fields)}"
        if unknown[1] in fields:  # of the other kind
            hint = f"write it {'at the top of the file' if place else 'below [pools.NAME]'}"
            return f"'{unknown[1]}' is in the wrong place: {hint}"
        return f"there is no '{unknown[1][:SHOWN]}'; {hint}"
    missing = re.fullmatch("Object missing required field `(.*)`", what)
    if missing:
        return f"'{missing[1]}' is missing"
    if not what.startswith("Expected "):
        return str(error)
    words = re.sub(
        r"`([\w| ]+)`",
        lambda found: " or ".join(TYPES.get(one, one) for one in found[1].split(" | ")),
        what.removeprefix("Expected "),
    )
    return f"{subject} must be {words.replace(', got ', ', not ')}"


def written(number: int | float) -> str:
    if isinstance(number, float):
        return f"{number:,g}" if number < 1e6 else f"{number:,.0f}"
    for power in (53, 62, 63, 30, 23, 20, 31):
        for least, text in ((2**power - 1, f"2^{power} - 1"), (2**power, f"2^{power}")):
            if abs(number) == least and power != 31:
                return text if number > 0 else f"-{text}"
    return f"{number:,}"


def shown(value: object) -> str:
    """As much of it as a sentence can bear."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**SHOWN:
        return "with too many digits"
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
