"""A riddle in a real browser: drive it, have it judged, see a hint and the solution."""

import pytest
from browser import served, shows, until
from pictures import picture

from meshlock.check.riddles import riddles
from meshlock.web.server import Desk, application

RAYMOND = next(one for one in riddles() if one.algorithm == "raymond" and one.mutant.steps == 2)
"""That of the page about riddles; its number changes with the mutants."""


@pytest.fixture
def page(browser):
    with served(application(Desk())) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page.goto(address)
        until(page, "window.meshlock?.run?.about.driven && meshlock.shown === 0")
        page.click("#menu-open")
        page.click("[data-kind=riddle]")
        page.click(f"[data-name='{RAYMOND.number}']")
        until(page, "meshlock.run.about.riddle && meshlock.shown === 0")
        yield page
        page.close()


def settled(page, steps):
    until(
        page,
        f"!meshlock.driving.busy && meshlock.shown === {steps} && meshlock.run.steps === {steps}",
    )


def ask(page, node):
    page.click(f"#pane-drive .messages button:has-text('node {node} asks')")


def test_a_riddle_is_found_and_judged_as_on_the_command_line(page):
    mutant = RAYMOND.mutant
    shows(page, "h1", f"Riddle {RAYMOND.number}: this raymond is broken")
    page.click("#hint")
    shows(page, "#riddle-says", RAYMOND.hint())
    ask(page, 2)
    settled(page, 1)
    assert page.locator("#pane-drive .messages button:has-text('node 2 asks')").is_disabled()
    page.click("#deliver-next")
    settled(page, 2)
    page.click("#tab-step")
    shows(page, "#pane-step", "1 receives REQUEST from 2")
    assert page.locator("#pane-step .code").count() == 0  # it would tell
    page.keyboard.press("o")
    page.click("#save")
    shows(page, "#menu-says", "The trace would give the mistake away")
    page.keyboard.press("Escape")
    for path in ("", "/source", "/ran?step=2"):
        told = page.request.get(page.url.split("#")[0] + f"api/runs/driven-2{path}").text()
        assert mutant.name not in told and "keeps" not in told
    page.click("#tab-drive")
    page.click("#deliver-next")
    settled(page, 3)
    shows(page, "#riddle-says", "Found, in 3 steps; the shortest way has 2.")
    shows(page, "h1", f"Riddle {RAYMOND.number}: found")
    picture(page, "riddle")
    page.click("#tab-step")
    shows(page, "#pane-step", "general_scheme.py")  # no secret any more
    page.click("#tab-drive")
    for _ in range(3):
        steps = page.evaluate("meshlock.run.steps")
        page.click("#undo")
        settled(page, steps - 1)
    ask(page, 1)
    settled(page, 1)
    page.click("#deliver-next")
    settled(page, 2)
    shows(page, "#riddle-says", "Found, in 2 steps: no way is shorter.")


def test_the_solution_tells_the_mistake_and_the_checkers_story(page):
    page.click("#solution")
    shows(page, "#mistake", RAYMOND.mistake())
    shows(page, "#pane-drive .story", "1. node 1 asks for 1 permit")


def test_a_node_makes_only_the_requests_of_the_riddle(page):
    at = page.evaluate("meshlock.stage.places[1]")
    box = page.locator("#network").bounding_box()
    page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])
    page.click("#ask button:has-text('node 1 asks for 1 permit, priority 0')")
    settled(page, 1)
    at = page.evaluate("meshlock.stage.places[0]")
    page.mouse.click(box["x"] + at["x"], box["y"] + at["y"])
    until(page, "document.querySelector('#ask b').innerText === 'Node 0'")
    assert page.locator("#ask button").count() == 0
    assert page.locator("#random-request").count() == 0
