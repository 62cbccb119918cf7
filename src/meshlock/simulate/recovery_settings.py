"""The settings of a run with recovery as a person writes them; see :mod:`.settings`."""

from __future__ import annotations

from math import isfinite

from meshlock.algorithms.registry import find, refuse_impossible, settle
from meshlock.errors import Refused
from meshlock.properties.promises import promises
from meshlock.simulate.faults import Faults
from meshlock.simulate.recovering import TICKS, Recovering, Timing
from meshlock.simulate.recovery_trace import RecoveryTrace
from meshlock.simulate.settings import Settings, changing_network, duration, size, workload
from meshlock.topology.mobility.changes import Changes
from meshlock.topology.mobility.live_graph import LiveGraph
from meshlock.topology.specification import network
from meshlock.trace.writer import TraceWriter

LEAST_LEASE = 10
"""So many mean delays at the least: a lease is renewed in thirds by questions and answers."""


def recovering(settings: Settings, trace: TraceWriter | None) -> Recovering:
    """The run that these settings describe, ready to start."""
    seed = settings.number("seed")
    permits = settings.number("permits")
    work = workload(settings)
    entry = find(settings.text("algorithm"), members=True)
    settle(entry, settings.options)
    refuse_others(settings)
    refuse_impossible(
        entry,
        permits=permits,
        want=work.wants[1],
        complete=True,
        fifo=True,
        changing=True,
    )
    delay = duration("delay", settings.text("delay"), seed)
    hold = duration("hold", settings.text("hold"), seed)
    timing = leases(settings, delay.low + delay.span / 2.0)
    changes: Changes | None = None
    if settings.text("mobility") != "none":
        moving = changing_network(settings, seed, trace is not None)
        graph, changes = moving.graph, moving.changes
    else:
        fixed = network(settings.text("topology"), size(settings), seed)
        graph = LiveGraph(fixed.size, fixed.links())
    until = times("until", settings.text("until"), 1)[0] if settings.text("until") else 0.0
    told = RecoveryTrace(trace) if trace is not None else None
    links = list(graph.links())
    components = graph.components
    run = Recovering(
        graph,
        permits,
        members(settings, graph.size),
        timing,
        work,
        delay,
        hold,
        settings.text("links") == "fifo",
        seed,
        faults(settings, seed, timing),
        changes,
        until,
        told,
    )
    if told is not None:
        begin(told, settings, run, links, components)
    return run


def refuse_others(settings: Settings) -> None:
    if settings.text("failures") != "drain":
        raise Refused(
            "With --members a message on a failing link may be lost; it neither drains nor "
            "returns: leave out --failures."
        )
    if settings.text("links") not in ("fifo", "unordered"):
        raise Refused(f"--links is fifo or unordered, not '{settings.text('links')}'.")


def members(settings: Settings, nodes: int) -> tuple[int, ...]:
    text = settings.text("members")
    if text == "all":
        return tuple(range(nodes))
    if not text.isdigit() or not 1 <= int(text) <= nodes:
        raise Refused(
            f"--members is 'all' or how many of the {nodes} nodes, counted from node 0, "
            f"not '{text}'."
        )
    return tuple(range(int(text)))


def leases(settings: Settings, mean_delay: float) -> Timing:
    lease = times("lease", settings.text("lease"), 1)[0]
    if lease * TICKS < 30 or lease < LEAST_LEASE * mean_delay:
        least = max(30 / TICKS, LEAST_LEASE * mean_delay)
        raise Refused(
            f"A lease of {lease:g} is too short to be renewed in time: use --lease {least:g} "
            f"or more, or lower --delay."
        )
    try:
        skew = float(settings.text("clock-skew"))
    except ValueError:
        skew = -1.0
    if not 0.0 <= skew <= 0.5:
        raise Refused(
            "--clock-skew is the share by which clocks may run fast or slow, from 0 to 0.5, as "
            "in 0.01 for one per cent."
        )
    return Timing(lease, skew)


def faults(settings: Settings, seed: int, timing: Timing) -> Faults:
    crash_every = down_for = cut_every = cut_for = 0.0
    if settings.text("crashes"):
        crashes = times("crashes", settings.text("crashes"), 2)
        crash_every = crashes[0]
        down_for = crashes[1] if len(crashes) > 1 else 2.0 * timing.lease / TICKS
    if settings.text("cuts"):
        cuts = times("cuts", settings.text("cuts"), 2)
        if len(cuts) < 2:
            raise Refused("--cuts takes EVERY,LASTS: the mean time between cuts, and of a cut.")
        cut_every, cut_for = cuts
    return Faults(
        seed,
        crash_every=crash_every,
        down_for=down_for,
        cut_every=cut_every,
        cut_for=cut_for,
    )


def times(name: str, text: str, most: int) -> list[float]:
    """Times above 0, with commas between them."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not 1 <= len(values) <= most or not all(isfinite(v) and 0.0 < v < 1e12 for v in values):
        forms = {"crashes": "EVERY or EVERY,DOWN", "cuts": "EVERY,LASTS"}
        form = forms.get(name, "a time")
        raise Refused(f"--{name} takes {form}, above 0 and in time units, not '{text}'.")
    return values


def begin(
    told: RecoveryTrace,
    settings: Settings,
    run: Recovering,
    links: list[tuple[int, int]],
    components: int,
) -> None:
    from meshlock import __version__

    setup: dict[str, object] = {
        "version": __version__,
        "source": "simulate",
        "algorithm": run.algorithm.name,
        "options": run.options,
        "seed": settings.number("seed"),
        **promises(run.algorithm, run.options).line(),
        "settings": settings.values,
        "nodes": run.network.size,
        "links": links,
        "permits": run.permits,
        "holder": -1,
        "recovery": {
            "members": list(run.members),
            "lease": run.timing.lease / TICKS,
            "wait": run.timing.wait / TICKS,
            "recover": run.paths.recover,
            "queue": run.paths.queue,
        },
    }
    if components > 1:
        setup["components"] = components
    told.begin(setup)
