"""Pools that programs make at an agent: only where it allows that, or on purpose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_agent import Agent

import meshlock
from meshlock import Refused
from meshlock.live.interfaces.agent_connection import Connection
from waiting import LIMIT


def ended(agent: Agent) -> bool:
    agent.process.terminate()
    return agent.process.wait(LIMIT) == 0


def test_a_program_makes_pools_where_the_agent_allows_that(tmp_path: Path) -> None:
    agent = Agent(tmp_path, "north", "--state", "none", "--client-pools", protected=False)
    with meshlock.connect(agent.socket) as client:
        docks = client.pool("docks", permits=2)
        with docks.acquire(2, timeout=LIMIT) as grant:
            assert (grant.want, docks.permits) == (2, 2)
        with pytest.raises(Refused, match="Pool docks has 2 permits, not 3"):
            client.pool("docks", permits=3).acquire(timeout=LIMIT)
    assert ended(agent)


def test_else_a_pool_is_made_on_purpose_only(tmp_path: Path) -> None:
    agent = Agent(tmp_path, "north", "--state", "none", protected=False)
    line = Connection(agent.socket)

    def create(name: str, body: str) -> tuple[int, object]:
        status, said = line.call("POST", f"/v1/pools/{name}/create", body)
        return status, json.loads(said)

    with meshlock.connect(agent.socket) as client:
        with pytest.raises(Refused, match=r"makes no pool docks for a program: .*--client-pools"):
            client.pool("docks", permits=2).acquire(timeout=LIMIT)
        assert create("docks", '{"permits": 2}') == (200, {"permits": 2})
        with client.pool("docks", permits=2).acquire(2, timeout=LIMIT) as grant:
            assert grant.held
        status, said = create("docks", '{"permits": 2}')
        assert status == 409 and "There is a pool docks already" in str(said)
        status, said = create("seats", "{}")
        assert status == 409 and "say how many permits it has" in str(said)
        for name, body in (("seats", '{"permits": 0}'), ("seats", '{"permits"'), ("a%20b", "{}")):
            assert create(name, body)[0] == 400, (name, body)
        assert client.pool("docks").permits == 2
    assert ended(agent)
