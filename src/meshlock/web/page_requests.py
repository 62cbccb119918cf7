"""What people ask for from the page: permits that go back when the page goes away."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from meshlock.errors import Refused
from meshlock.live.interfaces.local_node import LocalNode
from meshlock.live.pools.grants import Grant, Pool

ABANDONED_AFTER = 15.0
"""Seconds without the page that asked: then it counts as closed."""

MOST = 100
KEPT = 60.0
"""Seconds for which the end of a request is still shown."""


class PageRequest:
    """One request from the page, from asking to the end."""

    def __init__(self, name: str, pool: str, want: int, priority: int) -> None:
        self.name = name
        self.pool = pool
        self.want = want
        self.priority = priority
        self.state = "waiting"  # then held, and in the end: returned, refused or lost
        self.why = ""
        self.grant: Grant | None = None
        self.work: asyncio.Task[None] | None = None
        self.seen = asyncio.get_running_loop().time()

    @property
    def over(self) -> bool:
        return self.state not in ("waiting", "held")

    def describe(self) -> dict[str, Any]:
        return {
            "request": self.name,
            "pool": self.pool,
            "want": self.want,
            "priority": self.priority,
            "state": self.state,
            "why": self.why,
            "fence": str(self.grant.fence) if self.grant and self.grant.fence else None,
        }


class PageRequests:
    def __init__(self, node: LocalNode) -> None:
        self.node = node
        self.all: dict[str, PageRequest] = {}
        self.sweeping: asyncio.TimerHandle | None = None

    def start(self, pool: str, want: int, priority: int) -> PageRequest:
        if sum(not request.over for request in self.all.values()) >= MOST:
            raise Refused(f"{MOST} requests from the page are open: withdraw or release some.")
        if pool not in self.node.pools:
            raise Refused(f"This node has no pool '{pool[:64]}'.")
        self.node.pools[pool].refuse_impossible(want, priority)
        request = PageRequest(secrets.token_urlsafe(9), pool, want, priority)
        self.all[request.name] = request
        request.work = asyncio.get_running_loop().create_task(self.run(request))
        self.node.mesh.failures.mind("page", request.work)
        self.sweep_later()
        return request

    async def run(self, request: PageRequest) -> None:
        try:
            pool = Pool(self.node.registry.use(request.pool))
            request.grant = await pool.acquire(request.want, priority=request.priority)
            request.state = "held"
            if await request.grant.wait_lost():
                self.end(request, "lost", "the permits were revoked")
        except Refused as error:
            self.end(request, "refused", str(error))
        except Exception as error:
            self.end(request, "refused", f"the agent failed ({error!r})")
            raise

    def release(self, name: str, why: str = "") -> PageRequest:
        request = self.all.get(name)
        if request is None:
            raise Refused("There is no such request: it has ended.")
        if not request.over:
            assert request.work is not None
            request.work.cancel()
            if request.grant is not None:
                request.grant.release()
            self.end(request, "released", why)
        return request

    def end(self, request: PageRequest, state: str, why: str) -> None:
        request.state, request.why = state, why
        request.seen = asyncio.get_running_loop().time()

    def mark_seen(self, names: list[str]) -> None:
        """The page that asked for these is still there."""
        now = asyncio.get_running_loop().time()
        for name in names:
            request = self.all.get(name)
            if request is not None and not request.over:
                request.seen = now

    def sweep_later(self) -> None:
        if self.sweeping is None and self.all:
            self.sweeping = self.node.mesh.failures.later(1.0, "page", self.sweep)

    def sweep(self) -> None:
        self.sweeping = None
        try:
            self.end_old()
        finally:
            self.sweep_later()

    def end_old(self) -> None:
        now = asyncio.get_running_loop().time()
        for name, request in list(self.all.items()):
            if request.over and now - request.seen > KEPT:
                del self.all[name]
            elif not request.over and now - request.seen > ABANDONED_AFTER:
                self.release(name, "the page was closed")
