"""The examples run as they are."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import LIMIT, sooner_or_later

EXAMPLES = Path(__file__).parents[3] / "examples"


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


def test_prefork_web_workers() -> None:
    lines = run(sys.executable, str(EXAMPLES / "prefork_web_workers.py"))
    assert lines.pop() == "all seats are back"
    inside: dict[str, int] = {}
    most = 0
    for line in lines:
        _, worker, what, *_ = line.replace(",", "").split()
        inside[worker] = inside.get(worker, 0) + (1 if what == "begins" else -1)
        most = max(most, sum(inside.values()))
    assert most == 2 and sum(inside.values()) == 1  # the one that was killed
    assert len(lines) == 2 * 8 + 1 and len(inside) > 1


def test_gpu_queue() -> None:
    lines = run(sys.executable, str(EXAMPLES / "gpu_queue.py"))
    running: dict[str, set[str]] = {}
    wanted: dict[str, int] = {}
    for line in lines:
        job, what, _, devices = line.split()
        if what == "begins":
            mine = set(devices.split(","))
            assert mine <= {"0", "1", "2", "3"} and not mine & set().union(*running.values())
            running[job], wanted[job] = mine, len(mine)
        else:
            assert running.pop(job) == set(devices.split(","))
    assert not running and wanted.pop("pretrain") == 4 and wanted.pop("finetune") == 2
    assert sorted(wanted) == ["demo-for-visitors", "sweep-1", "sweep-2", "sweep-3"]


def test_robot_crossing() -> None:
    lines = run(sys.executable, str(EXAMPLES / "robot_crossing.py"))
    why = "hurry takes the bridge: No permits of crossing within 0.3 s"
    assert [line for line in lines if line.startswith(why)]
    order = [line.split()[0] for line in lines if "fence" in line]
    assert order == ["courier", "bread", "mail"]  # as their deadlines, not as they came


BOARD = [sys.executable, str(EXAMPLES / "whiteboard" / "board.py")]


@pytest.mark.parametrize("given", [["--name", "ann"], []])
def test_a_whiteboard_whose_port_is_in_use_says_so(given: list[str]) -> None:
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module, reason=f"the whiteboard needs {module}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*BOARD, *given, "--port", f"{port}"], capture_output=True, text=True, timeout=LIMIT
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"No board at port {port} (Address already in use): choose another with --port.\n"
    )


@pytest.mark.parametrize("given", [["--name", "ann"], []])
def test_a_whiteboard_with_an_impossible_lease_says_so(given: list[str]) -> None:
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module, reason=f"the whiteboard needs {module}")
    command = [*BOARD, *given, "--port", "0", "--lease", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "lease 0.0 is out of range: use 0.3 to 86,400 s.\n"


@pytest.mark.parametrize("boards", [0, 1, 3])
def test_a_whiteboard_that_is_told_to_end_leaves_no_child(boards: int) -> None:
    """Whether it has started one, or all."""
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module, reason=f"the whiteboard needs {module}")
    process = subprocess.Popen(
        [*BOARD, "--port", "0"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    for _ in range(boards):
        assert "http://127.0.0.1:" in process.stdout.readline()
    process.terminate()
    process.communicate(timeout=LIMIT)  # until the last of them is gone: all write to it
    sooner_or_later(lambda: nobody_in(process.pid))


def nobody_in(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_board_that_is_told_to_end_while_it_is_forked_ends() -> None:
    """Exceptions of what runs right after a fork are printed and lost."""
    for module in ("starlette", "uvicorn"):
        pytest.importorskip(module, reason=f"the whiteboard needs {module}")
    forked = (
        "import os, runpy, signal, sys; sys.argv = sys.argv[1:];"
        "os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM));"
        "sys.path.insert(0, os.path.dirname(sys.argv[0]));"
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", forked, *BOARD[1:], "--port", "0"],
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
