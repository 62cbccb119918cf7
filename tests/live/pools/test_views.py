"""What others hold and wait for is asked only while somebody looks, and is as old as it says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import count

import msgspec
import pytest
import virtual
from lines import line
from strangers import Stranger, enveloped, lines, routed

from meshlock import Node, Refused
from meshlock.live.links import session
from meshlock.live.links.frames import (
    FRAME_LIMIT,
    Envelope,
    Frame,
    LinksFrame,
    RoutedFrame,
    unsealed,
)
from meshlock.live.links.link import Splitter
from meshlock.live.links.security import unprotected
from meshlock.live.pools import views
from meshlock.live.pools.views import ANSWERS_PER_SECOND, ASK, VIEW, VIEWS, View, brief
from waiting import LIMIT, a_while, eventually, run


def asks(who: str, whom: str, question: int) -> Envelope:
    return enveloped((who, whom), routed(ASK, (question, "docks"), VIEWS), question + 1)


def answers(who: str, whom: str, question: int, view: bytes, pool: str = "docks") -> Envelope:
    message = routed(VIEW, (question, pool, view), VIEWS)
    return enveloped((who, whom), message, next(SERIALS))


SERIALS = count(1)


@pytest.fixture
def travelling(monkeypatch: pytest.MonkeyPatch) -> list[Frame]:
    """All questions and answers that any node reads."""
    if not str(session.__file__).endswith(".py"):
        pytest.skip("looks into what is compiled")
    seen: list[Frame] = []
    plain = Splitter.feed

    def noted(self: Splitter, data: bytes) -> Iterator[Frame]:
        for frame in plain(self, data):
            if isinstance(frame, RoutedFrame | Envelope):
                seen.append(unsealed(frame.content) if isinstance(frame, Envelope) else frame)
            yield frame

    monkeypatch.setattr(Splitter, "feed", noted)
    return seen


def test_all_tell_the_one_who_looks_and_nothing_travels_when_nobody_does(
    travelling: list[Frame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "EVERY", 0.2)

    async def story(network: virtual.Network) -> None:
        async with line(network) as (nodes, wires):
            nodes["a"].pool("docks", permits=3, recovery="none")  # whose nodes are silent
            far = nodes["d"].pool("docks")
            held = await far.acquire(2, priority=7, timeout=LIMIT)
            asks = asyncio.ensure_future(nodes["c"].pool("docks").acquire(2, priority=4))
            here = nodes["a"]._local.views
            await a_while(0.1)
            assert travelling == []

            assert here.watch("docks") == {}
            await eventually(lambda: set(here.watch("docks")) == {"b", "c", "d"})
            age, news = here.watch("docks")["d"]
            assert 0 < age < 0.5
            fence = str(held.fence)
            assert (news.held, news.holding[0]["fence"], news.holding[0]["lease"]) == (
                2,
                fence,
                None,
            )
            assert here.watch("docks")["c"][1].waiting[0]["priority"] == 4
            holders = [name for name in "bcd" if here.watch("docks")[name][1].token_here]
            assert holders == ["c"]  # where the next one waits
            assert [here.watch("docks")[name][1].towards for name in "bd"] == ["c", "c"]
            first = [f for f in travelling if msgspec.msgpack.decode(f.payload)[0] in (1, 2, 3)]
            # b is one link away, c two, d three: there and back
            assert [f.kind for f in first].count(ASK) == 6
            assert [f.kind for f in first].count(VIEW) == 6

            wires[2].cut()
            await eventually(lambda: here.watch("docks")["d"][0] > 0.8)
            assert here.watch("docks")["d"][1].held == 2  # as told then
            assert here.watch("docks")["c"][0] < 0.5
            asks.cancel()
            await a_while(0.9)
            before = len(travelling)
            await a_while(0.5)
            assert len(travelling) == before

    virtual.run(story)


def test_a_node_without_the_pool_says_so() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            await eventually(lambda: b._local.mesh.link_map.reaches("a"))
            a._local.views.watch("nothing")
            await eventually(lambda: "b" in a._local.views.watch("nothing"))
            said = View(False, "this node does not know it")
            assert a._local.views.watch("nothing")["b"][1] == said

    run(story)


def test_who_asks_all_the_time_is_answered_some_of_the_time(travelling: list[Frame]) -> None:
    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(LinksFrame("x", 7, 1, ("a",)))
            await eventually(lambda: a._local.mesh.link_map.reaches("x"))
            sent: list[Frame] = []
            a._local.mesh.router.send = lambda target, content: sent.append(content)  # type: ignore
            loop = asyncio.get_running_loop()
            began = loop.time()
            stranger.says(*[asks("x", "a", number) for number in range(500)])
            await eventually(lambda: len(travelling) == 500)
            most = 1 + (1 + loop.time() - began) * ANSWERS_PER_SECOND
            assert 1 <= len(sent) <= most
            stranger.writer.close()

    run(story)


def test_answers_to_nobody_from_nobody_or_without_sense_are_not_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            a.pool("docks", permits=1)
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(LinksFrame("x", 7, 1, ("a",)))
            await eventually(lambda: a._local.mesh.link_map.reaches("x"))
            a._local.views.watch("docks")
            await eventually(lambda: a._local.views.questions.asked)
            good = msgspec.msgpack.encode(View(True, permits=9))
            number = a._local.views.questions.last
            stranger.says(
                answers("x", "a", number + 7, good),  # never asked
                answers("x", "a", number, good, "other"),  # something else
                answers("ghost", "a", number, good),  # by nobody
                answers("a", "a", number, good),  # by ourselves
                answers("x", "ghost", number, good),  # for nobody
                asks("x", "ghost", 1),  # of nobody
                answers("x", "a", number, b"\xc1"),
                answers("x", "a", number, msgspec.msgpack.encode({"known": "<b>"})),
                answers("x", "a", number, msgspec.msgpack.encode([[]] * 5000)),
            )
            await eventually(lambda: a._local.mesh.refusals.total == 3)
            assert a._local.views.watch("docks") == {}
            stranger.says(answers("x", "a", number, good))
            await eventually(lambda: "x" in a._local.views.watch("docks"))
            assert "x" in a._local.mesh.linked
            stranger.writer.close()

    run(story)
    assert "it sent an invalid view" in lines(caplog)


def test_what_goes_round_in_circles_ends(travelling: list[Frame]) -> None:
    """Two liars make a believe that the way to z leads over x, and x sends all of it back."""

    async def story() -> None:
        async with Node("a", dead=LIMIT) as a:
            stranger = await Stranger.dial(a, unprotected())
            await stranger.joins("x")
            await stranger.hears()
            stranger.says(LinksFrame("x", 7, 1, ("a", "z")), LinksFrame("z", 7, 1, ("x",)))
            await eventually(lambda: a._local.mesh.link_map.reaches("z"))
            sent: list[int] = []
            frame: Envelope = asks("x", "z", 1)
            while True:
                pending = a._local.mesh.open["x"].pending
                pending.clear()
                a._local.mesh.router.arrives("x", frame)
                if not pending:
                    break
                [frame] = Splitter(FRAME_LIMIT).feed(pending[0])  # type: ignore[misc]
                sent.append(frame.hops)
            assert sent == [3, 2, 1, 0]
            stranger.writer.close()

    run(story)


def test_a_view_always_fits_however_many_wait_and_whatever_they_want() -> None:
    async def story() -> None:
        async with Node("a") as a:
            docks = a.pool("docks", permits=1)
            await docks.acquire()
            asks = [asyncio.ensure_future(docks.acquire(1, priority=n)) for n in range(300)]
            await eventually(lambda: len(docks._source.adapter.clients) == 301)
            said = brief(a._local.pools["docks"])
            assert said.waits == 300
            assert [one["priority"] for one in said.waiting] == list(range(299, 279, -1))
            assert len(views.packed(said)) < 4096
            said.waiting[0]["label"] = "because " * views.MOST_BYTES
            told = msgspec.msgpack.decode(views.packed(said), type=views.View)
            assert (told.waits, told.waiting) == (300, [])
            for task in asks:
                task.cancel()

    run(story)


def test_leases_epochs_and_unreachable_nodes_are_shown_where_a_pool_has_them() -> None:
    async def story() -> None:
        async with Node("a") as a:
            docks = a.pool("docks", permits=1)
            async with docks.acquire():
                [held] = docks._source.describe()["holding"]
            plain = docks._source.describe()
            more = {
                "holding": [held | {"fence": 3 << 32 | 17, "lease": 2.5}],
                "epoch": 3,
                "unreachable": ["c"],
                "why": "no majority",
            }
            docks._source.describe = lambda: plain | more  # type: ignore[method-assign]
            said = brief(a._local.pools["docks"])
            assert (said.holding[0]["fence"], said.holding[0]["lease"]) == (str(3 << 32 | 17), 2.5)
            assert (said.epoch, said.unreachable, said.why) == ("3", ["c"], "no majority")

    run(story)


def test_a_link_can_be_cut_on_purpose_and_comes_back() -> None:
    async def story(_: virtual.Network) -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            await eventually(lambda: b._local.mesh.link_map.reaches("a"))
            with pytest.raises(Refused, match="no link to 'z'"):
                a._local.mesh.cut("z", 5)
            b._local.mesh.cut("a", 60)  # by the one who dials
            assert b.status()["links"]["a"]["up"] is False
            assert 59 < b.status()["links"]["a"]["cut_for"] <= 60
            await eventually(lambda: not a._local.mesh.link_map.reaches("b"))
            await a_while(0.3)
            assert not b._local.mesh.linked and not a._local.mesh.linked
            b._local.mesh.restore("a")
            await eventually(lambda: a._local.mesh.link_map.reaches("b"))
            a._local.mesh.cut("b", 0.8)  # by the one who is dialled, and for a while
            await eventually(lambda: not b._local.mesh.link_map.reaches("a"))
            assert await eventually(lambda: b._local.mesh.link_map.reaches("a")) > 0.1
            assert a.status()["links"]["b"]["cut_for"] is None

    virtual.run(story)
