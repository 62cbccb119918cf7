"""A real browser for the tests: Debian's chromium, driven by playwright; both are optional."""

import asyncio
import shutil
import threading
import time
from contextlib import contextmanager

import pytest

from meshlock.live.interfaces.server import serve_port
from waiting import LIMIT

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def served(site):
    """The site on a free port of this machine; gives its address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def done(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(LIMIT)

    server = done(serve_port(site, "127.0.0.1", 0))
    yield f"http://127.0.0.1:{server.port()}"
    done(server.close())
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LIMIT)


class Browser:
    """Chromium whose pages wait as long as tests do: in all that playwright waits for."""

    def __init__(self, launched):
        self.launched = launched

    def new_context(self, **options):
        context = self.launched.new_context(**options)
        context.set_default_timeout(LIMIT * 1000)
        return context

    def new_page(self, **options):
        page = self.launched.new_page(**options)
        page.context.set_default_timeout(LIMIT * 1000)
        return page


@contextmanager
def chromium():
    sync = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs chromium")
    with sync.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=path, args=FLAGS, headless=True, timeout=LIMIT * 1000
        )
        yield Browser(browser)
        browser.close()


def until(page, expression):
    """Wait for an expression to be true; the page's own policy forbids playwright's way."""
    end = time.monotonic() + LIMIT
    while not page.evaluate(f"Boolean({expression})"):
        assert time.monotonic() < end, f"{expression} has not come true"
        page.wait_for_timeout(20)


def shows(page, selector, text):
    """Wait for an element to say this, among other things: a page draws with its next frame."""
    holds(page, lambda: text in page.inner_text(selector))


def holds(page, check):
    """Wait for a check of the page to be true."""
    end = time.monotonic() + LIMIT
    while not check():
        assert time.monotonic() < end, "what was looked for has not come"
        page.wait_for_timeout(20)
