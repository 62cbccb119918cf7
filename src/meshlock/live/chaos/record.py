"""The record of a run: one line of JSON for everything that a process did or saw.

All processes run on one machine, so there is one true clock: the machine's, sleep included.
Every line bears its time. Lines are appended to one file, each by a single write, so a
process that is killed has said all it said, and the record is all that the judge needs.

A line that ends something (:class:`Released`, :class:`Died`, ...) bears a time *before* the
act, one that begins something a time after it: what the record calls valid was valid.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import msgspec

from meshlock.live.chaos.majority import Link
from meshlock.live.machine import clock

RECORD = "record.jsonl"

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


# -- what clients do and see


class RequestLine(RecordLine):
    """Of a request: its client, and its number there."""

    c: str
    n: int


class NodeLine(RecordLine):
    node: str


class AskedLine(RequestLine, tag="asked"):
    node: str
    want: int
    priority: int
    timeout: float | None = None
    deadline: float | None = None


class Changed(RequestLine, tag="changed"):
    """A request that waits has another priority now."""

    priority: int


class GrantedLine(RequestLine, tag="granted"):
    """``until`` is the end of the lease in the machine's time; the agent reckoned it, by a
    clock that may run fast or slow."""

    want: int
    fence: int | None = None
    until: float | None = None
    permits: int | None = None  # of the pool, where that may change
    slots: list[str] = []  # the names of the permits


class RenewedLine(RequestLine, tag="renewed"):
    until: float


class Wrote(RequestLine, tag="wrote"):
    """From ``t`` to ``end`` a client wrote. ``outcome``: accepted, refused, or busy when the
    resource could not be reached at all. ``late`` if the client knew that it should not."""

    end: float
    outcome: str
    fence: int | None = None
    exclusive: bool = False
    late: bool = False


class Released(RequestLine, tag="released"):
    """The client gives its permits back."""


class ReleasedSome(RequestLine, tag="released-some"):
    """The last of its permits, and how many are left."""

    left: int


class LostLine(RequestLine, tag="lost"):
    """The agent said that the grant is lost."""


class Expired(RequestLine, tag="expired"):
    """The lease that the client knew of has ended."""


class Untold(RequestLine, tag="untold"):
    """For a whole lease after its end the agent has not said that the grant is lost."""


class NotServed(RequestLine, tag="not-served"):
    """The request ended without a grant: timeout, refused, or the agent is gone."""

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


class Up(NodeLine, tag="up"):
    """An agent answers."""

    rate: float = 1.0
    wiped: bool = False


class VoteLine(NodeLine, tag="vote"):
    """An agent that lost its disk says that it is a member with a vote again."""


class Down(NodeLine, tag="down"):
    pass


class CutLine(RecordLine, tag="cut"):
    links: list[Link]
    silent: bool = True


class Healed(RecordLine, tag="healed"):
    links: list[Link]


class ReadyLine(NodeLine, tag="ready"):
    """What an agent says of itself: can clients there be served?"""

    ready: bool


class Resizing(RecordLine, tag="resizing"):
    """The pool is to have this number of permits; until it has, it may have these or those."""

    permits: int


class Resized(RecordLine, tag="resized"):
    permits: int


class ChangingLine(RecordLine, tag="changing"):
    """Members are removed, and added again: until that is done it is not known who they are."""


class SettledLine(RecordLine, tag="settled"):
    """All nodes are members again."""


class FaultLine(RecordLine, tag="fault"):
    """What was just done, in one word; ``held``: permits that a killed client held."""

    kind: str
    who: str = ""
    held: int = 0


class FailedLine(NodeLine, tag="failed"):
    """A process ended by itself, or an agent failed on something: never part of the plan."""

    why: str


class Quiet(RecordLine, tag="quiet"):
    """All faults are over, and everything is up and connected."""


class End(RecordLine, tag="end"):
    """``accepted``: the fences of all exclusive writes in the resource's own order;
    ``took_all``: nodes where a client was given all permits in the end."""

    accepted: list[int]
    took_all: list[str]


ENDS = (Released, LostLine, Expired, NotServed, Died)
"""Lines after which the client neither waits nor has permits."""


def kinds(base: type[RecordLine]) -> list[Any]:
    """The classes of all lines: those that no other extends."""
    return [kind for each in base.__subclasses__() for kind in kinds(each)] or [base]


_decoder: msgspec.json.Decoder[RecordLine] = msgspec.json.Decoder(reduce(or_, kinds(RecordLine)))


class Writer:
    """Appends lines; any number of processes may do so at once."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.encode = msgspec.json.Encoder().encode

    def write(self, line: RecordLine) -> None:
        os.write(self.file, self.encode(line) + b"\n")

    def close(self) -> None:
        os.close(self.file)


class Follower:
    """Reads what has been appended since the last time."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")
        self.rest = b""

    def news(self) -> list[RecordLine]:
        *whole, self.rest = (self.rest + self.file.read()).split(b"\n")
        return parse(whole)

    def close(self) -> None:
        self.file.close()


def parse(lines: Iterable[bytes | str]) -> list[RecordLine]:
    return [_decoder.decode(line) for line in lines if line]


def read(path: Path) -> list[RecordLine]:
    """The whole record in the order of time."""
    return sorted(parse(path.read_bytes().splitlines()), key=lambda line: line.t)
