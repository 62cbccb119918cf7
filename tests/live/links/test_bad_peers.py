"""Strangers, liars and broken peers: refused with a line in the log, and nobody else notices."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strangers import Stranger, carried, content, lines

from meshlock import Node, Refused
from meshlock.live.links.admission import MOST_OF_ADDRESS
from meshlock.live.links.frames import (
    HANDSHAKE_LIMIT,
    LENGTH,
    VERSION,
    Beat,
    Carry,
    Frame,
    HelloFrame,
    Here,
    pack,
)
from meshlock.live.links.mesh import STORED_OF_EACH
from meshlock.live.links.refusals import LINES_PER_SECOND
from meshlock.live.links.security import Security, by_certificate, by_secret, unprotected
from meshlock.live.links.session import IN_FLIGHT
from waiting import LIMIT, run

pytest.importorskip("cryptography")
from meshlock.live.links.certificates import Authority

SECRET = "only the nodes know this"


@asynccontextmanager
async def two(**protection: str | Path) -> AsyncIterator[tuple[Node, Node]]:
    """Two good nodes that share; a stranger must not disturb them."""
    async with (
        Node("a", dead=LIMIT, **protection) as a,  # type: ignore[arg-type]
        Node("b", peers=[a.address], dead=LIMIT, **protection) as b,  # type: ignore[arg-type]
    ):
        a.pool("docks", permits=1)
        docks = b.pool("docks")
        await docks.acquire(timeout=LIMIT).__aenter__()
        yield a, b
        docks._source.adapter.clients[1].grant.release()  # type: ignore[union-attr]
        async with a.pool("docks").acquire(timeout=LIMIT):
            pass
        assert a.status()["links"]["b"]["up"]
        assert a.status()["links"]["b"]["generation"] == 1


@pytest.mark.parametrize("kind", ["other secret", "no certificate", "other authority"])
def test_whoever_cannot_prove_itself_is_never_read(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, foreign = Authority.new(), Authority.new()
    authority.save(tmp_path / "ca")
    for name in ("a", "b"):
        authority.issue(name).save(tmp_path / name)

    async def story() -> None:
        if kind == "other secret":
            protection: dict[str, str | Path] = {"secret": SECRET}
            security = by_secret("some other secret altogether", "b")
        else:
            protection = {"certificates": tmp_path}
            forged = tmp_path / "forged"
            foreign.save(forged)  # its ca.crt, where no node looks for it
            authority_file = forged.with_suffix(".ca")
            forged.with_suffix(".crt").rename(authority_file)
            foreign.issue("b").save(forged)
            security = by_certificate(
                authority_file, forged.with_suffix(".crt"), forged.with_suffix(".key")
            )
            assert security.client is not None
            security.client.load_verify_locations(tmp_path / "ca.crt")
        if kind == "no certificate":
            bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            bare.check_hostname = False
            bare.verify_mode = ssl.CERT_NONE
            security = Security(bare, bare)
        async with two(**protection) as (a, _):
            try:
                stranger = await Stranger.dial(a, security)
            except ssl.SSLError:
                return
            assert await stranger.gone()

    run(story)
    assert "TLS handshake failed" in lines(caplog)


def test_a_certificate_is_good_for_its_own_name_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        mallory = by_secret(SECRET, "mallory")
        async with two(secret=SECRET) as (a, _):
            stranger = await Stranger.dial(a, mallory)
            await stranger.joins("b")
            assert await stranger.gone()

    run(story)
    assert "it uses the name 'b', but its certificate names 'mallory'" in lines(caplog)


def test_a_second_process_with_the_name_of_a_living_one_is_turned_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with two() as (a, _):
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("b")
            assert await stranger.gone()

    run(story)
    assert "another process with the name 'b'" in lines(caplog)


FAULTS: dict[str, tuple[bytes, str]] = {
    "garbage": (b"GET / HTTP/1.1\r\n\r\n", "bytes; at most 4096 are allowed"),
    "a frame too long": (LENGTH.pack(HANDSHAKE_LIMIT + 1), "4097 bytes"),
    "nonsense": (LENGTH.pack(3) + b"abc", "an invalid frame"),
    "a message before the greeting": (pack(Beat(0)), "Beat out of turn"),
    "another version": (
        pack(HelloFrame(99, "x", 7, 0, 0, False, 0)),
        "protocol version 99, expected",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_greeting_ends_the_connection(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with two() as (a, _):
            stranger = await Stranger.dial(a, unprotected())
            stranger.writer.write(FAULTS[fault][0])
            assert await stranger.gone()

    run(story)
    assert FAULTS[fault][1] in lines(caplog)


LIES: dict[str, tuple[list[Frame], str]] = {
    "a gap": ([carried(2, "LINK")], "message 2 after 0"),
    "an acknowledgement of nothing": ([Beat(1000)], "acknowledgement of 1000"),
    "an unknown message": ([carried(1, "GIMME")], "an unknown message 'GIMME'"),
    "wrong fields": ([carried(1, "TOKEN", (1,))], "a TOKEN with wrong fields"),
    "no configuration": (
        [carried(1, "configuration", (1,))],
        "an invalid configuration",
    ),
    "a bad pool": ([carried(1, "LINK", pool="../etc")], "a message with an invalid pool name"),
    "a second greeting": ([HelloFrame(1, "x", 7, 0, 0, False, 0)], "Hello out of turn"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_peer_that_breaks_the_protocol_loses_its_link(
    lie: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with two() as (a, _):
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            identity = a._local.pools["docks"].adapter.identity
            stranger.says(
                *[
                    msgspec.structs.replace(frame, identity=identity)
                    if isinstance(frame, Carry)
                    else frame
                    for frame in LIES[lie][0]
                ]
            )
            assert await stranger.gone()

    run(story)
    assert LIES[lie][1] in lines(caplog)


def test_replayed_frames_are_not_let_through() -> None:
    async def story() -> None:
        async with two() as (a, _):
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            before = a._local.pools["docks"].adapter.measures.received
            stranger.says(*[carried(1, "LINK", pool="other")] * 50, Beat(0))
            while not a.status()["links"]["x"]["repeats_refused"]:
                await asyncio.sleep(0.01)
            assert a.status()["links"]["x"]["repeats_refused"] == 49
            assert a._local.pools["docks"].adapter.measures.received == before
            stranger.writer.close()

    run(story)


def test_half_open_connections_are_bounded_and_time_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with two() as (a, _):
            second = SimpleNamespace(monotonic=lambda: 7.0)
            monkeypatch.setattr("meshlock.live.links.refusals.time", second)
            strangers = [await Stranger.dial(a, unprotected()) for _ in range(2 * MOST_OF_ADDRESS)]
            await asyncio.gather(*[each.gone() for each in strangers[:MOST_OF_ADDRESS]])
            assert (
                len(a._local.mesh.admission.begun.all)
                == len(a._local.mesh.handshakes.open)
                == MOST_OF_ADDRESS
            )
            monkeypatch.setattr("meshlock.live.links.handshake.HANDSHAKE_SECONDS", 0.0)
            await asyncio.gather(*[stranger.gone() for stranger in strangers])
            assert not a._local.mesh.handshakes.open and not a._local.mesh.admission.begun.all
            assert a.status()["refused"] == 2 * MOST_OF_ADDRESS

    caplog.set_level(logging.WARNING)
    run(story)
    assert "too many handshakes at once" in lines(caplog)
    # a flood of peers is no flood of lines
    assert len(lines(caplog).split(" | ")) == LINES_PER_SECOND
    assert len(caplog.records) < 60


def test_a_flood_of_messages_is_read_but_not_kept() -> None:
    async def story() -> None:
        async with two() as (a, _):
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            junk = (b"x" * 1000,)
            for number in range(1, 30_001):
                stranger.says(carried(number, "LINK", junk, pool="heap"))
            assert await stranger.gone()
            kept = [frame for _, frame in a._local.pools["heap"].peers.early]
            assert 100_000 < sum(len(frame.payload) for frame in kept) <= STORED_OF_EACH

    run(story)


def test_a_peer_that_never_reads_costs_bounded_memory_and_its_link(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with two() as (a, _):
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            mesh = a._local._mesh
            assert mesh is not None and "x" in mesh.linked
            for _ in range(IN_FLIGHT + 100):
                mesh.send("x", content("LINK", (b"y" * 1000,)))
                mesh.flush()
            await asyncio.sleep(0)
            assert "x" not in mesh.linked and "b" in mesh.linked
            assert not mesh.sessions["x"].waiting
            stranger.writer.close()

    run(story)
    assert "x has not acknowledged 8192 messages" in lines(caplog)


def test_what_was_kept_for_a_process_that_died_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with two() as (a, _):
            first = await Stranger.dial(a, unprotected())
            await first.joins("x")
            await first.hears()
            mesh = a._local._mesh
            assert mesh is not None
            mesh.send("x", content("TOKEN"), custody=True)
            first.writer.close()
            while "x" in mesh.open:
                await asyncio.sleep(0.01)
            again = await Stranger.dial(a, unprotected())
            assert isinstance(await again.hears(), Here)
            again.says(HelloFrame(VERSION, "x", 8, 0, 0, False, 0))  # another boot
            await again.hears()
            again.writer.close()

    run(story)
    assert [vars(record).get("happened") for record in caplog.records].count(
        "permits in doubt"
    ) == 1


def test_a_secret_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(Refused, match="too short, so it can be guessed: use 16 characters"):
        by_secret("swordfish", "a")


def test_links_without_protection_stay_on_this_machine() -> None:
    async def story() -> None:
        with pytest.raises(Refused, match="only allowed on this machine"):
            await Node("a", listen="0.0.0.0:0").start()

    run(story)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=5), st.booleans())
def test_no_bytes_whatever_harm_a_node(chunks: list[bytes], greeted: bool) -> None:
    """The handshake under a fuzzer: each run is one connection with arbitrary bytes."""

    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            stranger = await Stranger.dial(a, unprotected())
            if greeted:
                await stranger.joins("x")
            for chunk in chunks:
                stranger.writer.write(chunk)
            stranger.writer.write_eof()
            await stranger.gone()
            async with a.pool("docks", permits=1).acquire(timeout=LIMIT):
                pass

    run(story)
