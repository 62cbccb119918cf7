"""Enough links: no node is to be the only way between others.

A node is told one neighbour, or a few, and often all are told the same one. From the link map it
learns who else there is and where they listen, and so it keeps, besides the links that it was told:

1. one to the node after it in the circle of all names, by their hashes. The links of all
   nodes together are that circle, which no single failure parts;
2. one to each of its *friends*, the other members of its pools: a quorum whose members are linked
   needs nobody else. There are few of them (:data:`MOST_FRIENDS`);
3. at least ``least`` in all: to the node before it in the circle, then by the hash of both
   names, so that everybody chooses others and ways are short.

Links are only added; one that fails is replaced. Who listens nowhere, or cannot be dialled, is
passed over, and dials others itself. Those that were known and cannot be reached any more are
tried now and then (4): so parts that were cut from each other join again, and a node that restarts
finds the others though nobody whom it was told is there, for what it learned is kept in a file.

Nobody can make us dial much, whatever their records say: all attempts together are limited, and
each name waits twice as long after every failure. TLS proves who answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import ip_address
from logging import WARNING
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from meshlock.errors import Refused
from meshlock.live.links.frames import MOST_ADDRESSES
from meshlock.live.links.link import Ending, NotLinked
from meshlock.live.links.rate_limit import RateLimit
from meshlock.live.machine.limits import Name, Where
from meshlock.live.machine.logs import log_event

if TYPE_CHECKING:
    from meshlock.live.links.mesh import Mesh

BETWEEN = 1.0  # seconds between two reviews, on average
PER_SECOND = 2.0  # attempts of all kinds
MOST_FRIENDS = 8
FIRST_WAIT, LAST_WAIT = 2.0, 300.0  # seconds until a node that did not answer is dialled again
RETRY = 0.05  # seconds between attempts while a link that broke still counts
MOST_REMEMBERED, REMEMBERED_FOR = 256, 86_400.0  # nodes, and seconds since they could be reached
WRITE_EVERY = 10.0
LEARN_EVERY = 60.0  # seconds, while the map stays as it is
KEPT = 8192  # names and hosts of which it is kept what was found out


class Wait(NamedTuple):
    """Somebody did not answer: not before ``until``."""

    until: float
    seconds: float
    tries: int


class Known(msgspec.Struct):
    """What is remembered of a node: where it listened, and when it could be reached last."""

    addresses: tuple[Where, ...]
    seen: float


class Reach:
    def __init__(
        self, mesh: Mesh, least: int, advertise: str | None, folder: Path | None = None
    ) -> None:
        self.mesh = mesh
        self.least = least
        self.advertise = advertise
        self.path = folder / "addresses.json" if folder is not None else None
        self.known: dict[str, Known] = {}
        self.written: dict[str, tuple[str, ...]] = {}
        self.write_at = 0.0
        self.dialling: dict[str, asyncio.Task[None]] = {}  # or linked by us
        self.waits: dict[str, Wait] = {}
        self.rate = RateLimit(PER_SECOND, mesh.time())
        self.closed = False
        # of the last review: the map, our friends, when to learn again, and was nothing wanted?
        self.reviewed: tuple[dict[str, frozenset[str]], set[str]] = ({}, set())
        self.learn_at = 0.0
        self.content = False
        self.timer: asyncio.TimerHandle | None = None
        if least:
            self.read()
            self.timer = mesh.failures.later(self.pause() / 2, "reach", self.review)

    # -- where we are ------------------------------------------------------------------

    def addresses(self) -> tuple[str, ...]:
        """Where others can dial us: as we were told to say (:func:`advertised`), or where we
        listen, or, if that is everywhere, the hosts that most of our neighbours see us as."""
        mesh = self.mesh
        if not mesh.address or self.closed or not self.least:
            return ()
        host, _, port = mesh.address.rpartition(":")
        if self.advertise is not None:
            return (f"{self.advertise}{port}" if self.advertise.endswith(":") else self.advertise,)
        seen = Counter([one.seen for one in mesh.open.values() if is_address(one.seen)])
        here = ip_address(host.strip("[]"))
        if not here.is_unspecified:
            return () if here.is_loopback and not any(map(is_local, seen)) else (f"{host}:{port}",)
        hosts = sorted(seen, key=lambda host: (is_local(host), -seen[host], host))
        hosts = [f"[{host}]" if ":" in host else host for host in hosts[:MOST_ADDRESSES]]
        return tuple([f"{host}:{port}" for host in hosts])

    # -- who is to be dialled ------------------------------------------------------------

    def review(self) -> None:
        """Where many nodes are, their map costs something to go through: once for every change."""
        self.timer = self.mesh.failures.later(self.pause(), "reach", self.review)
        links, friends, now = self.mesh.link_map.links, self.mesh.owner.friends(), self.mesh.time()
        same = links is self.reviewed[0] and friends == self.reviewed[1]
        if not same or now >= self.learn_at:
            self.learn_at = now + LEARN_EVERY
            self.learn()
        if same and self.content and not self.waits:
            return
        self.reviewed = (links, friends)
        self.content = self.dialling.keys() <= self.mesh.linked  # else it is not known yet
        for name in self.wanted(friends):
            self.content = False
            if not self.rate.take(now):
                return
            self.dial(name)

    def pause(self) -> float:
        return BETWEEN * (0.5 + random.random())

    def wanted(self, friends: set[str]) -> Iterator[str]:
        """Whom to dial now."""
        mesh, me = self.mesh, self.mesh.name
        there = [name for name in mesh.link_map.ways if name != me and self.can(name)]
        circle = sorted(there, key=lambda name: (place(name) - place(me)) % 2**64)
        after = next((name for name in circle if self.may(name)), None)
        if after is not None and not self.has(after):
            yield after  # (1)
        for name in sorted(friends.intersection(there), key=self.rank)[:MOST_FRIENDS]:
            if not self.has(name) and self.may(name):
                yield name  # (2)
        before = next((name for name in reversed(circle) if self.may(name)), None)
        chosen = [before] if before is not None else []
        for name in [*chosen, *sorted(there, key=self.rank)]:
            if len({*mesh.linked, *self.dialling}) >= self.least:
                break
            if not self.has(name) and self.may(name):
                yield name  # (3)
        strays = [name for name in self.known if name not in mesh.link_map.ways and self.may(name)]
        if strays:
            yield random.choice(strays)  # (4)

    def can(self, name: str) -> bool:
        """Is there a link, or an address for one?"""
        return name in self.mesh.linked or bool(self.usable(name))

    def has(self, name: str) -> bool:
        return name in self.mesh.linked or name in self.dialling

    def may(self, name: str) -> bool:
        """Not if it did not answer lately."""
        wait = self.waits.get(name)
        return self.has(name) or wait is None or self.mesh.time() >= wait.until

    def usable(self, name: str) -> list[str]:
        """Addresses on this machine mean nothing unless others here are linked by such."""
        record = self.mesh.link_map.records.get(name)
        known = self.known.get(name)
        told = record.addresses if record is not None else known.addresses if known else ()
        here = self.mesh.open.values()
        local = not here or any(is_local(connection.host) for connection in here)
        return [address for address in told if local or not is_local(host_of(address))]

    def rank(self, name: str) -> int:
        return place(" ".join(sorted((self.mesh.name, name))))

    # -- dialling ------------------------------------------------------------------------

    def dial(self, name: str) -> None:
        addresses = self.usable(name)
        if addresses:
            tries = self.waits[name].tries if name in self.waits else 0
            task = self.mesh.start(self.link(name, addresses[tries % len(addresses)]))
            self.dialling[name] = task
            task.add_done_callback(lambda _: self.dialling.pop(name, None))
        else:
            self.spare(name)

    async def link(self, name: str, address: str) -> None:
        """Dial, and dial again if the connection breaks, for as long as the link counts."""
        host, _, port = address.rpartition(":")
        while not self.closed:
            try:
                connection = await self.mesh.dialler.connect(host.strip("[]"), int(port))
            except NotLinked as error:
                if error.ending is Ending.MUTUAL:
                    return  # it dials us
                if name not in self.mesh.linked:
                    self.spare(name)
            else:
                if connection.peer != name:
                    self.spare(name)
                    return
                await asyncio.shield(connection.closed)
            if name not in self.mesh.linked:
                return
            await asyncio.sleep(RETRY * (0.5 + random.random()))

    def spare(self, name: str) -> None:
        """Do not dial it for a while."""
        last = self.waits.get(name)
        seconds = min(2 * last.seconds, LAST_WAIT) if last is not None else FIRST_WAIT
        until = self.mesh.time() + seconds * (0.5 + random.random())
        self.waits[name] = Wait(until, seconds, last.tries + 1 if last is not None else 1)

    # -- remembering ---------------------------------------------------------------------

    def learn(self) -> None:
        """Who can be reached is known; who left, or was not seen for long, is forgotten."""
        link_map, now = self.mesh.link_map, time.time()
        for name in link_map.ways:
            addresses, known = link_map.records[name].addresses, self.known.get(name)
            if known is not None and addresses == known.addresses:
                known.seen = now
            elif addresses and name != self.mesh.name:
                self.known[name] = Known(addresses, now)
        for name, known in list(self.known.items()):
            over = now - known.seen > REMEMBERED_FOR
            if name not in link_map.ways and (over or link_map.left(name)):
                del self.known[name]
        if len(self.known) > MOST_REMEMBERED:
            oldest = sorted(self.known, key=lambda name: self.known[name].seen)
            for name in oldest[:-MOST_REMEMBERED]:
                del self.known[name]
        for name in list(self.waits):
            if name in self.mesh.linked or not (name in self.known or name in link_map.records):
                del self.waits[name]
        if self.path is not None and self.mesh.time() >= self.write_at:
            if self.written != self.listed():
                self.write_at = self.mesh.time() + WRITE_EVERY
                self.mesh.loop.run_in_executor(None, self.write, self.path, dict(self.known))
            self.written = self.listed()

    def listed(self) -> dict[str, tuple[str, ...]]:
        return {name: known.addresses for name, known in self.known.items()}

    def read(self) -> None:
        if self.path is None:
            return
        try:
            known = msgspec.json.decode(self.path.read_bytes(), type=dict[Name, Known])
            self.known = {name: one for name, one in known.items() if name != self.mesh.name}
        except (PermissionError, msgspec.MsgspecError) as error:
            log_event(WARNING, "addresses forgotten", file=str(self.path), reason=str(error))
        except OSError:
            pass  # there are none

    @staticmethod
    def write(path: Path, known: dict[str, Known]) -> None:
        """What cannot be written is not remembered: it is a help, no promise."""
        draft = path.with_suffix(".draft")
        try:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            draft.touch(0o600)
            draft.write_bytes(msgspec.json.encode(known))
            draft.replace(path)
        except OSError as error:
            log_event(WARNING, "addresses not written", file=str(path), reason=str(error))

    def close(self) -> None:
        """We are leaving: dial nobody, and let nobody dial us."""
        if not self.closed:
            self.closed = True
            if self.timer is not None:
                self.timer.cancel()
            self.mesh.link_map.relinked()


def advertised(text: str) -> str:
    """A host and a port, or a host and a colon: then the port is the one where we listen."""
    parts = re.fullmatch(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:(\d{1,5}))?", text)
    if parts is None or int(parts[3] or 0) > 65535:
        raise Refused(f"advertise takes host or host:port, not '{text}'.")
    return text if parts[2] else f"{text}:"


@lru_cache(KEPT)
def place(name: str) -> int:
    """In the circle of all names."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def is_address(host: str) -> bool:
    try:
        return not ip_address(host).is_unspecified
    except ValueError:
        return False


@lru_cache(KEPT)
def is_local(host: str) -> bool:
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)
