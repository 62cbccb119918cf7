"""meshlock scenario: what it prints, and its exit codes."""

import json

from commands import meshlock


def scenario(*arguments):
    return meshlock("scenario", *arguments)


def test_the_list_names_every_scenario():
    result = scenario("--list")
    assert result.returncode == 0
    errata = ["J1", "J1b", *[f"J{number}" for number in range(2, 11)]]
    figures = ["jiang-figure-1", "jiang-figure-2", "scheme-figure-4", "scheme-figures-2-3"]
    listed = [line.split()[0] for line in result.stdout.splitlines()]
    crashes = ["C1", "C2", "C3"]
    order = ["O1", "O1b", "O2", "O3", "O4"]
    others = ["R10", "R10b", "R11", *figures[:2], "kinds", *figures[2:]]
    assert listed == [*crashes, "D1", *errata, "K1", "M1", *order, *others]


def test_an_option_of_the_command_line_goes_before_the_script_s(tmp_path):
    assert scenario("J5", "--algorithm", "jiang-printed").returncode == 1
    prose = scenario("J5", "--algorithm", "jiang-printed", "--option", "recheck=prose")
    assert prose.returncode == 0, prose.stdout
    assert "played by jiang-printed\n" in prose.stdout  # the script's option=appendix is gone


def test_every_erratum_holds_with_every_way_to_move_the_token():
    for moves in ("quiet", "silent", "broadcast"):
        for name in ("J1", "J9"):
            result = scenario(name, "--option", f"moves={moves}", "--option", "ageing=none")
            assert result.returncode == 0, result.stdout
            assert "ageing=none" in result.stdout.splitlines()[1]


def test_an_option_that_the_algorithm_has_not_is_refused():
    for option, said in (("taste=sweet", "jiang has no option 'taste'"), ("moves", "NAME=VALUE")):
        result = scenario("J1", "--option", option)
        assert (result.returncode, result.stdout) == (2, "")
        assert said in result.stderr and result.stderr.count("\n") == 1


def test_draws_follow_the_seed(tmp_path):
    script = tmp_path / "drawn.txt"
    script.write_text("# Drawn\nnodes 4\nlinks 0-1 1-2 2-3\nrequest 3\nfinish\n")
    command = (str(script), "--algorithm", "general-scheme")
    plays = [scenario(*command, "--seed", str(seed)).stdout for seed in (1, 1, 2, 3, 4)]
    assert plays[0] == plays[1] == scenario(*command).stdout
    assert len(set(plays)) > 1


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
    judged = meshlock("audit", str(trace))
    assert judged.returncode == 0, judged.stdout
