"""What clients of the agent hold: sessions, which end with a connection, and grants with a ttl."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from meshlock.live.interfaces import messages
from meshlock.live.pools.grants import Grant

LOOKS = 6
"""So often per lease a session is notified, if anything changed."""

MOST_EVENTS = 10_000
"""That a session keeps until its client asks for them."""


class Session:
    """What one connection holds, and what it should know of that."""

    def __init__(self, name: str, sessions: dict[str, Session]) -> None:
        self.name = name
        self.sessions = sessions  # all there are
        sessions[name] = self
        self.grants: dict[str, Grant] = {}
        self.last_grant = 0
        self.events: list[messages.Event] = []
        self.last_event = 0
        self.over = False
        self.leases: dict[str, float] | None = None  # if renewals are sent, too: the last ones
        self.rests = 0.0  # seconds between two looks at them
        self.news = asyncio.Event()

    def notify(self, event: str, grant: str, until: float | None = None) -> None:
        self.last_event += 1
        self.events.append(messages.Event(self.last_event, event, grant, until))
        del self.events[:-MOST_EVENTS]
        self.news.set()

    def after(self, number: int) -> list[messages.Event]:
        """Those up to this number are known."""
        self.events = [event for event in self.events if event.number > number]
        return self.events

    async def wait(self, seconds: float) -> None:
        self.news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.news.wait()

    def shortest(self) -> float | None:
        """Seconds of the lease that ends first."""
        leases = [lease for grant in self.grants.values() if (lease := grant.lease) is not None]
        return min(leases, default=None)

    def note_lease(self, name: str, until: float, lease: float) -> None:
        """The client has this from the answer; the next look must come in time."""
        if self.leases is not None:
            self.leases[name] = until
            if lease * 2 < self.rests * LOOKS:
                self.news.set()

    def send_leases(self, told: dict[str, float]) -> None:
        for name, grant in self.grants.items():
            until = grant.until
            if until is not None and told.get(name) != until:
                told[name] = until
                self.notify("lease", name, until)

    @property
    def held(self) -> bool:
        return bool(self.grants)

    def release(self) -> None:
        """It ends, and so do its grants."""
        del self.sessions[self.name]
        self.over = True
        for grant in list(self.grants.values()):
            grant.release()
        self.news.set()


class Leased:
    """A grant that belongs to no session: its time to live, and what happens when that is over."""

    def __init__(self, grant: Grant, ttl: float, later: Callable[..., Any]) -> None:
        self.grant = grant
        self.ttl = ttl
        self.later = later
        self.timer = later(ttl, "http", grant.release)

    def renew(self) -> None:
        self.timer.cancel()
        self.timer = self.later(self.ttl, "http", self.grant.release)
