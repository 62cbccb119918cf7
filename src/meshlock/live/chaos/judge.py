"""What the record proves, judged from the record alone.

A grant is **valid** from the moment its client has read it until the client gives it back,
hears that it is lost, dies, or reaches the end of the last lease it was told of; whichever
comes first. A client whose agent died goes on being valid until then.

========  =====================================================================================
permits   at no instant do valid grants add up to more than k, by which a client is let in; and
          that is a number that the pool was to have
slots     where permits have names, every grant names as many of them as it has, and no two valid
          ones name the same
fences    no two grants have the same fence; and if one was in its client's hands before
          another was asked for, its fence is lower (between those two moments nobody but the
          agents knows when a grant was made, so of grants that overlap so nothing is said)
resource  fences of exclusive writes never fall, in the order in which the resource accepted
          them; and none was refused to a client whose grant was valid from before to after
resumed   while a majority of the members was awake and connected, and nothing new was done
          to it, no more than ``within`` seconds passed without a grant although somebody
          there waited and everything that was asked for was free; a member that lost its disk
          counts again when it says that it has a vote, and it has one within that time
order     where nothing was done for two leases, nobody who waits there is passed by who asked
          two leases later and is not more urgent; nor by who is, if grants that were made
          while the one waited make its age count for more; a changed priority counts from then on,
          and a deadline for up to a step of priority
told      a client at the end of its lease is told so by its agent within another, if that was
          awake all the while
ready     where somebody waited for 30 s, permits were free, and nobody in that part of the network
          was served, the agent says that it is ready only if somebody is within a lease (see
          :mod:`.readiness`)
served    in the quiet at the end nobody who waited was left out
returned  in the end a client on every node was given all k permits
agents    no process ended or failed except by plan
========  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from meshlock.algorithms.recovery.records import FENCE_BITS, MOST_GRANTS
from meshlock.algorithms.steps import step
from meshlock.live.chaos import record as lines
from meshlock.live.chaos.readiness import Readiness
from meshlock.live.chaos.record import RecordLine, SetUpLine
from meshlock.live.chaos.resource import REFUSED
from meshlock.live.chaos.stalls import CHANGES, Stall, StallState, stalls
from meshlock.properties.overtaking import Overtaking

PROPERTIES = (
    *("permits", "slots", "fences", "resource", "resumed", "order", "told", "ready", "served"),
    *("returned", "agents"),
)


class RecordViolation(msgspec.Struct):
    property: str
    at: float  # seconds since the beginning of the record
    sentence: str


class Use(msgspec.Struct):
    """One request and what became of it."""

    c: str
    n: int
    node: str
    want: int
    asked: float
    granted: float | None = None
    fence: int | None = None
    slots: list[str] = []
    ended: float | None = None  # released, lost, over, or refused
    permits: int | None = None  # of the pool when it was granted
    spans: list[tuple[float, float]] = []  # when it was valid
    parts: list[tuple[float, int]] = []  # when some were released, and how many were left

    def held(self, time: float) -> int:
        """How many of its permits it had then, if it was valid."""
        return min([left for when, left in self.parts if when <= time], default=self.want)

    def named(self, time: float) -> set[str]:
        return set(self.slots[: self.held(time)])

    @property
    def name(self) -> str:
        return f"{self.c}/{self.n} ({self.want}, fence {self.fence})"


def uses(record: Sequence[RecordLine]) -> list[Use]:
    """All requests, in the order in which they were made."""
    found: dict[tuple[str, int], Use] = {}
    leases: dict[tuple[str, int], list[tuple[float, float]]] = {}  # from when, until when
    last: dict[str, Use] = {}
    for line in record:
        if isinstance(line, lines.AskedLine):
            use = Use(line.c, line.n, line.node, line.want, line.t)
            found[line.c, line.n] = last[line.c] = use
        elif isinstance(line, lines.GrantedLine):
            use = found[line.c, line.n]
            use.granted, use.fence, use.permits = line.t, line.fence, line.permits
            use.slots = line.slots
            until = float("inf") if line.until is None else line.until
            leases[line.c, line.n] = [(line.t, until)]
        elif isinstance(line, lines.RenewedLine):
            leases[line.c, line.n].append((line.t, line.until))
        elif isinstance(line, lines.ReleasedSome):
            found[line.c, line.n].parts.append((line.t, line.left))
        elif isinstance(line, lines.Released | lines.LostLine | lines.Expired | lines.NotServed):
            use = found[line.c, line.n]
            use.ended = line.t if use.ended is None else min(use.ended, line.t)
        elif isinstance(line, lines.Died) and line.c in last and last[line.c].ended is None:
            last[line.c].ended = line.t
    for key, known in leases.items():
        use = found[key]
        use.spans = spans(known, use.ended)
    return sorted(found.values(), key=lambda use: use.asked)


def spans(leases: list[tuple[float, float]], ended: float | None) -> list[tuple[float, float]]:
    """When one of these leases ran and the grant had not ended."""
    merged: list[tuple[float, float]] = []
    for begin, until in leases:
        end = until if ended is None else min(until, ended)
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif begin < end:
            merged.append((begin, end))
    return merged


class RecordVerdict(msgspec.Struct):
    violations: list[RecordViolation]
    uses: list[Use]
    stalls: list[Stall]
    began: float

    @property
    def violated(self) -> list[str]:
        names = {violation.property for violation in self.violations}
        return [name for name in PROPERTIES if name in names]


def judge(record: Sequence[RecordLine]) -> RecordVerdict:
    """``record`` in the order of time."""
    set_up = record[0]
    assert isinstance(set_up, SetUpLine)
    all_uses = uses(record)
    found_stalls = stalls(record)
    violations = [
        *too_many(all_uses, set_up.permits),
        *unwanted(record, all_uses),
        *misnamed(all_uses, set_up.slots),
        *disordered(all_uses),
        *resource_wrong(record, all_uses),
        *too_long(found_stalls, set_up.within),
        *overtaken(record, set_up),
        *not_told(record, set_up),
        *wrongly_ready(record, set_up),
        *voteless(record, set_up),
        *left_out(record, all_uses, set_up.within),
        *not_returned(record, set_up.nodes),
        *failures(record),
    ]
    for violation in violations:
        violation.at = round(violation.at - set_up.t, 3)
    return RecordVerdict(violations, all_uses, found_stalls, set_up.t)


def overtaken(record: Sequence[RecordLine], set_up: SetUpLine) -> Iterator[RecordViolation]:
    state = StallState(set_up)
    order = Overtaking(2 * set_up.lease, set_up.permits, 0, step({}))
    clients: dict[str, int] = {}
    places = {node: place for place, node in enumerate(set_up.nodes)}
    for time, line in state.follow(record):
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
                names = list(clients)
                waits = f"{names[passed.client]} waits with priority {passed.priority:g}"
                yield RecordViolation(
                    "order",
                    passed.time,
                    f"{waits} and is overtaken by who asked later at {set_up.nodes[passed.node]}",
                )
        elif isinstance(line, lines.ENDS) and line.c in clients:
            order.stops(clients[line.c])


def not_told(record: Sequence[RecordLine], set_up: SetUpLine) -> Iterator[RecordViolation]:
    asleep: dict[str, float] = {}  # agents and clients: until when they were stopped, or down
    nodes: dict[str, str] = {}
    for line in record:
        if isinstance(line, lines.AskedLine):
            nodes[line.c] = line.node
        elif isinstance(line, lines.Stopped):
            asleep[line.who] = float("inf")
        elif isinstance(line, lines.Down):
            asleep[line.node] = float("inf")
        elif isinstance(line, lines.Continued):
            asleep[line.who] = line.t
        elif isinstance(line, lines.Up):
            asleep[line.node] = line.t
        elif isinstance(line, lines.Untold):
            since = max(asleep.get(one, 0.0) for one in (line.c, nodes[line.c]))
            if since < line.t - set_up.lease:
                sentence = f"{line.c}/{line.n} was not told that its lease is over"
                yield RecordViolation("told", line.t, sentence)


def wrongly_ready(record: Sequence[RecordLine], set_up: SetUpLine) -> Iterator[RecordViolation]:
    state = StallState(set_up)
    readiness = Readiness(set_up.nodes, set_up.lease, set_up.t)
    before = set_up.t
    for line in record:
        for claim in readiness.wrong(line.t):
            sentence = f"{claim.node} says that it is, and nobody was served for"
            sentence = f"{sentence} {claim.unserved:.0f} s before and {set_up.lease:g} s after"
            yield RecordViolation("ready", claim.time, sentence)
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


def voteless(record: Sequence[RecordLine], set_up: SetUpLine) -> Iterator[RecordViolation]:
    """A node that lost its disk gets its vote back where the others are a quorum."""
    state = StallState(set_up)
    since: dict[str, float] = {}
    for time, line in state.follow(record):
        disturbed = isinstance(line, lines.FaultLine)
        for node in set_up.nodes:
            if node not in state.voteless & state.part or disturbed or state.changing:
                since.pop(node, None)
            elif time - since.setdefault(node, time) > set_up.within:
                sentence = f"{node}, which lost its disk, has no vote after {set_up.within:g} s"
                yield RecordViolation("resumed", time, sentence)
                since[node] = time


def too_many(all_uses: list[Use], permits: int) -> Iterator[RecordViolation]:
    """Nobody is let in while more would be valid than there are by then; unless it is told how many
    that is, there are as many as at first."""
    moments = [
        (time, change, use)
        for use in all_uses
        for span in use.spans
        for time, change in ((span[0], 1), (span[1], -1))
    ]
    moments.sort(key=lambda moment: moment[:2])  # at one instant, ends come before beginnings
    valid: dict[tuple[str, int], Use] = {}
    for time, change, use in moments:
        if change < 0:
            valid.pop((use.c, use.n), None)
            continue
        valid[use.c, use.n] = use
        total = sum(other.held(time) for other in valid.values())
        most = use.permits or permits
        if total > most:
            names = ", ".join(other.name for other in valid.values())
            yield RecordViolation("permits", time, f"{total} of {most} permits are valid: {names}")
        for other in valid.values():
            shared = sorted(use.named(time) & other.named(time))
            if other is not use and shared:
                sentence = f"{use.name} and {other.name} both have {', '.join(shared)}"
                yield RecordViolation("slots", time, sentence)


def unwanted(record: Sequence[RecordLine], all_uses: list[Use]) -> Iterator[RecordViolation]:
    wanted = {line.permits for line in record if isinstance(line, SetUpLine | lines.Resizing)}
    for use in all_uses:
        if use.granted is not None and use.permits is not None and use.permits not in wanted:
            sentence = f"{use.name} goes by {use.permits} permits, which the pool was never to have"
            yield RecordViolation("permits", use.granted, sentence)


def misnamed(all_uses: list[Use], names: list[str]) -> Iterator[RecordViolation]:
    for use in all_uses:
        if use.granted is not None and names:
            known = set(use.slots) & set(names)
            if len(known) != use.want or len(use.slots) != use.want:
                named = ", ".join(use.slots) or "no permit"
                yield RecordViolation("slots", use.granted, f"{use.name} names {named}")


def disordered(all_uses: list[Use]) -> Iterator[RecordViolation]:
    fenced = [(use.granted, use.fence, use) for use in all_uses if use.granted and use.fence]
    granted = sorted(fenced, key=lambda grant: grant[0])
    owner: dict[int, Use] = {}
    for time, fence, use in granted:
        if fence in owner:
            sentence = f"{use.name} has the fence of {owner[fence].name}"
            yield RecordViolation("fences", time, sentence)
        owner[fence] = use
    highest: tuple[int, Use] | None = None
    place = 0
    for use in all_uses:  # in the order of their asking
        while place < len(granted) and granted[place][0] < use.asked:
            _, fence, earlier = granted[place]
            if highest is None or fence > highest[0]:
                highest = (fence, earlier)
            place += 1
        if highest is not None and use.fence is not None and use.fence < highest[0]:
            sentence = f"{use.name} was asked for when {highest[1].name} was held already"
            yield RecordViolation("fences", use.granted or use.asked, sentence)


def resource_wrong(record: Sequence[RecordLine], all_uses: list[Use]) -> Iterator[RecordViolation]:
    known = {(use.c, use.n): use for use in all_uses}
    for line in record:
        if isinstance(line, lines.End):
            for before, after in zip(line.accepted, line.accepted[1:], strict=False):
                if after < before:
                    yield RecordViolation("resource", line.t, f"it accepted {after} after {before}")
        elif isinstance(line, lines.Wrote) and line.outcome == REFUSED:
            use = known[line.c, line.n]
            if any(begin <= line.t and line.end <= end for begin, end in use.spans):
                yield RecordViolation("resource", line.t, f"{use.name} was valid, and was refused")


def too_long(found: list[Stall], within: float) -> Iterator[RecordViolation]:
    for stall in found:
        if stall.inexcusable > within:
            sentence = (
                f"no grant for {stall.inexcusable:.1f} s (promised: {within:g} s) "
                f"although {', '.join(stall.waiting)} waited, permits were free and a "
                "quorum was up"
            )
            yield RecordViolation("resumed", stall.end, sentence)


def left_out(
    record: Sequence[RecordLine], all_uses: list[Use], within: float
) -> Iterator[RecordViolation]:
    quiet = next((line.t for line in record if isinstance(line, lines.Quiet)), None)
    if quiet is None:
        yield RecordViolation("served", record[-1].t, "the run never came to its quiet end")
        return
    end = record[-1].t
    dead = {line.c: line.t for line in record if isinstance(line, lines.Died)}
    for use in all_uses:
        if use.granted is None and dead.get(use.c, end) > quiet:
            waited = (end if use.ended is None else use.ended) - max(quiet, use.asked)
            if use.ended is None or waited > within:
                sentence = f"{use.c}/{use.n} was not served in the end"
                yield RecordViolation("served", use.asked, sentence)


def not_returned(record: Sequence[RecordLine], nodes: list[str]) -> Iterator[RecordViolation]:
    for line in record:
        if isinstance(line, lines.End):
            missing = [node for node in nodes if node not in line.took_all]
            if missing:
                sentence = f"at {', '.join(missing)} no request for all permits was granted"
                yield RecordViolation("returned", line.t, sentence)


def failures(record: Sequence[RecordLine]) -> Iterator[RecordViolation]:
    for line in record:
        if isinstance(line, lines.FailedLine):
            yield RecordViolation("agents", line.t, f"{line.node} {line.why}")
