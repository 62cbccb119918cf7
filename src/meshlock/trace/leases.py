"""Judge a trace of nodes that recover: permits under leases, fences, epochs, paths.

Used by :mod:`.audit` for traces whose set-up says ``recovery``.
"""

from __future__ import annotations

from math import inf
from typing import Any, TypeVar

import msgspec

from meshlock.algorithms.amounts import in_all
from meshlock.algorithms.conflicts import lines_per_kind
from meshlock.algorithms.recovery import records
from meshlock.algorithms.recovery.records import FENCE_BITS, fence_number
from meshlock.algorithms.registry import find
from meshlock.properties.leases import Fence, LeaseMonitor, numbered
from meshlock.properties.paths import Paths, labelled
from meshlock.properties.promises import orderly
from meshlock.properties.waits import WaitJudge, overtaking
from meshlock.trace.reader import UNSAID, Trace, TraceLine

T = TypeVar("T")

LEASES = 2
"""In traces that do not say how long recovery may take: after this many leases a request is to be
known where the token is. The failure of a link may be written down as late as that."""


class LeaseAudit:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        size, permits = trace.nodes, trace.setup["permits"]
        recovery: dict[str, Any] = trace.setup["recovery"]
        problem = "has no list of 'members' in its 'recovery'"
        members = self.declared(recovery.get("members"), tuple[int, ...], problem)
        recover, queue = recovery.get("recover"), recovery.get("queue")
        # a trace that does not state how long recovery may take does not promise service
        self.paths: Paths | None = None
        if isinstance(recover, int | float) and isinstance(queue, int | float):
            self.paths = Paths(members, float(recover), float(queue))
        lasting = recover if self.paths is not None else LEASES * recovery.get("lease", 0.0)
        algorithm = find(str(trace.setup.get("algorithm")))
        options = trace.setup.get("options") or {}
        order = overtaking(lasting or inf, algorithm, options, permits)
        slack = recovery.get("slack", 0.0)
        self.monitor = LeaseMonitor(
            permits,
            float(slack) if isinstance(slack, int | float) else 0.0,
            orderly(algorithm, options),
        )
        self.live = trace.setup.get("source") == "live"
        self.waits = WaitJudge(self.monitor, self.paths, order, patient=self.live)
        self.up = [True] * size
        links = trace.links()
        self.near: list[set[int]] = [
            set(range(size)) - {node} if links is None else set() for node in range(size)
        ]
        for one, other in links or []:
            self.near[one].add(other)
            self.near[other].add(one)
        self.changed_at: float | None = 0.0  # parts of the network that are not recorded yet
        self.lent: dict[int, int] = {}
        self.accounts = False  # is there a token at the node of this step, and news of it?
        self.free = 0  # there
        self.sent: dict[str, int] = {}  # tokens by epoch and hop: to whom they went
        self.taken: set[str] = set()
        self.coming = ""  # the token that this step brought

    # -- the network ----------------------------------------------------------------

    def goes_on(self, time: float) -> None:
        """Everything that happened at an earlier time has happened."""
        if self.changed_at is not None and time > self.changed_at:
            if self.paths is not None:
                self.paths.record(self.changed_at, labelled(self.near, self.up))
            self.changed_at = None
        self.waits.blame(time)

    def lives(self, kind: str, line: TraceLine) -> None:
        """What a step says of lives and links. A node does nothing between a crash and its
        restart."""
        node, time = line.node, line.t
        if self.up[node] == (kind == "restart"):
            state = "has not crashed" if kind == "restart" else "has crashed"
            raise self.trace.bad(f"('{kind}') is a step of node {node}, which {state}")
        if kind == "timer":
            if line.resize != UNSAID:
                self.monitor.resizes.add(line.resize)
            elif line.lends:
                self.monitor.lends_under(time, node, self.fence(line))
            return
        if kind == "crash":
            self.waits.crashed(time, node)
            self.monitor.crashed(node)
            self.up[node] = False
        elif kind == "restart":
            self.up[node] = True
        elif kind == "link-up":
            self.near[node].add(line.peer)
            self.near[line.peer].add(node)
        elif kind == "link-down":
            self.near[node].discard(line.peer)
            self.near[line.peer].discard(node)
        else:
            return
        self.waits.disturbed(time)
        self.changed_at = time

    # -- clients ----------------------------------------------------------------------

    def enter(self, line: TraceLine, want: int) -> None:
        time, fence = line.t, self.fence(line)
        if self.live and isinstance(line.fence, int):
            self.waits.goes_by(time, line.fence >> FENCE_BITS)
        self.waits.enters(time, line.client, labelled(self.near, self.up), fence)
        if line.until == UNSAID:
            raise self.trace.bad("('enter') needs a number as 'until'")
        if len(line.slots) not in (0, in_all(want)):
            raise self.trace.bad(f"has {len(line.slots)} slots for {want} permits")
        self.monitor.granted(
            time, line.node, line.client, want, line.until, fence, self.permits(line), line.slots
        )

    def changes_priority(self, time: float, client: int, before: float, priority: float) -> None:
        if priority > before:
            self.monitor.raises(client)
        self.waits.changes(time, client, priority)

    def lost(self, time: float, client: int) -> None:
        """A live node may have been stopped, and write it when it goes on. Whether its client
        went on meanwhile is not in the trace."""
        if self.live:
            self.monitor.given.pop(client, None)
        else:
            self.monitor.gives_back(time, client)

    def ends(self, time: float) -> None:
        self.goes_on(time + 1.0)
        self.waits.ends(time)

    # -- the token --------------------------------------------------------------------

    def recovered(self, line: TraceLine) -> None:
        assert line.epoch is not None  # the reader has seen to that
        self.waits.disturbed(line.t)
        if self.paths is not None and line.members is not None:
            self.paths.members = line.members
            self.changed_at = line.t
        lines = lines_per_kind(self.permits(line))
        self.waits.order.lines = min(self.waits.order.lines, lines)
        self.monitor.recovered(line.t, line.node, line.epoch, self.permits(line))

    def keeps(self, line: TraceLine, tokens: int, free: int) -> None:
        """When the step is over: does the token here account for all permits?"""
        if line.lent != UNSAID:
            self.lent[line.node] = line.lent
        self.accounts = tokens > 0 and (line.free != UNSAID or line.lent != UNSAID)
        self.free = free

    def token(self, line: TraceLine) -> str:
        """Epoch and hop of the token in this message: copies have the same."""
        seal = line.seal
        state = seal[2] if isinstance(seal, list) and len(seal) > 2 else None
        return f"{state[0]} {state[1]}" if isinstance(state, list) and len(state) > 1 else ""

    def costs(self, line: TraceLine, tokens: int) -> int:
        """A TOKEN may be sent again, to the same node."""
        name = self.token(line)
        if tokens == 0 or name == "":
            return tokens
        if self.sent.get(name) == line.to:
            return 0
        self.sent[name] = line.to
        return tokens

    def lends(self, line: TraceLine) -> None:
        """A grant to a client of another node: the entry is in the seal."""
        entry = line.seal[5] if isinstance(line.seal, list) and len(line.seal) > 6 else None
        if entry is None or not line.lends:
            return
        try:
            _, (epoch, number), *_ = entry
            fence = fence_number(records.Fence(records.Epoch(*epoch), number))
        except (TypeError, ValueError):
            raise self.trace.bad("lends permits without a fence") from None
        self.monitor.lends_under(line.t, line.node, numbered(fence))

    def brings(self, line: TraceLine, tokens: int) -> int:
        """... but must be taken only once."""
        if tokens == 0:
            return 0
        self.coming = self.token(line)
        return 0 if self.coming in self.taken else tokens

    def end_step(self, time: float, node: int, balance: int) -> None:
        if self.accounts:
            self.monitor.keeps(time, node, self.free, self.lent.get(node, 0))
        self.monitor.made(time, node, balance)
        if self.coming != "" and balance <= 0:
            self.taken.add(self.coming)
        self.coming = ""

    # -- values -----------------------------------------------------------------------

    def declared(self, value: Any, kind: type[T], problem: str) -> T:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError:
            raise self.trace.bad(problem) from None

    def permits(self, line: TraceLine) -> int:
        """k, of the set-up unless the line says that it has changed."""
        found: int = self.trace.setup["permits"] if line.permits == UNSAID else line.permits
        return found

    def fence(self, line: TraceLine) -> Fence:
        if isinstance(line.fence, int):
            return numbered(line.fence)
        problem = "needs a fence: a list of an epoch and a number"
        return self.declared(line.fence, tuple[tuple[int, int, int], int], problem)
