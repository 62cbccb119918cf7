"""Nothing grows without a bound: HTTP bodies, pools, traces, what is kept for a trace."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
import virtual
from lines import line
from strangers import Stranger, carried, content, lines

import meshlock
from meshlock import Node, Refused
from meshlock.live.interfaces.async_client import Line
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.serving import serving_port, serving_socket
from meshlock.live.links.frames import Bye
from meshlock.live.links.security import unprotected
from meshlock.live.machine import limits
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace
from ports import free_port
from waiting import LIMIT, eventually, run

SMALL = int(limits.TRACE_LIMIT.least)
LEAVING = 1
"""Who stays calls for the token of who leaves, as if for a client."""


# -- bodies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("announced", [True, False])
def test_a_long_body_is_refused_before_it_is_read(announced: bool) -> None:
    async def story() -> None:
        port = free_port()
        async with Node("a") as a, serving_port(Interface(a), f"127.0.0.1:{port}", None):
            a.pool("docks", permits=1)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            size = f"Content-Length: {10**12}" if announced else "Transfer-Encoding: chunked"
            head = f"POST /v1/pools/docks/acquire HTTP/1.1\r\nHost: localhost\r\n{size}\r\n\r\n"
            writer.write(head.encode())
            answer = asyncio.ensure_future(reader.readuntil(b"}"))
            piece = b"x" * 10_000
            while not announced and not answer.done():
                writer.write(b"2710\r\n" + piece + b"\r\n")
                await asyncio.wait([answer], timeout=0.001)
            status, _, body = (await answer).partition(b"\r\n\r\n")
            writer.close()
            assert status.startswith(b"HTTP/1.1 413 ")
            assert json.loads(body)["why"] == (
                "The body of this request is too long: use 0 to 65,536 bytes."
            )

    run(story)


# -- pools -----------------------------------------------------------------------------------


def test_a_program_that_makes_too_many_pools_is_told() -> None:
    async def story() -> None:
        async with Node("a", most_pools=3) as a:
            for name in ("x", "y", "z", "x"):
                a.pool(name, permits=1)
            with pytest.raises(
                Refused, match="Cannot add the pool 'more': this node has 3 pools already"
            ):
                a.pool("more", permits=1)
            async with a.pool("z").acquire():
                pass

    run(story)


def test_peers_cannot_use_up_the_pools_of_a_node(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with (
            Node("a", dead=LIMIT, most_pools=3) as a,
            Node("b", peers=[a.address], dead=LIMIT) as b,
        ):
            docks = a.pool("docks", permits=1)
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            names = [f"pool-{number}" for number in range(100)]
            stranger.says(
                *[carried(number, "LINK", pool=name) for number, name in enumerate(names, 1)],
            )
            while a._local.mesh.sessions["x"].received < 100:
                await asyncio.sleep(0.001)
            assert set(a._local.pools) == {"docks", *names[:3]}
            assert "x" in a._local.mesh.linked  # it may not know how many we have
            a.pool("own", permits=1)  # there is room for ours
            async with b.pool("docks").acquire():
                pass
            stranger.says(Bye())
            while len(a._local.pools) > 2:  # nobody could say what they are
                await asyncio.sleep(0.001)
            async with docks.acquire():
                pass

    run(story)
    assert "its pool 'pool-3' exceeds the limit of 3 pools of others" in lines(caplog)


def test_a_pool_that_a_distant_node_spoke_of_is_forgotten_when_it_is_unreachable() -> None:
    """Unless it sent something in custody: it believes that this has arrived."""

    async def story(network: virtual.Network) -> None:
        async with line(network, "abc") as (nodes, wires):
            a, c = nodes["a"], nodes["c"]
            await eventually(lambda: c._local.mesh.link_map.reaches("a"))
            c._local.mesh.router.send("a", content("LINK", pool="spoken-of"))
            c._local.mesh.send("a", content("LINK", pool="in-custody"), custody=True)
            c._local.mesh.flush()
            await eventually(lambda: set(a._local.pools) == {"spoken-of", "in-custody"})
            wires[1].cut()
            await eventually(lambda: not a._local.mesh.link_map.reaches("c"))
            await eventually(lambda: set(a._local.pools) == {"in-custody"})
            assert "spoken-of" not in a._local.mesh.receivers

    virtual.run(story)


def test_a_pool_that_nobody_knows_is_forgotten_with_the_last_request_for_it(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        place = str(tmp_path / "socket")
        async with Node("a", trace=tmp_path) as a, serving_socket(Interface(a), place):

            async def asks(pool: str) -> tuple[int, bytes]:
                line = await Line(place).open()
                return await line.call("POST", f"/v1/pools/{pool}/acquire", '{"timeout": 0.001}')

            why = " within 0.001 s: no neighbour has announced it yet."
            names = [f"pool-{number % 40}" for number in range(50)]
            answers = await asyncio.gather(*map(asks, names))
            for name, (status, said) in zip(names, answers, strict=True):
                answer = json.loads(said)
                assert status == 409 and answer["timed_out"]  # a neighbour may yet tell of it
                assert answer["why"] == f"No permits of {name}{why}"
            assert a._local.pools == {}
            a.pool("kept")  # a program of this process has it, and waits for its founder
            status, said = await asks("kept")
            timed_out = {"why": f"No permits of kept{why}", "timed_out": True}
            assert (status, json.loads(said)) == (409, timed_out)
            assert set(a._local.pools) == {"kept"}

    run(story)
    assert list(tmp_path.glob("*.jsonl")) == []


# -- traces ----------------------------------------------------------------------------------


def traced(
    folder: Path, parts: int, entries: int, members: list[str], began: float = virtual.FIRST_MOMENT
) -> int:
    """Enter until each trace has these parts, and some times more; the result is how often."""
    entered = 0

    async def story() -> None:
        nonlocal entered
        async with (
            Node("a", trace=folder, trace_limit=SMALL) as a,
            Node("b", trace=folder, trace_limit=SMALL, peers=[a.address]) as b,
        ):
            if members:
                pools = [node.pool("docks", 1, members=members) for node in (a, b)]
            else:
                pools = [a.pool("docks", permits=1), b.pool("docks")]
            recordings = [
                pool._source.adapter.recording
                for pool in pools
                if pool._source.adapter.recording is not None
            ]
            more = entries
            while more:
                more -= min(recording.part for recording in recordings) >= parts
                for pool in pools:
                    async with pool.acquire():
                        entered += 1
            for recording in recordings:
                assert len(recording.until) <= 1 and len(recording.writer.wants) <= 1

    virtual.run(lambda _: story(), began=began)
    return entered


@pytest.mark.parametrize("members", [[], ["a", "b"]])
def test_a_trace_in_two_parts_is_judged_as_one(tmp_path: Path, members: list[str]) -> None:
    entered = traced(tmp_path, 2, 1, members)
    assert (tmp_path / "docks.a.jsonl.1").exists()
    assert entered <= judged(tmp_path) <= entered + LEAVING


def judged(folder: Path) -> int:
    """How many entries there are in the traces of all nodes; nothing is wrong with them."""
    with (folder / "merged").open("wb") as file:
        merge(folder.glob("docks.*.jsonl"), file, ended=False)
    verdict = Audit(Trace(folder / "merged"))
    assert verdict.monitor.violated == {}
    return verdict.entries


@pytest.mark.parametrize("members", [[], ["a", "b"]])
def test_a_trace_never_becomes_longer_than_its_limit(tmp_path: Path, members: list[str]) -> None:
    traced(tmp_path, 4, 1, members)
    for name in "ab":
        parts = list(tmp_path.glob(f"docks.{name}.jsonl*"))
        assert len(parts) == 2
        assert SMALL * 0.4 < sum(path.stat().st_size for path in parts) <= SMALL
    for path in tmp_path.glob("docks.*.jsonl"):
        setup = json.loads(path.read_bytes().partition(b"\n")[0])
        assert setup["meshlock"] == "trace" and setup["part"] > 2
    with pytest.raises(Refused, match=r"begins with part \d+: its beginning was dropped"):
        judged(tmp_path)


def test_a_member_that_restarts_goes_on_with_its_part_of_the_trace(tmp_path: Path) -> None:
    lives = [(2, 1, 1000.0), (2, 20, 2000.0), (2, 20, 3000.0)]
    entered = sum(traced(tmp_path, parts, more, ["a", "b"], began) for parts, more, began in lives)
    assert entered <= judged(tmp_path) <= entered + LEAVING * len(lives)
    (tmp_path / "docks.a.jsonl.1").unlink()
    with pytest.raises(Refused, match=r"is part 2 of a trace: put docks.a.jsonl.1 beside it"):
        judged(tmp_path)


def test_a_trace_limit_out_of_range_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="trace-limit 5 is out of range: use 100,000 to "):
        meshlock.Node("a", trace=tmp_path, trace_limit=5)
