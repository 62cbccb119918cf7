"""Two algorithms side by side in a real browser."""

import pytest
from browser import served, shows, until
from pictures import picture

from meshlock.web.server import Desk, application


@pytest.fixture
def page(browser):
    with served(application(Desk())) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(f"{address}/compare")
        until(page, "window.meshlock?.rows && meshlock.shown === 0")
        yield page
        assert not page.errors
        page.close()


def row(page, name):
    """A line of the table: both values, and whether it is marked."""
    return page.evaluate(
        """(name) => { const row = [...document.querySelectorAll('#differences tbody tr')]
            .find((row) => row.cells[0].textContent === name);
            return [row.cells[1].textContent, row.cells[2].textContent, row.className]; }""",
        name,
    )


def test_two_algorithms_play_the_same_script_and_differ_where_one_is_wrong(page):
    shows(page, "#subtitle", "J1: A waiting holder gives the token away")
    page.keyboard.press("ArrowRight")
    until(page, "meshlock.shown === 1")
    shows(page, "#side-0 .cause", "2 asks for 1 permit, priority 5")
    shows(page, "#side-1 .cause", "2 asks for 1 permit, priority 5")
    assert row(page, "waiting") == ["2", "2", ""]
    page.click("#differ")
    until(page, "meshlock.apart[meshlock.at].length > 0 && meshlock.shown === meshlock.at")
    at = page.evaluate("meshlock.at")
    assert page.evaluate("meshlock.sides[0].stage.marked.length") > 0
    picture(page, "compare")
    page.keyboard.press("End")
    until(page, "meshlock.shown === meshlock.rows.length - 1")
    assert row(page, "violated") == ["order, served", "nothing", "differs"]
    assert row(page, "entered so far") == ["1, 0", "1, 2, 0", "differs"]
    page.goto(page.url.split("#")[0] + f"#at={at}")
    page.reload()  # the address has it all
    until(page, f"window.meshlock?.rows && meshlock.shown === {at}")
    shows(page, "#side-0 h2", "jiang-printed")


def test_the_same_seed_and_workload(page):
    page.select_option("#left", "raymond")
    page.select_option("#right", "naimi-trehel")
    page.select_option("#schedule", "")
    page.fill("#seed", "5")
    page.click("#go")
    until(page, "meshlock.sides[1].run.setup.algorithm === 'naimi-trehel' && meshlock.shown === 0")
    shows(page, "#subtitle", "the same 20 requests, seed 5")
    page.click("#play")
    until(page, "meshlock.at > 2")
    page.click("#play")
    page.keyboard.press("End")
    until(page, "meshlock.shown === meshlock.rows.length - 1")
    left, right, _ = row(page, "entered so far")
    assert sorted(left.split(", ")) == sorted(right.split(", ")) and len(left.split(", ")) == 20
    assert row(page, "messages sent")[2] == "differs"


def test_what_cannot_be_compared_says_why(page):
    page.select_option("#schedule", "")
    page.select_option("#left", "raymond")
    page.fill("#permits-of", "3")
    page.click("#go")
    shows(page, "#wrong", "raymond")
