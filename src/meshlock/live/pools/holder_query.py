"""Where the token is and what is free there, asked of whoever has it.

A node answers for itself: the token is here, or was last heard of there; whoever asks follows. The
question is routed, best effort, and asked again until somebody answers.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import msgspec

from meshlock.algorithms.actor import NIL
from meshlock.live.links.frames import UNREADABLE, BadFrame, Content
from meshlock.live.machine.limits import Count, Share, Urgency, Word
from meshlock.live.pools.views import towards

if TYPE_CHECKING:
    from meshlock.live.pools.pool import LocalPool

LOOK, SEEN = "look", "seen"

WITHIN = 1.0
"""Seconds after which whoever asked is told that the holder did not answer."""

PATIENCE = 0.1
"""Seconds until a question is asked again."""

MOST_ASKED = 10_000


class Seen(msgspec.Struct, array_like=True, frozen=True):
    """``towards``: who had the token when it was last heard of, or knows more. ``top``: the
    most urgent that waits where the token is, None if nobody does."""

    question: Count
    here: bool
    towards: Word
    free: Share
    top: Urgency | None

    def refuses(self, want: int, urgency: int) -> str:
        """Why so many permits cannot be had at once; the empty text if they can."""
        if self.free < want:
            return f"{self.free} free, {want} wanted"
        if self.top is not None and self.top >= urgency:
            return f"{self.free} free, {want} wanted, and other requests are ahead"
        return ""


_encode = msgspec.msgpack.Encoder().encode
_question = msgspec.msgpack.Decoder(Count).decode
_seen = msgspec.msgpack.Decoder(Seen).decode


class HolderQuery:
    def __init__(self, pool: LocalPool) -> None:
        self.pool = pool
        self.last = 0
        self.asked: dict[int, tuple[str, asyncio.Future[Seen]]] = {}  # and whom

    def here(self, question: int = 0) -> Seen:
        """What this node knows itself."""
        pool = self.pool
        core = pool.adapter.before()
        held = core.tokens() > 0
        towards = "" if held else self.pointer()
        free = core.free_permits() if held else 0
        return Seen(question, held, towards, free, core.known_priority() if held else None)

    async def find(self) -> Seen | None:
        """What the holder says; None if nobody who has the token answers."""
        loop = self.pool.mesh.loop
        end = loop.time() + WITHIN
        seen = self.here()
        while not seen.here:
            asked = seen.towards
            left = end - loop.time()
            if left <= 0:
                return None
            answer = await self.ask(asked, min(left, PATIENCE)) if asked else None
            if answer is None or (not answer.here and answer.towards in ("", self.pool.me, asked)):
                await asyncio.sleep(min(left, PATIENCE / 10))  # the token is under way
                answer = self.here()
                if not answer.here and answer.towards in ("", asked):
                    answer = msgspec.structs.replace(answer, towards=self.anybody())
            seen = answer
        return seen

    def pointer(self) -> str:
        """Who has the token, or knows more."""
        pool = self.pool
        if pool.members is None:
            return towards(pool) or ""
        node = pool.members.node
        for number in (node.member.holding.holder, node.timers.holder()):
            if number not in (NIL, node.me) and number not in node.member.unreachable:
                return pool.adapter.names.get(number, "")
        return self.anybody()

    def anybody(self) -> str:
        """Renewals tell members where the token is; without members, neighbours may know."""
        pool = self.pool
        if pool.members is None:
            return random.choice(sorted(pool.peers.near) or [""])
        node = pool.members.node
        others = [
            one
            for one in node.member.members
            if one != node.me and one not in node.member.unreachable
        ]
        return pool.adapter.names.get(random.choice(others), "") if others else ""

    async def ask(self, node: str, within: float) -> Seen | None:
        if len(self.asked) >= MOST_ASKED:
            return None
        pool, mesh = self.pool, self.pool.mesh
        self.last += 1
        question = self.last
        future: asyncio.Future[Seen] = mesh.loop.create_future()
        self.asked[question] = (node, future)
        try:
            mesh.router.send(node, Content(pool.name, pool.identity, LOOK, _encode(question)))
            mesh.flush()
            async with asyncio.timeout(within):
                return await future
        except TimeoutError:
            return None
        finally:
            del self.asked[question]

    def receive(self, sender: str, kind: str, payload: bytes) -> None:
        pool = self.pool
        try:
            if kind == LOOK:
                answer = _encode(self.here(_question(payload)))
                pool.mesh.router.send(sender, Content(pool.name, pool.identity, SEEN, answer))
                return
            seen = _seen(payload)
        except UNREADABLE as error:
            raise BadFrame(f"a {kind} with wrong fields: {error}") from None
        asked, future = self.asked.get(seen.question, ("", None))
        if asked == sender and future is not None and not future.done():
            future.set_result(seen)
