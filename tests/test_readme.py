"""What the README says can be pasted."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import LIMIT

README = Path(__file__).parent.parent / "README.md"


def test_the_python_example_runs():
    code = re.search(r"```python\n(.*?)```", README.read_text(), re.S).group(1)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    assert "two of three docks are ours" in done.stdout


def commands():
    text = README.read_text().replace("\\\n", " ")
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    wanted = ("meshlock simulate", "meshlock check", "meshlock scenario", "meshlock compare")
    return [line for line in lines if line.startswith(wanted)]


@pytest.mark.parametrize("command", commands())
def test_the_commands_of_the_laboratory_run(command):
    program = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]
    done = subprocess.run(
        [*program, *command.split()[1:]], capture_output=True, text=True, timeout=LIMIT
    )
    stuck = "jiang-printed" in command
    assert done.returncode == (1 if stuck else 0), done.stderr
    if stuck:
        assert "served VIOLATED" in done.stdout


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
