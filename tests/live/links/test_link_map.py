"""Every node knows the map, and how long a message can have been under way."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack

import msgspec
import pytest
import virtual
from lines import line
from strangers import Stranger, content, lines

from meshlock import Node
from meshlock.live.links import link_map as link_maps
from meshlock.live.links import session
from meshlock.live.links.frames import Beat, Carry, Frame, LinksFrame
from meshlock.live.links.link import Splitter
from meshlock.live.links.link_map import LinkMap
from meshlock.live.links.mesh import NEVER, Mesh
from meshlock.live.links.security import unprotected
from meshlock.live.machine.limits import MOST_NODES
from meshlock.live.pools import pool_configuration
from waiting import LIMIT, a_while, eventually, run, run_in_real_time

DEAD = 0.5

interpreted = pytest.mark.skipif(
    not str(session.__file__).endswith(".py"), reason="looks into what is compiled"
)
LINE = {"a": {"b"}, "b": {"a", "c"}, "c": {"b", "d"}, "d": {"c"}}


def mesh_of(node: Node) -> Mesh:
    assert node._local._mesh is not None
    return node._local._mesh


def map_of(node: Node) -> LinkMap:
    return mesh_of(node).link_map


def sees(node: Node, links: dict[str, set[str]]) -> bool:
    return map_of(node).links == links


def test_a_map_that_is_drawn_change_by_change_is_the_one_drawn_at_once() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a", state=None) as node:
            drawn, chance, names = map_of(node), random.Random(7), "abcdefgh"
            for number in range(2, 300):
                name = chance.choice(names[1:])
                if chance.random() < 0.1 and name in drawn.records:
                    drawn.forget(name)
                else:
                    peers = tuple(chance.sample(names, chance.randrange(len(names))))
                    drawn.store(LinksFrame(name, 7, number, peers))
                    drawn.stale = True
                if chance.random() < 0.5:
                    says = {name: set(record.peers) for name, record in drawn.records.items()}
                    at_once = {
                        name: {peer for peer in peers if name in says.get(peer, ())}
                        for name, peers in says.items()
                    }
                    assert drawn.links == at_once

    virtual.run(story)


def test_a_line_is_known_to_all_and_so_are_its_cut_and_its_healing() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network) as (nodes, wires):
            everybody = nodes.values()
            await eventually(lambda: all(sees(node, LINE) for node in everybody))
            map_of_a = map_of(nodes["a"])
            assert [map_of_a.route(name) for name in "abcd"] == [None, "b", "b", "b"]
            assert [map_of_a.distance(name) for name in "abcd"] == [0, 1, 2, 3]
            assert map_of(nodes["c"]).route("a") == "b"
            assert map_of(nodes["c"]).route("d") == "d"
            assert map_of_a.route("nobody") is None and not map_of_a.reaches("nobody")

            wires[1].cut()  # b - c
            left = {"a": {"b"}, "b": {"a"}}
            took = await eventually(
                lambda: (
                    not any(
                        map_of(nodes[one]).reaches(other) or map_of(nodes[other]).reaches(one)
                        for one in "ab"
                        for other in "cd"
                    )
                )
            )
            assert took < DEAD + 3 * nodes["a"]._local.settings.heartbeat
            assert {name: map_of(nodes["a"]).links[name] for name in "ab"} == left
            assert map_of(nodes["d"]).reaches("c")
            lost = nodes["a"].status()["map"]["d"]
            assert (lost["links"], lost["distance"]) == (["c"], None)
            assert lost["unreachable_for"] < 1

            wires[1].heal()
            await eventually(lambda: all(sees(node, LINE) for node in everybody))
            assert all(map_of(node).reaches(name) for node in everybody for name in "abcd")

    virtual.run(story)


def test_at_rest_nothing_is_told() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network) as (nodes, _):
            await eventually(lambda: all(sees(node, LINE) for node in nodes.values()))
            await a_while(0.05)
            told: list[str] = []
            for node in nodes.values():
                map_of(node).receive = lambda peer, record: told.append(peer)  # type: ignore
            await a_while(0.5)
            assert told == []

    virtual.run(story)


@interpreted
@pytest.mark.parametrize("size", [8, 24])
def test_idle_nodes_send_heartbeats_only_however_many_they_are(size: int) -> None:
    async def story(network: virtual.Network) -> None:
        async with AsyncExitStack() as stack:
            nodes: list[Node] = []
            for number in range(size):
                peers = [node.address for node in nodes[-2:]]
                node = Node(f"n{number}", state=None, peers=peers)
                nodes.append(await stack.enter_async_context(node))
            nodes[0].pool("docks", permits=1, most_members=1)
            await eventually(lambda: all("docks" in node._local.pools for node in nodes))
            await a_while(10.0)  # links are added, and all take part
            sent = Counter[str]()
            with pytest.MonkeyPatch.context() as patch:
                feed = Splitter.feed

                def counted(splitter: Splitter, data: bytes) -> Iterator[Frame]:
                    for frame in feed(splitter, data):
                        sent[type(frame).__name__] += 1
                        yield frame

                patch.setattr(Splitter, "feed", counted)
                await a_while(3.0)
            links = sum(len(mesh_of(node).linked) for node in nodes)
            beats = 3.0 / mesh_of(nodes[0]).heartbeat
            assert sent.keys() == {"Beat"}
            assert abs(sent["Beat"] - beats * links) <= links

    virtual.run(story)


def test_the_owner_is_told_once_of_changes_that_come_together() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network) as (nodes, wires):
            await eventually(lambda: all(sees(node, LINE) for node in nodes.values()))
            pool = nodes["a"].pool("docks", permits=1)
            await a_while(0.05)
            told: list[bool] = []
            pool._source.participation.map_changed = lambda: told.append(
                map_of(nodes["a"]).reaches("d")
            )  # type: ignore
            wires[1].cut()
            await eventually(lambda: not map_of(nodes["a"]).reaches("d"))
            await a_while(0.05)
            assert told == [False]

    virtual.run(story)


class Compared(int):
    """The number of a node, which counts how often it is compared with another."""

    times = 0
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return int.__eq__(self, other)


@interpreted
def test_a_pool_compares_no_node_of_a_changed_map_with_all_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = 300

    async def story(network: virtual.Network) -> None:
        async with Node("a", state=None) as a:
            pool = a.pool("docks", permits=1)
            for number in range(nodes):
                map_of(a).receive("b", LinksFrame(f"n{number}", 7, 1, ("a",)))
            map_of(a).draw()
            map_of(a).ways = {name: (1, name) for name in map_of(a).records}  # all are reached
            with monkeypatch.context() as patch:
                number_of = pool_configuration.hashed
                patch.setattr(pool_configuration, "hashed", lambda name: Compared(number_of(name)))
                pool._source.participation.map_changed()
                assert (
                    len(pool._source.adapter.names) == nodes + 1
                    and pool._source.adapter.members is not None
                )
                assert len(pool._source.adapter.members.terms.nodes) == nodes + 1
            assert Compared.times < 10 * nodes
            pool._source.participation.map_changed()  # with numbers that can be sent

    virtual.run(story)


def test_a_record_is_not_told_to_neighbours_that_told_it_meanwhile() -> None:
    async def story(network: virtual.Network) -> None:
        async with (
            Node("a", state=None) as a,
            Node("b", state=None, peers=[a.address]) as b,
            Node("c", state=None, peers=[a.address]) as c,
            Node("d", state=None, peers=[a.address]) as d,
        ):
            await eventually(lambda: len(mesh_of(a).open) == 3)
            await eventually(lambda: map_of(a).settling is None)
            record = LinksFrame("x", 7, 1, ())
            told: list[str] = []
            for node in (b, c, d):
                name = node.name
                map_of(node).receive = lambda peer, heard, name=name: told.append(name)  # type: ignore
            map_of(a).receive("b", record)
            map_of(a).receive("c", record)
            map_of(a).apply_changes()
            await a_while(0.05)
            assert told == ["d"]

    virtual.run(story)


def test_a_neighbour_that_does_not_read_is_not_owed_what_it_has_told() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            await eventually(lambda: map_of(b).reaches("a"))
            mesh_of(a).open["b"].paused = True
            map_of(a).receive("x", LinksFrame("y", 7, 1, ()))
            map_of(a).apply_changes()
            assert map_of(a).owed == {"b": {"y"}}
            map_of(a).receive("b", LinksFrame("y", 7, 1, ()))
            assert map_of(a).owed == {"b": set()}

    virtual.run(story)


def test_a_killed_node_is_off_the_map_of_all_within_the_dead_interval() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network) as (nodes, _):
            await eventually(lambda: all(sees(node, LINE) for node in nodes.values()))
            await nodes["d"]._local.vanish()
            took = await eventually(lambda: not map_of(nodes["a"]).reaches("d"))
            assert took < DEAD + 3 * nodes["a"]._local.settings.heartbeat
            assert map_of(nodes["a"]).links["c"] == {"b"}
            assert map_of(nodes["a"]).links["d"] == set()

    virtual.run(story)


def test_one_that_says_goodbye_is_off_the_map_at_once() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network) as (nodes, _):
            await eventually(lambda: all(sees(node, LINE) for node in nodes.values()))
            await nodes["d"].close()
            assert await eventually(lambda: not map_of(nodes["a"]).reaches("d")) < 0.1

    virtual.run(story)


def test_a_node_that_restarts_elsewhere_is_believed_although_it_counts_from_one() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network) as (nodes, _):
            await eventually(lambda: all(sees(node, LINE) for node in nodes.values()))
            for number in range(5):  # a long former life
                map_of(nodes["d"]).publish(100 + number)
            await eventually(lambda: map_of(nodes["a"]).records["d"].number == 104)
            await nodes["d"]._local.vanish()
            async with Node("d", peers=[nodes["a"].address]):
                moved = {"a": {"b", "d"}, "b": {"a", "c"}, "c": {"b"}, "d": {"a"}}
                living = [nodes[name] for name in "abc"]
                await eventually(lambda: all(sees(node, moved) for node in living))
                assert map_of(nodes["c"]).records["d"].number > 104
                assert map_of(nodes["c"]).route("d") == "b"

    virtual.run(story)


def test_a_former_life_that_only_a_distant_node_remembers_is_outlived() -> None:
    """The neighbours of the restarted node have forgotten it; the far end has not."""

    async def story(network: virtual.Network) -> None:
        async with line(network, "abc") as (nodes, _):
            await eventually(lambda: map_of(nodes["c"]).reaches("a"))
            map_of(nodes["c"]).records["x"] = LinksFrame("x", 77, 500, ("y",))
            async with Node("x", peers=[nodes["a"].address]) as x:
                await eventually(lambda: map_of(nodes["c"]).distance("x") == 3)
                await eventually(lambda: map_of(x).distance("c") == 3)
                assert map_of(x).records["x"].number > 500

    virtual.run(story)


def test_a_link_counts_only_if_both_ends_say_so() -> None:
    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(LinksFrame("x", 7, 1, ("a", "y")), LinksFrame("y", 7, 1, ()))
            await eventually(lambda: map_of(a).reaches("x"))
            assert map_of(a).links == {"a": {"x"}, "x": {"a"}, "y": set()}
            stranger.says(LinksFrame("y", 7, 2, ("x",)))
            await eventually(lambda: map_of(a).distance("y") == 2)
            stranger.writer.close()

    run(story)


def test_the_gone_are_forgotten_and_the_dead_are_not_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(LinksFrame("ghost", 7, 1, ("x",)), LinksFrame("x", 7, 1, ("a",)))
            await eventually(lambda: map_of(a).reaches("x"))
            await eventually(lambda: map_of(a).settling is None)
            async with Node("b", peers=[a.address], dead=LIMIT) as b:
                await eventually(lambda: map_of(b).reaches("x"))
                assert "ghost" in map_of(a).links and "ghost" not in map_of(b).links
                monkeypatch.setattr(link_maps, "FORGET_AFTER", 0.0)
                map_of(a).tick()
                await eventually(lambda: "ghost" not in map_of(a).links)
                assert set(map_of(a).links) == {"a", "b", "x"}
            stranger.writer.close()

    run(story)


def test_one_that_was_forgotten_comes_back_without_saying_anything_new() -> None:
    """n joined while x was out of reach, and was told nothing of it; x only becomes reachable."""

    async def story() -> None:
        async with Node("a", dead=LIMIT) as a, Node("n", peers=[a.address], dead=LIMIT) as n:
            await eventually(lambda: map_of(n).reaches("a"))
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("y")
            await stranger.hears()
            stranger.says(LinksFrame("x", 7, 9, ("y",)))
            await eventually(lambda: "x" in map_of(n).links)
            map_of(n).draw()
            map_of(n).forget("x")
            stranger.says(LinksFrame("y", 7, 1, ("a", "x")))
            await eventually(lambda: map_of(n).distance("x") == 3)
            stranger.writer.close()

    run(story)


LIES: dict[str, tuple[Frame, str]] = {
    "no name": (LinksFrame("", 7, 1, ()), "matching regex"),
    "a path": (LinksFrame("../etc", 7, 1, ()), "matching regex"),
    "a newline": (LinksFrame("x\n", 7, 1, ()), "matching regex"),
    "a long name": (LinksFrame("x" * 65, 7, 1, ()), "matching regex"),
    "a bad peer": (LinksFrame("x", 7, 1, ("a", "<b>")), "matching regex"),
    "too many peers": (LinksFrame("x", 7, 1, ("a",) * (MOST_NODES + 1)), "<= 1024"),
    "a negative number": (LinksFrame("x", 7, -1, ()), ">= 0"),
    "a number without end": (LinksFrame("x", 7, 2**63, ()), "<= 4611686018427387904"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_record_that_cannot_be_costs_the_link(lie: str, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(LIES[lie][0])
            assert await stranger.gone()
            assert set(map_of(a).links) == {"a"}

    run(story)
    assert LIES[lie][1] in lines(caplog)


def test_one_with_an_impossible_name_is_never_a_neighbour(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its name in our record would cost us all our links."""

    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("<x>")
            assert await stranger.gone()

    run(story)
    assert "'<x>' is not a valid node name" in lines(caplog)


def test_invented_nodes_are_bounded_and_make_way_for_others() -> None:
    async def story() -> None:
        async with Node("a", dead=LIMIT) as a, Node("b", peers=[a.address], dead=LIMIT) as b:
            await eventually(lambda: map_of(b).reaches("a"))
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(*[LinksFrame(f"fake{n}", 7, 1, ("a",)) for n in range(2 * MOST_NODES)])
            await eventually(lambda: len(map_of(a).records) == len(map_of(b).records) == MOST_NODES)
            stranger.says(LinksFrame("x", 7, 1, ("a",)), LinksFrame("late", 7, 1, ("x",)))
            await eventually(lambda: {"x", "late"} <= map_of(b).records.keys())
            await eventually(lambda: len(map_of(a).records) == len(map_of(b).records) == MOST_NODES)
            assert map_of(a).reaches("b") and map_of(b).reaches("a")
            stranger.writer.close()

    run(story)


def test_lies_about_ourselves_are_answered_and_never_cost_us_a_link() -> None:
    async def story() -> None:
        async with Node("a", dead=LIMIT) as a, Node("b", peers=[a.address], dead=LIMIT) as b:
            await eventually(lambda: map_of(b).reaches("a"))
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(
                LinksFrame("a", 9, 1000, ("nobody",)), LinksFrame("b", 9, 1000, ("nobody",))
            )
            await eventually(lambda: map_of(a).records["b"].number == 1001)
            assert map_of(a).records["a"].number == 1001
            assert map_of(b).distance("a") == 1
            last = LinksFrame("b", 2**53 - 1, 2**62, ("nobody",))  # b cannot go higher
            stranger.says(last)
            await eventually(lambda: not map_of(a).reaches("b"))
            await a_while(0.3)
            assert "b" in mesh_of(a).linked
            stranger.writer.close()

    run(story)


def test_a_neighbour_that_does_not_read_is_owed_each_record_once() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            await eventually(lambda: map_of(b).reaches("a"))
            mesh = mesh_of(a)
            mesh.open["b"].paused = True
            for number in range(2, 50):
                map_of(a).receive("x", LinksFrame("y", 7, number, ()))
                map_of(a).apply_changes()
            assert map_of(a).owed == {"b": {"y"}}
            assert "y" not in map_of(b).links
            mesh.open["b"].paused = False
            await eventually(lambda: "y" in map_of(b).links)
            assert map_of(b).records["y"].number == 49

    virtual.run(story)


# -- how long messages travel ----------------------------------------------------------


def test_without_a_beat_the_bound_is_beyond_all_leases() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a") as a:
            assert mesh_of(a).stamp("nobody") == (NEVER, 0)
            assert mesh_of(a).travelled((NEVER, 0)) > 10**18  # thirty years

    virtual.run(story)


def test_a_bound_exists_as_soon_as_the_link_does_and_is_small() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            await eventually(lambda: mesh_of(a).stamp("b")[0] != NEVER)
            stamp = mesh_of(a).stamp("b")
            assert 0 <= mesh_of(b).travelled(stamp) < 50_000_000
            await a_while(0.3)
            assert 300_000_000 <= mesh_of(b).travelled(stamp) < 400_000_000
            assert mesh_of(b).travelled(mesh_of(a).stamp("b")) < 50_000_000

    virtual.run(story)


def test_a_slow_way_counts_there_and_back() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a") as a:
            wire = network.wire(a.address)
            wire.delay = 0.1
            b = Node("b", peers=[wire.address], min_links=0)
            await b.start()
            await eventually(lambda: mesh_of(a).stamp("b")[0] != NEVER)
            arrived: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()
            b.pool("docks")._source.adapter.receive = lambda peer, frame: arrived.set_result(  # type: ignore
                (mesh_of(b).age(frame.stamp), mesh_of(b).clock())
            )
            began = mesh_of(a).clock()
            mesh_of(a).send("b", content("STAMPED")._replace(since=began))
            mesh_of(a).flush()
            bound, ended = await arrived
            assert ended - began >= 100_000_000
            assert ended - began + 100_000_000 <= bound < 1_000_000_000
            await b.close()

    virtual.run(story)


def test_a_message_that_a_cut_held_up_and_a_new_connection_brought_is_as_old_as_it_is() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a", dead=5.0) as a:
            wire = network.wire(a.address)
            b = Node("b", peers=[wire.address], dead=5.0, min_links=0)
            await b.start()
            await eventually(lambda: mesh_of(a).stamp("b")[0] != NEVER)
            arrived: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            b.pool("docks")._source.adapter.receive = lambda peer, frame: arrived.set_result(  # type: ignore
                mesh_of(b).age(frame.stamp)
            )
            wire.cut()
            stamped = content("STAMPED")._replace(since=mesh_of(a).clock())
            mesh_of(a).send("b", stamped, custody=True)
            mesh_of(a).flush()
            await a_while(0.4)
            wire.reset()
            wire.heal()
            assert 400_000_000 <= await arrived < 1_500_000_000
            assert mesh_of(b).sessions["a"].generation == 1
            await b.close()

    virtual.run(story)


def test_the_clock_of_another_process_of_the_same_name_is_no_bound() -> None:
    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(Beat(0, 12345))
            await eventually(lambda: mesh_of(a).stamp("x")[0] == 12345)
            mesh_of(a).sessions["x"].meet(8)  # another boot
            assert mesh_of(a).stamp("x") == (NEVER, 0)
            stranger.writer.close()

    run(story)


def test_a_clock_can_be_made_to_run_fast() -> None:
    async def story(network: virtual.Network) -> None:
        async with Node("a") as a, Node("b", clock_rate=1.5) as b:
            before = mesh_of(a).clock(), mesh_of(b).clock()
            await a_while(0.1)
            true, fast = mesh_of(a).clock() - before[0], mesh_of(b).clock() - before[1]
            assert 1.45 < fast / true < 1.55

    virtual.run(story)


CHILD = """
import asyncio, sys
from msgspec.msgpack import decode, encode
from meshlock import Node
from meshlock.live.links.frames import Content

async def live():
    async with Node("b", peers=[sys.argv[1]], dead=60.0) as b:
        def measure(peer, frame):
            told, held, sent = decode(frame.payload)
            mesh = b._local.mesh
            true = mesh.clock() - sent
            answer = (mesh.travelled((told, held)), true, *mesh.stamp("a"), mesh.clock())
            mesh.send("a", Content("docks", 0, "MEASURED", encode(answer)))

        b.pool("docks")._source.adapter.receive = measure
        await asyncio.Event().wait()

asyncio.run(live())
"""


def test_whatever_stops_a_process_the_bound_holds_both_ways() -> None:
    """Both processes are on one machine, so one clock tells the true time under way."""

    async def story() -> None:
        async with Node("a", dead=60.0) as a:
            mesh = a._local.mesh
            found: list[tuple[int, int]] = []

            def measured(peer: str, frame: Carry) -> None:
                bound, there, told, held, sent = msgspec.msgpack.decode(frame.payload)
                back = mesh.clock() - sent
                found.extend([(bound, there), (mesh.travelled((told, held)), back)])

            a.pool("docks")._source.adapter.receive = measured  # type: ignore[method-assign]
            child = subprocess.Popen([sys.executable, "-c", CHILD, a.address])
            try:
                await eventually(lambda: mesh.stamp("b")[0] != NEVER)
                for number in range(150):
                    if number in (30, 80):
                        child.send_signal(signal.SIGSTOP)
                    if number in (55, 105):
                        child.send_signal(signal.SIGCONT)
                    mesh.send("b", content("STAMPED", (*mesh.stamp("b"), mesh.clock())))
                    mesh.flush()
                    await asyncio.sleep(0.01)
                await eventually(lambda: len(found) == 300)
                while sum(bound < 50_000_000 for bound, _ in found) < 50:  # else they are small
                    mesh.send("b", content("STAMPED", (*mesh.stamp("b"), mesh.clock())))
                    mesh.flush()
                    await asyncio.sleep(0.01)
            finally:
                child.kill()
                child.wait()
            assert all(bound >= true for bound, true in found)
            assert max(true for _, true in found) > 200_000_000  # a stop was on the way

    run_in_real_time(story)
