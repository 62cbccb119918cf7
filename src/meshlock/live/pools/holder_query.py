"""Where the token is and what is free there, asked of its holder.

A node answers for itself: the token is here, or was last heard of there; the question follows. It
is routed, best effort, and asked again until a node answers.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import msgspec

from meshlock.algorithms.actor import NIL
from meshlock.live.links.frames import reader
from meshlock.live.machine.limits import Count, Share, Urgency, Word
from meshlock.live.pools.questions import Questions
from meshlock.live.pools.views import towards

if TYPE_CHECKING:
    from meshlock.live.pools.pool import LocalPool

LOOK, SEEN = "look", "seen"

WITHIN = 1.0  # seconds after which the client is told that the holder did not answer
PATIENCE = 0.1  # seconds until a question is asked again
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
        """Why this number of permits cannot be had at once; the empty text if it can."""
        if self.free < want:
            return f"{self.free} free, {want} wanted"
        if self.top is not None and self.top >= urgency:
            return f"{self.free} free, {want} wanted, and other requests are ahead"
        return ""


read_question = reader(Count, f"a {LOOK}")
read_seen = reader(Seen, f"a {SEEN}")


class HolderQuery:
    def __init__(self, pool: LocalPool) -> None:
        self.pool = pool
        self.questions: Questions[Seen] = Questions()

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
        if pool.adapter.members is None:
            return towards(pool) or ""
        node = pool.adapter.members.node
        for number in (node.member.holding.holder, node.timers.holder()):
            if number not in (NIL, node.me) and number not in node.member.unreachable:
                return pool.adapter.names.get(number, "")
        return self.anybody()

    def anybody(self) -> str:
        """Renewals tell members where the token is; without members, neighbours may know."""
        pool = self.pool
        if pool.adapter.members is None:
            return random.choice(sorted(pool.peers.near) or [""])
        node = pool.adapter.members.node
        others = [
            one
            for one in node.member.members
            if one != node.me and one not in node.member.unreachable
        ]
        return pool.adapter.names.get(random.choice(others), "") if others else ""

    async def ask(self, node: str, within: float) -> Seen | None:
        if len(self.questions.asked) >= MOST_ASKED:
            return None
        with self.questions.ask(node) as (number, future):
            self.pool.adapter.route(node, LOOK, number)
            await asyncio.wait([future], timeout=within)
            return future.result() if future.done() else None

    def receive(self, sender: str, kind: str, payload: bytes) -> None:
        if kind == LOOK:
            self.pool.adapter.route(sender, SEEN, self.here(read_question(payload)))
        else:
            seen = read_seen(payload)
            self.questions.answered(sender, seen.question, seen)
