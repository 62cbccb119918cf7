"""What the page asks of the runs on the shelf. A server or a browser tab carries the questions."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from meshlock.errors import Refused
from meshlock.live.interfaces.site import Handler, HTTPError, HTTPRequest, Response, Route
from meshlock.web.answers import HEADERS, answer, as_json, asked, file, static
from meshlock.web.driving import TOPOLOGIES, DrivenSetUp, PageRun, RiddleRun, choices
from meshlock.web.export import exported
from meshlock.web.forking import fork, wanted
from meshlock.web.handlers import Ran, source_of
from meshlock.web.index import WINDOW, Index
from meshlock.web.opening import Opening, Shelf
from meshlock.web.sequence import Diagram


def number(request: HTTPRequest, name: str, default: int) -> int:
    text = request.asked.get(name, str(default))
    if not text.removeprefix("-").isdigit() or len(text) > 12:
        raise HTTPError(400, f"{name} must be a whole number.")
    return int(text)


class Desk:
    """What the page asks of the runs on the shelf."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.watched: Ran | None = None  # the run whose lines were asked for last
        self.opening = Opening(self.shelf)

    def hidden(self, request: HTTPRequest) -> bool:
        """Is it a riddle, whose name and code would give the mistake away?"""
        driven = self.shelf.find_driven(request)
        return isinstance(driven, RiddleRun) and driven.hidden()

    def refuse_hidden(self, request: HTTPRequest) -> None:
        if self.hidden(request):
            raise Refused(
                "The trace would give the mistake away: find it first, or see the solution."
            )

    def what(self, _request: HTTPRequest) -> Response:
        offered = {"algorithms": choices(), "topologies": TOPOLOGIES}
        known = [*self.shelf.driven, *self.shelf.runs]
        return as_json({"opened": self.shelf.opened, "runs": known, **offered})

    def start(self, request: HTTPRequest) -> Response:
        """A new run to be driven from the page, perhaps from a step of another one; the oldest
        makes room."""
        given = asked(request)
        if "fork" in given:
            name, step = wanted(given)
            run = fork(self.shelf.driven.get(name) or self.shelf.named(name), step)
        else:
            run = PageRun(DrivenSetUp(given))
        return as_json({"run": self.shelf.driven.add("driven", run)})

    def action(self, request: HTTPRequest) -> Response:
        driven = self.shelf.find_driven(request)
        if driven is None:
            raise HTTPError(404, "This run cannot be driven, or is gone: start another.")
        driven.perform(asked(request))
        return as_json(driven.about())

    def source(self, request: HTTPRequest) -> Response:
        setup = self.shelf.find(request).setup
        if self.hidden(request):
            return as_json({"handlers": {}, "constants": {}})
        return as_json(source_of(setup))

    def ran(self, request: HTTPRequest) -> Response:
        index = self.shelf.find(request)
        if self.hidden(request):
            return as_json([])
        if self.watched is None or self.watched.index is not index:
            self.watched = Ran(index)
        return as_json(self.watched.step(number(request, "step", 0)))

    def window(self, request: HTTPRequest) -> Response:
        window = number(request, "number", 0)
        index = self.shelf.find(request)
        if not 0 <= window * WINDOW <= index.steps:
            raise HTTPError(404, "There is no such window.")
        return answer(index.window(window), "application/json")

    def overview(self, request: HTTPRequest) -> Response:
        return as_json(self.shelf.find(request).overview(number(request, "parts", 600)))

    def search(self, request: HTTPRequest) -> Response:
        asked = request.asked
        step = self.shelf.find(request).find(
            number(request, "after", 0),
            "back" in asked,
            asked.get("kind", ""),
            number(request, "node", -1),
        )
        return as_json({"step": step})

    def diagram(self, request: HTTPRequest) -> Response:
        index = self.shelf.find(request)
        drawn = Diagram(index, number(request, "first", 1), number(request, "last", index.steps))
        return answer(drawn.svg().encode(), "image/svg+xml")

    def export(self, request: HTTPRequest) -> Response:
        """The run as one file that plays by itself."""
        self.refuse_hidden(request)
        text = exported(self.shelf.find(request), self.shelf.about(request))
        name = {"Content-Disposition": 'attachment; filename="run.html"'}
        return Response(text.encode(), "text/html; charset=utf-8", headers=HEADERS | name)

    def trace(self, request: HTTPRequest) -> Response:
        self.refuse_hidden(request)
        index = self.shelf.find(request)
        driven = self.shelf.find_driven(request)
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
        looks: dict[str, Handler] = {
            "/": lambda _: static("index.html"),
            "/compare": lambda _: static("compare.html"),
            "/page/{name}": file,
            "/api/runs": self.what,
            run: lambda request: as_json(self.shelf.about(request)),
            f"{run}/source": self.source,
            f"{run}/ran": self.ran,
            f"{run}/window": self.window,
            f"{run}/overview": self.overview,
            f"{run}/find": self.search,
            f"{run}/sequence.svg": self.diagram,
            f"{run}/trace.jsonl": self.trace,
            f"{run}/run.html": self.export,
        }
        return [
            *(Route("GET", path, handler) for path, handler in looks.items()),
            Route("POST", "/api/runs", self.start),
            Route("POST", f"{run}/actions", self.action),
            *self.opening.routes(),
        ]
