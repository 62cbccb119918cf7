"""Judge any trace by the properties that the simulator watches as it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meshlock.algorithms.amounts import is_part
from meshlock.algorithms.registry import ALGORITHMS
from meshlock.properties import sentences
from meshlock.properties.by_kind import monitor as monitor_for
from meshlock.properties.monitor import Monitor, Rival
from meshlock.properties.promises import written
from meshlock.trace.leases import LeaseAudit
from meshlock.trace.reader import CAUSES, UNSAID, Trace, TraceLine


@dataclass
class AskedClient:
    """A client, from asking to leaving."""

    node: int
    want: int
    priority: float
    rival: Rival
    inside: bool = False


class Audit:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        setup = trace.setup
        links = trace.links()
        permits: int = setup["permits"]
        holder = setup.get("holder", -1)
        promised = written(setup)
        self.leases = LeaseAudit(trace) if isinstance(setup.get("recovery"), dict) else None
        self.monitor: Monitor = (
            self.leases.monitor if self.leases is not None else monitor_for(permits, promised)
        )
        self.balanced = promised.balanced
        self.tokens: dict[int, int] = {holder: 1}
        self.free: dict[int, int] = {holder: permits}
        # what the checker's messages say of how long they have been under way changes there
        self.ages = self.leases is not None and setup.get("source") == "check"
        self.flying: dict[int, TraceLine] = {}  # what was sent and is on its way
        self.clients: dict[int, AskedClient] = {}
        self.one_sided: set[tuple[int, int]] = set()  # links that one end sees, and one does not
        self.failures: str = setup.get("failures", "")  # of links; empty: they stay
        self.complete = links is None
        # who takes its link to whom to be up; where all begin as linked: to be down
        self.sees: set[tuple[int, int]] = {end for a, b in links or [] for end in ((a, b), (b, a))}
        self.linked = self.over_links()
        self.entries = 0
        self.requested = 0
        self.begun = False  # something else has happened than that nodes were set going
        self.events = 0
        self.ended = False
        self.now = 0.0
        # the step at hand: its node and what is left of its balance, None between steps
        self.step: tuple[int, int, int] | None = None
        self.monitor.changed(setup.get("components", 1) == 1)
        for line in trace.events():
            self.event(line)
        if setup.get("source") == "check":  # written in one go: its last step is whole
            self.end_step()
        self.end()

    def over_links(self) -> bool:
        """Must messages go to who is linked? Live nodes have other ways, and so have leases."""
        setup = self.trace.setup
        if self.failures or self.leases is not None or setup.get("source") == "live":
            return bool(self.failures)
        algorithm = ALGORITHMS.get(str(setup.get("algorithm")))
        return algorithm is not None and not algorithm.assumes.routed

    def end(self) -> None:
        if not self.ended:  # the last step may have been cut off, and clients may yet enter
            return
        if self.leases is not None:
            self.leases.ends(self.now)
        else:
            waiting = [one for one in self.clients.values() if not one.inside]
            self.monitor.ends(self.now, len(waiting) if self.monitor.connected else 0)

    def event(self, line: TraceLine) -> None:
        self.events += 1
        kind = line.event
        if self.ended:
            raise self.trace.bad("comes after the end of the run")
        if kind in CAUSES or kind == "end":
            self.end_step()
        self.now = line.t
        if self.leases is not None:
            self.leases.goes_on(self.now)
        if kind in CAUSES:
            self.cause(kind, line)
        elif kind == "send":
            self.send(line)
        elif kind == "enter":
            self.enter(line)
        elif kind == "drop":
            self.drop(line)
        elif kind == "end":
            self.ended = True
        elif self.leases is not None and kind == "recover":
            self.leases.recovered(line)
            self.gives(line.node, -1, 0)
        elif self.leases is not None and kind == "lease":
            self.leases.monitor.renewed(self.now, line.client, line.until)
        elif kind == "lease-lost":
            asked = self.client(line, True, "lose its lease")
            del self.clients[line.client]
            if self.leases is not None:
                self.leases.lost(self.now, line.client)
            else:
                self.monitor.leaves(asked.want)

    def client(self, line: TraceLine, inside: bool, does: str) -> AskedClient:
        """The one of this line, which must be inside or wait."""
        found = self.clients.get(line.client)
        if found is None or found.inside != inside:
            state = "is not inside" if inside else "does not wait"
            raise self.trace.bad(f"lets client {line.client} {does}, which {state}")
        return found

    # -- causes ---------------------------------------------------------------------------

    def cause(self, kind: str, line: TraceLine) -> None:
        node = line.node
        if self.leases is not None:
            self.leases.lives(kind, line)
        tokens, permits = self.tokens.get(node, 0), self.free.get(node, 0)
        if kind == "deliver" or kind == "undelivered":
            sent = self.arrives(kind, line)
            carried = said(sent.tokens)
            tokens += self.leases.brings(line, carried) if self.leases is not None else carried
            permits += said(sent.permits)
            self.begun = True
        elif kind == "request":
            self.asks(line)
        elif kind == "leave":
            permits += self.leaves(line)
        elif kind == "give-back":
            permits += self.releases_some(line)
        elif kind == "priority":
            asked = self.client(line, False, "change its priority")
            if self.leases is not None:
                self.leases.changes_priority(self.now, line.client, asked.priority, line.counts())
            self.monitor.changes(asked.rival, line.counts(), not self.flying)
            asked.priority = line.counts()
        elif kind == "withdraw":
            asked = self.client(line, False, "give up")
            del self.clients[line.client]
            self.monitor.withdraws(asked.rival, not self.flying)
            if self.leases is not None:
                self.leases.waits.stops(self.now, line.client)
        elif kind in ("link-up", "link-down"):
            # What one end has not been notified of may be a request that was lost.
            self.one_sided ^= {(min(node, line.peer), max(node, line.peer))}
            if (kind == "link-up") != self.complete:
                self.sees.add((node, line.peer))
            else:
                self.sees.discard((node, line.peer))
            self.monitor.changed(line.components == 1 and not self.one_sided)
        elif kind == "start" and self.begun:
            raise self.trace.bad(f"sets node {node} going after the run has begun")
        for known, value in ((self.tokens, line.tokens), (self.free, line.free)):
            if value != UNSAID:
                known[node] = value
        free = self.free.get(node, 0)
        self.step = (node, tokens - self.tokens.get(node, 0), permits - free)
        if self.leases is not None:
            self.leases.keeps(line, self.tokens.get(node, 0), free)

    def asks(self, line: TraceLine) -> None:
        client, priority = line.client, line.counts()
        if client in self.clients:
            raise self.trace.bad(f"lets client {client} ask a second time")
        if line.want < 1:
            raise self.trace.bad(f"lets client {client} ask for {line.want} permits")
        self.requested += 1
        self.begun = True
        self.begins_quiet()
        rival = self.monitor.asks(line.node, priority, line.want)
        self.clients[client] = AskedClient(line.node, line.want, priority, rival)
        if self.leases is not None:
            self.leases.waits.asks(self.now, client, line.node, priority, want=line.want)

    def leaves(self, line: TraceLine) -> int:
        want = self.client(line, True, "leave").want
        del self.clients[line.client]
        if self.leases is not None:
            self.leases.monitor.gives_back(self.now, line.client)
        else:
            self.monitor.leaves(want)
            self.begins_quiet()
        return want

    def releases_some(self, line: TraceLine) -> int:
        """A client that keeps other permits."""
        client, permits = line.client, line.permits
        asked = self.clients.get(client)
        if asked is None or not asked.inside or not is_part(permits, asked.want):
            raise self.trace.bad(f"lets client {client} release {permits}, which it does not hold")
        asked.want -= permits
        if self.leases is not None:
            self.leases.monitor.gives_some(client, permits)
        else:
            self.monitor.leaves(permits)
            self.begins_quiet()
        return permits

    def arrives(self, kind: str, line: TraceLine) -> TraceLine:
        """The line by which the message was sent that is delivered here or comes back."""
        sent = self.flying.pop(line.id, None)
        if sent is None:
            raise self.trace.bad(f"delivers message {line.id}, which is not on its way")
        if kind == "deliver":
            here, there, told = sent.to, sent.node, line.sender
        else:
            here, there, told = sent.node, sent.to, line.to
        if line.node != here:
            raise self.trace.bad(f"delivers message {line.id} to the wrong node")
        if told != there or not same_message(sent, line, self.ages):
            raise self.trace.bad(f"delivers message {line.id}, but not as it was sent")
        return sent

    def begins_quiet(self) -> None:
        """A client acts; was nothing in flight?"""
        if self.monitor.judges_order and not self.flying:
            self.monitor.quiet()

    # -- effects --------------------------------------------------------------------------

    def drop(self, line: TraceLine) -> None:
        sent = self.flying.pop(line.id, None)
        if sent is None:
            raise self.trace.bad(f"drops message {line.id}, which is not on its way")
        if self.balanced and self.leases is None:
            self.monitor.balance(self.now, sent.node, said(sent.tokens), said(sent.permits))

    def send(self, line: TraceLine) -> None:
        node, to = line.node, line.to
        if line.id in self.flying:
            raise self.trace.bad(f"sends message {line.id} a second time")
        tokens, permits = said(line.tokens), said(line.permits)
        self.flying[line.id] = line
        if not 0 <= to < self.trace.nodes or (
            self.linked and ((node, to) in self.sees) == self.complete
        ):
            kept = self.failures == "custody" and (tokens > 0 or permits > 0)
            if not kept:
                self.monitor.report("neighbours", self.now, sentences.no_link(node, to))
        if self.leases is not None:
            tokens = self.leases.costs(line, tokens)
            self.leases.lends(line)
        elif line.lends:
            clients = self.clients.values()
            waiting = [one.rival for one in clients if one.node == to and not one.inside]
            self.monitor.lends(self.now, to, waiting, line.lends)
        elif tokens > 0:
            self.monitor.forget_the_first()
        self.gives(node, tokens, permits)

    def enter(self, line: TraceLine) -> None:
        client = line.client
        asked = self.client(line, False, "in")
        if line.node != asked.node:
            raise self.trace.bad(
                f"lets client {client} in at node {line.node}; it asked at {asked.node}"
            )
        if line.want not in (UNSAID, asked.want):
            raise self.trace.bad(
                f"lets client {client} in with {line.want} permits; it asked for {asked.want}"
            )
        asked.inside = True
        self.entries += 1
        if self.leases is not None:
            self.leases.enter(line, asked.want)
        else:
            if line.fence is not None and not isinstance(line.fence, int):
                raise self.trace.bad("('enter') needs a whole number as 'fence'")
            if line.fence is not None and line.fence < 1:
                raise self.trace.bad("needs a fence above 0")
            self.monitor.enters(self.now, line.node, asked.want, asked.rival)
        self.gives(line.node, 0, asked.want)

    def gives(self, node: int, tokens: int, permits: int) -> None:
        if self.step is None or self.step[0] != node:
            raise self.trace.bad("is an effect without a cause before it")
        self.step = (node, self.step[1] - tokens, self.step[2] - permits)

    def end_step(self) -> None:
        """The step is over: it must have made and lost nothing."""
        if self.step is not None and self.leases is not None:
            self.leases.end_step(self.now, self.step[0], self.step[1])
        elif self.step is not None and self.balanced:
            node, tokens, permits = self.step
            self.monitor.balance(self.now, node, tokens, permits)
        self.step = None
        self.monitor.moved()


def said(number: int) -> int:
    return 0 if number == UNSAID else number


def same_message(sent: TraceLine, line: TraceLine, ages: bool) -> bool:
    """Is what arrives or comes back what was sent? Its seal gets older on the way; ``ages``: so
    does what it says itself."""
    if line.message != sent.message:
        return False
    if line.args != sent.args and not (ages and timeless(line) == timeless(sent)):
        return False
    return sent.seal is None or without_age(sent.seal) == without_age(line.seal)


def timeless(line: TraceLine) -> dict[str, Any]:
    """Its fields without that which says how long it has been under way."""
    args = line.args
    return {key: args[key] for key in args if key != "sent"} if isinstance(args, dict) else {}


def without_age(seal: Any) -> list[Any] | None:
    return seal[:-1] if isinstance(seal, list) else None
