"""On a desk, a small laptop and a phone, light and dark: nothing overlaps or is cut off."""

import json
from pathlib import Path

import pytest
from browser import served, until
from test_live_page import TOKEN, running
from test_player import desk_with, written

from meshlock.web.server import Desk, application

MEASURE = Path(__file__).with_name("fitting.js").read_text()
SIZES = [(1400, 900), (1024, 768), (390, 844)]
ALL = [(size, scheme) for size in SIZES for scheme in ("light", "dark")]


SETTLED = "meshlock.sides.every(({ stage }) => stage.height === stage.canvas.clientHeight)"
"""Both networks of a comparison are drawn as large as they are shown."""


def misfits(page):
    """What overlaps, is cut off or sticks out."""
    return page.evaluate(MEASURE)


def fits(page, where):
    wrong = misfits(page)
    assert not wrong, f"{where}: {wrong}"


def sooner_fits(page, where):
    """What is drawn anew every half second may be caught in the middle of it, but not twice."""
    wrong = misfits(page)
    if wrong:
        page.wait_for_event("response", lambda answer: "/view.json" in answer.url)
        wrong = misfits(page)
    assert wrong == [], where


def bottom(element):
    return f"document.getElementById('{element}').getBoundingClientRect().bottom"


def views(browser, address):
    """The page in every size, light and dark."""
    for (wide, high), scheme in ALL:
        page = browser.new_page(
            viewport={"width": wide, "height": high}, color_scheme=scheme, reduced_motion="reduce"
        )
        page.goto(address)
        yield page, wide, f"{wide} x {high}, {scheme}"
        page.close()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("fits") / "run.jsonl"
    words = "simulate --algorithm jiang --nodes 9 --topology grid:3x3 --permits 3 --want 1-2 "
    words += "--priority 0-5 --requests 60 --workload poisson:0.1 --seed 3 --json"
    return written(path, words)


def test_the_player_fits(browser, trace):
    with served(desk_with(trace)) as address:
        for page, _, where in views(browser, f"{address}/#step=120"):
            until(page, "window.meshlock?.shown === 120 && meshlock.run.handlers")
            until(page, "document.querySelector('#pane-step .code')")
            for step in (120, 147):
                page.evaluate(f"meshlock.go({step})")
                until(page, f"meshlock.shown === {step}")
                for tab in ("waiting", "node", "events", "step"):
                    page.click(f"#tab-{tab}")
                    until(page, f"meshlock.tab === '{tab}' && meshlock.shown === {step}")
                    fits(page, f"{where}, step {step}, {tab}")


def test_what_is_driven_fits_and_start_is_in_sight(browser):
    with served(application(Desk())) as address:
        for page, wide, where in views(browser, address):
            until(page, "window.meshlock?.run?.about.driven && meshlock.shown === 0")
            fits(page, where)
            if wide > 1000:
                until(page, f"{bottom('try-start')} <= {bottom('side')}")
            for node in (7, 3, 6):
                action = {"do": "ask", "node": node, "want": 2, "priority": node}
                assert page.evaluate(f"meshlock.driving.do({json.dumps(action)})")
            until(page, "meshlock.target === null && meshlock.shown === meshlock.run.steps")
            fits(page, f"{where}, with messages")


def test_the_menu_a_riddle_and_a_presentation_fit_in_any_type(browser):
    with served(application(Desk())) as address:
        for page, _, where in views(browser, address):
            until(page, "window.meshlock?.run?.about.driven && meshlock.shown === 0")
            for times in range(2):
                page.click("#menu-open")
                for kind in ("scenario", "mutant", "study", "riddle"):
                    page.click(f"[data-kind={kind}]")
                    until(page, "document.querySelectorAll('#menu-list button').length > 5")
                    fits(page, f"{where}, {kind}")
                page.click("[data-name='9']")
                until(page, "meshlock.run.about.riddle && meshlock.shown === 0")
                assert page.evaluate("meshlock.driving.do({ do: 'ask', node: 1 })")
                assert page.evaluate("meshlock.driving.do({ do: 'next' })")
                until(page, "meshlock.target === null && meshlock.shown === 2")
                until(
                    page, "document.querySelector('#riddle-says')?.textContent.includes('2 steps')"
                )
                page.click("#solution")
                until(page, "document.querySelector('.story')")
                fits(page, f"{where}, riddle")
                page.keyboard.press("f")
                until(page, "document.documentElement.classList.contains('lecture')")
                until(page, "!meshlock.dirty")
                fits(page, f"{where}, presentation")
                page.keyboard.press("Escape")
                if times == 0:
                    for _ in range(3):
                        page.click("#larger")  # 1.5 times as large
                    until(page, "!meshlock.dirty")


def test_a_comparison_fits(browser):
    with served(application(Desk())) as address:
        asked = "left=raymond&right=naimi-trehel&topology=tree&nodes=8&requests=20&seed=1#at=30"
        for query in ("#at=17", f"?{asked}"):
            for page, _, where in views(browser, f"{address}/compare{query}"):
                until(page, "window.meshlock?.rows && meshlock.shown > 10")
                until(page, SETTLED)
                fits(page, where)
                page.click("#larger")
                until(page, "meshlock.sides[0].stage.type > 1.1")
                until(page, SETTLED)
                fits(page, f"{where}, larger")


def test_the_live_page_fits_and_alarms_stand_at_the_top(browser):
    with running(True, leases=True) as mesh:
        for page, _, where in views(browser, mesh.page):
            until(page, "!document.getElementById('enter').hidden")
            page.fill("#token", TOKEN)
            page.keyboard.press("Enter")
            until(page, "document.querySelectorAll('#map .name').length === 4")
            for pool in ("docks", "bays"):
                page.select_option("#pool", pool)
                until(page, f"document.getElementById('title').textContent.endsWith('{pool}')")
                until(page, "document.querySelector('#grants td.fence')")
                sooner_fits(page, f"{where}, {pool}")
            below = "document.getElementById('shown').getBoundingClientRect().top"
            at = page.evaluate("document.getElementById('verdict').getBoundingClientRect().top")
            assert at <= page.evaluate(below), where
