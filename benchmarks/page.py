"""The page: frames per second on a large network, and how long a long trace takes to open.

    python benchmarks/page.py

Writes a trace of a million events of a thousand nodes and two thousand links, opens it,
seeks in it, and plays it in headless chromium (needs playwright and chromium; without them
only opening and seeking are measured). Times are of the clock, beside them those of the CPU.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random

from meshlock.simulate.settings import run_settings, simulation
from meshlock.trace.writer import TraceWriter
from meshlock.web.index import WINDOW, Index, open_trace

EVENTS = 1_000_000
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Counted:
    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.lines = 0

    def write(self, line: bytes) -> None:
        if self.lines <= EVENTS:  # and the set-up
            self.file.write(line)
        self.lines += 1


def write(path: Path) -> None:
    sink = Counted(path)
    asked = {"nodes": 1000, "topology": "links:2000", "permits": 8, "want": "1-3"}
    run = simulation(
        run_settings({**asked, "priority": "0-9", "requests": 100_000}), TraceWriter(sink, False)
    )
    run.start()
    while sink.lines <= EVENTS and run.run(10_000):
        pass
    sink.file.close()


def opening(path: Path) -> Index:
    clock, cpu = time.perf_counter(), time.process_time()
    index = open_trace(path)
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    print(
        f"open: {index.events:,} events, {index.steps:,} steps in {clock:.2f} s (CPU {cpu:.2f} s)"
    )
    return index


def seeking(index: Index) -> None:
    stream = Random(1)
    times = []
    for _ in range(200):
        began = time.perf_counter()
        index.window(stream.randrange(index.steps // WINDOW + 1))
        times.append(time.perf_counter() - began)
    times.sort()
    print(f"seek: median {times[100] * 1e3:.1f} ms, worst of 200 {times[-1] * 1e3:.1f} ms")


def playing(index: Index) -> None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("play: not measured (needs playwright)")
        return
    if shutil.which("chromium") is None:
        print("play: not measured (needs chromium)")
        return
    from meshlock.live.interfaces.server import serve_listener
    from meshlock.web.server import Desk, application

    desk = Desk()
    desk.runs["trace"], desk.opened = index, "trace"
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    asyncio.run_coroutine_threadsafe(serve_listener(application(desk), listener), loop).result()
    with sync_playwright() as driver:
        chromium = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS, headless=True)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        page.wait_for_timeout(2000)
        took = page.evaluate(
            """async () => { const times = []; for (let i = 0; i < 30; i += 1) {
                const began = performance.now();
                await meshlock.go(Math.floor(meshlock.run.steps * ((i * 0.618) % 1)));
                times.push(performance.now() - began); }
                return times.sort((a, b) => a - b); }"""
        )
        print(f"seek in the page: median {took[15]:.0f} ms, worst of 30 {took[-1]:.0f} ms")
        page.evaluate("meshlock.go(200000)")
        page.wait_for_timeout(1000)
        page.select_option("#speed", "64")
        page.evaluate("meshlock.frames.length = 0; meshlock.play()")
        page.wait_for_timeout(8000)
        frames = page.evaluate("meshlock.frames")
        browser.close()
    loop.call_soon_threadsafe(loop.stop)
    rate = (len(frames) - 1) * 1000 / (frames[-1][0] - frames[0][0])
    draws = sorted(frame[1] for frame in frames)
    print(
        f"play: {rate:.1f} frames per second, network drawn in {draws[len(draws) // 2]:.1f} ms "
        f"(median), {draws[len(draws) * 95 // 100]:.1f} ms (95 %)"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "million.jsonl"
        if not path.exists():
            write(path)
        index = opening(path)
        seeking(index)
        playing(index)


if __name__ == "__main__":
    main()
