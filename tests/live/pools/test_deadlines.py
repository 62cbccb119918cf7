"""Deadlines: one order with priorities, raised as they come closer, counted as met or missed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
import virtual
from hypothesis import given
from hypothesis import strategies as st
from virtual import Network

from meshlock import Node, NotInTime, Refused
from meshlock.algorithms.steps import LEVELS, SHORTEST, level, time_on_level, urgency
from meshlock.live.machine import limits
from meshlock.live.pools.grants import LATEST, Acquire, Pool
from meshlock.simulate.rerun import with_states
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace

NAMES = ["a", "b", "c"]
POOLS: dict[str, dict[str, Any]] = {
    "direct": {"members": NAMES, "lease": 3.0},
    "jiang": {"members": NAMES, "lease": 3.0, "algorithm": "jiang"},
    "jiang, no leases": {"recovery": "none"},
}

lefts = st.floats(-1e6, LATEST)
steps = st.integers(2, 1_000_000)

# -- what a request counts for -----------------------------------------------------------------


@given(st.integers(-(2**31), 2**31 - 1), lefts, steps)
def test_a_deadline_counts_for_something_and_for_less_than_a_step(
    priority: int, left: float, step: int
) -> None:
    without = urgency(priority, None, step)
    assert without < urgency(priority, left, step) < urgency(priority + 1, None, step)
    assert limits.URGENCY.least <= without <= limits.URGENCY.most


@given(lefts, lefts)
def test_the_closer_deadline_counts_for_more_if_a_sixth_less_time_is_left(
    one: float, other: float
) -> None:
    sooner, later = sorted([one, other])
    assert level(sooner) >= level(later)
    if max(sooner, SHORTEST) * 1.15 < later < 80_000:
        assert level(sooner) > level(later)


@given(st.floats(SHORTEST * 1.001, LATEST))
def test_a_deadline_rises_by_one_level_at_a_time(left: float) -> None:
    pause = time_on_level(left)
    assert 0.0 < pause < inf
    assert level(left - pause * 0.999) == level(left)
    assert level(left - pause) == level(left) + 1


def test_there_is_room_for_every_deadline() -> None:
    assert level(LATEST) == 1 and limits.DEADLINE.most == LATEST
    assert [level(left) for left in (SHORTEST, 0.0, -1e9)] == [LEVELS] * 3
    assert time_on_level(-5.0) == inf
    assert urgency(3, 1.0, 1) == 3  # less than the shortest step there is nothing


def test_the_page_says_what_deadlines_count_for() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "deadlines.md").read_text()
    rows = re.findall(r"(?m)^\| ([^|]+) \| (\d+) \|$", page)
    left = [80_000.0, 3600.0, 60.0, 10.0, 1.0, 0.1]
    assert [int(counts) for _, counts in rows] == [urgency(0, one, 100) for one in left]
    assert level(60.0) + 13 == level(10.0) and level(22 * 3600.0) == 1


# -- the order of requests ---------------------------------------------------------------------


@asynccontextmanager
async def linked(
    settings: dict[str, Any], trace: Path | None = None, permits: int = 1
) -> AsyncIterator[list[Pool]]:
    """The pool at three nodes; it is known to all."""
    nodes: list[Node] = []
    for name in NAMES:
        peers = [node.address for node in nodes]
        nodes.append(Node(name, peers=peers, min_links=0, trace=trace))
        await nodes[-1].start()
        founding = len(nodes) == 1 or "lease" in settings
        nodes[-1].pool("docks", permits if founding else None, **settings)
    for node in nodes:
        await node._local.pools["docks"].introduced()
    yield [node.pool("docks") for node in nodes]
    for node in nodes:
        await node._local.vanish()


def told(
    settings: dict[str, Any],
    story: Callable[[list[Pool]], Awaitable[None]],
    trace: Path | None = None,
    permits: int = 1,
) -> None:
    async def whole(_: Network) -> None:
        async with linked(settings, trace, permits) as pools:
            await story(pools)

    virtual.run(whole)


async def passes(seconds: float) -> None:
    """Virtual time."""
    await asyncio.sleep(seconds)


class Served:
    """Requests, and the order in which they enter."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.met: dict[str, bool | None] = {}

    async def enter(self, name: str, request: Acquire) -> None:
        async with request as grant:
            self.order.append(name)
            self.met[name] = grant.met

    def ask(self, name: str, request: Acquire) -> Acquire:
        self.tasks.append(asyncio.create_task(self.enter(name, request)))
        return request

    async def everyone(self) -> list[str]:
        await asyncio.gather(*self.tasks)
        return self.order


@pytest.mark.parametrize("kind", POOLS)
def test_priority_decides_then_the_deadline_then_who_came_first(kind: str) -> None:
    async def story(pools: list[Pool]) -> None:
        held, served = await pools[0].acquire(), Served()
        for name, place, priority, deadline in [
            ("first without", 1, 0, None),
            ("second without", 1, 0, None),
            ("in an hour", 2, 0, 3600.0),
            ("in 10 s", 0, 0, 10.0),
            ("low, at once", 1, -1, 0.1),
            ("in 12 s", 2, 0, 12.0),
            ("higher", 0, 1, None),
            ("higher, in a minute", 1, 1, 60.0),
        ]:
            served.ask(name, pools[place].acquire(priority=priority, deadline=deadline))
            await passes(0.05)
        held.release()
        assert await served.everyone() == [
            *("higher, in a minute", "higher"),
            *("in 10 s", "in 12 s", "in an hour", "first without", "second without"),
            "low, at once",
        ]

    told(POOLS[kind], story)


@pytest.mark.parametrize("kind", POOLS)
def test_a_request_rises_as_its_deadline_comes_closer(kind: str) -> None:
    """The later one has less time left when it asks than the earlier one had then."""

    async def story(pools: list[Pool]) -> None:
        held, served = await pools[0].acquire(), Served()
        served.ask("due after 60", pools[1].acquire(deadline=60.0))
        await passes(50.0)
        served.ask("due after 80", pools[2].acquire(deadline=30.0))
        await passes(1.0)
        held.release()
        assert await served.everyone() == ["due after 60", "due after 80"]

    told(POOLS[kind], story)


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("permits", [1, 2])
@pytest.mark.parametrize(("low", "high"), [((0, None), (0, 1.0)), ((0, 1.0), (1, None))])
def test_nobody_starves(
    kind: str, permits: int, low: tuple[int, float | None], high: tuple[int, float | None]
) -> None:
    """A client that waits goes before requests that are a step more urgent after 100 grants, also
    where more urgent ones of its node wait all the time."""
    clients = 4

    async def story(pools: list[Pool]) -> None:
        passed: list[int] = []
        waits: list[asyncio.Task[None]] = []
        grants = 0

        async def patient(pool: Pool) -> None:
            before = grants
            async with pool.acquire(priority=low[0], deadline=low[1]):
                passed.append(grants - before)

        async def greedy(pool: Pool) -> None:
            nonlocal grants
            while len(passed) < len(pools) and grants < 1000:
                async with pool.acquire(priority=high[0], deadline=high[1]):
                    grants += 1
                    if grants == 20:
                        waits.extend([asyncio.create_task(patient(pool)) for pool in pools])
                    await passes(0.02)

        await asyncio.gather(*[greedy(pool) for pool in pools for _ in range(clients)])
        await asyncio.gather(*waits)
        assert max(passed) <= 100 + 4 * clients * len(pools)

    told(POOLS[kind], story, permits=permits)


# -- met and missed ----------------------------------------------------------------------------


def test_deadlines_are_counted_as_met_or_missed() -> None:
    async def story(pools: list[Pool]) -> None:
        pool = pools[0]
        held, served = await pool.acquire(), Served()
        served.ask("soon", pool.acquire(deadline=1.0))
        served.ask("later", pool.acquire(deadline=30.0))
        served.ask("none", pool.acquire())
        with pytest.raises(NotInTime):
            await pool.acquire(deadline=1.0, timeout=2.0)  # gives up after its deadline
        with pytest.raises(NotInTime):
            await pool.acquire(deadline=9.0, timeout=2.0)  # before it: neither nor
        shown = pool._source.describe()
        assert [one["deadline"] and round(one["deadline"]) for one in shown["waiting"]] == [
            *(-3, 26, None),
        ]
        assert [one["priority"] for one in shown["waiting"]] == [0, 0, 0]
        held.release()
        assert await served.everyone() == ["soon", "later", "none"]
        assert served.met == {"soon": False, "later": True, "none": None}
        assert held.met is None
        shown = pool._source.describe()
        assert (shown["deadlines_met"], shown["deadlines_missed"]) == (1, 2)

    told(POOLS["direct"], story)


def test_the_picture_shows_deadlines_and_sorts_by_them() -> None:
    async def story(pools: list[Pool]) -> None:
        held, served = await pools[0].acquire(), Served()
        served.ask("none", pools[1].acquire(label="none"))
        served.ask("late", pools[1].acquire(label="late", deadline=99.0))
        served.ask("early", pools[2].acquire(label="early", deadline=9.0))
        served.ask("high", pools[2].acquire(label="high", priority=2))
        await passes(1.0)
        waiting = (await pools[0].picture())["waiting"]
        assert [one["label"] for one in waiting] == ["high", "early", "late", "none"]
        assert [one["priority"] for one in waiting] == [2, 0, 0, 0]
        left = [one["deadline"] for one in waiting]
        assert left[0] is left[3] is None and 7.9 < left[1] < 8.1 and 97.9 < left[2] < 98.1
        with pytest.raises(NotInTime, match="2 requests ahead of you"):
            await pools[0].acquire(deadline=50.0, timeout=1.0)
        held.release()
        await served.everyone()

    told(POOLS["direct"], story)


# -- changes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", POOLS)
def test_a_waiting_request_is_changed_and_the_answer_says_so(kind: str) -> None:
    async def story(pools: list[Pool]) -> None:
        held, served = await pools[0].acquire(), Served()
        first = served.ask("first", pools[1].acquire(deadline=20.0))
        second = served.ask("second", pools[2].acquire(deadline=40.0))
        third = pools[2].acquire(priority=-1)
        assert await third.change(priority=-2)  # it does not wait yet
        served.ask("third", third)
        await passes(0.5)
        assert await second.change(deadline=5.0)
        assert 4.9 < (second.deadline or 0.0) <= 5.0
        assert await third.change(priority=3, deadline=900.0)
        assert (third.priority, first.priority) == (3, 0)
        await passes(0.5)
        held.release()
        assert await served.everyone() == ["third", "second", "first"]
        assert not await first.change(priority=7)
        assert first.priority == 0
        with pytest.raises(Refused, match="deadline"):
            await first.change(deadline=-1.0)

    told(POOLS[kind], story)


def test_a_change_that_the_algorithm_cannot_make_is_refused_in_a_sentence() -> None:
    async def story(pools: list[Pool]) -> None:
        held, served = await pools[0].acquire(), Served()
        sent = served.ask("sent", pools[1].acquire(priority=2))
        behind = served.ask("behind", pools[1].acquire())
        last = served.ask("last", pools[1].acquire())
        await passes(0.5)
        with pytest.raises(Refused, match="keeps priority 2: naimi-trehel cannot change a request"):
            await sent.change(priority=9)
        assert sent.priority == 2
        assert await last.change(priority=5)  # it has not left its node yet
        await passes(0.5)
        held.release()
        assert await served.everyone() == ["sent", "last", "behind"]
        assert behind.priority == 0

    told({"recovery": "none", "algorithm": "naimi-trehel", "members": NAMES}, story)


# -- traces ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", POOLS)
def test_a_trace_says_priorities_deadlines_and_changes_and_is_judged_by_them(
    kind: str, tmp_path: Path
) -> None:
    async def story(pools: list[Pool]) -> None:
        held, served = await pools[0].acquire(), Served()
        served.ask("none", pools[1].acquire(priority=1))
        asks = served.ask("due", pools[2].acquire(priority=1, deadline=8.0))
        await passes(0.3)
        assert await asks.change(priority=2)
        await passes(0.3)
        held.release()
        await served.everyone()

    told(POOLS[kind], story, tmp_path)
    merged = tmp_path / "merged.jsonl"
    with merged.open("wb") as file:
        merge([tmp_path / f"docks.{name}.jsonl" for name in NAMES], file, ended=True)
    setup, *lines = [json.loads(line) for line in merged.read_text().splitlines()]
    with_deadline = [one for one in lines if one.get("deadline") is not None]
    assert with_deadline[0]["event"] == "request"
    assert with_deadline[0]["priority"] == 1 and with_deadline[0]["urgency"] == 1.67
    changed = [one for one in with_deadline if one["event"] == "priority"]
    assert {one["priority"] for one in changed} == {2}
    assert all(2.67 <= one["urgency"] < 3 for one in changed)
    asked = [one for one in lines if one["event"] == "request"]
    assert {one["priority"] for one in asked} == {0, 1}
    audit = Audit(Trace(merged))
    assert audit.monitor.violated == {} and audit.entries == 3
    if kind == "jiang, no leases":
        encoded = [msgspec.json.encode(line) + b"\n" for line in lines]
        assert with_states(setup, encoded) is not None


def test_the_audit_notices_a_request_served_before_an_earlier_deadline(tmp_path: Path) -> None:
    setup = {
        "meshlock": "trace",
        "format": 1,
        "nodes": 1,
        "permits": 1,
        "holder": 0,
        "ordered": True,
        "balanced": False,
        "ageing": 0.0,
    }

    def ask(client: int, **more: float) -> dict[str, Any]:
        return {"event": "request", "client": client, "want": 1, "priority": 0, **more}

    events: list[dict[str, Any]] = [
        *(ask(1), {"event": "enter", "client": 1, "want": 1}),
        *(ask(2, deadline=60.0, urgency=0.52), ask(3, deadline=1.0, urgency=0.82)),
        {"event": "leave", "client": 1},
        {"event": "enter", "client": 2, "want": 1},
    ]
    whole = [setup, *[{"t": float(t), "node": 0, **one} for t, one in enumerate(events)]]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in whole))
    assert "order" in Audit(Trace(path)).monitor.violated
    events[-1]["client"] = 3
    whole = [setup, *[{"t": float(t), "node": 0, **one} for t, one in enumerate(events)]]
    path.write_text("".join(json.dumps(line) + "\n" for line in whole))
    assert Audit(Trace(path)).monitor.violated == {}
