"""A node's figures in the text format that Prometheus reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from meshlock.live.interfaces.node import Node
from meshlock.live.pools.measures import BOUNDS
from meshlock.live.pools.pool import Pool


def tokens(pool: Pool) -> int:
    return pool.core.tokens() if pool.core else 0


def free(pool: Pool) -> int:
    return pool.core.free_permits() if pool.core else 0


def waits(pool: Pool) -> int:
    return sum(waiter.grant is None for waiter in pool.clients.values())


def held(pool: Pool) -> int:
    return sum(waiter.want for waiter in pool.clients.values() if waiter.grant is not None)


GAUGES: dict[str, tuple[str, Callable[[Pool], int]]] = {
    "meshlock_permits": ("Permits of the pool.", lambda pool: pool.permits or 0),
    "meshlock_token_here": ("Is the token at this node?", tokens),
    "meshlock_free_here": ("Permits that lie free at this node.", free),
    "meshlock_waiting": ("Clients of this node that wait.", waits),
    "meshlock_held": ("Permits that clients of this node hold.", held),
}


def exposition(node: Node) -> str:
    return "\n".join(lines(node)) + "\n"


def lines(node: Node) -> Iterator[str]:
    status = node.status()
    pools = [pool for pool in node.pools.values() if pool.core is not None]
    yield from family("meshlock_links_up", "gauge", "Links that are up.")
    yield f"meshlock_links_up {sum(link['up'] for link in status['links'].values())}"
    distances = [node["distance"] for node in status["map"].values()]
    yield from family("meshlock_nodes", "gauge", "Nodes on the map.")
    yield f"meshlock_nodes {len(distances)}"
    yield from family("meshlock_nodes_unreachable", "gauge", "Nodes that cannot be reached.")
    yield f"meshlock_nodes_unreachable {distances.count(None)}"
    yield from family("meshlock_refused_total", "counter", "Peers that were refused.")
    yield f"meshlock_refused_total {status['refused']}"
    yield from family("meshlock_errors_total", "counter", "Failures of the node itself.")
    for where, count in sorted(node.mesh.mishaps.counts.items()):
        yield f'meshlock_errors_total{{where="{where}"}} {count}'
    for name, (meaning, value) in GAUGES.items():
        yield from family(name, "gauge", meaning)
        for pool in pools:
            yield f'{name}{{pool="{pool.name}"}} {value(pool)}'
    yield from family("meshlock_messages_sent_total", "counter", "Messages of the algorithm.")
    for pool in pools:
        for kind, count in sorted(pool.measures.sent.items()):
            yield f'meshlock_messages_sent_total{{pool="{pool.name}",kind="{kind}"}} {count}'
    yield from family("meshlock_wait_seconds", "histogram", "From request to grant.")
    for pool in pools:
        yield from waiting(pool)


def family(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def waiting(pool: Pool) -> Iterator[str]:
    measures, label, total = pool.measures, f'pool="{pool.name}"', 0
    for bound, count in zip((*BOUNDS, float("inf")), measures.waits, strict=True):
        total += count
        edge = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield f'meshlock_wait_seconds_bucket{{{label},le="{edge}"}} {total}'
    yield f"meshlock_wait_seconds_sum{{{label}}} {measures.waited:.6f}"
    yield f"meshlock_wait_seconds_count{{{label}}} {measures.entries}"
