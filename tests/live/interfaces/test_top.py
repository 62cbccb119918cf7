"""meshlock top on a terminal: it draws, it ends, it leaves the terminal as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import LIMIT

PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    socket = str(tmp_path_factory.mktemp("top") / "agent.sock")
    command = [*PROGRAM, "agent", "--name", "ann", "--pool", "docks=3", "--socket", socket]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as agent:
        assert agent.stderr is not None and b"ready" in agent.stderr.readline()
        yield socket
        agent.terminate()
    assert not Path(socket).exists()


def test_it_draws_until_it_is_interrupted(place: str) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    before = termios.tcgetattr(theirs)
    command = [*PROGRAM, "top", "--every", "0.05", "--socket", place]
    top = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=on_this_terminal(theirs)
    )
    try:
        seen = until(ours, b"docks", looks=2)
        assert b"\x1b[?1049h" in seen  # on a screen of its own
        os.write(ours, b"\x03")
        until(ours, b"\x1b[?1049l", looks=1)  # a program that draws more than is read waits for us
        assert top.wait(LIMIT) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        top.kill()
        os.close(theirs)
        os.close(ours)


def on_this_terminal(terminal: int) -> object:
    def adopt() -> None:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(os.open(os.ttyname(terminal), os.O_RDWR))  # becomes the controlling one

    return adopt


def until(terminal: int, wanted: bytes, looks: int) -> bytes:
    seen, end = b"", time.monotonic() + LIMIT
    while seen.count(wanted) < looks:
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        assert ready, seen
        seen += os.read(terminal, 65536)
    return seen


def test_without_a_terminal_it_says_what_to_use(place: str) -> None:
    done = subprocess.run([*PROGRAM, "top", "--socket", place], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "meshlock: top needs a terminal to draw on: use 'meshlock status', or its --json.\n"
    )


def test_no_pause_is_no_way_to_watch(place: str) -> None:
    done = subprocess.run(
        [*PROGRAM, "top", "--every", "0", "--socket", place], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_pipe_gets_all_columns_of_status(place: str) -> None:
    done = subprocess.run(
        [*PROGRAM, "status", "--socket", place],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "20"},
    )
    assert "pool   permits  token  free  held  waiting  longest  entries" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 100
