"""A new user's first ten minutes: install, real agents, and nothing but documented commands.

The clone is a copy, the environment fresh, the folders empty. ``pytest -s`` shows each step with
its time. All that is not at its default is there to be quick.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from waiting import LIMIT, sooner_or_later

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="agents have Unix sockets")

ROOT = Path(__file__).parents[3]
OFFLINE = re.compile("Could not find a version|ConnectionError|Connection refused|timed out")
"""What pip says where there is no index."""

SLOTS = ["gpu0", "gpu1", "gpu2"]
QUICK = ["--lease", "5", "--promote-after", "0.5"]
SOON = "0.2"
"""Seconds that a request waits for what others hold."""

USE = 'echo "$MESHLOCK_SLOTS"; read _ || true'
"""Says what it has, and ends when its input does."""


@contextmanager
def step(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:7.2f} s  {what}")


class Terminal:
    """At one machine."""

    def __init__(self, program: Path, folder: Path, name: str) -> None:
        self.program = program
        self.folder = folder
        self.name = name
        self.socket = folder / f"{name}.sock"
        self.log = folder / f"{name}.log"
        self.errors = folder / f"{name}.err"
        self.agent: subprocess.Popen[bytes]

    def runs(self, *arguments: str) -> dict[str, Any]:
        here = {"MESHLOCK_SOCKET": str(self.socket), "XDG_STATE_HOME": str(self.folder / "state")}
        return {
            "args": [self.program, *arguments],
            "cwd": self.folder,
            "env": {**clean(os.environ), **here},
        }

    def start(self, *arguments: str) -> str:
        """An agent; where others may link to it."""
        here = ["--name", self.name, "--listen", "127.0.0.1:0", "--secret-file", "secret"]
        with self.log.open("wb") as log:
            self.agent = subprocess.Popen(**self.runs("agent", *here, *arguments), stderr=log)
        sooner_or_later(lambda: b'"ready"' in self.log.read_bytes() or self.agent.poll())
        said = [json.loads(line) for line in self.log.read_text().splitlines()]
        return next(str(line["address"]) for line in said if line["event"] == "ready")

    def meshlock(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            **self.runs(*arguments), capture_output=True, text=True, timeout=LIMIT
        )

    def says(self, *arguments: str) -> str:
        done = self.meshlock(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def uses(self, *arguments: str) -> Use:
        given = self.runs("exec", "--pool", "gpus", *arguments, "--", "sh", "-c", USE)
        pipe = subprocess.PIPE
        with self.errors.open("ab") as errors:
            return Use(subprocess.Popen(**given, stdin=pipe, stdout=pipe, stderr=errors))

    def who(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.says("status", "--json"))["pools"]["gpus"]["who"]
        return found


class Use:
    """A command that runs with permits."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self.stdin = process.stdin
        self.slots = process.stdout.readline().decode().strip().split(",")

    def ends(self) -> int:
        self.stdin.close()
        return self.process.wait(LIMIT)


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what would let programs find this source tree."""
    return {name: it for name, it in environment.items() if not name.startswith("PYTHON")}


def installed(clone: Path) -> Path:
    """The program, in a copy of the clone, by the lines of the README as they are printed."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.search(r"```sh\n(python3 -m venv .*?)```", page, re.DOTALL)
    assert lines is not None and "pip install" in lines[1]
    clone.mkdir()
    shutil.copytree(ROOT / "src", clone / "src", ignore=shutil.ignore_patterns("*.so", "*.pyc"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)
    quick = {"PIP_QUIET": "1", "PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with step("install as the README prints it"):
        done = subprocess.run(
            ["/bin/sh", "-e", "-c", lines[1]],
            cwd=clone,
            env={**clean(os.environ), **quick, "PATH": path},
            capture_output=True,
            text=True,
        )
    if "ensurepip" in done.stdout or (done.returncode and OFFLINE.search(done.stderr)):
        pytest.skip("needs pip, and an index that it can ask")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("meshlock ")
    return clone / ".venv" / "bin" / "meshlock"


def test_the_first_ten_minutes(tmp_path: Path) -> None:
    print()
    program = installed(tmp_path / "clone")
    (tmp_path / "empty").mkdir()
    north, south, east = [
        Terminal(program, tmp_path / "empty", name) for name in ("north", "south", "east")
    ]
    try:
        story(north, south, east)
    finally:
        for terminal in (north, south, east):
            if hasattr(terminal, "agent") and terminal.agent.poll() is None:
                terminal.agent.kill()
                terminal.agent.wait()
    for terminal in (north, south, east):
        assert "Traceback" not in terminal.log.read_text()
    assert (south.errors.read_text(), east.errors.read_text()) == ("", "")


def story(north: Terminal, south: Terminal, east: Terminal) -> None:
    with step("what is installed"):
        assert north.says("--version").startswith("meshlock ")
    with step("make a pool of three GPUs"):
        (north.folder / "secret").write_text(north.says("certs", "secret"))
        first = north.start("--pool", f"gpus={','.join(SLOTS)}", *QUICK)
    with step("a command that may use one of them"):
        use = north.uses("--timeout", f"{LIMIT}")
        assert use.slots[0] in SLOTS and use.ends() == 0
    with step("join from two more nodes"):
        second = south.start("--pool", "gpus", "--peer", first)
        east.start("--pool", "gpus", "--peer", first, "--peer", second)
        for node in (south, east):
            sooner_or_later(lambda node=node: "gpu" in node.says("pool", "list"))  # type: ignore[misc]
    with step("a GPU for each of the three, another one everywhere"):
        uses = {node.name: node.uses("--timeout", f"{LIMIT}") for node in (north, south, east)}
        assert sorted(use.slots[0] for use in uses.values()) == SLOTS
    with step("try: no, and why"):
        done = east.meshlock("exec", "--pool", "gpus", "--timeout", "0", "--", "true")
        no = "meshlock: No permits of gpus at once: 0 free, 1 wanted.\n"
        assert (done.returncode, done.stdout, done.stderr) == (75, "", no)
    with step("wait for a moment: no, and why"):
        done = south.meshlock("exec", "--pool", "gpus", "--timeout", SOON, "--", "true")
        assert done.returncode == 75
        assert done.stderr.startswith(f"meshlock: No permits of gpus within {SOON} s: 0 free, 1 w")
        assert done.stderr.endswith(".\n") and done.stderr.count("\n") == 1
    with step("who holds them"):
        found = south.who()
        assert (found["permits"], found["free"], found["held"]) == (3, 0, 3)
        held = {one["node"]: one["slots"] for one in found["holding"]}
        assert held == {name: use.slots for name, use in uses.items()}
        assert all("sh" in one["label"] for one in found["holding"])
    with step("three members, that chose themselves"):
        members = ["east", "north", "south"]
        sooner_or_later(
            lambda: (
                sorted(south.says("pool", "members", "gpus").split()) == members
                and sorted(east.says("pool", "members", "gpus").split()) == members
            )
        )
    with step("kill -9 the founder; its GPU is back (leases of 5 s)"):
        north.agent.send_signal(signal.SIGKILL)
        north.agent.wait()
        again = east.uses("--timeout", f"{LIMIT}")
        assert again.slots == uses["north"].slots
    with step("its command was told to end"):
        assert uses["north"].process.wait(LIMIT) == 128 + signal.SIGTERM
        told = "meshlock: the agent closed the connection; the command is stopped.\n"
        assert north.errors.read_text() == told
    with step("the others go on, and give back"):
        for use in (uses["south"], uses["east"], again):
            assert use.process.poll() is None and use.ends() == 0
    with step("resize to five: no, for only three have names"):
        done = south.meshlock("pool", "set", "gpus", "--permits", "5")
        no = f"meshlock: Pool gpus has 3 named permits, {SLOTS[0]} to {SLOTS[-1]}: give all 5"
        assert done.returncode == 2 and done.stderr.startswith(no)
    with step("resize to two"):
        assert south.says("pool", "set", "gpus", "--permits", "2") == "gpus: 2 permits\n"
    with step("two at once, each with its name"):
        use = east.uses("--want", "2", "--timeout", f"{LIMIT}")
        assert use.slots == SLOTS[:2] and use.ends() == 0
    with step("resize to three again, and have them all"):
        assert south.says("pool", "set", "gpus", "--permits", "3") == "gpus: 3 permits\n"
        use = east.uses("--want", "3", "--timeout", f"{LIMIT}")
        assert use.slots == SLOTS and use.ends() == 0
    for last, node in (("stop the second", south), ("stop the last", east)):
        with step(last):
            node.agent.terminate()
            assert node.agent.wait(LIMIT) == 0
            assert not node.socket.exists()
