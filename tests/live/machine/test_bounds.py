"""Numbers and names that are out of range, at every edge: one sentence each, and nobody notices."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("cryptography")
from agents import Agent, meshlock

from meshlock.live.interfaces.agent_connection import Connection
from ports import free_port
from waiting import LIMIT, sooner_or_later

MEMBERS = ["ann", "bob", "cyd"]
TOKEN = "let me in"

WRONG = {
    "a priority beyond 64 bits": ("priority", str(2**64)),
    "a priority beyond 64 bits, below": ("priority", str(-(2**63) - 1)),
    "a priority beyond 32 bits": ("priority", str(2**31)),
    "a priority that is yes": ("priority", "true"),
    "a priority with a fraction": ("priority", "1.5"),
    "a priority in words": ("priority", '"high"'),
    "a want beyond all pools": ("want", str(2**40)),
    "a want of nothing": ("want", "0"),
    "a want that is yes": ("want", "true"),
    "a want in words": ("want", '"1"'),
    "a timeout that never ends": ("timeout", "1e300"),
    "a timeout beyond numbers": ("timeout", "1" + "0" * 400),
    "a timeout before now": ("timeout", "-1"),
    "a timeout that is yes": ("timeout", "true"),
    "a pool without a name": ("pool", '""'),
    "a pool with a long name": ("pool", json.dumps("x" * 10_000)),
    "a pool with a number for a name": ("pool", "7"),
}


class Fleet:
    """Three agents and their pools: one with leases, one without."""

    def __init__(self, folder: Path) -> None:
        certs = str(folder / "certs")
        assert meshlock("certs", "authority", "--folder", certs).returncode == 0
        (folder / "token").write_text(TOKEN)
        self.port = free_port()
        self.agents: dict[str, Agent] = {}
        for name in MEMBERS:
            assert meshlock("certs", "node", name, "--folder", certs).returncode == 0
            peers = [agent.address for agent in self.agents.values()]
            lines = [
                f"peers = {json.dumps(peers)}",
                *(
                    ["pools.plain = {permits = 2, founder = true, recovery = 'none'}"]
                    if name == "ann"
                    else []
                ),
                f"pools.docks = {{permits = 2, lease = 1.0, members = {json.dumps(MEMBERS)}}}",
            ]
            if name == "ann":
                lines += [f'http = "127.0.0.1:{self.port}"', 'http-token-file = "token"']
                lines += ["allow-actions = true"]
            path = folder / f"{name}.toml"
            path.write_text("\n".join(sorted(lines, key=lambda line: line.startswith("pools"))))
            self.agents[name] = Agent(folder, name, str(path))

    def ask(self, name: str, pool: str, body: str) -> tuple[int, dict[str, object]]:
        """Over the agent's socket: the status and what is said."""
        line = Connection(self.agents[name].socket)
        status, said = line.call("POST", f"/v1/pools/{pool}/acquire", body)
        return status, json.loads(said)

    def serves(self, name: str, pool: str) -> bool:
        """Sooner or later: a lease may end before a busy machine gives its permits back."""
        line, path = Connection(self.agents[name].socket), f"/v1/pools/{pool}/acquire"

        def served() -> bool:
            granted = line.ask("POST", path, f'{{"want": 2, "timeout": {LIMIT}}}')
            return line.call("DELETE", f"/v1/grants/{granted['grant']}")[0] == 204

        sooner_or_later(served)
        return True

    def post(self, path: str, body: str) -> tuple[int, str]:
        """Status and what is said."""
        request = Request(f"http://127.0.0.1:{self.port}{path}", body.encode(), method="POST")
        request.add_header("Authorization", f"Bearer {TOKEN}")
        request.add_header("Content-Type", "application/json")
        try:
            with urlopen(request, timeout=LIMIT) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, json.loads(error.read())["why"]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    assert fleet.serves("ann", "docks") and fleet.serves("bob", "plain")
    yield fleet
    for agent in fleet.agents.values():
        agent.process.kill()
        agent.process.wait()
        assert "Traceback" not in agent.log.read_text()


def acquiring(field: str, value: str, pool: str) -> dict[str, str]:
    return {"pool": json.dumps(pool), "timeout": "30", field: value}


def written(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in fields.items()) + "}"


def is_one_sentence(text: str, field: str) -> bool:
    return text.endswith(".") and "\n" not in text and len(text) < 300 and field in text


@pytest.mark.parametrize("pool", ["docks", "plain"])
@pytest.mark.parametrize("wrong", WRONG)
def test_the_socket_refuses_what_is_out_of_range(fleet: Fleet, wrong: str, pool: str) -> None:
    field, value = WRONG[wrong]
    fields = acquiring(field, value, pool)
    name = json.loads(fields.pop("pool"))
    status, answer = fleet.ask("ann", quote(str(name)), written(fields))
    if name == 7:
        assert status == 404  # it can be a name
    elif name == "":
        assert status in (400, 404)
    else:
        assert status == 400 and is_one_sentence(str(answer["why"]), field), answer
    assert fleet.serves("ann", pool)


@pytest.mark.parametrize("pool", ["docks", "plain"])
def test_http_refuses_what_is_out_of_range(fleet: Fleet, pool: str) -> None:
    ttl = {"no ttl": ("ttl", "0"), "a ttl for ever": ("ttl", "1e300"), "yes": ("ttl", "true")}
    for field, value in (WRONG | ttl).values():
        fields = acquiring(field, value, pool)
        name = fields.pop("pool")[1:-1] if value != "7" else "a b"
        code, why = fleet.post(f"/v1/pools/{name.replace(' ', '%20')}/acquire", written(fields))
        assert code in (400, 404 if not name else 400), why
        assert not name or is_one_sentence(why, field), why
        if field in ("priority", "want"):
            code, why = fleet.post("/actions/acquire", written(acquiring(field, value, pool)))
            assert code == 400
    assert fleet.serves("ann", pool)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--priority", str(2**64)),
        ("--want", str(2**40)),
        ("--want", "-1"),
        ("--timeout", "nan"),
        ("--deadline", "-1"),
        ("--deadline", "1e9"),
        ("--timeout", "inf"),
        ("--timeout", "1e300"),
        ("--timeout", "-1"),
        ("--pool", ""),
        ("--pool", "x" * 10_000),
    ],
)
def test_exec_refuses_what_is_out_of_range(fleet: Fleet, flag: str, value: str) -> None:
    agent = fleet.agents["bob"]
    done = subprocess.run(
        agent.execute(flag, value, "--", "echo", "ran"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("meshlock: ")
    assert is_one_sentence(done.stderr.rstrip("\n"), flag.replace("--pool", "pool"))


def test_a_request_out_of_range_and_a_killed_member_leave_the_pool_serving(fleet: Fleet) -> None:
    """The last test of this module: one agent is gone afterwards."""
    for name in MEMBERS:
        assert fleet.ask(name, "docks", f'{{"priority": {2**64}}}')[0] == 400
    fleet.agents["cyd"].process.kill()
    assert fleet.serves("ann", "docks") and fleet.serves("bob", "docks")
