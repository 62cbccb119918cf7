"""What a run promises is decided once, and everybody judges by it."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest

from meshlock.algorithms.registry import ALGORITHMS, find, with_defaults
from meshlock.check.arguments import judged, setup
from meshlock.check.retold import write_trace
from meshlock.check.setup import SetUp
from meshlock.check.verdict import Checking
from meshlock.live.interfaces.node import Node
from meshlock.live.pools.grants import Pool
from meshlock.properties.promises import promises
from meshlock.simulate.player import Player
from meshlock.simulate.scenario import Scenario
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace
from meshlock.trace.writer import TraceWriter
from waiting import LIMIT

BACKFILL = {"backfill": "on"}

OVERTAKING = """
nodes 3
links 0-1 0-2
permits 2
option backfill=on
request 0 want 1 priority 9
request 0 want 1 priority 9
request 1 want 2 priority 5
settle
leave 0
request 2 want 1 priority 1
settle
finish
"""


def overtaking(**options: str) -> SetUp:
    """A large request waits for permits, and a small one of lower priority would fit."""
    return setup(
        algorithm="jiang",
        nodes=3,
        topology="star",
        permits=2,
        requests=["0:1@9", "0:1@9", "1:2@5", "2:1@1"],
        changes=[],
        flips=0,
        links="fifo",
        failures="drain",
        clients=2,
        repeat=False,
        options=options,
    )


def explored(what: SetUp) -> Checking:
    checking = Checking(what, judged([]), 100_000)
    while checking.run(10_000):
        pass
    return checking


def judge(path: Path) -> Audit:
    return Audit(Trace(path))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_order_is_promised_by_who_keeps_priorities(name: str) -> None:
    entry = find(name)
    promised = promises(entry, with_defaults(entry, {}))
    assert promised.ordered == entry.serves.priorities
    assert promised.balanced == entry.serves.token
    assert promised.ageing == (0.01 if "ageing" in entry.options else 0.0)


def test_backfill_gives_order_up_and_patience_says_how_much_waiting_counts() -> None:
    jiang = find("jiang")
    assert not promises(jiang, with_defaults(jiang, BACKFILL)).ordered
    assert promises(jiang, with_defaults(jiang, {"patience": "4"})).ageing == 0.25
    assert promises(jiang, with_defaults(jiang, {"ageing": "none"})).ageing == 0.0


def test_the_checker_does_not_judge_order_with_backfill() -> None:
    filled = explored(overtaking(**BACKFILL))
    assert filled.holds()
    assert filled.summary() == (
        "jiang: every state was seen, and all properties hold but order, which is not promised."
    )
    assert explored(overtaking()).holds()


def test_a_counterexample_says_what_was_promised(tmp_path: Path) -> None:
    """It used to say that order was promised, and nothing of ageing."""
    for options in (BACKFILL, {"patience": "2"}):
        what = overtaking(**options)
        what.algorithm = find("jiang/releases-twice")
        checking = explored(what)
        assert "conservation" in checking.explorer.violations
        sink = io.BytesIO()
        write_trace(checking.model, checking.violations()[0], sink)
        (tmp_path / "way.jsonl").write_bytes(sink.getvalue())
        verdict = judge(tmp_path / "way.jsonl")
        assert verdict.monitor.ordered == (options != BACKFILL)
        assert verdict.monitor.ageing == (0.5 if options != BACKFILL else 0.01)


def test_a_scenario_with_backfill_is_not_judged_by_order(tmp_path: Path) -> None:
    path = tmp_path / "played.jsonl"
    with path.open("wb") as file:
        scenario = Scenario("overtaking", OVERTAKING)
        outcome = Player(scenario, find("jiang"), TraceWriter(file, True)).play()
    assert outcome.entries == [0, 0, 2, 1]  # 2 overtook
    assert outcome.violated == judge(path).monitor.violated == {}


def test_a_live_pool_with_backfill_is_not_judged_by_order(tmp_path: Path) -> None:
    async def asks(pool: Pool, want: int, priority: int) -> asyncio.Task[None]:
        async def stay() -> None:
            async with pool.acquire(want, priority=priority, timeout=LIMIT):
                pass

        task = asyncio.create_task(stay())
        await asyncio.sleep(0)
        return task

    async def story() -> None:
        async with Node("n0", trace=tmp_path) as node:
            pool = node.pool("docks", 2, options=BACKFILL, recovery="none")
            first = await pool.acquire(1, priority=9, timeout=LIMIT)
            second = await pool.acquire(1, priority=9, timeout=LIMIT)
            large = await asks(pool, 2, 5)
            small = await asks(pool, 1, 1)
            first.release()
            await small
            second.release()
            await large

    asyncio.run(story())
    merged = tmp_path / "merged.jsonl"
    with merged.open("wb") as file:
        merge([tmp_path / "docks.n0.jsonl"], file, ended=True)
    lines = [json.loads(line) for line in merged.read_text().splitlines()]
    wants = [line["want"] for line in lines if line.get("event") == "enter"]
    assert wants == [1, 1, 1, 2]  # the small request overtook
    assert judge(merged).monitor.violated == {}
