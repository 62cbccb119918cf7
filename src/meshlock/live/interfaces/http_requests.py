"""Requests out of bytes: strict, and within bounds.

Rules of this file: whatever is refused of a request before its path is looked up is refused here,
by a status and a sentence. It does no I/O. A request that could be read in two ways is refused:
line ends that are no CRLF, a length that is given twice, spaces in odd places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote

from meshlock.live.machine import limits

if TYPE_CHECKING:
    from meshlock.live.interfaces.server import Connection

LONGEST_HEAD = 16 * 1024
MOST_BODY = int(limits.BODY.most)
LATER = "answer-later"
"""What a client says in a header ``Prefer`` if it does not wait for the answer: that leaves with
the next one on the same connection, and wakes nobody."""

NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch


class HTTPError(Exception):
    """An answer that is no success: its status and a sentence."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers or {}


class Request:
    __slots__ = (
        *("body", "connection", "headers", "later", "method"),
        *("parameters", "path", "query", "safe"),
    )

    def __init__(
        self,
        method: str,
        path: list[str],
        query: str,
        headers: Mapping[str, str],
        safe: bool = True,
        later: bool = False,
    ) -> None:
        self.method = method
        self.path = path  # its parts, decoded
        self.query = query
        self.headers = headers  # names in small letters
        self.safe = safe  # the connection can be used again
        self.later = later  # its answer may leave with the next one
        self.body = b""
        self.parameters: dict[str, str] = {}  # what the path says for the names of its route
        self.connection: Connection

    @property
    def asked(self) -> dict[str, str]:
        """The query; of a name that is said twice, the last."""
        return dict(parse_qsl(self.query, keep_blank_values=True)) if self.query else {}


class RequestReader:
    """What one client has sent, and the requests in it."""

    __slots__ = ("data", "length", "request")

    def __init__(self) -> None:
        self.data = b""  # received and not read; the server stops receiving when it is long
        self.request: Request | None = None  # of which the body is still to come
        self.length: int | None = 0  # of that body; None: it comes in chunks

    @property
    def begun(self) -> bool:
        """Has a part of a request come?"""
        return self.request is not None or bool(self.data)

    def awaits_go_ahead(self) -> bool:
        """Does the client wait for a word before it sends the body?"""
        request = self.request
        expects = "" if request is None or self.data else request.headers.get("expect", "")
        return expects.lower() == "100-continue"

    def next(self) -> Request | None:
        """The next request, if all of it has come."""
        data = self.data
        if self.request is None:
            end = data.find(b"\r\n\r\n")
            if end < 0 and data.startswith(b"\r\n"):
                self.data = data[2:]  # some clients end a body with an empty line
                return self.next() if self.data else None
            if end > LONGEST_HEAD or (end < 0 and len(data) > LONGEST_HEAD):
                raise HTTPError(431, "The header section of this request is too long.")
            if end < 0:
                return None
            self.request, self.length = parsed(data[:end].decode("latin-1"))
            data = self.data = data[end + 4 :]
        request, length = self.request, self.length
        if length is None:
            body = unchunked(data)
            if body is None:
                if len(data) > 2 * MOST_BODY:
                    raise too_long()
                return None
            request.body, length = body
        elif len(data) < length:
            return None
        else:
            request.body = data[:length]
        self.data = data[length:]
        self.request = None
        return request


def too_long() -> HTTPError:
    return HTTPError(413, f"The body of this request is too long: use {limits.BODY}.")


class Headers(NamedTuple):
    fields: Mapping[str, str]
    """By name, in small letters."""

    last: bool
    """The client wants no further answer on this connection."""

    length: int | None
    """Of the body; None: it comes in chunks."""

    later: bool
    """The client does not wait for the answer."""


@lru_cache(maxsize=256)
def parsed_headers(text: str) -> Headers:
    """A program repeats the same headers."""
    lines = text.split("\r\n") if text else []
    ends = max(0, len(lines) - 1)
    if text.count("\n") != ends or text.count("\r") != ends or "\0" in text:
        raise HTTPError(400, "A header line does not end in CRLF.")
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not NAME(name):
            raise HTTPError(400, "A header line has no name and value.")
        name, value = name.lower(), value.strip(" \t")
        if name in fields:
            if name in ("content-length", "host", "transfer-encoding"):
                raise HTTPError(400, f"The header '{name}' occurs twice: send it once.")
            value = f"{fields[name]}, {value}"
        fields[name] = value
    last = "close" in fields.get("connection", "").lower()
    return Headers(fields, last, body_length(fields), fields.get("prefer") == LATER)


def body_length(fields: Mapping[str, str]) -> int | None:
    coding, length = fields.get("transfer-encoding"), fields.get("content-length")
    if coding is not None:
        if coding.lower() != "chunked" or length is not None:
            raise HTTPError(
                400, "Both Content-Length and Transfer-Encoding are given: send one of them."
            )
        return None
    if length is None:
        return 0
    if not (length.isascii() and length.isdecimal()):
        raise HTTPError(400, "Content-Length is not a number.")
    if int(length[:20]) > MOST_BODY:
        raise too_long()
    return int(length)


def parsed(text: str) -> tuple[Request, int | None]:
    """The head of a request, and the length of its body (None: it comes in chunks)."""
    line, _, rest = text.partition("\r\n")
    if "\r" in line or "\n" in line or "\0" in line:
        raise HTTPError(400, "A header line does not end in CRLF.")
    first = line.split(" ")
    if len(first) != 3 or not NAME(first[0]) or not first[2].startswith("HTTP/"):
        raise HTTPError(400, "The request line is not HTTP.")
    method, target, version = first
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise HTTPError(505, "Use HTTP/1.1.")
    headers = parsed_headers(rest)
    newest = version == "HTTP/1.1"
    if newest and "host" not in headers.fields:
        raise HTTPError(400, "The header 'Host' is missing.")
    if headers.length is None and not newest:
        raise HTTPError(400, "HTTP/1.0 has no chunks.")
    if target.startswith("http://"):
        target = "/" + target[7:].partition("/")[2]
    path, _, query = target.partition("?")
    if not path.startswith("/") or not target.isascii():
        raise HTTPError(400, "The path is not valid.")
    parts = path[1:].split("/")
    if "%" in path:
        try:
            parts = [unquote(part, errors="strict") for part in parts]
        except UnicodeDecodeError:
            raise HTTPError(400, "The path is not in UTF-8.") from None
    safe = newest and not headers.last
    return Request(method, parts, query, headers.fields, safe, headers.later), headers.length


def unchunked(data: bytes) -> tuple[bytes, int] | None:
    """A body that came in chunks, and how many bytes that took; None: there is more to come."""
    body, place = bytearray(), 0
    while True:
        end = data.find(b"\r\n", place, place + 100)
        if end < 0:
            if len(data) - place > 100:
                raise HTTPError(400, "A chunk has no valid length.")
            return None
        size = data[place:end].partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            raise HTTPError(400, "A chunk has no valid length.")
        length, place = int(size, 16), end + 2
        if len(body) + length > MOST_BODY:
            raise too_long()
        if length == 0:  # trailers, which nobody reads, and an empty line
            over = place if data.startswith(b"\r\n", place) else data.find(b"\r\n\r\n", place) + 2
            return (bytes(body), over + 2) if over >= place and len(data) >= over + 2 else None
        if len(data) < place + length + 2:
            return None
        if data[place + length : place + length + 2] != b"\r\n":
            raise HTTPError(400, "A chunk is longer than it says.")
        body += data[place : place + length]
        place += length + 2
