"""Pools are changed at any node; a node that is no member asks one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import virtual
from virtual import Network

from meshlock import Node, Refused
from meshlock.live.links.frames import BadFrame, encode
from meshlock.live.pools import change_requests
from meshlock.live.pools.change_requests import CHANGE, CHANGED, Answer, ChangeRequest
from meshlock.live.pools.grants import Pool
from waiting import a_while, eventually

NAMES = ["a", "b", "c"]


@asynccontextmanager
async def four() -> AsyncIterator[list[Node]]:
    """a, b and c are members; d is linked to a only."""
    nodes: list[Node] = []
    for name in [*NAMES, "d"]:
        peers = [node.address for node in nodes][: 1 if name == "d" else None]
        nodes.append(Node(name, peers=peers, state=None, min_links=3 if name != "d" else 1))
        await nodes[-1].start()
        nodes[-1].pool("gpus", ["g0", "g1"], members=NAMES, lease=1.0)
    await eventually(lambda: all(node.status()["pools"]["gpus"]["epoch"] for node in nodes))
    yield nodes
    for node in nodes:
        await node._local.vanish()


def test_who_is_no_member_changes_a_pool_all_the_same() -> None:
    async def story(_: Network) -> None:
        async with four() as nodes:
            pool = nodes[3]._local.pools["gpus"]
            assert await Pool(pool).set_permits(1, timeout=60) == 1
            assert pool.permits == 1
            assert await Pool(pool).set_permits(["g1", "g2"], timeout=60) == 2
            assert (await Pool(pool).acquire(2, timeout=60)).slots == ("g1", "g2")
            assert await Pool(pool).change_members(remove="b", timeout=60) == ["a", "c"]
            assert await Pool(pool).change_members(add="d", timeout=60) == ["a", "c", "d"]
            with pytest.raises(Refused, match="nobody is not on the link map"):
                await Pool(pool).change_members(add="nobody", timeout=60)

    virtual.run(story)


def test_what_a_member_says_against_it_is_told() -> None:
    async def story(_: Network) -> None:
        async with four() as nodes:
            pool, member = nodes[3]._local.pools["gpus"], nodes[0]._local.pools["gpus"]

            async def refuses(*_: object, **__: object) -> int:
                raise Refused("The disk of a is full.")

            member.change_requests.resize = refuses  # type: ignore[method-assign]
            for other in nodes[1:3]:
                await other._local.vanish()
            await eventually(lambda: not nodes[3]._local.mesh.link_map.reaches("b"))
            with pytest.raises(Refused, match="The disk of a is full"):
                await Pool(pool).set_permits(1, timeout=60)
            with pytest.raises(TimeoutError):
                await Pool(pool).change_members(remove="b", timeout=3)  # there is no quorum
            await nodes[0]._local.vanish()
            await eventually(lambda: not nodes[3]._local.mesh.link_map.reaches("a"))
            with pytest.raises(Refused, match="No member of gpus is reachable"):
                await Pool(pool).set_permits(1, timeout=60)

    virtual.run(story)


def test_another_member_is_asked_if_the_first_fails_or_is_none_any_more() -> None:
    async def story(network: Network) -> None:
        async with four() as nodes:
            pool = nodes[3]._local.pools["gpus"]
            nodes[0]._local.pools["gpus"].change_requests.begin = lambda *_: None  # type: ignore[method-assign]
            change = asyncio.ensure_future(Pool(pool).set_permits(1, timeout=60))
            await a_while(2.5)
            assert not change.done()
            network.kill(nodes[0]._local.mesh)
            await nodes[0]._local.vanish()
            assert await change == 1
            said: list[str] = []
            nodes[1]._local.pools["gpus"].change_requests.begin = lambda sender, wish: (  # type: ignore[method-assign]
                said.append(sender),
                nodes[1]
                ._local.pools["gpus"]
                .change_requests.answer(sender, Answer(wish.question, "no", True)),
            )[0]
            assert await Pool(pool).set_permits(2, timeout=60) == 2
            assert said == ["d"]

    virtual.run(story)


@pytest.mark.parametrize("seconds", [0.1, 0.3])
@pytest.mark.parametrize("asked", [0, 3])
def test_what_did_not_change_in_time_changes_later_only_if_that_is_said(
    asked: int, seconds: float
) -> None:
    """Links are slow: after 0.1 s a's proposal waits for reports, after 0.3 s its ledger is on the
    way to the others. d, which is no member, cannot know."""

    async def story(network: Network) -> None:
        async with four() as nodes:
            for wire in network.wires.values():
                wire.delay = 0.1
            await a_while(2.0)
            pool = nodes[asked]._local.pools["gpus"]
            with pytest.raises(TimeoutError) as late:
                await Pool(pool).set_permits(1, timeout=seconds)
            said = str(late.value)
            assert said.startswith(f"The pool gpus did not change within {seconds:g} s")
            may = (asked, seconds) != (0, 0.1)
            assert said.endswith(change_requests.MAY_STILL) == may, said
            await a_while(20.0)
            assert [node._local.pools["gpus"].permits for node in nodes] == [1 if may else 2] * 4

    virtual.run(story, seed=1)


def test_wrong_and_late_answers_change_nothing() -> None:
    async def story(_: Network) -> None:
        async with four() as nodes:
            own = nodes[3]._local.pools["gpus"].change_requests
            done = encode(Answer(1, "", False))
            own.told("a", done)  # nobody asked
            future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
            own.questions.asked[1] = ("a", future)
            own.told("b", done)  # somebody else was asked
            assert not future.done()
            own.told("a", done)
            own.told("a", encode(Answer(1, "No.", False)))  # too late
            assert future.result().why == ""
            words = nodes[3]._local.pools["gpus"].participation.within_pool
            for kind, payload in ((CHANGE, b"\x93\x01"), (CHANGED, b"\x01"), (CHANGE, done)):
                with pytest.raises(BadFrame, match="with wrong fields"):
                    words[kind]("a", payload)

    virtual.run(story)


def test_a_wish_that_comes_late_undoes_nothing() -> None:
    async def story(_: Network) -> None:
        async with four() as nodes:
            pool, member = nodes[3]._local.pools["gpus"], nodes[0]._local.pools["gpus"]
            heard: list[tuple[str, ChangeRequest]] = []
            begin = member.change_requests.begin
            member.change_requests.begin = lambda *said: (  # type: ignore[method-assign]
                heard.append(said),
                begin(*said),
            )[1]
            assert await Pool(pool).set_permits(1, timeout=60) == 1
            assert await Pool(pool).set_permits(2, timeout=60) == 2
            begin(*heard[0])  # it was doubled, and held up
            await a_while(10.0)
            assert pool.permits == member.permits == 2

    virtual.run(story)


def test_a_member_works_on_few_wishes_at_once_and_not_for_ever() -> None:
    async def story(_: Network) -> None:
        async with four() as nodes:
            for other in nodes[1:3]:
                await other._local.vanish()  # nothing can change any more
            member = nodes[0]._local.pools["gpus"].change_requests
            for question in range(20):
                member.begin("d", ChangeRequest(question, member.epoch(), "", "", 1))
            await a_while(0.1)
            assert len(member.working) <= change_requests.MOST_REQUESTS
            await eventually(lambda: not member.working)

    virtual.run(story)
