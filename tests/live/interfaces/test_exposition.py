"""The metrics, as Prometheus reads them."""

from __future__ import annotations

import asyncio
import builtins
import importlib
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from meshlock import Node, __version__
from meshlock.errors import Refused
from meshlock.live.interfaces.exposition import Figures, exposition
from waiting import LIMIT, eventually

WATCH = Path(__file__).parents[3] / "docs" / "operate" / "observe.md"


@asynccontextmanager
async def row(names: str) -> AsyncIterator[dict[str, Node]]:
    """a - b - c - d."""
    async with AsyncExitStack() as stack:
        nodes: dict[str, Node] = {}
        for name in names:
            peers = [node.address for node in nodes.values()][-1:]
            nodes[name] = node = Node(name, peers=peers, min_links=0)
            await node.start()
            stack.push_async_callback(node._local.vanish)
        yield nodes


def read(node: Node) -> dict[str, Metric]:
    return {found.name: found for found in text_string_to_metric_families(exposition(node._local))}


def value(of: Node, name: str, **labels: str) -> float | None:
    """None if there is no such sample."""
    for found in read(of).values():
        for sample in found.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return None


def test_a_pool_in_use() -> None:
    async def story() -> None:
        async with Node("ann") as node:
            docks = node.pool("docks", permits=3, recovery="none")
            async with docks.acquire(2):
                late = asyncio.ensure_future(docks.acquire(2))
                await eventually(lambda: value(node, "meshlock_waiting", pool="docks") == 1.0)
                assert value(node, "meshlock_permits", pool="docks") == 3.0
                assert value(node, "meshlock_held", pool="docks") == 2.0
                assert value(node, "meshlock_token_here", pool="docks") == 1.0
                assert value(node, "meshlock_token_unseen_seconds", pool="docks") == 0.0
                longest = "meshlock_longest_wait_seconds"
                await eventually(lambda: (value(node, longest, pool="docks") or 0.0) > 0.0)
            (await late).release()
            assert value(node, "meshlock_longest_wait_seconds", pool="docks") == 0.0
            for deadline in (60.0, 60.0, 0.0):
                (await docks.acquire(deadline=deadline)).release()
            assert value(node, "meshlock_deadlines_met_total", pool="docks") == 2.0
            assert value(node, "meshlock_deadlines_missed_total", pool="docks") == 1.0
            buckets = read(node)["meshlock_wait_seconds"]
            assert buckets.type == "histogram"
            all_of_them = [one for one in buckets.samples if one.labels.get("le") == "+Inf"]
            counts = [one for one in buckets.samples if one.name.endswith("_count")]
            assert [one.value for one in all_of_them + counts] == [5.0, 5.0]
            assert value(node, "meshlock_epoch", pool="docks") is None
            assert value(node, "meshlock_quorum_reachable", pool="docks") is None
            node._local.mesh.failures.run("leases", {}.__getitem__, "nothing")
            assert value(node, "meshlock_errors_total", where="leases") == 1.0
            assert value(node, "meshlock_info", node="ann", version=__version__) == 1.0
            await eventually(
                lambda: (value(node, "meshlock_event_loop_lag_seconds_count") or 0) > 2
            )

    asyncio.run(story())


def test_the_token_leaves_and_the_time_since_then_grows() -> None:
    async def story() -> None:
        async with row("ab") as nodes:
            docks = nodes["a"].pool("docks", permits=1)
            assert docks._source.adapter.core is not None
            async with nodes["b"].pool("docks").acquire():
                assert value(nodes["b"], "meshlock_token_here", pool="docks") == 1.0
                first = value(nodes["a"], "meshlock_token_unseen_seconds", pool="docks")
                assert first is not None and first > 0.0
                later = value(nodes["a"], "meshlock_token_unseen_seconds", pool="docks")
                assert later is not None and later > first

    asyncio.run(story())


def test_a_quorum_that_is_lost_and_the_lease_that_goes_with_it() -> None:
    async def story() -> None:
        async with row("abc") as nodes:
            for node in nodes.values():
                node.pool("docks", permits=1, members=["a", "b", "c"], lease=0.5)
            pool = nodes["a"].pool("docks")
            async with pool.acquire(timeout=LIMIT) as grant:
                assert value(nodes["a"], "meshlock_members", pool="docks") == 3.0
                assert value(nodes["a"], "meshlock_quorum_reachable", pool="docks") == 1.0
                assert (value(nodes["a"], "meshlock_epoch", pool="docks") or 0) > 0
                assert value(nodes["b"], "meshlock_quorum_reachable", pool="docks") == 1.0
                await nodes["b"]._local.vanish()  # a is alone
                await grant.wait_lost()
            assert value(nodes["a"], "meshlock_leases_lost_total", pool="docks") == 1.0
            alone = nodes["a"]
            await eventually(
                lambda: value(alone, "meshlock_members_reachable", pool="docks") == 1.0
            )
            assert value(alone, "meshlock_quorum_reachable", pool="docks") == 0.0

    asyncio.run(story())


def test_a_node_that_fails_is_unreachable_and_one_that_leaves_is_not() -> None:
    async def story() -> None:
        async with row("abcd") as nodes, Node("e", peers=[nodes["c"].address]) as parting:
            a = nodes["a"]
            await eventually(lambda: value(a, "meshlock_nodes") == 5.0)
            await parting.close()
            await eventually(lambda: a.status()["map"]["e"]["left"])
            assert value(a, "meshlock_nodes") == 4.0
            assert value(a, "meshlock_nodes_unreachable") == 0.0
            assert nodes["c"].status()["links"]["e"]["left"]
            await nodes["d"]._local.vanish()
            await eventually(lambda: value(a, "meshlock_nodes_unreachable") == 1.0)
            assert value(a, "meshlock_node_unreachable_seconds", peer="d") is not None
            assert value(a, "meshlock_node_unreachable_seconds", peer="e") is None
            c = nodes["c"]._local.mesh.link_map
            c.forget("e")  # as after some minutes
            assert nodes["c"].status()["links"]["e"]["left"]
            async with Node("e", peers=[nodes["c"].address]):
                await eventually(lambda: value(a, "meshlock_nodes") == 5.0)
                assert not nodes["c"].status()["links"]["e"]["left"]

    asyncio.run(story())


def test_the_page_lists_every_metric_with_its_meaning() -> None:
    async def collected() -> list[Metric]:
        async with Node("ann") as node:
            return list(Figures(node._local).collect())

    rows = re.findall(r"(?m)^\| `(meshlock_\w+)`[^|]*\| (\w+) \| (.+) \|$", WATCH.read_text())
    names = {"counter": "_total"}
    assert rows == [
        (metric.name + names.get(metric.type, ""), metric.type, metric.documentation)
        for metric in asyncio.run(collected())
    ]


def test_without_the_package_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("prometheus_client"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.delitem(sys.modules, "meshlock.live.interfaces.exposition")
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(Refused, match=r"pip install 'meshlock\[web\]'"):
        importlib.import_module("meshlock.live.interfaces.exposition")
