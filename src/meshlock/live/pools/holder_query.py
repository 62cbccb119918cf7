"""Where the token is and what is free there, asked of its holder.

A node answers for itself: the token is here, or was last heard of there; the question follows. It
is routed, best effort, and asked again until a node answers. No answer grants anything: the request
that follows does.
"""

from __future__ import annotations

import asyncio
import random
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from meshlock.algorithms.actor import NIL
from meshlock.live.links.frames import reader
from meshlock.live.machine.limits import Count, Share, Urgency, Word
from meshlock.live.pools.adapter import Adapter
from meshlock.live.pools.questions import Questions
from meshlock.live.pools.views import View, Views, towards

if TYPE_CHECKING:
    from meshlock.live.pools.pool import LocalPool

LOOK, SEEN = "look", "seen"

WITHIN = 1.0  # seconds after which the client is told that the holder did not answer
PATIENCE = 0.1  # seconds until a question is asked again
MOST_ASKED = 10_000

LOST_AFTER = 10.0
"""Seconds after which a token that no node has seen is said to be lost; without leases only."""


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
        pool.participation.within_pool |= {LOOK: self.answer, SEEN: self.learn}

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
        others = {*node.member.members} - node.member.unreachable - {node.me}
        return pool.adapter.names.get(random.choice([*others]), "") if others else ""

    async def ask(self, node: str, within: float) -> Seen | None:
        if len(self.questions.asked) >= MOST_ASKED:
            return None
        with self.questions.ask(node) as (number, future):
            self.pool.adapter.route(node, LOOK, number)
            await asyncio.wait([future], timeout=within)
            return future.result() if future.done() else None

    def answer(self, sender: str, payload: bytes) -> None:
        self.pool.adapter.route(sender, SEEN, self.here(read_question(payload)))

    def learn(self, sender: str, payload: bytes) -> None:
        seen = read_seen(payload)
        self.questions.answered(sender, seen.question, seen)


class TokenWatch:
    """Without leases no node replaces a token that is lost: at least that is said."""

    def __init__(self, adapter: Adapter, views: Views) -> None:
        self.adapter = adapter
        self.views = views
        self.unseen = 0.0  # seconds for which no node within reach has had it, if that is long
        self.since = 0.0  # when the pool became known here
        self.watching: asyncio.Task[None] | None = None

    def unseen_here(self) -> float:
        """Seconds since the token was here last, or since the pool is known here."""
        core = self.adapter.core
        if core is None or core.tokens() > 0:
            return 0.0
        return monotonic() - max(self.adapter.measures.token_seen or 0.0, self.since)

    def begin(self) -> None:
        if self.watching is None:
            self.watching = self.adapter.mesh.start(self.watch(), "pool")

    async def watch(self) -> None:
        """All nodes within reach are asked when the token has not been here for long."""
        while True:
            await asyncio.sleep(LOST_AFTER / 5)
            views: dict[str, View] = {}
            try:
                if self.unseen_here() > LOST_AFTER / 2:
                    views = await self.views.collect(self.adapter.name)
            except Exception:
                self.adapter.mesh.failures.note("pool")
            all_answer = views.keys() >= {*self.views.others()}
            unseen = [view.unseen for view in views.values() if view.known]
            self.unseen = min(unseen, default=0.0) if all_answer else 0.0

    def lost(self) -> str:
        """That the token is lost, as far as can be told; else nothing."""
        if self.unseen < LOST_AFTER:
            return ""
        return (
            f"The token of {self.adapter.name} was not seen for {self.unseen:.0f} s: the node "
            "that had it crashed or is unreachable. If it does not return, reset the "
            "pool."
        )

    def close(self) -> None:
        if self.watching is not None:
            self.watching.cancel()
