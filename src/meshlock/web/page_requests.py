"""What people ask for from the page: permits that go back when the page goes away."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from meshlock.errors import Refused
from meshlock.live.interfaces.node import Node
from meshlock.live.pools.grants import Grant

ABANDONED_AFTER = 15.0
"""Seconds without the page that asked: then it counts as closed."""

MOST = 100
KEPT = 60.0
"""Seconds for which the end of an errand is still shown."""


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
            "errand": self.name,
            "pool": self.pool,
            "want": self.want,
            "priority": self.priority,
            "state": self.state,
            "why": self.why,
            "fence": str(self.grant.fence) if self.grant and self.grant.fence else None,
        }


class PageRequests:
    def __init__(self, node: Node) -> None:
        self.node = node
        self.all: dict[str, PageRequest] = {}
        self.sweeping: asyncio.TimerHandle | None = None

    def start(self, pool: str, want: int, priority: int) -> PageRequest:
        if sum(not errand.over for errand in self.all.values()) >= MOST:
            raise Refused(f"{MOST} requests from the page are open: withdraw or release some.")
        if pool not in self.node.pools:
            raise Refused(f"This node has no pool '{pool[:64]}'.")
        self.node.pools[pool].refuse_impossible(want, priority)
        errand = PageRequest(secrets.token_urlsafe(9), pool, want, priority)
        self.all[errand.name] = errand
        errand.work = asyncio.get_running_loop().create_task(self.run(errand))
        self.node.mesh.failures.mind("page", errand.work)
        self.sweep_later()
        return errand

    async def run(self, errand: PageRequest) -> None:
        try:
            pool = self.node.pools[errand.pool]
            errand.grant = await pool.acquire(errand.want, priority=errand.priority)
            errand.state = "held"
            if await errand.grant.wait_lost():
                self.end(errand, "lost", "the permits were revoked")
        except Refused as error:
            self.end(errand, "refused", str(error))
        except Exception as error:
            self.end(errand, "refused", f"the agent failed ({error!r})")
            raise

    def give_back(self, name: str, why: str = "") -> PageRequest:
        errand = self.all.get(name)
        if errand is None:
            raise Refused("There is no such request: it has ended.")
        if not errand.over:
            assert errand.work is not None
            errand.work.cancel()
            if errand.grant is not None:
                errand.grant.release()
            self.end(errand, "returned", why)
        return errand

    def end(self, errand: PageRequest, state: str, why: str) -> None:
        errand.state, errand.why = state, why
        errand.seen = asyncio.get_running_loop().time()

    def keep(self, names: list[str]) -> None:
        """The page that asked for these is still there."""
        now = asyncio.get_running_loop().time()
        for name in names:
            errand = self.all.get(name)
            if errand is not None and not errand.over:
                errand.seen = now

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
        for name, errand in list(self.all.items()):
            if errand.over and now - errand.seen > KEPT:
                del self.all[name]
            elif not errand.over and now - errand.seen > ABANDONED_AFTER:
                self.give_back(name, "the page was closed")
