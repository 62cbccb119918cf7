"""Members, leases, clocks and faults of a run as a person writes them; see :mod:`.settings`."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import nan

from meshlock.algorithms.registry import refuse_impossible
from meshlock.errors import Refused, setting
from meshlock.simulate.engine import RunSetup
from meshlock.simulate.faults import InjectedFaults
from meshlock.simulate.recovery import RecoverySimulation
from meshlock.simulate.run_settings import RunSettings
from meshlock.world.channels import DRAIN
from meshlock.world.clocks import TICKS, drawn_clocks
from meshlock.world.lives import LayerSetup, made_by_node_0

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
            want=setup.workload.wants[1],
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
    form = "TIME:K[,TIME:K...] with K at least 1"
    changes = timed("permits-change", settings.permits_change, r"(0*[1-9]\d*)", form)
    return sorted([(time, int(permits)) for time, (permits,) in changes])


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
