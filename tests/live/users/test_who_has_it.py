"""What the page on who has which permits shows, run as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import LIMIT

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "who-has-it.md"
PROGRAM = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
GPUS = ["gpu0", "gpu1", "gpu2"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of programs beside an agent with three GPUs."""
    place = str(tmp_path_factory.mktemp("gpus") / "socket")
    command = [*PROGRAM, "agent", "--name", "ann", "--state", "none", "--socket", place]
    with subprocess.Popen(
        [*command, "--pool", f"gpus={','.join(GPUS)}"], stderr=subprocess.PIPE
    ) as agent:
        assert agent.stderr is not None and b"ready" in agent.stderr.readline()
        yield {**os.environ, "MESHLOCK_SOCKET": place}
        agent.terminate()


def shown(language: str) -> list[str]:
    return re.findall(rf"(?s)```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"))


def printed(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_programs_do_what_they_say(environment: dict[str, str]) -> None:
    train, hurry = shown("python")
    said = re.findall(r"# (\(.*\))", train)
    assert printed(environment, sys.executable, "-c", train).splitlines() == said
    assert printed(environment, sys.executable, "-c", hurry) == ""


def test_its_command_is_told_which_permits_it_has(environment: dict[str, str]) -> None:
    exec_ = [
        *PROGRAM,
        "exec",
        "--pool",
        "gpus",
        "--want",
        "2",
        "--slots-to",
        "CUDA_VISIBLE_DEVICES",
    ]
    told = printed(environment, *exec_, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    assert told == "gpu0,gpu1\n"


def test_its_calls_over_http(environment: dict[str, str]) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    [calls] = shown("bash")
    assert '{"permits":3,"token":"ann",' in printed(environment, "bash", "-euc", calls)
