"""When a release takes effect: with the client's next await, or before anybody can tell."""

import asyncio

import virtual

from meshlock import Node
from waiting import LIMIT, a_while, eventually


def requests(*nodes: Node) -> int:
    return sum(node._local.pools["docks"].adapter.measures.sent.get("REQUEST", 0) for node in nodes)


def test_who_asks_again_at_once_has_its_request_go_along_with_the_token() -> None:
    async def story(network: virtual.Network) -> None:
        async with (
            Node("a", state=None) as a,
            Node("b", state=None, peers=[a.address]) as b,
        ):
            for node in (a, b):
                node.pool("docks", permits=1, algorithm="direct", members=["a", "b"])
                async with node.pool("docks").acquire(timeout=LIMIT):
                    pass
            before = requests(a, b)

            async def client(node: Node) -> None:
                for _ in range(100):
                    async with node.pool("docks").acquire(timeout=LIMIT):
                        await a_while(0.1)  # meanwhile the other one waits

            await asyncio.gather(client(a), client(b))
            assert requests(a, b) - before < 5, "a request ran after the token"

    virtual.run(story)


def test_whoever_looks_right_after_a_release_sees_it() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a", state=None) as a:
            docks = a.pool("docks", permits=2)
            first = await docks.acquire(2, timeout=LIMIT)
            first.release()
            said = a.status()["pools"]["docks"]
            assert said["holding"] == [] and said["free_here"] == 2
            second = await docks.acquire(2, timeout=LIMIT)
            second.release()
            third = docks._source.at_once(docks.acquire(2))
            assert third is not None
            third.release()
            fourth = await docks.acquire(2, timeout=LIMIT)  # granted without waiting
            assert fourth.fence is not None and third.fence is not None
            assert fourth.fence > third.fence
            fourth.release()

    virtual.run(story)


def test_a_node_that_leaves_right_after_a_release_leaves_the_permits_behind() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a", state=None) as a:
            docks = a.pool("docks", permits=1, lease=60.0)
            async with Node("b", state=None, peers=[a.address]) as b:
                here = b.pool("docks", permits=1, lease=60.0)
                grant = await here.acquire(timeout=LIMIT)
                grant.release()
            began = asyncio.get_running_loop().time()
            async with docks.acquire(timeout=LIMIT):
                assert asyncio.get_running_loop().time() - began < 30.0, "a lease ran out"

    virtual.run(story)


def test_a_lease_that_ends_right_after_a_release_is_not_lost() -> None:
    """The client has stopped already: nothing is counted as lost."""

    async def story(network: virtual.Network) -> None:
        async with Node("a", state=None) as a:
            docks = a.pool("docks", permits=1)
            grant = await docks.acquire(timeout=LIMIT)
            members = docks._source.adapter.members
            assert members is not None
            grant.release()
            for held in members.node.member.grants.values():
                held.until = 0
            members.wake()
            await eventually(lambda: not docks._source.adapter.clients)
            assert docks._source.adapter.measures.lost == 0 and not grant.lost

    virtual.run(story)


def test_a_release_that_fails_fails_alone() -> None:
    """Neither the next request nor a later release suffers from it."""

    async def story(network: virtual.Network) -> None:
        async with Node("a", state=None) as a:
            docks = a.pool("docks", permits=2)
            first = await docks.acquire(timeout=LIMIT)
            second = await docks.acquire(timeout=LIMIT)
            leave, failing = docks._source.adapter.leave, [first._number]

            def fail_once(number: int) -> None:
                leave(number)
                if number in failing:
                    raise RuntimeError("after all")

            docks._source.adapter.leave = fail_once  # type: ignore[method-assign]
            first.release()
            second.release()
            third = await docks.acquire(2, timeout=LIMIT)
            assert third.held and a._local.mesh.failures.counts == {"release": 1}
            third.release()

    virtual.run(story)
