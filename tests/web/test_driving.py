"""Try it yourself, in a real browser: ask, deliver, cut, drag."""

import json

import pytest
from browser import holds, served, shows, until
from pictures import picture

from meshlock.web.server import Desk, application


@pytest.fixture
def page(browser):
    with served(application(Desk())) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(address)
        until(page, "window.meshlock?.run?.about.driven && meshlock.shown === 0")
        yield page
        page.close()


def spot(page, x, y):
    box = page.locator("#network").bounding_box()
    return box["x"] + x, box["y"] + y


def node(page, number):
    at = page.evaluate(f"meshlock.stage.places[{number}]")
    return spot(page, at["x"], at["y"])


def settled(page):
    until(
        page,
        "!meshlock.driving.busy && meshlock.target === null"
        " && meshlock.shown === meshlock.run.steps",
    )


def test_a_node_asks_and_enters_a_link_is_cut_a_node_is_dragged_away(page):
    page.mouse.click(*node(page, 3))
    page.fill("#ask-want", "2")
    page.fill("#ask-priority", "4")
    page.click("#ask-go")
    until(page, "meshlock.stage.snapshot.clients.size === 1 && meshlock.shown === 1")
    settled(page)
    page.click("#deliver-next")
    until(page, "meshlock.run.steps === 2")
    settled(page)
    page.click("#deliver-all")
    until(page, "meshlock.stage.snapshot.used() === 2")
    settled(page)
    shows(page, "#permits .count", "2 of 3 permits in use")

    link = page.evaluate("[...meshlock.stage.snapshot.links][0]")
    one, other = (node(page, int(end)) for end in link.split("-"))
    links = page.evaluate("meshlock.stage.snapshot.links.size")
    page.mouse.click((one[0] + 3 * other[0]) / 4, (one[1] + 3 * other[1]) / 4)
    until(page, f"meshlock.stage.snapshot.links.size === {links - 1}")
    assert not page.evaluate(f"meshlock.stage.snapshot.links.has('{link}')")
    settled(page)
    shows(page, "#tip", "the link forms again")  # though the pointer has not moved

    page.click("#undo")
    until(page, f"meshlock.stage.snapshot.links.size === {links}")
    settled(page)

    for action in ({"node": 6, "want": 2, "priority": 7}, {"node": 1, "want": 1, "priority": 3}):
        assert page.evaluate(f"meshlock.driving.do({json.dumps({'do': 'ask', **action})})")
        settled(page)
    picture(page, "by-hand")

    start, far = node(page, 5), spot(page, 820, 460)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + far[0]) / 2, (start[1] + far[1]) / 2)
    page.mouse.move(*far)
    page.mouse.up()
    until(page, f"meshlock.stage.snapshot.links.size !== {links}")
    settled(page)
    saved = page.request.get(page.url.split("#")[0] + "api/runs/driven-1/trace.jsonl").text()
    lines = [json.loads(line) for line in saved.splitlines()]
    assert lines[0]["meshlock"] == "trace"
    assert {"request", "enter", "move", "link-down"} <= {line.get("event") for line in lines}


def test_a_wrong_step_is_explained(page):
    page.select_option("#try-algorithm", "jiang-printed")
    page.select_option("#try-topology", "line")
    page.fill("#try-nodes", "3")
    page.fill("#try-permits", "1")
    page.click("#try-start")
    until(page, "meshlock.run.setup.algorithm === 'jiang-printed' && meshlock.shown === 0")
    actions = [
        {"do": "ask", "node": 2, "priority": 5},
        {"do": "next"},
        {"do": "ask", "node": 1, "priority": 6},
        {"do": "all"},
        {"do": "ask", "node": 0, "priority": 1},
        {"do": "all"},
        {"do": "leave", "node": 1},
        {"do": "all"},
    ]
    for action in actions:
        assert page.evaluate(f"meshlock.driving.do({json.dumps(action)})")
    settled(page)
    shows(page, "h1", "order is violated")
    shows(page, "#verdict", "the most urgent waiting request must enter next")


def pressed(page, selector):
    """Put the pointer on it and press, without letting go."""
    page.hover(selector)
    page.mouse.down()


def test_a_click_counts_though_the_pane_is_drawn_anew_meanwhile(page):
    pressed(page, "#random-request")
    page.evaluate("meshlock.refresh()")
    until(page, "meshlock.shown === 0")
    page.mouse.up()
    until(page, "meshlock.run.steps > 0")
    settled(page)
    assert page.evaluate("meshlock.driving.do({ do: 'ask', node: 6 })")
    settled(page)
    pressed(page, "[data-key=messages] button:enabled")
    before = page.evaluate("meshlock.run.steps")
    page.evaluate("meshlock.driving.do({ do: 'ask', node: 7 })")  # one more message
    settled(page)
    assert page.evaluate("meshlock.run.steps") == before + 1
    page.mouse.up()
    until(page, f"meshlock.run.steps === {before + 2}")


def test_what_is_chosen_for_another_run_stays_while_the_pane_is_drawn_anew(page):
    page.focus("#try-nodes")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("meshlock.driving.do({ do: 'random request' })")
    settled(page)
    assert page.input_value("#try-nodes") == "9"
    assert page.evaluate("document.activeElement.id") == "try-nodes"


def test_actions_are_done_one_after_the_other_and_none_is_lost(page):
    asks = ", ".join(f"meshlock.driving.do({{ do: 'ask', node: {node} }})" for node in (3, 4, 5))
    assert page.evaluate(f"Promise.all([{asks}])") == [True, True, True]
    until(page, "meshlock.shown === meshlock.run.steps")
    assert page.evaluate("meshlock.stage.snapshot.clients.size") == 3


def test_an_action_does_not_reach_a_run_that_was_opened_meanwhile(page):
    action = "{ do: 'ask', node: 3 }"
    done = (
        f"[meshlock.driving.do({action}), meshlock.driving.start(), meshlock.driving.do({action})]"
    )
    page.evaluate(f"Promise.all({done})")
    until(page, "meshlock.run.name === 'driven-2' && meshlock.shown === 0")
    assert page.evaluate("meshlock.run.steps") == 0


def test_what_a_node_does_is_chosen_or_drawn(page):
    page.select_option("#try-algorithm", "general-scheme")
    page.select_option("#try-topology", "line")
    page.fill("#try-nodes", "3")
    page.click("#try-start")
    until(page, "meshlock.run.setup.algorithm === 'general-scheme' && meshlock.shown === 0")
    for number in (0, 1):
        page.mouse.click(*node(page, number))
        holds(page, lambda: page.input_value("#ask-behaviour") == "drawn")
        page.select_option("#ask-behaviour", "transit")
        until(page, f"meshlock.run.about.driven.behaviours[{number}] === 1")
    page.mouse.click(*node(page, 0))
    holds(page, lambda: page.input_value("#ask-behaviour") == "transit")
    assert page.evaluate("meshlock.driving.do({ do: 'ask', node: 2 })")
    settled(page)
    assert page.evaluate("meshlock.driving.do({ do: 'next' })")
    settled(page)
    shows(page, "#says", "Step 2: 1 receives REQUEST from 2, transit")


def test_what_an_algorithm_leaves_no_choice_of_cannot_be_chosen(page):
    page.select_option("#try-algorithm", "raymond")
    assert page.input_value("#try-permits") == "1" and page.locator("#try-permits").is_disabled()
    shows(page, "#try-note", "It is for one permit")
    page.click("#try-start")
    until(page, "meshlock.run.setup.algorithm === 'raymond' && meshlock.shown === 0")
    page.select_option("#try-algorithm", "jiang")
    assert page.input_value("#try-permits") == "3" and page.locator("#try-permits").is_enabled()


def test_without_a_pointer(page):
    page.focus("#network")
    page.keyboard.press("]")
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    until(page, "meshlock.stage.snapshot.clients.size === 1")  # of node 0, which has the token
    settled(page)
    assert page.evaluate("meshlock.stage.snapshot.used()") == 1
    holds(page, lambda: "#made=" in page.url and page.url.endswith("&step=1"))
    page.reload()  # the run is made again
    until(page, "window.meshlock?.run?.about.driven && meshlock.shown === 1")
    assert page.evaluate("meshlock.stage.snapshot.used()") == 1
    page.keyboard.press("]")
    until(page, "meshlock.stage.selected === 0")
    page.click("#tab-node")
    until(page, "document.getElementById('pane-node').innerText.includes('Cut or join')")
    links = page.evaluate("meshlock.stage.snapshot.links.size")
    page.get_by_role("button", name="Cut or join").press("Enter")
    until(page, f"meshlock.stage.snapshot.links.size !== {links}")


def test_other_sites_cannot_drive(page):
    address = page.url.split("#")[0]
    form = {"Content-Type": "text/plain"}
    assert page.request.post(address + "api/runs", data="{}", headers=form).status == 415
    refused = page.request.post(address + "api/runs", data={"nodes": 5000})
    assert refused.status == 400
    assert refused.json() == {"why": "nodes must be a whole number from 2 to 40."}
