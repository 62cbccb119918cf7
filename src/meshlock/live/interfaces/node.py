"""A node: its links, its pools, its clients."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from logging import WARNING
from pathlib import Path
from typing import Any, cast

from meshlock.errors import Refused
from meshlock.live.interfaces.agent_settings import AgentSettings
from meshlock.live.interfaces.configuration import secret, warn_if_others_read
from meshlock.live.interfaces.registry import Registry
from meshlock.live.links.dialler import ZENOH, split
from meshlock.live.links.link import Receiver
from meshlock.live.links.mesh import Mesh
from meshlock.live.links.reach import advertised
from meshlock.live.links.security import Security, by_certificate, by_secret, unprotected
from meshlock.live.machine import limits
from meshlock.live.machine.logs import log_event
from meshlock.live.pools.grants import Pool
from meshlock.live.pools.pool import LocalPool
from meshlock.live.pools.pool_configuration import (
    DEFAULT_MEMBERS,
    NO_RECOVERY,
    PROMOTE_AFTER,
    REPLACE_AFTER,
    chosen,
    founded,
    leased,
)
from meshlock.live.pools.promises import Promises, default_folder
from meshlock.live.pools.status import Status, mark_gone
from meshlock.live.pools.views import Views

LEASE = 3.0
"""Seconds, unless the maker of the pool says otherwise."""

AUTO = "auto"

MIN_LINKS = 3
"""The links that a node has, if enough others can be dialled."""

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
    has this number of links (and a few more, so that no node is the only way between others);
    with 0 it dials its ``peers`` only. ``advertise``, a host or host:port, is where others can
    dial us, if that is not where their neighbours see us.
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
        self.min_links = limits.MIN_LINKS.whole(min_links)
        self.most_pools = limits.POOLS.whole(most_pools, "most-pools")
        self.advertise = advertise if advertise is None else advertised(advertise)
        self.zenoh = zenoh
        self.clock_rate = clock_rate
        self.boot = secrets.randbits(48) + 1
        self.registry = Registry(self)
        self.pools = self.registry.pools
        self._secret = secret
        self._certificates = Path(certificates) if certificates is not None else None
        self._mesh: Mesh | None = None
        self._views: Views | None = None
        self._closing = False
        limits.name(self.name, "node")
        self.promises: Promises | None = None
        if state is not None:
            self.promises = Promises(default_folder(self.name) if state == AUTO else Path(state))
        self.discovering = False  # may peers be found that nobody has named?
        limits.HEARTBEAT.real(heartbeat)
        limits.DEAD.real(dead)
        limits.CLOCK_RATE.real(clock_rate)
        limits.TRACE_LIMIT.whole(trace_limit)
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
        self.registry.linked_at = self._mesh.time()
        for address in self.peers:
            self._mesh.dialler.dial(address)

    def is_running(self) -> bool:
        return self._mesh is not None and not self._closing

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
        for task in self.registry.foundings.values():
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
        """The pool of this name: joined if a neighbour knows it, or made now with
        ``permits``; without ``permits`` it is only joined.

        It survives crashes: permits are held under leases of ``lease`` seconds (default: 3), which
        a majority of its members renews. The node that makes the pool is its first member; nodes
        that have been there for ``promote_after`` seconds become members, three or five
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
        by_name = member_names(members)
        if recovery == NO_RECOVERY:
            if names:
                raise Refused(f"Named permits need leases: leave out recovery for {name}.")
            return Pool(
                self.plain_pool(name, permits, founder, algorithm, options, by_name, links, lease)
            )
        refuse_without_leases(name, founder=founder, links=links)
        if members != AUTO and not by_name:
            raise Refused(f"members names nobody: name nodes, or leave it out for {name}.")
        lasting = LEASE if lease is None else lease
        if by_name:
            configuration = leased(
                name, permits, algorithm, options or {}, lasting, names, members=by_name
            )
            pool = self.registry.known(name)
            pool.asked_permits = configuration.permits
            if pool.adapter.configuration is None and not pool.participation.remember(
                configuration.identity
            ):
                pool.participation.adopt(configuration)
            return Pool(pool)
        chosen(algorithm, True, options or {})
        pool = self.registry.known(name)
        if pool.adapter.configuration is None:
            pool.participation.remember()
        if permits is None:
            return Pool(pool)
        pool.asked_permits = permits
        under_way = pool.birth.wanted is not None or pool.name in self.registry.foundings
        if pool.adapter.configuration is None and not under_way:
            rules = (most_members, promote_after, replace_after)
            configuration = leased(
                name, permits, algorithm, options or {}, lasting, names, self.name, rules
            )
            self.registry.make(pool, configuration, self.create)
        return Pool(pool)

    async def create_pool(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> int:
        """Make a pool on purpose, unless a node that can be reached has it: other nodes that
        expect to make it wait no more. Without ``permits`` it is made as this node was told before.
        The result is how many permits it has."""
        before = self.pools.get(limits.name(name))
        wanted = before.birth.wanted if before is not None else None
        if before is not None and before.adapter.configuration is not None:
            raise Refused(f"There is a pool {name} already: use it, or remove it first.")
        if permits is not None:
            count, names = limits.named_permits(permits)
            wanted = leased(name, count, None, {}, LEASE, names, self.name)
        if wanted is None:
            raise Refused(f"This node was not told to make {name}: say how many permits it has.")
        pool = self.registry.known(name)
        pool.asked_permits = wanted.permits
        log_event(WARNING, "pool made on purpose", pool=name, node=self.name)
        pool.birth.wanted = wanted
        self.registry.make(pool, wanted, on_purpose=True)
        await pool.introduced()
        return pool.permits or 0

    def pool_for_client(self, name: str, permits: int | list[str]) -> None:
        """As :meth:`pool`. A client that is wrong about its permits is refused alone."""
        count, _ = limits.named_permits(permits)
        pool = self.pools.get(name)
        if pool is None or pool.adapter.configuration is None:
            self.pool(name, permits)
            self.pools[name].asked_permits = None
        elif count != pool.permits == pool.adapter.configuration.permits:
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
        if founder and (pool is None or pool.adapter.configuration is None):
            configuration = founded(
                name, self.name, permits, algorithm, options or {}, members, links
            )
            pool = self.registry.known(name)
            self.registry.make(pool, configuration, on_purpose=True)
        pool = self.registry.known(name)
        if permits is not None:
            pool.asked_permits = permits
        return pool

    # -- links -------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where others can link to this node: host:port."""
        assert self._mesh is not None
        return self._mesh.address

    def connect(self, address: str) -> None:
        """Link to the node at this address too, and keep the link."""
        self.mesh.dialler.dial(address)
        if address not in self.peers:
            self.peers.append(address)

    def up(self, peer: str) -> None:
        self.registry.linked_at = self.mesh.time()
        for pool in self.pools.values():
            self.mesh.failures.run("pool", pool.peers.up, peer)
            self.mesh.failures.run("pool", pool.birth.up, peer)

    def down(self, peer: str) -> None:
        self.registry.linked_at = self.mesh.time()
        for pool in self.pools.values():
            self.mesh.failures.run("pool", pool.peers.down, peer)
        self.registry.forget_hearsay()

    def receiver(self, sender: str, pool: str) -> Receiver | None:
        """Of messages of a pool that we do not know yet."""
        return self.registry.receiver(sender, pool)

    def map_changed(self) -> None:
        for pool in self.pools.values():
            self.mesh.failures.run("pool", pool.participation.map_changed)
        self.registry.forget_hearsay()

    def friends(self) -> set[str]:
        """With whom we are members of a pool."""
        pools = [
            pool.adapter.members for pool in self.pools.values() if pool.adapter.members is not None
        ]
        return {name for one in pools if one.node.member.is_member() for name in one.names()} - {
            self.name
        }

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

    def status(self) -> Status:
        """Everything a person or a program may want to know, as plain values."""
        mesh = self._mesh
        met = [] if mesh is None else [s.peer for s in mesh.sessions.values() if s.generation]
        links = {} if mesh is None else {peer: mesh.describe(peer) for peer in met}
        known = {} if mesh is None else mesh.link_map.describe()
        pools = {
            name: pool.describe() for name, pool in self.pools.items() if self.registry.owns(name)
        }
        mark_gone(known, links, pools)
        found: Any = {
            "node": self.name,
            "address": mesh.address if mesh else None,
            "protected": mesh is not None and mesh.security.server is not None,
            "refused": mesh.refusals.total if mesh else 0,
            "in_doubt": mesh.in_doubt if mesh else 0,
            "no_link": dict(mesh.dialler.no_link) if mesh else {},
            "links": links,
            "map": known,
            "pools": pools,
        }
        return cast(Status, found)


def member_names(members: Sequence[str]) -> tuple[str, ...]:
    """None where nodes become members by themselves."""
    if isinstance(members, str) and members != AUTO:
        raise Refused(f"members is 'auto' or a list of names, not {limits.shown(members)}.")
    names = () if members == AUTO else tuple(members)
    for member in names:
        if names.count(member) > 1:
            raise Refused(f"members names {limits.shown(member)} twice: name every node once.")
    return names


def refuse_without_leases(name: str, founder: bool | None, links: object) -> None:
    """What is only for pools without leases."""
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
