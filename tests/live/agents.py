"""Agents as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from waiting import LIMIT, sooner_or_later

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]


def meshlock(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=LIMIT)


class Agent:
    def __init__(self, folder: Path, name: str, *arguments: str, protected: bool = True) -> None:
        self.socket = str(folder / f"{name}.sock")
        self.log = folder / f"{name}.log"
        given = ["--name", name, "--socket", self.socket]
        given += ["--certificates", str(folder / "certs")] if protected else []
        with self.log.open("w") as errors:
            self.process = subprocess.Popen(
                [*PROGRAM, "agent", *given, *arguments], stderr=errors, cwd=folder
            )
        self.address = self.logged("ready")["address"]

    def logged(self, event: str) -> dict[str, str]:
        found: list[dict[str, str]] = []

        def has_come() -> bool:
            whole = [line for line in self.log.read_text().splitlines(True) if line.endswith("\n")]
            found[:] = [line for line in map(json.loads, whole) if line["event"] == event]
            return bool(found) or self.process.poll() is not None

        sooner_or_later(has_come)
        assert found, self.log.read_text()
        return found[0]

    def execute(self, *arguments: str) -> list[str]:
        return [*PROGRAM, "exec", "--socket", self.socket, "--pool", "docks", *arguments]
