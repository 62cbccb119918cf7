"""One program cannot shut out the others: who gets a connection to the agent, and who does not."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

import meshlock
from meshlock import Refused
from meshlock.live.interfaces import agent_client
from meshlock.live.interfaces.agent_client import Holding
from meshlock.live.interfaces.agent_connection import Connection
from meshlock.live.interfaces.agent_protocol import AgentGone, Unreleased
from meshlock.live.interfaces.async_client import Line
from meshlock.live.interfaces.places import Caller, ClientPlaces, Turns
from waiting import LIMIT, run_in_real_time, sooner_or_later

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
FILES = 240
PLACES = 150
"""Five of eight files that the agent may open."""


class Guest:
    def __init__(self, owner: Caller, holds: bool = False) -> None:
        self.owner = owner
        self.holds = holds


def test_whoever_has_the_most_makes_room() -> None:
    chance = random.Random(5)
    places: ClientPlaces[Guest] = ClientPlaces(30)
    here: list[Guest] = []
    for _ in range(3000):
        if here and chance.random() < 0.3:
            gone = here.pop(chance.randrange(len(here)))
            assert places.leave(gone) and not places.leave(gone)
            continue
        user = chance.choice([1, 1, 1, 2, 3])
        guest = Guest(Caller(user, 10 * user + chance.randrange(3)), chance.random() < 0.2)
        here.append(guest)
        victim = places.enter(guest)
        users = Counter(one.owner.user for one in here)
        most = max(users.values())
        if victim is None:
            assert len(here) <= 30
        elif victim is not guest:
            assert not victim.holds and users[victim.owner.user] == most
            own = Counter(one.owner for one in here if one.owner.user == victim.owner.user)
            assert own[victim.owner] == max(own.values())
            newest = [one for one in here if one.owner == victim.owner and not one.holds][-1]
            assert victim is newest
        if victim is not None:
            here.remove(victim)
        assert places.count == len(here)


def test_nobody_with_fewer_connections_is_turned_away() -> None:
    places: ClientPlaces[Guest] = ClientPlaces(100)
    for _ in range(200):
        places.enter(Guest(Caller(1, 1)))
    for process in range(2, 40):
        guest = Guest(Caller(1, process))
        assert places.enter(guest) is not guest
    for process in range(50):
        guest = Guest(Caller(2, process))
        assert places.enter(guest) is not guest, "half of all places are for the other user"


def test_requests_are_taken_in_turns_of_users_and_of_their_processes() -> None:
    turns: Turns[Guest] = Turns()
    owners = [Caller(1, 1)] * 4 + [Caller(1, 2)] * 2 + [Caller(2, 1)] * 2
    for owner in owners:
        turns.add(Guest(owner))
    taken = []
    while turns.users:
        taken.append(turns.next().owner)
    assert " ".join(f"{user}{process}" for user, process in taken) == "11 21 12 21 11 12 11 11"


# -- real agents ------------------------------------------------------------------------------


class Agent:
    """With few files, a pool of three docks, and one of two bays under leases."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "socket")
        self.log = folder / "log"
        settings = folder / "ann.toml"
        settings.write_text(
            f'name = "ann"\nsocket = "{self.socket}"\nstate = "{folder / "state"}"\n'
            'pools.docks = {permits = 3, founder = true, recovery = "none"}\n'
            "pools.bays = {permits = 2, lease = 5.0}\n"
        )
        self.command = [*PROGRAM, "agent", str(settings)]
        self.start()

    def start(self) -> None:
        def few_files() -> None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (FILES // 2, FILES))

        with self.log.open("w") as errors:
            self.process = subprocess.Popen(self.command, stderr=errors, preexec_fn=few_files)
        sooner_or_later(lambda: '"ready"' in self.log.read_text() or self.process.poll())
        assert self.process.poll() is None, self.log.read_text()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT)
        assert "Traceback" not in self.log.read_text()

    def asked(self, path: str) -> tuple[int, bytes]:
        line = Connection(self.socket)
        try:
            return line.call("GET", path)
        finally:
            line.close()

    def held(self) -> int:
        holding = json.loads(self.asked("/v1/pools/docks")[1])["status"]["holding"]
        return sum(grant["want"] for grant in holding)

    def execute(self, *arguments: str) -> list[str]:
        return [*PROGRAM, "exec", "--socket", self.socket, "--pool", *arguments]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    agent = Agent(tmp_path_factory.mktemp("agent"))
    yield agent
    agent.stop()


FLOOD = """
import socket, sys, time
place, said = sys.argv[1], sys.argv[2].encode()
lines = []
def fill():
    for _ in range({many}):
        line = socket.socket(socket.AF_UNIX)
        line.connect(place)
        try:
            line.sendall(said)
        except OSError:
            pass
        lines.append(line)
fill()
print("full", flush=True)
while True:
    time.sleep(1)
    before = lines[:]
    lines.clear()
    fill()
    for line in before:
        line.close()
"""

SAYING = {
    "nothing": "",
    "a part of a request": "POST /v1/sess",
    "sessions": "POST /v1/sessions HTTP/1.1\r\nHost: x\r\n\r\n",
    "health": "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "requests that wait": "POST /v1/pools/docks/acquire HTTP/1.1\r\nHost: x\r\n"
    'Content-Length: 20\r\n\r\n{"want":3,"ttl":0.1}',
}


@contextmanager
def flooded(agent: Agent, saying: str) -> Iterator[None]:
    """By another program, which comes again and again."""
    command = [sys.executable, "-c", FLOOD.format(many=4 * PLACES), agent.socket, saying]
    flood = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert flood.stdout is not None and flood.stdout.readline() == b"full\n"
        yield
    finally:
        flood.kill()
        flood.communicate()


@pytest.mark.parametrize("saying", SAYING)
def test_a_program_that_takes_all_connections_harms_no_other(agent: Agent, saying: str) -> None:
    with meshlock.connect(agent.socket) as innocent:
        held = innocent.pool("bays").acquire()
        docks = innocent.pool("docks").acquire(3)
        with flooded(agent, SAYING[saying]):
            first = held.until
            assert first is not None
            assert agent.asked("/healthz")[0] == agent.asked("/readyz")[0] == 200
            sooner_or_later(lambda: held.lost or (held.until or 0) > first + 1.0)
            assert held.held and docks.held and not docks.lost
            docks.release(2)
            docks.release()
            with (
                meshlock.connect(agent.socket) as another,
                another.pool("bays").acquire(timeout=LIMIT) as one,
            ):
                assert one.held
            done = subprocess.run(
                agent.execute("bays", "--", "echo", "served"), capture_output=True, text=True
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")
            assert not held.lost
            sooner_or_later(lambda: '"refused"' in agent.log.read_text())
        held.release()


def test_the_same_with_an_event_loop(agent: Agent) -> None:
    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as innocent:
            held = await innocent.pool("bays").acquire()
            with flooded(agent, SAYING["sessions"]):
                first = held.until
                while not held.lost and (held.until or 0) <= (first or 0) + 1.0:
                    await innocent.status()
                assert held.held
                async with innocent.pool("bays").acquire(timeout=LIMIT):
                    pass
            held.release()

    run_in_real_time(story)


@contextmanager
def full(agent: Agent) -> Iterator[list[Connection]]:
    """Of connections of this program."""
    lines = [Connection(agent.socket) for _ in range(PLACES + 20)]
    try:
        sooner_or_later(lambda: agent.asked("/v1/status")[0] == 503)
        yield lines
    finally:
        for line in lines:
            line.close()


def test_a_program_with_too_many_connections_is_told_in_a_sentence(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "PATIENCE", 0.0)
    most = r"most of them of user \d+, process \d+"
    why = rf"^The agent has too many connections \({PLACES}, {most}\): close some of these\.$"
    with meshlock.connect(agent.socket) as client, full(agent):
        assert agent.asked("/healthz")[0] == 200
        with pytest.raises(Refused, match=why):
            meshlock.connect(agent.socket)
        with pytest.raises(Refused, match=why):
            client.status()
        with pytest.raises(Refused, match=why):
            client.pool("docks").acquire()
        with pytest.raises(TimeoutError, match=why):
            client.pool("docks").acquire(timeout=0)

    async def story() -> None:
        with pytest.raises(Refused, match=why):
            await meshlock.aconnect(agent.socket)

    with full(agent):
        run_in_real_time(story)
    sooner_or_later(lambda: agent.asked("/v1/status")[0] == 200)


def test_exec_in_a_crowd_of_one_process_gets_in(agent: Agent) -> None:
    with full(agent):
        done = subprocess.run(
            agent.execute("docks", "--", "true"), capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_what_a_program_holds_is_kept_when_its_other_connections_make_room(agent: Agent) -> None:
    with meshlock.connect(agent.socket) as client:
        grant = client.pool("docks").acquire(2)
        with full(agent):
            assert grant.held
            grant.release(1)
        assert agent.held() == 1
        grant.release()
        assert agent.held() == 0


# -- connections that end while the agent goes on ---------------------------------------------


def cut(client: Any) -> None:
    """The connections that are idle; the agent takes nothing back, for it was asked since."""
    client.status()
    for line in client._agent.idle:
        line.shut_down()


@pytest.mark.parametrize("part", [None, 1])
def test_a_release_over_a_connection_that_has_ended_is_repeated(
    agent: Agent, part: int | None
) -> None:
    with meshlock.connect(agent.socket) as client:
        grant = client.pool("docks").acquire(3)
        cut(client)
        grant.release(part)
        assert agent.held() == (0 if part is None else 2)
        assert part is None or grant.held


@pytest.mark.parametrize("part", [None, 1])
@pytest.mark.parametrize("arrives", [False, True])
def test_a_release_that_may_not_have_arrived_is_made_once(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, part: int | None, arrives: bool
) -> None:
    release: Callable[..., None] = Connection.release

    def lossy(line: Connection, what: Unreleased, held: int) -> None:
        if arrives:
            release(line, what, held)
        else:
            line.exchange.asked.append(what)
        line.shut_down()

    with meshlock.connect(agent.socket) as client:
        grant = client.pool("docks").acquire(3)
        client.status()
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "release", lossy)
            grant.release(part)
        client.status()
        assert agent.held() == (0 if part is None else 2)


def test_a_release_over_a_connection_that_has_ended_the_same_with_an_event_loop(
    agent: Agent,
) -> None:
    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as client:
            for part in (None, 1):
                grant = await client.pool("docks").acquire(3)
                await client.status()
                for line in cast(list[Line], client._agent.idle):
                    line.transport.get_extra_info("socket").shutdown(2)
                grant.release(part)
                while agent.held() != (0 if part is None else 2):
                    await client.status()
                assert part is None or grant.held

    run_in_real_time(story)


def test_a_command_that_waits_survives_a_restart_of_its_agent(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    with meshlock.connect(agent.socket) as holder:
        holder.pool("docks").acquire(3)
        waits = subprocess.Popen(
            agent.execute("docks", "--", "echo", "served"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        sooner_or_later(lambda: json.loads(agent.asked("/v1/pools/docks")[1])["status"]["waiting"])
        agent.stop()
        agent.start()
    assert waits.communicate(timeout=LIMIT) == ("served\n", "")
    assert waits.returncode == 0
    agent.stop()


def no_place(*_: object, **__: object) -> tuple[int, bytes]:
    return 503, b'{"why": "The agent has too many connections."}'


def cut_off(*_: object, **__: object) -> tuple[int, bytes]:
    raise AgentGone("The agent closed the connection.")


@pytest.mark.parametrize("answer", [no_place, cut_off])
def test_only_the_agents_word_is_taken_for_a_loss(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, answer: Callable[..., tuple[int, bytes]]
) -> None:
    """It still has the session, and so it still holds the permits."""

    async def call(*_: object, **__: object) -> tuple[int, bytes]:
        return answer()

    with meshlock.connect(agent.socket) as client:
        grant = client.pool("bays").acquire()
        with monkeypatch.context() as patch:
            patch.setattr(client._agent, "call", call)
            assert grant.until is not None  # it is asked now
            assert grant.held and not grant.lost
        grant.release()
        assert not grant.lost


@pytest.mark.parametrize("answer", [no_place, cut_off])
def test_only_the_agents_word_is_taken_for_a_loss_the_same_with_an_event_loop(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, answer: Callable[..., tuple[int, bytes]]
) -> None:
    asked = asyncio.Event()

    async def call(*_: object, **__: object) -> tuple[int, bytes]:
        asked.set()
        return answer()

    async def story() -> None:
        async with meshlock.aconnect(agent.socket) as client:
            grant = await client.pool("bays").acquire()
            holding = cast(Holding, grant._source)
            with monkeypatch.context() as patch:
                patch.setattr(client._agent, "call", call)
                patch.setattr(holding, "third", (grant.lease or 0) + 1.0)  # it is asked now
                client._wires.watch(holding.session)
                await asked.wait()
                await asyncio.sleep(0)
                assert grant.held and not grant.lost
            grant.release()

    run_in_real_time(story)
