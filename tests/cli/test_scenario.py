"""meshlock scenario as other programs call it."""

import json
import subprocess
import sys

COMMAND = [sys.executable, "-c", "from meshlock.cli.main import run; run()", "scenario"]


def scenario(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)


def test_the_list_names_every_scenario():
    result = scenario("--list")
    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == (
        ["J1", "J1b", *[f"J{number}" for number in range(2, 11)]]
    )


def test_a_stuck_run_ends_with_1_and_says_who_waits():
    result = scenario("J1", "--algorithm", "jiang-printed")
    assert result.returncode == 1
    assert "waiting for ever: 2" in result.stdout


def test_json_is_one_object():
    result = scenario("J2", "--algorithm", "jiang-printed", "--json")
    assert result.returncode == 1
    figures = json.loads(result.stdout)
    assert (figures["entries"], figures["unserved"]) == ([1, 3], [2, 4])
    assert figures["transcript"][0] == "> request 2 priority 5"


def test_an_unknown_scenario_is_one_sentence_and_2():
    for arguments in (["J99"], []):
        result = scenario(*arguments, "--algorithm", "jiang-printed")
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("meshlock: ") and result.stderr.count("\n") == 1


def test_one_s_own_script_can_be_played_and_its_trace_judged(tmp_path):
    script = tmp_path / "two.txt"
    script.write_text("# Two take turns\nnodes 2\nlinks 0-1\nrequest 0\nrequest 1\nfinish\n")
    trace = tmp_path / "two.jsonl"
    played = scenario(str(script), "--algorithm", "jiang-printed", "--trace", str(trace))
    assert played.returncode == 0, played.stderr
    judged = subprocess.run([*COMMAND[:-1], "audit", str(trace)], capture_output=True, text=True)
    assert judged.returncode == 0, judged.stdout
