"""Traces of agents are judged while these run, and after they were killed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import meshlock
from waiting import LIMIT, sooner_or_later

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
POOLS = {
    "leases": 'pools.docks = {permits = 2, members = ["ann", "bob"], lease = 1.0}',
    "none": 'pools.docks = {permits = 2, founder = FOUNDER, recovery = "none"}',
}


class Agent:
    def __init__(self, folder: Path, name: str, pool: str, *peers: str) -> None:
        self.socket, self.log = str(folder / f"{name}.sock"), folder / f"{name}.log"
        settings = folder / f"{name}.toml"
        settings.write_text(
            f'name = "{name}"\nsocket = "{self.socket}"\ntrace = "{folder / "traces"}"\n'
            f'state = "{folder / name}"\npeers = {json.dumps(peers)}\n'
            + pool.replace("FOUNDER", json.dumps(name == "ann"))
        )
        with self.log.open("w") as errors:
            self.process = subprocess.Popen([*PROGRAM, "agent", str(settings)], stderr=errors)
        sooner_or_later(lambda: '"ready"' in self.log.read_text() or self.process.poll())
        self.address = json.loads(self.log.read_text().splitlines()[0])["address"]

    def use(self, times: int) -> None:
        with meshlock.connect(self.socket) as agent:
            for _ in range(times):
                with agent.pool("docks").acquire(2, timeout=LIMIT):
                    pass


def judged(folder: Path) -> int:
    """Entries in the traces there; nothing is wrong with them."""
    traces = [str(path) for path in (folder / "traces").glob("docks.*.jsonl")]
    done = subprocess.run([*PROGRAM, "audit", "--json", *traces], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["holds"]
    return int(found["entries"])


@pytest.mark.parametrize("recovery", POOLS)
def test_a_trace_is_judged_while_it_is_written_and_after_a_crash(
    tmp_path: Path, recovery: str
) -> None:
    ann = Agent(tmp_path, "ann", POOLS[recovery])
    bob = Agent(tmp_path, "bob", POOLS[recovery], ann.address)
    ann.use(1)
    bob.use(1)
    assert judged(tmp_path) >= 2  # all that they did is there, though both go on
    threads = [threading.Thread(target=agent.use, args=(200,)) for agent in (ann, bob)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        judged(tmp_path)  # in the middle
    bob.use(1)
    for agent in (ann, bob):
        agent.process.kill()
        agent.process.wait()
    assert judged(tmp_path) == 403


def test_the_trace_of_one_agent_is_judged_by_itself(tmp_path: Path) -> None:
    ann = Agent(tmp_path, "ann", POOLS["none"])
    ann.use(3)
    assert judged(tmp_path) == 3
    ann.process.kill()
    ann.process.wait()
    assert judged(tmp_path) == 3
