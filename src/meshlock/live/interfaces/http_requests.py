"""Requests out of bytes: read by llhttp, the parser of Node.js (:mod:`httptools`), within bounds.

Rules of this file: what is refused of a request before its path is looked up is refused here, by a
status and a sentence. It does no I/O. llhttp refuses what could be read in two ways: line ends that
are no CRLF, a length that is given twice, spaces in odd places. Here is what it leaves to us:
versions, the ``Host`` header, codings that we do not speak, and how long everything may be.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from urllib.parse import unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from meshlock.live.interfaces.site import HTTPError, HTTPRequest
from meshlock.live.machine import limits

if TYPE_CHECKING:
    from meshlock.live.interfaces.server import ServedConnection

LONGEST_HEAD = 16 * 1024
MOST_BODY = int(limits.BODY.most)
LONGEST = LONGEST_HEAD + 2 * MOST_BODY
"""Bytes of a request, with the lengths and extensions of its chunks, and trailers."""

PIECE = 4096
"""Bytes that are parsed at a time, so that few requests are parsed ahead of their turn."""


class RequestReader:
    """What one client has sent, and the requests in it. The parser calls the methods ``on_...``."""

    __slots__ = (
        *("connection", "data", "error", "fields"),
        *("parser", "ready", "request", "size", "url"),
    )

    def __init__(self, connection: ServedConnection) -> None:
        self.connection = connection
        self.parser = HttpRequestParser(self)
        self.data = b""  # received and not parsed; the server stops receiving when it is long
        self.ready: deque[HTTPRequest] = deque()  # parsed and not answered
        self.error: HTTPError | None = None  # why what follows these cannot be read
        self.url: bytes | None = None  # of the request that has begun
        self.fields: dict[bytes, bytes] = {}  # its headers
        self.size = 0  # bytes of it
        self.request: HTTPRequest | None = None  # of which the body is still to come

    @property
    def begun(self) -> bool:
        """Has a part of a request come?"""
        return self.url is not None or bool(self.data or self.ready)

    def awaits_go_ahead(self) -> bool:
        """Does the client wait for a word before it sends the body of the last request?"""
        assert self.request is not None
        expects = self.request.header("expect").lower()
        return expects == "100-continue" and not self.request.body

    def receive(self, data: bytes | memoryview) -> None:
        """A little is parsed at once, even if its turn has not come."""
        if self.data or self.ready or self.error is not None or len(data) > PIECE:
            self.data += data
        else:
            self.parse(data)

    def has_request(self) -> bool:
        """Is one ``ready``? An error comes after those that were sent before it."""
        while not self.ready:
            if self.error is not None:
                raise self.error
            if not self.data:
                return False
            piece, self.data = self.data[:PIECE], self.data[PIECE:]
            self.parse(piece)
        return True

    def parse(self, piece: bytes | memoryview) -> None:
        try:
            self.parser.feed_data(piece)
        except HttpParserUpgrade as error:
            self.parse_without_upgrade(bytes(piece[error.args[0] :]))
        except HttpParserError as error:
            ours, version = error.__context__, self.parser.get_http_version()
            if isinstance(ours, HTTPError):
                self.error = ours
            elif version in ("0.0", "1.0", "1.1"):  # 0.0: it has said none
                self.error = HTTPError(400, f"The request is not valid HTTP: {error}.")
            else:
                self.error = other_version()
        if self.url is not None:
            self.size += len(piece)
            if self.request is None and self.size > LONGEST_HEAD:
                self.error = HTTPError(431, "The header section of this request is too long.")
            elif self.size > LONGEST:
                self.error = too_long()

    def parse_without_upgrade(self, rest: bytes) -> None:
        """A client may offer another protocol, which we decline. But llhttp takes what follows to
        be in that protocol, so it must read the same request again without the offer."""
        assert self.url is not None
        lines = [b"%b %b HTTP/1.1" % (self.parser.get_method(), self.url)]
        lines += [b"%b: %b" % one for one in self.fields.items() if one[0] != b"upgrade"]
        self.data = b"\r\n".join([*lines, b"", rest + self.data])
        self.url, self.fields, self.parser = None, {}, HttpRequestParser(self)

    # -- what the parser calls ---------------------------------------------------------

    def on_url(self, part: bytes) -> None:
        self.url = part if self.url is None else self.url + part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.request is not None:
            return  # a trailer, which nobody reads
        name, fields = name.lower(), self.fields
        if name in fields:
            if name == b"host":
                raise HTTPError(400, "The header 'host' occurs twice: send it once.")
            value = b"%b, %b" % (fields[name], value)
        fields[name] = value

    def on_headers_complete(self) -> None:
        parser, fields = self.parser, self.fields
        safe, newest = parser.should_keep_alive(), True
        if not safe or b"connection" in fields:  # else it is HTTP/1.1, which alone need not say so
            version = parser.get_http_version()
            if version not in ("1.0", "1.1"):
                raise other_version()
            newest = version == "1.1"
        if newest and b"host" not in fields:
            raise HTTPError(400, "The header 'Host' is missing.")
        if b"transfer-encoding" in fields:
            if not newest:
                raise HTTPError(400, "HTTP/1.0 has no chunks.")
            if fields[b"transfer-encoding"].strip().lower() != b"chunked":
                raise HTTPError(400, "The only transfer coding is 'chunked'.")
        elif int(fields.get(b"content-length", 0)) > MOST_BODY:
            raise too_long()
        method = parser.get_method().decode()
        if method == "CONNECT":
            raise HTTPError(400, "This agent is no proxy.")
        assert self.url is not None
        path, query = path_and_query(self.url)
        self.request = HTTPRequest(method, path, query, fields, self.connection, safe and newest)

    def on_body(self, part: bytes) -> None:
        assert self.request is not None
        self.request.body += part
        if len(self.request.body) > MOST_BODY:
            raise too_long()

    def on_message_complete(self) -> None:
        request, self.request = self.request, None
        if b"upgrade" in self.fields and self.parser.should_upgrade():
            return
        assert request is not None
        self.ready.append(request)
        self.url, self.fields, self.size = None, {}, 0


def too_long() -> HTTPError:
    return HTTPError(413, f"The body of this request is too long: use {limits.BODY}.")


def other_version() -> HTTPError:
    return HTTPError(505, "Use HTTP/1.1.")


def path_and_query(url: bytes) -> tuple[list[str], str]:
    """The parts of the path, decoded, and the query as it is."""
    target = url.decode("ascii")
    if target.startswith("http://"):
        target = "/" + target[7:].partition("/")[2]
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        raise HTTPError(400, "The path is not valid.")
    parts = path[1:].split("/")
    if "%" in path:
        try:
            parts = [unquote(part, errors="strict") for part in parts]
        except UnicodeDecodeError:
            raise HTTPError(400, "The path is not in UTF-8.") from None
    return parts, query
