"""What can be asked of the agent, as OpenAPI 3.1: made from what checks the requests."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from meshlock import __version__
from meshlock.live.interfaces import messages
from meshlock.live.interfaces.operations import Operation
from meshlock.live.interfaces.site import EVENTS, JSON
from meshlock.live.machine.limits import Name
from meshlock.live.pools import status

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
    if one.links:
        given = {"parameters": {"grant": "$response.body#/grant"}}
        links = {name: {"operationId": name, **given} for name in one.links}
        found["responses"]["200"]["links"] = links
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
