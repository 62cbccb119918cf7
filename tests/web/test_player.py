"""The page in a real browser: load, play, step, jump, look; nothing from elsewhere."""

import json

import msgspec
import pytest
from browser import holds, served, shows, until
from click.testing import CliRunner
from pictures import picture

from meshlock.cli.main import app
from meshlock.web.index import open_trace
from meshlock.web.server import Desk, application


def desk_with(path):
    desk = Desk()
    desk.shelf.runs["trace"] = open_trace(path)
    desk.shelf.opened = "trace"
    return application(desk)


def written(path, words):
    result = CliRunner().invoke(app, [*words.split(), "--trace", str(path)])
    assert result.exit_code in (0, 1), result.output
    return path


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("player") / "run.jsonl"
    words = "simulate --algorithm jiang --nodes 9 --topology grid:3x3 --permits 3 --want 1-2 "
    words += "--priority 0-5 --requests 60 --workload poisson:0.1 --seed 3 --json --trace-states"
    return written(path, words)


@pytest.fixture(scope="module")
def address(trace):
    with served(desk_with(trace)) as address:
        yield address


@pytest.fixture
def page(browser, address):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.elsewhere = []
    page.errors = []
    page.on("request", lambda asked: page.elsewhere.append(asked.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
    yield page
    assert not page.errors
    assert all(url.startswith((address, "http://127.0.0.1")) for url in page.elsewhere)
    context.close()


def at(page, step):
    until(page, f"window.meshlock?.step === {step} && meshlock.shown === {step}")


def test_load_step_play_and_jump(page, address, trace):
    page.goto(address)
    at(page, 0)
    shows(page, "h1", "jiang, a simulated run")
    page.keyboard.press("ArrowRight")
    at(page, 1)
    shows(page, "#pane-step .cause", "asks for")
    shows(page, "#pane-step", "request · jiang.py")
    page.click("#back")
    at(page, 0)
    page.select_option("#speed", "64")
    page.keyboard.press("Space")
    until(page, "meshlock.step > 30")
    page.keyboard.press("Space")
    until(page, "!meshlock.playing")
    page.keyboard.press("Home")
    at(page, 0)
    page.keyboard.press("n")  # the first to enter
    until(page, "meshlock.shown > 0")
    shows(page, "#pane-step", "enters with")
    page.keyboard.press("End")
    until(page, "meshlock.shown === meshlock.run.steps")
    shows(page, "#permits .count", "0 of 3 permits in use")
    page.click("#first")
    at(page, 0)
    page.click("#last")
    until(page, "meshlock.shown === meshlock.run.steps")
    page.select_option("#speed", "0.5")
    page.keyboard.press("Space")  # again, from the start
    until(page, "meshlock.playing && meshlock.step < 100")


def test_a_link_opens_at_its_step_and_the_page_knows_what_the_server_knows(page, address, trace):
    page.goto(f"{address}/#step=300")
    at(page, 300)
    said = page.evaluate(
        """() => { const now = meshlock.run.at(300); return JSON.stringify({
            tokens: [...now.tokens], free: [...now.free], gone: [...now.gone],
            clients: [...now.clients].map(([n, c]) =>
                [n, c.node, c.want, c.priority, c.asked, c.entered]),
            flying: [...now.flying.values()], variables: now.variables }); }"""
    )
    told = json.loads(said, parse_int=float)
    known = json.loads(
        msgspec.json.encode(open_trace(trace).snapshot(300).shown()), parse_int=float
    )
    for key in told:
        assert told[key] == known[key], key
    assert told["variables"]


def test_by_time_the_clock_goes_evenly_and_by_keys_alone_one_gets_everywhere(page, address):
    page.goto(address)
    at(page, 0)
    page.select_option("#pace", "time")
    page.select_option("#speed", "128")
    page.focus("#network")
    page.keyboard.press("Space")
    until(page, "meshlock.step > 60")
    page.keyboard.press("Space")
    step = page.evaluate("meshlock.step")
    at(page, step)
    page.keyboard.press("]")
    page.keyboard.press("]")
    until(page, "meshlock.stage.selected === 1 && document.getElementById('pane-node').innerText")
    holds(page, lambda: "linked to" in page.inner_text("#pane-node").lower())
    page.keyboard.press("?")
    holds(page, page.locator("#help").is_visible)
    page.keyboard.press("Escape")
    holds(page, page.locator("#help").is_hidden)


def test_a_trace_saved_from_the_page_is_the_trace(page, address, trace):
    saved = page.request.get(f"{address}/api/runs/trace/trace.jsonl").text()
    kept = trace.read_text().splitlines()
    assert saved.splitlines()[1:] == kept[1:]
    assert json.loads(saved.splitlines()[0]) == json.loads(kept[0])


def test_node_waiting_and_diagram(page, address):
    page.goto(f"{address}/#step=120")
    at(page, 120)
    picture(page, "player")
    page.click("#tab-waiting")
    queue = page.evaluate("meshlock.stage.snapshot.queue().map((client) => client.priority)")
    assert queue == sorted(queue, reverse=True)
    rows = "document.querySelectorAll('#pane-waiting tbody tr').length"
    until(page, f"{rows} === meshlock.stage.snapshot.clients.size")
    spot = page.evaluate("meshlock.stage.places[4]")
    box = page.locator("#network").bounding_box()
    page.mouse.click(box["x"] + spot["x"], box["y"] + spot["y"])
    until(page, "meshlock.stage.selected === 4 && meshlock.shown === 120")
    shows(page, "#pane-node", "height")
    page.keyboard.press("d")
    until(page, "document.querySelector('#diagram-image svg')?.clientWidth > 100")
    picture(page, "sequence")
    drawn = page.request.get(address + page.get_attribute("#diagram-svg", "href")).text()
    assert drawn.startswith("<svg ")
    assert "TOKEN" in drawn
    page.locator("#diagram-image text", has_text="110").first.click()
    at(page, 110)


def test_the_keyboard_is_alive_after_a_jump_and_next_finds_messages(page, address):
    page.goto(address)
    at(page, 0)
    page.keyboard.press("g")
    page.keyboard.type("30")
    page.keyboard.press("Enter")
    at(page, 30)
    until(page, "document.activeElement.id === 'network'")
    page.keyboard.press("ArrowLeft")
    at(page, 29)
    page.select_option("#kind", "deliver TOKEN")
    page.focus("#network")
    page.keyboard.press("n")
    until(page, "meshlock.shown > 29 && meshlock.run.lines(meshlock.shown)[0].message === 'TOKEN'")


def test_who_acts_has_a_row_and_hidden_nodes_are_counted(browser, tmp_path):
    words = "simulate --algorithm raymond --nodes 40 --topology tree --requests 60 --json"
    with served(desk_with(written(tmp_path / "many.jsonl", words))) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        for step in (40, 90):
            page.goto(f"{address}/#step={step}")
            at(page, step)
            until(page, "meshlock.strip.rows?.length")
            acting = page.evaluate(f"meshlock.run.lines({step})[0].node")
            holds(page, lambda acting=acting: acting in page.evaluate("meshlock.strip.rows"))
        page.close()


def test_dark_and_on_a_phone_nothing_sticks_out(browser, address):
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme="dark", reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(f"{address}/#step=120")
    at(page, 120)
    assert page.evaluate("document.documentElement.classList.contains('dark')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#forward")
    at(page, 121)  # at once: nothing moves where motion is not wanted
    picture(page, "phone")
    context.close()


def test_a_counterexample_opens_at_its_start_under_the_name_of_what_is_violated(browser, tmp_path):
    words = "check --algorithm jiang-printed --nodes 3 --topology line --permits 1 "
    words += "--request 2:1@5 --request 1:1@6 --request 0:1@1"
    path = written(tmp_path / "bad.jsonl", words)
    with served(desk_with(path)) as address:
        page = browser.new_page()
        page.goto(address)
        until(page, "window.meshlock?.shown === 0")
        shows(page, "h1", "order is violated")
        page.select_option("#kind", "violation")
        page.focus("#network")
        page.keyboard.press("n")
        until(page, "meshlock.shown === meshlock.run.about.violated[0].step")
        page.click("#verdict button")
        until(page, "meshlock.shown > 10")
        shows(page, "#pane-step", "enters with 1 permit")
        shows(page, "#pane-step .changes", "CS")  # not a number
        picture(page, "counterexample")
        page.close()


def test_a_trace_cannot_bring_markup_or_scripts(browser, tmp_path):
    evil = "<img src=x onerror='window.broken=1'><script>window.broken=1</script>"
    setup = {"meshlock": "trace", "format": 1, "nodes": 2, "permits": 1, "links": [[0, 1]]}
    setup |= {"algorithm": evil, "holder": 0, "names": [evil, evil], "pool": evil, "source": "live"}
    lines = [
        setup,
        {"t": 0, "node": 0, "event": "request", "client": 1, "want": 1, "priority": evil},
        {
            "t": 0,
            "node": 0,
            "event": "send",
            "id": 1,
            "to": 1,
            "message": evil,
            "args": {evil: evil},
        },
        {"t": 1, "node": 1, "event": evil},
        {"t": 1, "event": "end", "unserved": 1, "violated": {evil: evil}},
    ]
    lines[1]["priority"] = 1
    path = tmp_path / "evil.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with served(desk_with(path)) as address:
        page = browser.new_page()
        policy = page.goto(address).headers["content-security-policy"]
        assert policy.startswith("default-src 'self'")
        for step in range(4):
            page.goto(f"{address}/#step={step}")
            until(page, f"window.meshlock?.shown === {step}")
            for tab in ("waiting", "node", "events", "step"):
                page.click(f"#tab-{tab}")
        shows(page, "#verdict", evil)
        assert page.evaluate("window.broken") is None
        assert page.locator("main img, header img, #verdict img").count() == 0
        page.close()


def test_only_this_machine_is_answered(address):
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    asked = Request(address + "/api/runs", headers={"Host": "evil.example"})
    with pytest.raises(HTTPError, match="403"):
        urlopen(asked)
    for path in ("/page/..%2findex.py", "/page/nothing.js", "/api/runs/other"):
        with pytest.raises(HTTPError, match="404"):
            urlopen(address + path)
