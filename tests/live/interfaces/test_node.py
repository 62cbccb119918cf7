"""Nodes as people use them: pools, grants, timeouts, cancellation, joining and leaving."""

from __future__ import annotations

import asyncio
import doctest
import threading

import pytest
import virtual

import meshlock
import meshlock.live.interfaces.blocking
import meshlock.live.interfaces.node
import meshlock.live.pools.pool
from meshlock import Node, NotInTime, Pool, Refused
from meshlock.live.machine import clock
from waiting import LIMIT, a_while, eventually, run


def quiet(*pools: Pool) -> bool:
    """Nobody holds or waits, and all permits lie in one place."""
    free = sum(
        pool._source.adapter.core.free_permits() for pool in pools if pool._source.adapter.core
    )
    return not any(pool._source.adapter.clients for pool in pools) and free == pools[0].permits


@pytest.mark.parametrize(
    "module",
    [meshlock.live.interfaces.node, meshlock.live.pools.grants, meshlock.live.interfaces.blocking],
)
def test_the_examples_in_the_docstrings_run(module: object) -> None:
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert (failed, tried > 1) == (0, True)


def test_two_nodes_share_through_a_third_that_only_passes_on() -> None:
    async def story() -> None:
        async with (
            Node("a") as a,
            Node("b", peers=[a.address]) as b,
            Node("c", peers=[b.address], min_links=0) as c,
        ):
            first = a.pool("docks", permits=3)
            last = c.pool("docks")
            async with last.acquire(2, timeout=LIMIT) as grant:
                assert (grant.want, last.permits) == (2, 3)
                with pytest.raises(TimeoutError):
                    await first.acquire(2, timeout=0.05)
                async with first.acquire(1, timeout=LIMIT) as other:
                    assert other.fence is not None and grant.fence is not None
                    assert other.fence > grant.fence
            assert "docks" in b._local.pools  # it was told by its neighbours
            assert a.status()["links"].keys() == {"b"}
            await eventually(lambda: quiet(first, last, b.pool("docks")))

    run(story)


def test_an_idle_holder_grants_without_a_message() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            docks = a.pool("docks", permits=1)
            b.pool("docks")
            await eventually(lambda: "b" in docks._source.peers.near)
            before = dict(docks._source.adapter.measures.sent)
            for _ in range(10):
                async with docks.acquire():
                    pass
            assert docks._source.adapter.measures.sent == before

    run(story)


def test_a_client_that_never_pauses_starves_nobody() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            greedy, other = a.pool("docks", permits=1), b.pool("docks")
            await other._source.ready.wait()

            async def ask_again_and_again() -> None:
                while True:
                    async with greedy.acquire():
                        pass

            task = asyncio.create_task(ask_again_and_again())
            for _ in range(3):
                async with other.acquire(timeout=LIMIT):
                    pass
            task.cancel()
            await asyncio.wait([task])
            await eventually(lambda: quiet(greedy, other))

    run(story)


def test_the_highest_priority_waits_least() -> None:
    async def story(_: virtual.Network) -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            here, there = a.pool("docks", permits=1), b.pool("docks")
            order: list[int] = []

            async def client(pool: Pool, priority: int) -> None:
                async with pool.acquire(priority=priority):
                    order.append(priority)

            grant = await here.acquire()
            clients = [
                asyncio.create_task(client(pool, priority))
                for pool, priority in ((there, 1), (here, 5), (there, 9), (here, 3))
            ]
            await a_while(0.1)
            grant.release()
            await asyncio.gather(*clients)
            assert order == [9, 5, 3, 1]

    virtual.run(story)


def test_many_clients_of_one_node_hold_at_once() -> None:
    async def story() -> None:
        async with Node("a") as a:
            docks = a.pool("docks", permits=3)
            grants = [await docks.acquire() for _ in range(3)]
            assert await docks.try_acquire() is None
            grants.pop().release()
            extra = await docks.try_acquire()
            assert extra is not None
            fences = [grant.fence for grant in grants] + [extra.fence]
            assert fences == sorted(set(fences), key=lambda fence: fence or 0)

    run(story)


def test_a_cancelled_waiter_leaves_nothing_behind() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            here, there = a.pool("docks", permits=2), b.pool("docks")
            grant = await here.acquire(2)
            await there._source.ready.wait()
            waiting = [asyncio.create_task(wait(pool)) for pool in (here, there, there)]
            await eventually(
                lambda: len(here._source.adapter.clients) == len(there._source.adapter.clients) == 2
            )
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert len(here._source.adapter.clients) == 1 and not there._source.adapter.clients
            grant.release()
            await eventually(lambda: quiet(here, there))

    async def wait(pool: Pool) -> None:
        await pool.acquire()

    run(story)


def test_cancelled_in_the_moment_of_the_grant_it_goes_back() -> None:
    async def story() -> None:
        async with Node("a") as a:
            docks = a.pool("docks", permits=1)
            grant = await docks.acquire()

            async def wait() -> None:
                await docks.acquire()

            task = asyncio.create_task(wait())
            await asyncio.sleep(0)
            grant.release()  # the waiter has the permit, but has not run yet
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled() and quiet(docks)

    run(story)


@pytest.mark.parametrize("algorithm", ["raymond", "naimi-trehel", "suzuki-kasami", "lamport"])
def test_other_algorithms_run_live_and_queue_their_clients(algorithm: str) -> None:
    async def story() -> None:
        async with (
            Node("a") as a,
            Node("b", peers=[a.address]) as b,
            Node("c", peers=[a.address, b.address]) as c,
        ):
            names = ["a", "b", "c"]
            pools = [a.pool("docks", 1, algorithm=algorithm, members=names, recovery="none")]
            pools += [node.pool("docks") for node in (b, c)]
            inside = entries = 0

            async def client(pool: Pool) -> None:
                nonlocal inside, entries
                for _ in range(10):
                    async with pool.acquire(timeout=LIMIT):
                        inside += 1
                        assert inside == 1
                        await asyncio.sleep(0)
                        inside -= 1
                        entries += 1

            await asyncio.gather(*[client(pool) for pool in pools * 2])
            assert entries == 60

    run(story)


def test_pools_of_algorithms_without_a_token_do_not_speak_of_one() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            given = {"algorithm": "lamport", "members": ["a", "b", "c"], "recovery": "none"}
            with pytest.raises(Refused, match="lamport sends to all nodes directly: leave links"):
                a.pool("docks", 1, links=[("a", "b"), ("b", "c")], **given)
            pool = a.pool("docks", 1, **{**given, "members": ["a", "b"]})
            async with b.pool("docks").acquire(timeout=LIMIT):
                with pytest.raises(NotInTime, match=r"1 of 1 held\.$"):
                    await pool.acquire(timeout=0.2)

    run(story)


def test_messages_for_distant_members_are_passed_on() -> None:
    async def story() -> None:
        async with (
            Node("a") as a,
            Node("b", peers=[a.address]) as b,
            Node("c", peers=[b.address], min_links=0) as c,
        ):
            links = [("a", "b"), ("b", "c")]
            members = ["a", "b", "c"]
            plain = {"members": members, "links": links, "recovery": "none"}
            a.pool("docks", 1, algorithm="naimi-trehel", **plain)  # type: ignore[arg-type]
            async with c.pool("docks").acquire(timeout=LIMIT):
                pass

    run(story)


def test_a_node_that_leaves_hands_the_token_on() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            docks = a.pool("docks", permits=3)
            async with Node("c", peers=[b.address], min_links=0) as c:
                grant = await c.pool("docks").acquire(2, timeout=LIMIT)
                assert c._local.pools["docks"].adapter.core.tokens() == 1  # type: ignore[union-attr]
            assert grant.lost
            assert b.status()["links"]["c"]["up"] is False
            async with docks.acquire(3, timeout=LIMIT):
                pass

    run(story)


def test_a_founder_that_restarts_joins_what_it_founded() -> None:
    async def story() -> None:
        async with Node("b") as b:
            a = Node("a", peers=[b.address])
            await a.start()
            a.pool("docks", permits=3, founder=True, recovery="none")
            async with b.pool("docks").acquire(3, timeout=LIMIT):
                identity = b._local.pools["docks"].adapter.identity
                await a._local.vanish()
                async with Node("a", peers=[b.address]) as again:
                    docks = again.pool("docks", permits=3, founder=True, recovery="none")
                    await docks._source.ready.wait()
                    assert docks._source.adapter.identity == identity
                    with pytest.raises(TimeoutError):
                        await docks.acquire(timeout=0.1)

    run(story)


def test_two_foundings_never_share_a_link() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b") as b:
            here, there = a.pool("docks", permits=1), b.pool("docks", permits=1)
            async with here.acquire(), there.acquire():
                b.connect(a.address)
                await eventually(lambda: bool(here._source.conflict and there._source.conflict))
                assert not here._source.peers.near and not there._source.peers.near
            first, other = sorted([here, there], key=identity)
            with pytest.raises(Refused, match="pool join docks --from "):
                await other.acquire()
            (await first.acquire()).release()  # at equal numbers of members, the lower identity

    run(story)


def identity(pool: Pool) -> int:
    made = pool._source.adapter.configuration
    assert made is not None
    return made.identity


def test_a_founding_that_nobody_used_gives_way() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b") as b:
            here, there = a.pool("docks", permits=1), b.pool("docks", permits=1)
            async with here.acquire():
                b.connect(a.address)
                await eventually(lambda: "b" in here._source.peers.near)
                with pytest.raises(TimeoutError):
                    await there.acquire(timeout=0.1)

    run(story)


@pytest.mark.parametrize(
    ("want", "permits", "sentence"),
    [
        (4, 3, "Cannot grant 4 permits: pool docks has 3"),
        (0, 3, "want 0 is out of range"),
        (1, 2, "has 3 permits, not 2"),
    ],
)
def test_what_can_never_be_is_refused_with_a_sentence(
    want: int, permits: int, sentence: str
) -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            a.pool("docks", permits=3)
            docks = b.pool("docks", permits=permits if permits != 3 else None)
            with pytest.raises(Refused, match=sentence):
                await docks.acquire(want)

    run(story)


def test_threads_share_with_other_nodes() -> None:
    with (
        meshlock.BlockingNode("a") as a,
        meshlock.BlockingNode("b", peers=[a.address]) as b,
    ):
        pools = [a.pool("docks", permits=1), b.pool("docks")]
        counter = 0

        def work(pool: meshlock.BlockingPool) -> None:
            nonlocal counter
            for _ in range(50):
                with pool.acquire(timeout=LIMIT):
                    value = counter
                    counter = value + 1

        threads = [threading.Thread(target=work, args=(pool,)) for pool in pools * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counter == 200
        with pools[1].acquire(), pytest.raises(TimeoutError):
            pools[0].acquire(timeout=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_nodes_that_dial_each_other_at_once_have_one_link(seed: int) -> None:
    async def story(_: virtual.Network) -> None:
        places = [f"127.0.0.1:{port}" for port in range(5001, 5005)]
        nodes = [
            Node(f"n{number}", listen=place, peers=[other for other in places if other != place])
            for number, place in enumerate(places)
        ]
        await asyncio.gather(*[node.start() for node in nodes])
        try:
            await eventually(lambda: all(ups(node) == 3 for node in nodes))
            await a_while(0.7)  # longer than it takes to give a link up
            for node in nodes:
                assert ups(node) == 3 and node.status()["refused"] == 0
                assert all(link["generation"] == 1 for link in node.status()["links"].values())
            pools = [nodes[0].pool("docks", permits=1, founder=True, recovery="none")]
            pools += [node.pool("docks") for node in nodes[1:]]
            for pool in pools:
                async with pool.acquire(timeout=LIMIT):
                    pass
        finally:
            await asyncio.gather(*[node.close() for node in nodes])

    def ups(node: Node) -> int:
        return sum(link["up"] for link in node.status()["links"].values())

    virtual.run(story, seed)


@pytest.mark.parametrize("secret", [None, "a secret of all nodes"])
def test_a_list_of_peers_may_be_the_same_everywhere(
    secret: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A node that finds itself at one of the addresses dials it no more, and refuses no node."""

    async def story() -> None:
        async with (
            Node("a", secret=secret) as a,
            Node("b", secret=secret, peers=[a.address]) as b,
        ):
            a.connect(a.address)
            assert a._local._mesh is not None
            dialler = a._local._mesh.dialler.diallers[a.address]
            await dialler
            docks = a.pool("docks", permits=1)
            await eventually(lambda: "b" in docks._source.peers.near)
            assert set(a.status()["links"]) == {"b"} and set(b.status()["links"]) == {"a"}
            assert a.status()["refused"] == 0

    run(story)
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


@pytest.mark.parametrize("members", [[], ["a", "b", "c"]])
def test_nodes_that_leave_together_do_not_wait_for_each_other(
    members: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Not even for the lease of a grant that one of them holds."""

    async def story(_: virtual.Network) -> None:
        nodes = [Node(name) for name in "abc"]
        for node in nodes:
            await node.start()
            for other in nodes[: nodes.index(node)]:
                node.connect(other.address)
        if members:
            pools = [node.pool("docks", 2, members=members, lease=60.0) for node in nodes]
        else:
            pools = [nodes[0].pool("docks", 2), *[node.pool("docks") for node in nodes[1:]]]
        grants = [await pool.acquire(timeout=LIMIT * 10) for pool in pools[:2]]
        began = clock.seconds()
        await asyncio.gather(*[node.close() for node in nodes])
        assert clock.seconds() - began < 1.0
        assert all(grant.lost for grant in grants)

    virtual.run(story)
    assert "left without handing over the token" not in caplog.text


def test_the_last_node_stops_at_once() -> None:
    async def story(_: virtual.Network) -> None:
        async with Node("a") as a:
            grant = await a.pool("docks", 1, members=["a"], lease=60.0).acquire(timeout=LIMIT * 10)
            began = clock.seconds()
        assert grant.lost and clock.seconds() - began < 0.1

    virtual.run(story)
