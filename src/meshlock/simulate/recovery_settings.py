"""Members, leases, clocks and faults of a run as a person writes them; see :mod:`.settings`."""

from __future__ import annotations

from math import isfinite

from meshlock.algorithms.registry import refuse_impossible
from meshlock.errors import Refused, setting
from meshlock.simulate.faults import InjectedFaults
from meshlock.simulate.recovery import RecoverySimulation
from meshlock.simulate.run_settings import RunSettings
from meshlock.simulate.run_setup import RunSetup
from meshlock.world.channels import DRAIN
from meshlock.world.clocks import TICKS, drawn_clocks
from meshlock.world.lives import LayerSetup, made_by_node_0

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
    clocks = drawn_clocks(size, lease, skew(settings), setup.seed)
    until = times("until", settings.until, 1)[0] if settings.until else 0.0
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
    lease = times("lease", settings.lease, 1)[0]
    if lease * TICKS < 30 or lease < LEAST_LEASE * mean_delay:
        least = max(30 / TICKS, LEAST_LEASE * mean_delay)
        raise Refused(
            f"A lease of {lease:g} is too short to be renewed in time: use "
            f"{setting('lease')} {least:g} "
            f"or more, or lower {setting('delay')}."
        )
    return lease


def skew(settings: RunSettings) -> float:
    return share(
        settings.clock_skew,
        0.5,
        f"{setting('clock-skew')} takes a share from 0 to 0.5, such as 0.01 for one per cent.",
    )


def share(text: str, most: float, sentence: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= most:
        raise Refused(sentence)
    return value


def faults(settings: RunSettings, seed: int, lease: float, size: int) -> InjectedFaults:
    crash_every = down_for = cut_every = cut_for = 0.0
    if settings.crashes:
        crashes = times("crashes", settings.crashes, 2)
        crash_every = crashes[0]
        down_for = crashes[1] if len(crashes) > 1 else 2.0 * lease
    if settings.cuts:
        cuts = times("cuts", settings.cuts, 2)
        if len(cuts) < 2:
            raise Refused(
                f"{setting('cuts')} takes EVERY,LASTS: the mean time between cuts, and the mean "
                "length of a cut."
            )
        cut_every, cut_for = cuts
    disks_lost = share(
        settings.disks_lost, 1.0, f"{setting('disks-lost')} takes a share of crashes from 0 to 1."
    )
    return InjectedFaults(
        seed,
        crash_every=crash_every,
        down_for=down_for,
        disks_lost=disks_lost,
        cut_every=cut_every,
        cut_for=cut_for,
        resizes=resizes(settings),
        members=member_changes(settings, size),
    )


def member_changes(settings: RunSettings, nodes: int) -> list[tuple[float, str, int]]:
    """When, and which node is added to the members or removed."""
    found: list[tuple[float, str, int]] = []
    text = settings.members_change
    for part in text.split(",") if text else []:
        time, _, change = part.partition(":")
        verb = {"+": "add", "-": "remove"}.get(change[:1])
        if verb is None or not change[1:].isdecimal() or int(change[1:]) >= nodes:
            raise Refused(
                f"{setting('members-change')} takes TIME:+NODE or TIME:-NODE[,...] with nodes from "
                f"0 to {nodes - 1}, not '{text}'."
            )
        found.append((times("members-change", time, 1)[0], verb, int(change[1:])))
    return found


def resizes(settings: RunSettings) -> list[tuple[float, int]]:
    """When, and how many permits there are to be from then on."""
    found: list[tuple[float, int]] = []
    text = settings.permits_change
    for part in text.split(",") if text else []:
        time, _, permits = part.partition(":")
        if not permits.isdecimal() or int(permits) < 1:
            raise Refused(
                f"{setting('permits-change')} takes TIME:K[,TIME:K...] with K at least 1, "
                f"not '{text}'."
            )
        found.append((times("permits-change", time, 1)[0], int(permits)))
    return sorted(found)


def times(name: str, text: str, most: int) -> list[float]:
    """Times above 0, with commas between them."""
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not 1 <= len(values) <= most or not all(isfinite(v) and 0.0 < v < 1e12 for v in values):
        forms = {"crashes": "EVERY or EVERY,DOWN", "cuts": "EVERY,LASTS"}
        form = forms.get(name, "a time")
        raise Refused(f"{setting(name)} takes {form}, above 0 and in time units, not '{text}'.")
    return values
