"""Large type, presentation, and what is left to chance."""

import json

import pytest
from browser import holds, served, shows, until
from pictures import picture

from meshlock.web.driving import DrivenSetUp, PageRun
from meshlock.web.server import Desk, application


@pytest.fixture
def page(browser):
    with served(application(Desk())) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page.goto(address)
        until(page, "window.meshlock?.run?.about.driven && meshlock.shown === 0")
        yield page
        page.close()


def settled(page):
    until(page, "!meshlock.driving.busy && meshlock.target === null")
    until(page, "meshlock.shown === meshlock.run.steps")


TYPE = "parseFloat(getComputedStyle(document.body).fontSize)"


def test_type_grows_and_shrinks_and_is_remembered(page):
    usual = page.evaluate(TYPE)
    page.click("#larger")
    page.keyboard.press(">")
    until(page, f"{TYPE} > {usual} * 1.25")
    drawn = page.evaluate("meshlock.stage.type")
    assert drawn > 1.25
    page.reload()
    until(page, f"window.meshlock?.run && {TYPE} > {usual} * 1.25")
    page.keyboard.press("<")
    page.click("#smaller")
    until(page, f"{TYPE} === {usual}")


def test_a_presentation_has_no_chrome_and_keys_work(page):
    for _ in range(3):
        page.click("#random-request")
        settled(page)
    page.keyboard.press("Home")
    until(page, "meshlock.shown === 0")
    usual = page.evaluate(TYPE)
    page.keyboard.press("f")
    until(page, f"{TYPE} > {usual} * 1.3")
    for part in ("header", "#side", "#strip", "#legend"):
        assert page.locator(part).is_hidden()
    wide = page.evaluate("document.getElementById('stage').offsetWidth / window.innerWidth")
    assert wide > 0.9
    page.keyboard.press("ArrowRight")
    until(page, "meshlock.shown === 1")
    shows(page, "#caption", "1. ")
    shows(page, "#caption", "asks for")
    picture(page, "lecture")
    page.reload()  # it is still being presented
    until(
        page,
        "window.meshlock?.shown === 1 && document.documentElement.classList.contains('lecture')",
    )
    page.keyboard.press("Escape")
    holds(page, page.locator("header").is_visible)
    page.click("#lecture")
    holds(page, page.locator("header").is_hidden)
    page.click("#lecture-end")
    holds(page, page.locator("header").is_visible)


def test_chance_by_a_button_is_recorded_and_can_be_repeated(page):
    def drawn():
        for button in ("random-request", "random-request", "random-link", "random-request"):
            page.click(f"#{button}")
            settled(page)
        path = page.evaluate("meshlock.run.path")
        saved = page.request.get(page.url.split("/#")[0] + f"{path}/trace.jsonl").text()
        return [json.loads(line) for line in saved.splitlines()]

    first = drawn()
    asked = [line for line in first if line.get("event") == "request"]
    assert len({line["node"] for line in asked}) == len(asked) == 3
    assert [line for line in first if line.get("event") == "link-down"]
    page.click("#try-start")
    until(page, "meshlock.run.name === 'driven-2' && meshlock.shown === 0")
    assert drawn() == first


def test_chance_never_parts_the_network_and_says_when_there_is_no_choice():
    run = PageRun(DrivenSetUp({"topology": "grid", "nodes": 6, "permits": 2, "seed": 4}))
    for _ in range(60):
        run.perform({"do": "random link"})
        assert not run.parted()
    assert {action["do"] for action in run.actions} == {"cut", "join"}
    for _ in range(6):
        run.perform({"do": "random request"})
    with pytest.raises(Exception, match="Every node waits or is inside"):
        run.perform({"do": "random request"})
    run.perform({"do": "undo"})
    line = PageRun(DrivenSetUp({"topology": "line", "nodes": 3, "permits": 1}))
    with pytest.raises(Exception, match="Every link is the only way"):
        line.perform({"do": "random link"})
    fixed = PageRun(DrivenSetUp({"algorithm": "raymond", "topology": "line", "nodes": 3}))
    with pytest.raises(Exception, match="is for fixed networks"):
        fixed.perform({"do": "random link"})
