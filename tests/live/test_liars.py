"""Admitted nodes that lie: about themselves they can, about others they are not believed.

Real nodes with certificates, each for its own name. ``m`` is the liar: a real node whose code was
tampered with, or somebody with its certificate who writes frames by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from strangers import Stranger, content, lines

from meshlock import Node
from meshlock.live.links.frames import Carry, Content, Envelope, Links, Routed, sealed
from meshlock.live.links.security import Security, by_certificate
from waiting import LIMIT, a_while, eventually, run

pytest.importorskip("cryptography")
from meshlock.live.links.certificates import Authority
from meshlock.live.links.identity import Identity


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority.new()
    authority.save(folder / "ca")
    for name in "abcm":
        authority.issue(name).save(folder / name)
    return folder


def security(certificates: Path, name: str) -> Security:
    place = certificates / name
    return by_certificate(
        certificates / "ca.crt", place.with_suffix(".crt"), place.with_suffix(".key")
    )


class Inbox:
    """Stands in for a pool."""

    def __init__(self, node: Node) -> None:
        self.frames: list[tuple[str, Carry | Routed]] = []
        node.mesh.receivers["inbox"] = self

    def receive(self, sender: str, frame: Carry | Routed) -> None:
        self.frames.append((sender, frame))


class Liar(Stranger):
    """With the certificate of m, and a link to one node."""

    identity: Identity

    @classmethod
    async def links(cls, node: Node, certificates: Path) -> Liar:
        mine = security(certificates, "m")
        liar = await cls.dial(node, mine)
        assert isinstance(liar, Liar) and mine.identity is not None
        liar.identity = mine.identity
        await liar.joins("m")
        await liar.hears()
        liar.says(mine.identity.signed(Links("m", 7, 1, (node.name,))))
        await eventually(lambda: node.mesh.link_map.reaches("m"))
        liar.deaf = asyncio.create_task(liar.gone())
        return liar

    async def is_cut_off(self) -> None:
        await asyncio.wait_for(self.deaf, LIMIT)

    deaf: asyncio.Task[bool]


@asynccontextmanager
async def line(certificates: Path, names: str = "abc") -> AsyncIterator[dict[str, Node]]:
    """Each linked to the one before."""
    nodes: dict[str, Node] = {}
    try:
        for name in names:
            peers = [list(nodes.values())[-1].address] if nodes else []
            nodes[name] = Node(name, peers=peers, certificates=certificates, dead=LIMIT, state=None)
            await nodes[name].start()
        ends = nodes[names[0]], nodes[names[-1]]
        await eventually(lambda: all(one.mesh.link_map.reaches(names[0]) for one in ends))
        await eventually(lambda: all(one.mesh.link_map.reaches(names[-1]) for one in ends))
        yield nodes
    finally:
        for node in nodes.values():
            await node.vanish()


def refused(node: Node) -> int:
    return int(node.status()["refused"])


def note(number: int, since: int = 0) -> Content:
    return content("NUMBER", (number,), pool="inbox")._replace(since=since)


# -- who said it ------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["none", "made up", "of its own key"])
def test_what_is_routed_in_the_name_of_another_is_refused(
    tag: str, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with line(certificates) as nodes:
            a = nodes["a"]
            inbox = Inbox(a)
            liar = await Liar.links(a, certificates)
            message = sealed(Routed(7, a.boot, 1, 0, 0, 0, *note(1)[:4]))
            key = a.mesh.link_map.records["a"].key
            own = liar.identity.tag(key, "c", "a", message)
            tags = {"none": b"", "made up": bytes(16), "of its own key": own}
            liar.says(Envelope("c", "a", 4, tags[tag], message))
            await eventually(lambda: refused(a) == 1)
            honest = liar.identity.tag(key, "m", "a", message)
            liar.says(Envelope("m", "a", 4, honest, message))
            await eventually(lambda: len(inbox.frames) > 0)
            assert [sender for sender, _ in inbox.frames] == ["m"]

    run(story)
    assert "a message that c has not sent came by way of it" in lines(caplog)


def test_records_of_others_are_not_believed_and_not_handed_on(
    certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with line(certificates) as nodes:
            a = nodes["a"]
            liar = await Liar.links(a, certificates)
            true = a.mesh.link_map.records["c"]
            newer = msgspec.structs.replace(true, number=true.number + 10, peers=())
            mine = liar.identity.signed(newer)
            borrowed = msgspec.structs.replace(mine, certificate=true.certificate)
            keyed = msgspec.structs.replace(true, key=liar.identity.public)
            lies = (newer, mine, borrowed, msgspec.structs.replace(keyed, number=true.number + 10))
            of_a = msgspec.structs.replace(a.mesh.link_map.records["a"], number=10**6)
            liar.says(*lies, of_a)
            await eventually(lambda: refused(a) == len(lies) + 1)
            for node in nodes.values():
                assert node.mesh.link_map.records["c"] == true
                assert node.mesh.link_map.records["a"].number < 10**6
            liar.says(liar.identity.signed(Links("m", 7, 2, ("a", "c"))))  # about itself
            believed = nodes["c"].mesh.link_map.records
            await eventually(lambda: "m" in believed and believed["m"].number == 2)
            assert nodes["c"].mesh.link_map.route("m") == "b"  # but c does not say so

    run(story)
    assert "it told of the links of c: it is not signed by that node" in lines(caplog)
    assert "it told of the links of c: its certificate says 'm'" in lines(caplog)


def test_a_relay_can_lose_a_message_but_not_change_double_or_keep_it(certificates: Path) -> None:
    """What it sends on again, or to a later life of the receiver, is refused; and a token that it
    holds back is as old as it is, whatever the relay says."""

    async def story() -> None:
        async with line(certificates, "amc") as nodes:
            a, m, c = nodes["a"], nodes["m"], nodes["c"]
            inbox = Inbox(c)
            kept: list[Envelope] = []
            relay = m.mesh.router.relay

            def on(*envelopes: Envelope) -> None:
                for envelope in envelopes:
                    relay(envelope)
                m.mesh.flush()

            m.mesh.router.relay = kept.append  # type: ignore[method-assign]
            a.mesh.router.ask("c")
            a.mesh.flush()
            await eventually(lambda: len(kept) == 1)
            m.mesh.router.relay = relay  # type: ignore[method-assign]
            on(kept.pop())
            await eventually(lambda: a.mesh.router.knows_clock("c"))
            m.mesh.router.relay = kept.append  # type: ignore[method-assign]
            sent = a.mesh.clock()
            a.mesh.router.send("c", note(1, since=sent))
            a.mesh.flush()
            await eventually(lambda: len(kept) == 1)
            await a_while(0.2)
            true = kept[0]
            changed = msgspec.structs.replace(true, content=true.content[:-1] + b"\x00")
            on(changed, true, true)
            await eventually(lambda: refused(c) == 2 and len(inbox.frames) == 1)
            stamp = inbox.frames[0][1].stamp
            assert stamp is not None and c.mesh.age(stamp) >= a.mesh.clock() - sent > 2 * 10**8
            await c.vanish()
            nodes["c"] = Node(
                *"c", peers=[m.address], certificates=certificates, dead=LIMIT, state=None
            )
            await nodes["c"].start()
            inbox = Inbox(nodes["c"])
            await eventually(lambda: m.mesh.link_map.records["c"].boot == nodes["c"].boot)
            await eventually(lambda: m.mesh.link_map.route("c") == "c")
            on(true)
            await eventually(lambda: refused(nodes["c"]) == 1)
            assert not inbox.frames

    run(story)
