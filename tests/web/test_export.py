"""A run as one HTML file: it plays from the disk, without a server and without a network."""

import json

import pytest
from browser import served, shows, until
from click.testing import CliRunner
from test_player import desk_with, written

from meshlock.cli.main import app
from meshlock.errors import Refused
from meshlock.web import export
from meshlock.web.index import open_trace

NOW = """() => { const now = meshlock.run.at(meshlock.step); return JSON.stringify({
    step: meshlock.step, tokens: [...now.tokens], free: [...now.free], gone: [...now.gone],
    clients: [...now.clients], flying: [...now.flying.values()], variables: now.variables,
    links: [...now.links].sort(), pane: [...document.querySelectorAll('#pane-step > :not(.row)')]
        .map((part) => part.innerText) }); }"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "run.jsonl"
    words = "simulate --algorithm reverse-link --nodes 9 --topology grid:3x3 "  # never compiled
    words += "--requests 60 --workload poisson:0.1 --seed 3 --json"
    return written(path, words)


@pytest.fixture(scope="module")
def file(trace):
    path = trace.with_name("run.html")
    words = ["convert", str(trace), "--to", "html", "-o", str(path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return path


def alone(browser, file):
    """The file in a browser that can reach nobody."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, offline=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.asked, page.errors = [], []
    page.on("request", lambda asked: page.asked.append(asked.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
    page.goto(file.as_uri())
    until(page, "window.meshlock?.shown === 0")
    return page


def asks_nobody(page):
    assert not page.errors
    assert all(url.startswith(("file:", "data:")) for url in page.asked)
    page.context.close()


def at(page, step):
    """Everything that is so after this step, and what is said of it."""
    page.evaluate(f"meshlock.go({step})")
    until(page, f"meshlock.shown === {step} && meshlock.run.handlers")
    until(page, "document.getElementById('pane-step').textContent.includes('the lines that ran')")
    return json.loads(page.evaluate(NOW))


def test_the_file_plays_by_itself_and_shows_what_the_server_shows(browser, trace, file):
    page = alone(browser, file)
    shows(page, "h1", "reverse-link, a simulated run")
    with served(desk_with(trace)) as address:
        other = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        other.goto(address)
        until(other, "window.meshlock?.shown === 0")
        last = other.evaluate("meshlock.run.steps")
        for step in (1, 2, 120, 256, 257, 300, last - 1):
            assert at(page, step) == at(other, step), step
        other.close()
    page.keyboard.press("Home")
    until(page, "meshlock.shown === 0")
    page.keyboard.press("ArrowRight")
    until(page, "meshlock.shown === 1")
    page.keyboard.press("n")  # the first to enter
    until(page, "meshlock.shown > 1")
    shows(page, "#pane-step", "enters with")
    page.keyboard.press("Space")
    until(page, "meshlock.step > 20")
    assert page.locator("#menu-open").is_hidden() and page.locator("#diagram-open").is_hidden()
    asks_nobody(page)


def test_the_page_saves_what_the_command_writes(browser, trace, file):
    with served(desk_with(trace)) as address:
        page = browser.new_page()
        page.goto(address)
        until(page, "window.meshlock?.shown === 0")
        page.keyboard.press("o")
        with page.expect_download() as saved:
            page.click("#export")
        assert saved.value.suggested_filename == "run.html"
        assert saved.value.path().read_text() == file.read_text()
        page.close()


def test_a_counterexample_keeps_its_verdict(browser, tmp_path):
    words = "check --algorithm jiang-printed --nodes 3 --topology line --permits 1 "
    words += "--request 2:1@5 --request 1:1@6 --request 0:1@1"
    path = tmp_path / "bad.html"
    path.write_text(
        export.exported(index := open_trace(written(tmp_path / "bad.jsonl", words)), index.about())
    )
    page = alone(browser, path)
    shows(page, "h1", "order is violated")
    page.click("#verdict button")
    until(page, "meshlock.shown > 10")
    asks_nobody(page)


def test_a_trace_cannot_bring_markup_or_scripts_into_the_file(browser, tmp_path):
    evil = "</script><img src=x onerror='window.broken=1'><script>window.broken=1</script><!--"
    setup = {"meshlock": "trace", "format": 1, "nodes": 2, "permits": 1, "links": [[0, 1]]}
    setup |= {"algorithm": evil, "holder": 0, "names": [evil, evil], "pool": evil, "source": "live"}
    lines = [setup, {"t": 0, "node": 0, "event": "request", "client": 1, "want": 1, "priority": 1}]
    lines += [{"t": 1, "node": 1, "event": evil}]
    path = tmp_path / "evil.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    index = open_trace(path)
    path = tmp_path / "evil.html"
    path.write_text(export.exported(index, index.about()))
    page = alone(browser, path)
    page.evaluate("meshlock.go(2)")
    until(page, "meshlock.shown === 2")
    assert page.evaluate("window.broken") is None
    assert page.locator("main img, header img").count() == 0
    asks_nobody(page)


def test_a_run_that_is_too_long_for_a_file_is_refused(trace, monkeypatch):
    monkeypatch.setattr(export, "MOST_STEPS", 100)
    index = open_trace(trace)
    with pytest.raises(Refused, match="a file of its own can hold 100"):
        export.exported(index, index.about())
