"""The audit of a pool that nodes made by themselves, and nothing went wrong."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import virtual

from meshlock import Node
from meshlock.live.pools import pool_configuration
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace
from waiting import eventually

NAMES = ["a", "b", "c"]
LEASE = 3.0
FIRST_FENCE = 12_345_678_901
"""As it is today; by the clock of the stories it would be 0."""


@pytest.mark.parametrize("permits", [1, 3])
def test_a_healthy_pool_is_found_healthy(
    permits: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several permits the holder grants to clients of others by message, and says so too."""
    monkeypatch.setattr(pool_configuration, "first_fence", lambda: FIRST_FENCE)

    async def story(network: virtual.Network) -> None:
        async with AsyncExitStack() as stack:
            nodes: list[Node] = []
            for name in NAMES:
                peers = [node.address for node in nodes]
                node = Node(name, peers=peers, state=None, trace=tmp_path)
                nodes.append(await stack.enter_async_context(node))
            pools = [node.pool("docks", permits) for node in nodes]
            for pool in pools:
                (await pool.acquire(timeout=60)).release()

            async def work(number: int) -> None:
                for _ in range(10):
                    async with pools[number % len(pools)].acquire():
                        await asyncio.sleep(0.01)

            await asyncio.gather(*[work(number) for number in range(6)])
            await eventually(lambda: all(len(node._local.mesh.linked) == 2 for node in nodes))

    virtual.run(story)
    verdict = audited(tmp_path, NAMES)
    assert ('"lends"' in (tmp_path / "all.jsonl").read_text()) == (permits > 1)
    assert verdict.monitor.violated == {} and verdict.entries >= 63


def test_who_was_stopped_may_write_a_release_late(tmp_path: Path) -> None:
    """Its client had released in time, or had lost the permits by its own clock."""

    async def story(network: virtual.Network) -> None:
        async with Node("a", state=None, trace=tmp_path) as node:
            grant = await node.pool("docks", 1, lease=LEASE).acquire()
            network.loop.skipping.now += 2 * LEASE  # it did not run meanwhile
            grant.release()

    virtual.run(story)
    assert audited(tmp_path, ["a"]).monitor.violated == {}


def audited(folder: Path, names: list[str]) -> Audit:
    together = folder / "all.jsonl"
    with together.open("wb") as file:
        merge([folder / f"docks.{name}.jsonl" for name in names], file, ended=True)
    return Audit(Trace(together))
