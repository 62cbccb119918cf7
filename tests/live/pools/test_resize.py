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
from waiting import a_while, eventually

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


def test_a_change_is_made_when_it_is_on_disk(tmp_path: Path) -> None:
    """Of the only member; what others confirm is on theirs."""

    async def story() -> None:
        node = Node("a", state=tmp_path)
        await node.start()
        pool = node.pool("docks", 2, lease=LEASE)
        (await pool.acquire(2)).release()
        full, disk = True, pool._source.adapter.members
        assert disk is not None and disk.disk.promises is not None
        write = disk.disk.promises.write
        disk.disk.promises.write = lambda it: not full and write(it)  # type: ignore[method-assign]
        change = asyncio.ensure_future(pool.set_permits(3, timeout=60))
        await a_while(10 * LEASE)
        assert not change.done()
        full = False
        assert await change == 3
        await node._local.vanish()
        again = Node("a", state=tmp_path)
        await again.start()
        docks = again.pool("docks", 2, lease=LEASE)
        (await docks.acquire(3, timeout=60)).release()
        await again._local.vanish()

    run(story)


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
            with pytest.raises(Refused, match="Cannot grant 3 permits: pool docks has 2"):
                await waits
            with pytest.raises(Refused, match="Cannot grant 3 permits: pool docks has 2"):
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


def test_a_change_that_was_only_written_down_is_not_made_yet() -> None:
    """Found by virtual chaos: its ledger never left, the others went on with what there was."""

    async def story(network: virtual.Network) -> None:
        async with three(1) as (a, b, c):
            (await b.acquire(1)).release()
            change = asyncio.ensure_future(a.set_permits(2, timeout=60))
            while a.permits == 1:
                await asyncio.sleep(1e-5)
            wire = network.wires[int(a._source.mesh.address.rpartition(":")[2])]
            wire.cut()
            (await c.acquire(1)).release()
            assert not change.done()
            wire.heal()
            assert await change == 2
            (await asyncio.wait_for(b.acquire(2), 60)).release()
            (await asyncio.wait_for(c.acquire(2), 60)).release()

    virtual.run(story)


def test_of_named_permits_there_are_the_first_so_many() -> None:
    async def story() -> None:
        async with Node("a") as a:
            gpus = a.pool("gpus", ["gpu0", "gpu1", "gpu2"])
            await gpus.set_permits(2, timeout=60)
            async with gpus.acquire(2) as two:
                assert two.slots == ("gpu0", "gpu1")
            why = "has 3 named permits, gpu0 to gpu2: give all 4"
            with pytest.raises(Refused, match=why):
                await gpus.set_permits(4)
            await gpus.set_permits(3, timeout=60)
            async with gpus.acquire(3) as three:
                assert three.slots == ("gpu0", "gpu1", "gpu2")
            assert gpus._source.describe()["slots"] == three.slots

    run(story)


def test_what_cannot_change_is_refused() -> None:
    async def story() -> None:
        async with Node("a") as a:
            free = a.pool("free", 2, recovery="none")
            with pytest.raises(Refused, match="cannot be changed: the pool has no leases"):
                await free.set_permits(3)
            one = a.pool("one", 1, members=["a"], lease=LEASE, algorithm="raymond")
            with pytest.raises(Refused, match="raymond shares one permit, not 3"):
                await one.set_permits(3)
            with pytest.raises(Refused, match="permits"):
                await one.set_permits(0)
            async with Node("b", peers=[a.address]) as b:
                theirs = b.pool("one")
                with pytest.raises(Refused, match="raymond shares one permit, not 3"):
                    await theirs.set_permits(3)

    run(story)


def test_names_change_while_permits_are_held() -> None:
    """A name that goes stays with its holder; one that comes is granted at once."""

    async def story() -> None:
        async with Node("a", state=None) as a, Node("b", peers=[a.address], state=None) as b:
            mine, theirs = a.pool("gpus", ["g0", "g1"]), b.pool("gpus")
            first, second = await mine.acquire(1), await theirs.acquire(1)
            assert (first.slots, second.slots) == (("g0",), ("g1",))
            await a_while(5.0)  # who has just started does not answer
            assert await mine.set_permits(["g1", "g2", "g3"], timeout=60) == 3
            third = await theirs.acquire(1, timeout=60)
            assert third.slots == ("g2",)
            assert a.status()["pools"]["gpus"]["slots"] == ("g1", "g2", "g3")
            assert (await mine.try_acquire(1)) is None  # two of three are out, and one that was
            await mine.set_permits(["g0", "g1", "g2", "g3"], timeout=60)  # which is there again
            fourth = await mine.acquire(1, timeout=60)
            assert fourth.slots == ("g3",)
            first.release()
            again = await theirs.acquire(1, timeout=60)
            assert again.slots == ("g0",)
            await mine.set_permits(2, timeout=60)
            await eventually(lambda: b.status()["pools"]["gpus"]["slots"] == ("g0", "g1"))
            await mine.set_permits(3, timeout=60)
            await eventually(lambda: b.status()["pools"]["gpus"]["slots"] == ("g0", "g1", "g2"))
            for grant in (second, third, fourth, again):
                grant.release()
            assert sorted((await theirs.acquire(3, timeout=60)).slots) == ["g0", "g1", "g2"]

    run(story)


def test_names_that_changed_are_remembered_and_outlast_a_reset(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node("a", state=tmp_path) as a:
            gpus = a.pool("gpus", ["g0", "g1"])
            (await gpus.acquire(1)).release()
            await gpus.set_permits(["g1", "g2"], timeout=60)
            await a._local.vanish()
        async with Node("a", state=tmp_path) as a:
            gpus = a.pool("gpus", ["g0", "g1"])
            assert (await gpus.acquire(2, timeout=60)).slots == ("g1", "g2")

    run(story)


def test_names_that_cannot_be() -> None:
    async def story() -> None:
        async with Node("a", state=None) as a:
            docks, gpus = a.pool("docks", 2), a.pool("gpus", ["g0", "g1"])
            with pytest.raises(Refused, match="The permits of docks have no names"):
                await docks.set_permits(["x", "y"])
            with pytest.raises(Refused, match="gpus has 2 named permits, g0 to g1: give all 3"):
                await gpus.set_permits(3)
            with pytest.raises(Refused, match="names 'x' twice"):
                await gpus.set_permits(["x", "x"])
            with pytest.raises(Refused, match="gpus has had 2 names, and 1000 is the limit"):
                await gpus.set_permits([f"n{number}" for number in range(999)])

    run(story)


def test_a_pool_that_nobody_made_is_an_error() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            a.pool("docks", 3)
            (await b.pool("docks").acquire()).release()
            with pytest.raises(NoSuchPool, match="No pool 'doks'; known: docks"):
                await b.pool("doks").acquire()
            with b._local.registry.visited("dock") as pool:
                assert "dock" not in b.status()["pools"]
                with pytest.raises(NoSuchPool):
                    await Pool(pool).acquire()
            assert "dock" not in b._local.pools

    run(story)


def test_who_is_cut_off_cannot_know_what_pools_there_are() -> None:
    async def story() -> None:
        async with Node("b", peers=["127.0.0.1:9"]) as b:
            with pytest.raises(TimeoutError):
                await b.pool("docks").acquire(timeout=5)

    run(story)


def test_a_pool_whose_quorum_is_gone_is_made_anew(tmp_path: Path) -> None:
    """Of three members two are lost for good; later one of them comes back all the same."""

    async def story() -> None:
        def node(name: str, peers: list[str]) -> Node:
            return Node(name, peers=peers, state=tmp_path / name, dead=LEASE / 2)

        def member(one: Node) -> Pool:
            return one.pool("docks", 2, members=NAMES, lease=LEASE)

        async with node("a", []) as a, AsyncExitStack() as stack:
            b = await stack.enter_async_context(node("b", [a.address]))
            c = await stack.enter_async_context(node("c", [a.address]))
            pools = [member(one) for one in (a, b, c)]
            docks = pools[0]
            old = await docks.acquire(1)
            await pools[1].set_permits(3, timeout=60)
            with pytest.raises(Refused, match="Cannot reset docks: 3 of 3 members are reachable"):
                await docks.reset()
            theirs = await pools[1].acquire(1)
            await b._local.vanish()
            await c._local.vanish()
            await eventually(lambda: a.status()["pools"]["docks"]["members_reachable"] == 1)
            waits = asyncio.ensure_future(asyncio.wait_for(docks.acquire(3), 60))
            before = asyncio.get_running_loop().time()
            assert await docks.reset() == 3
            assert old.lost and not old.held
            new = await waits
            assert (
                asyncio.get_running_loop().time() - before > LEASE
            )  # theirs may be in use so long
            assert theirs.fence is not None and new.fence is not None and new.fence > theirs.fence
            again = await stack.enter_async_context(node("b", [a.address]))
            mine = member(again)
            await eventually(
                lambda: mine._source.adapter.configuration == docks._source.adapter.configuration
            )
            new.release()
            async with asyncio.timeout(60):
                await mine.acquire(3)
        async with node("a", []) as a:  # its program still says who the members were
            docks = member(a)
            async with asyncio.timeout(60):
                await docks.acquire(3)
            assert (
                docks._source.adapter.configuration is not None
                and docks._source.adapter.configuration.replaces
            )

    run(story)


def test_a_pool_without_leases_whose_token_is_lost_is_made_anew() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            mine = a.pool("docks", 2, recovery="none")
            theirs = b.pool("docks")
            await theirs.acquire(2)
            with pytest.raises(Refused, match="Cannot reset docks: its token is at this node"):
                await theirs.reset()
            await b._local.vanish()
            assert await mine.reset() == 2
            async with asyncio.timeout(60):
                await mine.acquire(2)

    run(story)


def test_a_pool_that_nobody_else_has_is_removed(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node("a", state=tmp_path) as a:
            docks = a.pool("docks", 2)
            grant = await docks.acquire()
            with pytest.raises(
                Refused,
                match="Cannot remove docks: programs of this node hold or wait for its permits",
            ):
                a._local.registry.remove("docks")
            grant.release()
            async with Node("b", peers=[a.address]) as b:
                await b.pool("docks").acquire()
                with pytest.raises(Refused, match="Cannot remove docks: it is also a pool of b"):
                    a._local.registry.remove("docks")
            await eventually(lambda: not docks._source.peers.near)
            a._local.registry.remove("docks")
            assert a.status()["pools"] == {}
            assert list(tmp_path.glob("docks*")) == []
            await a.pool("docks", 5).acquire(5)

    run(story)


def test_a_pool_without_leases_says_that_its_token_is_lost() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            mine = a.pool("docks", 2, recovery="none")
            await b.pool("docks").acquire(2)
            assert a.status()["pools"]["docks"]["why"] == ""
            await b._local.vanish()
            with pytest.raises(TimeoutError, match=r"The token of docks was not seen for 1\d s"):
                await mine.acquire(timeout=18)
            assert "The token of docks was not seen" in a.status()["pools"]["docks"]["why"]
            await mine.reset()
            await eventually(lambda: a.status()["pools"]["docks"]["why"] == "")

    run(story)
