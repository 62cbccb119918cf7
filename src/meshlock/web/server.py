"""What the page asks for: itself, and windows of a run. Only this machine may ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from meshlock.errors import Refused
from meshlock.live.interfaces.http import OnlyShort
from meshlock.web.answers import HEADERS, answer, file, refusal, static, told
from meshlock.web.driving import TOPOLOGIES, PageRun, choices
from meshlock.web.handlers import handlers
from meshlock.web.index import WINDOW, Index
from meshlock.web.sequence import Diagram

MOST_DRIVEN = 16
MOST_BYTES = 10_000


def number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.removeprefix("-").isdigit() or len(text) > 12:
        raise HTTPException(400, f"{name} must be a whole number.")
    return int(text)


async def asked(request: Request) -> dict[str, Any]:
    """The JSON object that the page sent; no other site can send one."""
    if request.headers.get("content-type") != "application/json":
        raise HTTPException(415, "Send JSON.")
    body = await request.body()
    try:
        return msgspec.json.decode(body[:MOST_BYTES], type=dict[str, Any])
    except msgspec.DecodeError:
        raise HTTPException(400, "That is not a JSON object.") from None


class Desk:
    """The runs that can be looked at, by their names."""

    def __init__(self) -> None:
        self.runs: dict[str, Index] = {}
        self.driven: dict[str, PageRun] = {}  # from the page
        self.made = 0
        self.opened = ""  # the run to show first, if any

    def find(self, request: Request) -> Index:
        name = request.path_params["run"]
        if name in self.driven:
            return self.driven[name].index
        if name not in self.runs:
            raise HTTPException(404, f"There is no run {name} any more: start another.")
        return self.runs[name]

    async def page(self, _request: Request) -> Response:
        return static("index.html")

    async def what(self, _request: Request) -> Response:
        offered = {"algorithms": choices(), "topologies": TOPOLOGIES}
        return told({"opened": self.opened, "driven": list(self.driven), **offered})

    async def about(self, request: Request) -> Response:
        driven = self.driven.get(request.path_params["run"])
        return told(self.find(request).about() if driven is None else driven.about())

    async def start(self, request: Request) -> Response:
        """A new run to be driven from the page; the oldest makes room."""
        run = PageRun(await asked(request))
        self.made += 1
        name = f"driven-{self.made}"
        self.driven[name] = run
        while len(self.driven) > MOST_DRIVEN:
            del self.driven[next(iter(self.driven))]
        return told({"run": name})

    async def deed(self, request: Request) -> Response:
        driven = self.driven.get(request.path_params["run"])
        if driven is None:
            raise HTTPException(404, "This run cannot be driven, or is gone: start another.")
        driven.do(await asked(request))
        return told(driven.about())

    async def source(self, request: Request) -> Response:
        setup = self.find(request).setup
        return told(handlers(str(setup.get("algorithm")), "recovery" in setup))

    async def window(self, request: Request) -> Response:
        window = number(request, "number", 0)
        index = self.find(request)
        if not 0 <= window * WINDOW <= index.steps:
            raise HTTPException(404, "There is no such window.")
        return answer(index.window(window), "application/json")

    async def overview(self, request: Request) -> Response:
        return told(self.find(request).overview(number(request, "parts", 600)))

    async def search(self, request: Request) -> Response:
        asked = request.query_params
        step = self.find(request).find(
            number(request, "after", 0),
            "back" in asked,
            asked.get("kind", ""),
            number(request, "node", -1),
        )
        return told({"step": step})

    async def diagram(self, request: Request) -> Response:
        index = self.find(request)
        drawn = Diagram(index, number(request, "first", 1), number(request, "last", index.steps))
        if request.path_params["form"] == "mmd":
            return answer(drawn.mermaid().encode(), "text/plain; charset=utf-8")
        return answer(drawn.svg().encode(), "image/svg+xml")

    async def trace(self, request: Request) -> Response:
        index = self.find(request)
        driven = self.driven.get(request.path_params["run"])
        last = b"" if driven is None else driven.closing()
        name = {"Content-Disposition": 'attachment; filename="run.jsonl"'}
        lines = self.lines(index, last)
        return StreamingResponse(lines, 200, HEADERS | name, media_type="application/jsonl")

    async def lines(self, index: Index, last: bytes) -> AsyncIterator[bytes]:
        """The whole trace, bit by bit."""
        yield msgspec.json.encode(index.setup) + b"\n"
        for first in range(0, index.steps + 1, WINDOW):
            steps = index.read(first, first + WINDOW - 1)
            yield b"".join(line + b"\n" for lines in steps for line in lines)
        yield last

    def routes(self) -> list[Route]:
        run = "/api/runs/{run}"
        return [
            Route("/", self.page),
            Route("/page/{name}", file),
            Route("/api/runs", self.what),
            Route("/api/runs", self.start, methods=["POST"]),
            Route(run, self.about),
            Route(f"{run}/deeds", self.deed, methods=["POST"]),
            Route(f"{run}/source", self.source),
            Route(f"{run}/window", self.window),
            Route(f"{run}/overview", self.overview),
            Route(f"{run}/find", self.search),
            Route(f"{run}/sequence.{{form}}", self.diagram),
            Route(f"{run}/trace.jsonl", self.trace),
        ]


def application(desk: Desk, hosts: list[str]) -> Starlette:
    return Starlette(
        routes=desk.routes(),
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=hosts),
            Middleware(OnlyShort),
        ],
        exception_handlers={HTTPException: refusal, Refused: refusal},
    )
