"""What to check as a person writes it: flags, or an entry of the manifest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from meshlock.algorithms.actor import Algorithm, Network, Options, choices_of
from meshlock.algorithms.amounts import Kinds, most_of_each, parse_kinds
from meshlock.algorithms.recovery.inside import refuse_unrecoverable
from meshlock.algorithms.recovery.records import Change as PoolChange
from meshlock.algorithms.registry import find, refuse_impossible, with_defaults
from meshlock.algorithms.steps import in_grants, units
from meshlock.check.faults import Faults
from meshlock.check.judging import NAMES as RECOVERY
from meshlock.check.settings import CheckSettings, FaultSettings
from meshlock.check.setup import CheckedChange, CheckedRequest, ForNode, SetUp
from meshlock.check.structure import NAMES as STRUCTURE
from meshlock.check.ties import TIES
from meshlock.check.unspent import refuse_unspendable
from meshlock.errors import Refused, setting
from meshlock.properties.monitor import NAMES
from meshlock.properties.own import OwnProperty, is_own, own_name, own_names, own_property
from meshlock.properties.promises import NO_TIES, promises
from meshlock.topology.graphs import Topology
from meshlock.topology.specification import network
from meshlock.world.channels import CUSTODY, FAILURES

PROPERTIES = (*NAMES, *RECOVERY, "liveness", *STRUCTURE)
"""Those of every run; those of nodes that recover; liveness: nobody waits for ever while others go
round; and those of the single states of the algorithms that promise them. Ties are judged only
where they are named."""

PRIORITY = r"-?\d+(?:\.\d+)?"
WANT = r"(?:[A-Za-z][\w.-]*:)?\d+"
REQUEST = re.compile(rf"(\d+)(?::({WANT}(?:\+{WANT})*))?(?:@({PRIORITY}))?")
CHANGE = re.compile(r"(up|down) +(\d+)-(\d+)")
PART = re.compile(rf"(\d+):({WANT}(?:\+{WANT})*)")
RAISE = re.compile(rf"(\d+):({PRIORITY})")
MEMBER_CHANGE = re.compile(r"(add|remove) +(\d+)")


def deadlines(given: CheckSettings) -> bool:
    """Has a request less than a step of priority? Only deadlines count for that."""
    asked = [REQUEST.fullmatch(text.strip()) for text in given.requests]
    raised = [RAISE.fullmatch(text.strip()) for text in given.raises]
    said = [(match[match.re.groups] or "") for match in (*asked, *raised) if match is not None]
    return any("." in priority for priority in said)


def in_units(flag: str, text: str, priority: str, units: int) -> int:
    """A priority in steps, such as 2 or 0.99."""
    counts = Fraction(priority) * units
    if counts.denominator > 1:
        raise Refused(
            f"{setting(flag)} {text}: a request ages by 1/{units} of a step with each grant, and "
            f"deadlines count for that much or more. Use a multiple of 1/{units}."
        )
    return int(counts)


def matched(pattern: re.Pattern[str], flag: str, takes: str, text: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise Refused(f"{setting(flag)} takes {takes}, not '{text}'.")
    return match


def request(text: str, size: int, units: int, kinds: Kinds) -> CheckedRequest:
    """``NODE:WANT@PRIORITY``; want 1, where there is one kind, and priority 0 may be left out."""
    match = matched(REQUEST, "request", "NODE:WANT@PRIORITY, such as 2:1@5", text)
    node, want, priority = match.groups()
    if int(node) >= size:
        raise Refused(
            f"{setting('request')} {text}: there is no node {node}; the last is {size - 1}."
        )
    if want is not None and not kinds.several and want.isdecimal() and int(want) < 1:
        raise Refused(f"{setting('request')} {text}: a request is for at least one permit.")
    counts = in_units("request", text, priority or "0", units)
    return CheckedRequest(int(node), wanted(kinds, want or "1"), counts)


def wanted(kinds: Kinds, text: str) -> int:
    """One kind may be asked for more than there is, which is refused with the whole set-up."""
    return int(text) if not kinds.several and text.isdecimal() else kinds.parse(text)


def change(text: str, size: int) -> CheckedChange:
    match = matched(CHANGE, "change", "'up A-B' or 'down A-B', such as 'down 0-2'", text)
    one, other = int(match[2]), int(match[3])
    if max(one, other) >= size or one == other:
        raise Refused(
            f"{setting('change')} {text}: a link joins two different nodes of 0 to {size - 1}."
        )
    return CheckedChange(match[1] == "up", one, other)


def refuse_impossible_changes(graph: Topology, changes: list[CheckedChange]) -> None:
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


def records(words: dict[str, Any]) -> tuple[CheckSettings, FaultSettings]:
    """These words as settings."""
    faults = {name: value for name, value in words.items() if name in FaultSettings.declared}
    others = {name: value for name, value in words.items() if name not in faults}
    return CheckSettings(**others), FaultSettings(**faults)


def setup(*, algorithm: str, graph: Topology | None = None, **words: Any) -> SetUp:
    """The set-up that these words describe: fields of :class:`CheckSettings` and, where nodes
    recover, of :class:`FaultSettings`. Refuses, in a sentence, what makes no sense."""
    given, faults = records(words)
    entry = find(algorithm)
    settled = with_defaults(entry, given.options)
    if deadlines(given):
        settled = in_grants(settled)
    if graph is None:
        graph = network(given.topology, given.nodes, 1)
    refuse_senseless(entry, given)
    size = graph.size
    kinds = parse_kinds(str(given.permits))
    asked = [request(text, size, units(settled), kinds) for text in given.requests]
    if not asked:
        asked = [CheckedRequest(node, wanted(kinds, "1"), 0) for node in range(size)]
    for node in given.stay:
        if node not in [each.node for each in asked]:
            raise Refused(f"{setting('stay')} {node}: node {node} asks for nothing.")
        for each in asked:
            each.stays = each.stays or each.node == node
    ordered = [change(text, size) for text in given.changes]
    refuse_impossible_changes(graph, ordered)
    refuse_impossible(
        entry,
        permits=kinds.permits,
        want=most_of_each([one.want for one in asked]),
        complete=graph.complete or bool(given.members),  # recovery routes
        fifo=given.links == "fifo",
        changing=bool(ordered) or given.flips > 0,
    )
    if given.members:
        refuse_unrecoverable(entry, settled)
        refuse_choices(entry, settled, graph)
        renames = [len(text.split(",")) for text in faults.renames]
        sizes = [resized(kinds, text) for text in faults.resizes]
        refuse_impossible_sizes(entry, [*sizes, *renames], asked)
        refuse_plain_only(given)
    elif faults.given:
        first = faults.declared[next(iter(faults.given))]
        raise Refused(
            f"{setting(first.key)} is only for nodes that recover: add {setting('members')} all."
        )
    shares = [part(text, kinds) for text in given.release_parts]
    if given.parts:
        shares += single_permits(asked)
    made = SetUp(
        given,
        entry,
        settled,
        graph,
        asked,
        ordered,
        raises=[raised(text, units(settled)) for text in given.raises],
        parts=shares,
        faults=faults_of(size, given.members, faults, kinds) if given.members else None,
    )
    refuse_unspendable(made)
    return made


def refuse_senseless(algorithm: Algorithm, given: CheckSettings) -> None:
    """What is wrong whatever the network and the requests are."""
    links, failures = given.links, given.failures
    if links not in ("fifo", "unordered"):
        raise Refused(f"{setting('links')} is fifo or unordered, not '{links}'.")
    if failures not in FAILURES:
        raise Refused(f"{setting('failures')} is drain, return or custody, not '{failures}'.")
    if failures == CUSTODY and links != "fifo":
        raise Refused(f"Links with custody keep the order: use {setting('links')} fifo.")
    if given.clients < 1:
        raise Refused(f"Every node needs a client: use {setting('clients')} 1 or more.")
    if given.capacity < 0:
        raise Refused(f"{setting('capacity')} takes the most messages on one link: 1 or more.")
    if given.flips < 0:
        raise Refused(f"{setting('changes')} takes a number of changes: 0 or more.")
    if given.partitions and given.flips == 0:
        raise Refused(
            f"{setting('partitions')} needs changes of links: use {setting('changes')} 1 or more."
        )
    if given.clients > 1 and not algorithm.serves.many_clients:
        raise Refused(
            f"{algorithm.name} serves one client per node: leave out {setting('clients')}."
        )
    if given.withdrawals and not algorithm.serves.many_clients and not given.members:
        raise Refused(
            f"{algorithm.name} cannot withdraw a request: leave out {setting('withdrawals')}."
        )


def refuse_choices(algorithm: Algorithm, options: Options, network: Network) -> None:
    """Where nodes recover, a step is not taken once for every choice."""
    if choices_of(algorithm.make(network, 1, options, [])[0]) > 1:
        raise Refused(
            f"{algorithm.name} leaves open how its nodes behave, and a check with "
            f"{setting('members')} does not try every way: name one, as "
            f"{setting('option')} behaviour=transit, or leave out {setting('members')}."
        )


def raised(text: str, units: int) -> ForNode:
    """``NODE:PRIORITY``."""
    match = matched(RAISE, "raise", "NODE:PRIORITY, such as 2:9", text)
    return int(match[1]), in_units("raise", text, match[2], units)


def part(text: str, kinds: Kinds) -> ForNode:
    """``NODE:PERMITS``."""
    match = matched(PART, "release-part", "NODE:PERMITS, such as 2:1", text)
    return int(match[1]), wanted(kinds, match[2])


def resized(kinds: Kinds, text: str) -> int:
    """As many permits of each kind as ``--resize`` says."""
    text = str(text)
    if not kinds.several and not (text.isdecimal() and int(text) > 0):
        raise Refused(f"{setting('resize')} takes a number of permits: 1 or more.")
    return kinds.change(parse_kinds(text)).permits


def single_permits(asked: list[CheckedRequest]) -> list[ForNode]:
    """Every node that asks for several permits releases them one by one."""
    nodes = sorted({request.node for request in asked if request.want > 1})
    if not nodes:
        raise Refused(f"{setting('parts')} needs a request for several permits: add one, as 0:2.")
    return [(node, 1) for node in nodes]


def refuse_impossible_sizes(
    algorithm: Algorithm, sizes: list[int], asked: list[CheckedRequest]
) -> None:
    """What somebody wants must always be possible: else it waits for ever."""
    for size in sizes:
        if size < 1:
            raise Refused(f"{setting('resize')} takes a number of permits: 1 or more.")
        want = most_of_each([one.want for one in asked])
        refuse_impossible(
            algorithm, permits=size, want=want, complete=True, fifo=True, changing=False
        )


def faults_of(size: int, members: str, given: FaultSettings, kinds: Kinds) -> Faults:
    """The bounds of a search with these members."""
    named = members.isdecimal() and 1 <= int(members) <= size
    if members not in ("auto", "all") and not named:
        raise Refused(
            f"{setting('members')} takes auto, all, or a number up to {size}, not '{members}'."
        )
    for name, value in given.given.items():
        if isinstance(value, int) and value < 0:
            raise Refused(f"{setting(given.declared[name].key)} takes a number: 0 or more.")
    for node in (*given.crashing, *given.proposers):
        if not 0 <= node < size:
            raise Refused(f"There is no node {node}: nodes are 0 to {size - 1}.")
    if given.renewals not in ("meet", "travel"):
        raise Refused(f"{setting('renewals')} is meet or travel, not '{given.renewals}'.")
    if given.handshakes not in ("eager", "any"):
        raise Refused(f"{setting('handshakes')} is eager or any, not '{given.handshakes}'.")
    first = {"all": size, "auto": 0}.get(members)
    chosen = tuple(range(int(members) if first is None else first))
    faults = Faults(given, size, chosen, pool_changes(size, given, kinds))
    if not 1 <= faults.lease <= faults.wait:
        raise Refused(
            f"{setting('lease')} is at least 1 tick, and {setting('wait')} is not shorter."
        )
    return faults


def pool_changes(size: int, given: FaultSettings, kinds: Kinds) -> list[PoolChange]:
    """Members, then sizes, then names."""
    changes: list[PoolChange] = []
    for text in given.member_changes:
        match = MEMBER_CHANGE.fullmatch(text.strip())
        if match is None or int(match[2]) >= size:
            raise Refused(
                f"{setting('member-change')} takes 'add N' or 'remove N', N a node, not '{text}'."
            )
        node = int(match[2])
        changes.append(PoolChange(add=node) if match[1] == "add" else PoolChange(remove=node))
    changes += [PoolChange(permits=resized(kinds, text)) for text in given.resizes]
    for text in given.renames:
        names = tuple(text.split(","))
        if not given.slots or "" in names or len(set(names)) < len(names):
            raise Refused(
                f"{setting('rename')} takes names of permits, as in 1,2, and "
                f"{setting('slots')}, not '{text}'."
            )
        changes.append(PoolChange(names=names))
    return changes


def refuse_plain_only(given: CheckSettings) -> None:
    """With members links change by --cuts, and time is what goes on for ever."""
    if given.changes or given.flips:
        raise Refused(
            f"With {setting('members')} links fail by {setting('cuts')}: leave out "
            f"{setting('change')} and {setting('changes')}."
        )
    if given.repeat or given.capacity:
        raise Refused(
            f"With {setting('members')} every request is made once: leave out "
            f"{setting('repeat')}, {setting('capacity')}."
        )


def with_own(what: SetUp, wanted: Sequence[str | OwnProperty]) -> list[str]:
    """Adds functions, and those that a file has, as ``mine.py:name``; the names of all."""
    own = [own_property(one, (*PROPERTIES, TIES)) for one in wanted if is_own(one)]
    if own and what.faults is not None:
        raise Refused(
            f"A {setting('property')} of your own is judged without {setting('members')}: leave "
            f"that out, or judge a trace by 'meshlock audit'."
        )
    structure = (*what.algorithm.structure, *own)
    what.algorithm = what.algorithm._replace(structure=structure)
    names = [one for one in wanted if isinstance(one, str) and not is_own(one)]
    return names + [own_name(judge) for judge in own]


def judged(names: list[str], own: Iterable[str] = ()) -> set[str]:
    """The properties to judge: those named, or all. Handlers must always end well."""
    for name in names:
        if name not in (*PROPERTIES, TIES, *own):
            raise Refused(
                f"{setting('property')} is one of {', '.join((*PROPERTIES, TIES))}, not '{name}'."
            )
    return set(names or (*PROPERTIES, *own)) | {"handlers"}


def refuse_unjudged(what: SetUp, names: list[str], reduction: str) -> None:
    """A property that is named must be judged: no verdict without having looked."""
    algorithm = what.algorithm
    if TIES in names:
        refuse_untied(what, reduction)
    own = own_names(algorithm)
    for name in names:
        if name not in STRUCTURE and name not in own:
            continue
        if name not in algorithm.structure and name not in own:
            has = (
                ", ".join([one for one in algorithm.structure if isinstance(one, str)])
                or "none of these"
            )
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
    if what.kinds.several:
        raise Refused(f"{named} is judged where permits are of one kind: leave it out.")
    if promises(what.algorithm, what.options, what.faults is not None).ties == NO_TIES:
        recovers = f" with {setting('members')}" if what.faults is not None else ""
        raise Refused(
            f"{named}: {what.algorithm.name}{recovers} does not promise first come, first served "
            f"with these options. Leave it out."
        )
    if what.repeat or reduction != "none":
        other = setting("repeat") if what.repeat else f"{setting('reduction')} {reduction}"
        raise Refused(f"{named} goes by what was before each state: leave out {other}.")
