"""A node's figures for Prometheus. Needs the extra ``meshlock[web]``.

Every metric is one row of a table here; :mod:`prometheus_client` writes them down. They are read
when somebody asks, from the status of the node and from what its pools have counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic

from meshlock import __version__
from meshlock.errors import Refused
from meshlock.live.interfaces.local_node import LocalNode
from meshlock.live.machine.loop import LAGS
from meshlock.live.pools.adapter import BOUNDS, Measures
from meshlock.live.pools.status import PoolStatus, Status

try:
    from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
    from prometheus_client.metrics_core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
except ImportError:
    raise Refused(
        "Metrics need the package 'prometheus-client': pip install 'meshlock[web]'."
    ) from None

OF_NODE: dict[str, tuple[str, Callable[[Status], float]]] = {
    "meshlock_links_up": (
        "Links that are up.",
        lambda status: sum(link["up"] for link in status["links"].values()),
    ),
    "meshlock_nodes": (
        "Nodes on the link map, without those that left.",
        lambda status: sum(not node["left"] for node in status["map"].values()),
    ),
    "meshlock_nodes_unreachable": (
        "Nodes that are unreachable and did not leave.",
        lambda status: len(unreachable(status)),
    ),
    "meshlock_refused_total": ("Connections and messages refused.", lambda s: s["refused"]),
}

OF_POOL: dict[str, tuple[str, Callable[[PoolStatus, Measures], float | None]]] = {
    "meshlock_permits": ("Permits of the pool.", lambda pool, _: pool["permits"]),
    "meshlock_token_here": ("1 if the token is at this node.", lambda pool, _: pool["token_here"]),
    "meshlock_token_unseen_seconds": (
        "Seconds since the token was last at this node; no value if it never was.",
        lambda pool, measures: unseen(pool, measures),
    ),
    "meshlock_free_here": ("Free permits at this node.", lambda pool, _: pool["free_here"]),
    "meshlock_waiting": (
        "Requests of clients of this node that wait: its part of the queue.",
        lambda pool, _: pool["queued"],
    ),
    "meshlock_longest_wait_seconds": (
        "Seconds for which the oldest of them has waited; 0 if none waits.",
        lambda pool, _: max((one["seconds"] for one in pool["waiting"]), default=0.0),
    ),
    "meshlock_held": (
        "Permits that clients of this node hold.",
        lambda pool, _: sum(grant["want"] for grant in pool["holding"]),
    ),
    "meshlock_leases_lost_total": (
        "Grants revoked because their lease was not renewed.",
        lambda _, measures: measures.lost,
    ),
    "meshlock_deadlines_met_total": (
        "Requests of clients of this node that were granted by their deadline.",
        lambda _, measures: measures.met,
    ),
    "meshlock_deadlines_missed_total": (
        "Requests that were granted after their deadline, or given up after it.",
        lambda _, measures: measures.missed,
    ),
    "meshlock_conflict": (
        "1 if another node has a conflicting configuration of the pool.",
        lambda pool, _: bool(pool["conflict"]),
    ),
    "meshlock_token_lost": (
        "1 if no node has seen the token of a pool without recovery for 10 s.",
        lambda pool, _: bool(pool["why"]) if "unseen" in pool else None,
    ),
    "meshlock_disk_refuses": (
        "1 if the disk does not take what a pool has to write, so that nobody is served here.",
        lambda pool, _: pool["disk"] != "" if "members" in pool else None,
    ),
    "meshlock_members": (
        "Members of the pool; pools without recovery have none of these four.",
        lambda pool, _: len(pool["members"]) if "members" in pool else None,
    ),
    "meshlock_members_reachable": (
        "Members that this node can reach, itself included.",
        lambda pool, _: pool.get("members_reachable"),
    ),
    "meshlock_quorum_reachable": (
        "1 if this node can reach a quorum of the members that have a vote.",
        lambda pool, _: has_quorum(pool) if "members" in pool else None,
    ),
    "meshlock_epoch": ("Number of the epoch, from the first on.", lambda p, _: p.get("epoch")),
}


def has_quorum(pool: PoolStatus) -> bool:
    return pool["members_reachable"] - len(pool["members_without_vote"]) >= pool["quorum"]


def unseen(pool: PoolStatus, measures: Measures) -> float | None:
    if pool["token_here"]:
        return 0.0
    return None if measures.token_seen is None else monotonic() - measures.token_seen


def unreachable(status: Status) -> dict[str, float]:
    """Nodes that failed or were cut off, and for how long."""
    return {
        name: node["unreachable_for"] or 0.0
        for name, node in status["map"].items()
        if node["distance"] is None and not node["left"] and not node["gone"]
    }


class Figures:
    """All metrics of one node, read whenever they are collected."""

    def __init__(self, node: LocalNode) -> None:
        self.node = node

    def collect(self) -> Iterator[Metric]:
        status = self.node.status()
        info = GaugeMetricFamily("meshlock_info", "Always 1.", labels=["node", "version"])
        info.add_metric([self.node.name, __version__], 1)
        yield info
        for name, (meaning, value) in OF_NODE.items():
            yield family(name, meaning, [], [([], value(status))])
        yield family(
            "meshlock_node_unreachable_seconds",
            "Seconds for which a node has been unreachable; none for nodes that left.",
            ["peer"],
            [([peer], seconds) for peer, seconds in sorted(unreachable(status).items())],
        )
        yield family(
            "meshlock_errors_total",
            "Failures of the node itself.",
            ["where"],
            [([where], count) for where, count in sorted(self.node.mesh.failures.counts.items())],
        )
        lag = self.node.mesh.lag
        late = HistogramMetricFamily(
            "meshlock_event_loop_lag_seconds", "How late heartbeats are.", labels=()
        )
        late.add_metric([], cumulated(LAGS, lag.counts), lag.total)
        yield late
        yield from self.of_pools(status["pools"])

    def of_pools(self, known: dict[str, PoolStatus]) -> Iterator[Metric]:
        pools = [
            (name, pool, self.node.pools[name].adapter.measures)
            for name, pool in sorted(known.items())
            if pool["known"]
        ]
        for name, (meaning, value) in OF_POOL.items():
            found = [([pool], value(status, measures)) for pool, status, measures in pools]
            yield family(name, meaning, ["pool"], found)
        yield family(
            "meshlock_messages_sent_total",
            "Messages of the algorithm.",
            ["pool", "kind"],
            [
                ([pool, kind], count)
                for pool, _, measures in pools
                for kind, count in sorted(measures.sent.items())
            ],
        )
        waits = HistogramMetricFamily(
            "meshlock_wait_seconds", "From request to grant.", labels=["pool"]
        )
        for pool, _, measures in pools:
            waits.add_metric([pool], cumulated(BOUNDS, measures.waits), measures.waited)
        yield waits


def family(
    name: str, meaning: str, labels: list[str], found: Sequence[tuple[list[str], float | None]]
) -> Metric:
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    made = kind(name, meaning, labels=labels)
    for values, value in found:
        if value is not None:
            made.add_metric(values, value)
    return made


def cumulated(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Buckets as Prometheus has them: each counts all that is not above its bound."""
    total, buckets = 0, []
    for bound, count in zip((*(f"{bound:g}" for bound in bounds), "+Inf"), counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets


def exposition(node: LocalNode) -> str:
    """In the text format that Prometheus reads, with those of the process (CPU, memory, files)."""
    registry = CollectorRegistry()
    registry.register(Figures(node))
    ProcessCollector(registry=registry)
    text: str = generate_latest(registry).decode()
    return text
