"""Clients of an agent: used like pools of a node, and whatever becomes of either side."""

from __future__ import annotations

import asyncio
import errno
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import meshlock
from meshlock import BlockingClientPool, BlockingGrant, BlockingPool, ClientPool, Pool, Refused
from meshlock.live.interfaces import agent_connection, agent_protocol, client
from meshlock.live.interfaces.agent_client import PATIENCE, AgentClient, finished
from meshlock.live.interfaces.agent_connection import Connection
from meshlock.live.interfaces.async_client import Client
from meshlock.live.machine import clock, labels
from meshlock.live.pools.grants import Acquire
from waiting import A_MOMENT, LIMIT, eventually, run_in_real_time, sooner_or_later

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
TOO_SOON = 0.05


class Agent:
    """A process with a pool of three docks, and two bays and four gates under leases."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "socket")
        self.log = folder / "log"
        self.settings = folder / "ann.toml"
        self.settings.write_text(
            f'name = "ann"\nsocket = "{self.socket}"\nstate = "{folder}"\n'
            'pools.docks = {permits = 3, founder = true, recovery = "none"}\n'
            "pools.bays = {permits = 2, lease = 2.0}\n"
            "pools.gates = {permits = 4, lease = 2.0}\n"
        )
        self.start()

    def start(self) -> None:
        with self.log.open("w") as errors:
            self.process = subprocess.Popen([*PROGRAM, "agent", str(self.settings)], stderr=errors)
        sooner_or_later(lambda: '"ready"' in self.log.read_text() or self.process.poll())
        assert self.process.poll() is None, self.log.read_text()

    def stop(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(LIMIT)

    def pool(self, name: str = "docks") -> dict[str, Any]:
        found: dict[str, Any] = Connection(self.socket).ask("GET", f"/v1/pools/{name}")["status"]
        return found

    def held(self) -> int:
        return sum(grant["want"] for grant in self.pool()["holding"])

    def waiting(self) -> int:
        return len(self.pool()["waiting"])


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    agent = Agent(tmp_path_factory.mktemp("agent"))
    yield agent
    assert agent.held() == 0
    agent.stop()
    assert "Traceback" not in agent.log.read_text()


# -- the same in both worlds ------------------------------------------------------------------


@pytest.fixture(params=["node", "client"])
def blocking(request: pytest.FixtureRequest, agent: Agent) -> Iterator[BlockingPool]:
    with ExitStack() as stack:
        if request.param == "node":
            node = stack.enter_context(meshlock.BlockingNode("here"))
            yield node.pool("docks", permits=3, recovery="none")
        else:
            yield stack.enter_context(meshlock.connect(agent.socket)).pool("docks")


def test_a_blocking_pool(blocking: BlockingPool) -> None:
    with blocking.acquire(2, priority=9, timeout=LIMIT, label="both") as grant:
        seen = blocking.picture()
        assert [(one["label"], one["want"]) for one in seen["holding"]] == [("both", 2)]
        assert isinstance(grant, BlockingGrant) and grant.held and not grant.lost
        assert (grant.pool, grant.want, grant.priority) == ("docks", 2, 9)
        assert (grant.until, grant.lease) == (None, None)
        assert blocking.try_acquire(2) is None
        with pytest.raises(TimeoutError):
            blocking.acquire(2, timeout=TOO_SOON)
        assert not grant.wait_lost(TOO_SOON)
        other = blocking.try_acquire()
        assert other is not None and (other.fence or 0) > (grant.fence or 0)
        other.release()
        other.release()
        assert "fence" in repr(other) and "released" in repr(other)
    assert not grant.held and not grant.lost
    assert not grant.wait_lost()
    assert blocking.permits == 3
    with pytest.raises(Refused, match="Cannot grant 4 permits: pool docks has 3"):
        blocking.acquire(4)
    for want in (0, "many", 1.0, 1.5, True, 10**9):
        with pytest.raises(Refused, match="want"):
            blocking.acquire(want)  # type: ignore[arg-type]
    with blocking.acquire() as grant:
        for timeout in (-1, "soon", float("nan")):
            with pytest.raises(Refused, match="timeout"):
                blocking.acquire(timeout=timeout)  # type: ignore[arg-type]
            with pytest.raises(Refused, match="timeout"):
                grant.wait_lost(timeout)  # type: ignore[arg-type]
    for deadline in (-1, "soon", float("nan"), 10**5000):
        with pytest.raises(Refused, match=r"deadline .*: use 0 to 31,536,000 s"):
            blocking.acquire(deadline=deadline)  # type: ignore[arg-type]


@pytest.mark.parametrize("label", ["", "a" * 1001, "\ud800", "two\nlines", "\U0001f600"])
def test_a_label_is_made_to_fit(agent: Agent, label: str) -> None:
    with ExitStack() as stack:
        found = stack.enter_context(meshlock.connect(agent.socket))
        node = stack.enter_context(meshlock.BlockingNode("here"))
        stack.enter_context(found.pool("docks").acquire(timeout=LIMIT, label=label))
        stack.enter_context(node.pool("docks", permits=3, recovery="none").acquire(label=label))
        for pool in (agent.pool(), node.status()["pools"]["docks"]):
            assert [one["label"] for one in pool["holding"]] == [labels.fitting(label)]


def on_both(agent: Agent, story: Callable[[Pool], Awaitable[None]]) -> None:
    """A story of a pool, told of a node's and of a client's."""

    async def both() -> None:
        async with meshlock.Node("here") as node:
            await story(node.pool("docks", permits=3, recovery="none"))
        async with meshlock.aconnect(agent.socket) as found:
            await story(found.pool("docks"))  # type: ignore[arg-type]

    run_in_real_time(both)


def test_whoever_waits_may_become_more_urgent(agent: Agent) -> None:
    async def story(pool: Pool) -> None:
        order: list[str] = []

        async def use(request: Acquire, name: str) -> int:
            async with request as grant:
                order.append(name)
                return grant.priority

        async def shown(*priorities: int) -> None:
            """Where the request waits."""
            while sorted(await waiting(pool, agent)) != sorted(priorities):
                await asyncio.sleep(A_MOMENT)

        async with pool.acquire(3):
            first, second = pool.acquire(2, priority=5), pool.acquire(2)
            second.priority = 1  # it does not wait yet
            tasks = [asyncio.create_task(use(first, "first"))]
            tasks.append(asyncio.create_task(use(second, "second")))
            await shown(5, 1)
            second.priority = 3
            second.priority = 9
            assert second.priority == 9
            with pytest.raises(Refused, match="priority"):
                second.priority = 2**40
            await shown(5, 9)
        assert await asyncio.gather(*tasks) == [5, 9]
        assert order == ["second", "first"]
        second.priority = 4  # of no more use, and no harm

    on_both(agent, story)


async def waiting(pool: Pool, agent: Agent) -> list[int]:
    """The priorities of those who wait for docks there."""
    if not isinstance(pool, ClientPool):
        return [one["priority"] for one in pool._source.describe()["waiting"]]
    return [one["priority"] for one in (await asyncio.to_thread(agent.pool))["waiting"]]


def test_a_waiting_request_is_told_its_priority_over_http(agent: Agent) -> None:
    ask, other = Connection(agent.socket), Connection(agent.socket)
    held = ask.ask("POST", "/v1/pools/docks/acquire", '{"want": 3, "ttl": 600}')
    ask.send("POST", "/v1/pools/docks/acquire", '{"timeout": null, "request": "mine"}')
    sooner_or_later(agent.waiting)
    path = "/v1/requests/mine/priority"
    changed = other.ask("POST", path, '{"priority": 7}')
    assert changed == {"request": "mine", "priority": 7, "deadline": None}
    assert agent.pool()["waiting"][0]["priority"] == 7
    with pytest.raises(Refused, match="A request with the name mine waits already"):
        other.ask("POST", "/v1/pools/docks/acquire", '{"request": "mine"}')
    for body in ('{"priority": 1.5}', '{"priority": 1, "want": 2}'):
        assert other.call("POST", path, body)[0] == 400
    with pytest.raises(Refused, match="Nothing to change"):
        other.ask("POST", path, "{}")
    other.ask("DELETE", f"/v1/grants/{held['grant']}")
    granted = json.loads(ask.receive()[1])
    assert granted["priority"] == 7
    ask.ask("DELETE", f"/v1/grants/{granted['grant']}")
    with pytest.raises(Refused, match="No request with the name mine waits"):
        other.ask("POST", path, '{"priority": 7}')


def test_a_deadline_over_http(agent: Agent) -> None:
    ask, other = Connection(agent.socket), Connection(agent.socket)
    met = agent.pool()["deadlines_met"]
    held = ask.ask("POST", "/v1/pools/docks/acquire", '{"want": 3, "deadline": 600, "ttl": 600}')
    assert held["met"] is True
    assert other.ask("GET", f"/v1/grants/{held['grant']}")["met"] is True
    ask.send("POST", "/v1/pools/docks/acquire", '{"deadline": 3600, "request": "due"}')
    sooner_or_later(agent.waiting)
    waits = agent.pool()["waiting"][0]
    assert waits["priority"] == 0 and 3000 < waits["deadline"] <= 3600
    path = "/v1/requests/due/priority"
    changed = other.ask("POST", path, '{"deadline": 60}')
    assert changed["priority"] == 0 and 0 < changed["deadline"] <= 60
    changed = other.ask("POST", path, '{"priority": 4, "deadline": 0}')
    assert (changed["priority"], agent.pool()["waiting"][0]["priority"]) == (4, 4)
    for body in ('{"deadline": -1}', '{"deadline": 1e9}', '{"deadline": "soon"}'):
        assert other.call("POST", path, body)[0] == 400
        assert other.call("POST", "/v1/pools/docks/acquire", body)[0] == 400
    who = other.ask("GET", "/v1/pools/docks/who")["waiting"]
    assert [(one["priority"], one["deadline"] < 0) for one in who] == [(4, True)]
    other.ask("DELETE", f"/v1/grants/{held['grant']}")
    granted = json.loads(ask.receive()[1])
    assert (granted["priority"], granted["met"]) == (4, False)
    ask.ask("DELETE", f"/v1/grants/{granted['grant']}")
    assert agent.pool()["deadlines_met"] == met + 1
    assert agent.pool()["deadlines_missed"] > 0


def test_a_blocking_pool_has_deadlines_and_changes_requests_by_name(blocking: BlockingPool) -> None:
    order: list[str] = []
    met: list[bool | None] = []

    def use(name: str, deadline: float | None) -> None:
        with blocking.acquire(3, deadline=deadline, request=name) as grant:
            order.append(name)
            met.append(grant.met)

    def waits(count: int) -> bool:
        return len(blocking.picture()["waiting"]) == count

    threads = [threading.Thread(target=use, args=one) for one in [("late", 9000.0), ("none", None)]]
    with blocking.acquire(3, deadline=100.0) as grant:
        assert grant.met is True
        for number, thread in enumerate(threads):
            thread.start()
            sooner_or_later(lambda number=number: waits(number + 1))
        shown = [(one["priority"], one["deadline"]) for one in blocking.picture()["waiting"]]
        assert shown[0][0] == 0 and 8000 < (shown[0][1] or 0) < 9000 and shown[1] == (0, None)
        assert blocking.change("none", deadline=800.0, priority=0)
        assert blocking.change("late", priority=-1)
        assert not blocking.change("nobody", priority=1)
        with pytest.raises(Refused, match="deadline"):
            blocking.change("none", deadline=-1.0)
        with pytest.raises(Refused, match="A request with the name late waits already"):
            blocking.acquire(request="late")
    for thread in threads:
        thread.join(LIMIT)
    assert order == ["none", "late"] and met == [True, True]
    assert not blocking.change("late", priority=1)


def test_an_asynchronous_client_changes_a_request_and_hears_whether_it_was_done(
    agent: Agent,
) -> None:
    async def story(pool: Pool) -> None:
        order: list[str] = []

        async def use(name: str, request: Acquire) -> None:
            async with request:
                order.append(name)

        held = await pool.acquire(3, deadline=100.0)
        assert held.met is True
        first, second = pool.acquire(3, deadline=500.0), pool.acquire(3, deadline=900.0)
        assert await first.change(deadline=600.0)  # it has not been made yet
        tasks = [asyncio.create_task(use("first", first))]
        tasks.append(asyncio.create_task(use("second", second)))
        await asyncio.sleep(0)
        assert await second.change(deadline=50.0)
        assert 0 < (second.deadline or 0.0) <= 50.0
        with pytest.raises(Refused, match="deadline"):
            await second.change(deadline=-1.0)
        held.release()
        await asyncio.gather(*tasks)
        assert order == ["second", "first"]
        assert not await second.change(priority=1)

    on_both(agent, story)


def test_exec_with_a_deadline(agent: Agent) -> None:
    command = [*PROGRAM, "exec", "--socket", agent.socket, "--pool", "docks", "--deadline"]
    done = subprocess.run([*command, "60", "--", "true"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run([*command, "0", "--", "true"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == "meshlock: the permits came after the deadline of 0 s.\n"


def test_an_asynchronous_pool(agent: Agent) -> None:
    async def story(pool: Pool) -> None:
        async with pool.acquire(2, priority=9, timeout=LIMIT, label="both") as grant:
            seen = await pool.picture()
            assert [(one["label"], one["want"]) for one in seen["holding"]] == [("both", 2)]
            assert isinstance(grant, meshlock.Grant) and grant.held and not grant.lost
            assert (grant.pool, grant.want, grant.priority) == ("docks", 2, 9)
            assert (grant.until, grant.lease) == (None, None)
            with pytest.raises(TimeoutError):
                await pool.acquire(2, timeout=TOO_SOON)
            other = await pool.acquire()
            assert (other.fence or 0) > (grant.fence or 0)
            lost = asyncio.create_task(other.wait_lost())
            await asyncio.sleep(0)
            other.release()
            other.release()
            assert not await lost
        assert not grant.held and not grant.lost
        assert pool.permits == 3
        with pytest.raises(Refused, match="Cannot grant 4 permits: pool docks has 3"):
            await pool.acquire(4)
        with pytest.raises(Refused, match="want"):
            await pool.acquire(0)
        with pytest.raises(Refused, match="timeout"):
            pool.acquire(timeout=-1)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(10):
                tasks.create_task(use(pool))

    async def use(pool: Pool) -> None:
        for _ in range(10):
            async with pool.acquire(2):
                await asyncio.sleep(0)

    on_both(agent, story)


def test_what_is_wrong_with_a_request_is_said_and_the_next_one_is_served(agent: Agent) -> None:
    """Also where the agent does not read all of it and hangs up."""

    async def story(pool: Pool) -> None:
        wrong: list[dict[str, Any]] = [
            *({"want": value} for value in (10**5000, "1" * 10**6, b"1", [], 1.0)),
            *({"priority": value} for value in (10**5000, "1" * 10**6, b"1", [], 1.0)),
            *({"label": value} for value in (10**5000, b"1", 1j, [])),
        ]
        for given in wrong:
            with pytest.raises(Refused, match="|".join(["body", *given])):
                await pool.acquire(timeout=LIMIT, **given)
            async with pool.acquire(2, timeout=LIMIT) as grant:
                with pytest.raises(Refused, match="Cannot release with too many digits permits"):
                    grant.release(10**5000)

    on_both(agent, story)


def public(kind: type) -> dict[str, object]:
    """What users see of it: properties, and methods with their arguments."""
    return {
        name: inspect.signature(value).parameters if callable(value) else None
        for name in dir(kind)
        if not name.startswith("_")
        for value in [getattr(kind, name)]
    }


def test_pools_of_nodes_and_of_clients_have_the_same_methods() -> None:
    methods = {"acquire", "try_acquire", "picture", "set_permits", "change_members", "reset"}
    assert set(public(Pool)) == {"name", "permits", *methods}
    assert set(public(BlockingPool)) == {"permits", "change", *methods}
    assert public(Pool) == public(ClientPool)
    assert public(BlockingPool) == public(BlockingClientPool)


def test_clients_set_the_permits_and_change_the_members(agent: Agent) -> None:
    with meshlock.connect(agent.socket) as found:
        bays = found.pool("bays")
        before = bays.permits
        assert before is not None and bays.set_permits(before + 2, timeout=LIMIT) == before + 2
        assert (bays.permits, bays.picture()["permits"]) == (before + 2, before + 2)
        with pytest.raises(Refused, match="Cannot remove ann: it is the last member"):
            bays.change_members(remove="ann", timeout=LIMIT)
        with pytest.raises(Refused, match="bays"):
            bays.reset()

    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found:
            bays = found.pool("bays")
            assert await bays.set_permits(before, timeout=LIMIT) == before
            assert (await bays.picture())["permits"] == before
            with pytest.raises(Refused, match="Members change one at a time"):
                await bays.change_members(timeout=LIMIT)
            with pytest.raises(Refused, match="bays"):
                await bays.reset()

    asyncio.run(story())


def test_a_pool_that_nobody_knows(agent: Agent) -> None:
    with meshlock.connect(agent.socket) as found:
        with pytest.raises(meshlock.NoSuchPool, match="No pool 'dokcs'; known: bays, docks"):
            found.pool("dokcs").acquire()
        with pytest.raises(Refused, match="is not a valid name for a pool"):
            found.pool("a b")
        assert found.status()["node"] == "ann"
    with pytest.raises(Refused, match="closed"):
        found.pool("docks").acquire()


def test_leases_are_renewed_and_told(agent: Agent) -> None:
    with meshlock.connect(agent.socket) as found, found.pool("bays").acquire() as grant:
        first = grant.until
        assert first is not None and 0.0 < (grant.lease or 0.0) <= 2.0
        sooner_or_later(lambda: (grant.until or 0.0) > first)
        assert grant.held

    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found, found.pool("bays").acquire() as grant:
            first = grant.until
            assert first is not None and 0.0 < (grant.lease or 0.0) <= 2.0
            await eventually(lambda: (grant.until or 0.0) > first)
            assert grant.held

    run_in_real_time(story)


# -- threads, processes and signals -----------------------------------------------------------


def test_threads_share_a_client(agent: Agent) -> None:
    inside = most = 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with pool.acquire(timeout=LIMIT):
                with lock:
                    inside += 1
                    most = max(most, inside)
                with lock:
                    inside -= 1

    with meshlock.connect(agent.socket) as found:
        pool = found.pool("docks")
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT)
    assert inside == 0 and 1 <= most <= 3


def in_a_child(work: Callable[[], None]) -> int:
    """Fork; the child does this, and says how it went."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def test_a_child_has_nothing_of_its_parent_and_a_connection_of_its_own(agent: Agent) -> None:
    def work() -> None:
        assert not grant.held and grant.lost and grant.lease is None
        grant.release()
        with pool.acquire(timeout=LIMIT):
            assert agent.held() == 3
        assert pool.try_acquire(2) is None

    with meshlock.connect(agent.socket) as found:
        pool = found.pool("docks")
        with pool.acquire(2) as grant:
            for _ in range(2):
                assert os.waitpid(in_a_child(work), 0)[1] == 0
            assert grant.held and agent.held() == 2
    sooner_or_later(lambda: agent.held() == 0)


def test_a_child_of_a_program_with_an_event_loop_lets_go_of_its_parents_connections(
    agent: Agent,
) -> None:
    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found:
            grant = await found.pool("docks").acquire(2)
            awake, wakes = os.pipe()
            child = os.fork()
            if not child:
                os._exit(0 if grant.lost and not grant.held and not os.read(awake, 1) else 1)
            assert grant.held and not grant.lost
            await found.close()  # while the child lives
            await eventually(lambda: agent.held() == 0)
            for end in (wakes, awake):
                os.close(end)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    run_in_real_time(story)


CHILD = """
import os, sys, time, meshlock
pool = meshlock.connect(sys.argv[1]).pool("docks")
grant = pool.acquire(2)
if "fork" in sys.argv and os.fork() == 0:
    time.sleep(3600)
print("in", flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_the_permits_of_a_program_that_is_killed_come_back(agent: Agent, how: str) -> None:
    """Even if it leaves a child behind."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, agent.socket, how],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == b"in\n"
    assert agent.held() == 2
    process.kill()
    with meshlock.connect(agent.socket) as found, found.pool("docks").acquire(3, timeout=LIMIT):
        pass
    process.wait()
    if how == "fork":
        os.killpg(process.pid, signal.SIGKILL)


WAITS = """
import os, sys, threading, time, meshlock
pool = meshlock.connect(sys.argv[1]).pool("docks")
threading.Thread(target=pool.acquire, args=(3,), daemon=True).start()
sys.stdin.readline()
if os.fork() == 0:
    time.sleep(3600)
print("forked", flush=True)
time.sleep(3600)
"""


def test_the_requests_of_a_program_that_is_killed_are_withdrawn_though_its_child_lives(
    agent: Agent,
) -> None:
    with meshlock.connect(agent.socket) as found, found.pool("docks").acquire():
        process = subprocess.Popen(
            [sys.executable, "-c", WAITS, agent.socket],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            sooner_or_later(lambda: agent.waiting() == 1)
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(b"it waits\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"forked\n"
            assert agent.waiting() == 1
            process.kill()
            process.wait()
            sooner_or_later(lambda: agent.waiting() == 0)
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_parent_goes_on_waiting_over_a_connection_that_its_child_has_closed(
    agent: Agent,
) -> None:
    def wait() -> None:
        with pool.acquire(3, timeout=LIMIT) as grant:
            got.append(grant.want)

    got: list[int] = []
    with meshlock.connect(agent.socket) as found:
        pool = found.pool("docks")
        with pool.acquire():
            thread = threading.Thread(target=wait)
            thread.start()
            sooner_or_later(lambda: agent.waiting() == 1)
            assert os.waitpid(in_a_child(lambda: None), 0)[1] == 0
            assert agent.waiting() == 1
        thread.join(LIMIT)
    assert got == [3]


class Interrupted(Exception):
    pass


def test_whoever_is_interrupted_while_waiting_leaves_nothing(agent: Agent) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with meshlock.connect(agent.socket) as found:
            pool = found.pool("docks")
            copies: list[int] = []  # as another process may have them
            with pool.acquire(3):

                def later() -> None:
                    sooner_or_later(lambda: agent.waiting() == 1)
                    copies.extend(
                        os.dup(cast(Connection, line).fileno()) for line in found._agent.lines
                    )
                    os.kill(os.getpid(), signal.SIGUSR1)

                thread = threading.Thread(target=later)
                thread.start()
                with pytest.raises(Interrupted):
                    pool.acquire()
                thread.join()
                sooner_or_later(lambda: agent.waiting() == 0)
            with pool.acquire(3, timeout=LIMIT):
                pass
            for copy in copies:
                os.close(copy)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_grant_whose_answer_was_never_read_goes_back(agent: Agent) -> None:
    holds, line = AgentClient(agent.socket, client.WIRES, leases=False), Connection(agent.socket)
    session = finished(holds.current())
    line.send("POST", "/v1/pools/docks/acquire", agent_protocol.json_body(session=session.name))
    sooner_or_later(lambda: agent.held() == 1)
    line.close()
    sooner_or_later(lambda: agent.held() == 0)
    holds.close()


def test_a_task_that_is_cancelled_leaves_nothing(agent: Agent) -> None:
    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found:
            pool = found.pool("docks")
            async with pool.acquire(3):
                waits = asyncio.ensure_future(pool.acquire(1))
                await eventually(lambda: agent.waiting() == 1)
                waits.cancel()
                await eventually(lambda: agent.waiting() == 0)
            async with pool.acquire(3, timeout=LIMIT):
                pass

    run_in_real_time(story)


@pytest.mark.parametrize("timeout", [None, LIMIT])
def test_whoever_waits_while_the_client_is_closed_is_told(
    agent: Agent, timeout: float | None
) -> None:
    def wait() -> None:
        with pytest.raises(Refused, match=r"This client is closed\."):
            closing.pool("docks").acquire(timeout=timeout)
        told.append(True)

    told: list[bool] = []
    with meshlock.connect(agent.socket) as found, found.pool("docks").acquire(3):
        closing = meshlock.connect(agent.socket)
        threads = [threading.Thread(target=wait, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        sooner_or_later(lambda: agent.waiting() == 2)
        closing.close()
        sooner_or_later(lambda: agent.waiting() == 0 and len(told) == 2)
        with pytest.raises(Refused, match="closed"):
            closing.status()


def test_whoever_waits_while_the_client_is_closed_the_same_with_an_event_loop(
    agent: Agent,
) -> None:
    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found, found.pool("docks").acquire(3):
            closing = await meshlock.aconnect(agent.socket)
            waits = [
                asyncio.ensure_future(closing.pool("docks").acquire(1, timeout=timeout))
                for timeout in (None, LIMIT)
            ]
            await eventually(lambda: agent.waiting() == 2)
            await closing.close()
            for task in waits:
                with pytest.raises(Refused, match=r"This client is closed\."):
                    await task
            await eventually(lambda: agent.waiting() == 0)
            with pytest.raises(Refused, match="closed"):
                await closing.status()

    run_in_real_time(story)


# -- an agent that goes away ------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_restart_grants_are_lost_and_those_who_wait_ask_again(
    tmp_path: Path, number: int
) -> None:
    agent = Agent(tmp_path)
    with meshlock.connect(agent.socket) as found:
        pool = found.pool("docks")
        grant = pool.acquire(3)
        late: list[BlockingGrant] = []
        thread = threading.Thread(target=lambda: late.append(pool.acquire(2, timeout=LIMIT)))
        thread.start()
        sooner_or_later(lambda: agent.waiting() == 1)
        agent.stop(number)
        assert grant.wait_lost(LIMIT) and grant.lost and not grant.held
        agent.start()
        thread.join()
        assert late[0].held and agent.held() == 2
        grant.release()
        assert agent.held() == 2
        late[0].release()
        with pool.acquire(3, timeout=LIMIT):
            pass
    agent.stop()


def test_after_a_restart_the_same_with_an_event_loop(tmp_path: Path) -> None:
    agent = Agent(tmp_path)

    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found:
            pool = found.pool("docks")
            grant = await pool.acquire(3)
            waits = asyncio.ensure_future(pool.acquire(2, timeout=LIMIT))
            await eventually(lambda: agent.waiting() == 1)
            agent.stop(signal.SIGKILL)
            assert await grant.wait_lost() and grant.lost and not grant.held
            await asyncio.to_thread(agent.start)
            late = await waits
            assert late.held and agent.held() == 2
            grant.release()
            late.release()
            async with pool.acquire(3, timeout=LIMIT):
                pass

    run_in_real_time(story)
    agent.stop()


LOOKS: dict[str, Callable[[BlockingGrant], object]] = {
    "wait": lambda grant: grant.wait_lost(LIMIT),
    "lost": lambda grant: sooner_or_later(lambda: grant.lost),
    "lease": lambda grant: sooner_or_later(lambda: not grant.lease),
}
"""Ways to learn that a lease has ended, each of a client of its own."""


def test_an_agent_that_is_stopped_cannot_keep_a_lease_from_ending(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    held, over = threading.Barrier(len(LOOKS) + 2), threading.Barrier(len(LOOKS) + 2)

    def blocking(look: str) -> None:
        with meshlock.connect(agent.socket) as found:
            grant = found.pool("gates").acquire(timeout=LIMIT)
            kept = None if look == "lost" else found.pool("docks").acquire(timeout=LIMIT)
            held.wait(LIMIT)
            LOOKS[look](grant)
            assert grant.lost and not grant.held and grant.lease is None
            assert kept is None or kept.held, "no lease, no end"
            over.wait(LIMIT)
            with found.pool("gates").acquire(timeout=LIMIT):
                assert grant.lost and (kept is None or kept.held)

    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found:
            grant = await found.pool("gates").acquire(timeout=LIMIT)
            kept = await found.pool("docks").acquire(timeout=LIMIT)
            await asyncio.to_thread(held.wait, LIMIT)
            assert await grant.wait_lost() and grant.lost and grant.lease is None
            assert kept.held, "no lease, no end"
            await asyncio.to_thread(over.wait, LIMIT)
            async with found.pool("gates").acquire(timeout=LIMIT):
                assert grant.lost and kept.held

    with ThreadPoolExecutor() as threads:
        clients = [threads.submit(blocking, look) for look in LOOKS]
        clients.append(threads.submit(run_in_real_time, story))
        try:
            held.wait(LIMIT)
            agent.process.send_signal(signal.SIGSTOP)
            over.wait(LIMIT)
        finally:
            agent.process.send_signal(signal.SIGCONT)
        for client in clients:
            client.result(LIMIT)
    agent.stop()


def test_commands_do_not_wait_for_an_agent_that_is_stopped(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.process.send_signal(signal.SIGSTOP)
    asking = [
        subprocess.Popen(
            [*PROGRAM, *command, "--socket", agent.socket], stderr=subprocess.PIPE, text=True
        )
        for command in (["status"], ["pool", "list"], ["pool", "show", "docks"])
    ]
    for one in asking:
        said = one.communicate(timeout=LIMIT)[1]
        assert one.returncode == 2
        assert said == f"meshlock: The agent at {agent.socket} did not answer in time.\n"
    agent.process.send_signal(signal.SIGCONT)
    agent.stop()


def test_a_program_that_was_stopped_keeps_what_its_agent_renewed(tmp_path: Path) -> None:
    """Its own clock says that the lease which it knows of is over; the agent knows better."""
    agent = Agent(tmp_path)

    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found:
            grant = await found.pool("bays").acquire(timeout=LIMIT)
            with meshlock.connect(agent.socket) as other:
                blocking = other.pool("bays").acquire(timeout=LIMIT)
                ends = grant.until, blocking.until
                assert ends[0] is not None and ends[1] is not None
                end = max(ends[0], ends[1])
                sooner_or_later(lambda: clock.seconds() > end)  # and nothing is heard meanwhile
                assert blocking.held and not blocking.lost and (blocking.until or 0) > end
            await eventually(lambda: (grant.until or 0) > end)
            assert grant.held and not grant.lost

    run_in_real_time(story)
    agent.stop()


@pytest.fixture
def agents_that_go_one_after_the_other(tmp_path: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    """Two leave the waiting client, each after a long time; the third refuses. Where they answer,
    and the time, of which more passes than does."""
    place, passed = str(tmp_path / "agents"), 0.0
    real = time.monotonic

    def serve() -> None:
        nonlocal passed
        for last in (False, False, True):
            with listener.accept()[0] as session:
                session.recv(65536)
                said = b'{"session":"s","node":"ann","version":"1"}'
                session.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 42\r\n\r\n" + said)
                session.recv(65536)
                session.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                with listener.accept()[0] as line:
                    line.recv(65536)
                    if last:
                        said = b'{"why":"There are three."}'
                        head = b"HTTP/1.1 409 Conflict\r\nContent-Length: 26\r\n\r\n"
                        line.sendall(head + said)
                        line.recv(1)  # until the client hangs up
                    passed += 2 * PATIENCE
                    session.close()  # first: who hears of the line's end finds no agent

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield place, lambda: real() + passed
        thread.join(LIMIT)


def test_patience_counts_from_when_the_last_agent_went(
    agents_that_go_one_after_the_other: tuple[str, Callable[[], float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, now = agents_that_go_one_after_the_other
    # of the client alone: other threads have timers, too
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=now, sleep=time.sleep))
    with meshlock.connect(place) as found, pytest.raises(Refused, match="There are three"):
        found.pool("docks").acquire()


def test_patience_the_same_with_an_event_loop(
    agents_that_go_one_after_the_other: tuple[str, Callable[[], float]],
) -> None:
    place, now = agents_that_go_one_after_the_other

    async def story() -> None:
        async with meshlock.aconnect(place) as found:
            monkeypatch.setattr(asyncio.get_running_loop(), "time", now)
            with pytest.raises(Refused, match="There are three"):
                await found.pool("docks").acquire()

    with pytest.MonkeyPatch.context() as monkeypatch:
        asyncio.run(story())


def test_without_an_agent_one_waits_no_longer_than_one_has_time(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    with meshlock.connect(agent.socket) as found:
        agent.stop()
        with pytest.raises(TimeoutError, match="No agent answers at"):
            found.pool("docks").acquire(timeout=0.1)
        with pytest.raises(Refused, match="No agent answers at"):
            found.status()


def test_an_agent_that_does_not_answer_has_no_permits_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = Agent(tmp_path)

    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as other:
            agent.process.send_signal(signal.SIGSTOP)
            monkeypatch.setattr(agent_protocol, "GRACE", TOO_SOON)
            with pytest.raises(meshlock.NotInTime, match="did not answer in time"):
                await other.pool("docks").acquire(timeout=0)
            assert await other.pool("docks").try_acquire() is None
            with pytest.raises(Refused, match="did not answer in time"):
                await meshlock.aconnect(agent.socket)

    with meshlock.connect(agent.socket) as found:
        run_in_real_time(story)
        assert found.pool("docks").try_acquire() is None
        agent.process.send_signal(signal.SIGCONT)
    agent.stop()


# -- sentences --------------------------------------------------------------------------------


def test_no_agent(tmp_path: Path) -> None:
    place = str(tmp_path / "none")
    with pytest.raises(Refused, match=f"No agent answers at {place} .*'meshlock agent'"):
        meshlock.connect(place)

    async def story() -> None:
        with pytest.raises(Refused, match=f"No agent answers at {place}"):
            await meshlock.aconnect(place)

    run_in_real_time(story)


def test_an_agent_that_one_may_not_use(agent: Agent) -> None:
    error = agent_connection.no_agent(
        agent.socket, PermissionError(errno.EACCES, "Permission denied")
    )
    assert str(error).startswith(f"Permission denied to use the agent at {agent.socket} (user ")
    assert "srw-rw----" in str(error) and "join the group of its socket" in str(error)


@pytest.mark.parametrize(
    "answer", [b'{"ok": false}\n', b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"]
)
def test_an_agent_that_is_too_old(tmp_path: Path, answer: bytes) -> None:
    place = str(tmp_path / "old")

    def serve() -> None:
        for _ in range(2):
            with listener.accept()[0] as line:
                line.recv(65536)
                line.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(
            Refused, match="is not the socket of an agent of this version of meshlock: restart"
        ):
            meshlock.connect(place)

        async def story() -> None:
            with pytest.raises(
                Refused, match="is not the socket of an agent of this version of meshlock"
            ):
                await meshlock.aconnect(place)

        run_in_real_time(story)
        thread.join()


def test_an_agent_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_protocol, "GRACE", A_MOMENT)
    place = str(tmp_path / "hangs")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen()
        with pytest.raises(Refused, match="did not answer in time"):
            meshlock.connect(place)


LIGHT = """
import sys
import meshlock
meshlock.connect
print(*sorted({"asyncio", "msgspec", "typing", "pathlib", "urllib", "ssl"} & set(sys.modules)))
"""


def test_a_client_imports_little() -> None:
    """Without site, which imports on its own account what editable installs need."""
    where = str(Path(meshlock.__file__).parents[1])
    program = [sys.executable, "-S", "-c", LIGHT]
    environment = {**os.environ, "PYTHONPATH": where}
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "\n"


def test_what_a_client_was_told_is_in_the_agents_status(agent: Agent) -> None:
    async def story() -> None:
        found = await meshlock.aconnect(agent.socket)
        assert isinstance(found, Client)
        assert json.dumps((await found.status())["pools"]["docks"]["permits"]) == "3"
        await found.close()
        with pytest.raises(Refused, match="closed"):
            await found.pool("docks").acquire()

    run_in_real_time(story)


def test_one_after_another_asks_over_one_connection(agent: Agent) -> None:
    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as found:
            for _ in range(20):
                async with found.pool("docks").acquire(timeout=LIMIT):
                    pass
            assert len(found._agent.lines) == 2  # one of them has the session

    run_in_real_time(story)
