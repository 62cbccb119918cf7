"""What to check as a person writes it: flags, or an entry of the manifest."""

from __future__ import annotations

import re
from typing import Any

from meshlock.algorithms.interface import Algorithm
from meshlock.algorithms.recovery.inside import refuse_without_token
from meshlock.algorithms.recovery.records import Change as PoolChange
from meshlock.algorithms.registry import find, refuse_impossible, settle
from meshlock.check.faults import Faults
from meshlock.check.judging import NAMES as RECOVERY
from meshlock.check.setup import Change, ForNode, Request, SetUp
from meshlock.check.structure import NAMES as STRUCTURE
from meshlock.check.ties import TIES
from meshlock.check.unspent import refuse_unspendable
from meshlock.errors import Refused, setting
from meshlock.properties.monitor import NAMES
from meshlock.properties.promises import NO_TIES, promises
from meshlock.topology.graphs import Topology
from meshlock.topology.specification import network

PROPERTIES = (*NAMES, *RECOVERY, "liveness", *STRUCTURE)
"""Those of every run; those of nodes that recover; liveness: nobody waits for ever while others go
round; and those of the single states of the algorithms that promise them. Ties are judged only
where they are named."""

REQUEST = re.compile(r"(\d+)(?::(\d+))?(?:@(-?\d+))?")
CHANGE = re.compile(r"(up|down) +(\d+)-(\d+)")
FOR_NODE = re.compile(r"(\d+):(-?\d+)")
MEMBER_CHANGE = re.compile(r"(add|remove) +(\d+)")


def request(text: str, size: int) -> Request:
    """``NODE:WANT@PRIORITY``; want 1 and priority 0 may be left out."""
    match = REQUEST.fullmatch(text.strip())
    if match is None:
        raise Refused(
            f"{setting('request')} takes NODE:WANT@PRIORITY, such as 2:1@5, not '{text}'."
        )
    node, want, priority = match.groups()
    if int(node) >= size:
        raise Refused(
            f"{setting('request')} {text}: there is no node {node}; the last is {size - 1}."
        )
    if want is not None and int(want) < 1:
        raise Refused(f"{setting('request')} {text}: a request is for at least one permit.")
    return Request(int(node), int(want or 1), int(priority or 0))


def change(text: str, size: int) -> Change:
    match = CHANGE.fullmatch(text.strip())
    if match is None:
        raise Refused(
            f"{setting('change')} takes 'up A-B' or 'down A-B', such as 'down 0-2', not '{text}'."
        )
    one, other = int(match[2]), int(match[3])
    if max(one, other) >= size or one == other:
        raise Refused(
            f"{setting('change')} {text}: a link joins two different nodes of 0 to {size - 1}."
        )
    return Change(match[1] == "up", one, other)


def refuse_impossible_changes(graph: Topology, changes: list[Change]) -> None:
    links = set(graph.links())
    for step in changes:
        pair = (step.one, step.other)
        if step.up == (pair in links):
            state = "is there already" if step.up else "is not there"
            raise Refused(f"{setting('change')} '{step}': by then the link {state}.")
        if step.up:
            links.add(pair)
        else:
            links.remove(pair)


def setup(
    *,
    algorithm: str,
    nodes: int | None = None,
    topology: str = "complete",
    permits: int = 1,
    requests: list[str] | None = None,
    changes: list[str] | None = None,
    flips: int = 0,
    links: str = "fifo",
    failures: str = "drain",
    partitions: bool = False,
    clients: int = 1,
    repeat: bool = False,
    withdrawals: bool = False,
    raises: list[str] | None = None,
    release_parts: list[str] | None = None,
    parts: bool = False,
    stay: list[int] | None = None,
    options: dict[str, str] | None = None,
    capacity: int = 0,
    graph: Topology | None = None,
    lead: list[str] | None = None,
    members: str = "",
    **faults: Any,
) -> SetUp:
    """The set-up that these words describe; refuses, in a sentence, what makes no sense.

    ``parts``: whoever holds several permits may release them one by one. ``faults`` are the words
    of :class:`~meshlock.check.faults.Faults`.
    """
    entry = find(algorithm)
    settled = settle(entry, options or {})
    if graph is None:
        graph = network(topology, nodes, 1)
    if links not in ("fifo", "unordered"):
        raise Refused(f"{setting('links')} is fifo or unordered, not '{links}'.")
    if failures not in ("drain", "return", "custody"):
        raise Refused(f"{setting('failures')} is drain, return or custody, not '{failures}'.")
    if failures == "custody" and links != "fifo":
        raise Refused(f"Links with custody keep the order: use {setting('links')} fifo.")
    if clients < 1:
        raise Refused(f"Every node needs a client: use {setting('clients')} 1 or more.")
    if capacity < 0:
        raise Refused(f"{setting('capacity')} takes the most messages on one link: 1 or more.")
    if flips < 0:
        raise Refused(f"{setting('changes')} takes a number of changes: 0 or more.")
    if partitions and flips == 0:
        raise Refused(
            f"{setting('partitions')} needs changes of links: use {setting('changes')} 1 or more."
        )
    if clients > 1 and not entry.many_clients:
        raise Refused(f"{entry.name} serves one client per node: leave out {setting('clients')}.")
    if withdrawals and not entry.many_clients and not members:
        raise Refused(
            f"{entry.name} cannot withdraw a request: leave out {setting('withdrawals')}."
        )
    size = graph.size
    asked = [request(text, size) for text in requests or []]
    if not asked:
        asked = [Request(node, 1, 0) for node in range(size)]
    for node in stay or []:
        if node not in [each.node for each in asked]:
            raise Refused(f"{setting('stay')} {node}: node {node} asks for nothing.")
        for each in asked:
            each.stays = each.stays or each.node == node
    ordered = [change(text, size) for text in changes or []]
    refuse_impossible_changes(graph, ordered)
    refuse_impossible(
        entry,
        permits=permits,
        want=max(one.want for one in asked),
        complete=graph.complete or bool(members),  # recovery routes
        fifo=links == "fifo",
        changing=bool(ordered) or flips > 0,
    )
    if members:
        refuse_without_token(entry)
        renames = [len(text.split(",")) for text in faults.get("renames", [])]
        refuse_impossible_sizes(entry, faults.get("resizes", []) + renames, asked)
        refuse_plain_only(changes=ordered, flips=flips, repeat=repeat, capacity=capacity)
    elif faults:
        word = next(iter(faults)).replace("_", "-")
        raise Refused(
            f"{setting(word)} is only for nodes that recover: add {setting('members')} all."
        )
    shares = [for_node("release-part", text) for text in release_parts or []]
    if parts:
        shares += single_permits(asked)
    made = SetUp(
        entry,
        settled,
        graph,
        permits,
        asked,
        changes=ordered,
        flips=flips,
        fifo=links == "fifo",
        clients=clients,
        failures=failures,
        partitions=partitions,
        repeat=repeat,
        withdrawals=withdrawals,
        raises=[for_node("raise", text) for text in raises or []],
        parts=shares,
        capacity=capacity,
        lead=lead,
        faults=faults_of(size, members, **faults) if members else None,
    )
    refuse_unspendable(made, faults)
    return made


def for_node(word: str, text: str) -> ForNode:
    """``NODE:NUMBER``."""
    match = FOR_NODE.fullmatch(text.strip())
    if match is None:
        meaning = "NODE:PRIORITY, such as 2:9" if word == "raise" else "NODE:PERMITS, such as 2:1"
        raise Refused(f"{setting(word)} takes {meaning}, not '{text}'.")
    return int(match[1]), int(match[2])


def single_permits(asked: list[Request]) -> list[ForNode]:
    """Every node that asks for several permits releases them one by one."""
    nodes = sorted({request.node for request in asked if request.want > 1})
    if not nodes:
        raise Refused(f"{setting('parts')} needs a request for several permits: add one, as 0:2.")
    return [(node, 1) for node in nodes]


def refuse_impossible_sizes(algorithm: Algorithm, sizes: list[int], asked: list[Request]) -> None:
    """What somebody wants must always be possible: else it waits for ever."""
    for size in sizes:
        if size < 1:
            raise Refused(f"{setting('resize')} takes a number of permits: 1 or more.")
        want = max(one.want for one in asked)
        refuse_impossible(
            algorithm, permits=size, want=want, complete=True, fifo=True, changing=False
        )


def faults_of(size: int, members: str, **words: Any) -> Faults:
    """What may happen to nodes that recover, of which so many are members."""
    named = members.isdecimal() and 1 <= int(members) <= size
    if members not in ("auto", "all") and not named:
        raise Refused(
            f"{setting('members')} takes auto, all, or a number up to {size}, not '{members}'."
        )
    for name, value in words.items():
        if isinstance(value, int) and value < 0:
            raise Refused(f"{setting(name.replace('_', '-'))} takes a number: 0 or more.")
        if name in ("crashing", "proposers"):
            for node in value:
                if not 0 <= node < size:
                    raise Refused(f"There is no node {node}: nodes are 0 to {size - 1}.")
    if words.get("renewals", "meet") not in ("meet", "travel"):
        raise Refused(f"{setting('renewals')} is meet or travel, not '{words['renewals']}'.")
    if words.get("handshakes", "eager") not in ("eager", "any"):
        raise Refused(f"{setting('handshakes')} is eager or any, not '{words['handshakes']}'.")
    lease, wait = words.get("lease", 2), words.get("wait", words.get("lease", 2))
    if not 1 <= lease <= wait:
        raise Refused(
            f"{setting('lease')} is at least 1 tick, and {setting('wait')} is not shorter."
        )
    changes: list[PoolChange] = []
    for text in words.pop("member_changes", []):
        match = MEMBER_CHANGE.fullmatch(text.strip())
        if match is None or int(match[2]) >= size:
            raise Refused(
                f"{setting('member-change')} takes 'add N' or 'remove N', N a node, not '{text}'."
            )
        node = int(match[2])
        changes.append(PoolChange(add=node) if match[1] == "add" else PoolChange(remove=node))
    changes += [PoolChange(permits=permits) for permits in words.pop("resizes", [])]
    for text in words.pop("renames", []):
        names = tuple(text.split(","))
        if not words.get("slots") or "" in names or len(set(names)) < len(names):
            raise Refused(
                f"{setting('rename')} takes names of permits, as in 1,2, and "
                f"{setting('slots')}, not '{text}'."
            )
        changes.append(PoolChange(names=names))
    first = {"all": size, "auto": 0}.get(members)
    if first is None:
        first = int(members)
    return Faults(
        size, tuple(range(first)), **{**words, "lease": lease, "wait": wait}, changes=changes
    )


def refuse_plain_only(*, changes: object, flips: int, repeat: bool, capacity: int) -> None:
    """With members links change by --cuts, and time is what goes on for ever."""
    if changes or flips:
        raise Refused(
            f"With {setting('members')} links fail by {setting('cuts')}: leave out "
            f"{setting('change')} and {setting('changes')}."
        )
    if repeat or capacity:
        raise Refused(
            f"With {setting('members')} every request is made once: leave out "
            f"{setting('repeat')}, {setting('capacity')}."
        )


def judged(names: list[str]) -> set[str]:
    """The properties to judge: those named, or all. Handlers must always end well."""
    for name in names:
        if name not in (*PROPERTIES, TIES):
            raise Refused(
                f"{setting('property')} is one of {', '.join((*PROPERTIES, TIES))}, not '{name}'."
            )
    return set(names or PROPERTIES) | {"handlers"}


def refuse_unjudged(what: SetUp, names: list[str], reduction: str) -> None:
    """Whoever names a property wants to know of it: no verdict without having looked."""
    algorithm = what.algorithm
    if TIES in names:
        refuse_untied(what, reduction)
    for name in names:
        if name not in STRUCTURE:
            continue
        if name not in algorithm.structure:
            has = ", ".join(algorithm.structure) or "none of these"
            raise Refused(
                f"{setting('property')} {name} does not hold for {algorithm.name}, which has "
                f"{has}: "
                "leave it out."
            )
        if reduction != "none":
            raise Refused(
                f"{setting('property')} {name} is judged in every state: leave out "
                f"{setting('reduction')} {reduction}."
            )


def refuse_untied(what: SetUp, reduction: str) -> None:
    named = f"{setting('property')} {TIES}"
    if promises(what.algorithm, what.options, what.faults is not None).ties == NO_TIES:
        recovers = f" with {setting('members')}" if what.faults is not None else ""
        raise Refused(
            f"{named}: {what.algorithm.name}{recovers} does not promise first come, first served "
            f"with these options. Leave it out."
        )
    if what.repeat or reduction != "none":
        other = setting("repeat") if what.repeat else f"{setting('reduction')} {reduction}"
        raise Refused(f"{named} goes by what was before each state: leave out {other}.")
