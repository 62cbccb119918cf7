"""Members that have lost their state: who has no vote is no quorum, and every interface says so.

In virtual time: nodes that are all linked, whose members choose themselves, with a client each that
asks again and again. Some are killed and come back without their state folders.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import virtual
from virtual import HOST, Network

from meshlock import Node, NotInTime, Refused
from meshlock.live.interfaces.exposition import exposition
from meshlock.live.interfaces.http import unready
from meshlock.live.interfaces.notify import summary
from meshlock.live.pools.promises import Promised, Promises
from waiting import a_while, eventually

LEASE = 3.0


class World:
    most_members = 5
    clock_rate = 1.0

    def __init__(self, network: Network, folder: Path, names: str) -> None:
        self.network = network
        self.folder = folder
        self.ports = {name: 5000 + place for place, name in enumerate(names)}
        self.nodes: dict[str, Node] = {}
        self.clients: dict[str, asyncio.Task[None]] = {}
        self.granted: dict[str, list[float]] = {name: [] for name in names}

    async def start(self, name: str) -> None:
        peers = [f"{HOST}:{port}" for other, port in self.ports.items() if other in self.nodes]
        node = Node(
            name,
            listen=f"{HOST}:{self.ports[name]}",
            peers=peers,
            state=self.folder / name,
            clock_rate=self.clock_rate,
        )
        self.nodes[name] = node
        await node.start()
        node.pool("docks", 3, lease=LEASE, promote_after=1.0, most_members=self.most_members)
        self.clients[name] = asyncio.create_task(self.client(node))

    async def client(self, node: Node) -> None:
        while True:
            with suppress(TimeoutError, Refused):
                async with node.pool("docks").acquire(timeout=60):
                    self.granted[node.name].append(asyncio.get_running_loop().time())
                    await a_while(0.1)
            await a_while(0.3)

    async def begin(self, members: int) -> None:
        for name in self.ports:
            await self.start(name)
        first = self.nodes["a"]
        await eventually(lambda: len(pool(first).get("members", ())) == members)
        await eventually(lambda: all(self.granted.values()))
        await a_while(2 * LEASE)

    async def kill(self, name: str) -> None:
        self.clients.pop(name).cancel()
        node = self.nodes.pop(name)
        self.network.kill(node._local.mesh)
        await node._local.vanish()

    async def lose(self, names: str, away: float = 0.1) -> float:
        """They come back without what they knew; the result is when they were killed."""
        for name in names:
            await self.kill(name)
            shutil.rmtree(self.folder / name)
        killed = asyncio.get_running_loop().time()
        await a_while(away)
        for name in names:
            await self.start(name)
        return killed

    async def reset(self, name: str) -> float:
        """As soon as it is possible; the result is when that was."""
        while True:
            with suppress(Refused):
                await self.nodes[name]._local.pools["docks"].participation.reset()
                return asyncio.get_running_loop().time()
            await a_while(0.02)

    def unserved(self, since: float) -> float:
        """The longest time in which nobody was granted anything."""
        granted = [time for times in self.granted.values() for time in times if time > since]
        times = [since, *sorted(granted), asyncio.get_running_loop().time()]
        return max(after - before for before, after in pairwise(times))

    async def end(self) -> None:
        for name in list(self.nodes):
            await self.kill(name)


def pool(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.status()["pools"]["docks"]
    return found


def run(
    tmp_path: Path, names: str, story: Callable[[World], Awaitable[None]], seed: int = 1
) -> None:
    async def told(network: Network) -> None:
        world = World(network, tmp_path, names)
        await story(world)
        await world.end()

    virtual.run(told, seed=seed)


@pytest.mark.parametrize(("names", "members", "full"), [("abc", 3, "ab"), ("ab", 1, "a")])
def test_disks_that_keep_everybody_from_being_served_are_named_by_other_nodes(
    tmp_path: Path, names: str, members: int, full: str
) -> None:
    write = Promises.store

    def store(promises: Promises, path: Path, value: Promised) -> bool:
        if promises.folder.name not in full:
            return write(promises, path, value)
        promises.failure = "cannot write"
        return False

    async def story(world: World) -> None:
        await world.begin(members)
        other = world.nodes[names[-1]].pool("docks")
        with mock.patch.object(Promises, "store", store):
            source = world.nodes["a"]._local.pools["docks"].adapter
            source.before().propose()  # type: ignore[attr-defined]
            source.carry_out("timer", {})
            await eventually(lambda: bool(unready(pool(world.nodes["a"]))))
            why = "; ".join(f"{name} says: the disk refuses: cannot write" for name in full)
            for _ in range(2):  # before and after this node knows that nobody is served
                with pytest.raises(NotInTime) as late:
                    await other.acquire(timeout=1.0)
                assert str(late.value) == f"No permits of docks within 1 s: {why}."
                assert (await other.picture())["why"] == why
                await eventually(lambda: bool(unready(pool(world.nodes[names[-1]]))))
        await eventually(lambda: not unready(pool(world.nodes[names[-1]])))
        async with other.acquire(3, timeout=60):
            assert (await other.picture())["why"] == ""

    run(tmp_path, names, story)


@pytest.mark.parametrize(("names", "members", "lost"), [("abc", 3, "ab"), ("ab", 1, "a")])
def test_members_that_have_forgotten_are_no_quorum(
    tmp_path: Path, names: str, members: int, lost: str
) -> None:
    """Two of three disks; or the founder's, of two machines. Nobody can be served again: all nodes
    say that and why, and a reset is possible at any of them."""

    async def story(world: World) -> None:
        await world.begin(members)
        await world.lose(lost)
        await eventually(lambda: all(unready(pool(one)) for one in world.nodes.values()))
        await a_while(3 * LEASE)
        for node in world.nodes.values():
            said = pool(node)
            assert unready(said) and unready(said) in summary(node.status())
            assert 'meshlock_quorum_reachable{pool="docks"} 0.0' in exposition(node._local)
        said = pool(world.nodes[names[-1]])
        assert said["members_without_vote"] == list(lost)
        assert said["members_reachable"] == members  # but that is not the question
        for one in lost:
            assert one in unready(said).partition(";")[2]
        assert "reset the pool" in unready(said)
        with pytest.raises(TimeoutError, match="lost the state; reset the pool if that is final"):
            await world.nodes[names[-1]].pool("docks").acquire(timeout=1.0)
        await world.nodes[names[-1]]._local.pools["docks"].participation.reset()
        began = asyncio.get_running_loop().time()
        await eventually(
            lambda: all(granted and granted[-1] > began for granted in world.granted.values())
        )
        assert not any(unready(pool(node)) for node in world.nodes.values())

    run(tmp_path, names, story)


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("rate", [0.99, 1.01])
def test_a_reset_is_followed_by_nodes_that_think_of_a_quorum_still(
    tmp_path: Path, rate: float, settled: bool
) -> None:
    """It comes within a lease after the restarts, so at first they only stop their pool."""

    async def story(world: World) -> None:
        world.clock_rate = rate
        await world.begin(5)
        await world.lose("abc")
        known = [lambda node=node: pool(node).get("members") for node in world.nodes.values()]
        await eventually(lambda: not settled or all(one() for one in known))
        began = await world.reset("e")
        await eventually(
            lambda: all(granted and granted[-1] > began for granted in world.granted.values())
        )
        assert asyncio.get_running_loop().time() - began < 8 * LEASE
        assert not any(pool(node)["conflict"] for node in world.nodes.values())

    run(tmp_path, "abcde", story)


def test_members_that_have_forgotten_say_what_to_do_when_no_quorum_names_them(
    tmp_path: Path,
) -> None:
    """All three restart, and two without their disks: the third is not sure of its epoch."""

    async def story(world: World) -> None:
        await world.begin(3)
        for name in "abc":
            await world.kill(name)
        for name in "ab":
            shutil.rmtree(tmp_path / name)
        for name in "cab":
            await world.start(name)
        await a_while(3 * LEASE)
        for node in world.nodes.values():
            assert "reset the pool if" in unready(pool(node))

    run(tmp_path, "abc", story)


def test_an_old_founder_that_comes_back_joins_what_the_operator_has_decided(tmp_path: Path) -> None:
    """It was the only member, so that with its disk it would be a quorum by itself."""

    async def story(world: World) -> None:
        await world.begin(1)
        await world.kill("a")
        await eventually(lambda: bool(unready(pool(world.nodes["b"]))))
        await a_while(2 * LEASE)
        await world.nodes["b"]._local.pools["docks"].participation.reset()
        await a_while(LEASE)
        began = asyncio.get_running_loop().time()
        await world.start("a")
        await eventually(
            lambda: all(granted and granted[-1] > began for granted in world.granted.values())
        )
        identities = {node._local.pools["docks"].adapter.identity for node in world.nodes.values()}
        assert len(identities) == 1
        assert not any(pool(node)["conflict"] for node in world.nodes.values())
        assert not any(unready(pool(node)) for node in world.nodes.values())

    run(tmp_path, "ab", story)


def test_a_pool_whose_voters_live_is_not_reset(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.begin(3)
        await world.lose("c")
        with pytest.raises(Refused, match="reachable and have a vote, which is a quorum"):
            await world.nodes["a"]._local.pools["docks"].participation.reset()

    run(tmp_path, "abc", story)


@pytest.mark.parametrize(("lost", "away", "seed"), [("a", 0.1, 1), ("a", 2.0, 2), ("c", 2.0, 3)])
def test_a_minority_that_has_forgotten_is_voted_in_again(
    tmp_path: Path, lost: str, away: float, seed: int
) -> None:
    """By itself, and nobody is kept waiting for longer than if the token was lost in a crash."""

    async def story(world: World) -> None:
        await world.begin(3)
        killed = await world.lose(lost, away)
        await eventually(lambda: (core(world.nodes[lost]) or 0) and votes(world.nodes[lost]))
        assert asyncio.get_running_loop().time() - killed - away < 4 * LEASE
        await a_while(2 * LEASE)
        assert world.unserved(killed) < 2 * LEASE
        assert not any(unready(pool(node)) for node in world.nodes.values())
        assert all(pool(node)["members_without_vote"] == [] for node in world.nodes.values())

    run(tmp_path, "abc", story, seed)


def core(node: Node) -> Any:
    members = node._local.pools["docks"].adapter.members
    return None if members is None else members.node


def votes(node: Node) -> bool:
    found: bool = core(node).member.votes()
    return found
