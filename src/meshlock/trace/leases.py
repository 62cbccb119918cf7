"""Judge a trace of nodes that recover: permits under leases, fences, epochs, paths.

Used by :mod:`.audit` for traces whose set-up says ``recovery``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from meshlock.algorithms.recovery import records
from meshlock.algorithms.recovery.records import FENCE_BITS, fence_number
from meshlock.algorithms.registry import find
from meshlock.properties import sentences
from meshlock.properties.leases import Epoch, LeaseMonitor, numbered
from meshlock.properties.overtaking import Fence, Overtaking, Pass
from meshlock.properties.paths import Paths, labelled
from meshlock.properties.promises import orderly, overtaking
from meshlock.trace.reader import Trace

T = TypeVar("T")

LEASES = 2
"""So long a request is to be known where the token is, in traces that do not say how long recovery
may take. As long nobody may have written down yet that a link had failed."""


class LeaseAudit:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        size = trace.nodes
        recovery: dict[str, Any] = trace.setup["recovery"]
        members = self.members(recovery.get("members"))
        recover, queue = recovery.get("recover"), recovery.get("queue")
        # who does not state how long recovery may take promises nobody to be served
        self.paths: Paths | None = None
        if isinstance(recover, int | float) and isinstance(queue, int | float):
            self.paths = Paths(members, float(recover), float(queue))
        self.order: Overtaking | None = None
        self.passed: list[Pass] = []  # what may yet be excused, live
        lasting = recover if self.paths is not None else LEASES * recovery.get("lease", 0.0)
        algorithm, options = find(str(trace.setup.get("algorithm"))), trace.setup.get("options")
        judged = orderly(algorithm, options or {})
        self.live = trace.setup.get("source") == "live"
        if lasting and judged:
            self.order = overtaking(lasting, algorithm, options or {}, trace.setup["permits"])
        slack = recovery.get("slack", 0.0)
        self.monitor = LeaseMonitor(
            trace.setup["permits"], float(slack) if isinstance(slack, int | float) else 0.0, judged
        )
        self.up = [True] * size
        self.near: list[set[int]] = [set() for _ in range(size)]
        links = trace.links()
        if links is None:
            self.near = [set(range(size)) - {node} for node in range(size)]
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
        self.asked: dict[int, tuple[int, float]] = {}  # client: its node and when it asked
        self.with_path = 0

    # -- the network ----------------------------------------------------------------

    def goes_on(self, time: float) -> None:
        """Everything that happened at an earlier time has happened."""
        if self.changed_at is not None and time > self.changed_at:
            if self.paths is not None:
                self.paths.record(self.changed_at, labelled(self.near, self.up))
            self.changed_at = None
        self.blame_passing(time)

    def blame_passing(self, time: float) -> None:
        """What nothing that was written down until now excuses."""
        while self.order is not None and self.passed:
            passed = self.passed[0]
            if passed.time + self.order.slack >= time:
                break
            self.passed.pop(0)
            text = sentences.passed_over(passed.node, passed.client, passed.priority)
            self.monitor.report("order", passed.time, text)

    def look_back(self, time: float, order: Overtaking) -> None:
        self.passed += order.overdue(time)
        if not self.live:
            self.blame_passing(time + order.slack + 1.0)

    def disturbed(self, time: float) -> None:
        """A fault, of which live nodes may have learnt late."""
        if self.order is not None:
            self.order.disturbed(time)
            self.passed = []

    def lives(self, kind: str, node: int) -> None:
        """A node does nothing between a crash and its restart."""
        if self.up[node] == (kind == "restart"):
            state = "has not crashed" if kind == "restart" else "has crashed"
            raise self.trace.bad(f"('{kind}') is a step of node {node}, which {state}")

    def network(self, kind: str, event: dict[str, Any]) -> None:
        node = self.trace.whole(event, "node")
        self.disturbed(event["t"])
        if kind == "crash":
            if self.order is not None:
                self.order.crashed(node)
            self.up[node] = False
            self.monitor.crashed(node)
        elif kind == "restart":
            self.up[node] = True
        else:
            peer = self.trace.other_node(event, "peer")
            if kind == "link-up":
                self.near[node].add(peer)
                self.near[peer].add(node)
            else:
                self.near[node].discard(peer)
                self.near[peer].discard(node)
        self.changed_at = event["t"]

    # -- clients ----------------------------------------------------------------------

    def asks(self, time: float, node: int, client: int, priority: float) -> None:
        self.asked[client] = (node, time)
        if self.order is not None:
            self.order.asks(time, client, node, priority)

    def waits_no_more(self, time: float, client: int) -> None:
        node, asked = self.asked.pop(client)
        if self.order is not None:
            self.look_back(time, self.order)
            self.order.stops(client)
        if self.paths is not None:
            self.goes_on(time)
            if self.paths.had_path(node, asked, time):
                self.with_path += 1

    def enter(self, event: dict[str, Any], node: int, client: int, want: int) -> None:
        self.keeps_order(event, node, client)
        self.waits_no_more(event["t"], client)
        until = self.trace.number_at(event, "until")
        fence, permits, slots = self.fence(event), self.permits(event), self.slots(event, want)
        self.monitor.granted(event["t"], node, client, want, until, fence, permits, slots)

    def changes_priority(self, time: float, client: int, before: float, priority: float) -> None:
        if priority > before:
            self.monitor.raises(client)
        if self.order is not None:
            self.order.changes(time, client, priority)

    def keeps_order(self, event: dict[str, Any], node: int, client: int) -> None:
        if self.order is None:
            return
        time, fence = event["t"], event.get("fence")
        if self.live and isinstance(fence, int) and self.order.goes_by(time, fence >> FENCE_BITS):
            self.passed = []
        labels = labelled(self.near, self.up)
        reached = {one for one, label in enumerate(labels) if label == labels[node]}
        self.passed += self.order.granted(time, client, reached, self.fence(event))
        self.look_back(time, self.order)

    def lease(self, event: dict[str, Any]) -> None:
        client = self.trace.whole(event, "client")
        self.monitor.renewed(event["t"], client, self.trace.number_at(event, "until"))

    def lost(self, time: float, client: int) -> None:
        """A live node may have been stopped, and write it when it goes on; its word that nobody
        went on meanwhile is all there is."""
        if self.live:
            self.monitor.given.pop(client, None)
        else:
            self.monitor.gives_back(time, client)

    def ends(self, time: float) -> None:
        self.goes_on(time + 1.0)
        if self.order is not None:
            self.look_back(time, self.order)
            self.blame_passing(time + self.order.slack + 1.0)
        for client in list(self.asked):
            self.waits_no_more(time, client)
        self.monitor.ends_leased(time, self.with_path)

    # -- the token --------------------------------------------------------------------

    def recovered(self, event: dict[str, Any]) -> None:
        node = self.trace.whole(event, "node")
        epoch = self.epoch(event.get("epoch"))
        self.disturbed(event["t"])
        if self.paths is not None and "members" in event:
            self.paths.members = self.members(event["members"])
            self.changed_at = event["t"]
        if self.order is not None:
            self.order.lines = min(self.order.lines, self.permits(event))
        self.monitor.recovered(event["t"], node, epoch, self.permits(event))

    def keeps(self, event: dict[str, Any], node: int, tokens: int, free: int) -> None:
        """When the step is over: does the token here account for all permits?"""
        self.lent[node] = event.get("lent", self.lent.get(node, 0))
        self.accounts = tokens > 0 and ("free" in event or "lent" in event)
        self.free = free

    def token(self, event: dict[str, Any]) -> str:
        """Epoch and hop of the token in this message: copies have the same."""
        seal = event.get("seal")
        state = seal[2] if isinstance(seal, list) and len(seal) > 2 else None
        return f"{state[0]} {state[1]}" if isinstance(state, list) and len(state) > 1 else ""

    def costs(self, event: dict[str, Any], tokens: int) -> int:
        """A TOKEN may be sent again, to the same node."""
        name = self.token(event)
        if tokens == 0 or name == "":
            return tokens
        if self.sent.get(name) == event["to"]:
            return 0
        self.sent[name] = event["to"]
        return tokens

    def lends(self, event: dict[str, Any], node: int) -> None:
        """A grant to a client of another node: the entry is in the seal."""
        seal = event.get("seal")
        entry = seal[5] if isinstance(seal, list) and len(seal) > 6 else None
        if entry is None or not event.get("lends"):
            return
        try:
            _, (epoch, number), *_ = entry
            fence = fence_number(records.Fence(records.Epoch(*epoch), number))
        except (TypeError, ValueError):
            raise self.trace.bad("lends permits without a fence") from None
        self.monitor.lends_under(event["t"], node, numbered(fence))

    def brings(self, event: dict[str, Any], tokens: int) -> int:
        """... but must be taken only once."""
        if tokens == 0:
            return 0
        self.coming = self.token(event)
        return 0 if self.coming in self.taken else tokens

    def end_step(self, time: float, node: int, balance: int) -> None:
        if self.accounts:
            self.monitor.keeps(time, node, self.free, self.lent[node])
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

    def members(self, value: Any) -> tuple[int, ...]:
        return self.declared(value, tuple[int, ...], "has no list of 'members' in its 'recovery'")

    def permits(self, event: dict[str, Any]) -> int:
        """k, of the set-up unless the event says that it has changed."""
        return self.trace.whole(event if "permits" in event else self.trace.setup, "permits")

    def epoch(self, value: Any) -> Epoch:
        problem = "needs an epoch: a list of counter, node and boot"
        return self.declared(value, tuple[int, int, int], problem)

    def slots(self, event: dict[str, Any], want: int) -> tuple[int, ...]:
        slots = event.get("slots", [])
        value = self.declared(slots, tuple[int, ...], "needs slots: a list of numbers")
        if len(value) not in (0, want):
            raise self.trace.bad(f"has {len(value)} slots for {want} permits")
        return value

    def fence(self, event: dict[str, Any]) -> Fence:
        value = event.get("fence")
        if isinstance(value, int):  # the same in one number
            return numbered(value)
        problem = "needs a fence: a list of an epoch and a number"
        epoch, number = self.declared(value, tuple[Any, int], problem)
        return (self.epoch(epoch), number)
