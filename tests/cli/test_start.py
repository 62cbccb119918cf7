"""What is loaded before a command does anything: this, and no timing, keeps the start quick."""

from __future__ import annotations

import subprocess
import sys

import pytest

TELL = """
import sys
from meshlock.cli.main import run
sys.argv[0] = "meshlock"
try:
    run()
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules, file=sys.stderr)
"""

LATE = {"asyncio", "difflib", "json", "logging", "msgspec", "rich", "socket", "ssl", "subprocess"}
LATE |= {"cryptography", "networkx", "prometheus_client", "pydantic", "tempfile", "typer"}
"""Of what is installed or comes with Python: needed by commands, when they run."""

BASE = {"meshlock.errors", "meshlock.settings"}
RUN = {"meshlock.simulate", "meshlock.simulate.run_settings"}
SEARCH = {"meshlock.check", "meshlock.check.settings"}
AGENT = {"meshlock.live", "meshlock.live.interfaces", "meshlock.live.interfaces.agent_settings"}
"""Where the settings of commands are declared."""


def loaded(*words: str) -> set[str]:
    command = [sys.executable, "-c", TELL, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("words", [["--version"], ["simulate", "--help"], ["exec", "--help"]])
def test_a_command_loads_click_its_own_module_and_little_else(words: list[str]) -> None:
    modules = loaded(*words)
    assert modules & LATE == set()
    ours = {name for name in modules if name.startswith("meshlock.")}
    start = {f"meshlock.cli.{name}" for name in ("main", "flags")}
    start |= {"meshlock.cli", *BASE}
    if words[0] == "--version":
        assert ours == {*start, "meshlock.simulate"}  # its folder says which flavour runs
    else:
        declared = BASE | RUN if words[0] == "simulate" else BASE
        assert {name for name in ours if not name.startswith("meshlock.cli")} == declared
        assert f"meshlock.cli.{words[0]}" in ours
        assert not ours & {f"meshlock.cli.{name}" for name in ("agent", "chaos", "pool", "status")}


def test_the_list_of_commands_needs_no_more_than_the_commands() -> None:
    modules = loaded("--help")
    assert modules & LATE == set()
    ours = {name for name in modules if name.startswith("meshlock.")}
    declared = BASE | RUN | SEARCH | AGENT
    assert {name for name in ours if not name.startswith("meshlock.cli")} == declared


def test_help_lists_arguments_first_and_flags_of_a_group_together() -> None:
    command = [sys.executable, "-m", "meshlock", "check", "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    crashes = text.index("Nodes that crash and recover:")
    assert (
        text.index("Options:") < text.index("--nodes INT") < crashes < text.index("--crashes INT")
    )
    command = [sys.executable, "-m", "meshlock", "exec", "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert text.index("Arguments:") < text.index("COMMAND...  ") < text.index("Options:")
