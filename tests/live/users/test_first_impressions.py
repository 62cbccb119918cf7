"""What people meet who use it for the first time: each of these once said something else."""

from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import virtual
from lines import line

import meshlock
from meshlock import Node, Refused
from meshlock.live.interfaces.configuration import read
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.serving import serving_socket
from meshlock.live.pools import members, views
from meshlock.live.pools.status import GONE
from meshlock.web.live import alarms, view
from waiting import LIMIT, a_while, eventually

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]


def test_a_dead_node_that_is_missed_by_nobody_is_no_alarm() -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network, "abc") as (nodes, _):
            a, b, c = nodes.values()
            pool = a.pool("docks", 1, members=["a", "b"], lease=3.0)
            b.pool("docks", 1, members=["a", "b"], lease=3.0)
            (await pool.acquire(timeout=LIMIT)).release()
            await eventually(lambda: "c" in a.status()["map"])

            def alarm() -> list[str]:
                return [one for one in alarms(view(b._local, "docks")) if "c" in one.split()]

            await c._local.vanish()
            await eventually(lambda: b.status()["map"]["c"]["distance"] is None)
            assert alarm() and not b.status()["links"]["c"]["gone"]
            await a_while(GONE)
            assert not alarm()
            found = b.status()
            assert found["map"]["c"]["gone"] and found["links"]["c"]["gone"]
            assert found["pools"]["docks"]["unreachable"] == []
            await a._local.vanish()  # a member
            await a_while(GONE)
            found = b.status()
            assert not found["map"]["a"]["gone"] and not found["links"]["a"]["gone"]
            assert found["pools"]["docks"]["unreachable"] == ["a"]

    virtual.run(story)


def test_a_recovery_is_logged_with_epoch_token_and_how_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(network: virtual.Network) -> None:
        async with line(network, "abc") as (nodes, _):
            members: dict[str, Any] = {"members": ["a", "b", "c"], "lease": 3.0}
            pools = [node.pool("docks", 1, **members) for node in nodes.values()]
            grant = await pools[0].acquire(timeout=LIMIT)  # here is the token, and here it is lost
            caplog.clear()
            assert grant.held
            await nodes["a"]._local.vanish()
            async with pools[1].acquire(timeout=LIMIT):
                await eventually(lambda: {"b", "c"} <= {one["node"] for one in epochs(caplog)})

    with caplog.at_level(logging.INFO, "meshlock"):
        virtual.run(story)
    for details in epochs(caplog):
        assert details["token"] == "new" and details["proposer"] in ("b", "c")
        assert details["epoch"] > 1 and 3.0 <= details["seconds"] < 10.0


def epochs(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found = [vars(record) for record in caplog.records]
    return [record["details"] for record in found if record.get("happened") == "new epoch"]


def test_for_how_long_a_grant_is_held_is_not_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "time", lambda: 1000.875)
    assert views.read(members.note(7, "ann"))[1] == 1000.875


def test_a_forgotten_await_warns() -> None:
    async def story() -> None:
        async with Node("a", state=None) as a:
            docks = a.pool("docks", permits=1)
            with pytest.warns(RuntimeWarning, match="acquire of docks was never awaited"):
                docks.acquire()
                gc.collect()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                async with docks.acquire(timeout=LIMIT):
                    assert await docks.try_acquire() is None
                (await docks.acquire(timeout=LIMIT)).release()
                (await asyncio.ensure_future(docks.acquire(timeout=LIMIT))).release()
                gc.collect()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("permits = 2\n", "'permits' is in the wrong place: write it below [pools.NAME]"),
        ('[pools.a]\nlisten = "x"\n', "'listen' is in the wrong place: write it at the top of"),
        ("[pools.a]\npermit = 2\n", "there is no 'permit'; did you mean 'permits'"),
    ],
)
def test_a_key_in_the_wrong_table(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text)
    with pytest.raises(Refused) as refused:
        read(file)
    assert place in str(refused.value)


# -- commands, with an agent ------------------------------------------------------------------


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("agent")
    options = ["--name", "ann", "--socket", str(folder / "socket"), "--state", str(folder)]
    pools = ["--pool", "docks=2", "--pool", "gpus=gpu0,gpu1", "--http", "127.0.0.1:0"]
    command = [*PROGRAM, "agent", *options, *pools]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while '"ready"' not in lines[-1] and lines[-1]:
            lines.append(process.stderr.readline())
        yield str(folder / "socket"), lines
        process.terminate()


def said(agent: Any, *words: str) -> tuple[int, str, str]:
    where = ["--socket", agent[0]]
    at = words.index("--") if "--" in words else len(words)
    command = [*PROGRAM, *words[:at], *where, *words[at:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


def test_ready_names_the_port_of_http(agent: Any) -> None:
    assert '"http":"127.0.0.1:' in agent[1][-1] and '"http":"127.0.0.1:0"' not in agent[1][-1]


def test_a_number_and_names_of_permits_are_not_nothing(agent: Any) -> None:
    code, _, error = said(agent, "pool", "set", "docks", "--permits", "2", "--slots", "a,b")
    assert (code, error.strip()) == (
        2,
        "meshlock: Leave out --permits: the names of --slots say how many there are.",
    )
    assert "Nothing to set" in said(agent, "pool", "set", "docks")[2]


def test_names_of_permits_that_have_none(agent: Any) -> None:
    exec_ = ["exec", "--slots-to", "CUDA_VISIBLE_DEVICES", "--pool"]
    code, out, error = said(agent, *exec_, "docks", "--", "echo", "ran")
    assert code == 2 and out == "" and "CUDA_VISIBLE_DEVICES would be empty" in error
    code, out, _ = said(agent, *exec_, "gpus", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert (code, out) == (0, "gpu0\n")


def test_the_exit_code_of_a_command_that_is_not_there(agent: Any, tmp_path: Path) -> None:
    code, _, error = said(agent, "exec", "--pool", "docks", "--", "no-such-command")
    assert code == 127 and "cannot run no-such-command: No such file" in error
    (tmp_path / "text").write_text("no program")
    assert said(agent, "exec", "--pool", "docks", "--", str(tmp_path / "text"))[0] == 126


def test_an_old_python_is_told_at_once() -> None:
    text = "import sys; sys.version_info = (3, 10, 13); import meshlock"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert "ImportError: meshlock needs Python 3.11 or newer" in done.stderr
    assert meshlock.__version__


# -- pools that clients make ------------------------------------------------------------------


def test_a_client_has_a_pool_made_where_the_agent_allows_it(tmp_path: Path) -> None:
    async def story() -> None:
        place = str(tmp_path / "socket")
        async with (
            Node("a", state=None) as a,
            serving_socket(Interface(a, makes_pools=True), place),
            meshlock.aconnect(place) as client,
        ):
            docks = client.pool("docks", permits=3)
            async with docks.acquire(2, timeout=LIMIT):
                assert docks.permits == 3
            with pytest.raises(Refused, match="Pool docks has 3 permits, not 4"):
                await client.pool("docks", permits=4).acquire(timeout=LIMIT)
            async with client.pool("docks", permits=3).acquire(timeout=LIMIT):
                pass
            await docks.set_permits(5, timeout=LIMIT)
            async with client.pool("docks", permits=3).acquire(timeout=LIMIT):
                pass  # it was made with 3
            found = await asyncio.to_thread(blocking, place)
            assert found == ("gpu0",) and sorted(a._local.pools) == ["docks", "gpus"]

    def blocking(place: str) -> tuple[str, ...]:
        with meshlock.connect(place) as client:
            grant = client.pool("gpus", permits=["gpu0", "gpu1"]).acquire(timeout=LIMIT)
            return grant.slots

    asyncio.run(story())


def test_a_client_makes_no_pool_where_the_agent_does_not_allow_it(agent: Any) -> None:
    with meshlock.connect(agent[0]) as client:
        with pytest.raises(Refused, match="makes no pool bays for a program: start it with --cli"):
            client.pool("bays", permits=3)
        assert client.pool("docks", permits=2).permits == 2


def test_how_many_pools_there_may_be_is_a_setting() -> None:
    async def story() -> None:
        async with Node("a", state=None, most_pools=2) as a:
            a.pool("one", permits=1)
            a.pool("two", permits=1)
            with pytest.raises(Refused, match="this node has 2 pools already"):
                a.pool("three", permits=1)

    asyncio.run(story())
