"""The daemon: one node, asked by any program over a unix socket.

Requests and answers are lines of JSON (docs/agent.md). What a connection holds or waits for
ends with the connection, so permits come back whatever becomes of the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import stat
from pathlib import Path
from typing import Any

import msgspec

from meshlock.errors import Refused
from meshlock.live.interfaces.node import Node
from meshlock.live.machine import limits
from meshlock.live.machine.limits import GrantNumber, Priority, RequestId, Timeout, Want
from meshlock.live.pools.grants import Grant

LONGEST_LINE = 64 * 1024
WORDS = "acquire, release, status, members, metrics"
LOOKS = 6
"""So often per lease a program that watches its lease is told, if there is news."""

MOST_UNDER_WAY = 1000
"""Requests of one connection that may wait at once."""


class Request(msgspec.Struct, forbid_unknown_fields=True):
    do: str
    id: RequestId | str | None = None  # comes back with the answer
    pool: str = ""
    want: Want = 1
    priority: Priority = 0
    timeout: Timeout | None = None
    grant: GrantNumber = 0
    add: str | None = None  # a member, and likewise
    remove: str | None = None
    watch: bool = False  # tell me whenever the lease of what I acquire is renewed


class Conversation:
    """One connection to the agent."""

    def __init__(self, node: Node, writer: asyncio.StreamWriter) -> None:
        self.node = node
        self.writer = writer
        self.grants: dict[int, Grant] = {}
        self.last_grant = 0
        self.watches: dict[int, asyncio.Task[None]] = {}  # grant: waiting to be told of its loss
        self.tasks: set[asyncio.Task[None]] = set()

    async def talk(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                try:
                    request = limits.decoded(line, Request)
                except Refused as error:
                    self.answer(called(line), ok=False, error="refused", why=str(error))
                    continue
                if len(self.tasks) >= MOST_UNDER_WAY:
                    self.answer(request.id, ok=False, error="refused", why="Too many requests.")
                    continue
                task = asyncio.create_task(self.do(request))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
                await self.writer.drain()
        except (ValueError, ConnectionError):  # a line too long, or a client that died
            pass
        finally:
            under_way = [*self.tasks, *self.watches.values()]
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
            for grant in self.grants.values():
                grant.release()
            self.writer.close()

    def answer(self, number: int | str | None, **fields: Any) -> None:
        if number is not None:
            fields["id"] = number
        self.writer.write(msgspec.json.encode(fields) + b"\n")

    async def do(self, request: Request) -> None:
        try:
            if request.do == "acquire":
                self.answer(request.id, **await self.acquire(request))
            elif request.do == "release":
                self.answer(request.id, **self.release(request))
            elif request.do == "status":
                self.answer(request.id, ok=True, status=self.node.status())
            elif request.do == "members":
                self.answer(request.id, ok=True, members=await self.change_members(request))
            elif request.do == "metrics":
                from meshlock.live.interfaces.exposition import exposition  # an extra

                self.answer(request.id, ok=True, text=exposition(self.node))
            else:
                raise Refused(f"'{request.do}' is none of {WORDS}.")
        except TimeoutError:
            what = "No permits" if request.do == "acquire" else "The members did not change"
            pool = self.node.pools.get(request.pool)
            if pool is None or pool.configuration is None:
                what = f"Nobody told us of a pool '{request.pool}'"
            why = f"{what} within {request.timeout:g} s."
            self.answer(request.id, ok=False, error="timeout", why=why)
        except Refused as error:
            self.answer(request.id, ok=False, error="refused", why=str(error))
        except Exception as error:
            self.node.mesh.mishaps.note("agent")
            why = f"The agent failed on this request ({error!r}): its log says more."
            self.answer(request.id, ok=False, error="failed", why=why)

    async def acquire(self, request: Request) -> dict[str, Any]:
        with self.node.visited(request.pool) as pool:
            grant = await pool.acquire(
                request.want, priority=request.priority, timeout=request.timeout
            )
        self.last_grant += 1
        self.grants[self.last_grant] = grant
        watching = self.watch(self.last_grant, grant, request.watch)
        watch = self.node.mesh.mishaps.mind("agent", asyncio.create_task(watching))
        self.watches[self.last_grant] = watch
        return {
            "ok": True,
            "grant": self.last_grant,
            "fence": grant.fence,
            "want": grant.want,
            "lease": grant.lease,
            "until": grant.deadline,
        }

    async def change_members(self, request: Request) -> list[str]:
        with self.node.visited(request.pool) as pool:
            return await pool.change_members(
                add=request.add, remove=request.remove, timeout=request.timeout
            )

    async def watch(self, number: int, grant: Grant, renewals: bool) -> None:
        """Say when the grant is lost and, if asked to, until when it is not."""
        told, pause = grant.deadline, None
        if renewals and grant.lease is not None:
            pause = grant.lease / LOOKS
        while not grant.lost.is_set():
            try:
                async with asyncio.timeout(pause):
                    await grant.lost.wait()
            except TimeoutError:
                until = grant.deadline
                if until is not None and until != told:
                    told = until
                    self.answer(None, event="lease", grant=number, lease=grant.lease, until=until)
        del self.grants[number], self.watches[number]
        self.answer(None, event="lost", grant=number)

    def release(self, request: Request) -> dict[str, Any]:
        grant = self.grants.pop(request.grant, None)
        if grant is None:
            raise Refused(f"There is no grant {request.grant} on this connection.")
        self.watches.pop(request.grant).cancel()
        grant.release()
        return {"ok": True}


def called(line: bytes) -> int | str | None:
    """The id of a request that cannot be carried out, so that its sender knows which it was."""
    number = limits.loosely(line).get("id")
    if isinstance(number, str) or type(number) is int:
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.convert(number, RequestId | str)
    return None


async def serve(node: Node, place: str) -> asyncio.Server:
    """Answer at this socket; whoever may write to it may use the agent."""
    path = Path(place)
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_unix_connection(place)
            writer.close()
            raise Refused(f"An agent answers at {place} already: stop it, or use --socket.")
        path.unlink()  # of an agent that was killed

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(asyncio.CancelledError):  # we end: nothing to complain of
                await Conversation(node, writer).talk(reader)
        except Exception:
            node.mesh.mishaps.note("agent")

    try:
        server = await asyncio.start_unix_server(connected, place, limit=LONGEST_LINE)
    except OSError as error:
        raise Refused(f"Cannot answer at {place}: {error.strerror}.") from None
    path.chmod(0o660)
    return server
