"""However many clients wait at a node, none of its steps takes long.

Counted is what is done, in calls of Python's functions, and not how long it takes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
import virtual
from virtual import Network

import meshlock
from meshlock.algorithms.recovery.epoch import AT_ONCE
from meshlock.algorithms.recovery.messages import Copy, Promise
from meshlock.algorithms.recovery.records import (
    Config,
    Entry,
    Epoch,
    Fence,
    FirstLedger,
    Participant,
    Report,
    TokenState,
)
from meshlock.algorithms.registry import find
from meshlock.errors import Refused
from meshlock.live.links.frames import FRAME_LIMIT
from meshlock.live.machine import labels, limits
from meshlock.live.pools.adapter import shapes
from meshlock.live.pools.grants import Pool
from meshlock.live.pools.pool import MOST_LISTED
from waiting import LIMIT

NAMES = ["a", "b", "c"]
FEW, MANY = 500, 8_000
MOST_CALLS = 80 * AT_ONCE
"""Of one turn of the loop: what a batch of those who ask anew costs, and some more."""


class Turns:
    """Counts the calls in every turn of the loop; a comprehension over all of a crowd counts
    as one, but costs no more than a few nanoseconds for each."""

    def __init__(self) -> None:
        self.calls = 0
        self.most = 0
        self.run = asyncio.Handle._run  # type: ignore[attr-defined]

    def __enter__(self) -> Turns:
        turns = self

        def counted(handle: Any) -> None:
            before = turns.calls
            turns.run(handle)
            turns.most = max(turns.most, turns.calls - before)

        asyncio.Handle._run = counted  # type: ignore[attr-defined]
        sys.setprofile(self.profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        asyncio.Handle._run = self.run  # type: ignore[attr-defined]

    def profile(self, _frame: object, event: str, _what: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1

    async def counted(self, work: Callable[[], Any]) -> int:
        before = self.calls
        await work()
        return self.calls - before


async def crowd(pool: Pool, size: int) -> list[asyncio.Task[Any]]:
    tasks = []
    for number in range(size):
        tasks.append(asyncio.ensure_future(pool.acquire(1, priority=number % 7)))
        if number % 16 == 0:
            await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def gone(tasks: list[asyncio.Task[Any]]) -> None:
    for number, task in enumerate(tasks):
        task.cancel()
        if number % 16 == 0:
            await asyncio.sleep(0)
    while any(not task.done() for task in tasks):
        await asyncio.sleep(0)


def told(size: int, algorithm: str) -> tuple[float, float, int]:
    """Calls for each that comes, and for each that goes; and the most in a turn, with an epoch
    that begins while all wait."""

    async def story(_: Network) -> tuple[float, float, int]:
        nodes: list[meshlock.Node] = []
        for name in NAMES:
            nodes.append(meshlock.Node(name, peers=[node.address for node in nodes]))
            await nodes[-1].start()
            nodes[-1].pool("docks", 1, members=NAMES, lease=3.0, algorithm=algorithm)
        here, there = nodes[0]._local.pools["docks"], nodes[1]._local.pools["docks"]
        grant = await Pool(there).acquire(timeout=LIMIT)
        tasks: list[asyncio.Task[Any]] = []

        async def come() -> None:
            tasks.extend(await crowd(Pool(here), size))

        with Turns() as turns:
            came = await turns.counted(come)
            assert here.adapter.members is not None and there.adapter.members is not None
            before = here.adapter.members.node.member.adopted
            there.adapter.members.node.member.suggested_until = (
                there.adapter.members.node.member.now + 3_000_000
            )
            while here.adapter.members.node.member.adopted == before or len(
                here.adapter.members.node.clients.unasked
            ):
                await asyncio.sleep(0.02)
            said = here.describe()
            assert said["queued"] == size and len(said["waiting"]) == min(size, MOST_LISTED)
            went = await turns.counted(lambda: gone(tasks))
        grant.release()
        assert not here.adapter.clients
        async with Pool(here).acquire(timeout=LIMIT):
            pass
        for node in nodes:
            await node._local.vanish()
        return came / size, went / size, turns.most

    return virtual.run(story)


@pytest.mark.parametrize("algorithm", ["jiang", "direct", "naimi-trehel"])
def test_who_comes_and_goes_costs_the_same_whoever_else_waits(algorithm: str) -> None:
    few, many = told(FEW, algorithm), told(MANY, algorithm)
    print(algorithm, few, many)
    assert many[0] < 2 * few[0] and many[1] < 2 * few[1]
    assert many[2] < MOST_CALLS


def token_comes(size: int, algorithm: str) -> int:
    """The most calls in a turn when the token comes to a crowd that asked meanwhile."""

    async def story(_: Network) -> int:
        async with (
            meshlock.Node("a", state=None) as a,
            meshlock.Node("b", state=None, peers=[a.address]) as b,
        ):
            there = a.pool("docks", 1, members=["a"], algorithm=algorithm)
            here = b.pool("docks", 1, members=["a"], algorithm=algorithm)
            grant = await there.acquire(timeout=LIMIT)
            await joins(here, grant)
            grant = await there.acquire(timeout=LIMIT)
            tasks = await crowd(here, size)
            before = here._source.adapter.measures.entries
            with Turns() as turns:
                grant.release()
                while here._source.adapter.measures.entries == before:
                    await asyncio.sleep(0.01)
            await gone(tasks)
            return turns.most

    return virtual.run(story)


async def joins(pool: Pool, grant: meshlock.Grant) -> None:
    """It has had the token once."""
    grant.release()
    async with pool.acquire(timeout=LIMIT):
        pass


@pytest.mark.parametrize("algorithm", ["jiang", "direct"])
def test_the_token_comes_to_a_crowd_as_it_comes_to_few(algorithm: str) -> None:
    few, many = token_comes(FEW, algorithm), token_comes(MANY, algorithm)
    print(algorithm, few, many)
    assert many < 2 * few


def test_the_ledger_of_as_many_grants_as_there_may_be_fits_into_a_frame() -> None:
    """In a report it is there twice: with the token, and as what its node holds."""
    big, most = 2**53 - 1, int(limits.LEASED_PERMITS.most)
    epoch = Epoch(2**30 - 1, 2**63 - 1, big)
    label = "\N{GRINNING FACE}" * labels.LONGEST_NOTE
    ledger = tuple(
        [Entry(2**63 - 1, Fence(epoch, 2**23 - 1), most, True, (most,), label) for _ in range(most)]
    )
    members = tuple(range(2**63 - 1 - int(limits.MEMBERS.most), 2**63 - 1))
    config = Config(epoch, members, most, big)
    token = TokenState(epoch, big, most, ledger, 2**23 - 1)
    report = Report(big, epoch, epoch, ledger, (epoch, big), token, None, config, True)
    others = tuple([Participant(2**63 - 1, big, 2**63 - 1) for _ in range(limits.MOST_NODES)])
    first = FirstLedger(epoch, config, others, ledger, most, epoch, 2**23 - 1, False)
    known = shapes(find("jiang"), True)
    for message in (Promise(0, epoch, report), Copy(0, first, ledger, big, big, big, big)):
        assert len(known[message.kind].pack(message)) < FRAME_LIMIT - 1000


def test_more_permits_than_fit_are_refused_when_the_pool_is_made() -> None:
    most = int(limits.LEASED_PERMITS.most)

    async def story(_: Network) -> None:
        async with meshlock.Node("a") as node:
            node.pool("berths", most, members=["a"])
            with pytest.raises(
                Refused, match="and 1,000 is the limit with members: let one permit"
            ):
                node.pool("docks", most + 1, members=["a"])
            node.pool("plain", 100_000, recovery="none")

    virtual.run(story)
