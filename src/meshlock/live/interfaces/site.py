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


class Response(msgspec.Struct):
    body: bytes = b""
    kind: str = JSON
    status: int = 200
    headers: Mapping[str, str] = {}
    stream: AsyncGenerator[bytes, None] | None = None
    """Instead of a body: part by part."""


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(ENCODE(value), JSON, status, headers or {})


Handler = Callable[[HTTPRequest], Response | Awaitable[Response]]


class Route(msgspec.Struct, frozen=True):
    method: str
    path: str
    """As in OpenAPI: ``/v1/pools/{pool}``."""

    handler: Handler
    always: bool = False
    """Also to those who have no place among the connections."""


Methods = dict[str, tuple[Route, dict[int, str]]]
"""What is at a path, and which of its parts have names."""


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
        self.known: dict[tuple[str | None, ...], Methods] = {}  # by path; None is any part
        self.named: dict[int, list[tuple[int, ...]]] = {}  # of paths of a length: places of names
        for route in routes:
            parts = route.path.split("/")[1:]
            names = {at: part[1:-1] for at, part in enumerate(parts) if part.startswith("{")}
            places = self.named.setdefault(len(parts), [])
            places[:] = sorted({*places, tuple(names)})
            shape = tuple(None if at in names else part for at, part in enumerate(parts))
            self.known.setdefault(shape, {})[route.method] = (route, names)

    def find(self, request: HTTPRequest) -> Route:
        """The request learns what its path says."""
        for places in self.named.get(len(request.path), ()):
            shape: list[str | None] = [*request.path]
            for at in places:
                shape[at] = None
            methods = self.known.get(tuple(shape))
            if methods is not None:
                break
        else:
            why = "There is nothing at this path: see /openapi.json for all paths."
            raise HTTPError(404, why)
        found = methods.get("GET" if request.method == "HEAD" else request.method)
        if found is None:
            allowed = sorted({*methods, *(["HEAD"] if "GET" in methods else [])})
            why = f"{limits.shown(request.method)} is not allowed at this path: use {allowed[0]}."
            raise HTTPError(405, why, {"Allow": ", ".join(allowed)})
        route, names = found
        request.parameters = {name: request.path[at] for at, name in names.items()}
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
