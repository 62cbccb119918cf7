"""Files of the page and JSON, with headers that hold the page to this server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

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
    return Response(body, status, media_type=kind, headers=HEADERS)


def told(value: Any, status: int = 200) -> Response:
    return answer(msgspec.json.encode(value), "application/json", status)


async def refusal(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    text = error.detail if isinstance(error, HTTPException) else str(error)
    return told({"error": text}, status)


def static(name: str) -> Response:
    """A file of the page; only files that are in the folder itself."""
    files = {path.name: path for path in PAGE.iterdir() if path.suffix in TYPES}
    if name not in files:
        raise HTTPException(404, f"There is no {name}.")
    return answer(files[name].read_bytes(), TYPES[files[name].suffix])


async def file(request: Request) -> Response:
    return static(request.path_params["name"])
