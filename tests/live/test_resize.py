"""The number of permits changes while the pool is used; pools that nobody made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import virtual

from meshlock import Node, Pool, Refused
from meshlock.errors import NoSuchPool
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace
from waiting import eventually

LEASE = 0.6
NAMES = ["a", "b", "c"]


def run(story: Callable[[], Awaitable[None]]) -> None:
    virtual.run(lambda _: story())


@asynccontextmanager
async def three(
    permits: int, folder: Path | None = None, trace: Path | None = None
) -> AsyncIterator[list[Pool]]:
    """All linked, all members."""
    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        pools: list[Pool] = []
        for name in NAMES:
            peers = [node.address for node in nodes]
            state = folder / name if folder is not None else None
            node = Node(name, peers=peers, state=state, trace=trace, dead=LEASE / 2)
            nodes.append(await stack.enter_async_context(node))
            pools.append(node.pool("docks", permits, members=NAMES, lease=LEASE))
        yield pools


def test_permits_are_more_and_then_fewer_while_clients_go_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with three(1, trace=tmp_path) as (a, b, c):
            first = await a.acquire(1)
            waits = asyncio.ensure_future(asyncio.wait_for(b.acquire(1), 60))
            assert await c.set_permits(3, timeout=60) == 3
            second = await waits
            await eventually(lambda: {pool.permits for pool in (a, b, c)} == {3})
            assert (first.permits, second.permits) == (1, 3)
            await b.set_permits(1, timeout=60)
            later = asyncio.ensure_future(asyncio.wait_for(c.acquire(1), 60))
            first.release()
            await asyncio.sleep(2 * LEASE)
            assert not later.done() and second.held
            second.release()
            assert (await later).permits == 1
            (await later).release()

    run(story)
    together = tmp_path / "all.jsonl"
    with together.open("wb") as file:
        merge([tmp_path / f"docks.{name}.jsonl" for name in NAMES], file, ended=True)
    verdict = Audit(Trace(together))
    assert verdict.monitor.violated == {} and verdict.entries >= 3


def test_whoever_waits_for_more_than_there_are_is_told() -> None:
    async def story() -> None:
        async with three(3) as (a, b, c):
            one = await a.acquire(1)
            waits = asyncio.ensure_future(asyncio.wait_for(b.acquire(3), 60))
            await asyncio.sleep(LEASE)
            await c.set_permits(2, timeout=60)
            with pytest.raises(Refused, match="Pool docks has 2 permits; 3 can never be granted"):
                await waits
            with pytest.raises(Refused, match="docks has 2 permits; 3 can never be granted"):
                await b.acquire(3)
            one.release()
            async with asyncio.timeout(60):
                await c.acquire(2)

    run(story)


def test_the_number_of_permits_survives_the_whole_pool(tmp_path: Path) -> None:
    async def first() -> None:
        async with three(1, tmp_path) as (a, _, _):
            await a.set_permits(4, timeout=60)

    async def second() -> None:
        async with three(1, tmp_path) as (a, b, _):  # their programs have not changed
            async with asyncio.timeout(60):
                await b.acquire(4)
            assert a.permits == 4

    run(first)
    run(second)


def test_what_cannot_change_is_refused() -> None:
    async def story() -> None:
        async with Node("a") as a:
            free = a.pool("free", 2, recovery="none")
            with pytest.raises(Refused, match="has no leases, so no epochs"):
                await free.set_permits(3)
            one = a.pool("one", 1, members=["a"], lease=LEASE, algorithm="raymond")
            with pytest.raises(Refused, match="raymond shares one permit, not 3"):
                await one.set_permits(3)
            with pytest.raises(Refused, match="permits"):
                await one.set_permits(0)
            async with Node("b", peers=[a.address]) as b:
                theirs = b.pool("one")
                with pytest.raises(Refused, match="b is no member of one: ask one of a"):
                    await theirs.set_permits(1)

    run(story)


def test_a_pool_that_nobody_made_is_an_error() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            a.pool("docks", 3)
            (await b.pool("docks").acquire()).release()
            with pytest.raises(NoSuchPool, match="No pool 'doks'; known: docks"):
                await b.pool("doks").acquire()
            with b.visited("dock") as pool:
                assert "dock" not in b.status()["pools"]
                with pytest.raises(NoSuchPool):
                    await pool.acquire()
            assert "dock" not in b.pools

    run(story)


def test_who_is_cut_off_cannot_know_what_pools_there_are() -> None:
    async def story() -> None:
        async with Node("b", peers=["127.0.0.1:9"]) as b:
            with pytest.raises(TimeoutError):
                await b.pool("docks").acquire(timeout=5)

    run(story)
