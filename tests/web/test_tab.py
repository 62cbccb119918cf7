"""The laboratory from plain files in a real browser: Python runs in the tab."""

import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import shows, until
from pictures import picture
from test_fits import fits

ROOT = Path(__file__).parents[2]
STARTED = "window.meshlock?.run?.about && meshlock.shown === 0"
CHANGE = """(pairs) => {
    const text = document.getElementById("edit-text");
    for (const [old, made] of pairs) text.value = text.value.replace(old, made);
    text.dispatchEvent(new Event("input"));
}"""
SENDS = "            self.send(Token(asker, NIL))  # (9)\n"
GIVES = "            self.token_here = False\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browser):
    """Built once, and served as any server would."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("lab") / "lab"
    build = [sys.executable, str(ROOT / "deploy" / "lab" / "build.py"), str(folder)]
    made = subprocess.run(build, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def page(lab, browser):
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.elsewhere, page.errors = [], []
    page.on("request", lambda asked: page.elsewhere.append(asked.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    yield page
    assert not page.errors
    assert all(url.startswith((lab, "blob:", "data:")) for url in page.elsewhere)
    context.close()


def code(page, address, algorithm):
    page.goto(f"{address}#algorithm={algorithm}")
    until(page, STARTED)
    page.click("#tab-code")
    until(page, f"meshlock.editor.algorithm === '{algorithm}'")


def test_raymond_is_broken_by_hand_and_a_link_shows_it_to_somebody_else(page, lab, browser):
    code(page, lab, "raymond")
    assert "def receive" in page.input_value("#edit-text")
    page.evaluate(CHANGE, [[SENDS + GIVES, SENDS]])
    page.click("#edit-check")
    shows(page, "#edit-says", "one-token is violated, in ")
    shows(page, "h1", "one-token is violated")
    until(page, "!meshlock.playing && meshlock.shown === meshlock.run.steps")
    until(page, "document.querySelectorAll('.editor .lit').length > 1")
    shows(page, ".editor .lit >> nth=0", "return node.token_here")
    picture(page, "lab")
    other = browser.new_page(viewport={"width": 1024, "height": 768}, reduced_motion="reduce")
    other.goto(page.url)
    until(other, "window.meshlock?.run && meshlock.shown === meshlock.run.steps")
    shows(other, "h1", "one-token is violated")
    assert other.input_value("#edit-text") == page.input_value("#edit-text")
    assert other.evaluate("meshlock.editor.setup") == page.evaluate("meshlock.editor.setup")
    fits(other, "a counterexample beside its code")
    other.close()


def test_what_holds_is_said_to_hold_and_a_wrong_line_is_shown(page, lab):
    code(page, lab, "raymond")
    page.click("#edit-check")
    shows(page, "#edit-says", "every state was seen, and all properties hold")
    page.evaluate(CHANGE, [["def receive(", "def receive(("]])
    page.click("#edit-check")
    shows(page, "#edit-says", "general_scheme.py, line ")
    shows(page, ".editor .bad", "def receive((")
    page.click("#edit-reset")
    until(page, "!meshlock.editor.changed().length")
    page.evaluate(CHANGE, [[SENDS, SENDS.replace("Token", "Tokem")]])
    page.click("#edit-check")
    shows(page, "#edit-says", "handlers is violated")
    shows(page, "#verdict", "Tokem")


def test_a_lock_of_ones_own_is_found_wrong_and_driven_by_hand(page, lab, browser):
    code(page, lab, "singhal")
    page.select_option("#edit-algorithm", "mine.py")
    until(page, "meshlock.editor.algorithm === 'mine.py'")
    page.click("#edit-check")
    shows(page, "#edit-says", "served is violated, in 10 steps and no fewer")
    page.click("#edit-drive")
    until(page, "meshlock.run.about.driven && meshlock.shown === 0")
    assert page.evaluate("meshlock.run.setup.algorithm") == "mine"
    for wanted in (1, 2):
        page.click("#random-request")
        until(page, f"meshlock.shown === {wanted}")
    until(page, "location.hash.includes('step=2')")
    other = browser.new_page()
    other.goto(page.url)
    until(other, "window.meshlock?.run?.about.driven && meshlock.shown === 2")
    assert other.evaluate("meshlock.run.setup.algorithm") == "mine"
    assert other.evaluate("meshlock.run.lines(2)") == page.evaluate("meshlock.run.lines(2)")
    other.close()


def test_an_endless_loop_leaves_the_page_alive(page, lab):
    code(page, lab, "raymond")
    page.evaluate(CHANGE, [[SENDS, "            while True: pass\n" + SENDS]])
    page.click("#edit-check")
    page.click("#stop-python")  # comes after a while, and the page can be clicked
    shows(page, "#edit-says", "Python was stopped and starts again")
    page.click("#edit-reset")
    until(page, "!meshlock.editor.changed().length")
    page.click("#edit-check")
    shows(page, "#edit-says", "all properties hold")


def test_the_menu_works_without_a_server(page, lab):
    page.goto(f"{lab}#run=scenario:J2:&step=2")
    until(page, "window.meshlock?.run?.name === 'scenario:J2:' && meshlock.shown === 2")
    until(page, "document.querySelectorAll('#pane-step .code li.lit').length > 0")
    page.keyboard.press("o")
    page.click("[data-kind=mutant]")
    page.click("[data-name='raymond/keeps-and-sends']")
    shows(page, "h1", "is violated")
    page.keyboard.press("o")
    page.click("[data-kind=study]")
    page.click("[data-name=load]")
    until(page, "meshlock.run.name === 'study:load'")
    page.keyboard.press("o")
    page.click("[data-kind=riddle]")
    page.click("[data-name='1']")
    until(page, "meshlock.run.about.riddle && meshlock.shown === 0")
    page.click("#solution")
    until(page, "document.querySelector('.story')")
    page.goto(f"{lab}compare.html")
    until(page, "window.meshlock?.rows && meshlock.shown === 0")


@pytest.mark.parametrize("size", [(1400, 900), (1024, 768), (390, 844)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_code_fits(browser, lab, size, scheme):
    wide, high = size
    viewport = {"width": wide, "height": high}
    page = browser.new_page(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    code(page, lab, "jiang")
    until(page, "!meshlock.dirty")
    fits(page, f"{wide} x {high}, {scheme}, code")
    page.close()
