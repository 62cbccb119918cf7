"""Nodes that were told one neighbour, the same for all, link to others by themselves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import networkx
import pytest
import virtual
from hypothesis import given
from hypothesis import strategies as st
from strangers import Stranger
from three_agents import NAMES, PERMITS, Agents, Client
from virtual import Network

import meshlock
from meshlock import Node
from meshlock.errors import Refused
from meshlock.live.links import reach
from meshlock.live.links.frames import LinksFrame
from meshlock.live.links.link_map import only_ways
from waiting import LIMIT, a_while, eventually, run, sooner_or_later


@asynccontextmanager
async def wheel(count: int, **settings: Any) -> AsyncIterator[list[Node]]:
    """All name the first."""
    nodes: list[Node] = []
    for number in range(count):
        peers = [nodes[0].address] if nodes else []
        nodes.append(Node(f"n{number}", peers=peers, state=None, **settings))
        await nodes[-1].start()
        nodes[-1].pool("docks", permits=3)
    yield nodes
    for node in nodes:
        await node._local.vanish()


async def kill(network: Network, node: Node) -> None:
    network.kill(node._local.mesh)
    await node._local.vanish()


def degrees(nodes: Iterable[Node]) -> list[int]:
    return [len(node._local.mesh.linked) for node in nodes]


def connected(nodes: list[Node]) -> bool:
    names = {node.name for node in nodes}
    return all(names <= set(node._local.mesh.link_map.ways) for node in nodes)


def members(node: Node) -> list[str]:
    return list(node.status()["pools"]["docks"]["members"])


def parting(node: Node) -> list[str]:
    return [name for name, known in node.status()["map"].items() if known["only_way"]]


async def within(seconds: float, true: Callable[[], object]) -> None:
    took = await eventually(true)
    assert took < seconds, f"after {took:.2f} s"


def test_whoever_has_its_links_looks_again_only_when_something_changes() -> None:
    async def story(network: Network) -> None:
        async with wheel(4) as nodes:
            await within(5.0, lambda: min(degrees(nodes)) >= 3)
            node = nodes[3]._local.mesh.reach
            await eventually(lambda: all(len(members(one)) == 3 for one in nodes))
            await eventually(lambda: node.reviewed[1] == nodes[3]._local.mesh.owner.friends())
            await within(60.0, lambda: all(one._local.mesh.reach.content for one in nodes))
            again: list[object] = []
            node.wanted = lambda friends: iter(again.append(friends) or ())  # type: ignore[method-assign, func-returns-value]
            await a_while(10.0)
            assert again == []
            trying = asyncio.get_running_loop().create_task(asyncio.Event().wait())
            node.dialling["n9"], node.content = trying, False  # who may yet refuse us
            node.review()
            assert len(again) == 1 and not node.content
            del node.dialling["n9"]
            node.review()
            assert len(again) == 2 and node.content
            await kill(network, nodes[0])
            await within(5.0, lambda: len(again) > 2)

    virtual.run(story)


@pytest.mark.parametrize("seed", range(3))
def test_the_death_of_the_node_that_all_name_parts_nobody(seed: int) -> None:
    async def story(network: Network) -> None:
        async with wheel(12) as nodes:
            await within(5.0, lambda: min(degrees(nodes)) >= 3)
            await within(1.0, lambda: parting(nodes[4]) == [])
            await a_while(60.0)
            assert sum(degrees(nodes[1:])) / 11 < 5
            await kill(network, nodes[0])
            rest = nodes[1:]
            await a_while(1.0)
            assert connected(rest)
            async with rest[5].pool("docks").acquire(3, timeout=LIMIT):
                await within(5.0, lambda: min(degrees(rest)) >= 3)

    virtual.run(story, seed=seed)


def test_with_peers_only_it_parts_all_and_status_warns_of_it() -> None:
    async def story(network: Network) -> None:
        async with wheel(4, min_links=0) as nodes:
            await a_while(20.0)
            assert degrees(nodes) == [3, 1, 1, 1]
            assert parting(nodes[2]) == ["n0"]
            await kill(network, nodes[0])
            await a_while(1.0)
            assert degrees(nodes[1:]) == [0, 0, 0]

    virtual.run(story)


def test_whoever_is_alone_after_all_failed_at_once_finds_the_others() -> None:
    async def story(network: Network) -> None:
        async with wheel(6) as nodes:
            await within(5.0, lambda: min(degrees(nodes)) >= 3)
            await a_while(2.0)
            wires = [network.wires[int(node.address.rpartition(":")[2])] for node in nodes]
            for wire in wires:
                wire.cut()
            await within(5.0, lambda: max(degrees(nodes)) == 0)
            await kill(network, nodes[0])
            for wire in wires:
                wire.heal()
            await within(20.0, lambda: connected(nodes[1:]))

    virtual.run(story)


def test_members_are_linked_to_each_other() -> None:
    async def story(network: Network) -> None:
        async with wheel(20) as nodes:
            pool = nodes[7]._local.pools["docks"]
            await eventually(lambda: len(pool.describe().get("members", [])) == 5)
            await a_while(5.0)
            members = set(pool.describe()["members"])
            for node in nodes:
                if node.name in members:
                    assert members - {node.name} <= node._local.mesh.linked

    virtual.run(story)


def test_who_leaves_is_not_dialled_again() -> None:
    async def story(network: Network) -> None:
        async with wheel(6) as nodes:
            await within(5.0, lambda: min(degrees(nodes)) >= 3)
            leaving = nodes.pop(3)
            await leaving.close()
            assert connected(nodes)
            await within(1.0, lambda: nodes[1].status()["map"]["n3"]["left"])
            await a_while(60.0)
            assert not any("n3" in node._local.mesh.reach.known for node in nodes)

    virtual.run(story)


def test_who_listens_nowhere_dials_others_itself() -> None:
    async def story(network: Network) -> None:
        async with wheel(5) as nodes, Node("leaf", listen=None, peers=[nodes[0].address]) as leaf:
            await within(5.0, lambda: len(leaf._local.mesh.linked) >= 3)
            assert nodes[0]._local.mesh.link_map.records["leaf"].addresses == ()

    virtual.run(story)


def test_a_node_that_restarts_finds_the_others_though_its_only_peer_is_gone(tmp_path: Path) -> None:
    async def story(network: Network) -> None:
        async with wheel(3) as nodes:
            last = Node("last", peers=[nodes[0].address], state=tmp_path)
            await last.start()
            await eventually(lambda: (tmp_path / "addresses.json").exists())
            await a_while(15.0)
            await kill(network, last)
            await kill(network, nodes[0])
            async with Node("last", peers=[nodes[0].address], state=tmp_path) as again:
                await within(5.0, lambda: again._local.mesh.linked >= {"n1", "n2"})

    virtual.run(story)


def test_what_was_remembered_may_be_broken(tmp_path: Path) -> None:
    (tmp_path / "addresses.json").write_text('{"a": 3')

    async def story(network: Network) -> None:
        async with Node("a", state=tmp_path) as a:
            await a_while(3.0)
            assert a._local.mesh.reach.known == {}

    virtual.run(story)


def test_nobody_can_make_a_node_dial_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """A liar tells of many nodes, all of which can be reached, it says, and listen."""
    dialled: list[tuple[str, int]] = []

    async def story() -> None:
        async with Node("a", dead=LIMIT, state=None) as a:

            async def connect(host: str, port: int) -> Any:
                dialled.append((host, port))
                raise OSError("nobody is there")

            monkeypatch.setattr(a._local.mesh.dialler, "connect", connect)
            liar = await Stranger.dial(a, a._local.mesh.security)
            await liar.joins("x")
            ghosts = [f"ghost{number}" for number in range(500)]
            liar.says(LinksFrame("x", 7, 1, ("a", *ghosts)))
            for name in ghosts:
                liar.says(
                    LinksFrame(name, 7, 1, ("x",), ("127.0.0.1:9", "127.0.0.1:99999", "[::1]:9"))
                )
            began = asyncio.get_running_loop().time()
            await eventually(lambda: len(dialled) >= 8)
            took = asyncio.get_running_loop().time() - began
            assert len(dialled) <= reach.PER_SECOND * (took + 2)

    run(story)


def test_where_a_node_listens_is_what_its_neighbours_see() -> None:
    async def story() -> None:
        secret = "a secret of enough letters"
        async with (
            Node("a", listen="0.0.0.0:0", secret=secret, state=None) as a,
            Node("b", peers=[a.address.replace("0.0.0.0", "127.0.0.1")], secret=secret) as b,
            Node("c", peers=b._local.peers, secret=secret, advertise="robots.example") as c,
        ):
            port = a.address.rpartition(":")[2]
            records = c._local.mesh.link_map.records
            await eventually(lambda: records.keys() >= {"a", "b", "c"} and records["b"].peers)
            await eventually(lambda: records["a"].addresses == (f"127.0.0.1:{port}",))
            assert records["b"].addresses == (b.address,)
            assert records["c"].addresses == (f"robots.example:{c.address.rpartition(':')[2]}",)

    pytest.importorskip("cryptography")
    run(story)


@pytest.mark.parametrize("text", ["", "a b", "host:99999", "[::1", "x" * 300])
def test_what_is_advertised_is_an_address(text: str) -> None:
    with pytest.raises(Refused, match="advertise"):
        Node("a", advertise=text)


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))
def test_the_only_ways_are_the_articulation_points(pairs: set[tuple[int, int]]) -> None:
    graph = networkx.Graph([(one, other) for one, other in pairs if one != other])
    graph.add_node(0)
    links = {str(one): frozenset(map(str, graph[one])) for one in graph}
    reached = graph.subgraph(networkx.node_connected_component(graph, 0))
    assert only_ways(links, "0") == set(map(str, networkx.articulation_points(reached)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="agents have Unix sockets")
def test_real_agents_that_all_name_the_first_go_on_when_it_is_killed(tmp_path: Path) -> None:
    agents = Agents(tmp_path)
    first, *others = NAMES
    try:
        for name in NAMES:
            agents.start(name, (first,))
        sooner_or_later(lambda: all(len(agents.members(name)) == 3 for name in NAMES))
        with meshlock.connect(agents.socket(first)) as doomed:
            doomed.pool("docks").acquire(PERMITS, timeout=LIMIT)
            agents.kill(first)
        for name in others:
            with meshlock.connect(agents.socket(name)) as agent:
                agent.pool("docks").acquire(PERMITS, timeout=LIMIT).release()
                assert not agent.status()["map"][name]["only_way"]
        agents.kill(others[1])
        agents.start(others[1], (first,))  # nobody whom it names is there
        client = Client(agents, others[1])
        client.start()
        sooner_or_later(lambda: client.entries > 0)
        client.over = True
        client.join(LIMIT)
    finally:
        for name in list(agents.processes):
            agents.kill(name)
