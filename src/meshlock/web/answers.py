"""Files of the page and JSON, with headers that hold the page to this server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from meshlock.live.interfaces.site import HTTPError, HTTPRequest, Response

PAGE = Path(__file__).parent / "page"

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def answer(body: bytes, kind: str, status: int = 200) -> Response:
    return Response(body, kind, status, HEADERS)


def as_json(value: Any, status: int = 200) -> Response:
    return answer(msgspec.json.encode(value), "application/json", status)


def static(name: str) -> Response:
    """A file of the page; only files that are in the folder itself."""
    files = {path.name: path for path in PAGE.iterdir() if path.suffix in TYPES}
    if name not in files:
        raise HTTPError(404, f"There is no {name}.")
    return answer(files[name].read_bytes(), TYPES[files[name].suffix])


MOST_BYTES = 10_000


def json_of(request: HTTPRequest, most: int = MOST_BYTES) -> bytes:
    """What the page sent; no other site can send JSON."""
    if request.header("content-type") != "application/json":
        raise HTTPError(415, "Send JSON.")
    return request.body[:most]


def asked(request: HTTPRequest) -> dict[str, Any]:
    """The JSON object that the page sent."""
    text = json_of(request)
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        raise HTTPError(400, "That is not a JSON object.") from None


def file(request: HTTPRequest) -> Response:
    return static(request.parameters["name"])


Made = TypeVar("Made")


async def aside(work: Callable[..., Made], *values: object) -> Made:
    """What takes a while, in a thread, so that others are answered; a tab has no threads."""
    if sys.platform == "emscripten":
        return work(*values)
    return await asyncio.to_thread(work, *values)
