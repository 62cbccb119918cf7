"""What is served over HTTP: requests, routes, who may ask, and what is answered to what goes
wrong."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import msgspec

from meshlock.errors import Refused
from meshlock.live.machine import limits

if TYPE_CHECKING:
    from meshlock.live.interfaces.server import ServedConnection

JSON = "application/json"
ENCODE = msgspec.json.Encoder().encode
EVENTS = "text/event-stream"


LATER = b"answer-later"
"""What a client says in a header ``Prefer`` if it does not wait for the answer: that leaves with
the next one on the same connection, and wakes nobody."""


class HTTPError(Exception):
    """An answer that is no success: its status and a sentence."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers or {}


class HTTPRequest(msgspec.Struct):
    method: str
    path: Sequence[str]  # its parts, decoded
    query: str
    fields: Mapping[bytes, bytes]  # its headers, as they came; names in small letters
    connection: ServedConnection
    safe: bool = True  # the connection can be used again
    body: bytes = b""
    parameters: dict[str, str] = {}  # what the path says for the names of its route

    @property
    def later(self) -> bool:
        """Its answer may leave with the next one."""
        return self.fields.get(b"prefer") == LATER

    def header(self, name: str) -> str:
        """Empty without such a header."""
        return self.fields.get(name.encode(), b"").decode("latin-1").rstrip(" \t")

    @property
    def asked(self) -> dict[str, str]:
        """The query; of a name that is said twice, the last."""
        return dict(parse_qsl(self.query, keep_blank_values=True)) if self.query else {}


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
