"""A link that is silent is used once per heartbeat; one that is not has its Beats go along."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from meshlock.live.links.frames import FRAME_LIMIT, Beat, Carry, Content
from meshlock.live.links.link import Keeper, LinkConnection, Splitter
from meshlock.live.links.session import LinkSession

MESSAGE = Content("docks", 7, "REQUEST", b"\x90")


class Wire:
    """Stands in for a transport, and for the mesh: what was written, write by write."""

    def __init__(self) -> None:
        self.writes: list[list[type]] = []
        self.now = 0

    def write(self, data: bytes) -> None:
        self.writes.append([type(frame) for frame in Splitter(FRAME_LIMIT).feed(data)])

    def time(self) -> float:
        return self.now / 1e9

    def clock(self) -> int:
        self.now += 1
        return self.now

    def taken(self) -> list[list[type]]:
        writes, self.writes = self.writes, []
        return writes


def played(story: Callable[[LinkConnection, LinkSession, Wire], None]) -> None:
    async def play() -> None:
        wire, session = Wire(), LinkSession("a", 1, "b")
        connection = LinkConnection(cast(Keeper, wire), dialled=True)
        connection.session = session
        connection.transport = cast(Any, wire)
        session.begin(1)
        story(connection, session, wire)

    asyncio.run(play())


def say(connection: LinkConnection, session: LinkSession) -> None:
    connection.push(session, session.send(MESSAGE, custody=False))


def test_a_silent_link_is_used_once_per_heartbeat() -> None:
    def story(connection: LinkConnection, session: LinkSession, wire: Wire) -> None:
        for _ in range(5):
            connection.tick(patient=True)
            assert wire.taken() == [[Beat]]

    played(story)


def test_where_messages_leave_all_the_time_no_beat_leaves_alone() -> None:
    def story(connection: LinkConnection, session: LinkSession, wire: Wire) -> None:
        for _ in range(5):
            say(connection, session)
            connection.flush()
            say(connection, session)
            connection.flush()
            connection.tick(patient=True)
        writes = wire.taken()
        assert writes == [[Carry], [Carry]] + 4 * [[Carry, Beat], [Carry]]

    played(story)


@pytest.mark.parametrize("messages", [1, 3])
def test_a_link_that_falls_silent_is_used_by_the_next_heartbeat(messages: int) -> None:
    def story(connection: LinkConnection, session: LinkSession, wire: Wire) -> None:
        for _ in range(messages):
            say(connection, session)
            connection.flush()
        connection.tick(patient=True)
        wire.taken()
        for _ in range(3):
            connection.tick(patient=True)
            assert wire.taken() == [[Beat]]

    played(story)


def test_who_is_impatient_hears_a_beat_with_every_heartbeat() -> None:
    def story(connection: LinkConnection, session: LinkSession, wire: Wire) -> None:
        for _ in range(3):
            say(connection, session)
            connection.flush()
            connection.tick(patient=False)
            assert wire.taken() == [[Carry], [Beat]]

    played(story)


def test_what_is_not_urgent_leaves_with_the_next_heartbeat_at_the_latest() -> None:
    def story(connection: LinkConnection, session: LinkSession, wire: Wire) -> None:
        say(connection, session)
        connection.tick(patient=True)
        assert wire.taken() == [[Carry, Beat]]

    played(story)


def test_a_beat_that_goes_along_acknowledges_what_has_come() -> None:
    def story(connection: LinkConnection, session: LinkSession, wire: Wire) -> None:
        say(connection, session)
        connection.flush()
        connection.tick(patient=True)
        session.received = 12
        say(connection, session)
        session.received = 13
        connection.flush()
        assert wire.taken()[-1] == [Carry, Beat]
        assert session.told == 13

    played(story)
