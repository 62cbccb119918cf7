"""Riddles: every one can be solved, nothing is given away, and the page is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from meshlock.check.riddles import Riddle, riddles
from meshlock.cli.main import app
from meshlock.errors import Refused

PAGE = Path(__file__).parents[2] / "docs" / "laboratory" / "riddles.md"
BLOCKS = re.compile(r"^```(text|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)

EVERY = riddles()


def meshlock(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=given)


def test_the_page_says_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    played = 0
    for kind, text in BLOCKS.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "text":
            Path("mine.txt").write_text(text)
            continue
        command, _, expected = text.partition("\n")
        answer = meshlock(*command.removeprefix("$ meshlock ").split())
        assert answer.output == expected
        played += 1
        if "mine.txt" in command:
            assert answer.exit_code == (0 if "Found" in expected else 1)
    assert played == 4


@pytest.mark.parametrize("riddle", EVERY, ids=[riddle.mutant.name for riddle in EVERY])
def test_the_checkers_schedule_solves_it(riddle: Riddle) -> None:
    actions, story = riddle.solution
    finding = riddle.judge(riddle.script() + actions)
    # who is let in without having asked cannot be looked up: there a handler fails
    assert {riddle.mutant.breaks, "handlers"} & set(finding.violated)
    assert finding.steps >= riddle.mutant.steps == len([line for line in story if line[3:4] == "."])
    told = riddle.script() + finding.transcript + "\n".join(story)
    assert riddle.mutant.name not in told and riddle.mutant.mistake not in told


def test_they_are_listed_from_the_easiest_on() -> None:
    rows = json.loads(meshlock("riddle", "--json").output)
    assert [row["riddle"] for row in rows] == list(range(1, len(EVERY) + 1))
    assert [row["steps"] for row in rows] == sorted(row["steps"] for row in rows)
    assert len({riddle.mutant.mistake for riddle in EVERY}) == len(EVERY) > 90
    people = meshlock("riddle").output
    assert len(people.splitlines()) == len(EVERY) + 1
    assert "/" not in people


def test_hint_and_solution_tell_more_and_more() -> None:
    riddle = EVERY[8]
    assert meshlock("riddle", "9", "--hint").output == f"It breaks {riddle.mutant.breaks}.\n"
    told = meshlock("riddle", "9", "--solution").output
    assert told.startswith(f"{riddle.mutant.name}: {riddle.mutant.mistake}.")
    assert told.endswith(riddle.solution[0])


def test_a_schedule_from_the_input_and_a_verdict_for_programs() -> None:
    answer = meshlock("riddle", "9", "-", "--json", given="request 2\nfinish\n")
    verdict = json.loads(answer.output)
    assert answer.exit_code == 0
    assert verdict["found"] and "one-token" in verdict["violated"]
    assert (verdict["steps"], verdict["shortest"]) == (3, 2)


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("request 0\n", "'request 0 want 1 priority 0' is not in this riddle"),
        ("request 1\nrequest 1\n", "or not as many times"),
        ("link down 0-1\n", "only in this order: never"),
        ("lose 1->0\n", "'lose' is not a step of this riddle"),
        ("nodes 4\n", "The set-up belongs to the riddle"),
        ("deliver 1->0\n", "Nothing is on the way 1->0"),
        ("dance 1\n", "cannot do 'dance 1'"),
        ("request\n", "cannot do 'request'"),
    ],
)
def test_what_is_not_in_the_riddle_is_refused(schedule: str, said: str) -> None:
    with pytest.raises(Refused, match=re.escape(said)):
        EVERY[8].judge(schedule)


def test_there_is_no_such_riddle() -> None:
    answer = meshlock("riddle", "0")
    assert isinstance(answer.exception, Refused)
    assert "numbered 1 to" in str(answer.exception)
