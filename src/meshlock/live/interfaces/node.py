"""A node, as programs use it: :class:`meshlock.Node`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from meshlock.errors import Refused
from meshlock.live.interfaces.agent_settings import AgentSettings
from meshlock.live.interfaces.configuration import secret
from meshlock.live.interfaces.local_node import AUTO, LocalNode
from meshlock.live.interfaces.registry import LEASE
from meshlock.live.machine import limits
from meshlock.live.pools.grants import Pool
from meshlock.live.pools.pool_configuration import (
    DEFAULT_MEMBERS,
    NO_RECOVERY,
    PROMOTE_AFTER,
    REPLACE_AFTER,
    chosen,
    leased,
)
from meshlock.live.pools.status import Status


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
        min_links: int = AgentSettings.min_links,
        most_pools: int = AgentSettings.most_pools,
        advertise: str | None = None,
        zenoh: Mapping[str, Any] | None = None,
        clock_rate: float = 1.0,
    ) -> None:
        given = dict(locals())
        del given["self"], given["secret"], given["state"]
        if isinstance(peers, str):
            raise Refused(f"peers is a list of addresses: write peers=[{limits.shown(peers)}].")
        given["peers"] = tuple(peers)
        self._local = LocalNode(AgentSettings(**given), secret, state)
        self.name = self._local.name

    @classmethod
    def configured(cls, settings: AgentSettings) -> Node:
        """As a configuration file says: ``Node.configured(configuration.read(path))``."""
        names = inspect.signature(cls).parameters.keys() & settings.declared
        given: dict[str, Any] = {name: getattr(settings, name) for name in names}
        if settings.state == "none":
            given["state"] = None
        return cls(**given, secret=secret(settings.secret_file))

    async def start(self) -> None:
        """Listen, and dial the peers; ``async with`` does it."""
        await self._local.start()

    async def close(self) -> None:
        """Leave: release what clients hold, hand the token on, say goodbye."""
        await self._local.close()

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
        registry, options, by_name = self._local.registry, options or {}, member_names(members)
        if recovery == NO_RECOVERY:
            if names:
                raise Refused(f"Named permits need leases: leave out recovery for {name}.")
            if lease is not None:
                raise Refused(f"lease is only for pools with recovery: leave it out for {name}.")
            return Pool(
                registry.use_plain(name, permits, founder, algorithm, options, by_name, links)
            )
        refuse_without_leases(name, founder=founder, links=links)
        lasting = LEASE if lease is None else lease
        if members == AUTO:
            chosen(algorithm, True, options)
            rules = (most_members, promote_after, replace_after)
            given = (name, permits, algorithm, options, lasting, names, self.name, rules)
            return Pool(registry.use(name, permits, partial(leased, *given)))
        if not by_name:
            raise Refused(f"members names nobody: name nodes, or leave it out for {name}.")
        agreed = leased(name, permits, algorithm, options, lasting, names, members=by_name)
        return Pool(registry.use_agreed(name, agreed))

    async def create_pool(
        self, name: str, permits: int | list[str] | tuple[str, ...] | None = None
    ) -> int:
        """Make a pool on purpose, unless a node that can be reached has it: other nodes that
        expect to make it wait no more. Without ``permits`` it is made as this node was told before.
        The result is how many permits it has."""
        return await self._local.registry.create(name, permits)

    # -- links -------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Where others can link to this node: host:port."""
        return self._local.mesh.address

    def connect(self, address: str) -> None:
        """Link to the node at this address too, and keep the link."""
        self._local.connect(address)

    def status(self) -> Status:
        """Everything a person or a program may want to know, as plain values."""
        return self._local.status()


def member_names(members: Sequence[str]) -> tuple[str, ...]:
    """No names where nodes become members by themselves."""
    if isinstance(members, str) and members != AUTO:
        raise Refused(f"members is 'auto' or a list of names, not {limits.shown(members)}.")
    names = () if members == AUTO else tuple(members)
    for member in names:
        if names.count(member) > 1:
            raise Refused(f"members names {limits.shown(member)} twice: name every node once.")
    return names


def refuse_without_leases(name: str, founder: bool | None, links: object) -> None:
    """What is only for pools without leases."""
    only = 'is only for pools with recovery = "none": leave it out for'
    if founder is not None:
        raise Refused(f"founder {only} {name}, which is joined or made by any node.")
    if links is not None:
        raise Refused(f'links {only} {name}, or set recovery = "none".')
