"""The record of a run: one line of JSON for everything that somebody did or saw.

All processes run on one machine, so there is one true clock: the machine's, sleep included.
Every line bears its time. Lines are appended to one file, each by a single write, so a
process that is killed has said all it said, and the record is all that the judge needs.

A line that ends something (:class:`Released`, :class:`Died`, ...) bears a time *before* the
act, one that begins something a time after it: what the record calls valid was valid.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from meshlock.live.machine import clock

Link = tuple[str, str]


now = clock.seconds
"""The machine's clock; the same for all processes, and the one that leases are told in."""


class RecordLine(msgspec.Struct, tag_field="event", omit_defaults=True):
    t: float


class SetUpLine(RecordLine, tag="set-up"):
    """The first line."""

    nodes: list[str]
    links: list[Link]
    permits: int
    lease: float
    silence: float  # how long a node that has started has no vote
    within: float  # service must resume within these seconds
    slots: list[str] = []  # the names of the permits


# -- what clients do and see: c is the client, n its request


class AskedLine(RecordLine, tag="asked"):
    c: str
    n: int
    node: str
    want: int
    priority: int
    timeout: float | None = None
    deadline: float | None = None


class Changed(RecordLine, tag="changed"):
    """A request that waits has another priority now."""

    c: str
    n: int
    priority: int


class GrantedLine(RecordLine, tag="granted"):
    """``until`` is the end of the lease in the machine's time; the agent reckoned it, by a
    clock that may run fast or slow."""

    c: str
    n: int
    want: int
    fence: int | None = None
    until: float | None = None
    permits: int | None = None  # of the pool, where that may change
    slots: list[str] = []  # the names of the permits


class RenewedLine(RecordLine, tag="renewed"):
    c: str
    n: int
    until: float


class Wrote(RecordLine, tag="wrote"):
    """From ``t`` to ``end`` a client wrote. ``outcome``: accepted, refused, or busy when the
    resource could not be reached at all. ``late`` if the client knew that it should not."""

    c: str
    n: int
    end: float
    outcome: str
    fence: int | None = None
    exclusive: bool = False
    late: bool = False


class Released(RecordLine, tag="released"):
    c: str
    n: int


class ReleasedSome(RecordLine, tag="released-some"):
    """The last of its permits, and how many are left."""

    c: str
    n: int
    left: int


class LostLine(RecordLine, tag="lost"):
    """The agent said that the grant is lost."""

    c: str
    n: int


class Expired(RecordLine, tag="expired"):
    """The lease that the client knew of has ended."""

    c: str
    n: int


class Untold(RecordLine, tag="untold"):
    """For a whole lease after its end the agent has not said that the grant is lost."""

    c: str
    n: int


class NotServed(RecordLine, tag="not-served"):
    """The request ended without a grant: timeout, refused, or the agent is gone."""

    c: str
    n: int
    why: str


# -- what is done to processes and links


class Died(RecordLine, tag="died"):
    """A client was killed, or had nothing more to do and ended."""

    c: str


class Stopped(RecordLine, tag="stopped"):
    """SIGSTOP: an agent by its node's name, or a client."""

    who: str


class Continued(RecordLine, tag="continued"):
    who: str


class Up(RecordLine, tag="up"):
    """An agent answers."""

    node: str
    rate: float = 1.0
    wiped: bool = False


class VoteLine(RecordLine, tag="vote"):
    """An agent that lost its disk says that it is a member with a vote again."""

    node: str


class Down(RecordLine, tag="down"):
    node: str


class CutLine(RecordLine, tag="cut"):
    links: list[Link]
    silent: bool = True


class Healed(RecordLine, tag="healed"):
    links: list[Link]


class ReadyLine(RecordLine, tag="ready"):
    """What an agent says of itself: can clients there be served?"""

    node: str
    ready: bool


class Resizing(RecordLine, tag="resizing"):
    """The pool is to have this number of permits; until it has, it may have these or those."""

    permits: int


class Resized(RecordLine, tag="resized"):
    permits: int


class ChangingLine(RecordLine, tag="changing"):
    """Members are removed, and added again: until that is done nobody can say who they are."""


class SettledLine(RecordLine, tag="settled"):
    """All nodes are members again."""


class FaultLine(RecordLine, tag="fault"):
    """What was just done, in one word; ``held``: permits that a killed client held."""

    kind: str
    who: str = ""
    held: int = 0


class FailedLine(RecordLine, tag="failed"):
    """A process ended by itself, or an agent failed on something: never part of the plan."""

    node: str
    why: str


class Quiet(RecordLine, tag="quiet"):
    """All faults are over, and everything is up and connected."""


class End(RecordLine, tag="end"):
    """``accepted``: the fences of all exclusive writes in the resource's own order;
    ``took_all``: nodes where a client was given all permits in the end."""

    accepted: list[int]
    took_all: list[str]


AnyLine = (
    SetUpLine
    | AskedLine
    | Changed
    | GrantedLine
    | RenewedLine
    | Wrote
    | Released
    | ReleasedSome
    | LostLine
    | Expired
    | Untold
    | NotServed
    | Died
    | Stopped
    | Continued
    | Up
    | VoteLine
    | Down
    | CutLine
    | Healed
    | ReadyLine
    | Resizing
    | Resized
    | ChangingLine
    | SettledLine
    | FaultLine
    | FailedLine
    | Quiet
    | End
)

_decoder: msgspec.json.Decoder[AnyLine] = msgspec.json.Decoder(AnyLine)


class Writer:
    """Appends lines; any number of processes may do so at once."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.encode = msgspec.json.Encoder().encode

    def write(self, line: AnyLine) -> None:
        os.write(self.file, self.encode(line) + b"\n")

    def close(self) -> None:
        os.close(self.file)


class Follower:
    """Reads what has been appended since the last time."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        self.rest = b""

    def news(self) -> list[AnyLine]:
        *whole, self.rest = (self.rest + self.file.read()).split(b"\n")
        return parse(whole)

    def close(self) -> None:
        self.file.close()


def parse(lines: Iterable[bytes | str]) -> list[AnyLine]:
    return [_decoder.decode(line) for line in lines if line]


def read(path: Path) -> list[AnyLine]:
    """The whole record in the order of time."""
    return sorted(parse(path.read_bytes().splitlines()), key=lambda line: line.t)
