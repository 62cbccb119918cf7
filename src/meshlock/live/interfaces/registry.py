"""The pools of a node: programs ask for them, peers speak of them, and some are forgotten."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from logging import WARNING
from pathlib import Path
from typing import TYPE_CHECKING

from meshlock.errors import NoSuchPool, Refused, setting
from meshlock.live.links.dialler import split
from meshlock.live.links.frames import BadFrame
from meshlock.live.links.link import Receiver
from meshlock.live.machine import limits
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.birth import FIRST_CONTACT, Expected
from meshlock.live.pools.grants import Acquire
from meshlock.live.pools.pool import LocalPool
from meshlock.live.pools.pool_configuration import (
    PoolConfiguration,
    chosen,
    founded,
    leased,
)
from meshlock.live.pools.recording import Recording

if TYPE_CHECKING:
    from meshlock.live.interfaces.local_node import LocalNode

LEASE = 3.0
"""Seconds, unless the node that makes the pool says otherwise."""


class Registry:
    def __init__(self, node: LocalNode) -> None:
        self.node = node
        self.pools: dict[str, LocalPool] = {}
        self.foundings: dict[str, asyncio.Task[None]] = {}  # pool: to be made, or opened
        self.linked_at = 0.0  # when a link came up or went down last, by the mesh's time
        self.told_of: dict[str, str] = {}  # pools no program asked for: the peer who spoke of it
        self.visits: dict[str, int] = {}  # pools that only requests named: how many wait for it

    # -- pools that programs use -------------------------------------------------------

    def use(
        self,
        name: str,
        permits: int | None = None,
        made: Callable[[], PoolConfiguration] | None = None,
    ) -> LocalPool:
        """A pool whose members choose themselves: joined, or with ``permits`` made like that."""
        pool = self.known(name)
        if pool.adapter.configuration is None:
            pool.participation.remember()
        if permits is None or made is None:
            return pool
        pool.asked_permits = permits
        under_way = pool.birth.wanted is not None or name in self.foundings
        if pool.adapter.configuration is None and not under_way:
            self.make(pool, made(), self.node.settings.create)
        return pool

    def use_agreed(self, name: str, configuration: PoolConfiguration) -> LocalPool:
        """A pool whose members were named, the same everywhere."""
        pool = self.known(name)
        pool.asked_permits = configuration.permits
        made = pool.adapter.configuration is not None
        if not made and not pool.participation.remember(configuration.identity):
            pool.participation.adopt(configuration)
        return pool

    def use_plain(
        self,
        name: str,
        permits: int | None,
        founder: bool | None,
        algorithm: str | None,
        options: dict[str, str],
        members: Sequence[str],
        links: Sequence[tuple[str, str]] | None,
    ) -> LocalPool:
        """One without recovery."""
        for member in members:
            limits.name(member, "node")
        chosen(algorithm, False, options)
        if founder is None:
            founder = permits is not None and not self.node.peers
        pool = self.pools.get(name)
        if founder and (pool is None or pool.adapter.configuration is None):
            configuration = founded(
                name, self.node.name, permits, algorithm, options, members, links
            )
            self.make(self.known(name), configuration, on_purpose=True)
        pool = self.known(name)
        if permits is not None:
            pool.asked_permits = permits
        return pool

    def use_for_client(self, name: str, permits: int | list[str]) -> None:
        """A client that is wrong about its permits is refused alone."""
        count, names = limits.named_permits(permits)
        pool = self.pools.get(name)
        if pool is None or pool.adapter.configuration is None:
            made = partial(self.as_usual, limits.name(name), count, names)
            self.use(name, count, made).asked_permits = None
        elif count != pool.permits == pool.adapter.configuration.permits:
            raise Refused(
                f"Pool {name} has {pool.permits} permits, not {count}: use that, or leave it out."
            )

    def as_usual(self, name: str, permits: int, names: tuple[str, ...]) -> PoolConfiguration:
        """A new pool of which nothing is said but its permits."""
        return leased(name, permits, None, {}, LEASE, names, self.node.name)

    async def create(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> int:
        """See :meth:`.Node.create_pool`."""
        before = self.pools.get(limits.name(name))
        if before is not None and before.adapter.configuration is not None:
            raise Refused(f"There is a pool {name} already: use it, or remove it first.")
        wanted = before.birth.wanted if before is not None else None
        if permits is not None:
            wanted = self.as_usual(name, *limits.named_permits(permits))
        if wanted is None:
            raise Refused(f"This node was not told to make {name}: say how many permits it has.")
        pool = self.known(name)
        pool.asked_permits = wanted.permits
        log_event(WARNING, "pool made on purpose", pool=name, node=self.node.name)
        pool.birth.wanted = wanted
        self.make(pool, wanted, on_purpose=True)
        await pool.introduced()
        return pool.permits or 0

    # -- making them -------------------------------------------------------------------

    def make(self, pool: LocalPool, configuration: PoolConfiguration, on_purpose: bool) -> None:
        """Make the pool, or have it made: on purpose unless a neighbour knows it, else if this node
        may (:mod:`~meshlock.live.pools.birth`)."""
        if not on_purpose:
            pool.birth.want(configuration)
        elif self.node.peers or self.node.discovering:
            task = asyncio.get_running_loop().create_task(self.make_later(pool, configuration))
            self.node.mesh.failures.mind("pool", task)
            self.foundings[pool.name] = task
            task.add_done_callback(lambda _: self.foundings.pop(pool.name, None))
        else:
            pool.participation.adopt(configuration, founding=True)

    async def make_later(self, pool: LocalPool, configuration: PoolConfiguration) -> None:
        """Make the pool unless a peer knows it: a founder that restarts must join instead. Before
        anything is granted all neighbours must have said that they know no other: of several that
        make it at the same time one stays."""
        mesh, heartbeat = self.node.mesh, self.node.settings.heartbeat
        tried = [event.wait() for event in mesh.dialler.tried.values()]
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_CONTACT):
                await asyncio.gather(*tried)
                await asyncio.sleep(
                    FIRST_CONTACT if self.node.discovering else self.node.settings.heartbeat
                )
        if pool.adapter.configuration is not None:
            return
        pool.participation.adopt(configuration, founding=True, opened=False)
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_CONTACT):
                while not pool.peers.answered():
                    await asyncio.sleep(heartbeat / 10)
        pool.ready.set()

    def expected(self) -> Expected:
        """The nodes that this one names; if it names nobody, and others can call it from elsewhere,
        each node that calls."""
        mesh = self.node.mesh
        at = {
            address: mesh.dialler.at.get(address) or self.listening_at(address)
            for address in self.node.peers
        }
        names = {name for name in at.values() if name} - {self.node.name}
        unknown = [address for address, name in at.items() if not name]
        if names or unknown:
            away = [address for address, name in at.items() if name in names - mesh.linked]
            needs = (1 + len(names) + len(unknown)) // 2 + 1
            linked = frozenset(names & mesh.linked)
            return Expected(needs, frozenset(names), linked, (*unknown, *away))
        if not (self.node.discovering or self.is_exposed()):
            return Expected(1)
        callers = frozenset(mesh.linked)
        return Expected(2, callers, callers, calls_at=mesh.address)

    def listening_at(self, address: str) -> str:
        """Who says so of itself, and is linked to us, though we cannot dial it."""
        records = self.node.mesh.link_map.records
        found = [name for name in self.node.mesh.linked if name in records]
        return next((name for name in found if address in records[name].addresses), "")

    def is_exposed(self) -> bool:
        """Can nodes of other machines link to this one?"""
        if self.node.settings.listen is None:
            return self.node.settings.zenoh is not None
        host = split(self.node.settings.listen)[0]
        return not (host.startswith("127.") or host in ("::1", "localhost"))

    def known(self, name: str) -> LocalPool:
        """A program here uses this pool."""
        pool = self.pools.get(name)
        self.visits.pop(name, None)
        if pool is None or name in self.told_of:
            most = self.node.settings.most_pools
            if len(self.pools) - len(self.told_of) >= most:
                raise Refused(
                    f"Cannot add the pool '{name}': this node has {most:,} pools already. "
                    f"Remove one, use one of them, or raise {setting('most-pools')}."
                )
            self.told_of.pop(name, None)
        return self.made(name) if pool is None else pool

    def made(self, name: str) -> LocalPool:
        node = self.node
        if not node.is_running():
            raise Refused("Start the node first: use 'async with meshlock.Node(...) as node'.")
        recording = None
        trace = node.settings.trace
        if trace is not None:
            path = Path(trace) / f"{name}.{node.name}.jsonl"
            recording = Recording(path, node.name, node.settings.trace_limit)
        willing = node.settings.member
        pool = LocalPool(name, node.mesh, node.views, recording, node.promises, willing)
        pool.unknown = self.unknown
        pool.birth.expected = self.expected
        self.pools[name], node.mesh.receivers[name] = pool, pool.adapter
        return pool

    def unknown(self, name: str) -> NoSuchPool | None:
        """Neighbours announce all pools to each other as soon as they are linked. So a while after
        that a name that nobody has announced is the name of no pool; unless we are cut off."""
        mesh = self.node.mesh
        settled = mesh.time() - self.linked_at >= FIRST_CONTACT
        hoping = (self.node.peers or self.node.discovering) and not mesh.linked
        pool = self.pools.get(name)
        wanted = pool is not None and pool.birth.wanted is not None
        if not settled or wanted or name in self.foundings or hoping:
            return None
        known = self.known_pools()
        return None if name in known else NoSuchPool.among(name, known)

    def known_pools(self) -> list[str]:
        return [name for name, pool in self.pools.items() if pool.adapter.configuration is not None]

    @contextmanager
    def visited(self, name: str) -> Iterator[LocalPool]:
        """The pool of this name, for a request from outside, which may say any name. If nobody
        knows such a pool, it is forgotten with the last request for it."""
        waiting = self.visits.get(name, 0)
        new = name not in self.pools
        pool = self.use(limits.name(name))
        if new or waiting:
            self.visits[name] = waiting + 1
        try:
            yield pool
        finally:
            if name in self.visits:
                self.visits[name] -= 1
                if pool.adapter.configuration is not None:
                    del self.visits[name]
                elif not self.visits[name] and pool.participation.is_empty():
                    self.forget(name)

    def remove(self, name: str) -> None:
        """Forget a pool that nobody else has and nobody uses; neighbours would announce it."""
        pool = self.pools[name]
        others = sorted(pool.peers.near)
        if others:
            raise Refused(
                f"Cannot remove {name}: it is also a pool of {', '.join(others)}. Stop these nodes "
                f"first."
            )
        pool.adapter.release_pending()
        if pool.adapter.clients:
            raise Refused(
                f"Cannot remove {name}: programs of this node hold or wait for its "
                "permits. Stop them first."
            )
        pool.participation.stop()
        if self.node.promises is not None:
            self.node.promises.forget(name)
        self.forget(name)

    def forget(self, name: str) -> None:
        """A pool of which nothing is known but its name."""
        self.visits.pop(name, None)
        self.told_of.pop(name, None)
        del self.node.mesh.receivers[name]
        self.pools.pop(name).close()

    def forget_hearsay(self) -> None:
        """Pools that only somebody spoke of who cannot be reached any more. What was sent in
        custody stays: its sender believes that it has arrived."""
        for name, teller in list(self.told_of.items()):
            pool = self.pools[name]
            gone = teller not in self.node.mesh.linked and not self.node.mesh.link_map.reaches(
                teller
            )
            if pool.participation.is_empty() and gone:
                self.forget(name)

    def receiver(self, sender: str, pool: str) -> Receiver | None:
        """Somebody has written of a pool that we do not know yet; None if we do not want to."""
        if not self.node.is_running():
            return None
        if not re.fullmatch(limits.NAME, pool):
            raise BadFrame("a message with an invalid pool name")
        most = self.node.settings.most_pools
        if len(self.told_of) >= most and not self.makes_room(sender):
            why = f"its pool {pool!r} exceeds the limit of {most:,} pools of others"
            self.node.mesh.refusals.note(sender, why)
            return None
        self.told_of[pool] = sender
        return self.made(pool).adapter

    def makes_room(self, sender: str) -> bool:
        """Forget a pool of which only the name is known, of the node that named most."""
        tellers = Counter(self.told_of.values())
        most = max(tellers, key=tellers.__getitem__)
        if most == sender:
            return False
        for name, teller in list(self.told_of.items()):
            pool = self.pools[name]
            if teller == most and pool.participation.is_empty():
                self.forget(name)
                return True
        return False

    def owns(self, name: str) -> bool:
        """Is there such a pool, or does our own user say so? Requests may name anything."""
        named = name not in self.visits and name not in self.told_of
        return named or self.pools[name].adapter.configuration is not None


@contextmanager
def known_as(requests: dict[str, Acquire], name: str | None, asked: Acquire) -> Iterator[None]:
    """While it waits, it can be found by the name that its program gave it, if any."""
    if name in requests:
        raise Refused(f"A request with the name {name} waits already: use another name.")
    if name is not None:
        requests[name] = asked
    try:
        yield
    finally:
        if name is not None:
            del requests[name]
