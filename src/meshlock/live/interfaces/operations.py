"""Each operation is declared once: routes, what is read of a request, and OpenAPI follow from it.

An operation is a method of :class:`.http.Interface`. Its docstring is the summary, the type of its
parameter ``body`` or ``query`` says what may be asked, and the type that it returns is the answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, get_type_hints

import msgspec

from meshlock.errors import NodeClosed, NoSuchPool, Refused
from meshlock.live.interfaces.http_requests import HTTPError, HTTPRequest
from meshlock.live.interfaces.messages import NotNow, Why
from meshlock.live.interfaces.site import Response, answer
from meshlock.live.machine import limits

Method = TypeVar("Method", bound=Callable[..., Any])

NONE = {400: Why, 404: Why}
"""A query cannot be read, or what it is for is not there."""

UNNAMED: dict[int, Any] = {400: Why, 409: NotNow, 413: Why}
REFUSED = {**UNNAMED, 404: Why}
"""What is answered to a request with a body that cannot be granted."""


class Operation(msgspec.Struct, frozen=True):
    """One thing that can be asked for."""

    method: str
    path: str
    handler: Callable[..., Any]
    """It gets the request, and its body or query as declared. It returns a :class:`Response`, or
    the body of one with the ``status``."""

    answers: dict[int, Any]
    """Status: the type of its body, a media type, or None for no body."""

    body: type | None
    query: type | None
    status: int
    public: bool
    """Needs no token."""

    links: Sequence[str]
    """What can be done with the grant that the answer names."""

    names: Sequence[str]
    """Parts of the path that are names as :mod:`~meshlock.live.machine.limits` has them."""

    streams: bool
    """A client that accepts ``text/event-stream`` gets events as they come."""

    def perform(self, interface: Any, request: HTTPRequest) -> Response | Awaitable[Response]:
        """Here a request is read. If that fails, the answer is 400; what is refused later has a
        status of its own."""
        for what in self.names:
            name = request.parameters[what]
            if name not in interface.node.pools:
                limits.name(name, what)
        asked: list[Any] = []
        if self.body is not None:
            asked = [limits.decoded(request.body or b"{}", self.body)]
        elif self.query is not None:
            asked = [queried(request, self.query) if request.query else self.query()]
        try:
            found = self.handler(interface, request, *asked)
        except Refused as error:
            raise impossible(error) from None
        return self.finished(found) if type(found) is CoroutineType else self.answered(found)

    async def finished(self, work: Awaitable[Any]) -> Response:
        try:
            return self.answered(await work)
        except Refused as error:
            raise impossible(error) from None

    def answered(self, found: Any) -> Response:
        return found if isinstance(found, Response) else answer(found, self.status)


OPERATIONS: list[Operation] = []
"""All that can be asked of the agent, wherever it is asked."""


def operation(
    method: str,
    path: str,
    refused: dict[int, Any],
    *,
    answers: dict[int, Any] | None = None,
    status: int = 200,
    public: bool = False,
    links: Sequence[str] = (),
    streams: bool = False,
) -> Callable[[Method], Method]:
    """Declare that a method performs this. ``refused``: what else than its answer is answered."""

    def declared(handler: Method) -> Method:
        hints = get_type_hints(handler)
        known = {**(answers or {status: hints["return"]}), **refused}
        OPERATIONS.append(
            Operation(
                method,
                path,
                handler,
                known,
                body=hints.get("body"),
                query=hints.get("query"),
                status=status,
                public=public,
                links=links,
                names=[name for name in ("pool", "request") if f"{{{name}}}" in path],
                streams=streams,
            )
        )
        return handler

    return declared


get, post, delete = (partial(operation, method) for method in ("GET", "POST", "DELETE"))


def impossible(error: Refused) -> HTTPError:
    if isinstance(error, NodeClosed):
        return HTTPError(503, str(error))
    return HTTPError(404 if isinstance(error, NoSuchPool) else 409, str(error))


def queried(request: HTTPRequest, kind: type) -> Any:
    try:
        return msgspec.convert(request.asked, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(f"Not a query: {limits.in_words(error, kind)}.") from None
