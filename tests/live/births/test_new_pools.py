"""Pools that are made, joined, remembered and mistaken for each other."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import virtual
from msgspec.structs import replace

from meshlock import Node, Pool, Refused
from meshlock.live.interfaces.http import unready
from meshlock.live.links.frames import Content
from meshlock.live.links.mesh import Mesh
from meshlock.live.pools import adapter
from meshlock.live.pools.adapter import Adapter
from meshlock.live.pools.pool_configuration import under_another_identity
from meshlock.live.pools.promises import default_folder
from waiting import LIMIT, a_while, eventually

LEASE = 0.6


def run(story: Callable[[], Awaitable[None]], seed: int = 0) -> None:
    virtual.run(lambda _: story(), seed=seed)


def docks(node: Node, permits: int | None = 3, **settings: Any) -> Pool:
    return node.pool("docks", permits, lease=LEASE, **settings)


def identity(node: Node) -> int:
    return node._local.pools["docks"].adapter.identity if "docks" in node._local.pools else 0


@contextmanager
def logged(level: int = logging.ERROR) -> Iterator[list[str]]:
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, listener = logging.getLogger("meshlock"), Listener(level)
    logger.addHandler(listener)
    try:
        yield lines
    finally:
        logger.removeHandler(listener)


def test_a_new_pool_grants_at_once() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with Node("a") as a:
            began = loop.time()
            grant = await docks(a).acquire(2, timeout=LIMIT)
            assert grant.lease is not None
            assert loop.time() == began  # nothing was waited for
            assert a.status()["pools"]["docks"]["members"] == ["a"]

    run(story)


def test_who_joins_gets_permits_without_waiting_for_a_lease() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            docks(a)
            began = loop.time()
            async with docks(b).acquire(3, timeout=LIMIT):
                assert loop.time() - began < LEASE
            assert identity(a) == identity(b)

    run(story)


def test_the_maker_comes_back_to_what_it_made() -> None:
    """After a crash it remembers, keeps quiet for a lease, and fences go on growing."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with Node("b") as b, AsyncExitStack() as stack:
            a = await stack.enter_async_context(Node("a", peers=[b.address]))
            before = await docks(a).acquire(1, timeout=LIMIT)
            made = identity(a)
            await eventually(lambda: b._local.pools["docks"].peers.near)
            await a._local.vanish()
            again = await stack.enter_async_context(Node("a"))  # it knows nobody, and need not
            began = loop.time()
            after = await docks(again).acquire(3, timeout=LIMIT)
            assert loop.time() - began >= LEASE
            assert identity(again) == made
            assert after.fence is not None and before.fence is not None
            assert after.fence > before.fence

    run(story)


def test_a_pool_that_nobody_shared_is_over_when_its_node_leaves() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        identities = []
        fences = []
        for _ in range(2):
            async with Node("a") as a:
                began = loop.time()
                async with docks(a).acquire(1) as grant:
                    assert loop.time() == began
                    fences.append(grant.fence)
                identities.append(identity(a))
            await a_while(2.0)
        assert identities[0] != identities[1] and fences[0] < fences[1]
        assert not (default_folder("a") / "docks.promised").exists()

    run(story)


def test_what_a_program_may_still_use_is_remembered() -> None:
    """It left in good order, but its client had permits: they may be in use for a lease."""

    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with Node("a") as a:
            await docks(a).acquire(3)
            made = identity(a)
        async with Node("a") as a:
            began = loop.time()
            async with docks(a).acquire(3, timeout=LIMIT):
                assert loop.time() - began >= LEASE
            assert identity(a) == made

    run(story)


def test_two_processes_are_not_the_same_node() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("a") as double:
            docks(a)
            with pytest.raises(Refused, match="Another process uses the state folder"):
                docks(double)

    run(story)


def test_a_state_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node("a", state=tmp_path / ("x" * 300)) as a:
            with pytest.raises(Refused, match="File name too long"):
                docks(a)

    run(story)


def test_without_state_nothing_is_written(tmp_path: Path) -> None:
    async def story() -> None:
        async with Node("a", state=None) as a, docks(a).acquire():
            assert not default_folder("a").exists()

    run(story)


@pytest.mark.parametrize("seed", range(10))
def test_nodes_that_start_together_end_up_in_one_pool(seed: int) -> None:
    """All with the same line, all with each other as peers; everybody asks at once."""

    async def story() -> None:
        async with AsyncExitStack() as stack:
            nodes = [Node(name, state=None) for name in "abcd"]
            for node in nodes:
                await stack.enter_async_context(node)
            for node in nodes:
                node._local.peers = [other.address for other in nodes if other is not node]
                for address in node._local.peers:
                    node.connect(address)
            used = most = 0

            async def work(node: Node) -> None:
                nonlocal used, most
                for _ in range(3):
                    async with docks(node).acquire(2, timeout=LIMIT):
                        used += 2
                        most = max(used, most)
                        await asyncio.sleep(0.05)
                        used -= 2

            await asyncio.gather(*[work(node) for node in nodes])
            assert most == 2  # of three
            assert len({identity(node) for node in nodes}) == 1
            assert not any(node._local.pools["docks"].conflict for node in nodes)

    run(story, seed)


@pytest.mark.parametrize("seed", range(5))
def test_makers_that_only_meet_through_others_end_up_in_one_pool(seed: int) -> None:
    """a - b - c - d - e: a, c and e make it, nobody has used it; then the links form."""

    async def story() -> None:
        async with AsyncExitStack() as stack:
            nodes = [await stack.enter_async_context(Node(name, state=None)) for name in "abcde"]
            for node in nodes[::2]:
                docks(node)
            for one, other in itertools.pairwise(nodes):
                one.connect(other.address)
            await eventually(lambda: len({identity(node) for node in nodes}) == 1)
            async with docks(nodes[0]).acquire(3, timeout=LIMIT):
                pass
            async with docks(nodes[4]).acquire(3, timeout=LIMIT):
                pass
            assert not any(node._local.pools["docks"].conflict for node in nodes)

    run(story, seed)


def test_of_two_pools_that_were_both_used_one_goes_on_without_a_storm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Holders in the other lose what they have; its node joins the first when it is told to."""
    sent: list[str] = []
    send = Mesh.send

    def counted(mesh: Mesh, peer: str, content: Content, *more: Any) -> None:
        sent.append(content.kind)
        send(mesh, peer, content, *more)

    monkeypatch.setattr(Mesh, "send", counted)

    async def story() -> None:
        with logged() as lines:
            async with (
                Node("a", state=None) as a,
                Node("b", state=None) as b,
                Node("c", peers=[a.address], state=None, min_links=0) as c,
                Node("d", peers=[b.address], state=None, min_links=0) as d,
            ):
                for node in (a, b):
                    docks(node)
                grants = {
                    node: [await docks(one).acquire(1, timeout=LIMIT) for one in (node, guest)]
                    for node, guest in ((a, c), (b, d))
                }
                guests = {a: c, b: d}
                await a_while(3 * LEASE)  # until the words of guests count
                stays, goes = sorted((a, b), key=identity)
                for permits in (4, 5, 3):  # more epochs, so that its fences are higher
                    await docks(goes, None).set_permits(permits, timeout=LIMIT)
                intruder = await docks(goes, None).acquire(1, timeout=LIMIT)
                a.connect(b.address)
                await eventually(
                    lambda: a._local.pools["docks"].conflict and b._local.pools["docks"].conflict
                )
                await eventually(lambda: all(grant.lost for grant in grants[goes]))
                await a_while(20.0)
                async with docks(stays).acquire(1, timeout=LIMIT) as grant:
                    assert (grant.fence or 0) > (intruder.fence or 0)  # a resource takes it
                assert [grant.lost for grant in grants[stays]] == [False, False], stays.name
                assert sent.count("configuration") < 20, sent
                text = goes.status()["pools"]["docks"]["conflict"]
                assert "Two separate pools have the same name, docks" in text
                join = f"run 'meshlock pool join docks --from {stays.name}'"
                assert text.endswith(f" This one has stopped: {join} here.")
                assert unready(goes.status()["pools"]["docks"]) == text
                said = stays.status()["pools"]["docks"]
                assert said["conflict"].endswith(f" This one goes on: {join} at {goes.name}.")
                assert unready(said) == ""  # it was served
                with pytest.raises(Refused, match="Two separate pools"):
                    await docks(goes).acquire()
                with pytest.raises(Refused, match="x is no neighbour in another pool docks"):
                    await goes._local.pools["docks"].participation.join("x")
                assert await goes._local.pools["docks"].participation.join(stays.name) == 3
                for grant in grants[stays]:
                    grant.release()
                await eventually(lambda: len({identity(node) for node in (a, b, c, d)}) == 1)
                for node in (goes, guests[goes], stays):
                    async with node.pool("docks").acquire(3, timeout=LIMIT):
                        pass
        assert len([line for line in lines if "pool stopped" in line]) == 1, lines

    run(story)


def test_a_single_maker_gives_way_to_three_members() -> None:
    """Whatever their identities are."""

    async def story() -> None:
        async with mesh("abc", state=None) as nodes, Node("d", state=None) as d:
            await eventually(lambda: len(members(nodes["a"])) == 3)
            held = await docks(nodes["b"]).acquire(2, timeout=LIMIT)
            lost = await docks(d).acquire(3, timeout=LIMIT)
            ours = d._local.pools["docks"]
            d.connect(nodes["a"].address)
            assert await lost.wait_lost()
            await a_while(5.0)
            assert not held.lost
            assert await ours.participation.join("a") == 3

    for seed in range(4):
        run(story, seed)


@pytest.mark.skipif(
    not str(adapter.__file__).endswith(".py"), reason="replaces a method that is compiled"
)
def test_messages_of_another_pool_of_that_name_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receive, frames, read = Adapter.receive, list[Any](), list[Any]()

    def receiving(pool: Adapter, sender: str, frame: Any) -> None:
        if pool.me == "a":
            frames.append(frame)
        receive(pool, sender, frame)

    async def story() -> None:
        async with Node("a", state=None) as a, Node("b", peers=[a.address], state=None) as b:
            pool = docks(a)
            (await docks(b).acquire(3)).release()
            await eventually(lambda: any(frame.kind == "ACCEPTED" for frame in frames))
            frame = next(frame for frame in frames if frame.kind == "ACCEPTED")
            monkeypatch.setattr(Adapter, "deliver", lambda *given: read.append(given))
            pool._source.adapter.receive("b", replace(frame, identity=frame.identity + 1))
            assert not read
            pool._source.adapter.receive("b", frame)
            assert read
            monkeypatch.undo()

    monkeypatch.setattr(Adapter, "receive", receiving)
    run(story)


def test_joining_needs_no_permits_but_they_must_agree() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            docks(a)
            async with docks(b, None).acquire(3, timeout=LIMIT):
                pass
            with pytest.raises(Refused, match="has 3 permits, not 4: its founder a decided"):
                await docks(b, 4).acquire(timeout=LIMIT)

    run(story)


@pytest.mark.parametrize("said", [3, 4, 5])
def test_what_was_said_when_it_was_made_counts_no_more_once_it_is_changed(said: int) -> None:
    async def story() -> None:
        async with Node("a") as a:
            assert await docks(a).set_permits(5, timeout=LIMIT) == 5
            async with (
                Node("b", peers=[a.address]) as b,
                docks(b, said).acquire(5, timeout=LIMIT),
            ):
                assert b.status()["pools"]["docks"]["conflict"] == ""

    run(story)


def test_a_disagreement_is_shown() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            docks(a)
            with pytest.raises(Refused, match="has 3 permits, not 4"):
                await docks(b, 4).acquire(timeout=LIMIT)
            told = b.status()["pools"]["docks"]["conflict"]
            assert told.startswith("Pool docks has 3 permits, not 4: its founder a decided.")

    run(story)


# -- members that choose themselves -------------------------------------------------------------

QUICK = {"promote_after": 1.0, "replace_after": 3.0}


def members(node: Node) -> list[str]:
    found: list[str] = node.status()["pools"]["docks"].get("members", [])
    return found


@asynccontextmanager
async def mesh(names: str, **settings: Any) -> AsyncIterator[dict[str, Node]]:
    """The first makes the pool; everybody is linked to it."""
    async with AsyncExitStack() as stack:
        nodes: dict[str, Node] = {}
        for name in names:
            peers = [node.address for node in nodes.values()]
            node = Node(name, peers=peers, dead=LEASE / 2, **settings)
            nodes[name] = await stack.enter_async_context(node)
            docks(node, **QUICK)
        yield nodes


def test_nodes_that_stay_become_members_by_twos() -> None:
    async def story() -> None:
        async with mesh("ab") as nodes:
            await a_while(10.0)
            assert members(nodes["b"]) == ["a"]  # two would survive no more than one
            told = nodes["b"].status()["pools"]["docks"]["recovery"]
            assert told.startswith("one member (a): the pool stops while it is down")
        async with mesh("abcd") as nodes:
            await eventually(lambda: len(members(nodes["d"])) == 3)
            await a_while(10.0)
            assert all(len(members(node)) == 3 for node in nodes.values())
            told = nodes["d"].status()["pools"]["docks"]["recovery"]
            assert told == "1 of the 3 members may crash at a time"
        async with mesh("abcdefg") as nodes:
            await eventually(lambda: len(members(nodes["g"])) == 5)
            await a_while(10.0)
            assert all(len(members(node)) == 5 for node in nodes.values())

    run(story)


def test_who_is_not_willing_is_no_member() -> None:
    async def story() -> None:
        async with mesh("abcd") as nodes, Node("e", peers=[nodes["a"].address], member=False) as e:
            docks(e)
            await eventually(lambda: len(members(nodes["a"])) == 3)
            await nodes["d"].close()
            await nodes["c"].close()
            await a_while(20.0)
            assert "e" not in members(nodes["a"])

    run(story)


def test_a_member_that_stays_away_is_replaced_if_somebody_is_there() -> None:
    async def story() -> None:
        async with mesh("abcd") as nodes:
            await eventually(lambda: len(members(nodes["a"])) == 3)
            [spare] = [name for name in nodes if name not in members(nodes["a"])]
            [killed] = [name for name in members(nodes["a"]) if name != "a"][:1]
            await nodes[killed]._local.vanish()
            await eventually(lambda: spare in members(nodes["a"]) and len(members(nodes["a"])) == 3)
            assert killed not in members(nodes["a"])
            again = next(name for name in members(nodes["a"]) if name != "a")
            await nodes[again]._local.vanish()
            await a_while(20.0)
            assert again in members(nodes["a"])  # there is nobody for its place
            left = [node for name, node in nodes.items() if name not in (killed, again)]
            for node in left:
                async with docks(node).acquire(3, timeout=LIMIT):
                    pass

    run(story)


def test_requests_that_are_made_again_take_turns_where_an_algorithm_serves_one() -> None:
    async def story(_: virtual.Network) -> None:
        async with Node("a", state=None) as a:
            docks = a.pool("docks", permits=1, algorithm="reverse-link", recovery="none")
            held = await docks.acquire()
            asks = [asyncio.ensure_future(docks.acquire()) for _ in range(3)]
            await a_while(0.1)
            source = docks._source
            other = under_another_identity(source.adapter.configuration)
            source.participation.adopt(other, founding=True)
            assert held.lost
            for ask in asks:
                grant = await asyncio.wait_for(ask, LIMIT)
                assert [one.done() for one in asks].count(True) == asks.index(ask) + 1
                grant.release()

    virtual.run(story)
