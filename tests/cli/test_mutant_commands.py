"""Mutants by name and repairs undone, as commands."""

import json
import runpy
import shlex
from pathlib import Path

import pytest

from commands import meshlock as run_command
from meshlock.algorithms.mutants.catalogue import MUTANTS
from meshlock.check import serving
from meshlock.check.mutants import command
from meshlock.simulate.rerun import with_states
from meshlock.web.handlers import handlers

ROOT = Path(__file__).parents[2]


def meshlock(line):
    return run_command(*shlex.split(line))


def test_the_list_says_what_each_one_breaks():
    listed = json.loads(meshlock("mutants --json").stdout)
    assert [each["name"] for each in listed] == list(MUTANTS)
    (first,) = [each for each in listed if each["name"] == "jiang/j1-forgets-itself"]
    assert first == {
        "name": "jiang/j1-forgets-itself",
        "algorithm": "jiang",
        "sentence": "a waiting holder gives the token to a node that asks, and drops its own "
        "request",
        "property": "order",
        "steps": 9,
        "check": "meshlock check --mutant jiang/j1-forgets-itself --topology line --nodes 3 "
        "--permits 2 --request 0:1@9 --request 1:2@5 --request 2:1@1",
    }
    people = meshlock("mutants").stdout.splitlines()
    assert len(people) == 1 + len(listed)


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=list(MUTANTS))
def test_the_listed_command_means_the_mutants_own_set_up(mutant, monkeypatch):
    """The whole command and the name alone see the same, as far as they are compared."""
    monkeypatch.setattr(serving, "MOST_TRIED", 5)  # states in which faults stop

    def found(line):
        words = [*shlex.split(line)[1:], "--max-states", "40", "--json"]
        figures = json.loads(run_command(*words).stdout)
        return {key: value for key, value in figures.items() if "cpu" not in key}

    assert found(command(mutant)) == found(f"meshlock check --mutant {mutant.name}")


@pytest.mark.parametrize(
    ("line", "code", "algorithm", "violated"),
    [
        ("--mutant jiang/j1-forgets-itself", 1, "jiang/j1-forgets-itself", {"order", "served"}),
        ("--without R4", 1, "jiang/without-R4", {"order"}),
        ("--algorithm jiang --without r10,R4 --without R4", 1, "jiang/without-R4+R10", {"order"}),
        ("--without R4 --option moves=broadcast", 1, "jiang/without-R4", {"order"}),
        ("--without R4 --request 0 --request 1 --nodes 2", 0, "jiang/without-R4", set()),
        ("--without R7", 0, "jiang/without-R7", set()),
    ],
)
def test_check_uses_the_small_set_up_unless_told_another(line, code, algorithm, violated):
    result = meshlock(f"check {line} --json")
    found = json.loads(result.stdout)
    assert (result.returncode, found["algorithm"]) == (code, algorithm)
    assert {each["property"] for each in found["violations"]} == violated


def test_simulate_and_scenario_undo_repairs_too():
    run = meshlock("simulate --without R9 --nodes 5 --requests 20 --json")
    assert run.returncode == 0
    assert json.loads(run.stdout)["algorithm"] == "jiang/without-R9"
    played = meshlock("scenario J3 --without R4 --json")
    assert played.returncode == 1
    assert json.loads(played.stdout)["entries"] == [0, 3, 1, 2]
    assert meshlock("scenario J3 --without R9").returncode == 0


@pytest.mark.parametrize(
    "line",
    [
        "simulate --mutant suzuki-kasami/keeps-and-sends --nodes 4 --delay exp:1",
        "scenario J2 --mutant general-scheme/lends-and-rests",
    ],
)
def test_where_the_handlers_of_a_mutant_fail_the_run_ends_and_says_so(line):
    result = meshlock(f"{line} --json")
    assert (result.returncode, result.stderr) == (1, "")
    assert "handlers" in json.loads(result.stdout)["violated"]
    assert "cannot go on: KeyError" in meshlock(line).stdout


def test_a_trace_names_what_ran_so_it_is_replayed_audited_and_shown(tmp_path):
    trace = tmp_path / "way.jsonl"
    assert meshlock(f"check --without R4 --trace {trace}").returncode == 1
    setup, *steps = trace.read_bytes().splitlines()
    assert json.loads(setup)["algorithm"] == "jiang/without-R4"
    assert json.loads(meshlock(f"replay {trace} --json").stdout)["violated"].keys() == {"order"}
    assert meshlock(f"audit {trace}").returncode == 1
    assert with_states(json.loads(setup), steps) is not None
    (shown,) = handlers("jiang/without-R4")["request"]
    assert shown["file"] == "jiang.py jiang:without-R4"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("check --without R12", "There is no repair 'R12' of jiang"),
        ("check --algorithm raymond --without R4", "raymond is another algorithm"),
        ("check --mutant nonsense", "meshlock mutants lists them all"),
        ("check --mutant raymond", "There is no mutant 'raymond'"),
        ("check --mutant jiang/keeps-and-send", "did you mean 'jiang/keeps-and-sends'?"),
        ("check --mutant jiang/keeps-and-sends --without R1", "Choose one of"),
        ("scenario J1 --algorithm jiang --mutant raymond/keeps-and-sends", "not of jiang"),
        ("simulate --algorithm reverse-link --without R4", "reverse-link is another algorithm"),
        ("check --nodes 3 --stay 5", "node 5 asks for nothing"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(line, sentence):
    result = meshlock(line)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_table_of_repairs_is_what_the_campaign_gives():
    campaign = runpy.run_path(str(ROOT / "campaigns" / "ablation.py"))
    page = campaign["PAGE"].read_text(encoding="utf-8")
    assert campaign["written"](page, campaign["table"]()) == page
