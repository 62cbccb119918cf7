"""Admitted nodes that lie: about themselves they can, about others they are not believed.

Real nodes with certificates, each for its own name. ``m`` is the liar: a real node whose code was
tampered with, or somebody with its certificate who writes frames by hand.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import virtual
from strangers import Stranger, content, lines

from meshlock import Node, Refused
from meshlock.algorithms import direct
from meshlock.algorithms.actor import Message
from meshlock.algorithms.recovery.layer import Layer
from meshlock.algorithms.recovery.messages import (
    Accepted,
    AskLedger,
    Confirm,
    Copy,
    Higher,
    Inner,
    Ledger,
    Propose,
    Received,
    Refuse,
    Renew,
    Return,
    Suggest,
)
from meshlock.algorithms.recovery.messages import (
    content as inside,
)
from meshlock.algorithms.recovery.records import (
    ANY_BOOT,
    GRANTS,
    Entry,
    Epoch,
    Fence,
    ReleasedPart,
    Report,
    TokenState,
    Unaccepted,
)
from meshlock.live.links import link_map
from meshlock.live.links.frames import (
    Carry,
    Content,
    Envelope,
    Frame,
    LinksFrame,
    RoutedFrame,
)
from meshlock.live.links.mesh import STORED_OF_EACH
from meshlock.live.links.security import Security, by_certificate, by_secret
from meshlock.live.pools.grants import Grant, Pool
from meshlock.live.pools.members import note as note_of
from meshlock.live.pools.participation import PULL
from meshlock.live.pools.peers import CONFIGURATION, News
from meshlock.live.pools.pool_configuration import PoolConfiguration
from meshlock.live.pools.proofs import committed
from meshlock.live.pools.views import read
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
        self.frames: list[tuple[str, Carry | RoutedFrame]] = []
        node._local.mesh.receivers["inbox"] = self

    def receive(self, sender: str, frame: Carry | RoutedFrame) -> None:
        self.frames.append((sender, frame))


class Liar(Stranger):
    """With the certificate of m, and a link to one node."""

    identity: Identity
    number: int  # of its record

    @classmethod
    async def links(cls, node: Node, certificates: Path) -> Liar:
        mine = security(certificates, "m")
        liar = await cls.dial(node, mine)
        assert isinstance(liar, Liar) and mine.identity is not None
        liar.identity = mine.identity
        await liar.joins("m")
        await liar.hears()
        known = node._local.mesh.link_map.records.get("m")
        liar.number = known.number + 1 if known is not None else 1
        liar.says(mine.identity.signed(LinksFrame("m", 7, liar.number, (node.name,))))
        await eventually(lambda: node._local.mesh.link_map.reaches("m"))
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
            nodes[name] = Node(
                name, peers=peers, certificates=certificates, dead=LIMIT, state=None, min_links=0
            )
            await nodes[name].start()
        ends = nodes[names[0]], nodes[names[-1]]
        await eventually(lambda: all(one._local.mesh.link_map.reaches(names[0]) for one in ends))
        await eventually(lambda: all(one._local.mesh.link_map.reaches(names[-1]) for one in ends))
        yield nodes
    finally:
        for node in nodes.values():
            await node._local.vanish()


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
            message = msgspec.msgpack.encode(
                RoutedFrame(7, a._local.boot, 1, 0, 0, 0, 0, *note(1)[:4])
            )
            key = a._local.mesh.link_map.records["a"].key
            own = liar.identity.tag(key, "c", "a", message)
            tags = {"none": b"", "made up": bytes(16), "of its own key": own}
            liar.says(Envelope("c", "a", 4, tags[tag], message))
            await eventually(lambda: refused(a) == 1)
            honest = liar.identity.tag(key, "m", "a", message)
            liar.says(Envelope("m", "a", 4, honest, message))
            await eventually(lambda: len(inbox.frames) > 0)
            assert [sender for sender, _ in inbox.frames] == ["m"]

    run(story)
    assert "it forwarded a message that c did not send" in lines(caplog)


def test_records_of_others_are_not_believed_and_not_handed_on(
    certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with line(certificates) as nodes:
            a = nodes["a"]
            liar = await Liar.links(a, certificates)
            true = a._local.mesh.link_map.records["c"]
            newer = msgspec.structs.replace(true, number=true.number + 10, peers=())
            mine = liar.identity.signed(newer)
            borrowed = msgspec.structs.replace(mine, certificate=true.certificate)
            keyed = msgspec.structs.replace(true, key=liar.identity.public)
            lies = (newer, mine, borrowed, msgspec.structs.replace(keyed, number=true.number + 10))
            of_a = msgspec.structs.replace(a._local.mesh.link_map.records["a"], number=10**6)
            liar.says(*lies, of_a)
            await eventually(lambda: refused(a) == len(lies) + 1)
            for node in nodes.values():
                assert node._local.mesh.link_map.records["c"] == true
                assert node._local.mesh.link_map.records["a"].number < 10**6
            liar.says(liar.identity.signed(LinksFrame("m", 7, 2, ("a", "c"))))  # about itself
            believed = nodes["c"]._local.mesh.link_map.records
            await eventually(lambda: "m" in believed and believed["m"].number == 2)
            assert nodes["c"]._local.mesh.link_map.route("m") == "b"  # but c does not say so

    run(story)
    assert "it sent a link record of c: it is not signed by that node" in lines(caplog)
    assert "it sent a link record of c: its certificate names 'm'" in lines(caplog)


def test_a_relay_can_lose_a_message_but_not_change_double_or_keep_it(certificates: Path) -> None:
    """What it sends on again, or to a later life of the receiver, is refused; and a token that it
    holds back is as old as it is, whatever the relay says."""

    async def story() -> None:
        async with line(certificates, "amc") as nodes:
            a, m, c = nodes["a"], nodes["m"], nodes["c"]
            inbox = Inbox(c)
            kept: list[Envelope] = []
            relay = m._local.mesh.router.relay

            def on(*envelopes: Envelope) -> None:
                for envelope in envelopes:
                    relay(envelope)
                m._local.mesh.flush()

            m._local.mesh.router.relay = kept.append  # type: ignore[method-assign]
            a._local.mesh.router.ask("c")
            a._local.mesh.flush()
            await eventually(lambda: len(kept) == 1)
            m._local.mesh.router.relay = relay  # type: ignore[method-assign]
            on(kept.pop())
            await eventually(lambda: a._local.mesh.router.knows_clock("c"))
            m._local.mesh.router.relay = kept.append  # type: ignore[method-assign]
            sent = a._local.mesh.clock()
            a._local.mesh.router.send("c", note(1, since=sent))
            a._local.mesh.flush()
            await eventually(lambda: len(kept) == 1)
            await a_while(0.2)
            true = kept[0]
            changed = msgspec.structs.replace(true, content=true.content[:-1] + b"\x00")
            on(changed, true, true)
            await eventually(lambda: refused(c) == 2 and len(inbox.frames) == 1)
            stamp = inbox.frames[0][1].stamp
            assert (
                stamp is not None
                and c._local.mesh.age(stamp) >= a._local.mesh.clock() - sent > 2 * 10**8
            )
            await c._local.vanish()
            nodes["c"] = Node(
                *"c", peers=[m.address], certificates=certificates, dead=LIMIT, state=None
            )
            await nodes["c"].start()
            inbox = Inbox(nodes["c"])
            await eventually(
                lambda: m._local.mesh.link_map.records["c"].boot == nodes["c"]._local.boot
            )
            await eventually(lambda: m._local.mesh.link_map.route("c") == "c")
            on(true)
            await eventually(lambda: refused(nodes["c"]) == 1)
            assert not inbox.frames

    run(story)


def test_another_authority_proves_nothing(certificates: Path) -> None:
    mine = security(certificates, "a").identity
    assert mine is not None
    record = mine.signed(LinksFrame("a", 1, 1, ()))
    assert mine.doubts(record) == ""
    foreign = Authority.new()
    stranger = Identity([foreign.certificate], foreign.certificate, foreign.key)
    assert "it was issued by another authority" in stranger.doubts(record)
    assert "its certificate is invalid" in mine.doubts(LinksFrame("a", 1, 1, ()))


def test_whoever_knows_the_secret_can_take_any_name() -> None:
    """As the documentation says: it admits, and tells nobody apart."""
    one, other = (by_secret("only the nodes know this", name).identity for name in "ac")
    assert one is not None and other is not None
    assert one.doubts(other.signed(LinksFrame("c", 1, 1, ()))) == ""
    assert "its certificate names 'c'" in one.doubts(other.signed(LinksFrame("a", 1, 1, ())))
    again = by_secret("only the nodes know this", "c").identity
    assert again is not None
    assert one.doubts(again.signed(LinksFrame("c", 2, 2, ()))) == ""
    tag = other.tag(one.public, "c", "a", b"content")
    assert one.proves(other.public, "c", "a", b"content", tag)
    assert not one.proves(again.public, "c", "a", b"content", tag)  # of another life
    assert not one.proves(other.public, "a", "c", b"content", tag)


# -- what it says of a pool -------------------------------------------------------------------


LEASE = 3.0
"""Virtual seconds."""


class World:
    """Three honest members of a pool with one permit, and m, which takes part and is none."""

    def __init__(self, nodes: dict[str, Node]) -> None:
        self.nodes = nodes
        self.m = nodes["m"]
        self.honest = [nodes[name] for name in "abc"]
        self.epoch = self.layer(self.honest[0]).member.adopted.counter
        self.before = {node.name: self.layer(node).member.config.members for node in self.honest}

    def layer(self, node: Node) -> Layer:
        members = node._local.pools["docks"].adapter.members
        assert members is not None
        return members.node

    def number(self, name: str) -> int:
        return self.m._local.pools["docks"].adapter.numbers[name]

    def ahead(self, name: str = "m", by: int = 1) -> Epoch:
        """An epoch that nobody has proposed."""
        counter = max(self.layer(node).member.promised.counter for node in self.honest)
        return Epoch(counter + by, self.number(name), self.nodes[name]._local.boot)

    def tells(self, *messages: Message) -> None:
        """All honest nodes."""
        docks = self.m._local.pools["docks"]
        for node in self.honest:
            for message in messages:
                payload = docks.adapter.shapes[message.kind].pack(message)
                what = Content("docks", docks.adapter.identity, message.kind, payload)
                self.m._local.mesh.router.send(node.name, what)
        self.m._local.mesh.flush()

    def refused(self) -> int:
        return sum(refused(node) for node in self.honest)

    async def serves(self) -> None:
        """Everybody in turn, and nobody has heard of anything new."""
        for node in self.honest:
            async with node.pool("docks").acquire(timeout=LIMIT):
                pass
        for node in self.honest:
            assert self.layer(node).member.config.members == self.before[node.name]
            assert not node._local.mesh.failures.counts


@asynccontextmanager
async def world(
    certificates: Path,
    *,
    auto: bool = False,
    algorithm: str = "jiang",
    members: str = "abc",
    permits: int = 1,
    options: dict[str, str] | None = None,
) -> AsyncIterator[World]:
    """a - b - c, and m is linked to a and c. The members are by name, or choose themselves."""
    rules: dict[str, Any] = {"members": list(members), "options": options or {}}
    if auto:
        rules = {"promote_after": 0.5, "most_members": 3}
    async with AsyncExitStack() as stack:
        nodes: dict[str, Node] = {}
        for name, peers in (("a", ""), ("b", "a"), ("c", "b"), ("m", "ac")):
            addresses = [nodes[peer].address for peer in peers]
            nodes[name] = Node(
                name, peers=addresses, certificates=certificates, state=None, member=name != "m"
            )
            await nodes[name].start()
            stack.push_async_callback(nodes[name]._local.vanish)
            if name in members:
                nodes[name].pool("docks", permits, lease=LEASE, algorithm=algorithm, **rules)
        await eventually(lambda: nodes["c"]._local.pools["docks"].adapter.members is not None)
        for name in "abc":
            there = nodes[name]._local.pools["docks"].adapter.members
            assert there is not None
            layer = there.node
            await eventually(lambda layer=layer: len(layer.member.members) == len(members))
            async with nodes[name].pool("docks").acquire(timeout=LIMIT):
                pass
        m = nodes["m"].pool("docks")
        async with m.acquire(timeout=LIMIT):
            pass
        async with nodes["a"].pool("docks").acquire(timeout=LIMIT):
            pass
        yield World(nodes)


class Lie(NamedTuple):
    says: Callable[[World], Message]
    counted: bool = True


def begun(world: World, by: str = "m", **other: Any) -> Any:
    first = world.layer(world.m).member.first
    assert first is not None
    epoch = world.ahead(by)
    config = first.config._replace(epoch=epoch, members=(world.number("m"),))
    return first._replace(epoch=epoch, config=config, **other)


def config(world: World) -> Any:
    return world.layer(world.m).member.config


FAR = 2**30 - 2
LIES = {
    "an epoch that ends all epochs": Lie(
        lambda w: Propose(0, w.ahead()._replace(counter=FAR), config(w))
    ),
    "an epoch of its own": Lie(lambda w: Propose(0, w.ahead(), config(w))),
    "an epoch of a member": Lie(lambda w: Propose(0, w.ahead("a"), config(w))),
    "the last epoch": Lie(lambda w: Higher(0, w.ahead()._replace(counter=FAR))),
    "a higher epoch": Lie(lambda w: Higher(0, w.ahead("b")), False),
    "a token of another epoch": Lie(lambda w: Renew(0, w.ahead(), w.m._local.boot, 1, 0), False),
    "a token of the last epoch": Lie(
        lambda w: Renew(0, w.ahead()._replace(counter=FAR), w.m._local.boot, 1, 0)
    ),
    "a ledger": Lie(lambda w: Ledger(0, begun(w), w.m._local.boot, 0)),
    "the ledger of a member": Lie(lambda w: Ledger(0, begun(w, "b"), w.m._local.boot, 0)),
    "a copy of a ledger": Lie(lambda w: Copy(0, begun(w), None, GRANTS, 0, 0, 0), False),
    "a copy of the ledger of a member": Lie(
        lambda w: Copy(0, begun(w, "b"), None, GRANTS, 0, 0, 0), False
    ),
    "another beginning": Lie(
        lambda w: Copy(
            0, begun(w)._replace(epoch=w.layer(w.m).member.adopted), None, GRANTS, 0, 0, 0
        )
    ),
    "another configuration": Lie(lambda w: Refuse(0, config(w)._replace(lease=7))),
    "the restart of a member": Lie(lambda w: AskLedger(0, w.number("a"), 77, GRANTS)),
    "an answer to come": Lie(lambda w: Confirm(0, w.layer(w.m).member.adopted, 1, 2**60, 1)),
    "a token that arrived": Lie(lambda w: Accepted(0, w.layer(w.m).member.adopted, 1), False),
    "lost permits": Lie(lambda w: Suggest(0, w.layer(w.m).member.promised, 99, True), False),
    "a promise of a higher epoch": Lie(lambda w: Suggest(0, w.ahead("b"), 99, False), False),
    "a promise of the last epoch": Lie(
        lambda w: Suggest(0, w.ahead()._replace(counter=FAR), 99, False)
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_whoever_is_no_member_neither_ends_a_pool_nor_stops_it(
    lie: str, certificates: Path
) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates) as w:
            before, epoch = w.refused(), w.layer(w.honest[0]).member.adopted
            for _ in range(20):
                w.tells(LIES[lie].says(w))
                await a_while(0.2)
                if LIES[lie].counted:
                    assert w.refused() >= before + 3
            await w.serves()
            assert w.layer(w.honest[0]).member.adopted.counter <= epoch.counter + 2
            assert w.layer(w.honest[0]).member.highest.counter < epoch.counter + 30

    virtual.run(story)


def test_only_members_have_members_change_a_pool(certificates: Path) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates) as w:
            pool = next(iter(w.m._local.pools.values()))
            before = pool.permits
            with pytest.raises(Refused, match="m is not a member of"):
                await Pool(pool).set_permits(1, timeout=60)
            with pytest.raises(Refused, match="only members change a pool"):
                await Pool(pool).change_members(add="m", timeout=60)
            assert pool.permits == before and w.refused() >= 2
            await w.serves()

    virtual.run(story)


@pytest.mark.parametrize(
    "lie",
    ["a higher epoch", "lost permits", "a promise of a higher epoch", "an epoch of its own"],
)
def test_nor_does_it_keep_the_members_from_a_new_epoch(lie: str, certificates: Path) -> None:
    """The holder is killed, and m goes on lying."""

    async def story(network: virtual.Network) -> None:
        async with world(certificates) as w:
            a, b, c = w.honest
            async with c.pool("docks").acquire(timeout=LIMIT):
                pass
            network.kill(c._local.mesh)
            await c._local.vanish()
            w.honest = [a, b]

            async def lies() -> None:
                while True:
                    w.tells(LIES[lie].says(w))
                    await a_while(0.1)

            lying = asyncio.ensure_future(lies())
            async with asyncio.timeout(5 * LEASE):
                await w.serves()
            lying.cancel()

    virtual.run(story)


def propose(node: Node) -> None:
    """An epoch for no reason."""
    docks = node._local.pools["docks"]
    docks.adapter.before()
    assert docks.adapter.members is not None
    docks.adapter.members.node.propose()
    docks.adapter.carry_out("timer", {})
    docks.mesh.flush()


async def nobody_gets_a_permit(node: Node, grant: Grant) -> None:
    """While somebody holds the only one."""
    with pytest.raises(TimeoutError):
        await node.pool("docks").acquire(timeout=9.0)
    assert grant.held and not grant.lost


@pytest.mark.parametrize("algorithm", ["jiang", "naimi-trehel"])
def test_it_cannot_give_back_what_others_hold(algorithm: str, certificates: Path) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates, algorithm=algorithm) as w:
            a, b, c = w.honest
            grant = await a.pool("docks").acquire(timeout=LIMIT)
            before = w.layer(b).member.adopted
            propose(b)
            await eventually(lambda: all(w.layer(one).member.adopted > before for one in w.honest))
            await eventually(lambda: w.layer(b).member.proposal is None)
            [fence] = w.layer(b).epoch.stand_ins
            refusals = refused(b)
            for who in ("a", "m"):
                epoch = w.layer(b).member.adopted
                w.tells(Return(0, epoch, fence, 0, w.number(who), GRANTS))
            await eventually(lambda: refused(b) == refusals + 2)
            assert refused(a) >= 2
            await nobody_gets_a_permit(c, grant)
            grant.release()
            await w.serves()

    virtual.run(story)


@pytest.mark.parametrize("holder", ["alive", "dead"])
@pytest.mark.parametrize("claim", ["token", "sent", "members", "epoch", "grants"])
def test_what_it_reports_cannot_make_a_second_permit(
    claim: str, holder: str, certificates: Path
) -> None:
    """a holds the permit, the token is with it or with c; b writes a new ledger, and m lies."""

    async def story(network: virtual.Network) -> None:
        async with world(certificates) as w:
            a, b, c = w.honest
            liar = w.layer(w.m)
            grant = await a.pool("docks").acquire(timeout=LIMIT)

            def lies() -> Report:
                report = truth()
                told.append(liar.member.promised)
                state = TokenState(liar.member.adopted, 10**6, 1, (), 0)
                sent = Unaccepted(state, w.number("b"), b._local.boot)
                high = w.ahead()
                entry = Entry(w.number("m"), Fence(liar.member.adopted, 77), 1, False, (), "")
                changed: dict[str, Any] = {
                    "token": {"token": state},
                    "sent": {"unaccepted": sent},
                    "members": {
                        "config": config(w)._replace(members=(*config(w).members, 2**62)),
                    },
                    "epoch": {"top": high, "config": config(w)._replace(epoch=high)},
                    "grants": {"grants": (entry,)},
                }[claim]
                return report._replace(**changed)

            told: list[Epoch] = []
            truth = liar.member.report
            liar.member.report = lies  # type: ignore[method-assign]
            if holder == "dead":
                a._local.pools["docks"].participation.pull()
                network.kill(c._local.mesh)
                await c._local.vanish()
                w.honest = [a, b]
            before = w.layer(b).member.adopted
            propose(b)
            await eventually(lambda: all(w.layer(one).member.adopted > before for one in w.honest))
            await nobody_gets_a_permit(b, grant)
            assert told and not w.m._local.mesh.failures.counts
            grant.release()
            await w.serves()

    virtual.run(story)


def news(w: World, what: str) -> News:
    ours = w.m._local.pools["docks"].adapter.configuration
    assert ours is not None
    other = msgspec.structs.replace(ours, identity=1, founder="m", permits=1)
    if ours.by_name:
        other = msgspec.structs.replace(other, founder="")
    if what == "withdrawn":
        return News(other, True, (ours.identity,))
    if what == "reset":
        return News(msgspec.structs.replace(other, replaces=(ours.identity,)), True)
    return News(other, True)


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("what", ["withdrawn", "reset", "another"])
def test_it_cannot_say_that_a_pool_is_over(what: str, auto: bool, certificates: Path) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates, auto=auto) as w:
            docks = w.m._local.pools["docks"]
            ours = w.honest[0]._local.pools["docks"].adapter.identity
            for peer in "ac":
                payload = msgspec.msgpack.encode(news(w, what))
                docks.mesh.send(peer, Content("docks", 0, CONFIGURATION, payload))
            docks.mesh.flush()
            shown = [w.nodes[name]._local.pools["docks"] for name in "ac"]
            await eventually(lambda: all(pool.conflict for pool in shown))
            await a_while(9.0)
            if what != "another":
                assert w.refused() >= 2
            assert {node._local.pools["docks"].adapter.identity for node in w.honest} == {ours}
            await w.serves()

    virtual.run(story)


NOR_MEMBERS = [
    "an epoch that ends all epochs",
    "an epoch of a member",
    "the last epoch",
    "a token of the last epoch",
    "the ledger of a member",
    "another beginning",
    "the restart of a member",
    "an answer to come",
]


@pytest.mark.parametrize("lie", NOR_MEMBERS)
def test_what_a_member_cannot_say_either(lie: str, certificates: Path) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates, members="abcm") as w:
            before, epoch = w.refused(), w.layer(w.honest[0]).member.adopted
            for _ in range(20):
                w.tells(LIES[lie].says(w))
                await a_while(0.2)
                assert w.refused() >= before + 3
            await w.serves()
            assert w.layer(w.honest[0]).member.adopted.counter <= epoch.counter + 2

    virtual.run(story)


def test_a_token_that_cannot_be_is_not_taken(certificates: Path) -> None:
    """m has the token, and hands it on with more permits than there are."""

    async def story(network: virtual.Network) -> None:
        async with world(certificates) as w:
            a, b, _ = w.honest
            layer = w.layer(w.m)
            grant = await w.m.pool("docks").acquire(timeout=LIMIT)
            give, told = layer.epoch.keeper.give, []

            def lies(message: Message) -> None:
                token = layer.member.holding.token
                assert token is not None
                token.free += 5
                told.append(message)
                give(message)

            layer.epoch.keeper.give = lies  # type: ignore[method-assign]
            asked = asyncio.ensure_future(a.pool("docks").acquire(timeout=LIMIT).__aenter__())
            grant.release()
            mine = await asked
            assert told and w.refused() > 0
            await nobody_gets_a_permit(b, mine)
            mine.release()
            await w.serves()

    virtual.run(story)


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
@pytest.mark.parametrize("how", ["granted", "kept", "lapsing"])
def test_it_cannot_release_what_others_hold(how: str, algorithm: str, certificates: Path) -> None:
    """Two of three permits are out, and the token is with another honest node; m says that they
    come back."""

    async def story(network: virtual.Network) -> None:
        async with world(certificates, algorithm=algorithm, permits=3) as w:
            a, b, c = w.honest
            async with c.pool("docks").acquire(timeout=LIMIT):
                grant = await a.pool("docks").acquire(2, timeout=LIMIT)
            before = w.layer(b).member.adopted
            if how == "kept":
                propose(b)
            if how == "lapsing":
                async with c.pool("docks").acquire(timeout=LIMIT):
                    pass
                network.kill(a._local.mesh)
                w.honest = [b, c]
            if how != "granted":
                await eventually(
                    lambda: all(w.layer(one).member.adopted > before for one in w.honest)
                )
            async with c.pool("docks").acquire(timeout=LIMIT):
                pass
            await eventually(lambda: len(ledger(w)) == 1)
            [at] = [one for one in (b, c) if w.layer(one).member.holding.token is not None]
            layer, docks = w.layer(at), w.m._local.pools["docks"]
            assert layer.member.holding.token is not None and layer.epoch.inner is not None
            [entry] = layer.member.holding.token.ledger
            assert entry.lapsing == (how == "lapsing")
            refusals, free = refused(at), layer.member.holding.token.free
            fields = (layer.epoch.inner.altitude(), 9, 2) if algorithm == "jiang" else (2, 0)
            for proofs in ((), (bytes(16),), (b"",)):
                sealed = (
                    layer.member.adopted,
                    at._local.boot,
                    None,
                    0,
                    ((entry.fence, 0, 2),),
                    None,
                    proofs,
                )
                payload = msgspec.msgpack.encode((sealed, *fields))
                what = Content("docks", docks.adapter.identity, "RELEASE", payload)
                w.m._local.mesh.router.send(at.name, what)
                w.m._local.mesh.flush()
            await eventually(lambda: refused(at) == refusals + 3)
            assert layer.member.holding.token.free == free == 1
            if how != "lapsing":
                with pytest.raises(TimeoutError):
                    await b.pool("docks").acquire(2, timeout=9.0)
                assert grant.held
                grant.release()
            await w.serves()

    virtual.run(story)


def test_it_cannot_release_what_others_hold_when_the_token_has_moved_on(
    certificates: Path,
) -> None:
    """c lends a permit to a; then the token moves on to b with the next grant. m says that the
    permit comes back. Then a releases it, and it goes by way of c, which has no token any more."""

    async def story(network: virtual.Network) -> None:
        moving = {"options": {"rest": "2"}, "algorithm": "direct", "permits": 3}
        async with world(certificates, **moving) as w:
            a, b, c = w.honest
            mine = await c.pool("docks").acquire(timeout=LIMIT)
            while (
                w.layer(c).member.holding.token.grants % 2 == 1
            ):  # the next but one takes the token along
                mine.release()
                mine = await c.pool("docks").acquire(timeout=LIMIT)
            before, refusals = w.layer(a).member.adopted, w.refused()
            grant = await a.pool("docks").acquire(timeout=LIMIT, label="of a")
            assert w.layer(c).member.holding.token is not None
            other = await b.pool("docks").acquire(timeout=LIMIT)
            layer, docks = w.layer(b), w.m._local.pools["docks"]
            assert (
                layer.member.holding.token is not None
                and len(layer.member.holding.token.ledger) == 3
            )
            [entry] = [
                one for one in layer.member.holding.token.ledger if one.node == w.number("a")
            ]
            assert read(entry.label)[2] == "of a"
            for proofs in ((), (bytes(16),), (b"",)):
                sealed = (
                    layer.member.adopted,
                    b._local.boot,
                    None,
                    0,
                    ((entry.fence, 0, 1),),
                    None,
                    proofs,
                )
                payload = msgspec.msgpack.encode((sealed, 1, 0))
                what = Content("docks", docks.adapter.identity, "RELEASE", payload)
                w.m._local.mesh.router.send(b.name, what)
                w.m._local.mesh.flush()
            await eventually(lambda: w.refused() == refusals + 3)
            assert grant.held and entry in layer.member.holding.token.ledger
            assert w.layer(a).epoch.inner.pointer == w.number("c")
            grant.release()
            await eventually(lambda: entry not in layer.member.holding.token.ledger)
            mine.release()
            other.release()
            await w.serves()
            assert w.layer(a).member.adopted == before and w.refused() == refusals + 3

    virtual.run(story)


def ledger(w: World) -> tuple[Entry, ...]:
    """Of the token, if an honest node has it."""
    tokens = [w.layer(node).member.holding.token for node in w.honest]
    return next((token.ledger for token in tokens if token is not None), ())


# -- grants to clients of other nodes -----------------------------------------------------------


@asynccontextmanager
async def lent(certificates: Path) -> AsyncIterator[tuple[World, Grant, Fence]]:
    """Of three permits c holds one, so the token stays with it, and a client of a another one."""
    async with world(certificates, algorithm="direct", permits=3) as w:
        a, _, c = w.honest
        async with c.pool("docks").acquire(timeout=LIMIT):
            grant = await a.pool("docks").acquire(timeout=LIMIT, label="of a")
            assert w.layer(c).member.holding.token is not None
            [fence] = w.layer(a).member.grants
            yield w, grant, fence
            grant.release()
        await w.serves()


def grant_of(w: World, **other: Any) -> Inner:
    """A GRANT as m would make it to a, if it had the token."""
    a, mine = w.honest[0], w.layer(w.m)
    about: dict[str, Any] = {
        "hop": w.layer(a).member.holding.holder_hop + 1,
        "count": 2,
        "grants": 50,
        "left": 10**6,
        "node": w.number("a"),
        "permits": 2,
        "slots": (),
        "number": 50,
        "epoch": mine.member.adopted,
        "state": None,
        "returned": (),
        **other,
    }
    fence = Fence(about["epoch"], about["number"])
    entry = Entry(about["node"], fence, about["permits"], False, about["slots"], "")
    inner = w.layer(a).epoch.inner
    assert isinstance(inner, direct.DirectNode)
    message = direct.GrantMessage(
        0, inner.lines.numbers[0], about["count"], about["grants"], about["hop"]
    )
    state, left, returned = about["state"], about["left"], about["returned"]
    grant = Inner(0, mine.member.adopted, ANY_BOOT, message, state, left, returned, entry)
    grant.proofs = tuple([b""] * len(returned))
    return grant


def says_to_a(w: World, message: Message) -> None:
    docks, kind = w.m._local.pools["docks"], inside(message).kind
    payload = docks.adapter.shapes[kind].pack(message)
    since = w.m._local.mesh.clock()
    what = Content("docks", docks.adapter.identity, kind, payload, since)
    w.m._local.mesh.router.send("a", what)
    w.m._local.mesh.flush()


GRANTED: dict[str, tuple[str, Callable[[World], dict[str, Any]]]] = {
    "where the token is not": (
        "its sender does not have the token",
        lambda w: {"hop": w.layer(w.honest[0]).member.holding.holder_hop},
    ),
    "where it was": ("its sender does not have the token", lambda w: {"hop": 0}),
    "more than there are": (
        "it grants more permits than the pool has",
        lambda w: {"count": 3, "permits": 3},
    ),
    "other than its seal": ("its grant and the entry", lambda w: {"permits": 1}),
    "none": ("its grant and the entry", lambda w: {"count": 0, "permits": 0}),
    "to somebody else": ("its grant is for another node", lambda w: {"node": w.number("b")}),
    "of another epoch": ("or of another epoch", lambda w: {"epoch": w.ahead()}),
    "for ever": ("its lease is longer than those of the pool", lambda w: {"left": 2**60}),
    "with names": ("it grants permits of wrong names", lambda w: {"slots": (0,)}),
    "after too many": ("its counters are out of range", lambda w: {"grants": 2**53 - 1}),
    "too far from here": ("its counters are out of range", lambda w: {"hop": 2**53 - 1}),
    "and returns": (
        "it carries more than a grant",
        lambda w: {"returned": (ReleasedPart(Fence(w.layer(w.m).member.adopted, 7), 0, 1),)},
    ),
}


@pytest.mark.parametrize("lie", GRANTED)
def test_a_grant_that_cannot_be_is_refused(
    lie: str, certificates: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A client of a waits for this number, so that anything might let it in."""

    async def story(network: virtual.Network) -> None:
        async with lent(certificates) as (w, grant, fence):
            a = w.honest[0]
            wish = asyncio.ensure_future(a.pool("docks").acquire(2, timeout=LIMIT).__aenter__())
            await a_while(0.1)
            before, epoch = refused(a), w.layer(a).member.adopted
            if lie == "where it was":
                assert w.layer(a).member.holding.holder_hop > 0
            says_to_a(w, grant_of(w, **GRANTED[lie][1](w)))
            await eventually(lambda: refused(a) == before + 1)
            assert list(w.layer(a).member.grants) == [fence] and grant.held and not wish.done()
            assert not w.layer(a).epoch.loans.missed and w.layer(a).member.adopted == epoch
            grant.release()
            (await wish).release()

    virtual.run(story)
    assert GRANTED[lie][0] in lines(caplog)


def test_who_says_that_it_has_the_token_since_is_believed(certificates: Path) -> None:
    """As the documentation says: more than k may be in use, and what comes next goes to the liar,
    until there is a new epoch."""

    async def story(network: virtual.Network) -> None:
        async with lent(certificates) as (w, grant, _):
            a, epoch = w.honest[0], w.layer(w.honest[0]).member.adopted
            wish = asyncio.ensure_future(a.pool("docks").acquire(2, timeout=LIMIT).__aenter__())
            await a_while(0.1)
            says_to_a(w, grant_of(w))
            believed = await wish
            assert grant.held and believed.held and w.layer(a).member.adopted == epoch
            believed.release()
            propose(w.honest[1])
            await eventually(lambda: all(w.layer(one).member.adopted > epoch for one in w.honest))
            assert grant.held

    virtual.run(story)


def test_no_other_message_brings_a_grant(certificates: Path) -> None:
    """Nor does one bring none."""

    async def story(network: virtual.Network) -> None:
        async with lent(certificates) as (w, grant, fence):
            a, refusals = w.honest[0], refused(w.honest[0])
            honest, lie = grant_of(w), grant_of(w)
            lie.message = direct.Request(0, w.number("m"), 1, 1, 1, 0, 0, 1, False)
            says_to_a(w, lie)
            assert lie.lent is not None
            lie.lent = lie.lent._replace(permits=0)
            says_to_a(w, lie)
            says_to_a(w, Inner(0, lie.epoch, ANY_BOOT, honest.message))
            await eventually(lambda: refused(a) == refusals + 3)
            assert list(w.layer(a).member.grants) == [fence] and grant.held

    virtual.run(story)


def test_grants_that_came_too_late_are_no_reason_for_ever_new_epochs(certificates: Path) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates, algorithm="direct", permits=3) as w:
            a = w.honest[0]
            before, began = w.layer(a).member.adopted.counter, w.m._local.mesh.time()
            while w.m._local.mesh.time() - began < 4 * LEASE:
                says_to_a(w, grant_of(w, left=0, epoch=w.layer(w.m).member.adopted))
                await a_while(0.1)
            assert w.layer(a).member.adopted.counter <= before + 2
            await w.serves()

    virtual.run(story)


def acknowledged(what: str, w: World, fence: Fence) -> Received:
    epoch, note = w.layer(w.m).member.adopted, note_of(3, "m was here")
    received = {
        "of another node": ((fence, note),),
        "too many": tuple([(Fence(epoch, 50 + one), note) for one in range(10)]),
        "with a short commitment": ((Fence(epoch, 50), committed(note, "1.abcd")),),
        "with no label": ((Fence(epoch, 50), ""),),
        "with a huge client": ((Fence(epoch, 50), f"{10**60} 1 - x"),),
        "with a line of its own": ((Fence(epoch, 50), note_of(3, "m\x1b[2J\nwas here")),),
    }[what]
    return Received(0, epoch, received)


@pytest.mark.parametrize(
    "what",
    [
        *("of another node", "too many", "with a short commitment", "with no label"),
        *("with a huge client", "with a line of its own"),
    ],
)
def test_who_acknowledges_speaks_of_its_own_grants_and_shortly(
    what: str, certificates: Path
) -> None:
    async def story(network: virtual.Network) -> None:
        async with lent(certificates) as (w, _, fence):
            c = w.honest[2]
            await eventually(lambda: not w.layer(c).epoch.loans.lent)
            before, refusals = ledger(w), refused(c)
            w.layer(c).epoch.loans.lent[fence] = w.layer(c).member.now  # as if it were under way
            w.tells(acknowledged(what, w, fence))
            await eventually(lambda: refused(c) == refusals + 1)
            assert ledger(w) == before and fence in w.layer(c).epoch.loans.lent
            assert [read(one.label)[2] for one in before if one.fence == fence] == ["of a"]
            del w.layer(c).epoch.loans.lent[fence]

    virtual.run(story)


def test_what_it_says_of_its_own_grant_does_not_keep_others_from_theirs(
    certificates: Path,
) -> None:
    """m holds a permit that c granted, names it anew, and again; then it comes back."""

    async def story(network: virtual.Network) -> None:
        async with lent(certificates) as (w, grant, fence):
            c = w.honest[2]
            mine = await w.m.pool("docks").acquire(timeout=LIMIT, label="of m")
            [own] = w.layer(w.m).member.grants
            refusals = w.refused()
            w.tells(Received(0, w.layer(w.m).member.adopted, ((own, note_of(3, "changed")),)))
            await eventually(lambda: any("changed" in one.label for one in ledger(w)))
            assert {one.fence for one in ledger(w)} > {own, fence}
            mine.release()
            await eventually(lambda: own not in {one.fence for one in ledger(w)})
            grant.release()
            await eventually(lambda: fence not in {one.fence for one in ledger(w)})
            assert w.layer(c).member.adopted.counter <= w.epoch + 2 and w.refused() == refusals

    virtual.run(story)


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_what_is_released_in_parts_and_from_afar_comes_back(
    algorithm: str, certificates: Path
) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates, algorithm=algorithm, permits=3) as w:
            a, b, c = w.honest
            for turn in range(8):
                grant = await a.pool("docks").acquire(3, timeout=LIMIT)
                waits = asyncio.ensure_future(
                    c.pool("docks").acquire(3, timeout=LIMIT).__aenter__()
                )
                if turn == 5:
                    propose(b)
                    await a_while(1.0)
                grant.release(1)
                await a_while(0.01 * turn)
                grant.release(1)
                grant.release()
                (await waits).release()
                async with b.pool("docks").acquire(timeout=LIMIT):
                    pass
            await w.serves()
            assert w.refused() == 0
            assert w.layer(a).member.adopted.counter <= w.epoch + 2

    virtual.run(story)


# -- how much it makes others keep ------------------------------------------------------------


def resident() -> float:
    """Megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def unknown(number: int) -> Frame:
    return Carry(number, 0, 0, True, f"pool{number // 16}", 0, "ANYTHING", bytes(60_000))


def relayed(number: int) -> Frame:
    return Envelope("c", "b", 4, b"", bytes(60_000))


def of_links(number: int) -> Frame:
    return LinksFrame("m", 7, 0, tuple([f"n{number}x{one}" for one in range(300)]))


def of_pools(number: int) -> Frame:
    configuration = PoolConfiguration(
        "docks", "jiang", {}, 1, "m", number, lease=10**6, most_members=5
    )
    news = News(configuration, True, tuple(range(number * 100, number * 100 + 100)))
    payload = msgspec.msgpack.encode(news)
    return Carry(number, 0, 0, False, "docks", 0, CONFIGURATION, payload)


def early(number: int) -> Frame:
    """Of a pool that nobody has told of, through others."""
    return Carry(number, 0, 0, False, "elsewhere", 0, "ANYTHING", bytes(60_000))


FLOODS: dict[str, tuple[Callable[[int], Frame], int]] = {
    "messages of unknown pools": (unknown, 700),
    "messages for others": (relayed, 700),
    "records of links": (of_links, 700),
    "news of pools": (of_pools, 2000),
    "messages before their pool": (early, 700),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_floods_are_bounded_in_bytes(
    flood: str, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 MB, or as much as it gets through before its link is cut, three times."""

    async def story() -> None:
        async with line(certificates) as nodes:
            a, c = nodes["a"], nodes["c"]
            docks = a.pool("docks", permits=1, recovery="none")
            c.pool("docks")
            async with c.pool("docks").acquire(timeout=LIMIT):
                pass
            make, count = FLOODS[flood]
            monkeypatch.setattr(link_map, "PER_SECOND", 50.0)
            before = resident()

            def may_tell() -> bool:
                rate = a._local.mesh.link_map.rates.get("m")
                return rate is None or rate.has(a._local.mesh.time())

            for _ in range(3):
                await eventually(may_tell)
                liar = await Liar.links(a, certificates)
                for number in range(1, count):
                    if liar.deaf.done():
                        break
                    frame = make(number)
                    if isinstance(frame, LinksFrame):
                        newer = msgspec.structs.replace(frame, number=liar.number + number)
                        frame = liar.identity.signed(newer)
                    liar.says(frame)
                    if number % 16 == 0:
                        with suppress(OSError):
                            await liar.writer.drain()
                liar.writer.close()
                await eventually(lambda: "m" not in a._local.mesh.open)
            assert resident() - before < 50
            assert a._local.mesh.stored.total <= STORED_OF_EACH
            async with docks.acquire(timeout=LIMIT):
                pass
            async with c.pool("docks").acquire(timeout=LIMIT):
                pass
            assert "b" in a._local.mesh.linked

    run(story)


def test_what_comes_before_its_epoch_is_bounded_in_bytes(certificates: Path) -> None:
    """Only what is good at any time waits for it."""

    async def story(network: virtual.Network) -> None:
        async with world(certificates, algorithm="naimi-trehel", permits=1) as w:
            a, docks = w.honest[0], w.m._local.pools["docks"]
            sealed = [(*w.ahead(),), a._local.boot, None, 0, (), None, tuple([bytes(16)] * 5000)]
            payload = msgspec.msgpack.encode((sealed, 0))
            for _ in range(100):
                what = Content("docks", docks.adapter.identity, "REQUEST", payload)
                w.m._local.mesh.router.send("a", what)
                w.m._local.mesh.flush()
            await eventually(lambda: refused(a) > 0)
            stored = a._local.mesh.stored
            assert 0 < stored.total <= STORED_OF_EACH
            assert len(payload) * len(w.layer(a).epoch.early) <= STORED_OF_EACH
            await w.serves()

    virtual.run(story)


def test_tokens_before_their_epoch_are_not_kept(certificates: Path) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates, algorithm="naimi-trehel") as w:
            a, docks = w.honest[0], w.m._local.pools["docks"]
            state = TokenState(w.ahead(), 1, 1, (), 0)
            sealed = [(*w.ahead(),), a._local.boot, state, 9, (), None, ()]
            payload = msgspec.msgpack.encode((sealed, 0))
            there = a._local.pools["docks"].adapter.members
            assert there is not None
            heard: list[str] = []
            admits = there.validation.admits

            def hears(sender: str, message: Message, size: int) -> bool:
                heard.append(f"{inside(message).kind} of {sender}")
                return admits(sender, message, size)

            there.validation.admits = hears  # type: ignore[method-assign]
            what = Content(
                "docks", docks.adapter.identity, "TOKEN", payload, w.m._local.mesh.clock()
            )
            w.m._local.mesh.router.send("a", what)
            w.m._local.mesh.flush()
            await eventually(lambda: "TOKEN of m" in heard)
            assert w.layer(a).epoch.early == [] and a._local.mesh.stored.total == 0
            await w.serves()

    virtual.run(story)


def test_fences_and_farewells_that_never_were_take_no_room(certificates: Path) -> None:
    async def story(network: virtual.Network) -> None:
        async with world(certificates) as w:
            a, docks = w.honest[0], w.m._local.pools["docks"]
            layer = w.layer(a)
            for number in range(200):
                returns = tuple(
                    ReleasedPart(Fence(w.ahead(by=7), number * 100 + one), 0, 1)
                    for one in range(100)
                )
                sealed = (layer.member.adopted, a._local.boot, None, 0, returns, None, ())
                payload = msgspec.msgpack.encode((sealed, 1, 1))
                docks.mesh.send("a", Content("docks", docks.adapter.identity, "RELEASE", payload))
                docks.participation.say("a", PULL)
            docks.mesh.flush()
            await eventually(lambda: refused(a) >= 200)
            assert (
                len(layer.epoch.keeper.pending) <= 2
                and len(a._local.pools["docks"].adapter.clients) <= 1
            )
            await w.serves()

    virtual.run(story)
