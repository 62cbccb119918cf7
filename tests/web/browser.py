"""A real browser for the tests: Debian's chromium, driven by playwright; both are optional."""

import shutil
import socket
import threading
import time
from contextlib import contextmanager

import pytest

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
def served(app):
    """The application on a free port of this machine; gives its address."""
    uvicorn = pytest.importorskip("uvicorn", reason="needs the extra 'web'")
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(LIMIT)


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
        yield browser
        browser.close()


def until(page, expression):
    """Wait for an expression to be true; the page's own policy forbids playwright's way."""
    end = time.monotonic() + LIMIT
    while not page.evaluate(f"Boolean({expression})"):
        assert time.monotonic() < end, f"{expression} has not come true"
        page.wait_for_timeout(20)
