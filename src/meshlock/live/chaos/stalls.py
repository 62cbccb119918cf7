"""Times without a grant, and how much of them nothing excuses.

A stall lies between two grants. Excused is what no algorithm could help: no quorum of the
members is awake, connected and past its silence; no client that is awake in that part waits; or
clients hold permits so long that what is asked for is not free, by the smallest number of permits
that there may be; or members are being changed. A new fault starts the clock again, for it may undo
what was done against the one before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from meshlock.live.chaos import record as lines
from meshlock.live.chaos.majority import Link, able, parts
from meshlock.live.chaos.record import RecordLine, SetUpLine


class Stall(msgspec.Struct):
    begin: float
    end: float
    majority: bool  # all the time
    idle: float = 0.0  # the longest stretch with no excuse but further faults
    inexcusable: float = 0.0  # the longest stretch with none at all
    waiting: list[str] = []

    @property
    def seconds(self) -> float:
        return self.end - self.begin


class StallState:
    """What is the case, as the record unfolds."""

    def __init__(self, set_up: SetUpLine) -> None:
        self.set_up = set_up
        self.up: dict[str, float] = {}  # since when
        self.stopped: set[str] = set()
        self.voteless: set[str] = set()  # they lost their disks
        self.cut: set[Link] = set()
        self.pending: dict[str, lines.AskedLine] = {}  # by client: it asks for one thing at a time
        self.open: dict[str, int] = {}  # by client: permits it has not released
        self.part: set[str] = set()  # where a majority is
        self.sizes = {set_up.permits}  # the numbers of permits that there may be
        self.changing = False  # members

    def follow(self, record: Sequence[RecordLine]) -> Iterator[tuple[float, RecordLine | None]]:
        """The moments of the record, each when it has come."""
        for time, line in moments(record, self.set_up.silence):
            self.take_moment(time, line)
            yield time, line

    def take_moment(self, time: float, line: RecordLine | None) -> None:
        if line is not None:
            self.take(line)
        if line is None or isinstance(line, CHANGES):
            self.find_majority(time)

    def take(self, line: RecordLine) -> None:
        if isinstance(line, lines.AskedLine):
            self.pending[line.c] = line
        elif isinstance(line, lines.GrantedLine):
            self.pending.pop(line.c, None)
            self.open[line.c] = line.want
        elif isinstance(line, lines.ENDS):
            self.pending.pop(line.c, None)
            self.open.pop(line.c, None)
        elif isinstance(line, lines.Stopped):
            self.stopped.add(line.who)
        elif isinstance(line, lines.Continued):
            self.stopped.discard(line.who)
        elif isinstance(line, lines.Up):
            self.up[line.node] = line.t
            self.voteless |= {line.node} if line.wiped else set()
        elif isinstance(line, lines.VoteLine):
            self.voteless.discard(line.node)
        elif isinstance(line, lines.Down):
            self.up.pop(line.node, None)
            self.stopped.discard(line.node)
        elif isinstance(line, lines.CutLine):
            self.cut.update(line.links)
        elif isinstance(line, lines.Healed):
            self.cut.difference_update(line.links)
        elif isinstance(line, lines.ReleasedSome):
            self.open[line.c] = line.left
        elif isinstance(line, lines.Resizing):
            self.sizes.add(line.permits)
        elif isinstance(line, lines.Resized):
            self.sizes = {line.permits}
        elif isinstance(line, lines.ChangingLine | lines.SettledLine):
            self.changing = isinstance(line, lines.ChangingLine)

    def is_as_made(self) -> bool:
        """Does the pool have the members and permits with which it was made?"""
        return not self.changing and self.sizes == {self.set_up.permits}

    def find_majority(self, time: float) -> None:
        """Where is a majority?"""
        without = self.without_vote(time)
        self.part = able(self.set_up.nodes, self.awake(), self.whole(), without)

    def without_vote(self, time: float) -> set[str]:
        """Who has just started, or lost its disk."""
        since = time - self.set_up.silence
        return {node for node, began in self.up.items() if began > since} | self.voteless

    def awake(self) -> list[str]:
        return [one for one in self.set_up.nodes if one in self.up and one not in self.stopped]

    def whole(self) -> list[Link]:
        return [link for link in self.set_up.links if link not in self.cut]

    def linked(self, node: str) -> set[str]:
        """The part of the network that it is in."""
        return parts(self.awake(), self.whole()).get(node, {node})

    def could_have(self, nodes: Collection[str]) -> list[lines.AskedLine]:
        """What is asked for there, if all of it is free: the one whose turn it is may want more
        than another."""
        free = min(self.sizes) - sum(self.open.values())
        waiting = [
            asked
            for asked in self.pending.values()
            if asked.node in nodes and asked.c not in self.stopped
        ]
        return waiting if max((asked.want for asked in waiting), default=0) <= free else []

    def inexcusable(self) -> list[lines.AskedLine]:
        return [] if self.changing else self.could_have(self.part)


CHANGES = (
    lines.Stopped,
    lines.Continued,
    lines.Up,
    lines.Down,
    lines.CutLine,
    lines.Healed,
    lines.VoteLine,
)


def stalls(record: Sequence[RecordLine]) -> list[Stall]:
    """From each grant to the next, those too short to matter included."""
    set_up = record[0]
    assert isinstance(set_up, SetUpLine)
    state = StallState(set_up)
    found: list[Stall] = []
    stall = Stall(set_up.t, set_up.t, False)
    since: float | None = None  # no excuse since then
    idle_since: float | None = None
    for time, line in moments(record, set_up.silence):
        if since is not None and time - since > stall.inexcusable:
            stall.inexcusable = time - since
            stall.waiting = sorted(f"{asked.c}/{asked.n}" for asked in state.inexcusable())
        if idle_since is not None:
            stall.idle = max(stall.idle, time - idle_since)
        state.take_moment(time, line)
        if isinstance(line, lines.GrantedLine | lines.End):
            stall.end = time
            found.append(stall)
            stall = Stall(time, time, True)
            since = idle_since = None
        stall.majority = stall.majority and bool(state.part)
        if not state.inexcusable():
            since = idle_since = None
            continue
        idle_since = time if idle_since is None else idle_since
        if isinstance(line, lines.FaultLine):
            since = None
        elif since is None:
            since = time
    return found


def moments(record: Sequence[RecordLine], silence: float) -> list[tuple[float, RecordLine | None]]:
    """The record, and the moments in between at which a node that started gets its vote."""
    found: list[tuple[float, RecordLine | None]] = [(line.t, line) for line in record]
    end = record[-1].t
    for line in record:
        if isinstance(line, lines.Up) and line.t + silence < end:
            found.append((line.t + silence, None))
    return sorted(found, key=lambda moment: moment[0])
