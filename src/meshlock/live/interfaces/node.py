"""A node: its links, its pools, its clients."""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from logging import WARNING
from pathlib import Path
from typing import Any, cast

from meshlock.errors import NoSuchPool, Refused, setting
from meshlock.live.interfaces.agent_settings import AgentSettings
from meshlock.live.interfaces.configuration import secret, warn_if_others_read
from meshlock.live.links.frames import BadFrame
from meshlock.live.links.link import Receiver
from meshlock.live.links.mesh import ZENOH, Mesh, split
from meshlock.live.links.reach import advertised
from meshlock.live.links.security import Security, by_certificate, by_secret, unprotected
from meshlock.live.machine import limits
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.birth import FIRST_CONTACT, Expected
from meshlock.live.pools.grants import Pool
from meshlock.live.pools.pool import LocalPool
from meshlock.live.pools.pool_configuration import (
    DEFAULT_MEMBERS,
    NO_RECOVERY,
    PROMOTE_AFTER,
    REPLACE_AFTER,
    PoolConfiguration,
    agreed,
    chosen,
    founded,
    made_now,
)
from meshlock.live.pools.promises import Promises, default_folder
from meshlock.live.pools.recording import Recording
from meshlock.live.pools.status import Status, mark_gone
from meshlock.live.pools.views import Views, unseen

LEASE = 3.0
"""Seconds, unless whoever makes the pool says otherwise."""

AUTO = "auto"

MIN_LINKS = 3
"""So many a node has, if so many others can be dialled."""

MOST_POOLS = 1000
"""Of the programs of a node, and as many of its peers, unless it is told otherwise."""

FAREWELL = 3.0
"""Seconds a leaving node takes to say goodbye, besides what its pools take."""


class Node:
    """One participant of the mesh; use it with ``async with``.

    ``peers`` are addresses (``host:port``) of nodes to link to; one is enough. ``listen`` is
    where others may link to us; port 0 takes a free one. Protection is a join ``secret``
    that all nodes know, or ``certificates``, a folder with ``ca.crt``, ``NAME.crt`` and
    ``NAME.key`` as ``meshlock certs`` makes them; without either, links stay on this machine.
    ``heartbeat`` and ``dead`` are seconds: how often a silent link is used, and after how much
    silence it has failed. With ``trace``, a folder, every pool's events are written there, and
    the last ``trace_limit`` bytes of each are kept.
    ``state`` is a folder where the node keeps what it has promised, so that it comes back to its
    pools when it restarts; unless it is named it is where the platform has such folders, by the
    name of the node (on Linux ``~/.local/state/meshlock/NAME``). None: it remembers nothing.
    ``min_links``: the node learns from its neighbours who else there is, and dials others until it
    has so many links (and a few more, so that no node is the only way between others); with 0 it
    dials its ``peers`` only. ``advertise``, a host or host:port, is where others can dial us, if
    that is not where their neighbours see us.
    ``most_pools``: how many pools its programs may use, and as many its peers may announce.
    ``member``: may this node become a member of pools by itself? Say no if it will leave soon.
    ``create``: this node is the first, and makes its pools unless a node that it reaches has them.
    Else a node makes a pool alone only if it names no peers and others cannot link to it from
    elsewhere, or with the votes of a majority of its peers and itself; until then it waits.
    ``zenoh`` are settings of a Zenoh network to join; peers there are called ``zenoh/NAME``.
    ``clock_rate`` makes the clock of leases run fast or slow, for tests; leave it alone.

    >>> import asyncio, meshlock
    >>> async def share():
    ...     async with meshlock.Node("here") as node:
    ...         docks = node.pool("docks", permits=3)
    ...         async with docks.acquire(2, priority=9, timeout=30) as grant:
    ...             print(grant.want, "of", docks.permits)
    >>> asyncio.run(share())
    2 of 3
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        listen: str | None = "127.0.0.1:0",
        peers: Iterable[str] = (),
        secret: str | None = None,
        certificates: str | Path | None = None,
        heartbeat: float = 0.1,
        dead: float = 0.5,
        trace: str | Path | None = None,
        trace_limit: int = 10**9,
        state: str | Path | None = AUTO,
        member: bool = True,
        create: bool = False,
        min_links: int = MIN_LINKS,
        most_pools: int = MOST_POOLS,
        advertise: str | None = None,
        zenoh: Mapping[str, Any] | None = None,
        clock_rate: float = 1.0,
    ) -> None:
        self.name = socket.gethostname() if name is None else name
        self.listen = listen
        if isinstance(peers, str):
            raise Refused(f"peers is a list of addresses: write peers=[{limits.shown(peers)}].")
        self.peers = list(peers)
        self.heartbeat = heartbeat
        self.dead = dead
        self.trace = Path(trace) if trace is not None else None
        self.trace_limit = trace_limit
        self.member = member
        self.create = create
        self.min_links = limits.whole(limits.MIN_LINKS, min_links, "min-links")
        self.most_pools = limits.whole(limits.POOLS, most_pools, "most-pools")
        self.advertise = advertise if advertise is None else advertised(advertise)
        self.zenoh = zenoh
        self.clock_rate = clock_rate
        self.boot = secrets.randbits(48) + 1
        self.pools: dict[str, LocalPool] = {}
        self._secret = secret
        self._certificates = Path(certificates) if certificates is not None else None
        self._mesh: Mesh | None = None
        self._views: Views | None = None
        self._closing = False
        self._foundings: dict[str, asyncio.Task[None]] = {}  # pool: to be made, or opened
        self._linked_at = 0.0  # when a link came up or went down last, by the mesh's time
        self._told_of: dict[str, str] = {}  # pools nobody here asked for: the peer who spoke of it
        self._visits: dict[str, int] = {}  # pools that only requests named: how many wait for it
        limits.name(self.name, "node")
        self.promises: Promises | None = None
        if state is not None:
            self.promises = Promises(default_folder(self.name) if state == AUTO else Path(state))
        self.discovering = False  # may peers be found that nobody has named?
        limits.real(limits.HEARTBEAT, heartbeat, "heartbeat")
        limits.real(limits.DEAD, dead, "dead")
        limits.real(limits.CLOCK_RATE, clock_rate, "clock-rate")
        limits.whole(limits.TRACE_LIMIT, trace_limit, "trace-limit")
        if heartbeat >= dead:
            raise Refused("heartbeat must be less than dead: lower heartbeat or raise dead.")
        for address in self.peers:
            if not address.startswith(ZENOH):
                split(address)

    @classmethod
    def configured(cls, settings: AgentSettings) -> Node:
        """As a configuration file says: ``Node.configured(configuration.read(path))``."""
        return cls(
            settings.name,
            listen=settings.listen,
            peers=settings.peers,
            secret=secret(settings.secret_file),
            certificates=settings.certificates,
            heartbeat=settings.heartbeat,
            dead=settings.dead,
            trace=settings.trace,
            trace_limit=settings.trace_limit,
            state=None if settings.state == "none" else settings.state,
            member=settings.member,
            create=settings.create,
            min_links=settings.min_links,
            most_pools=settings.most_pools,
            advertise=settings.advertise,
            zenoh=settings.zenoh,
            clock_rate=settings.clock_rate,
        )

    # -- life --------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen, and dial the peers; ``async with`` does it."""
        loop = asyncio.get_running_loop()
        security = await loop.run_in_executor(None, self.security)
        self._mesh = Mesh(
            *(self.name, self.boot, security, self, self.heartbeat, self.dead, self.clock_rate),
            self.min_links,
            self.advertise,
            self.promises.folder if self.promises is not None else None,
        )
        self._views = Views(self._mesh, self.pools)
        if self.listen is not None:
            await self._mesh.listen(*split(self.listen))
        if self.zenoh is not None:
            await self._mesh.join_zenoh(self.zenoh)
        self._linked_at = self._mesh.time()
        for address in self.peers:
            self._mesh.dial(address)

    def security(self) -> Security:
        if self._certificates is not None:
            folder, name = self._certificates, self.name
            warn_if_others_read(folder / f"{name}.key")
            return by_certificate(folder / "ca.crt", folder / f"{name}.crt", folder / f"{name}.key")
        if self._secret is not None:
            return by_secret(self._secret, self.name)
        return unprotected()

    async def close(self) -> None:
        """Leave: release what clients hold, hand the token on, say goodbye."""
        if self._mesh is None or self._closing:
            return
        self._closing = True
        mesh = self._mesh
        mesh.reach.close()
        for task in self._foundings.values():
            task.cancel()
        for pool in self.pools.values():
            mesh.failures.run("pool", pool.close)
        await self.hand_over(mesh)
        for pool in self.pools.values():
            pool.participation.dissolve()
        await self.stop(mesh)

    async def vanish(self) -> None:
        """Stop at once, as if the machine had been switched off; what we held is lost."""
        if self._mesh is not None and not self._closing:
            self._closing = True
            await self.stop(self._mesh)

    async def stop(self, mesh: Mesh) -> None:
        self.views.close()
        await mesh.close()
        for pool in self.pools.values():
            pool.participation.stop()
        if self.promises is not None:
            self.promises.close()

    async def hand_over(self, mesh: Mesh) -> None:
        """Say goodbye to all neighbours but one, give that one our tokens, then leave it too.

        With one neighbour left and no clients, nothing is queued at this node, so no token
        can come back to it. Every pool has its own time.
        """
        pools = self.pools.values()
        for pool in pools:
            pool.participation.announce_leaving()
        if mesh.linked:
            await asyncio.sleep(self.heartbeat)  # others may be leaving too
        leaving = {peer for pool in pools for peer in pool.peers.leaving}
        near = sorted(mesh.linked, key=lambda peer: -sum(peer in pool.peers.near for pool in pools))
        near.sort(key=leaving.__contains__)
        await self.part(mesh, near[1:])
        heir = near[0] if near and near[0] not in leaving else None
        await asyncio.gather(
            *[pool.participation.hand_over(heir) for pool in pools], return_exceptions=True
        )
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL):
                while mesh.router.busy():
                    await asyncio.sleep(self.heartbeat / 10)
        await self.part(mesh, near[:1])

    async def part(self, mesh: Mesh, peers: list[str]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL):
                await asyncio.gather(*[mesh.leave(peer) for peer in peers])

    async def __aenter__(self) -> Node:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- pools -------------------------------------------------------------------------

    def pool(
        self,
        name: str,
        permits: int | list[str] | tuple[str, ...] | None = None,
        *,
        founder: bool | None = None,
        algorithm: str | None = None,
        options: dict[str, str] | None = None,
        members: Sequence[str] = AUTO,
        links: Sequence[tuple[str, str]] | None = None,
        lease: float | None = None,
        recovery: str | None = None,
        most_members: int = DEFAULT_MEMBERS,
        promote_after: float = PROMOTE_AFTER,
        replace_after: float = REPLACE_AFTER,
    ) -> Pool:
        """The pool of this name: joined if a neighbour knows it, or made now with so many
        ``permits``; without ``permits`` it is only joined.

        It survives crashes: permits are held under leases of so many seconds (3 if nothing is
        said), which a majority of its members renews. Whoever makes the pool is its first member;
        nodes that have been there for ``promote_after`` seconds become members, three or five
        (``most_members``), and one that is unreachable for ``replace_after`` seconds is replaced.
        Or ``members`` are the names of nodes, the same everywhere.

        ``recovery="none"`` is the pool of the papers, which assume that nodes do not fail: if one
        does, permits are lost. One node founds it and says how many permits there are, the others
        learn it from their neighbours. A node that was given no peers founds; one that was given
        some joins; ``founder`` says otherwise. For algorithms that need a network which does not
        change, ``members`` and ``links`` say what it is.

        ``permits`` is how many there are, or their names, such as ``["gpu0", "gpu1"]``: then a
        grant says which ones it has, which needs leases.

        The algorithm is ``direct`` unless another is named, any that has a token; without leases
        ``jiang``.
        """
        limits.name(name)
        names: tuple[str, ...] = ()
        if permits is not None:
            permits, names = limits.named_permits(permits)
        if recovery not in (None, NO_RECOVERY):
            raise Refused(f"recovery is 'none' or left out, not {limits.shown(recovery)}.")
        if isinstance(members, str) and members != AUTO:
            raise Refused(f"members is 'auto' or a list of names, not {limits.shown(members)}.")
        by_name = () if members == AUTO else tuple(members)
        for member in by_name:
            if by_name.count(member) > 1:
                raise Refused(f"members names {limits.shown(member)} twice: name every node once.")
        if recovery == NO_RECOVERY:
            if names:
                raise Refused(f"Named permits need leases: leave out recovery for {name}.")
            return Pool(
                self.plain_pool(name, permits, founder, algorithm, options, by_name, links, lease)
            )
        if founder is not None:
            raise Refused(
                'founder is only for pools with recovery = "none": leave it out for '
                f"{name}, which is joined or made by any node."
            )
        if links is not None:
            raise Refused(
                'links is only for pools with recovery = "none": leave it out for '
                f'{name}, or set recovery = "none".'
            )
        if members != AUTO and not by_name:
            raise Refused(f"members names nobody: name nodes, or leave it out for {name}.")
        lasting = LEASE if lease is None else lease
        if by_name:
            configuration = agreed(name, permits, algorithm, options or {}, by_name, lasting, names)
            pool = self.known(name)
            pool.asked_permits = configuration.permits
            if pool.configuration is None and not pool.participation.remember(
                configuration.identity
            ):
                pool.participation.adopt(configuration)
            return Pool(pool)
        chosen(algorithm, True, options or {})
        pool = self.known(name)
        if pool.configuration is None:
            pool.participation.remember()
        if permits is None:
            return Pool(pool)
        pool.asked_permits = permits
        under_way = pool.birth.wanted is not None or pool.name in self._foundings
        if pool.configuration is None and not under_way:
            rules = (most_members, promote_after, replace_after)
            configuration = made_now(
                *(name, self.name, permits, algorithm, options or {}, lasting, rules, names)
            )
            self.found(pool, configuration, self.create)
        return Pool(pool)

    async def create_pool(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> int:
        """Make a pool on purpose, unless a node that can be reached has it: whoever else expects
        to make it waits no more. Without ``permits`` it is made as this node was told before. The
        result is how many permits it has."""
        before = self.pools.get(limits.name(name))
        wanted = before.birth.wanted if before is not None else None
        if before is not None and before.configuration is not None:
            raise Refused(f"There is a pool {name} already: use it, or remove it first.")
        if permits is not None:
            count, names = limits.named_permits(permits)
            rules = (DEFAULT_MEMBERS, PROMOTE_AFTER, REPLACE_AFTER)
            wanted = made_now(name, self.name, count, None, {}, LEASE, rules, names)
        if wanted is None:
            raise Refused(f"This node was not told to make {name}: say how many permits it has.")
        pool = self.known(name)
        pool.asked_permits = wanted.permits
        log_event(WARNING, "pool made on purpose", pool=name, node=self.name)
        pool.birth.wanted = wanted
        self.found(pool, wanted, on_purpose=True)
        await pool.introduced()
        return pool.permits or 0

    def pool_for_client(self, name: str, permits: int | list[str]) -> None:
        """As :meth:`pool`. A client that is wrong about its permits is refused alone."""
        count, _ = limits.named_permits(permits)
        pool = self.pools.get(name)
        if pool is None or pool.configuration is None:
            self.pool(name, permits)
            self.pools[name].asked_permits = None
        elif count != pool.permits == pool.configuration.permits:
            raise Refused(
                f"Pool {name} has {pool.permits} permits, not {count}: use that, or leave it out."
            )

    def plain_pool(
        self,
        name: str,
        permits: int | None,
        founder: bool | None,
        algorithm: str | None,
        options: dict[str, str] | None,
        members: Sequence[str],
        links: Sequence[tuple[str, str]] | None,
        lease: float | None,
    ) -> LocalPool:
        """One without recovery."""
        if lease is not None:
            raise Refused(f"lease is only for pools with recovery: leave it out for {name}.")
        for member in members:
            limits.name(member, "node")
        chosen(algorithm, False, options or {})
        if founder is None:
            founder = permits is not None and not self.peers
        pool = self.pools.get(name)
        if founder and (pool is None or pool.configuration is None):
            configuration = founded(
                name, self.name, permits, algorithm, options or {}, members, links
            )
            pool = self.known(name)
            self.found(pool, configuration, on_purpose=True)
        pool = self.known(name)
        if permits is not None:
            pool.asked_permits = permits
        return pool

    def found(self, pool: LocalPool, configuration: PoolConfiguration, on_purpose: bool) -> None:
        """Make the pool, or have it made: on purpose unless a neighbour knows it, else if this node
        may (:mod:`~meshlock.live.pools.birth`)."""
        if not on_purpose:
            pool.birth.want(configuration)
        elif self.peers or self.discovering:
            task = asyncio.get_running_loop().create_task(self.found_later(pool, configuration))
            self.mesh.failures.mind("pool", task)
            self._foundings[pool.name] = task
            task.add_done_callback(lambda _: self._foundings.pop(pool.name, None))
        else:
            pool.participation.adopt(configuration, founding=True)

    async def found_later(self, pool: LocalPool, configuration: PoolConfiguration) -> None:
        """Make the pool unless a peer knows it: a founder that restarts must join instead. Before
        anything is granted all neighbours must have said that they know no other: of several that
        make it at the same time one stays."""
        mesh = self.mesh
        tried = [event.wait() for event in mesh.tried.values()]
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_CONTACT):
                await asyncio.gather(*tried)
                await asyncio.sleep(FIRST_CONTACT if self.discovering else self.heartbeat)
        if pool.configuration is not None:
            return
        pool.participation.adopt(configuration, founding=True, opened=False)
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_CONTACT):
                while not pool.peers.answered():
                    await asyncio.sleep(self.heartbeat / 10)
        pool.ready.set()

    def expected(self) -> Expected:
        """The nodes that this one names; if it names nobody, and others can call it from elsewhere,
        whoever calls."""
        mesh = self.mesh
        at = {address: mesh.at.get(address) or self.listening_at(address) for address in self.peers}
        names = {name for name in at.values() if name} - {self.name}
        unknown = [address for address, name in at.items() if not name]
        if names or unknown:
            away = [address for address, name in at.items() if name in names - mesh.linked]
            needs = (1 + len(names) + len(unknown)) // 2 + 1
            linked = frozenset(names & mesh.linked)
            return Expected(needs, frozenset(names), linked, (*unknown, *away))
        if not (self.discovering or self.is_exposed()):
            return Expected(1)
        callers = frozenset(mesh.linked)
        return Expected(2, callers, callers, calls_at=mesh.address)

    def listening_at(self, address: str) -> str:
        """Who says so of itself, and is linked to us, though we cannot dial it."""
        records = self.mesh.link_map.records
        found = [name for name in self.mesh.linked if name in records]
        return next((name for name in found if address in records[name].addresses), "")

    def is_exposed(self) -> bool:
        """Can nodes of other machines link to this one?"""
        if self.listen is None:
            return self.zenoh is not None
        host = split(self.listen)[0]
        return not (host.startswith("127.") or host in ("::1", "localhost"))

    def known(self, name: str) -> LocalPool:
        """A program here uses this pool."""
        pool = self.pools.get(name)
        self._visits.pop(name, None)
        if pool is None or name in self._told_of:
            most = self.most_pools
            if len(self.pools) - len(self._told_of) >= most:
                raise Refused(
                    f"Cannot add the pool '{name}': this node has {most:,} pools already. "
                    f"Remove one, use one of them, or raise {setting('most-pools')}."
                )
            self._told_of.pop(name, None)
        return self.made(name) if pool is None else pool

    def made(self, name: str) -> LocalPool:
        if self._mesh is None or self._closing:
            raise Refused("Start the node first: use 'async with meshlock.Node(...) as node'.")
        recording = None
        if self.trace is not None:
            path = self.trace / f"{name}.{self.name}.jsonl"
            recording = Recording(path, self.name, self.trace_limit)
        pool = LocalPool(
            *(name, self.name, self._mesh, self.views, recording, self.promises, self.member)
        )
        pool.unknown = self.unknown
        pool.birth.expected = self.expected
        pool.token_watch.everywhere = partial(unseen, self.views, pool)
        self.pools[name], self._mesh.receivers[name] = pool, pool.adapter
        return pool

    def unknown(self, name: str) -> NoSuchPool | None:
        """Neighbours announce all pools to each other as soon as they are linked. So a while after
        that a name that nobody has announced is the name of no pool; unless we are cut off."""
        mesh = self.mesh
        settled = mesh.time() - self._linked_at >= FIRST_CONTACT
        hoping = (self.peers or self.discovering) and not mesh.linked
        pool = self.pools.get(name)
        wanted = pool is not None and pool.birth.wanted is not None
        if not settled or wanted or name in self._foundings or hoping:
            return None
        known = self.known_pools()
        return None if name in known else NoSuchPool(name, known)

    def known_pools(self) -> list[str]:
        return [name for name, pool in self.pools.items() if pool.configuration is not None]

    @contextmanager
    def visited(self, name: str) -> Iterator[LocalPool]:
        """The pool of this name, for a request from outside, which may say any name. If nobody
        knows such a pool, it is forgotten with the last request for it."""
        waiting = self._visits.get(name, 0)
        new = name not in self.pools
        self.pool(name)
        pool = self.pools[name]
        if new or waiting:
            self._visits[name] = waiting + 1
        try:
            yield pool
        finally:
            if name in self._visits:
                self._visits[name] -= 1
                if pool.configuration is not None:
                    del self._visits[name]
                elif not self._visits[name] and pool.participation.is_empty():
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
        pool.adapter.settle()
        if pool.clients:
            raise Refused(
                f"Cannot remove {name}: programs of this node hold or wait for its "
                "permits. Stop them first."
            )
        pool.participation.stop()
        if self.promises is not None:
            self.promises.forget(name)
        self.forget(name)

    def forget(self, name: str) -> None:
        """A pool of which nothing is known but its name."""
        self._visits.pop(name, None)
        self._told_of.pop(name, None)
        del self.mesh.receivers[name]
        self.pools.pop(name).close()

    def forget_hearsay(self) -> None:
        """Pools that only somebody spoke of who cannot be reached any more. What was sent in
        custody stays: its sender believes that it has arrived."""
        for name, teller in list(self._told_of.items()):
            pool = self.pools[name]
            gone = teller not in self.mesh.linked and not self.mesh.link_map.reaches(teller)
            if pool.participation.is_empty() and gone:
                self.forget(name)

    # -- links -------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where others can link to this node: host:port."""
        assert self._mesh is not None
        return self._mesh.address

    def connect(self, address: str) -> None:
        """Link to the node at this address too, and keep the link."""
        self.mesh.dial(address)
        if address not in self.peers:
            self.peers.append(address)

    def up(self, peer: str) -> None:
        self._linked_at = self.mesh.time()
        for pool in self.pools.values():
            self.mesh.failures.run("pool", pool.peers.up, peer)
            self.mesh.failures.run("pool", pool.birth.up, peer)

    def down(self, peer: str) -> None:
        self._linked_at = self.mesh.time()
        for pool in self.pools.values():
            self.mesh.failures.run("pool", pool.peers.down, peer)
        self.forget_hearsay()

    def map_changed(self) -> None:
        for pool in self.pools.values():
            self.mesh.failures.run("pool", pool.participation.map_changed)
        self.forget_hearsay()

    def friends(self) -> set[str]:
        """With whom we are members of a pool."""
        pools = [pool.members for pool in self.pools.values() if pool.members is not None]
        return {name for one in pools if one.node.member.is_member() for name in one.names()} - {
            self.name
        }

    def receiver(self, sender: str, pool: str) -> Receiver | None:
        """Somebody has written of a pool that we do not know yet; None if we do not want to."""
        if self._closing:
            return None
        if not re.fullmatch(limits.NAME, pool):
            raise BadFrame("a message with an invalid pool name")
        most = self.most_pools
        if len(self._told_of) >= most and not self.makes_room(sender):
            why = f"its pool {pool!r} exceeds the limit of {most:,} pools of others"
            self.mesh.refusals.note(sender, why)
            return None
        self._told_of[pool] = sender
        return self.made(pool).adapter

    def makes_room(self, sender: str) -> bool:
        """Forget a pool of which only its name is known, of whoever spoke of more than others."""
        tellers = Counter(self._told_of.values())
        most = max(tellers, key=tellers.__getitem__)
        if most == sender:
            return False
        for name, teller in list(self._told_of.items()):
            pool = self.pools[name]
            if teller == most and pool.participation.is_empty():
                self.forget(name)
                return True
        return False

    # -- what people ask ---------------------------------------------------------------

    @property
    def mesh(self) -> Mesh:
        """The links beneath; there once the node is started."""
        assert self._mesh is not None
        return self._mesh

    @property
    def views(self) -> Views:
        """What other nodes say of their pools; there once the node is started."""
        assert self._views is not None
        return self._views

    def owns(self, name: str) -> bool:
        """Is there such a pool, or does our own user say so? Requests may name anything."""
        named = name not in self._visits and name not in self._told_of
        return named or self.pools[name].configuration is not None

    def status(self) -> Status:
        """Everything a person or a program may want to know, as plain values."""
        mesh = self._mesh
        met = [] if mesh is None else [s.peer for s in mesh.sessions.values() if s.generation]
        links = {} if mesh is None else {peer: mesh.describe(peer) for peer in met}
        known = {} if mesh is None else mesh.link_map.describe()
        pools = {name: pool.describe() for name, pool in self.pools.items() if self.owns(name)}
        mark_gone(known, links, pools)
        found: Any = {
            "node": self.name,
            "address": mesh.address if mesh else None,
            "protected": mesh is not None and mesh.security.server is not None,
            "refused": mesh.refusals.total if mesh else 0,
            "in_doubt": mesh.in_doubt if mesh else 0,
            "no_link": dict(mesh.no_link) if mesh else {},
            "links": links,
            "map": known,
            "pools": pools,
        }
        return cast(Status, found)
