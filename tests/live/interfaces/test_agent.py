"""Agents as real processes, and the commands that ask them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from agents import PROGRAM, Agent, meshlock

from meshlock.live.interfaces.agent_client import AgentClient, finished
from meshlock.live.interfaces.agent_connection import Connection
from meshlock.live.interfaces.agent_protocol import AgentGone
from meshlock.live.interfaces.client import WIRES
from ports import free_port
from waiting import LIMIT, sooner_or_later

pytest.importorskip("cryptography")

TOO_SOON = 0.1
"""Seconds, for what others hold."""


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Agent, Agent]]:
    folder = tmp_path_factory.mktemp("agents")
    certs = str(folder / "certs")
    assert meshlock("certs", "authority", "--folder", certs).returncode == 0
    for name in ("ann", "bob"):
        assert meshlock("certs", "node", name, "--folder", certs).returncode == 0
    ann = Agent(folder, "ann", "--pool", "docks=3")
    bob = Agent(folder, "bob", "--peer", ann.address)
    bob.logged("link up")
    yield ann, bob
    for agent in (bob, ann):
        agent.process.terminate()
        assert agent.process.wait(LIMIT) == 0
        assert not Path(agent.socket).exists()
    assert "left without handing over the token" not in ann.log.read_text() + bob.log.read_text()


def test_a_command_runs_with_its_permits_and_its_code_comes_back(
    agents: tuple[Agent, Agent],
) -> None:
    script = 'echo "$MESHLOCK_POOL $MESHLOCK_WANT $MESHLOCK_FENCE"; exit 7'
    done = subprocess.run(
        agents[1].execute("--want", "2", "--", "sh", "-c", script), capture_output=True, text=True
    )
    pool, want, fence = done.stdout.split()
    assert (done.returncode, pool, want, int(fence) > 0) == (7, "docks", "2", True)


NOT_YET = "meshlock: No permits of docks within 0.2 s: 0 free, 1 wanted.\n"


def test_a_thread_that_reads_events_is_told_that_its_own_side_hung_up(
    agents: tuple[Agent, Agent],
) -> None:
    """As that of exec when its command has ended; on a closed socket it would fail."""
    agent = AgentClient(agents[0].socket, WIRES, leases=True)
    line = cast(Connection, finished(agent.current()).line)
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(line.events, None)
        line.shut_down()
        assert isinstance(reading.exception(LIMIT), AgentGone)
    line.shut_down()
    agent.close()


def test_no_permits_in_time_is_exit_75(agents: tuple[Agent, Agent]) -> None:
    holder = subprocess.Popen(
        agents[0].execute("--want", "3", "--", "sh", "-c", "echo in; exec sleep 1000"),
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdout.readline() == b"in\n"
    late = agents[1].execute("--timeout", "0.2", "--", "true")

    def refusal() -> str:
        done = subprocess.run(late, capture_output=True, text=True)
        assert done.returncode == 75
        return done.stderr

    sooner_or_later(lambda: refusal() == NOT_YET)  # links fail where the machine stands still
    holder.terminate()  # passed on to the command
    assert holder.wait(LIMIT) == 128 + signal.SIGTERM


def test_a_command_whose_keeper_is_killed_dies_and_its_permits_come_back(
    agents: tuple[Agent, Agent],
) -> None:
    holder = subprocess.Popen(
        agents[1].execute("--want", "3", "--", "sh", "-c", "echo $$; exec sleep 1000"),
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    holder.kill()
    holder.wait()
    done = subprocess.run(agents[0].execute("--want", "3", "--timeout", f"{LIMIT}", "--", "true"))
    assert done.returncode == 0
    sooner_or_later(lambda: is_over(child))


def is_over(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return True
    return state == "Z"


def test_a_pool_that_nobody_knows_is_named(agents: tuple[Agent, Agent]) -> None:
    done = meshlock(
        *("exec", "--socket", agents[1].socket, "--pool", "dokcs"),
        *("--timeout", f"{LIMIT}", "--", "true"),
    )
    assert done.returncode == 2
    assert done.stderr == "meshlock: No pool 'dokcs'; known: docks.\n"


def test_pools_are_listed_and_shown(agents: tuple[Agent, Agent]) -> None:
    socket = ("--socket", agents[1].socket)
    [found] = json.loads(meshlock("pool", "list", *socket, "--json").stdout)["pools"]
    assert (found["pool"], found["permits"], found["algorithm"]) == ("docks", 3, "direct")
    assert meshlock("pool", "list", *socket).stdout.splitlines()[1].split()[:2] == ["docks", "3"]
    shown = json.loads(meshlock("pool", "show", "docks", *socket, "--json").stdout)
    assert shown["permits"] == 3
    words = meshlock("pool", "show", "docks", *socket).stdout
    assert "direct" in words and "token is here" in words and "_" not in words
    kept = meshlock("pool", "reset", "docks", *socket)  # nobody says yes
    assert kept.returncode == 1 and "docks was not reset. Nothing has changed." in kept.stderr
    missing = meshlock("pool", "show", "dokcs", *socket)
    assert (missing.returncode, missing.stderr) == (
        2,
        "meshlock: No pool 'dokcs'; known: docks.\n",
    )


def test_a_pool_is_resized(agents: tuple[Agent, Agent]) -> None:
    socket = ("--socket", agents[0].socket)
    members = json.loads(meshlock("pool", "members", "docks", *socket, "--json").stdout)
    assert "ann" in members["members"]
    more = meshlock("pool", "set", "docks", "--permits", "5", *socket)
    assert (more.returncode, more.stdout) == (0, "docks: 5 permits\n")
    done = subprocess.run(agents[1].execute("--want", "5", "--timeout", f"{LIMIT}", "--", "true"))
    assert done.returncode == 0
    fewer = meshlock("pool", "set", "docks", "--permits", "3", *socket, "--json")
    assert json.loads(fewer.stdout) == {"pool": "docks", "permits": 3}
    none = meshlock("pool", "set", "docks", "--permits", "0", *socket)
    assert none.returncode == 2 and "permits" in none.stderr
    names = meshlock("pool", "set", "docks", "--permits", "gpu0,gpu1", *socket)
    assert (names.returncode, names.stderr) == (
        2,
        "meshlock: --permits takes a number, not 'gpu0,gpu1': use --slots for names.\n",
    )


def test_status_for_machines_and_for_people(agents: tuple[Agent, Agent]) -> None:
    found = json.loads(meshlock("status", "--socket", agents[1].socket, "--json").stdout)
    assert found["node"] == "bob" and found["protected"]
    assert found["links"]["ann"]["up"] and found["pools"]["docks"]["permits"] == 3
    text = meshlock("status", "--socket", agents[1].socket).stdout
    assert "protected by TLS" in text and "docks" in text
    assert found["map"]["ann"] == {
        "links": ["bob"],
        "distance": 1,
        "unreachable_for": None,
        "left": False,
        "gone": False,
        "only_way": False,
    }
    assert "links away" in text and "here" in text


def test_status_shows_who_holds_and_who_waits_wherever_they_are(
    agents: tuple[Agent, Agent],
) -> None:
    line = Connection(agents[0].socket)
    wish = f'{{"want": 3, "timeout": {LIMIT}, "ttl": 600, "label": "three of ann"}}'
    grant = line.ask("POST", "/v1/pools/docks/acquire", wish)
    waits = agents[1].execute("--timeout", f"{LIMIT}", "--label", "bob's turn", "--", "true")
    with subprocess.Popen(waits) as later:
        text = meshlock("status", "--socket", agents[1].socket).stdout
        while "bob's turn" not in text:
            text = meshlock("status", "--socket", agents[1].socket).stdout
        found = json.loads(meshlock("status", "--socket", agents[1].socket, "--json").stdout)
        line.ask("DELETE", f"/v1/grants/{grant['grant']}")
        assert later.wait(LIMIT) == 0
    who = found["pools"]["docks"]["who"]
    assert (who["held"], who["free"], who["permits"]) == (3, 0, 3)
    [held], [waiting] = who["holding"], who["waiting"]
    assert (held["node"], held["label"], held["want"]) == ("ann", "three of ann", 3)
    assert (waiting["node"], waiting["label"]) == ("bob", "bob's turn")
    rows = [" ".join(row.split()) for row in text.splitlines()]
    assert any(row.startswith("docks holds 3 ") and "ann three of ann" in row for row in rows)
    assert any(row.startswith("docks waits 1 ") and "bob bob's turn" in row for row in rows)


def test_the_socket_speaks_http(agents: tuple[Agent, Agent]) -> None:
    line = Connection(agents[0].socket)

    def ask(method: str, path: str, body: str = "") -> tuple[int, dict[str, object]]:
        status, said = line.call(method, path, body)
        return status, json.loads(said or b"{}")

    status, grant = ask("POST", "/v1/pools/docks/acquire", f'{{"timeout": {LIMIT}, "ttl": 60}}')
    assert status == 200 and (grant["want"], grant["pool"], grant["permits"]) == (1, "docks", 3)
    place = f"/v1/grants/{grant['grant']}"
    assert ask("GET", place)[1]["fence"] == grant["fence"]
    assert ask("DELETE", place) == (204, {})
    assert ask("DELETE", place)[0] == 404
    status, said = ask("POST", "/v1/pools/docks/acquire", '{"wnat": 1}')
    assert status == 400 and "Not a request" in str(said["why"])


def test_metrics_on_the_socket(agents: tuple[Agent, Agent]) -> None:
    pytest.importorskip("prometheus_client")
    status, said = Connection(agents[0].socket).call("GET", "/metrics")
    assert status == 200 and 'meshlock_permits{pool="docks"} 3.0' in said.decode().splitlines()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--want", "9", "--", "true"],
            "Cannot grant 9 permits: pool docks has 3. Use want 3 or less.",
        ),
    ],
)
def test_wrong_requests_are_exit_2_and_one_sentence(
    agents: tuple[Agent, Agent], arguments: list[str], sentence: str
) -> None:
    done = subprocess.run(agents[0].execute(*arguments), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, f"meshlock: {sentence}\n")


def test_without_an_agent_there_is_a_sentence(tmp_path: Path) -> None:
    done = meshlock("status", "--socket", str(tmp_path / "none"))
    assert done.returncode == 2 and "start one with 'meshlock agent'" in done.stderr


def test_the_agent_over_http(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    (tmp_path / "token").write_text("let me in")
    port = free_port()
    certs = str(tmp_path / "certs")
    meshlock("certs", "authority", "--folder", certs)
    meshlock("certs", "node", "cyd", "--folder", certs)
    http = ["--http", f"127.0.0.1:{port}", "--http-token-file", str(tmp_path / "token")]
    http += ["--http-name", "robot.lan", "--allow-actions"]
    agent = Agent(tmp_path, "cyd", "--pool", "docks=2", *http)

    def call(
        method: str, path: str, token: str = "let me in", host: str = "localhost", **body: object
    ) -> object:
        request = Request(f"http://127.0.0.1:{port}{path}", method=method)
        request.add_header("Authorization", f"Bearer {token}")
        request.add_header("Content-Type", "application/json")
        request.add_header("Host", host)
        request.data = json.dumps(body).encode() if method == "POST" else None
        try:
            with urlopen(request, timeout=LIMIT) as answer:
                text = answer.read()
                return json.loads(text) if text[:1] == b"{" else text.decode()
        except HTTPError as error:
            return error.code

    try:
        assert call("GET", "/v1/status", token="wrong") == 401
        assert call("GET", "/v1/status", host="evil.example") == 403
        shown = call("GET", "/view.json", host=f"robot.lan:{port}")
        assert isinstance(shown, dict) and shown["allowed"] and shown["pool"] == "docks"
        before = call("POST", "/v1/pools/docks/acquire", want=1, ttl=600)
        assert isinstance(before, dict)
        assert call("DELETE", f"/v1/grants/{before['grant']}") != 404
        request = call("POST", "/actions/acquire", pool="docks")
        assert isinstance(request, dict)
        done = call("POST", "/actions/release", request=request["request"])
        assert isinstance(done, dict) and done["state"] == "released"
        grant = call("POST", "/v1/pools/docks/acquire", want=2, ttl=600)
        assert isinstance(grant, dict) and grant["fence"] == before["fence"] + 2  # after the page's
        assert call("POST", "/v1/pools/docks/acquire", want=1, timeout=TOO_SOON) == 409
        renewed = call("POST", f"/v1/grants/{grant['grant']}/renew")
        assert isinstance(renewed, dict) and renewed["ttl"] == 600.0 and 0 < renewed["lease"] < 3
        assert call("DELETE", f"/v1/grants/{grant['grant']}") == ""
        brief = call("POST", "/v1/pools/docks/acquire", want=2, ttl=1)
        assert isinstance(brief, dict)
        assert isinstance(call("POST", "/v1/pools/docks/acquire", want=1, timeout=LIMIT), dict)
        assert call("DELETE", f"/v1/grants/{brief['grant']}") == 404  # its time was over
        metrics = str(call("GET", "/metrics"))
        assert 'meshlock_permits{pool="docks"} 2' in metrics
        assert "\nmeshlock_nodes 1.0\n" in metrics
        assert "\nmeshlock_nodes_unreachable 0.0\n" in metrics
        described = call("GET", "/openapi.json")
        assert isinstance(described, dict) and "/v1/pools/{pool}/acquire" in described["paths"]
    finally:
        agent.process.terminate()
        assert agent.process.wait(LIMIT) == 0


def test_the_demonstration_is_clean_and_leaves_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "demo.jsonl"
    done = meshlock("demo", "--seconds", "3", "--json", "--trace", str(trace))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["holds"] and found["unserved"] == 0 and found["entries"] > 10
    assert found["checked"] == ["safety", "one-token", "conservation", "order", "served"]
    assert meshlock("audit", str(trace)).returncode == 0
    again = meshlock("replay", str(trace), "--json")  # each end of a link notices by itself
    assert json.loads(again.stdout)["good"], again.stderr
    assert len(json.loads(again.stdout)["entries"]) == found["entries"]
    states = tmp_path / "demo.itf.json"  # the algorithm run again sends what was sent
    assert meshlock("convert", str(trace), "--to", "itf", "-o", str(states)).returncode == 0


def test_the_demonstration_ends_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen([*PROGRAM, "demo"], env=environment, start_new_session=True)
    sooner_or_later(lambda: list(tmp_path.glob("meshlock-demo-*/traces/*")))
    os.killpg(demo.pid, signal.SIGINT)
    assert demo.wait(LIMIT) == 130
    assert not list(tmp_path.iterdir())
    assert not [place for place in Path("/proc").glob("[0-9]*/environ") if belongs(place, tmp_path)]


def belongs(environ: Path, folder: Path) -> bool:
    try:
        return f"TMPDIR={folder}".encode() in environ.read_bytes()
    except OSError:
        return False
