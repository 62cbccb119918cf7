"""Three agents with the same configuration, and clients that use them all the time."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path
from typing import Any, ClassVar

from agents import PROGRAM

import meshlock
from ports import free_port

PERMITS = 2
NAMES = ("ann", "bob", "cat")


class Agents:
    """All that is not at its default is there to be quick."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in NAMES}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, peers: tuple[str, ...] = NAMES) -> None:
        others = [f'"127.0.0.1:{self.ports[other]}"' for other in peers if other != name]
        path = self.folder / f"{name}.toml"
        path.write_text(
            f'name = "{name}"\nlisten = "127.0.0.1:{self.ports[name]}"\n'
            f'socket = "{self.socket(name)}"\npeers = [{", ".join(others)}]\n'
            f"pools.docks = {{permits = {PERMITS}, lease = 1.0, promote-after = 0.5}}\n"
        )
        with (self.folder / f"{name}.log").open("a") as log:
            command = [*PROGRAM, "agent", str(path)]
            self.processes[name] = subprocess.Popen(command, stderr=log, cwd=self.folder)

    def socket(self, name: str) -> str:
        return str(self.folder / f"{name}.sock")

    def kill(self, name: str) -> None:
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def members(self, name: str) -> list[str]:
        try:
            with meshlock.connect(self.socket(name)) as agent:
                pool: dict[str, Any] = agent.status()["pools"].get("docks", {})
        except (meshlock.Refused, OSError):
            return []
        found: list[str] = pool.get("members", [])
        return found


PATIENCE = 1.0
"""Of a client, which then asks again."""


class Client(threading.Thread):
    """Takes a permit of its agent's pool, holds it for a little, and again."""

    lock = threading.Lock()
    inside: ClassVar[list[Any]] = []
    most = 0

    def __init__(self, agents: Agents, name: str) -> None:
        super().__init__(daemon=True)
        self.place = agents.socket(name)
        self.entries = 0
        self.over = False
        self.fences: list[int] = []

    def run(self) -> None:
        while not self.over:
            try:
                with meshlock.connect(self.place) as agent:
                    while not self.over:
                        self.enter(agent)
            except (meshlock.Refused, OSError, TimeoutError):
                pass  # there is no agent now

    def enter(self, agent: Any) -> None:
        grant = agent.pool("docks").acquire(timeout=PATIENCE)
        with Client.lock:  # a lease that is over does not count, though we are late to see it
            Client.inside.append(grant)
            Client.most = max(Client.most, sum(one.held for one in Client.inside))
        grant.wait_lost(0.02)
        with Client.lock:
            Client.inside.remove(grant)
        self.fences.append(grant.fence)
        self.entries += 1
        grant.release()
