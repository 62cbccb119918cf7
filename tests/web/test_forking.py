"""Any step of any run can be left for another one, and the branches stay."""

import json

import pytest
from browser import served, shows, until

from meshlock.errors import Refused
from meshlock.simulate import scenario
from meshlock.trace.reader import BadTrace
from meshlock.web.driving import DrivenSetUp, PageRun
from meshlock.web.forking import fork
from meshlock.web.opening import Counterexample, example_run, scenario_run
from meshlock.web.server import Desk, application


def lines(index, step):
    """Without what only numbers messages."""
    told = [json.loads(line) for each in index.read(1, step) for line in each]
    return [{key: value for key, value in line.items() if key != "id"} for line in told]


@pytest.mark.parametrize("name", ["J2", "K1", "C1", "scheme-figures-2-3", "jiang-figure-1"])
def test_a_scenario_is_left_in_the_middle(name):
    index = scenario_run(name, "")
    for step in (index.steps // 2, index.steps - 2):
        run = fork(index, step)
        assert step - 1 <= run.index.steps <= step  # a link has two ends
        assert lines(run.index, run.index.steps) == lines(index, run.index.steps)


def test_a_counterexample_is_left_before_its_fault_and_saved_by_another_step():
    search = Counterexample("raymond/keeps-and-sends")
    for _ in search.progress():
        pass
    run = fork(search.index, search.index.steps - 1)
    assert not run.about()["violated"]
    run.perform({"do": "next"})
    assert run.about()["violated"]
    run.perform({"do": "undo"})
    assert not run.about()["violated"]


def test_a_run_by_hand_is_left_within_one_of_its_actions():
    run = PageRun(DrivenSetUp({"algorithm": "raymond", "topology": "line", "nodes": 5}))
    run.perform({"do": "ask", "node": 4})
    run.perform({"do": "all"})
    assert run.index.steps > 6
    left = fork(run, 3)
    assert left.index.steps == 3 and lines(left.index, 3) == lines(run.index, 3)
    left.perform({"do": "ask", "node": 2})
    again = fork(left, 4)
    assert lines(again.index, 4) == lines(left.index, 4)


def test_what_cannot_be_left_is_refused_with_a_sentence():
    index = example_run("load")
    for step in (-1, index.steps + 1):
        with pytest.raises(Refused, match="can be left for another step"):
            fork(index, step)
    search = Counterexample("recovery/forgets-its-promise")
    for _ in search.progress():
        pass
    with pytest.raises((Refused, BadTrace), match="cannot be replayed"):
        fork(search.index, 1)


def test_every_scenario_can_be_left():
    for name in scenario.names():
        index = scenario_run(name, "")
        assert fork(index, index.steps - 1).index.steps >= index.steps - 2, name


def test_another_step_begins_another_branch_and_a_link_holds_it(browser):
    with served(application(Desk())) as address:
        page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
        page.goto(f"{address}#run=scenario:J2:&step=5")
        until(page, "window.meshlock?.run?.name === 'scenario:J2:' && meshlock.shown === 5")
        page.click("#leave-run")
        until(page, "meshlock.run.about.driven && meshlock.shown === 5")
        page.click("#all-steps")
        page.get_by_role("button", name="4 asks").click()
        until(page, "meshlock.shown === 6")
        page.click("#deliver-next")
        until(page, "meshlock.shown === 7")
        page.keyboard.press("ArrowLeft")
        until(page, "meshlock.shown === 6")
        page.get_by_role("button", name="0 asks").click()
        until(page, "meshlock.run.name === 'driven-2' && meshlock.shown === 7")
        shows(page, "#pane-drive", "leaves branch 1 after step 6 (7 steps)")
        until(page, "location.hash.endsWith('step=7')")
        other = browser.new_page()
        other.goto(page.url)
        until(other, "window.meshlock?.run?.about.driven && meshlock.shown === 7")
        assert other.evaluate("meshlock.run.lines(7)") == page.evaluate("meshlock.run.lines(7)")
        other.close()
        page.get_by_role("button", name="leaves the run after step 5").click()
        until(page, "meshlock.run.name === 'driven-1' && meshlock.run.steps === 7")
        page.get_by_role("button", name="the run as it was").click()
        until(page, "meshlock.run.name === 'scenario:J2:'")
        page.close()


def test_a_loop_is_shown_and_played_round(browser):
    with served(application(Desk())) as address:
        page = browser.new_page(reduced_motion="reduce")
        page.goto(f"{address}#run=mutant:raymond/last-in-first-out:")
        until(page, "window.meshlock?.run?.setup.loop && meshlock.shown === 0")
        shows(page, "#verdict", "From step 7 on it goes round for ever.")
        until(page, "meshlock.run.ready(18)")
        states = page.evaluate(
            "[6, 18].map((step) => JSON.stringify(meshlock.run.at(step).variables))"
        )
        assert states[0] == states[1]
        page.close()
