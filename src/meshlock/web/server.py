"""What the page asks for: itself, and windows of a run. Only this machine may ask."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from meshlock.live.interfaces.http import Door
from meshlock.live.interfaces.server import HTTPError, Request, Response, Route, Site
from meshlock.web.answers import HEADERS, answer, file, static, told
from meshlock.web.driving import TOPOLOGIES, PageRun, choices
from meshlock.web.handlers import constants, handlers
from meshlock.web.index import WINDOW, Index
from meshlock.web.ran import Ran
from meshlock.web.sequence import Diagram

MOST_DRIVEN = 16
MOST_BYTES = 10_000


def number(request: Request, name: str, default: int) -> int:
    text = request.asked.get(name, str(default))
    if not text.removeprefix("-").isdigit() or len(text) > 12:
        raise HTTPError(400, f"{name} must be a whole number.")
    return int(text)


def asked(request: Request) -> dict[str, Any]:
    """The JSON object that the page sent; no other site can send one."""
    if request.headers.get("content-type") != "application/json":
        raise HTTPError(415, "Send JSON.")
    try:
        return msgspec.json.decode(request.body[:MOST_BYTES], type=dict[str, Any])
    except msgspec.DecodeError:
        raise HTTPError(400, "That is not a JSON object.") from None


class Desk:
    """The runs that can be looked at, by their names."""

    def __init__(self) -> None:
        self.runs: dict[str, Index] = {}
        self.driven: dict[str, PageRun] = {}  # from the page
        self.watched: Ran | None = None  # the run whose lines were asked for last
        self.made = 0
        self.opened = ""  # the run to show first, if any

    def find(self, request: Request) -> Index:
        name = request.parameters["run"]
        if name in self.driven:
            return self.driven[name].index
        if name not in self.runs:
            raise HTTPError(404, f"There is no run {name} any more: start another.")
        return self.runs[name]

    def page(self, _request: Request) -> Response:
        return static("index.html")

    def what(self, _request: Request) -> Response:
        offered = {"algorithms": choices(), "topologies": TOPOLOGIES}
        return told({"opened": self.opened, "driven": list(self.driven), **offered})

    def about(self, request: Request) -> Response:
        driven = self.driven.get(request.parameters["run"])
        return told(self.find(request).about() if driven is None else driven.about())

    def start(self, request: Request) -> Response:
        """A new run to be driven from the page; the oldest makes room."""
        run = PageRun(asked(request))
        self.made += 1
        name = f"driven-{self.made}"
        self.driven[name] = run
        while len(self.driven) > MOST_DRIVEN:
            del self.driven[next(iter(self.driven))]
        return told({"run": name})

    def deed(self, request: Request) -> Response:
        driven = self.driven.get(request.parameters["run"])
        if driven is None:
            raise HTTPError(404, "This run cannot be driven, or is gone: start another.")
        driven.do(asked(request))
        return told(driven.about())

    def source(self, request: Request) -> Response:
        setup = self.find(request).setup
        name = str(setup.get("algorithm"))
        shown = {"handlers": handlers(name, "recovery" in setup), "constants": constants(name)}
        return told(shown)

    def ran(self, request: Request) -> Response:
        index = self.find(request)
        if self.watched is None or self.watched.index is not index:
            self.watched = Ran(index)
        return told(self.watched.step(number(request, "step", 0)))

    def window(self, request: Request) -> Response:
        window = number(request, "number", 0)
        index = self.find(request)
        if not 0 <= window * WINDOW <= index.steps:
            raise HTTPError(404, "There is no such window.")
        return answer(index.window(window), "application/json")

    def overview(self, request: Request) -> Response:
        return told(self.find(request).overview(number(request, "parts", 600)))

    def search(self, request: Request) -> Response:
        asked = request.asked
        step = self.find(request).find(
            number(request, "after", 0),
            "back" in asked,
            asked.get("kind", ""),
            number(request, "node", -1),
        )
        return told({"step": step})

    def diagram(self, request: Request) -> Diagram:
        index = self.find(request)
        return Diagram(index, number(request, "first", 1), number(request, "last", index.steps))

    def mermaid(self, request: Request) -> Response:
        drawn = self.diagram(request).mermaid()
        return answer(drawn.encode(), "text/plain; charset=utf-8")

    def svg(self, request: Request) -> Response:
        return answer(self.diagram(request).svg().encode(), "image/svg+xml")

    def trace(self, request: Request) -> Response:
        index = self.find(request)
        driven = self.driven.get(request.parameters["run"])
        last = b"" if driven is None else driven.closing()
        name = {"Content-Disposition": 'attachment; filename="run.jsonl"'}
        lines = self.lines(index, last)
        return Response(kind="application/jsonl", headers=HEADERS | name, stream=lines)

    async def lines(self, index: Index, last: bytes) -> AsyncGenerator[bytes, None]:
        """The whole trace, bit by bit."""
        yield msgspec.json.encode(index.setup) + b"\n"
        for first in range(0, index.steps + 1, WINDOW):
            steps = index.read(first, first + WINDOW - 1)
            yield b"".join(line + b"\n" for lines in steps for line in lines)
        yield last

    def routes(self) -> list[Route]:
        run = "/api/runs/{run}"
        looks = {
            "/": self.page,
            "/page/{name}": file,
            "/api/runs": self.what,
            run: self.about,
            f"{run}/source": self.source,
            f"{run}/ran": self.ran,
            f"{run}/window": self.window,
            f"{run}/overview": self.overview,
            f"{run}/find": self.search,
            f"{run}/sequence.mmd": self.mermaid,
            f"{run}/sequence.svg": self.svg,
            f"{run}/trace.jsonl": self.trace,
        }
        return [
            *(Route("GET", path, handler) for path, handler in looks.items()),
            Route("POST", "/api/runs", self.start),
            Route("POST", f"{run}/deeds", self.deed),
        ]


def application(desk: Desk) -> Site:
    """Asked by this machine, under its own name, and by no other page."""
    return Site(desk.routes(), Door("127.0.0.1", [], None).admit)
