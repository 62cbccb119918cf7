"""The page's handlers inside a browser tab: ``page/worker.js`` calls them, and no server is there.

There are no threads. What takes long gives way now and then, and is cancelled like any task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from meshlock.live.interfaces.site import HTTPRequest, Response, Site
from meshlock.web.desk import Desk
from meshlock.web.editor import Editor


class Tab:
    def __init__(self) -> None:
        desk = Desk()
        self.site = Site([*desk.routes(), *Editor(desk.shelf).routes()])
        self.tasks: dict[int, asyncio.Task[None]] = {}

    def call(self, number: int, asked: str, body: Any, *tell: Callable[..., None]) -> None:
        """A request of the page; ``asked`` is its method, path and headers, as JSON. ``tell`` is
        called with the head of the answer, with every part of its body, and when it ends."""
        method, url, headers = msgspec.json.decode(asked, type=tuple[str, str, dict[str, str]])
        path, _, query = url.partition("?")
        parts = [unquote(part) for part in path[1:].split("/")]
        fields = {name.lower().encode(): text.encode() for name, text in headers.items()}
        connection = cast("Any", None)  # there is none
        request = HTTPRequest(method, parts, query, fields, connection, body=body.to_bytes())
        self.tasks[number] = asyncio.ensure_future(self.answer(request, *tell))
        self.tasks[number].add_done_callback(lambda _: self.tasks.pop(number))

    def stop(self, number: int) -> None:
        if number in self.tasks:
            self.tasks[number].cancel()

    async def answer(
        self,
        request: HTTPRequest,
        head: Callable[[int, str], None],
        part: Callable[[bytes], None],
        end: Callable[[], None],
    ) -> None:
        answer = await self.response(request)
        head(answer.status, answer.kind)
        if answer.stream is None:
            part(answer.body)
        else:
            async for piece in answer.stream:
                part(piece)
        end()

    async def response(self, request: HTTPRequest) -> Response:
        try:
            answer = self.site.find(request).handler(request)
            return await answer if isinstance(answer, Awaitable) else answer
        except Exception as error:
            return self.site.refusal(error)
