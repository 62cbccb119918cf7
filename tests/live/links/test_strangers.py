"""Strangers crowd the door, and honest nodes get in."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from strangers import Stranger

from meshlock import Node
from meshlock.live.links import admission
from meshlock.live.links.admission import AdmissionRoom, Arrival, Standing, site
from meshlock.live.links.security import by_certificate, by_secret, unprotected
from waiting import LIMIT, run

pytest.importorskip("cryptography")
from meshlock.live.links.certificates import Authority

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from strangers_at_the_door import ATTACKS, SECRET, SOURCES, Attacked, dial

# -- real processes --------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="has all of 127.0.0.0/8 for itself")
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("kind", ATTACKS)
def test_an_honest_node_gets_its_link_under_attack(kind: str, tls: bool) -> None:
    source = list(SOURCES)[ATTACKS.index(kind) % len(SOURCES)]
    with Attacked(kind, tls, source) as attacked:
        secret = SECRET if tls else None
        took = asyncio.run(asyncio.wait_for(dial(attacked.address, secret), LIMIT))
        print(f"{kind} from {source}, {'TLS' if tls else 'plain'}: a link after {took:.3f} s")
        assert attacked.connections()  # it was there all the time


# -- who must leave --------------------------------------------------------------------------


def arrivals(*hosts: str) -> list[Arrival]:
    none: Any = None
    return [Arrival(none, (host, 1), now) for now, host in enumerate(hosts)]


def test_a_newcomer_takes_the_place_of_the_oldest_of_its_address() -> None:
    room = AdmissionRoom(most=10, most_of_address=3)
    came = arrivals("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.1", "10.0.0.1")
    assert [room.add(one) for one in came] == [None, None, None, None, came[0]]


def test_in_a_full_room_the_address_with_the_most_gives_way() -> None:
    room = AdmissionRoom(most=4, most_of_address=3)
    came = arrivals("10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3", "10.0.0.4")
    assert [room.add(one) for one in came] == [None, None, None, None, came[1]]


def test_whoever_is_known_stays_although_its_address_has_the_most() -> None:
    room = AdmissionRoom(most=3, most_of_address=3)
    known, other, more, new = came = arrivals("10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.1")
    known.standing = more.standing = Standing.KNOWN_ADDRESS
    assert [room.add(one) for one in came] == [None, None, None, other]
    room.discard(other)
    new.standing = Standing.PROVED
    assert room.victim() is known
    assert (len(room.all), set(room.hosts)) == (3, {"10.0.0.1"})


def test_one_address_is_a_network_in_ipv6() -> None:
    assert site("2001:db8:0:1::7") == site("2001:db8:0:1:ffff::9") != site("2001:db8:0:2::7")
    assert site("::ffff:10.0.0.1") == site("10.0.0.1") == "10.0.0.1"
    assert site("fe80::1%eth0") == site("fe80::2%eth1")
    assert site("::1") == "::1"


# -- in one process --------------------------------------------------------------------------


def test_idle_connections_cost_no_handshake_and_the_oldest_are_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "MOST_OF_ADDRESS", 8)

    async def story() -> None:
        async with Node("a", secret=SECRET, dead=LIMIT) as a:
            first = await bare(a)
            others = [await bare(a) for _ in range(8)]
            assert await first.read() == b""  # dropped for the last of them
            door = a._local.mesh.admission
            assert (len(door.silent.all), len(door.begun.all)) == (8, 0)
            async with Node("b", peers=[a.address], secret=SECRET) as b:
                while "a" not in b._local.mesh.linked:
                    await asyncio.sleep(0.001)
            assert "127.0.0.1" in door.known
            assert len(others) == 8

    run(story)


async def bare(node: Node) -> asyncio.StreamReader:
    """A connection over which nothing is said; the node has it once this returns."""
    before = arrived(node)
    host, _, port = node.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.transport.set_write_buffer_limits(0)
    vars(reader)["kept"] = writer  # else it is closed
    while arrived(node) == before:
        await asyncio.sleep(0.001)
    return reader


def arrived(node: Node) -> int:
    return node.status()["refused"] + node._local.mesh.admission.silent.hosts.total()  # type: ignore[no-any-return]


def test_a_stranger_may_begin_only_so_many_handshakes_and_a_peer_gets_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never = dict.fromkeys(Standing, 1e-9) | {Standing.KNOCKED: 100.0}
    monkeypatch.setattr(admission, "PER_SECOND", never)

    async def story() -> None:
        async with Node("a", secret=SECRET, dead=LIMIT) as a:
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                stranger = await Stranger.dial(a, by_secret("some other secret of theirs", "x"))
                await stranger.gone()
                raise ConnectionError
            assert a._local.mesh.admission.begun.all == {}
            async with Node("b", peers=[a.address], secret=SECRET) as b:
                while "a" not in b._local.mesh.linked:
                    await asyncio.sleep(0.001)

    run(story)


def test_nodes_of_one_mesh_knock_alike_and_others_do_not(tmp_path: Path) -> None:
    secrets = [by_secret(SECRET, name).knock for name in "ab"]
    assert secrets[0] == secrets[1] != by_secret("some other secret of theirs", "a").knock
    files = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        authority = Authority.new()
        authority.save(tmp_path / folder / "ca")
        for name in "ab":
            stem = tmp_path / folder / name
            authority.issue(name).save(stem)
            ca = tmp_path / folder / "ca.crt"
            files.append(by_certificate(ca, f"{stem}.crt", f"{stem}.key").knock)
    assert files[0] == files[1] != files[2] == files[3]
    assert unprotected().knock not in (*secrets, *files)


def test_without_descriptors_strangers_are_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class Exhausted:
        """Stands in for the listener: no descriptors are left, for a while."""

        def __init__(self, listener: socket.socket) -> None:
            self.listener, self.times = listener, 3

        def accept(self) -> tuple[socket.socket, Any]:
            if self.times:
                self.times -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return self.listener.accept()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.listener, name)

    async def story() -> None:
        async with Node("a", secret=SECRET, dead=LIMIT) as a:
            idle = [await bare(a), await bare(a)]
            door = a._local.mesh.admission
            assert door.listener is not None
            door.listener = Exhausted(door.listener)  # type: ignore[assignment]
            async with Node("b", peers=[a.address], secret=SECRET) as b:
                while "a" not in b._local.mesh.linked:
                    await asyncio.sleep(0.001)
            assert [await one.read() for one in idle] == [b"", b""]

    run(story)
