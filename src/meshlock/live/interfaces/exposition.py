"""A node's figures for Prometheus. Needs the extra ``meshlock[web]``.

Every metric is one row of a table here; :mod:`prometheus_client` writes them down. They are read
when somebody asks, from the status of the node and from what its pools have counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def meanings(table: str) -> dict[str, str]:
    """A line for each metric: its name without ``meshlock_``, and what it means."""
    return dict(line.split(maxsplit=1) for line in table.splitlines())


OF_NODE = meanings("""\
links_up Links that are up.
nodes Nodes on the link map, without those that left.
nodes_unreachable Nodes that are unreachable and did not leave.
refused_total Connections and messages refused.
node_unreachable_seconds Seconds for which a node has been unreachable; none for nodes that left.
errors_total Failures of the node itself.
messages_sent_total Messages of the algorithm.
""")
OF_POOL = meanings("""\
permits Permits of the pool.
token_here 1 if the token is at this node.
token_unseen_seconds Seconds since the token was last at this node; no value if it never was.
free_here Free permits at this node.
waiting Requests of clients of this node that wait: its part of the queue.
longest_wait_seconds Seconds for which the oldest of them has waited; 0 if none waits.
held Permits that clients of this node hold.
leases_lost_total Grants revoked because their lease was not renewed.
deadlines_met_total Requests of clients of this node that were granted by their deadline.
deadlines_missed_total Requests that were granted after their deadline, or given up after it.
conflict 1 if another node has a conflicting configuration of the pool.
token_lost 1 if no node has seen the token of a pool without recovery for 10 s.
disk_refuses 1 if the disk does not take what a pool has to write, so that nobody is served here.
members Members of the pool; pools without recovery have none of these four.
members_reachable Members that this node can reach, itself included.
quorum_reachable 1 if this node can reach a quorum of the members that have a vote.
epoch Number of the epoch, from the first on.
""")


def of_node(status: Status) -> dict[str, float]:
    return {
        "links_up": sum(link["up"] for link in status["links"].values()),
        "nodes": sum(not node["left"] for node in status["map"].values()),
        "nodes_unreachable": len(unreachable(status)),
        "refused_total": status["refused"],
    }


def of_pool(pool: PoolStatus, measures: Measures) -> dict[str, float | None]:
    """None: this pool has no such figure."""
    away = None if measures.token_seen is None else monotonic() - measures.token_seen
    leased = "members" in pool
    voters = pool["members_reachable"] - len(pool["members_without_vote"]) if leased else 0
    return {
        "permits": pool["permits"],
        "token_here": pool["token_here"],
        "token_unseen_seconds": 0.0 if pool["token_here"] else away,
        "free_here": pool["free_here"],
        "waiting": pool["queued"],
        "longest_wait_seconds": max((one["seconds"] for one in pool["waiting"]), default=0.0),
        "held": sum(grant["want"] for grant in pool["holding"]),
        "leases_lost_total": measures.lost,
        "deadlines_met_total": measures.met,
        "deadlines_missed_total": measures.missed,
        "conflict": bool(pool["conflict"]),
        "token_lost": bool(pool["why"]) if "unseen" in pool else None,
        "disk_refuses": pool["disk"] != "" if leased else None,
        "members": len(pool["members"]) if leased else None,
        "members_reachable": pool.get("members_reachable"),
        "quorum_reachable": voters >= pool["quorum"] if leased else None,
        "epoch": pool.get("epoch"),
    }


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
        for name, value in of_node(status).items():
            yield family(name, [], {(): value})
        yield family("node_unreachable_seconds", ["peer"], by_label(unreachable(status)))
        yield family("errors_total", ["where"], by_label(self.node.mesh.failures.counts))
        lag = self.node.mesh.lag
        late = HistogramMetricFamily(
            "meshlock_event_loop_lag_seconds", "How late heartbeats are.", labels=()
        )
        late.add_metric([], cumulated(LAGS, lag.counts), lag.total)
        yield late
        yield from self.of_pools(status["pools"])

    def of_pools(self, known: dict[str, PoolStatus]) -> Iterator[Metric]:
        names = sorted(name for name, pool in known.items() if pool["known"])
        measured = {name: self.node.pools[name].adapter.measures for name in names}
        figures = {name: of_pool(known[name], measured[name]) for name in names}
        for metric in OF_POOL:
            yield family(metric, ["pool"], {(name,): figures[name][metric] for name in names})
        sent: dict[tuple[str, ...], float | None] = {
            (name, kind): count
            for name in names
            for kind, count in sorted(measured[name].sent.items())
        }
        yield family("messages_sent_total", ["pool", "kind"], sent)
        waits = HistogramMetricFamily(
            "meshlock_wait_seconds", "From request to grant.", labels=["pool"]
        )
        for name, measures in measured.items():
            waits.add_metric([name], cumulated(BOUNDS, measures.waits), measures.waited)
        yield waits


def family(
    name: str, labels: list[str], found: Mapping[tuple[str, ...], float | None]
) -> GaugeMetricFamily | CounterMetricFamily:
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    made = kind(f"meshlock_{name}", (OF_NODE | OF_POOL)[name], labels=labels)
    for values, value in found.items():
        if value is not None:
            made.add_metric(values, value)
    return made


def by_label(found: Mapping[str, float]) -> dict[tuple[str, ...], float | None]:
    return {(label,): found[label] for label in sorted(found)}


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
