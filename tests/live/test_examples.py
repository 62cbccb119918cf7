"""The examples run as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from waiting import LIMIT

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*command: str) -> list[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_tasks_in_one_process() -> None:
    lines = run(sys.executable, str(EXAMPLES / "tasks_in_one_process.py"))
    fences = [int(line.rsplit(" ", 1)[1].rstrip(")")) for line in lines]
    assert fences == list(range(fences[0], fences[0] + 10))


def test_two_robots_and_a_dock() -> None:
    lines = run(sys.executable, str(EXAMPLES / "two_robots_and_a_dock.py"))
    assert sorted(line.split()[0] for line in lines) == ["dewey"] * 3 + ["huey"] * 3


def test_gpu_seats() -> None:
    lines = run("sh", str(EXAMPLES / "gpu_seats.sh"))
    running = most = 0
    for line in lines:
        running += 1 if "begins" in line else -1
        most = max(most, running)
    assert (len(lines), running) == (10, 0)
    assert most <= 2
