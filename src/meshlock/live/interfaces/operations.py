"""Each operation is declared once: routes, what is read of a request, and OpenAPI follow from it.

An operation is a method of :class:`.http.Interface`. Its docstring is the summary, the type of its
parameter ``body`` or ``query`` says what may be asked, and the type that it returns is the answer.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from http import HTTPStatus
from types import CoroutineType
from typing import Any, TypeVar, get_type_hints

import msgspec

from meshlock import __version__
from meshlock.errors import NodeClosed, NoSuchPool, Refused
from meshlock.live.interfaces import messages
from meshlock.live.interfaces.messages import NotNow, Why
from meshlock.live.interfaces.site import EVENTS, JSON, HTTPError, HTTPRequest, Response, answer
from meshlock.live.machine import limits
from meshlock.live.machine.limits import Name
from meshlock.live.pools import status

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
    names: Sequence[str]
    """Parts of the path that are names as :mod:`~meshlock.live.machine.limits` has them."""

    status: int = 200
    public: bool = False
    """Needs no token."""

    streams: bool = False
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
    answers: dict[int, Any] | None = None,
    **more: Any,
) -> Callable[[Method], Method]:
    """Declare that a method performs this. ``refused``: what else than its answer is answered;
    ``more`` are fields of the :class:`Operation`."""

    def declared(handler: Method) -> Method:
        hints = get_type_hints(handler)
        known = {**(answers or {more.get("status", 200): hints["return"]}), **refused}
        asked = hints.get("body"), hints.get("query")
        names = [name for name in ("pool", "request") if f"{{{name}}}" in path]
        OPERATIONS.append(Operation(method, path, handler, known, *asked, names, **more))
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


TEMPLATE = "#/components/schemas/{name}"
PARAMETERS: dict[str, Any] = {"pool": Name, "request": Name, "grant": str, "session": str}
ALWAYS = {500: messages.Why}
"""What any call may be answered."""


def description(operations: Sequence[Operation], token: bool) -> dict[str, Any]:
    kinds = [kind for one in operations for kind in (*one.answers.values(), one.body)]
    structs = [kind for kind in dict.fromkeys(kinds) if isinstance(kind, type)]
    schemas = msgspec.json.schema_components(structs, ref_template=TEMPLATE)[1]
    for name, found in schemas.items():
        if name in vars(status):  # msgspec sorts the keys of a TypedDict and leaves out its text
            kind = vars(status)[name]
            found["properties"] = {key: found["properties"][key] for key in kind.__annotations__}
            if kind.__doc__:
                found["description"] = inspect.cleandoc(kind.__doc__)
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = described(one, token)
    whole: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "meshlock agent",
            "version": __version__,
            "description": "Share k permits among machines without a server.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if token:
        whole["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        whole["security"] = [{"token": []}]
    return portable(whole)  # type: ignore[no-any-return]


def described(one: Operation, token: bool) -> dict[str, Any]:
    answers = one.answers | ALWAYS
    if token:
        answers = answers | {403: messages.Why}
        if not one.public:
            answers = answers | {401: messages.Why}
    found: dict[str, Any] = {
        "operationId": one.handler.__name__,
        "summary": one.handler.__doc__,
        "parameters": parameters(one),
        "responses": {
            str(code): response(code, kind, one.streams) for code, kind in answers.items()
        },
    }
    if one.body is not None:
        needed = any(field.required for field in msgspec.structs.fields(one.body))
        content = {JSON: {"schema": schema(one.body)}}
        found["requestBody"] = {"required": needed, "content": content}
    if one.public and token:
        found["security"] = []
    return found


def parameters(one: Operation) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": schema(PARAMETERS[name])}
        for name in re.findall(r"{(\w+)}", one.path)
    ]
    if one.query is not None:
        for field in msgspec.structs.fields(one.query):
            shape = {**schema(field.type), "default": field.default}
            found.append({"name": field.name, "in": "query", "required": False, "schema": shape})
    return found


def response(status: int, kind: Any, streams: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if isinstance(kind, str):
        found["content"] = {kind: {"schema": {"type": "string"}}}
    elif kind is not None:
        found["content"] = {JSON: {"schema": schema(kind)}}
        if streams and status == 200:
            found["content"][EVENTS] = {"schema": {"type": "string"}}
    if status == 401:
        found["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return found


def schema(kind: Any) -> dict[str, Any]:
    return msgspec.json.schema_components([kind], ref_template=TEMPLATE)[0][0]


def portable(value: Any) -> Any:
    """Patterns with the anchors that all languages have."""
    if isinstance(value, dict):
        return {
            key: it.replace("\\A", "^").replace("\\Z", "$")
            if key == "pattern" and isinstance(it, str)
            else portable(it)
            for key, it in value.items()
        }
    return [portable(it) for it in value] if isinstance(value, list) else value
