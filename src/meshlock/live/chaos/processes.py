"""The processes of a run: agents and clients, which never outlive it."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from meshlock.errors import Refused
from meshlock.live.chaos.client import AT_EASE, ClientOrders
from meshlock.live.chaos.relay import Relay
from meshlock.live.interfaces.agent_protocol import AgentGone, json_body
from meshlock.live.interfaces.async_client import Line
from meshlock.live.links.dialler import split

POOL = "docks"
LONGEST_START = 20.0
IMPORTS = (
    "import meshlock.cli.agent, meshlock.live.interfaces.serving, meshlock.live.links.identity"
)
AGENT = f"""
import sys
{IMPORTS}
from meshlock.cli.main import run
print('{{"event": "prepared"}}', file=sys.stderr, flush=True)
sys.stdin.readline()
run()
"""
PROGRAM = [sys.executable, "-c", AGENT]
"""It begins when it is told to, so that a successor can be back before the agent is missed."""


def end_with_parent() -> Callable[[], None] | None:
    """What a child does first: ask the kernel to kill it when we die, however we die (Linux)."""
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # too late
            os._exit(1)

    return ask


def last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "it wrote no error."


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {toml(it)}' for name, it in value.items())}}}"
    return json.dumps(value)


class Child(subprocess.Popen[bytes]):
    """A process that can be killed, stopped and continued."""

    def __init__(self, command: Sequence[str], errors: Path) -> None:
        with errors.open("ab") as file:
            super().__init__(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,  # Ctrl-C is for us
                preexec_fn=end_with_parent(),
            )

    def kill(self) -> None:
        super().kill()
        self.wait()
        self.finish()

    def say(self, word: bytes) -> None:
        """On its input."""
        assert self.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.stdin.write(word)
            self.stdin.flush()

    def finish(self) -> None:
        """Its input ends."""
        if self.stdin is not None:
            self.stdin.close()


class Seat:
    """A place for one process after the other."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.child: Child | None = None

    @property
    def running(self) -> bool:
        return self.child is not None and self.child.poll() is None

    @property
    def at_work(self) -> Child:
        assert self.child is not None
        return self.child

    def kill(self) -> None:
        """Whatever runs here."""
        if self.child is not None:
            self.child.kill()


class Agent(Seat):
    """One node: its configuration, its state directory, and its process while it has one."""

    def __init__(self, name: str, folder: Path, sockets: Path) -> None:
        super().__init__(name)
        self.socket = sockets / f"{name}.sock"
        self.place = folder / f"{name}.toml"
        self.state = folder / f"{name}.state"
        self.log = folder / f"{name}.log"
        self.within: list[str] = []  # a command that runs another, as in "ip netns exec ..."
        self.peers: list[str] = []
        self.relays: list[Relay] = []  # that lead here
        self.settings: dict[str, Any] = {
            "name": name,
            "listen": "127.0.0.1:0",
            "peers": self.peers,
            "socket": str(self.socket),
            "state": str(self.state),
            "min-links": 0,
        }
        self.pool: dict[str, Any] = {}
        self.successor: Child | None = None  # waits for its turn
        self.starts = 0
        self.rate = 1.0
        self.forgiven: set[str] = set()  # errors that were to be expected

    def kill(self) -> None:
        super().kill()
        if self.successor is not None:
            self.successor.kill()

    async def prepare(self) -> None:
        """Have the next process ready, but for its configuration."""
        if self.successor is None:
            before = self.log.stat().st_size if self.log.exists() else 0
            self.successor = Child([*self.within, *PROGRAM, "agent", str(self.place)], self.log)
            await self.says("prepared", before, self.successor)

    async def start(self, rate: float = 1.0, wiped: bool = False) -> None:
        """Until it answers."""
        if wiped:
            shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir(exist_ok=True)
        self.starts += 1
        self.rate = rate
        self.place.write_text(self.configuration())
        await self.prepare()
        before = self.log.stat().st_size
        self.child, self.successor = self.successor, None
        self.at_work.say(b"\n")
        address = str((await self.says("ready", before, self.at_work))["address"])
        for relay in self.relays:
            relay.target = split(address)

    async def dial(self, other: Agent) -> Relay:
        """Over a wire of its own, which leads to wherever the other listens."""
        relay = await Relay("127.0.0.1", 9).start()
        other.relays.append(relay)
        self.peers.append(relay.address)
        return relay

    async def says(self, event: str, since: int, child: Child) -> dict[str, Any]:
        """When its log says so."""
        for _ in range(int(LONGEST_START / 0.02)):
            for said in self.said(since):
                if said.get("event") == event:
                    return said
            if child.poll() is not None:
                break
            await asyncio.sleep(0.02)
        raise Refused(f"The agent {self.name} did not start: {self.last_words()}")

    def configuration(self) -> str:
        settings = {**self.settings, "clock-rate": self.rate, "pools": {POOL: self.pool}}
        return "".join(f"{name} = {toml(it)}\n" for name, it in settings.items())

    def said(self, since: int = 0) -> list[dict[str, Any]]:
        """What its log says since this place."""
        with self.log.open("rb") as file:
            file.seek(since)
            lines = file.read().split(b"\n")[:-1]
        found = []
        for line in lines:
            try:
                found.append(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.MsgspecError:  # a traceback that went past the logger:
                text = line.decode(errors="replace")
                if text and not text.startswith((" ", "Traceback")):  # its last line says it all
                    found.append({"event": text, "level": "error"})
        return found

    def last_words(self) -> str:
        return last_line(self.log)

    async def status(self) -> dict[str, Any] | None:
        """What it knows of the pool; None if it does not answer in time."""
        answer = await self.ask("GET", f"/v1/pools/{POOL}")
        if answer is None:
            return None
        found: dict[str, Any] = json.loads(answer[1])["status"] if answer[0] == 200 else {}
        return found

    async def ready(self) -> bool | None:
        """Does it say that clients can be served here?"""
        answer = await self.ask("GET", "/readyz")
        return None if answer is None else answer[0] == 200

    async def change(self, what: str, seconds: float, **wanted: Any) -> bool:
        """Have it change the pool; False if it did not say in time that it did."""
        body = json_body(timeout=seconds, **wanted)
        answer = await self.ask("POST", f"/v1/pools/{POOL}/{what}", body, seconds + 1.0)
        return answer is not None and answer[0] == 200

    async def ask(
        self, method: str, path: str, body: str = "", seconds: float = 0.5
    ) -> tuple[int, bytes] | None:
        """None if it does not answer in time."""
        try:
            async with asyncio.timeout(seconds):
                line = await Line(str(self.socket)).open()
                try:
                    return await line.call(method, path, body)
                finally:
                    line.transport.close()
        except (Refused, AgentGone, TimeoutError):
            return None


class ClientSlot(Seat):
    """A place for a client at a node; who is killed is followed by another."""

    def __init__(self, node: str, place: int) -> None:
        super().__init__()
        self.node = node
        self.place = place
        self.life = 0
        self.mood = AT_EASE

    def start(self, orders: ClientOrders, log: Path) -> None:
        self.life += 1
        self.name = orders.name
        self.mood = AT_EASE
        command = [sys.executable, "-m", "meshlock.live.chaos.client"]
        self.child = Child([*command, msgspec.json.encode(orders).decode()], log)
