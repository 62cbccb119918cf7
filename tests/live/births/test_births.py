"""A pool is made once: on purpose, by who names nobody, or by a majority of those who are named."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import virtual
from agents import Agent, meshlock
from birth_stories import PERMITS, birth
from test_new_pools import docks, identity, logged

from meshlock import Node, NotInTime
from meshlock.errors import setting
from meshlock.live.interfaces.agent_connection import Connection
from meshlock.live.interfaces.node import LEASE
from meshlock.live.interfaces.registry import Registry
from meshlock.live.links.dialler import LAST_RETRY
from meshlock.live.pools.birth import Expected
from meshlock.live.pools.promises import default_folder
from ports import free_port
from waiting import LIMIT, a_while, eventually

ANYWHERE = "0.0.0.0:0"

HELD = 0.3
"""Seconds for which clients hold permits."""


def run(story: Callable[[virtual.Network], Awaitable[None]], seed: int = 0) -> None:
    virtual.run(story, seed=seed)


class Use:
    """What clients of all pools of a name hold together."""

    def __init__(self) -> None:
        self.held = self.most = 0

    async def work(self, node: Node, want: int = 3, times: int = 3) -> None:
        """Asks, holds, releases; stops when it is told that the lease is lost."""
        for _ in range(times):
            grant = await docks(node).acquire(want, timeout=LIMIT)
            self.held += want
            self.most = max(self.most, self.held)
            lost = asyncio.ensure_future(grant.wait_lost())
            await asyncio.wait([lost], timeout=HELD)
            lost.cancel()
            self.held -= want
            grant.release()


def ports(network: virtual.Network, number: int) -> list[int]:
    network.ports += number
    return [network.ports - place for place in range(number)]


def addresses(*numbers: int) -> list[str]:
    return [f"{virtual.HOST}:{number}" for number in numbers]


def forget(name: str) -> None:
    shutil.rmtree(default_folder(name), ignore_errors=True)


def test_who_reaches_nobody_that_it_names_grants_nothing() -> None:
    """The tutorial's lines, the second before the first."""

    async def story(network: virtual.Network) -> None:
        [port] = ports(network, 1)
        with logged(0) as lines:
            async with Node("b", peers=addresses(port)) as b:
                first = f"start with {setting('create')} if this node is the first of the pool"
                why = f"waiting for 127.0.0.1:{port} (connection refused: nothing listens there)"
                why += f"; {first}"
                with pytest.raises(NotInTime, match=re.escape(why)):
                    await docks(b).acquire(3, timeout=20)
                with pytest.raises(NotInTime, match=re.escape(why)):
                    await docks(b).acquire(3, timeout=0)
                assert why in b.status()["pools"]["docks"]["why"]
                assert len([line for line in lines if why in line]) == 1, lines
                use = Use()
                waits = asyncio.ensure_future(use.work(b))
                async with Node("a", listen=addresses(port)[0]) as a:
                    await asyncio.gather(use.work(a), waits)
                    assert use.most == 3
                    assert identity(a) == identity(b)

    run(story)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [3, 5])
def test_machines_that_start_together_make_one_pool(seed: int, count: int) -> None:
    """All name all, themselves included; links of some come seconds later."""

    async def story(network: virtual.Network) -> None:
        numbers, use = ports(network, count), Use()
        async with AsyncExitStack() as stack:
            work = []
            for number in numbers:
                wires = [network.wire(address) for address in addresses(*numbers)]
                for wire in wires:
                    if network.random.random() < 0.4 and wire.port != number:
                        wire.cut()
                        network.loop.call_later(network.random.uniform(0.1, 4.0), wire.heal)
                node = Node(
                    f"n{number}",
                    listen=f"0.0.0.0:{number}",
                    peers=[wire.address for wire in wires],
                )
                await stack.enter_async_context(node)
                work.append(asyncio.ensure_future(use.work(node)))
                await a_while(0.2)
            await asyncio.gather(*work)
        assert use.most == 3

    run(story, seed)


def test_a_majority_is_enough_and_less_is_not() -> None:
    async def story(network: virtual.Network) -> None:
        one, other, third = ports(network, 3)
        peers = addresses(one, other, third)
        async with Node("a", listen=peers[0], peers=peers) as a:
            docks(a)
            await a_while(20.0)
            assert "waiting for" in a.status()["pools"]["docks"]["why"]
            async with Node("b", listen=peers[1], peers=peers) as b:
                await Use().work(b)
                assert identity(a) == identity(b) != 0

    run(story)


def test_a_vote_is_for_one_maker_after_a_restart_too() -> None:
    """b votes for a, which makes the pool; b hears no more of it, restarts, and meets c."""

    async def story(network: virtual.Network) -> None:
        one, other, third = ports(network, 3)
        peers = addresses(one, other, third)
        to_b = network.wire(peers[1])
        async with Node("b", listen=peers[1], peers=[peers[0], peers[2]]) as b:
            a = Node("a", listen=peers[0], peers=[to_b.address, peers[2]], min_links=0)
            await a.start()
            docks(a)
            await eventually(lambda: identity(a))
            b_vote = b._local.pools["docks"].birth.election.choice
            assert b_vote == identity(a)
            await a._local.vanish()
            await b._local.vanish()
        for path in default_folder("b").glob("docks.promised"):
            path.unlink()  # it had not come so far
        async with (
            Node("b", listen=peers[1], peers=[peers[0], peers[2]]) as b,
            Node("c", listen=peers[2], peers=peers[:2]) as c,
        ):
            with pytest.raises(NotInTime, match="waiting for"):
                await docks(c).acquire(3, timeout=20)
            docks(b)
            told = b.status()["pools"]["docks"]["why"]
            assert told.startswith("waiting for a, for which this node has voted")

    run(story)


def test_who_names_nobody_waits_for_callers_where_others_can_call() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a", listen=ANYWHERE) as a:
            with pytest.raises(NotInTime, match=r"waiting for another node to link to .*create"):
                await docks(a).acquire(timeout=20)
            async with Node("b", peers=[a.address], listen=ANYWHERE) as b:
                await asyncio.gather(Use().work(b), Use().work(a))
                assert identity(a) == identity(b) != 0

    run(story)


@pytest.mark.parametrize("cut", [False, True])
def test_the_first_comes_back_without_its_disk(cut: bool) -> None:
    """It waits until somebody calls, and joins what there is."""

    async def story(network: virtual.Network) -> None:
        [port] = ports(network, 1)
        first: dict[str, Any] = {"listen": f"0.0.0.0:{port}"}
        async with AsyncExitStack() as stack:
            a = await stack.enter_async_context(Node("a", **first))
            wire = network.wire(a.address)
            others = [
                await stack.enter_async_context(Node(name, peers=[wire.address], listen=ANYWHERE))
                for name in "bc"
            ]
            for node in (a, *others):
                docks(node, promote_after=0.1)
            await eventually(lambda: len(members(others[0])) == 3)
            made = identity(a)
            await a._local.vanish()
            network.kill(a._local.mesh)
            forget("a")
            if cut:
                wire.cut()
            use = Use()
            again = await stack.enter_async_context(Node("a", **first))
            work = [asyncio.ensure_future(use.work(node)) for node in (*others, again)]
            await a_while(30.0)
            wire.heal()
            await asyncio.gather(*work)
            assert use.most == 3
            assert identity(again) == made

    run(story)


def members(node: Node) -> list[str]:
    found: list[str] = node.status()["pools"]["docks"].get("members", [])
    return found


def test_a_pool_is_made_on_purpose() -> None:
    async def story(network: virtual.Network) -> None:
        [port] = ports(network, 1)
        async with Node("a", peers=addresses(port), listen=ANYWHERE, create=True) as a:
            await Use().work(a)
            async with Node("b", peers=[a.address], create=True) as b:
                await Use().work(b)
                assert identity(a) == identity(b)

    run(story)


def test_a_candidate_that_restarts_begins_anew() -> None:
    """It had the vote of another, and had not made the pool."""

    async def story(network: virtual.Network) -> None:
        one, other = ports(network, 2)
        peers = addresses(one, other)
        b = Node("b", listen=peers[1], peers=peers)
        async with Node("a", listen=peers[0], peers=peers) as a:
            election = a._local.pools.setdefault(
                "docks", a._local.registry.made("docks")
            ).birth.election
            election.founders[7], election.choice = "b", 7
            await b.start()
            docks(a)
            await eventually(lambda: a._local.mesh.linked)
            await a_while(5.0)
            assert identity(a) == 0
            b._local.mesh.receivers.pop("docks", None)
            b._local.pools.pop("docks", None)
            default_folder("b").mkdir(parents=True, exist_ok=True)
            (default_folder("b") / "docks.vote").write_text(
                '{"identity": 7, "founder": "b", "withdrawn": []}'
            )
            docks(b)
            await eventually(lambda: identity(a) == identity(b) != 0)
        await b.close()

    run(story)


def test_the_maker_may_die_six_seconds_after_two_others_have_joined() -> None:
    """The tutorial's own step, done quickly."""

    async def story(network: virtual.Network) -> None:
        loop = network.loop
        async with AsyncExitStack() as stack:
            nodes: list[Node] = []
            for name in ("north", "south", "west"):
                peers = [node.address for node in nodes[:1]]
                nodes.append(await stack.enter_async_context(Node(name, peers=peers)))
                nodes[-1].pool("docks", 3)
            await eventually(lambda: all(identity(node) for node in nodes))
            await a_while(6.0)
            assert [len(members(node)) for node in nodes] == [3, 3, 3]
            await nodes[0]._local.vanish()
            network.kill(nodes[0]._local.mesh)
            began = loop.time()
            for node in nodes[1:]:
                async with node.pool("docks", 3).acquire(3, timeout=LIMIT):
                    pass
            assert loop.time() - began < 5.0

    run(story)


def test_a_lost_quorum_says_why_peers_are_not_linked() -> None:
    async def story(network: virtual.Network) -> None:
        members = ["a", "b"]
        b = Node("b")
        await b.start()
        async with Node("a", peers=[b.address]) as a:
            for node in (a, b):
                node.pool("docks", 3, members=members)
            (await docks(a).acquire(timeout=LIMIT)).release()
            await b._local.vanish()
            network.kill(b._local.mesh)
            away = f"no link to {b.address} (connection refused: nothing listens there)"
            await eventually(lambda: away in a.status()["pools"]["docks"]["unready"])
            await a_while(2 * LEASE)
            with pytest.raises(NotInTime, match=re.escape(f"1 of 2 members reachable; {away}")):
                await docks(a).acquire(timeout=20)

    run(story)


def test_a_peer_that_has_linked_to_us_is_not_said_to_refuse() -> None:
    """It was dialled in vain while it was down."""

    async def story(network: virtual.Network) -> None:
        at = [f"{virtual.HOST}:{port}" for port in ports(network, 2)]
        b = Node("b", listen=at[1])
        await b.start()
        async with Node("a", listen=at[0], peers=[at[1]]) as a:
            await eventually(lambda: "b" in a._local.mesh.linked)
            await b._local.vanish()
            network.kill(b._local.mesh)
            await eventually(lambda: at[1] in a.status()["no_link"])
            async with Node("b", listen=None, peers=[at[0]]):
                await eventually(lambda: "b" in a._local.mesh.linked)
                await a_while(2 * LAST_RETRY)
                assert a.status()["no_link"] == {}

    run(story)


@pytest.mark.parametrize("seed", range(8))
def test_births_under_faults(seed: int, tmp_path: Path) -> None:
    """A slice of campaigns/births.py."""
    outcome = birth(seed, tmp_path)
    assert 0 < outcome.most <= PERMITS and outcome.pools == 1 and outcome.served, outcome


def test_births_notice_a_node_that_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if every node named nobody: the rule undone."""
    monkeypatch.setattr(Registry, "expected", lambda _: Expected(1))
    assert any(birth(seed, tmp_path / str(seed)).most > PERMITS for seed in range(8))


# -- real processes ------------------------------------------------------------------------------


def test_an_agent_that_waits_for_others_says_so_everywhere(tmp_path: Path) -> None:
    """Its peer has another secret, so it reaches nobody, and says why, as does its peer; then its
    pool is made on purpose."""
    for name in ("one", "other"):
        (tmp_path / name).write_text(f"{name} secret of many characters")
        (tmp_path / name).chmod(0o600)

    def start(name: str, *arguments: str) -> Agent:
        given = ["--state", str(tmp_path / f"{name}.state"), "--pool", "docks=3", *arguments]
        return Agent(tmp_path, name, *given, protected=False)

    north = start("north", "--secret-file", "one", "--listen", f"0.0.0.0:{free_port()}")
    port = north.address.rpartition(":")[2]
    south = start("south", "--secret-file", "other", "--peer", f"127.0.0.1:{port}")
    reason = "the peer has another secret or authority"
    first = "start with --create if this node is the first of the pool"
    sentence = f"waiting for 127.0.0.1:{port} ({reason}); {first}"
    assert south.logged("pool not made yet")["why"] == sentence
    done = subprocess.run(
        south.execute("--timeout", "0.2", "--", "true"), capture_output=True, text=True
    )
    assert done.returncode == 75
    assert done.stderr == f"meshlock: No permits of docks within 0.2 s: {sentence}.\n"
    waits = subprocess.Popen(south.execute("--", "true"), stderr=subprocess.PIPE, text=True)
    assert waits.stderr is not None
    assert waits.stderr.readline() == f"meshlock: docks: {sentence}\n"
    shown = meshlock("status", "--socket", south.socket).stdout
    assert sentence in shown and f"no link to 127.0.0.1:{port}: {reason}\n" in shown
    other = ["exec", "--socket", south.socket, "--pool", "other", "--timeout", "0.2", "--", "true"]
    said = "No permits of other within 0.2 s: no neighbour has announced it yet: "
    said += f"no link to 127.0.0.1:{port} ({reason})."
    assert meshlock(*other).stderr == f"meshlock: {said}\n"
    refused = f"(127.0.0.1 was refused: TLS handshake failed: {reason}); {first}"
    why = f"waiting for another node to link to {north.address} {refused}"
    assert f"docks: {why}\n" in meshlock("status", "--socket", north.socket).stdout
    status, ready = Connection(south.socket).call("GET", "/readyz")
    assert status == 503 and sentence in ready.decode()
    assert meshlock("pool", "create", "docks", "--socket", south.socket).stdout == (
        "docks: 3 permits\n"
    )
    assert waits.wait(LIMIT) == 0
    again = meshlock("pool", "create", "docks", "--socket", south.socket)
    assert again.returncode == 2 and "There is a pool docks already" in again.stderr
    new = meshlock("pool", "create", "seats", "--permits", "2", "--socket", south.socket)
    assert new.stdout == "seats: 2 permits\n", new.stderr
    for agent in (north, south):
        agent.process.terminate()
        assert agent.process.wait(LIMIT) == 0
