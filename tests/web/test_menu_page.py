"""The menu in a real browser: scenarios, counterexamples, studies, and files from the disk."""

import gzip
import json

import pytest
from browser import served, shows, until
from pictures import picture
from test_player import desk_with, written

from meshlock.web import opening
from meshlock.web.server import Desk, application


@pytest.fixture
def page(browser):
    with served(application(Desk())) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(address)
        until(page, "window.meshlock?.run?.about.driven && meshlock.shown === 0")
        yield page
        assert not page.errors
        page.close()


def entries(page, kind):
    """The part of the menu with these."""
    page.keyboard.press("o")
    page.click(f"[data-kind={kind}]")
    until(page, "document.querySelectorAll('#menu-list button').length > 5")


def opened(page, name):
    until(page, f"window.meshlock?.run?.name === '{name}' && meshlock.shown === 0")
    assert page.evaluate("!document.getElementById('menu').open")


def test_scenarios_mutants_and_studies_are_opened_and_played(page):
    entries(page, "scenario")
    picture(page, "menu")
    page.select_option("#menu-algorithm", "jiang-printed")
    page.click("[data-name=J1]")
    opened(page, "scenario:J1:jiang-printed")
    shows(page, "#subtitle", "jiang-printed")
    assert page.locator("#tab-drive").is_hidden()
    page.keyboard.press("ArrowRight")
    until(page, "meshlock.shown === 1")
    entries(page, "mutant")
    page.fill("#menu-search", "keeps-and-sends")
    page.click("[data-name='raymond/keeps-and-sends']")
    opened(page, "mutant:raymond/keeps-and-sends")
    shows(page, "h1", "is violated")
    shows(page, "#verdict", "one-token")
    page.keyboard.press("o")
    page.fill("#menu-search", "mobil")
    page.click("[data-kind=study]")
    page.click("[data-name=mobility]")
    opened(page, "study:mobility")
    assert page.evaluate("meshlock.run.about.bounds !== null")  # they move
    page.click("#try-new")
    until(page, "meshlock.run.about.driven")


def test_a_scenario_tells_its_story_and_who_has_the_fault(page):
    entries(page, "scenario")
    page.click("[data-name=J2]")
    opened(page, "scenario:J2:")
    shows(page, "#pane-step", "2 waits with the token for 1 to leave, and has 3 in its queue.")
    page.click("#faulty")
    opened(page, "scenario:J2:jiang-printed")
    shows(page, "h1", "is violated")


def test_a_link_to_an_entry_works_after_the_server_was_restarted(page):
    address = page.url.split("#")[0]
    page.goto("about:blank")
    page.goto(f"{address}#run=scenario%3AJ1%3Ajiang-printed&step=3")
    until(page, "window.meshlock?.run?.setup.algorithm === 'jiang-printed' && meshlock.shown === 3")
    until(page, "location.hash === '#run=scenario%3AJ1%3Ajiang-printed&step=3'")
    page.goto(f"{address}#run=scenario%3Anothing%3A")
    until(page, "meshlock.run.about.driven && meshlock.shown === 0")


def test_what_takes_the_checker_too_long_is_said(page, monkeypatch):
    monkeypatch.setattr(opening, "MOST_STATES", 3000)
    entries(page, "mutant")
    page.click("[data-name='jiang/without-R10']")
    shows(page, "#menu-says", "It takes too long here")
    shows(page, "#menu-says", "meshlock check --mutant jiang/without-R10")
    wanted = {"kind": "mutant", "name": "jiang/without-R10"}
    answer = page.request.post(page.url.split("#")[0] + "api/menu", data=wanted)
    lines = [json.loads(line) for line in answer.text().splitlines()]
    assert all("states" in line["progress"] for line in lines[:-1]) and len(lines) > 3
    assert "too long" in lines[-1]["why"]


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "mine.jsonl"
    return written(path, "simulate --algorithm raymond --nodes 5 --requests 12 --seed 3 --json")


def choose(page, path):
    page.keyboard.press("o")
    page.set_input_files("#file", path)


def test_a_trace_is_opened_from_the_disk(page, trace, tmp_path):
    choose(page, trace)
    opened(page, "file-1")
    shows(page, "h1", "raymond, a simulated run")
    packed = tmp_path / "mine.jsonl.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    choose(page, packed)
    opened(page, "file-2")
    saved = page.request.get(page.url.split("#")[0] + "api/runs/file-2/trace.jsonl").text()
    kept = [json.loads(line) for line in trace.read_text().splitlines()]
    lines = [json.loads(line) for line in saved.splitlines()]
    assert [line.get("event") for line in lines] == [line.get("event") for line in kept]


def test_what_is_no_trace_is_refused_with_a_sentence(page, trace, tmp_path, monkeypatch):
    name = page.evaluate("meshlock.run.name")
    for text, why in (
        ("hello\n", "Line 1 of wrong.jsonl is not JSON"),
        ('{"some": "JSON"}\n', "wrong.jsonl is not a meshlock trace"),
        ("", "wrong.jsonl is empty"),
        (trace.read_text().replace('"node":1,', '"node":77,', 1), "names a node that does not"),
    ):
        path = tmp_path / "wrong.jsonl"
        path.write_text(text)
        choose(page, path)
        shows(page, "#menu-says", why)
        page.keyboard.press("Escape")
    monkeypatch.setattr(opening, "MOST_BYTES", 1000)
    choose(page, trace)
    shows(page, "#menu-says", "open it with meshlock view")
    assert page.evaluate("meshlock.run.name") == name


def test_a_trace_named_on_the_command_line_stays(browser, trace):
    with served(desk_with(trace)) as address:
        page = browser.new_page(reduced_motion="reduce")
        page.goto(address)
        opened(page, "trace")
        entries(page, "scenario")
        page.click("[data-name=J2]")
        opened(page, "scenario:J2:")
        page.goto(f"{address}/#step=2")
        until(page, "window.meshlock?.run?.name === 'trace' && meshlock.shown === 2")
        page.close()


def test_other_sites_cannot_send_files(page):
    address = page.url.split("#")[0]
    assert (
        page.request.post(
            address + "api/files", data="{}", headers={"Content-Type": "text/plain"}
        ).status
        == 415
    )
    name = page.request.post(address + "api/files", data={}).json()["file"]
    plain = {"Content-Type": "text/plain"}
    assert page.request.post(f"{address}api/files/{name}", data="x", headers=plain).status == 415
    lost = page.request.post(f"{address}api/files/file-99/end", data={"name": "x"})
    assert lost.status == 400 and "choose it again" in lost.json()["why"]
