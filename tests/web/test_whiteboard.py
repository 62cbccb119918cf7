"""Three pens over real nodes: two browsers on different boards never hold more than three."""

import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from browser import until
from pictures import picture
from test_fits import fits, views

from waiting import LIMIT

pytest.importorskip("starlette", reason="the whiteboard needs starlette")
pytest.importorskip("uvicorn", reason="the whiteboard needs uvicorn")

BOARD = Path(__file__).parents[2] / "examples" / "whiteboard" / "board.py"


processes = {}


@pytest.fixture(scope="module")
def boards(browser):
    command = [sys.executable, str(BOARD), "--port", "0", "--lease", "10"]  # on a busy machine
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    found = {}
    while len(found) < 3:
        said = re.match(r"(\w+): (\S+) \(process (\d+)", process.stdout.readline())
        found[said[1]], processes[said[1]] = said[2], int(said[3])
    yield found
    process.terminate()
    process.wait(LIMIT)


@pytest.fixture
def people(browser, boards):
    """Ann's guest and Cleo's guest, each in a browser."""
    contexts = [browser.new_context(viewport={"width": 900, "height": 640}) for _ in range(2)]
    pages = [context.new_page() for context in contexts]
    for page, board, name in zip(pages, ("ann", "cleo"), ("Ada", "Carl"), strict=True):
        page.goto(f"{boards[board]}?name={name}")
        until(page, "window.board?.me")
    yield pages
    for context in contexts:
        context.close()


def scribble(page, x, y, slope):
    box = page.locator("#paper").bounding_box()
    x, y = x + box["x"], y + box["y"]
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(30):
        page.mouse.move(x + 10 * step, y + slope * step / 2 + 30 * math.sin(step / 3))
    page.mouse.up()


def test_one_draws_alone_the_other_waits_and_then_draws(people):
    ada, carl = people
    ada.click("#all")
    until(ada, "board.me.pens === 3")
    carl.click("#one")
    until(carl, "board.me.want === 1")
    until(ada, "[...board.people.values()].flat().some((person) => person.want === 1)")
    scribble(ada, 100, 100, 8)
    until(carl, "board.strokes.length >= 1")
    assert carl.evaluate("board.me.pens") == 0
    assert not carl.evaluate(
        "fetch('/act', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: "
        "JSON.stringify({key: board.key, do: 'draw', fence: 1, points: [[1, 1]]})})"
        ".then((answer) => answer.ok)"
    )
    ada.click("#put")
    until(carl, "board.me.pens === 1")
    ada.click("#one")
    until(ada, "board.me.pens === 1")
    assert ada.evaluate("board.held") <= 3
    scribble(ada, 150, 330, -6)
    scribble(carl, 480, 200, 9)
    until(ada, "board.strokes.length >= 3")
    picture(ada, "whiteboard")
    fences = [page.evaluate("board.me.fence") for page in people]
    assert fences[0] > fences[1]
    ada.click("#put")
    carl.click("#put")
    until(ada, "board.held === 0")


def test_it_fits_on_a_desk_a_laptop_and_a_phone(browser, boards):
    for page, _, where in views(browser, f"{boards['ann']}?name=Augusta"):
        until(page, "window.board?.me")
        until(page, "document.querySelectorAll('#people li').length > 0")
        fits(page, where)
        page.click("#one")
        until(page, "board.me.pens === 1 && !document.getElementById('put').hidden")
        fits(page, f"{where}, with a pen")
        page.click("#put")
        until(page, "board.me.pens === 0")


def test_a_vanished_pen_comes_back(people, browser):
    ada, carl = people
    carl.click("#all")
    until(carl, "board.me.pens === 3")
    ada.click("#one")
    until(ada, "board.me.want === 1")
    carl.close()
    until(ada, "board.me.pens === 1")
    ada.click("#put")


def test_pens_on_a_board_that_is_killed_come_back(people):
    ada, carl = people
    carl.click("#all")
    until(carl, "board.me.pens === 3")
    ada.click("#all")
    until(ada, "board.me.want === 3")
    os.kill(processes["cleo"], signal.SIGKILL)
    until(ada, "board.me.pens === 3 && board.held === 3")
    ada.click("#put")
