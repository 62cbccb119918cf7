"""Messages to nodes without a link: best effort, or exactly once and in order whatever is cut."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
import virtual
from lines import line
from strangers import content

from meshlock import Node
from meshlock.live.links.frames import Carry, Content, RoutedFrame
from meshlock.live.links.session import MOST_BYTES
from waiting import a_while, eventually


class Inbox:
    """Stands in for a pool."""

    def __init__(self, node: Node, name: str = "inbox") -> None:
        self.frames: list[tuple[str, Carry | RoutedFrame]] = []
        node._local.mesh.receivers[name] = self

    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None:
        self.frames.append((sender, frame))

    def heard(self, sender: str) -> list[int]:
        return [
            msgspec.msgpack.decode(frame.payload)[0] for who, frame in self.frames if who == sender
        ]


def numbered(number: int) -> Content:
    return content("NUMBER", (number,), pool="inbox")


def test_best_effort_goes_along_the_map_and_is_not_kept() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network) as (nodes, wires):
            inbox = Inbox(nodes["d"])
            router = nodes["a"]._local.mesh.router
            await eventually(lambda: nodes["a"]._local.mesh.link_map.reaches("d"))
            sealed = Content("inbox", 7, "ANYTHING", b"\xc1 not for those in between")
            router.send("d", sealed)
            nodes["a"]._local.mesh.flush()
            await eventually(lambda: len(inbox.frames) > 0)
            [(sender, frame)] = inbox.frames
            assert sender == "a"
            assert (frame.identity, frame.kind, frame.payload) == tuple(sealed)[1:4]
            wires[2].cut()
            await eventually(lambda: not nodes["a"]._local.mesh.link_map.reaches("d"))
            router.send("d", numbered(1))
            assert not nodes["a"]._local.mesh.sessions["b"].custody
            assert "d" not in nodes["a"]._local.mesh.sessions

    virtual.run(story)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_reliable_messages_arrive_once_and_in_order_whatever_is_cut(seed: int) -> None:
    """Between nodes that are neighbours at times, and at times three links apart."""

    async def story(network: virtual.Network) -> None:
        chance = Random(seed)
        async with line(network) as (nodes, wires):
            back = network.wire(nodes["a"].address)
            back.cut()
            nodes["d"].connect(back.address)  # a ring, when that link is whole
            ways = [*wires, back]
            boxes = {name: Inbox(node) for name, node in nodes.items()}
            pairs = [("a", "d"), ("d", "a"), ("a", "c"), ("b", "d")]
            for number in range(1, 61):
                for sender, target in pairs:
                    nodes[sender]._local.mesh.send(target, numbered(number), custody=True)
                    nodes[sender]._local.mesh.flush()
                if number % 6 == 0:
                    wire = chance.choice(ways)
                    chance.choice([wire.cut, wire.heal, wire.reset])()
                await a_while(chance.choice([0.0, 0.02, 0.1]))
            for wire in ways:
                wire.heal()
            want = list(range(1, 61))
            for sender, target in pairs:
                await eventually(lambda s=sender, t=target: len(boxes[t].heard(s)) >= 60)  # type: ignore[misc]
                assert boxes[target].heard(sender) == want
            await eventually(
                lambda: not any(waits(nodes[sender], target) for sender, target in pairs)
            )

    virtual.run(story, seed)


def waits(node: Node, target: str) -> int:
    return len(node._local.mesh.sessions[target].custody)


def test_what_waits_for_a_way_is_bounded_in_bytes() -> None:
    async def story(_: virtual.Network) -> None:
        async with Node("a") as a:
            mesh = a._local.mesh
            for _ in range(200):
                mesh.send("nobody", Content("inbox", 0, "LONG", b"x" * 200_000), custody=True)
            assert mesh.sessions["nobody"].waiting_bytes < MOST_BYTES + 300_000
            assert mesh.refusals.total > 0
            assert a.status()["links"] == {}

    virtual.run(story)


def test_custody_ends_with_the_process_that_it_was_for() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network, "abc") as (nodes, wires):
            mesh = nodes["a"]._local.mesh
            first = Inbox(nodes["c"])
            mesh.send("c", numbered(1), custody=True)
            mesh.flush()
            await eventually(lambda: first.heard("a") == [1] and not waits(nodes["a"], "c"))
            await nodes["c"]._local.vanish()
            await eventually(lambda: not mesh.link_map.reaches("c"))
            mesh.send("c", numbered(2), custody=True)
            async with Node("c", peers=[wires[1].address], min_links=0) as again:
                second = Inbox(again)
                await eventually(lambda: mesh.in_doubt == 1)  # 2 was for the one before
                mesh.send("c", numbered(3), custody=True)
                mesh.flush()
                await eventually(lambda: second.heard("a") == [3])

    virtual.run(story)


def test_the_age_of_a_message_counts_every_link() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network, "abc") as (nodes, wires):
            inbox = Inbox(nodes["c"])
            mesh = nodes["a"]._local.mesh
            for wire in wires:
                wire.delay = 0.1
            await eventually(lambda: mesh.link_map.reaches("c"))
            since = mesh.clock()
            mesh.router.send("c", numbered(1)._replace(since=since))
            mesh.flush()
            await eventually(lambda: len(inbox.frames) > 0)
            unknown = inbox.frames.pop()[1].stamp  # but now it has been asked for its clock
            assert unknown is not None and nodes["c"]._local.mesh.age(unknown) > 10**15
            await eventually(lambda: mesh.router.knows_clock("c"))
            since = mesh.clock()
            mesh.router.send("c", numbered(1)._replace(since=since))
            mesh.flush()
            await eventually(lambda: len(inbox.frames) > 0)
            frame = inbox.frames[0][1]
            assert frame.stamp is not None
            age, true = (
                nodes["c"]._local.mesh.age(frame.stamp),
                nodes["c"]._local.mesh.clock() - since,
            )
            assert 200_000_000 <= true <= age < 2_000_000_000

    virtual.run(story)
