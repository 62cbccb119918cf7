"""What a node is made of: its links, its pools, what it has promised.

Rules of this file: it knows no programs. They use a :class:`.Node`, or ask over HTTP.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from meshlock.errors import Refused
from meshlock.live.interfaces.agent_settings import AgentSettings
from meshlock.live.interfaces.configuration import warn_if_others_read
from meshlock.live.interfaces.registry import Registry
from meshlock.live.links.dialler import ZENOH, split
from meshlock.live.links.link import Receiver
from meshlock.live.links.mesh import Mesh
from meshlock.live.links.reach import advertised
from meshlock.live.links.security import Security, by_certificate, by_secret, unprotected
from meshlock.live.machine import limits
from meshlock.live.pools.promises import Promises, default_folder
from meshlock.live.pools.status import Status, mark_gone
from meshlock.live.pools.views import Views

AUTO = "auto"

FAREWELL = 3.0
"""Seconds a leaving node takes to say goodbye, besides what its pools take."""


class LocalNode:
    """A node of this process, and the owner of its mesh."""

    def __init__(
        self, settings: AgentSettings, secret: str | None, state: str | Path | None
    ) -> None:
        self.settings = settings
        self.secret = secret
        self.name = socket.gethostname() if settings.name is None else settings.name
        limits.name(self.name, "node")
        for field, one in settings.declared.items():
            if one.within is not None:
                limit: limits.Range = getattr(limits, one.within)
                check = limit.whole if isinstance(one.default, int) else limit.real
                check(getattr(settings, field), one.key)
        if settings.heartbeat >= settings.dead:
            raise Refused("heartbeat must be less than dead: lower heartbeat or raise dead.")
        away = settings.advertise
        self.advertise = None if away is None else advertised(away)
        self.peers = list(settings.peers)
        for address in self.peers:
            if not address.startswith(ZENOH):
                split(address)
        self.boot = secrets.randbits(48) + 1
        self.registry = Registry(self)
        self.pools = self.registry.pools
        self.promises: Promises | None = None
        if state is not None:
            self.promises = Promises(default_folder(self.name) if state == AUTO else Path(state))
        self.discovering = False  # may peers be found that no setting names?
        self._mesh: Mesh | None = None
        self.views: Views  # what other nodes say of their pools; there once the node is started
        self._closing = False

    # -- life --------------------------------------------------------------------------

    async def start(self) -> None:
        settings = self.settings
        loop = asyncio.get_running_loop()
        security = await loop.run_in_executor(None, self.security)
        self._mesh = Mesh(
            *(self.name, self.boot, security, self, settings.heartbeat, settings.dead),
            *(settings.clock_rate, settings.min_links, self.advertise),
            self.promises.folder if self.promises is not None else None,
        )
        self.views = Views(self._mesh, self.pools)
        if settings.listen is not None:
            await self._mesh.listen(*split(settings.listen))
        if settings.zenoh is not None:
            await self._mesh.join_zenoh(settings.zenoh)
        self.registry.linked_at = self._mesh.time()
        for address in self.peers:
            self._mesh.dialler.dial(address)

    def is_running(self) -> bool:
        return self._mesh is not None and not self._closing

    def security(self) -> Security:
        if self.settings.certificates is not None:
            folder, name = Path(self.settings.certificates), self.name
            warn_if_others_read(folder / f"{name}.key")
            return by_certificate(folder / "ca.crt", folder / f"{name}.crt", folder / f"{name}.key")
        if self.secret is not None:
            return by_secret(self.secret, self.name)
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
            await asyncio.sleep(self.settings.heartbeat)  # others may be leaving too
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
                    await asyncio.sleep(self.settings.heartbeat / 10)
        await self.part(mesh, near[:1])

    async def part(self, mesh: Mesh, peers: list[str]) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*map(mesh.leave, peers)), FAREWELL)

    # -- links -------------------------------------------------------------------------

    def connect(self, address: str) -> None:
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

    # -- what is asked of it -----------------------------------------------------------

    @property
    def mesh(self) -> Mesh:
        """The links beneath; there once the node is started."""
        assert self._mesh is not None
        return self._mesh

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
