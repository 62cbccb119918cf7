"""Agents as real processes that are stopped for less than a lease (SIGSTOP) and go on.

How long a pause is depends on the machine: it ends when the other two have noticed it. Leases are
long, so that it is always shorter.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from test_agent import Agent

import meshlock
from meshlock.live.interfaces.agent_connection import Connection
from waiting import LIMIT, sooner_or_later

NAMES = ("north", "south", "west")
LEASE = 6.0


def docks(agent: Agent) -> dict[str, Any]:
    found: dict[str, Any] = Connection(agent.socket).ask("GET", "/v1/status")["pools"]["docks"]
    return found


def members(agent: Agent) -> list[str]:
    return sorted(docks(agent).get("members", ()))


def links_down(agent: Agent, peer: str) -> int:
    lines = agent.log.read_text().splitlines()
    return len([line for line in lines if '"link down"' in line and f'"{peer}"' in line])


@pytest.mark.parametrize("stopped", ["with the token", "with a grant"])
def test_a_stop_shorter_than_the_lease_costs_no_permits(tmp_path: Path, stopped: str) -> None:
    with ExitStack() as stack:
        agents: dict[str, Agent] = {}
        for name in NAMES:
            given = ["--promote-after", "1", "--lease", str(LEASE), "--pool", "docks=3"]
            given += ["--most-members", "3"] + ["--create"] * (name == NAMES[0])
            given += [word for one in agents.values() for word in ("--peer", one.address)]
            given += ["--state", "none"]
            agents[name] = agent = Agent(tmp_path, name, *given, protected=False)
            stack.callback(agent.process.kill)
        sooner_or_later(lambda: all(sorted(NAMES) == members(one) for one in agents.values()))
        clients = [stack.enter_context(meshlock.connect(one.socket)) for one in agents.values()]
        grants = [client.pool("docks").acquire(timeout=LIMIT) for client in clients]
        [holder] = [name for name, one in agents.items() if docks(one)["token_here"]]
        chosen = holder if stopped == "with the token" else min(set(NAMES) - {holder})
        others = [one for name, one in agents.items() if name != chosen]
        epochs = [docks(one)["epoch"] for one in others]
        os.kill(agents[chosen].process.pid, signal.SIGSTOP)
        sooner_or_later(lambda: all(links_down(one, chosen) for one in others))
        if stopped == "with a grant":  # its entry lapses, and is revived
            sooner_or_later(lambda: epochs != [docks(one)["epoch"] for one in others])
        os.kill(agents[chosen].process.pid, signal.SIGCONT)

        def renewed() -> bool:
            """Under one epoch, and once more."""
            shown = [docks(one) for one in agents.values()]
            leases = [held["lease"] for one in shown for held in one["holding"]]
            one_epoch = len({one["epoch"] for one in shown}) == 1
            return one_epoch and len(leases) == 3 and min(leases) > LEASE * 0.6

        sooner_or_later(lambda: renewed() or any(grant.lost for grant in grants))
        assert all(grant.held for grant in grants)
        for grant in grants:
            grant.release()
        with clients[0].pool("docks").acquire(3, timeout=LIMIT) as grant:
            assert grant.held
