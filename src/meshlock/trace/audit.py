"""Judge any trace by the properties that the simulator watches as it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meshlock.algorithms.registry import ALGORITHMS
from meshlock.properties import sentences
from meshlock.properties.monitor import Monitor, Rival
from meshlock.properties.promises import written
from meshlock.trace.leases import LeaseAudit
from meshlock.trace.reader import Trace

CAUSES = {
    "start",
    "request",
    "leave",
    "give-back",
    "priority",
    "withdraw",
    "deliver",
    "undelivered",
    "link-up",
    "link-down",
    "crash",
    "restart",
    "timer",
}
OF_LEASES = {"crash", "restart", "timer", "recover", "lease", "lease-lost"}


@dataclass
class AskedClient:
    """A client, from asking to leaving."""

    node: int
    want: int
    priority: float
    rival: Rival


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
            self.leases.monitor if self.leases is not None else Monitor(permits, promised)
        )
        self.balanced = promised.balanced
        self.tokens: dict[int, int] = {holder: 1}
        self.free: dict[int, int] = {holder: permits}
        # what the checker's messages say of how long they have been under way changes there
        self.ages = self.leases is not None and setup.get("source") == "check"
        self.flying: dict[int, dict[str, Any]] = {}  # what was sent and is on its way
        self.clients: dict[int, AskedClient] = {}
        self.inside: set[int] = set()
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
        for event in trace.events():
            self.event(event)
        if trace.setup.get("source") == "check":  # written in one go: its last step is whole
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
        if not self.ended:  # the last step may have been cut off, and somebody may yet enter
            return
        if self.leases is not None:
            self.leases.ends(self.now)
        else:
            waiting = len(self.clients) - len(self.inside) if self.monitor.connected else 0
            self.monitor.ends(self.now, waiting)

    def event(self, event: dict[str, Any]) -> None:
        self.events += 1
        kind = event["event"]
        if self.ended:
            raise self.trace.bad("comes after the end of the run")
        causes = kind in CAUSES
        if causes or kind == "end":
            self.end_step()
        self.now = event["t"]
        if self.leases is not None:
            self.leases.goes_on(self.now)
            self.leased(self.leases, kind, event)
        elif kind in OF_LEASES:
            raise self.trace.bad(f"('{kind}') needs a set-up with 'recovery'")
        if causes:
            self.cause(kind, event)
        elif kind == "send":
            self.send(event)
        elif kind == "enter":
            self.enter(event)
        elif kind == "drop":
            self.drop(event)
        elif kind == "move":
            self.trace.number_at(event, "x")
            self.trace.number_at(event, "y")
        elif kind == "end":
            self.ended = True
        elif kind not in OF_LEASES:
            raise self.trace.bad(f"has an unknown kind of event: {kind}")

    def leased(self, leases: LeaseAudit, kind: str, event: dict[str, Any]) -> None:
        """What only traces with recovery have."""
        if kind == "send":
            return
        if kind in CAUSES:
            leases.lives(kind, self.trace.whole(event, "node"))
        if kind == "recover":
            leases.recovered(event)
            self.gives(self.trace.whole(event, "node"), -1, 0)
        elif kind == "lease":
            leases.lease(event)
        elif kind == "lease-lost":
            client = self.trace.whole(event, "client")
            if client not in self.inside:
                raise self.trace.bad(f"lets client {client} lose its lease, which is not inside")
            self.inside.remove(client)
            del self.clients[client]
            leases.lost(self.now, client)
        elif kind in ("crash", "restart", "link-up", "link-down"):
            leases.network(kind, event)
        elif kind == "timer" and "resize" in event:
            leases.monitor.resizes.add(self.trace.whole(event, "resize"))
        elif kind == "timer" and "lends" in event:
            node = self.trace.whole(event, "node")
            leases.monitor.lends_under(self.now, node, leases.fence(event))

    def cause(self, kind: str, event: dict[str, Any]) -> None:
        node = self.trace.whole(event, "node")
        if node < 0:
            raise self.trace.bad(f"('{kind}') needs a node")
        tokens, permits = self.tokens.get(node, 0), self.free.get(node, 0)
        if kind == "deliver" or kind == "undelivered":
            sent = self.arrives(kind, event, node)
            carried: int = sent.get("tokens", 0)
            tokens += self.leases.brings(event, carried) if self.leases else carried
            permits += sent.get("permits", 0)
            self.begun = True
        elif kind == "request":
            client, want = self.trace.whole(event, "client"), self.trace.whole(event, "want")
            if client in self.clients:
                raise self.trace.bad(f"lets client {client} ask a second time")
            if want < 1:
                raise self.trace.bad(f"lets client {client} ask for {want} permits")
            priority = counts(event)
            self.requested += 1
            self.begun = True
            self.begins_quiet()
            rival = self.monitor.asks(node, priority)
            self.clients[client] = AskedClient(node, want, priority, rival)
            if self.leases is not None:
                self.leases.asks(self.now, node, client, priority)
        elif kind == "leave":
            client = self.trace.whole(event, "client")
            if client not in self.inside:
                raise self.trace.bad(f"lets client {client} leave, which is not inside")
            self.inside.remove(client)
            want = self.clients.pop(client).want
            permits += want
            if self.leases is not None:
                self.leases.monitor.gives_back(self.now, client)
            else:
                self.monitor.leaves(want)
            self.begins_quiet()
        elif kind == "give-back":
            permits += self.release_part(event)
        elif kind == "priority":
            client = self.trace.whole(event, "client")
            if client not in self.clients or client in self.inside:
                raise self.trace.bad(
                    f"changes the priority of client {client}, which does not wait"
                )
            self.trace.whole(event, "priority")
            self.change_priority(client, counts(event))
        elif kind == "withdraw":
            client = self.trace.whole(event, "client")
            if client not in self.clients or client in self.inside:
                raise self.trace.bad(f"lets client {client} give up, which does not wait")
            self.monitor.withdraws(self.clients.pop(client).rival, not self.flying)
            if self.leases is not None:
                self.leases.waits_no_more(self.now, client)
        elif kind in ("link-up", "link-down"):
            # What one end has not been notified of may be a request that was lost.
            peer = self.trace.other_node(event, "peer")
            self.one_sided ^= {(min(node, peer), max(node, peer))}
            if (kind == "link-up") != self.complete:
                self.sees.add((node, peer))
            else:
                self.sees.discard((node, peer))
            self.monitor.changed(event.get("components", 1) == 1 and not self.one_sided)
        elif kind == "start" and self.begun:
            raise self.trace.bad(f"sets node {node} going after the run has begun")
        self.tokens[node] = event.get("tokens", self.tokens.get(node, 0))
        self.free[node] = event.get("free", self.free.get(node, 0))
        self.step = (node, tokens - self.tokens[node], permits - self.free[node])
        if self.leases is not None:
            self.leases.keeps(event, node, self.tokens[node], self.free[node])

    def arrives(self, kind: str, event: dict[str, Any], node: int) -> dict[str, Any]:
        """The line by which the message was sent that is delivered here or comes back."""
        number = self.trace.whole(event, "id")
        sent = self.flying.pop(number, None)
        if sent is None:
            raise self.trace.bad(f"delivers message {number}, which is not on its way")
        if kind == "deliver":
            here, there, told = sent["to"], sent["node"], event.get("from")
        else:
            here, there, told = sent["node"], sent["to"], event.get("to")
        if node != here:
            raise self.trace.bad(f"delivers message {number} to the wrong node")
        if told != there or not same_message(sent, event, self.ages):
            raise self.trace.bad(f"delivers message {number}, but not as it was sent")
        return sent

    def drop(self, event: dict[str, Any]) -> None:
        number = self.trace.whole(event, "id")
        sent = self.flying.pop(number, None)
        if sent is None:
            raise self.trace.bad(f"drops message {number}, which is not on its way")
        if self.balanced and self.leases is None:
            tokens, permits = sent.get("tokens", 0), sent.get("permits", 0)
            self.monitor.balance(self.now, sent["node"], tokens, permits)

    def release_part(self, event: dict[str, Any]) -> int:
        """How many permits a client releases that keeps others."""
        client, permits = self.trace.whole(event, "client"), self.trace.whole(event, "permits")
        if client not in self.inside or not 0 < permits < self.clients[client].want:
            raise self.trace.bad(f"lets client {client} release {permits}, which it does not hold")
        self.clients[client].want -= permits
        if self.leases is not None:
            self.leases.monitor.gives_some(client, permits)
        else:
            self.monitor.leaves(permits)
            self.begins_quiet()
        return permits

    def begins_quiet(self) -> None:
        """A client acts; was nothing in flight?"""
        if self.monitor.judges_order and not self.flying:
            self.monitor.quiet()

    def change_priority(self, client: int, priority: float) -> None:
        asked = self.clients[client]
        if self.leases is not None:
            self.leases.changes_priority(self.now, client, asked.priority, priority)
        self.monitor.changes(asked.rival, priority, not self.flying)
        asked.priority = priority

    def send(self, event: dict[str, Any]) -> None:
        node, number = self.trace.whole(event, "node"), self.trace.whole(event, "id")
        if number in self.flying:
            raise self.trace.bad(f"sends message {number} a second time")
        tokens, permits = event.get("tokens", 0), event.get("permits", 0)
        to = self.trace.whole(event, "to")
        self.flying[number] = event
        if not 0 <= to < self.trace.nodes or (
            self.linked and ((node, to) in self.sees) == self.complete
        ):
            kept = self.failures == "custody" and (tokens > 0 or permits > 0)
            if not kept:
                self.monitor.report("neighbours", self.now, sentences.no_link(node, to))
        if self.leases is not None:
            tokens = self.leases.costs(event, tokens)
            self.leases.lends(event, node)
        elif event.get("lends"):
            waiting = [
                asked.rival
                for client, asked in self.clients.items()
                if asked.node == to and client not in self.inside
            ]
            self.monitor.lends(self.now, to, waiting)
        elif tokens > 0:
            self.monitor.forget_the_first()
        self.gives(node, tokens, permits)

    def enter(self, event: dict[str, Any]) -> None:
        node, client = self.trace.whole(event, "node"), self.trace.whole(event, "client")
        if client not in self.clients or client in self.inside:
            raise self.trace.bad(f"lets client {client} in, which does not wait")
        asked = self.clients[client]
        want = asked.want
        if node != asked.node:
            raise self.trace.bad(
                f"lets client {client} in at node {node}; it asked at {asked.node}"
            )
        if "want" in event and self.trace.whole(event, "want") != want:
            raise self.trace.bad(
                f"lets client {client} in with {event['want']} permits; it asked for {want}"
            )
        self.inside.add(client)
        self.entries += 1
        if self.leases is not None:
            self.leases.enter(event, node, client, want)
        else:
            if "fence" in event and self.trace.whole(event, "fence") < 1:
                raise self.trace.bad("needs a fence above 0")
            self.monitor.enters(self.now, node, want, asked.rival)
        self.gives(node, 0, want)

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


def counts(event: dict[str, Any]) -> float:
    """The priority by which a request is served: with a deadline it is up to a step higher."""
    found: float = event.get("urgency", event.get("priority", 0))
    return found


def same_message(sent: dict[str, Any], event: dict[str, Any], ages: bool) -> bool:
    """Is what arrives or comes back what was sent? Its seal gets older on the way; ``ages``: so
    does what it says itself."""
    if event.get("message") != sent.get("message"):
        return False
    if event.get("args") != sent.get("args") and not (ages and timeless(event) == timeless(sent)):
        return False
    return "seal" not in sent or without_age(sent["seal"]) == without_age(event.get("seal"))


def timeless(event: dict[str, Any]) -> dict[str, Any]:
    """Its fields without that which says how long it has been under way."""
    args = event.get("args")
    return {key: args[key] for key in args if key != "sent"} if isinstance(args, dict) else {}


def without_age(seal: Any) -> list[Any] | None:
    return seal[:-1] if isinstance(seal, list) else None
