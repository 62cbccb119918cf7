"""An agent's own page: locked without the bearer token, alive with it."""

import asyncio
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from browser import until
from pictures import picture, wanted

pytest.importorskip("starlette", reason="needs the extra 'web'")

import meshlock
from meshlock.live.http import serving
from meshlock.web.live import here, routes, view

TOKEN = "a token that nobody guesses"


@pytest.fixture
def agent():
    """Two nodes; the one with the page asks for permits again and again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    ready, over = threading.Event(), threading.Event()

    async def live():
        async with (
            meshlock.Node("left") as left,
            meshlock.Node("right", peers=[left.address]) as right,
        ):
            docks = left.pool("docks", permits=3)
            far = right.pool("docks")
            kept = await far.acquire(1, priority=7)
            async with serving(right, address, TOKEN, routes):
                ready.set()
                while not over.is_set():
                    async with docks.acquire(1), far.acquire(1):
                        await asyncio.sleep(0.01)
                kept.release()

    thread = threading.Thread(target=lambda: asyncio.run(live()), daemon=True)
    thread.start()
    assert ready.wait(20)
    yield f"http://{address}/"
    over.set()
    thread.join(20)


def test_nothing_without_the_token_everything_with_it(browser, agent):
    page = browser.new_page(viewport={"width": 1100, "height": 760})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(agent)
    until(page, "!document.getElementById('enter').hidden")
    assert "docks" not in page.content()
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('subtitle').textContent.includes('not the one')")
    page.fill("#token", TOKEN)
    page.keyboard.press("Enter")
    until(page, "!document.getElementById('shown').hidden")
    assert page.inner_text("h1") == "right · docks"
    until(page, "Number(document.getElementById('rate').textContent) > 1")
    assert "of 3 held here" in page.inner_text("#where")
    assert page.locator("#star text").all_text_contents() == ["left", "right"]
    row = page.locator("#grants tbody tr").first.inner_text().split()
    assert row[:2] == ["1", "7"]
    assert int(row[2]) >= 1  # its fence
    page.wait_for_timeout(4000 if wanted() else 0)
    picture(page, "live")
    assert not errors
    page.close()


def test_the_way_to_the_token_is_known():
    async def pair():
        async with meshlock.Node("a") as a, meshlock.Node("b", peers=[a.address]) as b:
            a.pool("seats", permits=1)
            far = b.pool("seats")
            async with far.acquire():
                pass
            await asyncio.sleep(0.2)
            return view(a)["pools"]["seats"], view(b)["pools"]["seats"]

    with ThreadPoolExecutor(1) as elsewhere:  # the browser's driver has a loop in this thread
        first, second = elsewhere.submit(asyncio.run, pair()).result(20)
    holder, other = (first, second) if first["token_here"] else (second, first)
    assert holder["towards"] is None
    assert other["towards"] == ("a" if holder is first else "b")


def test_a_name_that_a_stranger_gave_this_machine_is_not_its_own():
    assert here("127.0.0.1") and here("localhost") and here("127.1.2.3")
    assert not here("127.evil.example") and not here("evil.example") and not here("10.0.0.1")
