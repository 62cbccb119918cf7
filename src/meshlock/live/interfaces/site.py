"""What is served over HTTP: routes, who may ask, and what is answered to what goes wrong."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

import msgspec

from meshlock.errors import Refused
from meshlock.live.interfaces.http_requests import HTTPError, HTTPRequest
from meshlock.live.machine import limits

JSON = "application/json"
ENCODE = msgspec.json.Encoder().encode
EVENTS = "text/event-stream"


NO_HEADERS: Mapping[str, str] = {}


class Response:
    __slots__ = ("body", "headers", "kind", "status", "stream")

    def __init__(
        self,
        body: bytes = b"",
        kind: str = JSON,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        stream: AsyncGenerator[bytes, None] | None = None,
    ) -> None:
        self.body = body
        self.kind = kind
        self.status = status
        self.headers = headers or NO_HEADERS
        self.stream = stream  # instead of a body: part by part


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(ENCODE(value), JSON, status, headers)


Handler = Callable[[HTTPRequest], Response | Awaitable[Response]]


class Route(msgspec.Struct, frozen=True):
    method: str
    path: str
    """As in OpenAPI: ``/v1/pools/{pool}``."""

    handler: Handler
    always: bool = False
    """Also to those who have no place among the connections."""


class Branch:
    """Where the first parts of a path lead."""

    __slots__ = ("any", "below", "methods")

    def __init__(self) -> None:
        self.below: dict[str, Branch] = {}
        self.any: Branch | None = None  # whatever the next part is
        self.methods: dict[str, tuple[Route, list[str]]] = {}


class Site:
    """What is served: routes, and who may ask."""

    def __init__(
        self,
        routes: Sequence[Route],
        admit: Callable[[HTTPRequest], None] | None = None,
        failed: Callable[[], object] = lambda: None,
        refused: Callable[[str, str], object] = lambda *_: None,
    ) -> None:
        self.admit = admit
        self.refused = refused  # called with who was, and why
        self.failed = failed  # called while an exception is handled that nobody expected
        self.root = Branch()
        for route in routes:
            branch = self.root
            names = []
            for part in route.path.split("/")[1:]:
                if part.startswith("{"):
                    names.append(part[1:-1])
                    branch.any = branch.any or Branch()
                    branch = branch.any
                else:
                    branch = branch.below.setdefault(part, Branch())
            branch.methods[route.method] = (route, names)

    def find(self, request: HTTPRequest) -> Route:
        """The request learns what its path says."""
        branch, given = self.root, []
        for part in request.path:
            below = branch.below.get(part)
            if below is None:
                if branch.any is None:
                    raise nothing_here()
                below = branch.any
                given.append(part)
            branch = below
        methods = branch.methods
        if not methods:
            raise nothing_here()
        found = methods.get("GET" if request.method == "HEAD" else request.method)
        if found is None:
            allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})
            why = f"{limits.shown(request.method)} is not allowed at this path: use {allowed[0]}."
            raise HTTPError(405, why, {"Allow": ", ".join(allowed)})
        route, names = found
        request.parameters = dict(zip(names, given, strict=True))
        return route

    def refusal(self, error: BaseException) -> Response:
        """What went wrong, as an answer."""
        if isinstance(error, HTTPError):
            return answer({"why": error.why}, error.status, error.headers)
        if isinstance(error, TimeoutError):
            return answer({"why": str(error) or "No permits in time.", "timed_out": True}, 409)
        if isinstance(error, Refused):
            return answer({"why": str(error)}, 400)
        try:
            raise error
        except Exception:
            self.failed()
        why = f"The agent failed on this request ({error!r}): see its log."
        return answer({"why": why}, 500)


def nothing_here() -> HTTPError:
    return HTTPError(404, "There is nothing at this path: see /openapi.json for all paths.")
