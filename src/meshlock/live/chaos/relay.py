"""A wire that can be cut: passes one address on to another, for demonstrations and tests.

``cut`` is the cable in the ditch: both sides keep their connections and hear nothing.
``deafen`` is the weak radio: the end that dialled hears nothing, and is heard.
``reset`` is the router that restarts: connections break, new ones are possible at once.
"""

from __future__ import annotations

import asyncio


class Relay:
    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.whole = asyncio.Event()
        self.whole.set()
        self.answers = asyncio.Event()  # is what the target says passed on?
        self.answers.set()
        self.writers: set[asyncio.StreamWriter] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.server: asyncio.Server | None = None
        self.address = ""

    async def start(self) -> Relay:
        self.server = await asyncio.start_server(self.connected, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        return self

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        self.writers.add(writer)
        try:
            await self.whole.wait()
            there, back = await asyncio.open_connection(*self.target)
            self.writers.add(back)
            try:
                await asyncio.gather(
                    self.pump(reader, back, self.whole), self.pump(there, writer, self.answers)
                )
            finally:
                self.writers.discard(back)
                back.close()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(task)
            self.writers.discard(writer)
            writer.close()

    async def pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, passes: asyncio.Event
    ) -> None:
        while data := await source.read(65536):
            await passes.wait()
            if sink.is_closing():  # the connection broke while its bytes were held up
                return
            sink.write(data)
        await passes.wait()  # nor does the end of a connection pass a cut
        sink.close()

    def cut(self) -> None:
        self.whole.clear()
        self.answers.clear()

    def deafen(self) -> None:
        self.answers.clear()

    def heal(self) -> None:
        self.whole.set()
        self.answers.set()

    def reset(self) -> None:
        for writer in list(self.writers):
            writer.transport.abort()

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
