"""meshlock check, replay and shrink: what they print, and their exit codes."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import meshlock as run_command
from waiting import LIMIT, has_worked, sooner_or_later

COMMAND = [sys.executable, "-c", "from meshlock.cli.main import run; run()"]

KEYS = {
    "algorithm",
    "states",
    "transitions",
    "depth",
    "complete",
    "holds",
    "violations",
    "cpu_s",
    "states_per_cpu_s",
}

PRINTED = """check --algorithm jiang-printed --topology line --nodes 3 --permits 1
    --request 0:1@1 --request 1:1@3 --request 2:1@2"""


def meshlock(line: str, *more: str) -> subprocess.CompletedProcess[str]:
    return run_command(*line.split(), *more)


def test_what_holds_is_said_with_counts_and_exit_0() -> None:
    result = meshlock("check --algorithm raymond --topology line --nodes 4 --json")
    assert result.returncode == 0
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert set(found) == KEYS
    assert (found["states"], found["transitions"], found["depth"]) == (981, 2205, 21)
    assert found["complete"] is found["holds"] is True


def test_a_newcomer_sees_why_the_printed_algorithm_deadlocks() -> None:
    result = meshlock(PRINTED)
    assert result.returncode == 1
    assert "served VIOLATED after 20 steps: 1 request waits and nothing" in result.stdout
    assert "\n 20. node" in result.stdout
    assert "node 2 waits for 1 with priority 2 (client 3)" in result.stdout
    assert "order VIOLATED after 19 steps" in result.stdout


def test_json_has_every_step_as_a_text(tmp_path: Path) -> None:
    trace = tmp_path / "way.jsonl"
    result = meshlock(PRINTED, "--property", "served", "--json", "--trace", str(trace))
    (found,) = json.loads(result.stdout)["violations"]
    assert (found["property"], found["length"], len(found["steps"])) == ("served", 20, 20)
    assert found["steps"][0].startswith("node 1 asks for 1 permit with priority 3 (client 2)")
    again = meshlock(f"replay {trace} --json")
    assert again.returncode == 1
    assert json.loads(again.stdout)["unserved"] == [2]
    small = tmp_path / "small.txt"
    shrunk = meshlock(f"shrink {trace} -o {small}")
    assert shrunk.returncode == 0
    assert "still violated: " in shrunk.stdout
    assert meshlock(f"scenario {small} --algorithm jiang-printed").returncode == 1
    assert meshlock(f"scenario {small} --algorithm jiang").returncode == 0


def test_stopped_early_it_never_says_holds() -> None:
    result = meshlock(
        "check --algorithm raymond --topology line --nodes 6 --max-states 1000 --json"
    )
    assert result.returncode == 3
    found = json.loads(result.stdout)
    assert found["complete"] is found["holds"] is False
    assert found["violations"] == []


def test_interrupted_it_tells_what_it_has_seen() -> None:
    line = "check --algorithm lamport --nodes 4 --json"
    process = subprocess.Popen(
        [*COMMAND, *line.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    sooner_or_later(lambda: has_worked(process.pid, 2.5))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    found = json.loads(out)
    assert found["states"] > 1
    assert found["complete"] is found["holds"] is False


def test_link_changes_are_told(tmp_path: Path) -> None:
    result = meshlock(
        "check --algorithm jiang --topology line --nodes 3 --request 2:1@1 --json --change",
        "up 0-2",
    )
    assert result.returncode == 0
    assert json.loads(result.stdout)["holds"] is True


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("check --request 9:1@1 --nodes 3", "there is no node 9; the last is 2"),
        ("check --request hello --nodes 3", "NODE:WANT@PRIORITY"),
        ("check --nodes 3 --property beauty", "--property is one of"),
        ("check --nodes 3 --changes 1", "raymond is for networks that do not change"),
        ("check --nodes 3 --reduction all", "--reduction is none, por or auto"),
        ("check --nodes 3 --symmetry --reduction por", "Choose one"),
        ("check --nodes 3 --max-states 0", "--max-states"),
        ("check --nodes 3 --permits 2", "raymond shares one permit"),
        ("check --nodes 3 --clients 2", "one client per node"),
        ("check --nodes 3 --links none", "fifo or unordered"),
        ("check --nodes 3 --option queue", "NAME=VALUE"),
        ("check", "add --nodes"),
        ("replay /nowhere.jsonl", "Cannot read"),
    ],
)
def test_a_wrong_question_is_one_sentence_and_exit_2(line: str, words: str) -> None:
    result = meshlock(line)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("meshlock: ")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_manifest_reruns() -> None:
    result = meshlock("check --manifest --max-states 500 --json")
    assert result.returncode == 0
    found = json.loads(result.stdout)
    assert found["as_pinned"] is True
    assert len(found["setups"]) > 10
