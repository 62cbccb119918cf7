"""The settings of a run as a person writes them: flags, or a scenario file in TOML.

A scenario file holds the same names as the flags of ``meshlock simulate``, so that a run
is a file one can mail::

    algorithm = "raymond"
    nodes = 31
    topology = "tree"
    workload = "saturated"
    requests = 20_000

Algorithm options such as ``behaviour`` or ``queue`` stand beside the others.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from difflib import get_close_matches
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

from meshlock.algorithms.actor import Actor, Algorithm
from meshlock.algorithms.amounts import Kinds, parse_kinds
from meshlock.algorithms.registry import ALGORITHMS, find, refuse_impossible, with_defaults
from meshlock.algorithms.steps import in_grants, step
from meshlock.errors import Attempt, Refused, setting
from meshlock.simulate.custody import CustodySimulation
from meshlock.simulate.engine import RunSetup, Simulation
from meshlock.simulate.link_changes import MobileSimulation
from meshlock.simulate.recovery import InjectedFaults, RecoverySimulation
from meshlock.simulate.run_settings import RECOVERY, RunSettings, Values
from meshlock.simulate.workload import Duration, Workload
from meshlock.topology.graphs import Complete, Topology
from meshlock.topology.mobility.changes import Changes
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.topology.mobility.specification import (
    Mobility,
    makes_links,
    mobility,
    refuse_partitions,
)
from meshlock.topology.specification import network, says_its_size
from meshlock.trace.writer import TraceWriter
from meshlock.world.channels import CUSTODY, DRAIN, FAILURES
from meshlock.world.lives import TICKS, LayerSetup, drawn_clocks, made_by_node_0

USUAL_SIZE = 10
"""How many nodes there are where neither the flags nor the topology say."""

USUAL_NOTICE = "exp:1"
"""How long an end of a link takes to learn that it has failed or returned, with custody."""

MOST_CLIENTS = 1_000_000
"""At each node."""

MOST_URGENT = 10**18 - 1
"""Of priorities, which floats must hold."""

LONGEST_TIME = 1e18
LEAST_RATE = 1e-12
"""Of requests: between rarer ones virtual time, a float, has no room for a message's delay."""


def run_settings(values: Values) -> RunSettings:
    """One run: every setting has the value of that name, or its default."""
    recovery = [name for name in RECOVERY if name in values]
    if recovery and not values.get("members"):
        others = [name for name in recovery if name != "members"]
        if not others:
            raise Refused(f"{setting('members')} takes 'auto', 'all' or a number above 0.")
        raise Refused(
            f"{setting(others[0])} is only for nodes that recover: add {setting('members')}, such "
            f"as {setting('members')} all."
        )
    optional = {name for entry in ALGORITHMS.values() for name in entry.options}
    given: dict[str, Any] = {}
    options: dict[str, str] = {}
    for name, value in values.items():
        one = RunSettings.keys.get(name)
        if one is None:
            refuse_unknown(name, optional)
            options[name] = str(value)
        elif not isinstance(one.default, int):
            given[one.field] = str(value)
        elif isinstance(value, int):
            given[one.field] = value
        else:
            raise Refused(f"{name} takes a whole number, not '{value}'.")
    settings = RunSettings(**given)
    settings.options = options
    return settings


def refuse_unknown(name: str, optional: set[str]) -> None:
    if name not in optional:
        close = get_close_matches(name, [*RunSettings.keys, *optional], n=1)
        hint = f"did you mean '{close[0]}'?" if close else "use one of meshlock simulate."
        raise Refused(f"There is no setting '{name}': {hint}")


def read_table(path: Path) -> dict[str, Any]:
    try:
        with Attempt(f"read {path}"):
            return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not valid TOML: {error}.") from None


def read_scenario(path: Path) -> Values:
    """The settings in a scenario file, not yet checked for sense."""
    given: Values = {}
    for name, value in read_table(path).items():
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Refused(f"In {path}, '{name}' must be a number or a text.")
        given[name] = str(value) if isinstance(value, float) else value
    return given


def span(name: str, text: str) -> tuple[int, int]:
    """``3`` or ``1-4``: a whole number, or two with a dash between them."""
    low, dash, high = text.partition("-") if not text.startswith("-") else (text, "", "")
    try:
        bounds = (int(low), int(high) if dash else int(low))
    except ValueError:
        raise Refused(
            f"{setting(name)} takes a number or LOW-HIGH, such as 1-3, not '{text[:40]}'."
        ) from None
    if max(map(abs, bounds)) > MOST_URGENT:
        raise Refused(f"{setting(name)} takes numbers of up to 18 digits, not '{text[:40]}'.")
    if bounds[0] > bounds[1]:
        raise Refused(f"{setting(name)} {text}: the first number must not be above the second.")
    return bounds


def duration(name: str, text: str, seed: int) -> Duration:
    """``1``, ``uniform:0.5,1.5`` or ``exp:2``, with a random stream of its own."""
    shape, _, numbers = text.rpartition(":")
    parts = numbers.split(",")
    stream = Random(f"{seed}:{name}")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if not all(0.0 <= value < LONGEST_TIME for value in values):
        values = []
    if shape == "" and len(values) == 1:
        return Duration("constant", values[0], values[0], stream)
    if shape == "uniform" and len(values) == 2 and values[0] <= values[1]:
        return Duration("uniform", values[0], values[1], stream)
    if shape == "exp" and len(values) == 1:
        return Duration("exponential", values[0], values[0], stream)
    raise Refused(
        f"{setting(name)} takes a time not below 0 and below {LONGEST_TIME:g}, uniform:LOW,HIGH or "
        f"exp:MEAN, not '{text}'."
    )


def wanted(kinds: Kinds, text: str) -> list[tuple[int, int]]:
    """How many of each kind a request asks for, at the least and at the most."""
    if not kinds.several:
        low, high = span("want", text.removeprefix(f"{kinds.names[0]}:"))
        if low < 1:
            raise Refused(f"A request is for at least one permit: use {setting('want')} 1 or more.")
        return [(low, high)]
    spans: dict[str, tuple[int, int]] = {}
    for part in text.split(","):
        name, colon, numbers = part.strip().partition(":")
        if not colon:
            kinds.parse(part)  # which refuses it
        if name not in kinds.names:
            raise Refused(kinds.unknown(name))
        if name in spans:
            raise Refused(f"{setting('want')} {text} names the kind '{name}' twice.")
        spans[name] = span("want", numbers)
        if spans[name][0] < 0:
            raise Refused(f"{setting('want')} {text}: a number of permits is not below 0.")
    kinds.amount({name: high for name, (_, high) in spans.items()})  # it can be granted
    return [spans.get(name, (0, 0)) for name in kinds.names]


def workload(settings: RunSettings) -> Workload:
    seed, requests, clients = settings.seed, settings.requests, settings.clients
    if requests < 1:
        raise Refused(f"There must be at least one request: use {setting('requests')} 1 or more.")
    if clients < 1:
        raise Refused(f"Every node needs a client: use {setting('clients')} 1 or more.")
    if clients > MOST_CLIENTS:
        raise Refused(f"{clients} clients at every node are too many: use {MOST_CLIENTS} or fewer.")
    wants = wanted(parse_kinds(settings.permits), settings.want)
    levels, due, within = settings.priority.rpartition("deadline:")
    deadlines = duration("priority", within, seed) if due else None
    priorities = span("priority", (levels.rstrip("/") or "0") if due else settings.priority)
    raises, parts = [
        share(name, text, 1.0, "a share from 0 to 1, such as 0.1")
        for name, text in (("raise", settings.raise_), ("release-part", settings.release_part))
    ]
    serial, think = settings.workload == "serial", thinking(settings.workload, seed)
    return Workload(
        requests, clients, serial, think, wants, priorities, deadlines, seed, raises, parts
    )


def thinking(text: str, seed: int) -> Duration | None:
    """How long a client thinks before it asks again, if it thinks."""
    if text in ("serial", "saturated"):
        return None
    kind, _, rate = text.partition(":")
    if kind != "poisson":
        raise Refused(f"{setting('workload')} is serial, saturated or poisson:RATE, not '{text}'.")
    form = f"poisson:RATE with a rate above 0, from {LEAST_RATE:g} to below {LONGEST_TIME:g}"
    mean = 1.0 / number("workload", rate, lambda one: LEAST_RATE <= one < LONGEST_TIME, form)
    return Duration("exponential", mean, mean, Random(f"{seed}:think"))


def refuse_intents(algorithm: Algorithm, work: Workload) -> None:
    """Changes of priority and releases of parts, where there are none or nothing could change."""
    name, raises, parts = algorithm.name, work.raises > 0.0, work.parts > 0.0
    no_raises, no_parts = f"leave out {setting('raise')}", f"leave out {setting('release-part')}"
    one_priority = work.deadlines is None and work.priorities[0] == work.priorities[1]
    sentences = {
        f"{name} has no priorities that could change: {no_raises}, or use an algorithm with "
        "priorities such as jiang.": raises and not algorithm.serves.priorities,
        f"{name} grants one permit at a time, which has no parts: {no_parts}, or use an algorithm "
        "for h out of k such as jiang.": parts and algorithm.problem != "h-of-k",
        f"{name} releases all permits of a grant at once: {no_parts}, or use another algorithm "
        "such as jiang.": parts and not releases_parts(algorithm),
        f"{setting('raise')} draws other priorities from {setting('priority')}: give a range, such "
        f"as {setting('priority')} 1-9.": raises and one_priority,
        f"{setting('release-part')} is for requests for several permits: add {setting('want')}, "
        f"such as {setting('want')} 1-3.": parts and work.most == 1,
    }
    for sentence, wrong in sentences.items():
        if wrong:
            raise Refused(sentence)


def releases_parts(algorithm: Algorithm) -> bool:
    node = algorithm.make(Complete(4), 2, with_defaults(algorithm, {}), [])[0]
    return type(node).release_some is not Actor.release_some


def simulation(settings: RunSettings, trace: TraceWriter | None) -> Simulation:
    """The run that these settings describe, ready to start."""
    algorithm = find(settings.algorithm)
    options = with_defaults(algorithm, settings.options)
    seed = settings.seed
    kinds = parse_kinds(settings.permits)
    permits = kinds.permits
    work = workload(settings)
    if work.deadlines is not None:
        options, work.step = in_grants(options), step(options)
    refuse_intents(algorithm, work)
    links = settings.links
    if links not in ("fifo", "unordered"):
        raise Refused(f"{setting('links')} is fifo or unordered, not '{links}'.")
    delay = duration("delay", settings.delay, seed)
    hold = duration("hold", settings.hold, seed)
    changing = settings.mobility != "none"
    refuse_failures(settings.failures, settings.notice)
    refuse_partitions(settings.partitions)
    radius = None
    if settings.radio_range:
        text = settings.radio_range
        radius = number("range", text, lambda value: 0.0 < value < inf, "a number above 0")
    text = settings.changes_until
    until = number("changes-until", text, lambda value: value >= 0.0, "a time not below 0")

    def refuse(complete: bool) -> None:
        refuse_impossible(
            algorithm,
            permits=permits,
            want=work.most,
            complete=complete or settings.recovers,  # what the layer sends is routed,
            fifo=links == "fifo" or settings.recovers,  # and what needs it is in order
            changing=changing and not settings.recovers,
        )

    refuse(True)  # before a large network is made for nothing
    changes: Changes | None = None
    graph: Topology
    if changing:
        moving = changing_network(settings, seed, radius, until, trace is not None)
        graph, changes = moving.graph, moving.changes
    else:
        graph = network(settings.topology, size(settings), seed)
        refuse(graph.complete)
        if settings.recovers:
            graph = LiveGraph(graph.size, graph.links())
    setup = RunSetup(
        algorithm,
        options,
        graph,
        permits,
        work,
        delay,
        hold,
        fifo=links == "fifo",
        seed=seed,
        changes=changes,
        trace=trace,
    )
    run: Simulation
    if settings.recovers:
        run = with_recovery(settings, setup)
    elif not changing:
        run = Simulation(setup)
    elif settings.failures == CUSTODY:
        run = CustodySimulation(setup, duration("notice", settings.notice or USUAL_NOTICE, seed))
    else:
        run = MobileSimulation(setup, settings.failures)
    run.kinds = kinds if kinds.several else None
    if trace is not None:
        begin_trace(settings, run)
    return run


def refuse_failures(failures: str, notice: str) -> None:
    if failures not in FAILURES:
        raise Refused(f"{setting('failures')} is drain, return or custody, not '{failures}'.")
    if notice and failures != CUSTODY:
        raise Refused(
            f"{setting('notice')} is only for links whose ends notice changes by themselves: add "
            f"{setting('failures')} custody, or leave it out."
        )


def size(settings: RunSettings) -> int | None:
    """How many nodes to make; None where the topology says it itself."""
    nodes = settings.nodes
    if nodes < 0:
        raise Refused(f"There must be at least one node: use {setting('nodes')} 1 or more.")
    if nodes == 0:
        return None if says_its_size(settings.topology) else USUAL_SIZE
    return nodes


def changing_network(
    settings: RunSettings, seed: int, radius: float | None, until: float, moves: bool
) -> Mobility:
    spec = settings.mobility
    if makes_links(spec):
        nodes = settings.nodes or (None if Path(spec).suffix else USUAL_SIZE)
        graph = None
    else:
        graph = network(settings.topology, size(settings), seed)
        nodes = graph.size
    partitions = settings.partitions
    made = mobility(
        spec, graph, nodes, seed, radius=radius, partitions=partitions, until=until, moves=moves
    )
    assert made is not None  # only "none" gives none
    return made


def begin_trace(settings: RunSettings, run: Simulation) -> None:
    recovery: dict[str, Any] | None = None
    if isinstance(run, RecoverySimulation):
        long_enough = {"recover": run.paths.recover, "queue": run.paths.queue}
        recovery = {**run.layer.line(), **long_enough}
    mobile = isinstance(run, MobileSimulation) and recovery is None
    run.begin_trace(
        "simulate",
        links="complete" if run.network.complete else list(run.network.links()),
        seed=settings.seed,
        settings=settings.values(),
        failures=settings.failures if mobile else None,
        components=run.pieces() if run.pieces() > 1 else None,
        recovery=recovery,
    )


LONGEST = 1e12
"""Of times."""

LEAST_LEASE = 10
"""Mean delays at the least: a lease is renewed in thirds by questions and answers."""


def with_recovery(settings: RunSettings, setup: RunSetup) -> RecoverySimulation:
    """The run that these settings describe, under the recovery layer."""
    if settings.failures != DRAIN:
        raise Refused(
            f"With {setting('members')} a message on a failing link may be lost, so it neither "
            f"drains nor returns: leave out {setting('failures')}."
        )
    for _, permits in resizes(settings):  # a client that wants more would wait forever
        refuse_impossible(
            setup.algorithm,
            permits=permits,
            want=setup.workload.most,
            complete=True,
            fifo=True,
            changing=False,
        )
    size = setup.network.size
    mean_delay = setup.delay.low + setup.delay.span / 2.0
    lease = lease_time(settings, mean_delay)
    takes = "a share from 0 to 0.5, such as 0.01 for one per cent"
    skew = share("clock-skew", settings.clock_skew, 0.5, takes)
    clocks = drawn_clocks(size, lease, skew, setup.seed)
    until = a_time("until", settings.until) if settings.until else 0.0
    if settings.members == "auto":
        layer = made_by_node_0(clocks)
    else:
        layer = LayerSetup(members(settings, size), clocks)
    return RecoverySimulation(setup, layer, faults(settings, setup.seed, lease, size), until)


def members(settings: RunSettings, nodes: int) -> tuple[int, ...]:
    text = settings.members
    if text == "all":
        return tuple(range(nodes))
    if not text.isdigit() or not 1 <= int(text) <= nodes:
        raise Refused(
            f"{setting('members')} takes 'auto', 'all' or a number up to {nodes} (the first "
            f"nodes), not '{text}'."
        )
    return tuple(range(int(text)))


def lease_time(settings: RunSettings, mean_delay: float) -> float:
    lease = a_time("lease", settings.lease)
    if lease * TICKS < 30 or lease < LEAST_LEASE * mean_delay:
        least = max(30 / TICKS, LEAST_LEASE * mean_delay)
        raise Refused(
            f"A lease of {lease:g} is too short to be renewed in time: use {setting('lease')} "
            f"{least:g} or more, or lower {setting('delay')}."
        )
    return lease


def faults(settings: RunSettings, seed: int, lease: float, size: int) -> InjectedFaults:
    crashes = times("crashes", settings.crashes, 1, "EVERY or EVERY,DOWN") or [0.0]
    cuts = times("cuts", settings.cuts, 2, "EVERY,LASTS") or [0.0, 0.0]
    return InjectedFaults(
        seed,
        crash_every=crashes[0],
        down_for=crashes[1] if len(crashes) > 1 else 2.0 * lease,
        disks_lost=share("disks-lost", settings.disks_lost, 1.0, "a share of crashes from 0 to 1"),
        cut_every=cuts[0],
        cut_for=cuts[1],
        resizes=resizes(settings),
        members=member_changes(settings, size),
    )


def member_changes(settings: RunSettings, nodes: int) -> list[tuple[float, str, int]]:
    """When, and which node is added to the members or removed."""
    form = f"TIME:+NODE or TIME:-NODE[,...] with nodes from 0 to {nodes - 1}"
    changes = timed("members-change", settings.members_change, r"([+-])(\d+)", form)
    if any(int(node) >= nodes for _, (_, node) in changes):
        text = settings.members_change
        raise Refused(f"{setting('members-change')} takes {form}, not '{text}'.")
    return [(time, {"+": "add", "-": "remove"}[sign], int(node)) for time, (sign, node) in changes]


def resizes(settings: RunSettings) -> list[tuple[float, int]]:
    """When, and how many permits there are to be from then on."""
    form = "TIME:K[,TIME:K...] with K at least 1, or gpu:1+licence:2"
    kinds = parse_kinds(settings.permits)
    pattern = r"([^+]+:.+)" if kinds.several else r"(0*[1-9]\d*)"
    changes = timed("permits-change", settings.permits_change, pattern, form)
    return sorted([(time, kinds.change(parse_kinds(k)).permits) for time, (k,) in changes])


# -- texts ------------------------------------------------------------------------------------


def timed(name: str, text: str, pattern: str, form: str) -> list[tuple[float, tuple[str, ...]]]:
    """TIME:WHAT, with commas between them; the groups of the pattern for each."""
    found: list[tuple[float, tuple[str, ...]]] = []
    for part in text.split(",") if text else []:
        time, _, what = part.partition(":")
        match = re.fullmatch(pattern, what)
        if match is None:
            raise Refused(f"{setting(name)} takes {form}, not '{text}'.")
        found.append((a_time(name, time), match.groups()))
    return found


def number(name: str, text: str, fits: Callable[[float], bool], takes: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not fits(value):
        raise Refused(f"{setting(name)} takes {takes}, not '{text}'.")
    return value


def share(name: str, text: str, most: float, takes: str) -> float:
    return number(name, text, lambda value: 0.0 <= value <= most, takes)


def a_time(name: str, text: str) -> float:
    takes = "a time, above 0 and in time units"
    return number(name, text, lambda value: 0.0 < value < LONGEST, takes)


def times(name: str, text: str, least: int, form: str) -> list[float]:
    """One or two times above 0, with a comma between them; none if the text is empty."""
    parts = text.split(",") if text else []
    takes = f"{form}, above 0 and in time units"
    if parts and not least <= len(parts) <= 2:
        raise Refused(f"{setting(name)} takes {takes}, not '{text}'.")
    return [number(name, part, lambda value: 0.0 < value < LONGEST, takes) for part in parts]
