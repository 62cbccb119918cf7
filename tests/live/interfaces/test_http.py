"""What can be asked of an agent over HTTP: as described, by other programs, and all day long."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meshlock import Node
from meshlock.live.interfaces.agent_connection import Connection
from meshlock.live.interfaces.agent_protocol import AgentGone
from meshlock.live.interfaces.async_client import Line
from meshlock.live.interfaces.http import Interface
from meshlock.live.interfaces.serving import serving_port, serving_socket
from ports import free_port
from waiting import LIMIT, eventually, run, sooner_or_later

ROOT = Path(__file__).parents[3]
PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
TOKEN = "let me in"


class Agent:
    """With a socket and a port."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "socket")
        self.log = folder / "log"
        (folder / "token").write_text(TOKEN)
        self.port = free_port()
        given = ["--name", "ann", "--socket", self.socket, "--pool", "docks=3", "--pool", "bays=3"]
        given += ["--http", f"127.0.0.1:{self.port}", "--http-token-file", str(folder / "token")]
        with self.log.open("w") as errors:
            self.process = subprocess.Popen([*PROGRAM, "agent", *given], stderr=errors, cwd=folder)
        sooner_or_later(lambda: '"ready"' in self.log.read_text() or self.process.poll())
        assert self.process.poll() is None, self.log.read_text()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    agent = Agent(tmp_path_factory.mktemp("agent"))
    yield agent
    agent.process.terminate()
    assert agent.process.wait(LIMIT) == 0
    assert "Traceback" not in agent.log.read_text()


HOOKS = """
import schemathesis

MOST = {"timeout": 0.05, "ttl": 1.0}


@schemathesis.hook
def before_call(context, case, *_):
    if isinstance(case.body, dict):
        if case.operation.path.endswith("/acquire"):
            case.body["timeout"] = case.body.get("timeout") or MOST["timeout"]
        for name, most in MOST.items():
            if type(case.body.get(name)) in (int, float) and most < case.body[name] <= 1e9:
                case.body[name] = most
"""
"""Nobody waits for long, or holds for long."""


@pytest.mark.parametrize("known", [False, True])
def test_schemathesis_finds_nothing(agent: Agent, tmp_path: Path, known: bool) -> None:
    """As a stranger, or as one that knows the name of a pool, and so gets permits."""
    pytest.importorskip("schemathesis", reason="needs schemathesis")
    sooner_or_later(lambda: Connection(agent.socket).call("GET", "/readyz")[0] == 200)
    program = str(Path(sys.executable).parent / "schemathesis")
    given = ["--header", f"Authorization: Bearer {TOKEN}", "--max-examples", "5", "--seed", "1"]
    given += ["--phases", "coverage,fuzzing,stateful", "--no-color"]
    given += ["--request-timeout", f"{LIMIT}", "--suppress-health-check", "too_slow"]
    environment = {**os.environ}
    if known:
        (tmp_path / "schemathesis.toml").write_text('[parameters]\n"path.pool" = "bays"\n')
        (tmp_path / "short.py").write_text(HOOKS)
        environment |= {"SCHEMATHESIS_HOOKS": "short", "PYTHONPATH": str(tmp_path)}
        given += ["--exclude-operation-id", "remove_pool"]
        given += ["--exclude-operation-id", "change_permits"]  # each takes an epoch
    done = subprocess.run(
        [program, "run", f"http://127.0.0.1:{agent.port}/openapi.json", *given],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0, done.stdout
    entries = Connection(agent.socket).ask("GET", "/v1/pools/bays")["status"]["entries"]
    assert (entries > 0) == known


# -- the description --------------------------------------------------------------------------


def test_everything_that_can_be_asked_is_described(agent: Agent) -> None:
    told = Connection(agent.socket).ask("GET", "/openapi.json")
    assert told["openapi"] == "3.1.0" and "security" not in told
    names = [one["operationId"] for path in told["paths"].values() for one in path.values()]
    assert len(names) == len(set(names))
    for path, operations in told["paths"].items():
        for one in operations.values():
            named = {given["name"] for given in one["parameters"] if given["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))
            for status, answer in one["responses"].items():
                assert ("content" in answer) == (status != "204")
    text = json.dumps(told)
    for name in re.findall(r'"#/components/schemas/(\w+)"', text):
        assert name in told["components"]["schemas"]
    assert "\\\\A" not in text


def test_a_port_with_a_token_says_so_and_asks_for_it(agent: Agent) -> None:
    async def story() -> None:
        async def ask(path: str, *headers: str) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
            lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            found = await reader.read()
            writer.close()
            return found

        told = json.loads((await ask("/openapi.json")).partition(b"\r\n\r\n")[2])
        assert told["security"] == [{"token": []}]
        for path, operations in told["paths"].items():
            if "get" in operations:
                status = (await ask(path)).split(b" ")[1]
                assert (status == b"401") == (operations["get"].get("security") != [])
        assert b"\r\nWWW-Authenticate: Bearer\r\n" in await ask("/v1/status")
        assert b" 200 OK" in await ask("/v1/status", f"Authorization: Bearer {TOKEN}")

    run(story)


# -- how the agent is -------------------------------------------------------------------------


def test_healthy_and_ready(tmp_path: Path) -> None:
    async def story() -> None:
        place = str(tmp_path / "socket")
        async with Node("a") as a, serving_socket(Interface(a), place):
            line = await Line(place).open()

            async def ask(path: str) -> tuple[int, dict[str, Any]]:
                status, said = await line.call("GET", path)
                return status, json.loads(said)

            a.pool("docks", permits=2)
            assert (await ask("/healthz"))[0] == 200
            assert await ask("/readyz") == (200, {"node": "a", "ready": True, "why": []})
            a.pool("bays")  # which nobody has made yet
            a.pool("gates", 1, members=["a", "b", "c"])
            await eventually(lambda: a._local.pools["gates"].describe()["members_reachable"] == 1)
            status, told = await ask("/readyz")
            assert status == 503 and not told["ready"]
            assert told["why"] == [
                "bays: no neighbour has announced it yet",
                "gates: quorum lost: 1 of 3 members reachable",
            ]
            line.transport.close()

    run(story)


# -- news -------------------------------------------------------------------------------------


def test_a_pool_is_told_when_it_has_changed(tmp_path: Path) -> None:
    async def story() -> None:
        place = str(tmp_path / "socket")
        async with Node("a") as a, serving_socket(Interface(a), place):
            docks = a.pool("docks", permits=2)
            line, stream = await Line(place).open(), await Line(place).open()
            seen: list[dict[str, Any]] = []
            stream.told = seen.append
            accept = "Accept: text/event-stream\r\n"
            await stream.call("GET", "/v1/pools/docks", more=accept)
            first = json.loads((await line.call("GET", "/v1/pools/docks"))[1])
            await eventually(lambda: seen == [first])
            async with docks.acquire(2):
                await eventually(lambda: seen[-1]["status"]["holding"] != [])
                assert seen[-1]["status"]["holding"][0]["want"] == 2
            await eventually(lambda: seen[-1]["status"]["holding"] == [])
            for end in (line, stream):
                end.transport.close()

    run(story)


def test_a_session_is_notified_of_its_losses(tmp_path: Path) -> None:
    async def story() -> None:
        place = str(tmp_path / "socket")
        async with Node("a") as a, serving_socket(Interface(a), place):
            docks = a.pool("docks", permits=2)
            holds, asks = await Line(place).open(), await Line(place).open()
            name = json.loads((await holds.call("POST", "/v1/sessions"))[1])["session"]
            body = json.dumps({"session": name})
            grant = json.loads((await asks.call("POST", "/v1/pools/docks/acquire", body))[1])
            assert grant["ttl"] is None
            renewed = await asks.call("POST", f"/v1/grants/{grant['grant']}/renew")
            assert renewed[0] == 409
            seen: list[dict[str, Any]] = []
            holds.told = seen.append
            path = f"/v1/sessions/{name}/events"
            await holds.call("GET", path, more="Accept: text/event-stream\r\n")
            docks._source.close()
            event = {"event": "lost", "grant": grant["grant"], "until": None}
            await eventually(lambda: seen == [event])
            holds.transport.close()
            body = json.dumps({"session": name})
            while (await asks.call("POST", "/v1/pools/docks/acquire", body))[0] != 404:
                await asyncio.sleep(0.01)
            asks.transport.close()

    run(story)


def test_a_session_that_ends_releases_what_its_client_was_seen_to_have(tmp_path: Path) -> None:
    """Not only an answer that nobody may have read: the client has asked again since."""

    async def story() -> None:
        place = str(tmp_path / "socket")
        async with Node("a") as a, serving_socket(Interface(a), place):
            docks = a.pool("docks", permits=1)
            holds, asks = await Line(place).open(), await Line(place).open()
            name = json.loads((await holds.call("POST", "/v1/sessions"))[1])["session"]
            body = json.dumps({"session": name})
            grant = json.loads((await asks.call("POST", "/v1/pools/docks/acquire", body))[1])
            assert (await asks.call("GET", f"/v1/grants/{grant['grant']}"))[0] == 200
            holds.transport.close()
            asks.transport.close()
            (await docks.acquire(1, timeout=LIMIT)).release()

    run(story)


def test_a_session_is_told_of_renewals_and_not_of_what_the_answer_said(tmp_path: Path) -> None:
    async def story() -> None:
        place = str(tmp_path / "socket")
        async with Node("a", state=tmp_path) as a, serving_socket(Interface(a), place):
            a.pool("docks", permits=2, lease=0.5)
            told: list[dict[str, Any]] = []
            holds, asks = await Line(place).open(), await Line(place).open()
            name = json.loads((await holds.call("POST", "/v1/sessions"))[1])["session"]
            holds.told = told.append
            path = f"/v1/sessions/{name}/events?leases=true"
            await holds.call("GET", path, more="Accept: text/event-stream\r\n")
            path, body = "/v1/pools/docks/acquire", json.dumps({"session": name})
            answered: dict[str, float] = {}
            for number in range(20):
                grant = json.loads((await asks.call("POST", path, body))[1])
                answered[grant["grant"]] = grant["until"]
                if number < 19:
                    await asks.call("DELETE", f"/v1/grants/{grant['grant']}")
            await eventually(lambda: [one["grant"] for one in told].count(grant["grant"]) >= 2)
            for one in told:
                assert one["event"] == "lease" and one["until"] > answered[one["grant"]]
                answered[one["grant"]] = one["until"]
            holds.transport.close()
            asks.transport.close()

    run(story)


def test_a_port_in_use_is_a_sentence() -> None:
    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            place = f"127.0.0.1:{taken.getsockname()[1]}"
            async with Node("a") as a:
                with pytest.raises(ValueError, match=f"Cannot listen at {place}: address already"):
                    async with serving_port(Interface(a), place, None):
                        pass

    run(story)


def test_a_stream_ends_with_the_agent(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    line = Connection(agent.socket)
    line.follow("/v1/pools/docks")
    assert line.events(LIMIT)[0]["pool"] == "docks"
    agent.process.terminate()
    with pytest.raises(AgentGone):
        while True:
            line.events(LIMIT)
    assert agent.process.wait(LIMIT) == 0


# -- other languages --------------------------------------------------------------------------


def snippet(language: str) -> str:
    """What the documentation shows."""
    text = (ROOT / "docs" / "how-to" / "http.md").read_text(encoding="utf-8")
    found = re.search(rf"(?s)```{language}\n(.*?)```", text)
    assert found is not None
    return found[1]


def tells(agent: Agent, *command: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, "MESHLOCK_SOCKET": agent.socket},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    sooner_or_later(
        lambda: not Connection(agent.socket).ask("GET", "/v1/pools/docks")["status"]["holding"]
    )
    return done.stdout


def refused(agent: Agent, *command: str) -> bool:
    """Does it end without permits, and say why?"""
    environment = {**os.environ, "MESHLOCK_SOCKET": agent.socket}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    return done.returncode != 0 and done.stdout == "" and "No pool 'doks'" in done.stderr


def test_the_snippet_for_bash(agent: Agent) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    assert tells(agent, "bash", "-c", snippet("bash")) == "two docks for me\n"
    assert refused(agent, "bash", "-c", snippet("bash").replace("docks/", "doks/"))


def test_the_snippet_for_node_js(agent: Agent, tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("needs Node.js")
    (tmp_path / "x.js").write_text(snippet("js"))
    assert re.fullmatch(
        r"two docks for me, fence \d+\n", tells(agent, "node", str(tmp_path / "x.js"))
    )
    (tmp_path / "x.js").write_text(snippet("js").replace("docks/", "doks/"))
    assert refused(agent, "node", str(tmp_path / "x.js"))


def test_the_snippet_for_go(agent: Agent, tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("needs Go")
    (tmp_path / "x.go").write_text(snippet("go"))
    assert re.fullmatch(
        r"two docks for me, fence \d+\n", tells(agent, "go", "run", str(tmp_path / "x.go"))
    )
    (tmp_path / "x.go").write_text(snippet("go").replace("docks/", "doks/"))
    assert refused(agent, "go", "run", str(tmp_path / "x.go"))


GENERATED = """
import sys
import httpx
from meshlock_agent_client import AuthenticatedClient, Client
from meshlock_agent_client.api.default import acquire, release, renew, show_grant, status, who
from meshlock_agent_client.models import (
    Acquire, Granted, Held, NotNow, Picture, Renewed, Status, Why)

port, token, socket = sys.argv[1:]
at_socket = {"transport": httpx.HTTPTransport(uds=socket)}
for client in (
    AuthenticatedClient(f"http://127.0.0.1:{port}", token),
    Client("http://agent", httpx_args=at_socket),
):
    got = acquire.sync("docks", client=client, body=Acquire(want=2, ttl=60.0, label="made"))
    assert isinstance(got, Granted) and got.want == 2, got
    assert isinstance(show_grant.sync(got.grant, client=client), Held)
    assert isinstance(renew.sync(got.grant, client=client), Renewed)
    seen = who.sync("docks", client=client)
    assert isinstance(seen, Picture) and [one.label for one in seen.holding] == ["made"], seen
    seen = status.sync(client=client)
    assert isinstance(seen, Status) and seen.pools["docks"].holding[0].want == 2, seen
    assert release.sync_detailed(got.grant, client=client, permits=1).status_code == 204
    assert release.sync_detailed(got.grant, client=client).status_code == 204
    wrong = acquire.sync("doks", client=client, body=Acquire())
    assert isinstance(wrong, Why) and "No pool 'doks'" in wrong.why, wrong
    wrong = acquire.sync("docks", client=client, body=Acquire(want=9))
    assert isinstance(wrong, NotNow) and not wrong.timed_out, wrong
    got = acquire.sync("docks", client=client, body=Acquire(want=2))
    late = acquire.sync("docks", client=client, body=Acquire(want=2, timeout=0.0))
    assert isinstance(late, NotNow) and late.timed_out, late
    assert release.sync_detailed(got.grant, client=client).status_code == 204
print("two docks for me")
"""


def test_a_generated_client(agent: Agent, tmp_path: Path) -> None:
    generator = shutil.which("openapi-python-client")
    if generator is None:
        pytest.skip("needs openapi-python-client, for example in an environment of its own")
    description = Connection(agent.socket).call("GET", "/openapi.json")[1]
    (tmp_path / "openapi.json").write_bytes(description)
    (tmp_path / "use.py").write_text(GENERATED)
    made = [generator, "generate", "--path", "openapi.json", "--output-path", ".", "--overwrite"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    python = str(Path(generator).resolve().parent / "python")  # which has what the code needs
    told = tells(agent, python, str(tmp_path / "use.py"), str(agent.port), TOKEN, agent.socket)
    assert told == "two docks for me\n"
