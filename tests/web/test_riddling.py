"""A riddle in the page: the same referee as on the command line, and nothing is given away."""

import json

import pytest

from meshlock.check.riddles import riddles
from meshlock.errors import Refused
from meshlock.web.driving import RiddleRun

RAYMOND = next(one for one in riddles() if one.algorithm == "raymond" and one.mutant.steps == 2)
"""That of the page about riddles; its number changes with the mutants."""


def driven(run, schedule):
    """The lines of a schedule as actions of the page."""
    overtaken = set()
    for line in schedule.splitlines():
        words = line.split()
        if words[0] == "overtake":  # in the page one just clicks the message behind
            overtaken.add(words[1])
            continue
        which = int(words[2]) if words[0] == "deliver" and len(words) > 2 else 1
        if words[0] == "deliver" and words[1] in overtaken:
            overtaken.remove(words[1])
            which = 2
        yield action(run, line, which)


def action(run, line, which):
    words = line.split()
    if words[0] == "request":
        given = dict(zip(words[2::2], map(int, words[3::2]), strict=True))
        return {"do": "ask", "node": int(words[1]), **given}
    if words[0] == "deliver":
        way = tuple(map(int, words[1].split("->")))
        here = [one for one in run.run.on_the_way if (one.sender, one.receiver) == way]
        return {"do": "deliver", "id": here[which - 1].serial}
    if words[0] == "link":
        one, other = map(int, words[2].split("-"))
        return {"do": "cut" if words[1] == "down" else "join", "one": one, "other": other}
    if words[0] == "behaviour":
        return {"do": "behaviour", "node": int(words[1]), "behaviour": words[2]}
    assert words[0] == "leave"
    return {"do": "leave", "node": int(words[1]), "nth": int(words[2]) if words[2:] else 1}


@pytest.mark.parametrize("riddle", riddles()[::3], ids=lambda riddle: str(riddle.number))
def test_the_checkers_schedule_is_found_when_it_is_driven(riddle):
    run = RiddleRun(riddle)
    for each in driven(run, riddle.solution[0]):
        assert riddle.mutant.name not in json.dumps(run.about())
        assert not run.about()["riddle"]["found"]
        run.perform(each)
    about = run.about()
    assert about["riddle"]["found"] and not about["riddle"]["hidden"]
    assert run.finding.violated == riddle.judge(riddle.solution[0]).violated
    assert run.finding.steps == riddle.shortest()
    assert riddle.verdict(run.finding).endswith("no way is shorter.")
    with pytest.raises(Refused, match=r"It is found|cannot go on"):
        run.perform({"do": "next"})
    run.perform({"do": "undo"})
    assert not run.about()["riddle"]["found"]


def test_only_what_is_in_the_riddle_may_be_done():
    run = RiddleRun(RAYMOND)
    for wrong, why in (
        ({"do": "ask", "node": 0}, "is not in this riddle"),
        ({"do": "ask", "node": 1, "priority": 3}, "is not in this riddle"),
        ({"do": "cut", "one": 0, "other": 1}, "raymond is for fixed networks"),
        ({"do": "random request"}, "no random steps"),
        ({"do": "wait"}, "does not happen"),
        ({"do": "leave", "node": 1}, "No client holds permits"),
    ):
        with pytest.raises(Refused, match=why):
            run.perform(wrong)
    run.perform({"do": "ask", "node": 1})
    with pytest.raises(Refused, match="or not so often"):
        run.perform({"do": "ask", "node": 1})
    assert [each["left"] for each in run.about()["riddle"]["requests"]] == [0, 1]
    assert run.schedule == ["request 1 want 1 priority 0"]


def test_the_solution_tells_all():
    riddle = RAYMOND
    run = RiddleRun(riddle)
    told = run.solution()
    assert told["mistake"] == riddle.mistake()
    assert told["schedule"] == riddle.solution[0].splitlines()
    assert not run.hidden()
