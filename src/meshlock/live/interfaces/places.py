"""Who may be connected: no program keeps the others out, however many connections it opens.

As long as there are places, everybody gets one. When there are none, the user with the most makes
room: the user with the most connections, of its processes the one with the most, of these the
newest connection that holds no permits. That may be the newcomer itself. At a port, where users and
processes are not known, an address counts as a user.

Requests that come faster than they can be answered are taken in turns: one of each user, of its
processes one after the other.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter, deque
from collections.abc import Hashable
from typing import Generic, NamedTuple, Protocol, TypeVar

from meshlock.live.links.admission import site

MOST_FILES = 160_000
"""Of all that the agent may open, no more are asked for and shared out."""

AT_SOCKET, AT_PORT, SPARE = 5 / 8, 1 / 8, 1 / 32
"""Shares of these files. The rest are for links, state and traces."""

MOST_AT_PORT = 1000
MOST_SPARE = 256

CREDENTIALS = struct.Struct("iII")
"""Process, user and group, as Linux says them."""


class Caller(NamedTuple):
    user: Hashable
    process: Hashable = 0

    def __str__(self) -> str:
        if isinstance(self.user, str):
            return f"from {self.user}"
        return f"of user {self.user}, process {self.process}"


NOBODY = Caller("")


def owner_of(connected: socket.socket) -> Caller:
    """Who opened this connection, as the kernel knows it."""
    if connected.family != socket.AF_UNIX:
        return Caller(site(connected.getpeername()[0]))
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return Caller("this machine")
    process, user, _ = CREDENTIALS.unpack(
        connected.getsockopt(socket.SOL_SOCKET, option, CREDENTIALS.size)
    )
    return Caller(user, process)


def room_for_clients(at_socket: bool) -> tuple[int, int]:
    """As many places as the files that this process may open allow, and spare ones, for those who
    have none: they may ask how the agent is, and for a grant."""
    files = files_of_process(ask=at_socket)
    places = int(files * AT_SOCKET) if at_socket else min(MOST_AT_PORT, int(files * AT_PORT))
    return places, max(1, min(MOST_SPARE, int(files * SPARE)))


def files_of_process(ask: bool) -> int:
    """How many it may open; ``ask`` for as many as it may have."""
    import resource

    soft, hard = (
        MOST_FILES if limit == resource.RLIM_INFINITY else min(limit, MOST_FILES)
        for limit in resource.getrlimit(resource.RLIMIT_NOFILE)
    )
    if ask and soft < hard:
        try:
            resource.setrlimit(
                resource.RLIMIT_NOFILE, (hard, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            )
            soft = hard
        except (OSError, ValueError):
            pass  # as under our systemd unit, which has raised it before
    return soft


class Guest(Protocol):
    owner: Caller

    @property
    def holds(self) -> bool:
        """Are permits lost if it leaves?"""


Kind = TypeVar("Kind", bound=Guest)


class ClientPlaces(Generic[Kind]):
    """``waits``: the first to come stays. Else it is the first who leaves, for it has had its
    time."""

    def __init__(self, most: int, waits: bool = True) -> None:
        self.most = most
        self.waits = waits
        self.count = 0
        self.users: Counter[Hashable] = Counter()  # connections of each
        self.guests: dict[Caller, dict[Kind, None]] = {}

    def enter(self, guest: Kind) -> Kind | None:
        """The result must leave."""
        self.guests.setdefault(guest.owner, {})[guest] = None
        self.users[guest.owner.user] += 1
        self.count += 1
        if self.count <= self.most:
            return None
        victim = self.victim(guest)
        self.leave(victim)
        return victim

    def leave(self, guest: Kind) -> bool:
        """Was it here?"""
        owner = guest.owner
        guests = self.guests.get(owner, {})
        if guest not in guests:
            return False
        del guests[guest]
        if not guests:
            del self.guests[owner]
        self.users[owner.user] -= 1
        if not self.users[owner.user]:
            del self.users[owner.user]
        self.count -= 1
        return True

    def victim(self, newcomer: Kind) -> Kind:
        guests = self.guests[self.largest(newcomer.owner)]
        for guest in reversed(guests) if self.waits else guests:
            if not guest.holds:
                return guest
        return newcomer

    def largest(self, rather: Caller) -> Caller:
        """The process that has the most, of the user that has the most; ``rather`` this one, if it
        has as many. Asked only when there is no place left."""
        user = max(self.users, key=lambda user: (self.users[user], user == rather.user))
        own = [owner for owner in self.guests if owner.user == user]
        return max(own, key=lambda owner: (len(self.guests[owner]), owner == rather))


class Turns(Generic[Kind]):
    """Who is next, of those who wait."""

    def __init__(self) -> None:
        self.users: dict[Hashable, dict[Hashable, deque[Kind]]] = {}

    def add(self, guest: Kind) -> None:
        processes = self.users.setdefault(guest.owner.user, {})
        processes.setdefault(guest.owner.process, deque()).append(guest)

    def next(self) -> Kind:
        """The one that had a turn goes to the end of the line."""
        user, processes = next(iter(self.users.items()))
        process, guests = next(iter(processes.items()))
        del self.users[user], processes[process]
        guest = guests.popleft()
        if guests:
            processes[process] = guests
        if processes:
            self.users[user] = processes
        return guest
