"""What the record proves, judged from the record alone.

A grant is **valid** from the moment its client has read it until the client gives it back,
hears that it is lost, dies, or reaches the end of the last lease it was told of; whichever
comes first. A client whose agent died goes on being valid until then.

:data:`RULES` has the properties. A rule yields the moments at which it finds one violated, each
with a sentence; its docstring says what must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from meshlock.algorithms.recovery.records import FENCE_BITS, MOST_GRANTS
from meshlock.algorithms.steps import step
from meshlock.live.chaos import record as lines
from meshlock.live.chaos.readiness import Readiness
from meshlock.live.chaos.record import RecordLine, SetUpLine
from meshlock.live.chaos.resource import REFUSED
from meshlock.live.chaos.stalls import CHANGES, StallState, stalls
from meshlock.properties.waits import Overtaking

Findings = Iterator[tuple[float, str]]


class RecordViolation(msgspec.Struct):
    property: str
    at: float  # seconds since the beginning of the record
    sentence: str


NEVER = float("inf")


class Use(msgspec.Struct):
    """One request and what became of it."""

    c: str
    n: int
    node: str
    want: int
    asked: float
    granted: float = NEVER
    fence: int | None = None
    slots: list[str] = []
    ended: float = NEVER  # released, lost, over, or refused
    permits: int | None = None  # of the pool when it was granted
    leases: list[tuple[float, float]] = []  # from when, until when
    parts: list[tuple[float, int]] = []  # when some were released, and how many were left

    def held(self, time: float) -> int:
        """How many of its permits it had then, if it was valid."""
        return min([left for when, left in self.parts if when <= time], default=self.want)

    def named(self, time: float) -> set[str]:
        return set(self.slots[: self.held(time)])

    @property
    def name(self) -> str:
        return f"{self.c}/{self.n} ({self.want}, fence {self.fence})"

    @property
    def spans(self) -> list[tuple[float, float]]:
        """When it was valid: one of its leases ran, and the grant had not ended."""
        merged: list[tuple[float, float]] = []
        for begin, until in self.leases:
            end = min(until, self.ended)
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            elif begin < end:
                merged.append((begin, end))
        return merged


def uses(record: Sequence[RecordLine]) -> list[Use]:
    """All requests, in the order in which they were made."""
    found: dict[tuple[str, int], Use] = {}
    last: dict[str, Use] = {}
    for line in record:
        if isinstance(line, lines.AskedLine):
            use = Use(line.c, line.n, line.node, line.want, line.t)
            found[line.c, line.n] = last[line.c] = use
        elif isinstance(line, lines.Died):
            if line.c in last:
                last[line.c].ended = min(last[line.c].ended, line.t)
        elif isinstance(line, lines.RequestLine):
            use = found[line.c, line.n]
            if isinstance(line, lines.GrantedLine):
                use.granted, use.fence, use.permits = line.t, line.fence, line.permits
                use.slots = line.slots
                use.leases.append((line.t, NEVER if line.until is None else line.until))
            elif isinstance(line, lines.RenewedLine):
                use.leases.append((line.t, line.until))
            elif isinstance(line, lines.ReleasedSome):
                use.parts.append((line.t, line.left))
            elif isinstance(line, lines.ENDS):
                use.ended = min(use.ended, line.t)
    return list(found.values())


class RecordVerdict:
    """A record in the order of time, what its requests and stalls were, and what it violates."""

    def __init__(self, record: Sequence[RecordLine]) -> None:
        set_up = record[0]
        assert isinstance(set_up, SetUpLine)
        self.record = record
        self.set_up = set_up
        self.uses = uses(record)
        self.granted = [use for use in self.uses if use.granted < NEVER]
        self.stalls = stalls(record)
        self.violations = [
            RecordViolation(name, round(time - set_up.t, 3), sentence)
            for name, rules in RULES.items()
            for rule in rules
            for time, sentence in rule(self)
        ]

    @property
    def violated(self) -> list[str]:
        """The names of the properties."""
        return list(dict.fromkeys(violation.property for violation in self.violations))

    def follow(self) -> Iterator[tuple[float, RecordLine | None, StallState]]:
        """The moments of the record, and what is the case when each has come."""
        state = StallState(self.set_up)
        for time, line in state.follow(self.record):
            yield time, line, state


judge = RecordVerdict


def entries(verdict: RecordVerdict) -> Iterator[tuple[float, Use, list[Use]]]:
    """The moments at which a grant becomes valid, and all that are valid then."""
    moments = [
        (time, change, use)
        for use in verdict.uses
        for span in use.spans
        for time, change in ((span[0], 1), (span[1], -1))
    ]
    valid: dict[tuple[str, int], Use] = {}
    for time, change, use in sorted(moments, key=lambda moment: moment[:2]):  # ends come first
        if change < 0:
            valid.pop((use.c, use.n), None)
        else:
            valid[use.c, use.n] = use
            yield time, use, list(valid.values())


def too_many(verdict: RecordVerdict) -> Findings:
    """No client is let in while more permits would be valid than there are by then; unless it is
    told how many that is, there are as many as at first."""
    for time, use, valid in entries(verdict):
        total = sum(other.held(time) for other in valid)
        most = use.permits or verdict.set_up.permits
        if total > most:
            names = ", ".join(other.name for other in valid)
            yield time, f"{total} of {most} permits are valid: {names}"


def unwanted(verdict: RecordVerdict) -> Findings:
    """The number of permits by which a client is let in is one that the pool was to have."""
    kinds = (SetUpLine, lines.Resizing)
    wanted = {line.permits for line in verdict.record if isinstance(line, kinds)}
    for use in verdict.granted:
        if use.permits is not None and use.permits not in wanted:
            sentence = f"{use.name} goes by {use.permits} permits, which the pool was never to have"
            yield use.granted, sentence


def twice_named(verdict: RecordVerdict) -> Findings:
    """Where permits have names, no two valid grants name the same."""
    for time, use, valid in entries(verdict):
        for other in valid:
            shared = sorted(use.named(time) & other.named(time))
            if other is not use and shared:
                yield time, f"{use.name} and {other.name} both have {', '.join(shared)}"


def misnamed(verdict: RecordVerdict) -> Findings:
    """Every grant names as many of the permits as it has."""
    names = set(verdict.set_up.slots)
    for use in verdict.granted if names else []:
        if len(names.intersection(use.slots)) != use.want or len(use.slots) != use.want:
            yield use.granted, f"{use.name} names {', '.join(use.slots) or 'no permit'}"


def disordered(verdict: RecordVerdict) -> Findings:
    """No two grants have the same fence; and if one was in its client's hands before another was
    asked for, its fence is lower. (Between those two moments only the agents know when a grant was
    made, so of grants that overlap nothing is said.)"""
    granted = sorted(
        [(use.granted, use.fence, use) for use in verdict.granted if use.fence],
        key=lambda grant: grant[0],
    )
    owner: dict[int, Use] = {}
    for time, fence, use in granted:
        if fence in owner:
            yield time, f"{use.name} has the fence of {owner[fence].name}"
        owner[fence] = use
    highest: tuple[int, Use] | None = None
    place = 0
    for use in verdict.uses:  # in the order of their asking
        while place < len(granted) and granted[place][0] < use.asked:
            _, fence, earlier = granted[place]
            if highest is None or fence > highest[0]:
                highest = (fence, earlier)
            place += 1
        if highest is not None and use.fence is not None and use.fence < highest[0]:
            yield use.granted, f"{use.name} was asked for when {highest[1].name} was held already"


def resource_wrong(verdict: RecordVerdict) -> Findings:
    """Fences of exclusive writes never fall, in the order in which the resource accepted them; and
    none was refused to a client whose grant was valid from before to after."""
    known = {(use.c, use.n): use for use in verdict.uses}
    for line in verdict.record:
        if isinstance(line, lines.End):
            for before, after in pairwise(line.accepted):
                if after < before:
                    yield line.t, f"it accepted {after} after {before}"
        elif isinstance(line, lines.Wrote) and line.outcome == REFUSED:
            use = known[line.c, line.n]
            if any(begin <= line.t and line.end <= end for begin, end in use.spans):
                yield line.t, f"{use.name} was valid, and was refused"


def too_long(verdict: RecordVerdict) -> Findings:
    """While a majority of the members was awake and connected, and nothing new was done to it, no
    more than ``within`` seconds passed without a grant although a client there waited and
    everything that was asked for was free."""
    within = verdict.set_up.within
    for stall in verdict.stalls:
        if stall.inexcusable > within:
            yield (
                stall.end,
                f"no grant for {stall.inexcusable:.1f} s (promised: {within:g} s) "
                f"although {', '.join(stall.waiting)} waited, permits were free and a "
                "quorum was up",
            )


def voteless(verdict: RecordVerdict) -> Findings:
    """A member that lost its disk counts again when it says that it has a vote, and where the
    others are a quorum it has one within that time."""
    within = verdict.set_up.within
    since: dict[str, float] = {}
    for time, line, state in verdict.follow():
        disturbed = isinstance(line, lines.FaultLine)
        for node in verdict.set_up.nodes:
            if node not in state.voteless & state.part or disturbed or state.changing:
                since.pop(node, None)
            elif time - since.setdefault(node, time) > within:
                yield time, f"{node}, which lost its disk, has no vote after {within:g} s"
                since[node] = time


def overtaken(verdict: RecordVerdict) -> Findings:
    """Where nothing was done for two leases, no client that waits there is passed by one that asked
    two leases later and is not more urgent; nor by one that is, if grants that were made while the
    first waited make its age count for more. A changed priority counts from then on, and a
    deadline for up to a step of priority."""
    set_up = verdict.set_up
    order = Overtaking(2 * set_up.lease, set_up.permits, 0, step({}))
    clients: dict[str, int] = {}
    places = {node: place for place, node in enumerate(set_up.nodes)}
    for time, line, state in verdict.follow():
        moved = line is None or isinstance(line, (*CHANGES, lines.FaultLine))
        if moved or not state.is_as_made():
            order.disturbed(time)
        if isinstance(line, lines.Changed) and line.c in clients:
            order.changes(time, clients[line.c], line.priority)
        elif isinstance(line, lines.AskedLine):
            number = clients.setdefault(line.c, len(clients))
            due = line.deadline is not None
            order.asks(time, number, places[line.node], line.priority, due)
        elif isinstance(line, lines.GrantedLine):
            number = line.fence or 0
            epoch, grant = number >> FENCE_BITS, number & MOST_GRANTS
            order.goes_by(time, epoch)
            reached = {places[node] for node in state.part}
            fence = ((epoch, 0, 0), grant)
            for passed in order.granted(time, clients[line.c], reached, fence):
                waits = f"{list(clients)[passed.client]} waits with priority {passed.priority:g}"
                by = f"is overtaken by who asked later at {set_up.nodes[passed.node]}"
                yield passed.time, f"{waits} and {by}"
        elif isinstance(line, lines.ENDS) and line.c in clients:
            order.stops(clients[line.c])


def not_told(verdict: RecordVerdict) -> Findings:
    """A client at the end of its lease is told so by its agent within another, if that was awake
    all the while."""
    asleep: dict[str, float] = {}  # agents and clients: until when they were stopped, or down
    nodes: dict[str, str] = {}
    for line in verdict.record:
        if isinstance(line, lines.AskedLine):
            nodes[line.c] = line.node
        elif isinstance(line, lines.Stopped | lines.Continued):
            asleep[line.who] = NEVER if isinstance(line, lines.Stopped) else line.t
        elif isinstance(line, lines.Down | lines.Up):
            asleep[line.node] = NEVER if isinstance(line, lines.Down) else line.t
        elif isinstance(line, lines.Untold):
            since = max(asleep.get(one, 0.0) for one in (line.c, nodes[line.c]))
            if since < line.t - verdict.set_up.lease:
                yield line.t, f"{line.c}/{line.n} was not told that its lease is over"


def wrongly_ready(verdict: RecordVerdict) -> Findings:
    """Where a client waited for 30 s, permits were free, and no client in that part of the network
    was served, the agent says that it is ready only if one is within a lease (see
    :mod:`.readiness`)."""
    set_up, state = verdict.set_up, StallState(verdict.set_up)
    readiness = Readiness(set_up.nodes, set_up.lease, set_up.t)
    before = set_up.t
    for line in verdict.record:
        for claim in readiness.wrong(line.t):
            times = f"{claim.unserved:.0f} s before and {set_up.lease:g} s after"
            yield claim.time, f"{claim.node} says that it is, and nobody was served for {times}"
        waiting = state.could_have(set_up.nodes)
        readiness.waits(line.t, before, {asked.node for asked in waiting})
        before = line.t
        if isinstance(line, lines.GrantedLine):
            readiness.can_be_served(line.t, state.linked(state.pending[line.c].node))
        elif isinstance(line, lines.Up):
            readiness.can_be_served(line.t, [line.node])
        elif isinstance(line, lines.FaultLine):
            readiness.disturbed()
        elif isinstance(line, lines.ReadyLine) and line.ready:
            readiness.says_ready(line.t, line.node)
        state.take(line)


def left_out(verdict: RecordVerdict) -> Findings:
    """In the quiet at the end every request that waited was served."""
    record, within = verdict.record, verdict.set_up.within
    quiet = next((line.t for line in record if isinstance(line, lines.Quiet)), None)
    end = record[-1].t
    if quiet is None:
        yield end, "the run never came to its quiet end"
        return
    dead = {line.c: line.t for line in record if isinstance(line, lines.Died)}
    for use in verdict.uses:
        if use.granted == NEVER and dead.get(use.c, end) > quiet:
            waited = min(use.ended, end) - max(quiet, use.asked)
            if use.ended == NEVER or waited > within:
                yield use.asked, f"{use.c}/{use.n} was not served in the end"


def not_returned(verdict: RecordVerdict) -> Findings:
    """In the end a client on every node was given all k permits."""
    for line in verdict.record:
        if isinstance(line, lines.End):
            missing = [node for node in verdict.set_up.nodes if node not in line.took_all]
            if missing:
                yield line.t, f"at {', '.join(missing)} no request for all permits was granted"


def failures(verdict: RecordVerdict) -> Findings:
    """No process ended or failed except by plan."""
    for line in verdict.record:
        if isinstance(line, lines.FailedLine):
            yield line.t, f"{line.node} {line.why}"


RULES: dict[str, tuple[Callable[[RecordVerdict], Findings], ...]] = {
    "permits": (too_many, unwanted),
    "slots": (twice_named, misnamed),
    "fences": (disordered,),
    "resource": (resource_wrong,),
    "resumed": (too_long, voteless),
    "order": (overtaken,),
    "told": (not_told,),
    "ready": (wrongly_ready,),
    "served": (left_out,),
    "returned": (not_returned,),
    "agents": (failures,),
}
"""Of each property, what finds it violated."""
