"""HTTP as it comes: in parts, at once, malformed, too long, too slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast

import pytest

from meshlock.errors import Refused
from meshlock.live.interfaces import server
from meshlock.live.interfaces.places import Caller
from meshlock.live.interfaces.site import HTTPError, HTTPRequest, Response, Route, Site, answer
from waiting import eventually, run

waiting: list[str] = []


async def slow(request: HTTPRequest) -> Response:
    waiting.append("came")
    try:
        await asyncio.Event().wait()
    finally:
        waiting.append("gone")
    return answer({})


async def soon(request: HTTPRequest) -> Response:
    await asyncio.sleep(0)
    return answer({})


async def parts() -> AsyncGenerator[bytes, None]:
    for number in range(3):
        yield b"part %d\n" % number
        yield b""  # nothing at the moment is not the end


def broken(request: HTTPRequest) -> Response:
    raise RuntimeError("oh")


def refusing(request: HTTPRequest) -> Response:
    raise Refused("No.")


def body(request: HTTPRequest) -> Response:
    return Response(request.body, "text/plain")


LARGE = 100_000
ROUTES = [
    Route("GET", "/", lambda _: answer("start")),
    Route("POST", "/body", body),
    Route("GET", "/names/{name}/of/{other}", lambda request: answer(request.parameters)),
    Route("GET", "/asked", lambda request: answer(request.asked)),
    Route("GET", "/slow", slow),
    Route("GET", "/soon", soon),
    Route("GET", "/parts", lambda _: Response(kind="text/plain", stream=parts())),
    Route("GET", "/large", lambda _: Response(b"x" * LARGE, "text/plain")),
    Route("GET", "/always", lambda _: answer("here"), always=True),
    Route("GET", "/broken", broken),
    Route("GET", "/refusing", refusing),
    Route("DELETE", "/refusing", lambda _: Response(status=204)),
]


@asynccontextmanager
async def served(most: int = 1000) -> AsyncIterator[int]:
    site = Site(ROUTES)
    found = await server.serve_port(site, "127.0.0.1", 0)
    found.places.most = most
    yield found.listeners[0].getsockname()[1]
    await found.close()


async def said(port: int, *pieces: bytes) -> bytes:
    """All that is answered to these pieces, each sent by itself; the last must end it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)
    found = await reader.read()
    writer.close()
    return found


def get(path: str, *headers: str, method: str = "GET", last: bool = True) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers, *(["Connection: close"] * last)]
    return "\r\n".join([*lines, "", ""]).encode()


def test_requests_in_one_piece_and_in_many() -> None:
    async def story() -> None:
        async with served() as port:
            two = get("/names/a%20b/of/c%2Fd", last=False) + get("/asked?x=1&y=%C3%A4&x=2")
            for pieces in ([two], [two[i : i + 1] for i in range(len(two))]):
                found = await said(port, *pieces)
                assert found.count(b"HTTP/1.1 200 OK\r\n") == 2
                assert b'{"name":"a b","other":"c/d"}' in found
                assert '{"x":"2","y":"ä"}'.encode() in found

    run(story)


class Pipe:
    """Where answers go."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)


def test_a_stream_that_ends_with_its_connection_writes_no_more() -> None:
    """As where the session ends just then: what waits for its news may not see that it is
    cancelled."""

    async def until_cancelled() -> AsyncGenerator[bytes, None]:
        yield b"begun"
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    async def story() -> None:
        endless = Route("GET", "/", lambda _: Response(kind="text/plain", stream=until_cancelled()))
        found = server.Server(Site([endless]), None)
        connection, pipe = server.ServedConnection(found), Pipe()
        connection.connection_made(cast(asyncio.Transport, pipe))
        connection.receive(get("/", last=False))
        await eventually(lambda: pipe.writes and pipe.writes[-1].endswith(b"begun\r\n"))
        pipe.writes.clear()
        task = connection.task
        connection.connection_lost(None)
        assert task is not None
        await task
        assert pipe.writes == []
        found.sweeping.cancel()

    run(story)


def test_an_answer_that_nobody_waits_for_leaves_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def statuses(data: bytes) -> list[bytes]:
        return [part[:3] for part in data.split(b"HTTP/1.1 ")[1:]]

    async def story() -> None:
        found = server.Server(Site(ROUTES), None)
        connection, pipe = server.ServedConnection(found), Pipe()
        connection.connection_made(cast(asyncio.Transport, pipe))
        later = get("/refusing", "Prefer: answer-later", method="DELETE", last=False)
        connection.receive(later + later)
        assert pipe.writes == []
        connection.receive(get("/", last=False))
        assert [statuses(data) for data in pipe.writes] == [[b"204", b"204", b"200"]]
        pipe.writes.clear()
        connection.receive(get("/soon", last=False) + later)
        await eventually(lambda: pipe.writes)  # one that is waited for does not wait for it
        assert [statuses(data) for data in pipe.writes] == [[b"200", b"204"]]
        pipe.writes.clear()
        connection.receive(later + get("/parts", last=False))
        await eventually(lambda: pipe.writes and pipe.writes[-1] == b"0\r\n\r\n")
        assert statuses(b"".join(pipe.writes)) == [b"204", b"200"]
        pipe.writes.clear()
        monkeypatch.setattr(server, "MOST_UNSENT", 100)
        connection.receive(later + later)
        assert [statuses(data) for data in pipe.writes] == [[b"204", b"204"]]
        found.sweeping.cancel()

    run(story)


def test_bodies_of_a_length_and_in_chunks() -> None:
    async def story() -> None:
        async with served() as port:
            whole = get("/body", "Content-Length: 5", method="POST") + b"hello"
            assert (await said(port, whole)).endswith(b"\r\n\r\nhello")
            head = get("/body", "Transfer-Encoding: chunked", method="POST")
            chunked = head + b"3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
            for pieces in ([chunked], [chunked[i : i + 1] for i in range(len(chunked))]):
                assert (await said(port, *pieces)).endswith(b"\r\n\r\nhello")
            expects = get("/body", "Content-Length: 5", "Expect: 100-continue", method="POST")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(expects)
            assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
            writer.write(b"hello")
            assert (await reader.read()).endswith(b"\r\n\r\nhello")
            writer.close()

    run(story)


def test_a_protocol_that_a_client_offers_is_declined() -> None:
    """As Java's client offers HTTP/2, with a body that is in HTTP/1.1 all the same."""

    async def story() -> None:
        async with served() as port:
            offer = ["Upgrade: h2c", "Connection: Upgrade", "HTTP2-Settings: AAE"]
            asked = get("/body", *offer, "Content-Length: 5", method="POST", last=False) + b"hello"
            asked += get("/asked?x=1", *offer, last=False)
            for pieces in (
                [asked + get("/")],
                [*(asked[i : i + 1] for i in range(len(asked))), get("/")],
            ):
                found = await said(port, *pieces)
                assert found.count(b"HTTP/1.1 200 OK\r\n") == 3
                assert b"\r\n\r\nhello" in found and b'{"x":"1"}' in found

    run(story)


def test_a_stream_comes_in_chunks_and_head_says_what_get_would() -> None:
    async def story() -> None:
        async with served() as port:
            found = await said(port, get("/parts"))
            assert found.endswith(b"7\r\npart 0\n\r\n7\r\npart 1\n\r\n7\r\npart 2\n\r\n0\r\n\r\n")
            found = await said(port, get("/", method="HEAD"))
            assert b"Content-Length: 7\r\n" in found and found.endswith(b"\r\n\r\n")
            found = await said(port, get("/refusing", method="DELETE"))
            assert found.startswith(b"HTTP/1.1 204 ") and b"Content-Length" not in found

    run(story)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (get("/nowhere"), 404),
        (get("/names/methods/of/*"), 200),
        (get("/methods"), 404),
        (get("/*"), 404),
        (get("/refusing"), 400),
        (get("/broken"), 500),
        (get("/", method="POST"), 405),
        (get("/", method="PATCH"), 405),
        (get("/", method="BREW"), 400),  # which is no method of HTTP
        (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET / HTTP/1.0\r\n\r\n", 200),
        (b"GET http://x/asked?y=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),
        (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505),
        (b'{"do": "status"}\r\n\r\n', 400),
        (b"GET  / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),  # read in one way only
        (b"GET /\r\n\r\n", 505),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\na b: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nname : y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5x\r\n\r\n", 400),
        (b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (
            b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400),
        (b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
        (b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n", 400),
        (b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n", 413),
        (
            b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n"
            + b"x" * 65537,
            413,
        ),
        (
            b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: "
            + b"x" * 200_000,
            413,
        ),
        (
            b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;"
            + b"x" * 200_000,
            413,
        ),
        (b"POST /body HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 20_000, 431),
    ],
)
def test_what_is_answered_to_odd_requests(request_: bytes, status: int) -> None:
    async def story() -> None:
        async with served() as port:
            found = await said(port, request_)
            assert found.split(b" ")[1] == str(status).encode()
            head, _, text = found.partition(b"\r\n\r\n")
            if status == 405:
                assert b"\r\nAllow: GET, HEAD\r\n" in head
            if status >= 400:
                assert text.startswith(b'{"why":"') and text.endswith(b'."}')

    run(story)


def test_a_handler_whose_client_hangs_up_is_cancelled() -> None:
    async def story() -> None:
        waiting.clear()
        async with served() as port:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(get("/slow"))
            await eventually(lambda: waiting == ["came"])
            writer.close()
            await eventually(lambda: waiting == ["came", "gone"])

    run(story)


def test_whoever_is_slow_or_asleep_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SLOW", 0.02)
    monkeypatch.setattr(server, "IDLE", 0.05)

    async def story() -> None:
        async with served() as port:
            for begun in (b"GET / HT", get("/body", "Content-Length: 5", method="POST"), b""):
                with suppress(ConnectionResetError):  # it was not even read
                    assert await said(port, begun) == b""

    run(story)


def test_many_requests_at_once_do_not_keep_others_waiting() -> None:
    async def story() -> None:
        found = server.Server(Site(ROUTES), None)
        pipes = [Pipe() for _ in range(3)]
        owners = [Caller(1, 1), Caller(1, 2), Caller(2, 1)]
        greedy, *others = (server.ServedConnection(found, owner) for owner in owners)
        for connection, pipe in zip([greedy, *others], pipes, strict=True):
            connection.connection_made(cast(asyncio.Transport, pipe))
        asked = get("/", last=False)
        greedy.receive(asked * 100)
        for connection in others:
            connection.receive(asked)
        count = [b"".join(pipe.writes).count(b" 200 OK") for pipe in pipes]
        assert count == [server.AT_ONCE, 0, 0], "the loop has its turn first"
        await asyncio.sleep(0)
        count = [b"".join(pipe.writes).count(b" 200 OK") for pipe in pipes]
        assert count[0] < 100 and count[1:] == [1, 1]
        await eventually(lambda: b"".join(pipes[0].writes).count(b" 200 OK") == 100)
        found.sweeping.cancel()

    run(story)


def test_whoever_reads_no_answers_gets_no_more_of_them() -> None:
    async def story() -> None:
        found = await server.serve_port(Site(ROUTES), "127.0.0.1", 0)
        port = found.listeners[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1000)
        asked = get("/large", last=False) * 1000
        writer.write(asked)
        await eventually(lambda: found.connections)
        (connection,) = found.connections
        await eventually(lambda: not connection.writable.is_set())
        size = connection.transport.get_write_buffer_size()
        assert size + len(connection.unsent) < 3 * LARGE + server.MOST_UNSENT
        assert len(connection.reader.data) <= len(asked)
        writer.write(get("/"))
        answers = (await reader.read()).count(b"HTTP/1.1 200 OK")
        assert answers == 1001
        writer.close()
        await found.close()

    run(story)


def test_more_connections_than_there_may_be() -> None:
    async def story() -> None:
        async with served(most=2) as port:
            two = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            for _, writer in two:
                writer.write(get("/", last=False))
            for reader, _ in two:
                assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            assert (await said(port, get("/"))).startswith(b"HTTP/1.1 503 ")
            assert b" 200 " in await said(port, get("/always", last=False))
            for _, writer in two:
                writer.close()

    run(story)


def test_an_error_has_its_headers() -> None:
    found = Site([]).refusal(HTTPError(401, "No.", {"WWW-Authenticate": "Bearer"}))
    assert (found.status, found.headers) == (401, {"WWW-Authenticate": "Bearer"})
