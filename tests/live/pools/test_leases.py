"""Pools with members: nodes are killed, cut off and restarted, and the permits come back."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import virtual
from lines import line

import waiting
from meshlock import Node, Pool, Refused
from meshlock.algorithms.recovery.inside import tree
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.serving import serving_socket
from meshlock.live.machine import clock, limits
from meshlock.live.pools.members import LayerRunner
from meshlock.trace.audit import Audit
from meshlock.trace.merge import merge
from meshlock.trace.reader import Trace
from waiting import LIMIT, a_while, eventually

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
LEASE = 0.6
NAMES = ["a", "b", "c"]


def run(story: Callable[[], Awaitable[None]]) -> None:
    """In virtual time: leases are short, and all promises are in seconds."""
    virtual.run(lambda _: story())


def member(
    node: Node,
    permits: int = 1,
    lease: float = LEASE,
    names: list[str] = NAMES,
    algorithm: str | None = None,
) -> Pool:
    return node.pool("docks", permits, members=names, lease=lease, algorithm=algorithm)


@asynccontextmanager
async def three(
    permits: int = 1,
    state: Path | None = None,
    trace: dict[str, Path] | None = None,
    algorithm: str | None = None,
    lease: float = LEASE,
) -> AsyncIterator[list[Node]]:
    """a - b - c, all linked, all members."""
    async with AsyncExitStack() as stack:
        nodes: list[Node] = []
        for name in NAMES:
            peers = [node.address for node in nodes]
            folder = state / name if state is not None else None
            traced = trace[name] if trace is not None else None
            node = Node(name, peers=peers, state=folder, dead=lease / 2, trace=traced)
            nodes.append(await stack.enter_async_context(node))
            member(node, permits, lease, algorithm=algorithm)
        yield nodes


def described(node: Node) -> dict[str, Any]:
    found: dict[str, Any] = node.status()["pools"]["docks"]
    return found


def holder(nodes: list[Node]) -> Node:
    [found] = [node for node in nodes if described(node)["token_here"]]
    return found


def holds_token(nodes: list[Node]) -> bool:
    return sum(described(node)["token_here"] for node in nodes) == 1


def test_a_pool_is_born_without_a_founder_and_fences_grow() -> None:
    async def story() -> None:
        async with three() as nodes:
            fences = []
            for node in nodes * 2:
                async with member(node).acquire(timeout=LIMIT) as grant:
                    assert grant.fence is not None and grant.lease is not None
                    assert 0 < grant.lease <= LEASE
                    fences.append(grant.fence)
            assert fences == sorted(set(fences))

    run(story)


def test_an_idle_holder_grants_without_a_message() -> None:
    async def story() -> None:
        async with three() as nodes:
            await eventually(lambda: holds_token(nodes))
            node = holder(nodes)
            docks = node.pool("docks")
            for _ in range(10):
                before = {**docks._source.adapter.measures.sent, "RENEW": 0}
                grant = await docks.try_acquire()
                assert grant is not None
                assert {**docks._source.adapter.measures.sent, "RENEW": 0} == before
                grant.release()

    run(story)


def test_idle_nodes_are_woken_a_few_times_per_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    wakes = 0
    wake = LayerRunner.wake

    def counted(members: LayerRunner) -> None:
        nonlocal wakes
        wakes += 1
        wake(members)

    monkeypatch.setattr(LayerRunner, "wake", counted)

    async def story() -> None:
        nonlocal wakes
        async with three() as nodes:
            await eventually(lambda: holds_token(nodes))
            await a_while(3 * LEASE)
            wakes = 0
            await a_while(10 * LEASE)
            assert 3 * 10 * 3 <= wakes <= 3 * 10 * 8  # of 30 where anything is going on

    run(story)


def test_the_holder_is_killed_and_the_others_are_served_within_two_leases() -> None:
    async def story() -> None:
        async with three() as nodes:
            await eventually(lambda: holds_token(nodes))
            killed = holder(nodes)
            others = [node for node in nodes if node is not killed]
            await killed._local.vanish()
            began = clock.seconds()
            async with member(others[0]).acquire(timeout=LIMIT):
                pass
            assert clock.seconds() - began < 2 * LEASE + 0.3

    run(story)


ALGORITHMS = ["jiang", "reverse-link", "raymond", "naimi-trehel", "neilsen-mizuno"]
ALGORITHMS += ["suzuki-kasami", "centralized", "direct"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_on_a_line_any_algorithm_goes_on_when_a_node_with_a_grant_is_killed(algorithm: str) -> None:
    """a - b - c: between a and c everything is relayed by b; c is killed with its grant."""

    async def story(network: virtual.Network) -> None:
        async with line(network, "abc", dead=0.3) as (nodes, _):
            pools = {
                name: node.pool("docks", 1, members=NAMES, lease=LEASE, algorithm=algorithm)
                for name, node in nodes.items()
            }
            fences = []
            for pool in [*pools.values()] * 2:
                async with pool.acquire(timeout=LIMIT) as grant:
                    fences.append(grant.fence)
            last = await pools["c"].acquire(timeout=LIMIT)
            fences.append(last.fence)
            waiting = [asyncio.ensure_future(pools[name].acquire(1)) for name in ("a", "b")]
            deadline = last.until
            await nodes["c"]._local.vanish()
            for done in asyncio.as_completed(waiting, timeout=LIMIT):
                grant = await done
                assert deadline is not None and clock.seconds() >= deadline
                fences.append(grant.fence)
                grant.release()
            assert fences == sorted(set(fences))
            assert described(nodes["a"])["algorithm"] == algorithm
            assert (
                not nodes["a"]._local.mesh.failures.counts
                and not nodes["b"]._local.mesh.failures.counts
            )

    virtual.run(story)


def test_the_tree_of_a_fixed_network_follows_the_links() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network, "abcd") as (nodes, _):
            pool = nodes["b"].pool("docks", 1, members=["b"], lease=LEASE)
            await eventually(lambda: nodes["b"]._local.mesh.link_map.reaches("d"))
            await eventually(
                lambda: "a" in pool._source.adapter.numbers and "d" in pool._source.adapter.numbers
            )
            assert pool._source.adapter.members is not None
            near = pool._source.adapter.members.near
            numbers = [pool._source.adapter.meet(name) for name in ("b", "a", "c", "d")]
            assert tree(near, tuple(numbers)) == (-1, 0, 0, 2)
            far = (numbers[0], numbers[3], numbers[1])  # c takes no part: b is next on d's way
            assert tree(near, far) == (-1, 0, 0)
            assert tree(near, (numbers[0], 12345)) == (-1, 0)  # any other life

    virtual.run(story)


def test_a_client_dies_with_its_node_and_its_permits_come_back() -> None:
    async def story() -> None:
        async with three(permits=2) as nodes:
            await eventually(lambda: holds_token(nodes))
            unlucky, other = [node for node in nodes if node is not holder(nodes)]
            async with member(other, 2).acquire(timeout=LIMIT):  # so the token stays here
                await member(unlucky, 2).acquire(timeout=LIMIT)
            assert holder(nodes) is other
            await unlucky._local.vanish()
            async with member(other, 2).acquire(1, timeout=LEASE / 2):
                pass  # one permit is left, and nobody is interrupted
            began = clock.seconds()
            async with member(other, 2).acquire(2, timeout=LIMIT):
                pass
            assert clock.seconds() - began < 2 * LEASE + 0.3

    run(story)


def test_whoever_is_cut_off_from_the_majority_loses_its_grant_before_others_get_it() -> None:
    async def story() -> None:
        async with three() as nodes:
            a, b, c = nodes
            grant = await member(a).acquire(timeout=LIMIT)
            for node in (b, c):
                await node._local.vanish()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await grant.wait_lost()
            deadline = grant.until
            assert deadline is not None
            await grant.wait_lost()
            assert not grant.held and grant.lease is None
            assert clock.seconds() - deadline < 0.1
            wish = asyncio.ensure_future(member(a).acquire(1))
            await eventually(
                lambda: described(a)["unreachable"] == ["b", "c"] and described(a)["why"]
            )
            assert described(a)["members_reachable"] == 1
            assert described(a)["why"] == ("quorum lost: 1 of 3 members reachable")
            wish.cancel()

    run(story)


@pytest.mark.parametrize("algorithm", ["jiang", "raymond"])
def test_a_node_that_is_no_member_asks_through_one_that_is(algorithm: str) -> None:
    async def story() -> None:
        async with (
            three(algorithm=algorithm) as nodes,
            Node("guest", peers=[nodes[2].address]) as guest,
        ):
            docks = guest.pool("docks")
            async with docks.acquire(timeout=LIMIT) as grant:
                assert grant.lease is not None
                assert docks.permits == 1
                with pytest.raises(TimeoutError):
                    await nodes[0].pool("docks").acquire(timeout=0.2)

    run(story)


def test_a_restarted_member_remembers_what_it_promised(tmp_path: Path) -> None:
    async def story() -> None:
        async with three(state=tmp_path) as nodes:
            grant = await member(nodes[1]).acquire(timeout=LIMIT)
            first = grant.fence
        kept = (tmp_path / "b" / "docks.promised").read_bytes()
        assert kept
        async with three(state=tmp_path) as nodes:
            grant = await member(nodes[1]).acquire(timeout=LIMIT)
            assert grant.fence is not None and first is not None
            assert grant.fence > first

    run(story)


def test_permits_and_lease_must_be_the_same_everywhere() -> None:
    async def story() -> None:
        async with Node("a") as a, Node("b", peers=[a.address]) as b:
            mine = a.pool("docks", 1, members=["a", "b"], lease=LEASE)
            b.pool("docks", 2, members=["a", "b"], lease=LEASE)
            await eventually(lambda: mine._source.conflict)
            assert described(a)["conflict"] == (
                "b has a conflicting configuration of the pool docks (2 permits under leases of "
                "0.6 s, direct; here: 1 permits under leases of 0.6 s, direct): use the same "
                "at all nodes."
            )
        async with Node("a") as a:
            with pytest.raises(Refused, match=r"lease 0.01 is out of range"):
                a.pool("docks", 1, members=["a"], lease=0.01)

    run(story)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"algorithm": "lamport"}, "lamport has no token that recovery could replace"),
        ({"algorithm": "lelann"}, "lelann never rests"),
        ({"algorithm": "jiang-printed"}, "jiang-printed cannot join one by one"),
        ({"algorithm": "nonsense"}, "There is no algorithm 'nonsense'"),
        ({"options": {"nonsense": "x"}}, "direct has no option 'nonsense'"),
        ({"options": {"patience": "0"}}, "patience of direct takes a whole number above 0"),
        ({"recovery": "hope"}, "recovery is 'none' or left out, not 'hope'"),
        ({"founder": True}, 'founder is only for pools with recovery = "none"'),
        ({"members": "most"}, "members is 'auto' or a list of names, not 'most'"),
        ({"links": [("a", "b")]}, 'links is only for pools with recovery = "none"'),
        (
            {"algorithm": "raymond", "lease": 3.0, "recovery": "none"},
            "lease is only for pools with recovery",
        ),
        (
            {"members": [], "algorithm": "direct", "recovery": "none"},
            "direct is for fixed networks",
        ),
        ({"members": []}, "members names nobody"),
    ],
)
def test_what_is_not_meant_is_refused(given: dict[str, object], sentence: str) -> None:
    async def story() -> None:
        async with Node("a") as a:
            with pytest.raises(Refused, match=sentence):
                a.pool("docks", 1, **{"members": ["a", "b"], **given})  # type: ignore[arg-type]
            assert a._local.pools == {}

    run(story)


@pytest.mark.parametrize("algorithm", [None, "raymond"])
def test_a_pool_with_members_says_what_it_runs(algorithm: str | None) -> None:
    async def story() -> None:
        async with Node("a") as a:
            pool = a.pool("docks", 1, members=["a"], algorithm=algorithm, lease=LEASE)
            async with pool.acquire(timeout=LIMIT):
                assert described(a)["algorithm"] == (algorithm or "direct")

    run(story)


def test_a_node_that_leaves_hands_the_token_on() -> None:
    async def story() -> None:
        async with three() as nodes:
            await eventually(lambda: holds_token(nodes))
            leaving = holder(nodes)
            others = [node for node in nodes if node is not leaving]
            epoch = described(leaving)["epoch"]
            await leaving.close()
            async with member(others[0]).acquire(timeout=LEASE / 2):
                pass
            assert described(others[0])["epoch"] == epoch

    run(story)


@pytest.mark.parametrize("algorithm", ["raymond", "direct", "naimi-trehel"])
def test_whatever_it_runs_a_node_that_leaves_takes_no_token_and_no_permits_along(
    algorithm: str,
) -> None:
    """Its waiting request is withdrawn. In a fixed network an epoch without it begins at once:
    nobody has to wait for a lease to end."""

    async def story() -> None:
        async with three(permits=1, algorithm=algorithm) as nodes:
            await eventually(lambda: holds_token(nodes))
            leaving = holder(nodes)
            others = [node for node in nodes if node is not leaving]
            held = await others[0].pool("docks").acquire(timeout=LIMIT)
            wish = asyncio.ensure_future(leaving.pool("docks").acquire(1, priority=9))
            await eventually(lambda: described(leaving)["waiting"])
            await leaving.close()
            with pytest.raises(Refused, match="was closed"):
                await wish
            held.release()
            for node in (others[1], others[0]):  # who leaves next has the token
                async with node.pool("docks").acquire(timeout=2 * LEASE):
                    pass
            await eventually(lambda: described(others[0])["token_here"])
            await others[0].close()
            assert (
                not leaving._local.pools["docks"].adapter.clients
                and not others[0]._local.pools["docks"].adapter.clients
            )
            await eventually(lambda: described(others[1])["members_reachable"] == 1)

    run(story)


def test_a_grant_released_after_its_node_vanished_wakes_nobody() -> None:
    async def story() -> None:
        async with Node("a") as a:
            pool = a.pool("docks", 2, members=["a"], lease=LEASE)
            grants = [await pool.acquire(timeout=LIMIT) for _ in range(2)]
            await a._local.vanish()
            grants[0].release()
            assert (
                pool._source.adapter.members is not None
                and pool._source.adapter.members.waking.cancelled()
            )

    run(story)


def test_a_lone_node_leaves_at_once_and_others_are_not_kept_waiting() -> None:
    async def story() -> None:
        async with Node("a") as a:
            pool = a.pool("docks", 1, members=["a"], lease=LEASE)
            grant = await pool.acquire(timeout=LIMIT)
            wish = asyncio.ensure_future(pool.acquire(1))
            await asyncio.sleep(0)
            began = clock.seconds()
            await a.close()
            assert clock.seconds() - began < 0.5
            assert grant.lost
            with pytest.raises(Refused, match="was closed"):
                await wish

    run(story)


def test_a_client_of_a_node_that_leaves_has_its_permits_until_its_lease_ends() -> None:
    """It is told, but who knows when it hears of it: it may be paused."""

    async def story() -> None:
        async with three() as nodes:
            await eventually(lambda: holds_token(nodes))
            leaving = holder(nodes)
            others = [node for node in nodes if node is not leaving]
            grant = await member(leaving).acquire(timeout=LIMIT)
            known = grant.until
            assert known is not None
            await leaving.close()
            assert grant.lost
            later = await member(others[0]).acquire(timeout=LIMIT)
            assert clock.seconds() >= known
            assert later.fence > grant.fence

    run(story)


def test_priorities_decide_who_is_next() -> None:
    async def story() -> None:
        async with three() as nodes:
            order: list[int] = []

            async def want(node: Node, priority: int) -> None:
                async with member(node).acquire(priority=priority, timeout=LIMIT):
                    order.append(priority)

            async with member(nodes[0]).acquire(timeout=LIMIT):
                wishes = [want(nodes[1], 1), want(nodes[2], 9), want(nodes[0], 5)]
                tasks = [asyncio.create_task(wish) for wish in wishes]
                await a_while(0.2)
            await asyncio.gather(*tasks)
            assert order == [9, 5, 1]

    run(story)


def test_members_come_and_go() -> None:
    async def story() -> None:
        async with three() as nodes, Node("d", peers=[nodes[0].address], dead=0.3) as d:
            await eventually(lambda: holds_token(nodes))
            docks = member(nodes[0])
            await eventually(lambda: docks._source.mesh.link_map.reaches("d"))
            assert await docks.change_members(add="d", timeout=LIMIT) == ["a", "b", "c", "d"]
            assert await docks.change_members(remove="c", timeout=LIMIT) == ["a", "b", "d"]
            async with d.pool("docks").acquire(timeout=LIMIT):
                pass
            await eventually(lambda: described(d)["members"] == ["a", "b", "d"])
            await nodes[2]._local.vanish()
            await nodes[1]._local.vanish()
            async with d.pool("docks").acquire(timeout=LIMIT):
                pass  # a and d are two of three
            with pytest.raises(Refused, match="one at a time"):
                await docks.change_members(add="b", remove="d")
            with pytest.raises(Refused, match="not on the link map"):
                await docks.change_members(add="nobody")

    run(story)


STUBBORN = """
import signal, sys, time
def told(number, frame):
    with open(sys.argv[1], "a") as file:
        file.write(f"{time.clock_gettime(time.CLOCK_BOOTTIME)}\\n")
signal.signal(signal.SIGTERM, told)
told(0, None)
while True:
    time.sleep(0.01)
    open(sys.argv[2], "w").write(f"{time.clock_gettime(time.CLOCK_BOOTTIME)}")
"""


def test_exec_stops_its_command_before_the_lease_ends(tmp_path: Path) -> None:
    """It is told while a sixth of the lease is left, and killed, since it does not listen. Not
    earlier: after a pause of the agent the lease may still be renewed then."""
    long = 8.0  # real processes: a twelfth of it is for a busy machine

    async def story() -> None:
        async with three(lease=long) as nodes:
            a, b, c = nodes
            place = str(tmp_path / "socket")
            async with serving_socket(Interface(a), place):
                told, alive = tmp_path / "told", tmp_path / "alive"
                told.touch()
                child = await asyncio.create_subprocess_exec(
                    *(*PROGRAM, "exec", "--pool", "docks", "--socket", place),
                    *("--", sys.executable, "-c", STUBBORN, str(told), str(alive)),
                    stderr=asyncio.subprocess.PIPE,
                )
                await eventually(told.read_text)
                await b._local.vanish()
                await c._local.vanish()
                deadline, members = 0.0, member(a, 1, long)._source.adapter.members
                assert members is not None
                while (until_then := members.until(1)) is not None:
                    deadline = until_then
                    await asyncio.sleep(0.005)
                _, said = await child.communicate()
                assert child.returncode == 128 + 9
                assert b"the lease was not renewed" in said
                heard = float(told.read_text().split()[1])
                assert deadline - long / 4 < heard < deadline - long / 12
                assert float(alive.read_text() or 0) < deadline

    waiting.run_in_real_time(story)  # which is what the command goes by


def test_a_member_whose_disk_is_full_says_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with three(state=tmp_path) as nodes:
            a = nodes[0].pool("docks")
            assert (
                a._source.adapter.members is not None
                and a._source.adapter.members.disk.promises is not None
            )
            disk, promises = a._source.adapter.members.disk, a._source.adapter.members.disk.promises
            promises.folder = tmp_path / "not" / "there"
            async with member(nodes[1]).acquire(timeout=LIMIT):
                assert disk.written is not None
                assert "PROMISE" not in a._source.adapter.measures.sent
            promises.folder = tmp_path / "a"
            await nodes[2].close()
            async with member(nodes[1]).acquire(timeout=LIMIT) as grant:
                await eventually(lambda: disk.written is None)
                await asyncio.sleep(2 * LEASE)
                assert grant.held  # a counts again

    run(story)


def test_what_clients_did_is_traced_through_crashes_and_judged(tmp_path: Path) -> None:
    async def story() -> None:
        for node in [*NAMES, "state"]:
            (tmp_path / node).mkdir()
        traced = {name: tmp_path / name for name in NAMES}
        async with three(state=tmp_path / "state", trace=traced) as nodes:
            await member(nodes[0]).acquire(timeout=LIMIT)  # dies with it
            wish = asyncio.ensure_future(member(nodes[0]).acquire(1))
            await a_while(0.1)
            await nodes[0]._local.vanish()
            wish.cancel()
            for node in nodes[1:]:
                async with member(node).acquire(timeout=LIMIT):
                    await asyncio.sleep(2 * LEASE)  # it is renewed meanwhile
            peers = [node.address for node in nodes[1:]]
            async with Node("a", peers=peers, state=tmp_path / "state" / "a", dead=0.3) as a:
                a._local.settings.trace = traced["a"]
                async with member(a).acquire(timeout=LIMIT):
                    pass

    run(story)
    parts = [tmp_path / name / f"docks.{name}.jsonl" for name in NAMES]
    merged = tmp_path / "merged.jsonl"
    with merged.open("wb") as file:
        merge(parts, file, ended=True)
    audit = Audit(Trace(merged))
    assert audit.trace.setup["algorithm"] == "direct"
    found = [json.loads(line) for line in merged.read_text().splitlines()]
    pulls = [event for event in found if event.get("priority") == limits.PRIORITY.least]
    assert audit.entries == 4 + len(pulls) and audit.monitor.violated == {}
    events = [event.get("event") for event in found]
    assert events.count("crash") == events.count("restart") == 1
    assert "lease" in events
    command = [*PROGRAM, "audit", *map(str, parts), "--json"]
    verdict = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert verdict["holds"] and verdict["entries"] == 4 + len(pulls)
    assert set(verdict["not_judged"]) == {"one-token", "conservation", "served"}
    late = merged.read_text().replace('"event":"lease"', '"event":"timer"')
    merged.write_text(late)
    assert set(Audit(Trace(merged)).monitor.violated) >= {"leases"}  # who was not renewed was late


def test_who_gives_up_too_late_is_let_in_and_leaves() -> None:
    """An algorithm that cannot withdraw grants to somebody whom the pool does not know any more."""

    async def story(network: virtual.Network) -> None:
        nodes: list[Node] = []
        for name in "abc":
            nodes.append(Node(name, peers=[node.address for node in nodes]))
            await nodes[-1].start()
            nodes[-1].pool("docks", 1, members=list("abc"), algorithm="raymond", lease=LEASE)
        pools = [node.pool("docks") for node in nodes]
        grant = await pools[0].acquire(timeout=LIMIT)
        with pytest.raises(TimeoutError):
            await pools[1].acquire(timeout=0.2)
        grant.release()
        for pool in (pools[2], pools[1], pools[0]):
            async with pool.acquire(timeout=LIMIT):
                pass
        for node in nodes:
            assert node._local.mesh.failures.counts == {}
            network.kill(node._local.mesh)
            await node._local.vanish()

    virtual.run(story)


def test_a_grant_is_lost_by_the_clock_before_anybody_says_so() -> None:
    """As for a program that was stopped for long, and looks before its loop has run."""

    async def story(_: virtual.Network) -> None:
        async with Node("a", state=None) as node:
            pool = node.pool("docks", 1, lease=3.0)
            grant = await pool.acquire()
            deadline = grant.until
            assert grant.held and not grant.lost and deadline is not None
            with mock.patch.object(clock, "seconds", lambda: deadline + 0.1):
                assert grant.lost and not grant.held and grant.lease == 0.0
            grant.release()
            assert not grant.held and not grant.lost

    virtual.run(story)
