"""The plan of a run: what will be done to whom, drawn from a seed before anything starts.

Whom a *holder* or *client* is cannot be known beforehand; all else is. The plan is written
to the run's directory as JSON and can be repeated with ``--plan``: the same faults at the
same moments. What the processes make of them is theirs, so a finding need not come again,
but it is likelier than with any other plan.

Except in episodes that say so, a connected majority of the members is left alone: neither
killed, paused nor cut off, nor silent because it has just started. That holds for any
holder of the token. Where members are given by name, disks are lost in the first half of a run
only, and members and permits change in the second: a member that forgets a change is more than
recovery promises to survive. Members that choose themselves lose disks all the time: who forgets
has no vote until it has learned who they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from meshlock.errors import Attempt, Refused, setting
from meshlock.live.chaos.majority import Link, able, across
from meshlock.topology.specification import network

CROWD = 7
"""Leases for which all clients ask in a hurry, and nothing is done to them: after two of them
order is judged, and three without a grant are too many."""


class FaultKind(NamedTuple):
    """A kind of fault: what it is called, how often it comes in a deck (which is shuffled, dealt
    out, and shuffled again), and what the plan must know of it."""

    name: str
    often: int = 1
    leases: tuple[float, float] | None = None  # that it lasts, from and to; None: short or long
    of: str = ""  # the "holder" of the token, or a "node"
    kills: bool = False
    alone: bool = False  # when nothing else is out of order, and nothing else comes meanwhile


KINDS = {
    "kill-holder": FaultKind("holder killed", 4, of="holder", kills=True),
    "kill-agent": FaultKind("agent killed", of="node", kills=True),
    "kill-node": FaultKind("node killed", of="node", kills=True),
    "kill-client": FaultKind("client killed", 2, (0.1, 0.5)),
    "restart": FaultKind("agent restarted", 3, (1.0, 1.0), kills=True, alone=True),
    "leave": FaultKind("agent left", of="node", kills=True),
    "pause-holder": FaultKind("holder paused", of="holder"),
    "pause-agent": FaultKind("agent paused", of="node"),
    "pause-node": FaultKind("node paused", of="node"),
    "pause-client": FaultKind("client paused"),
    "partition": FaultKind("partition", 2),
    "strand": FaultKind("minority cut off", 3, (2.0, 4.0)),
    "birth": FaultKind("disk lost", 2, (0.5, 2.5), of="node", kills=True),
    "reset": FaultKind("most disks lost", 1, (0.0, 1.0), alone=True),
    "cut-link": FaultKind("link cut"),
    "break-link": FaultKind("link broken", 1, (0.0, 0.0)),
    "no-majority": FaultKind("quorum lost", alone=True),
    "crowd": FaultKind("crowd", 1, (CROWD, CROWD), alone=True),
    "resize": FaultKind("resized", 2),
    "rivals": FaultKind("members changed", 2),
}

SHARPEST = (*("restart", "kill-holder") * 2, "strand", "birth")
"""Every run begins with these, one by one."""

CHANGES = ("resize", "rivals")
"""Of permits; of members, from two places at once."""
CHANGED_BACK = 4
"""Leases within which all that was changed is as before."""
FEWEST = 5
"""Nodes, of which two can be removed from the members."""

START_UP = 2.0
"""Seconds that a restarted agent may take before it answers, on a busy machine."""

SETTLE = 0.5
"""Seconds for links to come back."""

RATE_BOUND = 0.01
"""Clocks run at most so much fast or slow."""

WIPED = 0.25
"""Share of restarts with an empty state directory, where the plan allows one."""

GROWN = 5
"""Leases within which a pool that was reset has all its members again, on an idle machine."""

ENDLESS = 12
"""Leases of some cuts of long runs: so long that no node that is cut off may call itself ready."""
LONG_RUN = 600.0

TRIES = 150
"""So often a fault is put off by a tenth of a lease before it is given up."""


class PlannedFault(msgspec.Struct, omit_defaults=True):
    at: float
    fault: str
    seconds: float = 0.0  # until it is undone
    nodes: list[str] = []  # empty: the holder, or whichever client holds permits
    sides: list[list[str]] = []  # of a partition
    link: Link | None = None
    silent: bool = True  # a cut of which no node is told (else connections break as well);
    # without a majority: nodes are paused (else killed)
    one_way: bool = False  # a silent cut through which one side is still heard
    wiped: bool = False  # it comes back without its state directory
    draw: float = 0.0  # which of the clients, as a share of those who qualify

    @property
    def kind(self) -> FaultKind:
        return KINDS[self.fault]


class Plan(msgspec.Struct):
    seed: int
    nodes: list[str]
    links: list[Link]
    permits: int
    lease: float
    seconds: float
    clients_per_node: int
    within: float  # service must resume within these seconds
    events: list[PlannedFault]
    auto: bool = False  # who links first makes the pool, and all become members by themselves

    @property
    def slots(self) -> list[str]:
        """The names of the permits."""
        return [f"slot{number}" for number in range(self.permits)]

    @property
    def forgets_until(self) -> float:
        """Disks are lost until then; if members have names, permits and members change later."""
        return self.seconds if self.auto else self.seconds / 2

    @property
    def silence(self) -> float:
        """For so long a node that has started may have no vote, by the slowest clock."""
        return self.lease * (1 + 3 * RATE_BOUND)

    def rate(self, who: str, start: int) -> float:
        """Of the clock of a process at its so-manyth start."""
        stream = Random(f"{self.seed}:rate:{who}:{start}")
        return round(stream.uniform(1 - RATE_BOUND, 1 + RATE_BOUND), 6)


def ring_with_chords(nodes: int) -> list[tuple[int, int]]:
    """A ring, and a link across it from every other node."""
    around = [(n, (n + 1) % nodes) for n in range(nodes)]
    across = [(n, (n + nodes // 2) % nodes) for n in range(0, nodes, 2)]
    return sorted({(min(pair), max(pair)) for pair in around + across})


def linked(topology: str, nodes: int, seed: int) -> list[Link]:
    if topology == "chords":
        pairs = ring_with_chords(nodes)
    else:
        graph = network(topology, nodes, seed)
        pairs = sorted({(min(a, b), max(a, b)) for a in range(nodes) for b in graph.neighbours(a)})
    return [(f"n{a}", f"n{b}") for a, b in pairs]


def make(
    seed: int,
    nodes: int = 5,
    permits: int = 3,
    lease: float = 3.0,
    seconds: float = 120.0,
    topology: str | None = None,
    clients_per_node: int = 2,
    within: float | None = None,
    auto: bool = False,
) -> Plan:
    if nodes < 3:
        raise Refused(
            f"{nodes} nodes have no quorum without one of them: use {setting('nodes')} 3 or more."
        )
    if permits < 1 or clients_per_node < 1:
        raise Refused(
            f"There must be permits and clients: raise {setting('permits')} or "
            f"{setting('clients-per-node')}."
        )
    if not (lease >= 1.0 and seconds > 0.0):
        raise Refused(
            f"Use {setting('lease')} 1 or more seconds, and {setting('seconds')} above 0."
        )
    if auto and nodes % 2 == 0:
        raise Refused(
            f"An odd number of nodes become members by themselves: use an odd {setting('nodes')}, "
            f"or {setting('members')} all."
        )
    names = [f"n{number}" for number in range(nodes)]
    links = linked(topology or ("complete" if auto else "chords"), nodes, seed)
    plan = Plan(
        seed, names, links, permits, lease, seconds, clients_per_node, within or 3 * lease, [], auto
    )
    plan.events = list(Drawing(plan).events())
    return plan


def save(plan: Plan, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n")


def load(path: Path) -> Plan:
    try:
        with Attempt(f"read {path}"):
            plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except msgspec.MsgspecError as error:
        raise Refused(f"{path} is not a plan: {error}.") from None
    known = set(plan.nodes)
    for event in plan.events:
        named = {*event.nodes, *(event.link or ())}.union(*event.sides)
        if event.fault not in KINDS or not named <= known:
            raise Refused(
                f"{path} has a fault '{event.fault}' for {sorted(named)}, not all of "
                "which exist: correct the plan."
            )
    return plan


class Trouble(msgspec.Struct):
    """What is out of order for a while. ``anybody``: one node more, we do not know which.
    ``spared``: nodes that are cut off, and to which nothing else may be done."""

    until: float
    nodes: Collection[str] = ()
    cut: Collection[Link] = ()
    anybody: bool = False
    spared: Collection[str] = ()


class Drawing:
    """Deals the faults out along the time, never more at once than the rule allows."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.random = Random(f"{plan.seed}:plan")
        self.troubles: list[Trouble] = []
        self.wiped_until = 0.0  # until then no other may forget

    def events(self) -> Iterator[PlannedFault]:
        lease, time, impossible = self.plan.lease, self.plan.lease / 2, 0
        for number, fault in enumerate(self.dealt()):
            alone = number < len(SHARPEST) or KINDS[fault].alone
            placed = self.place(fault, time, alone)
            if placed is None:
                impossible += 1
                if impossible > sum(kind.often for kind in KINDS.values()):
                    return
                continue
            event, trouble = placed
            if event.at + event.seconds > self.plan.seconds:
                return
            impossible = 0
            self.troubles.append(trouble)
            yield event
            time = trouble.until if alone else event.at
            soon = number < len(SHARPEST) or self.random.random() < 0.6
            time += lease * (self.random.uniform(0.1, 0.8) if soon else self.random.uniform(1, 3))

    def dealt(self) -> Iterator[str]:
        """A short run has the sharpest first."""
        yield from self.random.sample(SHARPEST, len(SHARPEST))
        while True:
            deck = [fault for fault, kind in KINDS.items() for _ in range(kind.often)]
            self.random.shuffle(deck)
            yield from deck

    def place(self, fault: str, time: float, alone: bool) -> tuple[PlannedFault, Trouble] | None:
        """This fault at this time, or as soon afterwards as it is allowed; None if it never is,
        as the killing of a holder in a star, who may be the hub."""
        if fault in CHANGES and not self.may_change(fault, time):
            return None
        if fault == "reset" and not self.plan.auto:
            return None  # where members have names, those names come back
        if fault in ("birth", "reset"):
            time = max(time, self.wiped_until)
        for _ in range(TRIES):
            standing = [trouble for trouble in self.troubles if trouble.until > time]
            event, trouble = self.draw(fault, time)
            possible = KINDS[fault].alone or self.allowed([*standing, trouble])
            if possible and not (alone and standing):
                event.wiped = self.may_forget(event, trouble)
                wiped = event.wiped or fault not in ("birth", "reset")
                return (event, trouble) if wiped else None
            time += 0.1 * self.plan.lease
        return None

    def allowed(self, troubles: list[Trouble]) -> bool:
        plan = self.plan
        out = {node for trouble in troubles for node in trouble.nodes}
        spared = {node for trouble in troubles for node in trouble.spared}
        if out & spared:
            return False
        out |= spared
        cut = {link for trouble in troubles for link in trouble.cut}
        links = [link for link in plan.links if link not in cut]
        unknown = sum(trouble.anybody for trouble in troubles)

        def stands(out: set[str], more: int) -> bool:
            left = [node for node in plan.nodes if node not in out]
            if more == 0:
                return bool(able(plan.nodes, left, links))
            return all(stands(out | {node}, more - 1) for node in left)

        return stands(out, unknown)

    def may_change(self, fault: str, time: float) -> bool:
        if fault == "resize":
            possible = self.plan.permits > 1
        else:
            possible = len(self.plan.nodes) >= FEWEST and not self.plan.auto
        begin = 0.0 if self.plan.auto else self.plan.forgets_until
        return possible and time > max(begin, self.wiped_until)

    def may_forget(self, event: PlannedFault, trouble: Trouble) -> bool:
        """Two that forget within two leases are more than is promised."""
        back = event.at + event.seconds
        if event.fault == "restart" or not (event.kind.kills or event.fault == "reset"):
            return False
        if not self.wiped_until <= back <= self.plan.forgets_until:
            return False
        if event.fault not in ("birth", "reset") and self.random.random() > WIPED:
            return False
        self.wiped_until = trouble.until + 2 * self.plan.lease
        return True

    # -- one fault -----------------------------------------------------------------------------

    def draw(self, fault: str, at: float) -> tuple[PlannedFault, Trouble]:
        at = round(at, 3)
        seconds = round(self.length(fault) * self.plan.lease, 3)
        event = PlannedFault(at, fault, seconds, draw=round(self.random.random(), 6))
        trouble = Trouble(at + seconds + SETTLE)
        if event.kind.kills or fault == "no-majority":
            trouble.until += START_UP + self.plan.silence
        if event.kind.of == "holder":
            trouble.anybody = True
        elif event.kind.of == "node":
            trouble.nodes = event.nodes = [self.random.choice(self.plan.nodes)]
        elif fault == "strand":
            event.silent = self.random.random() < 0.6
            event.sides = self.connected_minority()
            trouble.spared = event.sides[-1]
            trouble.cut = across(self.plan.links, event.sides)
        elif fault == "partition":
            event.silent = self.random.random() < 0.6
            event.one_way = event.silent and self.random.random() < 0.3
            event.sides = self.sides(self.random.choice(("minority", "three", "alone")))
            trouble.cut = across(self.plan.links, event.sides)
        elif fault in ("cut-link", "break-link"):
            event.silent = fault == "cut-link"
            event.one_way = event.silent and self.random.random() < 0.5
            event.link = self.random.choice(self.plan.links)
            trouble.cut = [event.link] if event.silent else []
        elif fault in CHANGES:
            trouble.until += CHANGED_BACK * self.plan.lease
            if fault == "rivals":
                trouble.nodes = event.nodes = self.random.sample(self.plan.nodes, 2)
        elif fault == "reset":
            most = len(self.plan.nodes) // 2 + 1
            event.nodes = self.random.sample(self.plan.nodes, most)
            trouble.until += START_UP * most + GROWN * self.plan.lease
        elif fault == "no-majority":
            self.draw_no_majority(event)
        return event, trouble

    def length(self, fault: str) -> float:
        """In leases."""
        long_run = fault in ("strand", "no-majority") and self.plan.seconds >= LONG_RUN
        if long_run and self.random.random() < 0.15:
            return ENDLESS
        kind = KINDS[fault]
        if kind.leases is not None:
            low, high = kind.leases
            return low if low == high else self.random.uniform(low, high)
        if kind.kills:
            times = (1.0, 2.5) if fault == "kill-holder" else (0.3, 1.0, 2.5)
            return self.random.choice(times) * self.random.uniform(0.5, 1.5)
        short, long = self.random.uniform(0.1, 0.8), self.random.uniform(1.2, 3.0)
        return self.random.choice((short, long))

    def sides(self, kind: str) -> list[list[str]]:
        names = list(self.plan.nodes)
        self.random.shuffle(names)
        most = len(names) // 2 + 1
        if kind == "alone" or len(names) - most < 2:
            return [names[1:], names[:1]]
        if kind == "minority":
            return [names[:most], names[most:]]
        half = most + (len(names) - most) // 2
        return [names[:most], names[most:half], names[half:]]

    def connected_minority(self) -> list[list[str]]:
        """As large as can be spared, and the others."""
        side = [self.random.choice(self.plan.nodes)]
        for _ in range((len(self.plan.nodes) - 1) // 2 - 1):
            near = [link for link in self.plan.links if len({*link}.intersection(side)) == 1]
            if near:
                side += [node for node in self.random.choice(near) if node not in side]
        return [[node for node in self.plan.nodes if node not in side], side]

    def draw_no_majority(self, event: PlannedFault) -> None:
        """Half of the members killed or paused, or sides of which none is large enough."""
        names = list(self.plan.nodes)
        self.random.shuffle(names)
        few = len(names) // 2
        event.silent = self.random.random() < 0.6
        if self.random.random() < 0.5:
            event.nodes = names[few:]
        else:
            event.sides = [names[:few], names[few : 2 * few], names[2 * few :]]
            event.sides = [side for side in event.sides if side]
