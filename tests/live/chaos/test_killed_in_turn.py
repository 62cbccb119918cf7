"""Three agents with the same configuration; kill -9 of each in turn, while all are used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from three_agents import NAMES, PERMITS, Agents, Client

from waiting import LIMIT, sooner_or_later


@pytest.mark.skipif(not hasattr(os, "fork"), reason="agents have Unix sockets")
def test_each_node_is_killed_in_turn_and_nothing_is_lost(tmp_path: Path) -> None:
    agents = Agents(tmp_path)
    clients = {name: Client(agents, name) for name in NAMES}
    Client.inside.clear()
    Client.most = 0
    try:
        for name in NAMES:
            agents.start(name)
        for client in clients.values():
            client.start()
        for victim in NAMES:
            sooner_or_later(lambda: all(len(agents.members(name)) == 3 for name in NAMES))
            agents.kill(victim)
            for name in NAMES:
                if name != victim:
                    before = clients[name].entries
                    sooner_or_later(lambda c=clients[name], b=before: c.entries > b + 3)  # type: ignore[misc]
            agents.start(victim)
            before = clients[victim].entries
            sooner_or_later(lambda c=clients[victim], b=before: c.entries > b)  # type: ignore[misc]
        assert Client.most == PERMITS
        for client in clients.values():
            assert client.fences == sorted(client.fences)
    finally:
        for client in clients.values():
            client.over = True
        for name in list(agents.processes):
            agents.kill(name)
        for client in clients.values():
            client.join(LIMIT)
